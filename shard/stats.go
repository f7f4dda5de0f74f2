// Stats: what an operator may want to know of one type on this node. Reading changes nothing.

package shard

import (
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// Stats is what this node knows of one type. Slices belong to the caller.
type Stats struct {
	Settings    Settings
	Registered  bool    // known to this node's own application
	Refused     error   // why the type cannot be used here, or nil
	Coordinator peer.ID // the node that this one follows; zero when there is none
	Term        uint32  // of that coordinator
	Joined      bool    // it has acknowledged this node's region
	Hosted      int     // shards that live here or are stopping here
	Wanted      int     // shards this node waits for a home of
	Routes      []NodeShards
	Leading     *CoordinatorStats // nil while another node coordinates
}

// NodeShards is how many shards of a type live at a node.
type NodeShards struct {
	Node   peer.ID
	Shards int
}

// Leading is what the coordinator on this node knows.
type CoordinatorStats struct {
	Term      uint32
	Ready     bool          // it allocates
	Missing   peer.Set      // members it still waits for before it may allocate
	Nodes     []NodeShards  // shards per owner, lost owners included
	Waiting   int           // shards that are wanted and have no confirmed home
	Orphans   int           // shards of a lost owner that may still be serving
	Moves     int           // under way
	Unacked   int           // disclosed homes that do not hold any more, until every member that knows them confirms that
	Misplaced int           // shards that one round of rebalancing would move now; none while something holds it
	Held      strategy.Hold // why nothing moves for balance
}

// Counters are totals since the machine was made.
type Counters struct {
	Ignored uint64 // mail of strangers, of Down members, of other clusters
	Stale   uint64 // orders and reports refused for a lower term or fence
	Types   int    // types that this node keeps a promise for
	Full    uint64 // questions and registrations about types for which there was no room
	Placing Placing
	Moves   MoveCounters

	Draining bool // now: see DrainCommand
}

// Counters returns the machine's totals.
func (m *Machine) Counters() Counters {
	return Counters{Ignored: m.ignored, Stale: m.stale, Types: len(m.types), Full: m.full,
		Placing: m.placed, Moves: m.moves, Draining: m.away}
}

// Stats returns what this node knows of a type; ok is false when it has never heard of it.
func (m *Machine) Stats(id route.TypeID) (s Stats, ok bool) {
	t := m.types[id]
	if t == nil {
		return s, false
	}
	s.Coordinator, s.Term = t.promise.to, t.promise.term
	if g := t.region; g != nil {
		s.Settings, s.Registered, s.Refused = g.settings, true, g.refused
		s.Coordinator, s.Term, s.Joined = g.to, g.term, g.joined
		s.Hosted, s.Wanted = g.hosted.Len(), g.wanted.Len()
		s.Routes = g.routes(m.self)
	}
	if c := t.coord; c != nil {
		s.Settings = c.settings
		s.Leading = c.stats()
	}
	return s, true
}

// routes counts the known homes per node, sorted by identity.
func (g *region) routes(self peer.ID) []NodeShards {
	var list []NodeShards
	for _, e := range g.slots.All {
		id := self
		switch e.state {
		case RouteUnknown:
			continue
		case RouteRemote, RouteMoving:
			if e.home != nil {
				id = *e.home
			}
		}
		at, ok := slices.BinarySearchFunc(list, id, func(n NodeShards, id peer.ID) int { return n.Node.Compare(id) })
		if !ok {
			list = slices.Insert(list, at, NodeShards{Node: id})
		}
		list[at].Shards++
	}
	return list
}

func (c *coordinator) stats() *CoordinatorStats {
	r := &CoordinatorStats{Term: c.term, Ready: c.ready, Waiting: c.pending.Len(), Moves: len(c.moves.under),
		Orphans: c.orphaned}
	if !c.ready {
		r.Missing = c.missing()
	}
	for _, p := range c.clients {
		r.Unacked += len(p.gone)
		if owns := p.owns.Len(); owns > 0 {
			r.Nodes = append(r.Nodes, NodeShards{p.id, owns})
		}
	}
	r.Misplaced, r.Held = c.moves.round()
	return r
}

// Unacknowledged lists the names of the types registered on a node that their coordinator, known to it, has not
// acknowledged. A type of a role that nobody has, and one that was refused, are not among them.
func Unacknowledged(m *Machine) (names []string) {
	if m.agenda.unsure == 0 {
		return nil
	}
	for _, id := range m.agenda.order {
		if g := m.types[id].region; g != nil && g.refused == nil && !g.joined && !g.to.IsZero() {
			names = append(names, g.settings.Name)
		}
	}
	return names
}

// Acknowledged reports whether Unacknowledged would list none, at no cost.
func Acknowledged(m *Machine) bool { return m.agenda.unsure == 0 }

// RefusedTypes lists why the cluster does not have types as they are registered on a node, an error each that names the
// type. One that is registered again is not among them until it is refused again.
func RefusedTypes(m *Machine) (errs []error) {
	if m.agenda.refused == 0 {
		return nil
	}
	for _, id := range m.agenda.order {
		if g := m.types[id].region; g != nil && g.refused != nil {
			errs = append(errs, g.refused)
		}
	}
	return errs
}

// MovePhase is how far a move is, as its coordinator knows it.
type MovePhase uint8

// The phases of a move.
const (
	MoveHolds  MovePhase = 1 // senders park and mark; the owner works off, stops, and hands over the rest
	MoveWaits  MovePhase = 2 // the owner has stopped; the shard waits for a member that takes it
	MoveStarts MovePhase = 3 // the next owner was ordered to host it
)

var movePhases = []string{MoveHolds: "holds", MoveWaits: "waits", MoveStarts: "starts"}

// String names the phase.
func (p MovePhase) String() string { return enum.Name(movePhases, p, "phase") }

// MarshalText gives the name.
func (p MovePhase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (p *MovePhase) UnmarshalText(text []byte) error { return enum.Parse(p, text) }

// MoveState is a move under way.
type MoveState struct {
	Shard  route.ShardID
	From   peer.ID // the owner that it leaves
	To     peer.ID // the member that is to get it
	Number Number
	Phase  MovePhase
	Age    time.Duration // since it began; zero when an earlier coordinator began it
}

// Moves lists the moves of a type that a node leads, by shard, and its term as coordinator; zero when it does not
// coordinate the type.
func Moves(m *Machine, id route.TypeID) (list []MoveState, term uint32) {
	t := m.types[id]
	if t == nil || t.coord == nil {
		return nil, 0
	}
	c := t.coord
	for _, s := range slices.Sorted(maps.Keys(c.moves.under)) {
		n := c.moves.under[s]
		list = append(list, MoveState{Shard: s, From: c.records.Peek(s).home.id, To: n.to, Number: Number{c.term, n.seq},
			Phase: MoveHolds, Age: m.now - n.began})
	}
	for _, s := range slices.Sorted(maps.Keys(c.moves.heirs)) {
		h := c.moves.heirs[s]
		if h.seq == 0 || c.moves.under[s] != nil {
			continue
		}
		st := MoveState{Shard: s, From: h.from, To: h.id, Number: Number{c.term, h.seq}, Phase: MoveWaits,
			Age: m.now - h.began}
		if r := c.records.Peek(s); r.phase == starting {
			st.To, st.Phase = r.home.id, MoveStarts
		}
		list = append(list, st)
	}
	sort.SliceStable(list, func(i, k int) bool { return list[i].Shard < list[k].Shard })
	return list, c.term
}
