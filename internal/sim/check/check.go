// The checkers: they see all nodes at every step, know what was done to the cluster, and never correct anything.

package check

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// maxViolations bounds how many findings of one run are kept.
const maxViolations = 20

// Violation is one broken promise: when, on which node (from 1; zero for the whole cluster), which rule, in words.
type Violation struct {
	At   time.Duration
	Node int
	Rule string
	Text string
}

// String prints the violation as one line.
func (v Violation) String() string {
	return fmt.Sprintf("%.6fs n%d %s: %s", v.At.Seconds(), v.Node, v.Rule, v.Text)
}

// memberKey is an incarnation in one cluster: a node admitted to one that died before telling it may join another.
type memberKey struct {
	cluster uint64
	id      peer.ID
}

// changeKey is a step of a member's life that only a leader takes.
type changeKey struct {
	id peer.ID
	to membership.Status
}

// Checker holds the history that the rules speak of. Its maps are only looked up, never walked.
type Checker struct {
	tells refusals
	farewells

	w          *world.World
	Violations []Violation
	Total      int
	twinSince  time.Duration // since when two clusters have lived; negative: there are none

	ups           map[upKey][]peer.ID // more than one where a strategy lets two sides live
	upOf          map[memberKey]uint32
	knows         map[memberKey][]*world.Process // processes that have shown that number
	gifts         gifts
	numbers       []uint32                      // of the view that is being checked
	shown         map[reportKey]uint32          // by process and member, the number that it has in the process's views
	agreed        map[uint64]string             // what converged nodes with one hash agree on
	changed       map[changeKey]bool            // leader's steps seen so far
	known         []peer.ID                     // all that were ever in a view, in the order of appearance
	unsure        map[reportKey]bool            // a process, and a member that its first view lacked
	gone          map[peer.ID]time.Duration     // since when it is lost for some process: see loses
	pairs         pairs                         // and for which processes
	excused       map[peer.ID]bool              // an operator or a restart downed it, or it leaves
	owners        map[world.ShardKey]*ownership // by shard, the latest owner
	hosted        map[hostedKey]*world.Process
	leads         map[route32]*coordinatorSeat // by type, the coordinator ready to allocate
	heard         map[reportKey]time.Duration
	store         map[storeKey]storeRow
	streams       map[pairKey]*sentMessages           // control messages
	CalmMail      bool                                // nobody has a reason to give up a peer
	buried        map[reportKey]bool                  // a process, and a member that it holds for downed by a resolver
	views         map[peer.ID]map[peer.ID]bool        // by process, the members it has seen removed
	checked       map[*world.Process]*membership.View // the last view of each
	joined        map[*world.Process]bool             // processes that have shown a view in a cluster
	collects      map[seatKey]time.Duration           // since when a coordinator collects reports
	births        map[uint64]uint64                   // by cluster
	viewed        int                                 // views so far
	NotTold       int                                 // owners that lived on beside a new one, untold that they are down
	Fenced        int                                 // writes of late owners that the store refused
	InvalidFrames int                                 // frames that a machine called nonsense
	Core          Core
	Suspended     int // owners that had suspended themselves when their shards were given to others
}

