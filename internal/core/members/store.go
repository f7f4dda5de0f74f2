// Store: the memory in which a node packs, reads, merges and seals states, its own or one of a pool (GOS-8).

package members

import (
	"bytes"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/wire"
)

// Store makes states out of states and bytes. What it returns is immutable and does not depend on it any more.
type Store struct {
	work  *work
	coder *coder
	pool  *Intern
}

// NewStore returns a store that gzips states from above bytes on; with a pool, it shares the pool's memory, and all
// stores of the pool must have the same above.
func NewStore(above int, pool *Intern) *Store {
	s := &Store{work: &work{}, coder: &coder{}, pool: pool}
	if pool != nil {
		invariant.Check(pool.coder.above == 0 || pool.coder.above == above, "membership: one pool, two CompressAbove")
		s.work, s.coder = &pool.work, &pool.coder
		s.work.pool = pool
	}
	s.coder.above = above
	return s
}

// NewerOrMerged decides between the local and a received state of one cluster: the one that is newer, with what held
// knows of versions with a clock that was pruned since, or else their join.
func (s *Store) NewerOrMerged(local, remote *State, held func(gossip.Digest) *Version) (*State, Outcome) {
	ours, theirs := local.unpruned(remote, held), remote.unpruned(local, held)
	next, how := s.work.newerOrMerged(ours, theirs)
	switch next {
	case ours:
		next = local
	case theirs:
		next = remote
	}
	return next, how
}

// Share returns the pool's version with the content of v, v itself without a pool.
func (s *Store) Share(v *Version) *Version { return s.pool.one(v) }

// Recycle takes the seen set of a state that nobody uses any more.
func (s *Store) Recycle(st *State) { s.work.recycle(st) }

// Pack returns the packed form of v: what it came in, or what is made now and kept.
func (s *Store) Pack(v *Version) Packed { return s.coder.packOf(v) }

// Read returns the version of that digest that came packed in a body of kind; held when that is it. The version keeps
// a copy of the packed form that it came in. What cannot be unpacked, breaks an invariant or has another digest is a
// *wire.Error and leaves no memory behind.
func (s *Store) Read(kind wire.Kind, digest gossip.Digest, p Packed, held *Version) (*Version, error) {
	known := s.pool.packed(digest, p)
	switch {
	case held != nil && held.Digest == digest:
		return held, nil
	case known != nil:
		return known, nil
	}
	plain, err := s.coder.unpack(kind, p.flags, p.bytes)
	if err != nil {
		return nil, err
	}
	v, err := s.work.readCore(kind, plain)
	if err != nil {
		s.coder.raw = nil // it may be a bomb
		return nil, err
	}
	if v.Digest != digest {
		return nil, &wire.Error{Kind: kind, Offset: 16, Err: wire.ErrBadValue}
	}
	v.packed = Packed{p.flags, bytes.Clone(p.bytes)}
	s.pool.verify(v)
	return s.pool.one(v), nil
}

// Apply returns what changes make of base, nil when that is not the version of the digest, or none that a reader of the
// whole would take. A *wire.Error when they cannot be read.
func (s *Store) Apply(base *Version, digest gossip.Digest, changes []byte) (*Version, error) {
	if v := s.pool.named(digest); v != nil {
		return v, nil
	}
	v, err := s.work.readDelta(wire.KindDelta, base, changes)
	if err != nil || v.Digest != digest || !v.sound() {
		return nil, err
	}
	s.pool.verify(v)
	return s.pool.one(v), nil
}
