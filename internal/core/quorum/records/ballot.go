// Ballots, stamps and sets: what orders owners, names a history, and decides it.

package records

import (
	"cmp"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Ballot is one attempt of an owner: its fence, then which attempt, then a number drawn for it, so that no two attempts
// have the same, also of several processes under one fence. The zero value is none.
type Ballot struct {
	Fence   route.Fence
	Attempt uint64
	By      uint64
}

// Compare orders ballots: -1, 0 or +1.
func (b Ballot) Compare(o Ballot) int {
	return cmp.Or(b.Fence.Compare(o.Fence), cmp.Compare(b.Attempt, o.Attempt), cmp.Compare(b.By, o.By))
}

func appendBallot(b []byte, x Ballot) []byte {
	return wire.AppendU64(wire.AppendUvarint(append(b, x.Fence[:]...), x.Attempt), x.By)
}

func readBallot(r *wire.Reader) (b Ballot) {
	copy(b.Fence[:], r.Fixed(route.FenceSize))
	b.Attempt, b.By = r.Uvarint(), r.U64()
	return b
}

// Stamp names a history: the ballot under which its last entry was written, and the number of that. Chain is a hash of
// all entries: two histories of one length with one chain are the same.
type Stamp struct {
	Ballot Ballot
	Number uint64
	Chain  uint64
}

// newer reports whether a history has to be taken in the place of another one.
func (s Stamp) newer(o Stamp) bool {
	return cmp.Or(s.Ballot.Compare(o.Ballot), cmp.Compare(s.Number, o.Number)) > 0
}

// same reports whether two histories hold the same entries.
func (s Stamp) same(o Stamp) bool { return s.Number == o.Number && s.Chain == o.Chain }

func appendStamp(b []byte, s Stamp) []byte {
	return wire.AppendU64(wire.AppendUvarint(appendBallot(b, s.Ballot), s.Number), s.Chain)
}

func readStamp(r *wire.Reader) Stamp {
	return Stamp{Ballot: readBallot(r), Number: r.Uvarint(), Chain: r.U64()}
}

// Sets are those of a history: Now is the last that it has changed to, at the entry of number At, and Prior the one
// before. Where At is the last number of a history, both decide it.
type Sets struct {
	Now, Prior peer.Set
	At         uint64
}

// asked returns the replicas that decide a history of that length: one set or two.
func (s *Sets) asked(number uint64) []peer.Set {
	if s.At == number && number > 0 {
		return []peer.Set{s.Now, s.Prior}
	}
	return []peer.Set{s.Now}
}

// decided reports whether those for which yes is true decide a history of that length.
func (s *Sets) decided(number uint64, yes func(peer.ID) bool) bool {
	for _, set := range s.asked(number) {
		n := 0
		for _, id := range set {
			if yes(id) {
				n++
			}
		}
		if n < len(set)/2+1 {
			return false
		}
	}
	return true
}

// members returns all replicas of the sets that decide a history of that length.
func (s *Sets) members(number uint64) peer.Set {
	all := s.Now.Clone()
	for _, set := range s.asked(number) {
		for _, id := range set {
			all.Add(id)
		}
	}
	return all
}

// changed returns the sets behind a change to now at number.
func (s *Sets) changed(now peer.Set, number uint64) Sets { return Sets{now, s.Now, number} }

func appendSet(b []byte, s peer.Set) []byte {
	b = wire.AppendUvarint(b, uint64(len(s)))
	for _, id := range s {
		b = peer.AppendID(b, id)
	}
	return b
}

// readSet reads a set of at most most members, in order.
func readSet(r *wire.Reader, most int) (s peer.Set) {
	for range r.Count(peer.MinIDSize, most) {
		id := peer.ReadID(r)
		if r.Err() == nil && (id.IsZero() || len(s) > 0 && !s[len(s)-1].Less(id)) {
			r.Fail(wire.ErrBadValue)
		}
		s = append(s, id)
	}
	return s
}

func appendSets(b []byte, s *Sets) []byte {
	return wire.AppendUvarint(appendSet(appendSet(b, s.Now), s.Prior), s.At)
}

func readSets(r *wire.Reader) Sets {
	return Sets{readSet(r, MaxReplicas), readSet(r, MaxReplicas), r.Uvarint()}
}

// Shard names one shard of a type. Type has 1 to 255 bytes.
type Shard struct {
	Type string
	N    uint32
}

// compare orders shards.
func (s Shard) compare(o Shard) int {
	return cmp.Or(cmp.Compare(s.Type, o.Type), cmp.Compare(s.N, o.N))
}

func appendShard(b []byte, s Shard) []byte { return wire.AppendU32(wire.AppendString(b, s.Type), s.N) }

func readShard(r *wire.Reader) Shard {
	s := Shard{r.String(maxType), r.U32()}
	if r.Err() == nil && s.Type == "" {
		r.Fail(wire.ErrBadValue)
	}
	return s
}