// New returns the checkers of a world, its watcher from now on. It is called before anything runs there.
func New(w *world.World) *Checker {
	c := &Checker{
		w: w, twinSince: -1, ups: map[upKey][]peer.ID{},
		upOf: map[memberKey]uint32{}, knows: map[memberKey][]*world.Process{},
		gifts: gifts{map[peer.ID]claim{}, map[peer.ID][]gift{}}, shown: map[reportKey]uint32{},
		agreed:  map[uint64]string{},
		changed: map[changeKey]bool{}, gone: map[peer.ID]time.Duration{}, excused: map[peer.ID]bool{},
		unsure: map[reportKey]bool{},
		hosted: map[hostedKey]*world.Process{},
		owners: map[world.ShardKey]*ownership{}, leads: map[route32]*coordinatorSeat{}, heard: map[reportKey]time.Duration{},
		farewells: farewells{leaveNotices: map[peer.ID]bool{}, exits: map[reportKey]bool{}},
		store:     map[storeKey]storeRow{}, views: map[peer.ID]map[peer.ID]bool{}, births: map[uint64]uint64{},
		checked: map[*world.Process]*membership.View{}, joined: map[*world.Process]bool{},
		collects: map[seatKey]time.Duration{},
		pairs:    newPairs(),
		buried:   map[reportKey]bool{}, streams: map[pairKey]*sentMessages{}, tells: refusals{},
		Core: Core{fed: -1, still: map[peer.ID]time.Duration{}, waits: map[peer.ID]leaseWait{},
			rows: map[peer.ID]time.Duration{}, back: map[membership.Accusation]bool{},
			setbacks: setbacks{older: map[peer.ID]bool{}}},
	}
	if w.Config.Records {
		w.After(twinLook, c.twins)
	}
	if w.Config.Membership.SeedCheckInterval >= 0 {
		w.After(twinLook, c.loners(map[*world.Process]time.Duration{}))
	}
	return c
}

// Broken returns every broken promise that was kept, as lines; the first maxViolations are.
func (c *Checker) Broken() (lines []string) {
	for _, v := range c.Violations {
		lines = append(lines, v.String())
	}
	return lines
}

// Violate notes a broken promise, at a process or, with nil, of the whole cluster, and says so in the trace. What comes
// of a world that a livelock has ended is not broken by anybody.
func (c *Checker) Violate(p *world.Process, rule, format string, args ...any) {
	if world.Livelocked(c.w) {
		return
	}
	c.Total++
	node := 0
	if p != nil {
		node = p.Index + 1
	}
	v := Violation{At: c.w.Now, Node: node, Rule: rule, Text: fmt.Sprintf(format, args...)}
	c.w.Note(max(node-1, 0), "VIOLATION "+rule+": "+v.Text)
	if len(c.Violations) < maxViolations {
		c.Violations = append(c.Violations, v)
	}
}

// Refused is a machine's error from a verb. Commands may fail for good reasons; frames of honest peers may not.
func (c *Checker) Refused(p *world.Process, err error) {
	c.InvalidFrames++
	c.w.Note(p.Index, "refused: "+err.Error())
}

// View checks a newly published snapshot against everything known.
func (c *Checker) View(p *world.Process, v *membership.View) {
	if v.Self != p.ID {
		c.Violate(p, "view-self", "view of %s published by %s", c.w.Name(v.Self), c.w.Name(p.ID))
	}
	removed := c.views[p.ID]
	if removed == nil {
		removed = map[peer.ID]bool{}
		c.views[p.ID] = removed
	}
	_, lost := c.gone[p.ID]
	for i := range v.Members {
		m := &v.Members[i]
		if i > 0 && !v.Members[i-1].ID.Less(m.ID) {
			c.Violate(p, "view-order", "members are not sorted and unique at %s", c.w.Name(m.ID))
		}
		if removed[m.ID] {
			c.Violate(p, "removed-returns", "%s is back after its removal, as %s", c.w.Name(m.ID), m.Status)
		}
		c.number(p, v, m)
		c.pairs.shows(p, m, c.w.Now)
		c.gossiped(p, m, lost)
	}
	c.distinct(p, v)
	tables(v, c, p)
	c.compare(p, v, removed, lost)
	c.birth(p, v)
	c.laws(p)
	c.sides(p, v)
	c.Core.sees(p, v)
	if v.Converged && len(v.Unreachable) == 0 {
		c.agree(p, v)
	}
	c.outlives(p, v)
	c.checked[p] = v
}

