// Heads: what a replica has on its disk of a shard beside the state: promise, stamp, last entry, sets.

package records

import (
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// head is that of one shard. It is not changed: a step makes a new one.
type head struct {
	promise Ballot
	stamp   Stamp
	before  route.Fence // of the owner before that of stamp
	place   uint8       // of the state, 0 or 1
	sets    Sets        // of the state: of all entries before the one beside it
	state   uint64      // the chain of the state
	entry   []byte      // the last one, which is beside the state; nil: it is in it
	fresh   bool        // the disk has nothing of the shard yet

	open    bool // done and results are those of entry
	done    changes
	results []result
}

// current returns the sets of the whole history.
func (h *head) current() Sets {
	if len(h.entry) > 0 && h.entry[0] == changeEntry {
		if e, err := readEntry(h.entry); err == nil {
			return h.sets.changed(e.set, h.stamp.Number)
		}
	}
	return h.sets
}

// bytes returns a head as the disk has it, without the entry. A sum over it is the last.
func (h *head) bytes(sh Shard) []byte {
	b := appendStamp(appendBallot(nil, h.promise), h.stamp)
	b = append(append(b, h.before[:]...), h.place)
	b = wire.AppendU64(appendSets(b, &h.sets), h.state)
	b = wire.AppendBool(b, h.entry != nil)
	return wire.AppendU64(b, sumOf(sh, b))
}

// sumOf returns the sum over the head of a shard.
func sumOf(sh Shard, b []byte) uint64 { return chained(xxhash.Sum64String(sh.key()), b) }

// readHead reads what bytes wrote, beside the last entry. One with a changed bit is an error, and so is such an
// entry: it does not make the chain.
func readHead(sh Shard, b, entry []byte) (*head, error) {
	if len(b) < 8 {
		return nil, wire.ErrBadValue
	}
	if sum := wire.NewReader(0, b[len(b)-8:]); sum.U64() != sumOf(sh, b[:len(b)-8]) {
		return nil, wire.ErrBadValue
	}
	r := wire.NewReader(0, b[:len(b)-8])
	h := &head{promise: readBallot(&r), stamp: readStamp(&r)}
	copy(h.before[:], r.Fixed(route.FenceSize))
	h.place, h.sets, h.state = r.U8()&1, readSets(&r), r.U64()
	if r.Bool() {
		if h.entry = entry; chained(h.state, entry) != h.stamp.Chain {
			r.Fail(wire.ErrBadValue)
		}
	}
	return h, r.Done()
}

// replica is the half of a machine that keeps its disk.
type replica struct {
	*core
	disk   Engine
	heads  map[Shard]*head
	shards int
	later  []letter // that the Sync after the next Tick handles
	outs   []*out   // copies of this disk
	ins    []*in    // copies to it
}

// maxDirty is the most keys that may change behind a copy, before it begins anew.
const maxDirty = 1 << 16

// out is a copy of this disk's state of a shard for another replica. The last part has what no part before has, and all
// that changed meanwhile: the parts together are one state.
type out struct {
	shard  Shard
	taker  peer.ID
	number uint64
	place  uint8
	cursor string // all keys up to this one were given
	dirty  map[string]struct{}
	last   *message
	until  time.Duration
}

// in is a copy to this disk, into the place that the shard's state is not in.
type in struct {
	shard  Shard
	source peer.ID
	owner  peer.ID // that is answered when it is there
	number uint64
	part   int
	again  time.Duration
	until  time.Duration
}

// reply is an answer that waits until a step is on disk.
type reply struct {
	to peer.ID
	x  *message
}

// loaded returns the head of a shard, in its first place for one that the disk has nothing of.
func (m *replica) loaded(s Shard) (*head, error) {
	h, err := m.peeked(s)
	if err == nil && !h.fresh {
		m.heads[s] = h
	}
	return h, err
}

// peeked is loaded, and keeps nothing.
func (m *replica) peeked(s Shard) (*head, error) {
	if h := m.heads[s]; h != nil {
		return h, nil
	}
	b, err := m.disk.Get([]byte(headKey + s.key()))
	if err != nil {
		return nil, fmt.Errorf("records: reading the head of a shard: %w", err)
	}
	if b == nil {
		return &head{sets: Sets{Now: m.found.setOf(s)}, fresh: true}, nil
	}
	b = append([]byte(nil), b...)
	entry, err := m.disk.Get([]byte(entryKey + s.key()))
	if err != nil {
		return nil, fmt.Errorf("records: reading the entry of a shard: %w", err)
	}
	h, err := readHead(s, b, append([]byte(nil), entry...))
	if err != nil {
		return nil, fmt.Errorf("records: the head of a shard is damaged: %w", err)
	}
	return h, nil
}

// step is what one Sync does to the disk.
type step struct {
	over    changes
	heads   map[Shard]*head
	answers []reply // once it is on disk
	reads   []letter
	failed  error
}

// headOf returns the head of a shard as this step has it; nil for one that cannot be read: this replica is then mute
// about that shard, and goes on with others.
func (m *replica) headOf(s *step, sh Shard) *head {
	if h := s.heads[sh]; h != nil {
		return h
	}
	h, err := m.loaded(sh)
	if err != nil {
		m.stats.Damaged++
		return nil
	}
	return h
}

// put has this step write a head, and its entry where that is another one.
func (m *replica) put(s *step, sh Shard, h *head) {
	if was := m.headOf(s, sh); was == nil || was.entry == nil || h.entry == nil || &was.entry[0] != &h.entry[0] {
		s.over[entryKey+sh.key()] = h.entry
	}
	s.over[headKey+sh.key()] = h.bytes(sh)
	s.heads[sh] = h
}

// opened returns what the last entry of a history changes, and what became of its commands.
func (m *replica) opened(v *view, sh Shard, h *head) (changes, []result, error) {
	if h.entry == nil {
		return nil, nil, nil
	}
	if !h.open {
		done, results, err := apply(v, sh.stateKey(h.place), h.entry)
		if err != nil {
			return nil, nil, err
		}
		h.done, h.results, h.open = done, results, true
	}
	return h.done, h.results, nil
}

// append appends an entry to a history under a ballot: the one before goes into the state.
func (m *replica) append(s *step, sh Shard, h *head, b Ballot, body []byte) *head {
	v := &view{disk: m.disk, layers: []changes{s.over}}
	done, _, err := m.opened(v, sh, h)
	if err != nil {
		s.failed = err
		return nil
	}
	for key, value := range done { // a map in, a map out: no order
		s.over[key] = value
	}
	m.dirty(sh, h.place, done)
	n := *h
	n.sets, n.state, n.entry = h.current(), h.stamp.Chain, append([]byte(nil), body...)
	n.stamp = Stamp{b, h.stamp.Number + 1, chained(h.stamp.Chain, body)}
	n.promise, n.open, n.done, n.results = b, false, nil, nil
	m.put(s, sh, &n)
	return &n
}

// held returns an answer that says what this disk holds of a shard.
func (h *head) held(k kind, x *message, code uint8) *message {
	return &message{kind: k, shard: x.shard, number: x.number, code: code, ballot: x.ballot, promise: h.promise,
		stamp: h.stamp, before: h.before, sets: h.current(), state: h.state}
}

// room reports whether this disk may hold a shard.
func (m *replica) room(h *head) bool { return !h.fresh || m.shards < m.cfg.MaxShards }

// answer sends a message once this step is on disk.
func (s *step) answer(to peer.ID, x *message) { s.answers = append(s.answers, reply{to, x}) }

// dirty notes what changes in a state that is being copied.
func (m *replica) dirty(sh Shard, place uint8, done changes) {
	for i := len(m.outs) - 1; i >= 0; i-- {
		c := m.outs[i]
		if c.shard != sh || c.place != place {
			continue
		}
		for key := range done { // a set in, a set out: no order
			if key <= c.cursor {
				c.dirty[key] = struct{}{}
			}
		}
		if len(c.dirty) > maxDirty {
			m.outs = slices.Delete(m.outs, i, i+1)
		}
	}
}

// known returns the replicas that this node knows to hold a shard, or to have held it; with an error none.
func (m *replica) known(sh Shard) peer.Set {
	all := m.found.setOf(sh).Clone()
	if h, err := m.loaded(sh); err == nil {
		sets := h.current()
		for _, id := range sets.members(h.stamp.Number) {
			all.Add(id)
		}
	}
	return all
}