// gossiped notes a member that is Down somewhere, and that some process had a reason to say so. lost says that p is.
func (c *Checker) gossiped(p *world.Process, m *membership.Member, lost bool) {
	if m.Status != membership.Down {
		return
	}
	c.loses(p, m.ID, lost)
	c.Core.downed(p, m)
	if !c.excused[m.ID] {
		c.excused[m.ID] = true
		if c.w.Leases.ProvenEnded(m.ID) || c.w.Leases.Tenures.Revoked(m.ID) {
			return
		}
		c.Violate(p, "downed-without-cause", "%s is down, nobody asked for it", c.w.Name(m.ID))
	}
}

// compare checks the step from the view before: statuses only move on, and a leader's step needs convergence.
func (c *Checker) compare(p *world.Process, v *membership.View, removed map[peer.ID]bool, lost bool) {
	before := c.checked[p]
	if before == nil {
		// A first view may come from a state in which those it lacks were removed already: nobody can tell.
		for _, id := range c.known {
			if _, ok := v.Member(id); !ok {
				c.unsure[reportKey{p.ID, id}] = true
				c.pairs.loses(p, id, c.w.Now)
			}
		}
		for i := range v.Members {
			c.led(p, v, v.Members[i].ID, v.Members[i].Status)
		}
		return
	}
	for i := range before.Members {
		old := &before.Members[i]
		m, ok := v.Member(old.ID)
		if !ok && old.ID == p.ID {
			continue // the last view of a node after its membership ended
		}
		if !ok {
			removed[old.ID] = true
			c.pairs.loses(p, old.ID, c.w.Now)
			c.loses(p, old.ID, lost)
			if ofTheOver(before, c.w) {
				c.excused[old.ID], c.changed[changeKey{old.ID, membership.Removed}] = true, true
				continue
			}
			// A member that the holder of a seat has revoked may go in the step in which it is Down: no view shows that.
			if !c.excused[old.ID] && !c.w.Leases.ProvenEnded(old.ID) && !c.w.Leases.Tenures.Revoked(old.ID) {
				c.excused[old.ID] = true
				c.Violate(p, "removed-without-cause", "%s was removed, it was neither down nor leaving", c.w.Name(old.ID))
			}
			c.led(p, v, old.ID, membership.Removed)
			continue
		}
		if m.Status.Rank() < old.Status.Rank() {
			c.Violate(p, "status-back", "%s went from %s to %s", c.w.Name(m.ID), old.Status, m.Status)
		}
		if m.Status == membership.Leaving {
			c.excused[m.ID] = true
		}
	}
	for i := range v.Members {
		c.led(p, v, v.Members[i].ID, v.Members[i].Status)
	}
}

// led: the first node that shows a step which only a leader takes took it, and took it under convergence: every Up or
// Leaving member that it knew of had seen the state that the step starts from, and nobody stood accused. It waits for
// no member that has reported to be done leaving.
func (c *Checker) led(p *world.Process, v *membership.View, id peer.ID, to membership.Status) {
	if !c.changed[changeKey{id, membership.Joining}] {
		c.changed[changeKey{id, membership.Joining}] = true
		c.known = append(c.known, id)
	}
	if to != membership.Up && to != membership.ReadyForShutdown && to != membership.Exiting &&
		to != membership.Removed {
		return
	}
	key := changeKey{id, to}
	if c.changed[key] {
		return
	}
	c.changed[key] = true
	shown := c.checked[p]
	if shown == nil {
		return
	}
	for i := range shown.Members {
		m := &shown.Members[i]
		now, still := v.Member(m.ID)
		if m.ID == id || m.ID == p.ID || !still || !voting(m.Status) || !voting(now.Status) {
			continue
		}
		if c.exits[reportKey{p.ID, m.ID}] && c.changed[changeKey{m.ID, membership.Exiting}] {
			continue // its exit, under convergence, is known to p by its word, perhaps before any gossip (storm 1127910612)
		}
		if o := c.w.ProcessOf(m.ID); o != nil && o.View != nil && o.View.Leader == m.ID {
			continue // perhaps it took the step: a leader in its own view does not count its accusers (storm 50122)
		}
		if accused(shown, m.ID) && accused(v, m.ID) {
			c.Violate(p, "convergence", "%s became %s though %s is unreachable", c.w.Name(id), to, c.w.Name(m.ID))
		}
		if m.ID == v.Leader {
			continue // it decides by its own state, and may show no view of what was in between
		}
		o := c.w.ProcessOf(m.ID)
		if o == nil || o.View == nil {
			continue
		}
		seen, ok := o.View.Member(id)
		if !ok && (c.views[o.ID][id] || c.unsure[reportKey{o.ID, id}]) {
			continue // it has seen the removal, or may have come in after it
		}
		if !ok || seen.Status.Rank() < before(to).Rank() {
			c.Violate(p, "convergence", "%s became %s though %s has not seen what it was before", c.w.Name(id), to,
				c.w.Name(m.ID))
		}
	}
}

// before is the least status from which a leader's step to a status starts.
func before(to membership.Status) membership.Status {
	switch to {
	case membership.ReadyForShutdown:
		return membership.PreparingForShutdown
	case membership.Exiting:
		return membership.Leaving
	case membership.Removed:
		return membership.Exiting
	}
	return membership.Joining
}

func voting(s membership.Status) bool { return s.Working() || s == membership.Leaving }

// accused reports whether an observer that is a member and not Down holds id unreachable.
func accused(v *membership.View, id peer.ID) bool {
	for _, a := range v.Accusations {
		if o, ok := v.Member(a.Observer); ok && a.Subject == id && o.Status != membership.Down {
			return true
		}
	}
	return false
}

// agree: converged nodes with one hash hold the same members and the same leader.
func (c *Checker) agree(p *world.Process, v *membership.View) {
	what := ViewText(c.w, v)
	if old, ok := c.agreed[v.Hash]; !ok {
		c.agreed[v.Hash] = what
	} else if old != what {
		c.Violate(p, "agreement", "converged with hash %x on %q, another node on %q", v.Hash, what, old)
	}
}

// Event checks that events follow the views.
func (c *Checker) Event(p *world.Process, e *membership.Event) {
	c.quarantined(p, e)
	if e.Kind == membership.MemberQuarantined && e.By == p.ID {
		c.Core.tired = c.w.Now // from now on the resolver decides about it, as about any unreachable member [FD-4]
	}
	if !e.Kind.OfView() {
		return
	}
	switch e.Kind {
	case membership.LeaderChanged, membership.RoleLeaderChanged, membership.MetadataChanged,
		membership.PartitionsChanged:
		return
	case membership.MemberRemoved:
		if _, ok := p.View.Member(e.Member.ID); ok {
			c.Violate(p, "events", "removed event of %s, which is in the view", c.w.Name(e.Member.ID))
		}
		return
	}
	if _, ok := p.View.Member(e.Member.ID); !ok {
		c.Violate(p, "events", "%s of %s, which is not in the view", e.Kind, c.w.Name(e.Member.ID))
	}
}

// Frame notes which reports a coordinator has.
func (c *Checker) Frame(p *world.Process, from peer.ID, kind wire.Kind) {
	switch kind {
	case wire.KindRegister:
		c.heard[reportKey{p.ID, from}] = c.w.Now
	case wire.KindExitDone:
		c.exits[reportKey{p.ID, from}] = true
	case wire.KindLeaveNotice:
		// It hosts nothing and never will again, and any node that has heard it may tell others.
		c.leaveNotices[from] = true
	}
}

// ViewText prints what nodes must agree on.
func ViewText(w *world.World, v *membership.View) string {
	s := "leader " + w.Name(v.Leader)
	for i := range v.Members {
		m := &v.Members[i]
		s += fmt.Sprintf(", %s %s %d", w.Name(m.ID), m.Status, m.UpNumber)
	}
	return s
}
