// Demand: when all is well instances live where the table has them, and answer; planned moves keep what their hand-off
// promises.

package hosting

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/sim/storm"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/partition"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

const (
	settleBound  = time.Minute             // beyond the takeover time: instances live where the table has them
	movesEach    = 3                       // planned moves of a hand-off
	drainsBehind = 500 * time.Millisecond  // a node drains at most so long after a hand-off to it was asked for
	movesEvery   = 20 * time.Millisecond   // how often a node sends meanwhile, of few
	fewSend      = 4                       // of more nodes each sends less often
	tailTime     = 1500 * time.Millisecond // how long it sends after the last of them
	pathMoved    = "market/prices"
	drawnWays    = 2 // hand-offs that a storm tries
)

var (
	tried  = 2                                        // hand-offs that a storm tries
	judged func(way cluster.Handoff, moves, sent int) // of tests; nil: none
)

// Demand implements storm.Instances.
func (c *cast) Demand() {
	if len(c.w.Running()) == 0 || !c.settled("when all is well") {
		return
	}
	if !c.answers() {
		return
	}
	c.press.demand()
	first := c.rng.IntN(len(storm.Handoffs))
	for i := range tried {
		c.moves(storm.Handoffs[(first+i)%len(storm.Handoffs)])
	}
}

// settled demands that every process that runs has opened its paths, and that the instances are those of the table.
func (c *cast) settled(when string) bool {
	bound := c.w.Takeover() + settleBound
	if !c.w.Until(bound, func() bool { return c.wrong() == "" }) {
		c.stage.Violate(nil, "instances", "%s, %v later: %s", when, bound, c.wrong())
		return false
	}
	return true
}

// wrong says which instance is not as the tables of all have it; empty: none.
func (c *cast) wrong() string {
	if !c.w.Converged() {
		return c.w.WhyNotConverged()
	}
	hosts := map[place]peer.ID{}
	for _, p := range c.w.Running() {
		if n := len(c.of[p].open); n < len(opened()) {
			return fmt.Sprintf("%s has opened %d paths", c.w.Name(p.ID), n) // it defines those to come
		}
		for _, o := range c.of[p].open {
			s, ok := o.p.Table()
			v := p.View
			if at := tableOf(v, o.path); at == nil || !ok || s.Epoch != at.Epoch || s.Version != at.Version {
				if at == nil && !ok {
					continue
				}
				return fmt.Sprintf("%s has not looked at the table of %q", c.w.Name(p.ID), o.path)
			}
			if s.Epoch == 0 || len(s.Changes) > 0 {
				return fmt.Sprintf("%q is not placed, or changes: epoch %d, %d changes", o.path, s.Epoch, len(s.Changes))
			}
			for slot, id := range s.Instances {
				if !id.IsZero() {
					hosts[place{o.path, slot}] = id
				}
			}
		}
	}
	return c.differs(hosts)
}

// differs says where instances live otherwise.
func (c *cast) differs(hosts map[place]peer.ID) string {
	for _, path := range opened() {
		for slot := range cluster.MaxInstances {
			at, live := place{path, slot}, 0
			for _, a := range c.live[at] {
				if a.h.p.Alive {
					live++
					if a.h.p.ID != hosts[at] {
						return fmt.Sprintf("%v lives on %s, and the table has it on %s", at, c.w.Name(a.h.p.ID), c.w.Name(hosts[at]))
					}
				}
			}
			if wants := hosts[at] != (peer.ID{}); wants && live != 1 || !wants && live > 0 {
				return fmt.Sprintf("%d instances of %v live, and the table has it on %s", live, at, c.w.Name(hosts[at]))
			}
		}
	}
	return ""
}

func tableOf(v *membership.View, path string) *cluster.Partition {
	for i := range v.Partitions {
		if v.Partitions[i].Path == path {
			return &v.Partitions[i]
		}
	}
	return nil
}

// answers demands that each process gets an answer of each instance, from where the table has it.
func (c *cast) answers() bool {
	open := 0
	var last string
	for _, p := range c.w.Running() {
		for _, o := range c.of[p].open {
			s, _ := o.p.Table()
			for slot, id := range s.Instances {
				if id.IsZero() {
					continue
				}
				open++
				c.of[p].asks(o, slot, func(by []byte, err error) bool {
					switch {
					case err != nil:
						last = fmt.Sprintf("%v: %v", place{o.path, slot}, err)
						return false
					case !bytes.Equal(by, answerOf(id)):
						c.stage.Violate(p, "instances", "%v is on %s, and another node answers", place{o.path, slot}, c.w.Name(id))
					}
					open--
					return true
				})
			}
		}
	}
	bound := c.w.Takeover() + settleBound
	if !c.w.Until(bound, func() bool { return open == 0 }) {
		c.stage.Violate(nil, "instances", "%d do not answer %v after all is well, as %s", open, bound, last)
		return false
	}
	return true
}

// asks asks a slot until the answer is good.
func (h *host) asks(o *open, slot int, good func(by []byte, err error) bool) {
	h.Begin(func() {
		for {
			nth := h.writes(o, slot, true, cluster.Handoff{})
			limited, end := h.Within(context.Background(), askTimeout)
			b, err := o.p.AskAt(limited, slot, payloadOf(nth))
			end()
			if good(b, err) {
				return
			}
			h.Wait(context.Background(), 200*time.Millisecond, nil)
		}
	})
}

// trial is a hand-off that is judged: what is sent from when on, and what was seen.
type trial struct {
	way   cluster.Handoff
	from  int // the first message
	full  int // what full was before it
	most  int // instances of a slot at a time
	newer map[place]*actor
	count map[place]uint64
	fault string
}

func (t *trial) begins(a *actor) {
	if t == nil || a.at.path != pathMoved {
		return
	}
	live := 0
	for _, o := range a.c.live[a.at] {
		if o.h.p.Alive {
			live++
		}
	}
	t.most = max(t.most, live)
	if was := t.newer[a.at]; was != nil && was.fence.Compare(a.fence) >= 0 {
		t.fault = fmt.Sprintf("the fence of %v goes from %v to %v", a.at, was.fence, a.fence)
	}
	t.newer[a.at] = a
}

// handles notes that an instance handles a message: none but the latest may where one at a time handles.
func (t *trial) handles(a *actor, m *message) {
	if t == nil || a.at.path != pathMoved {
		return
	}
	if n := t.newer[a.at]; n != nil && n != a && n.calls > 0 &&
		(t.way.Old != cluster.OldKeeps || t.way.New == cluster.NewBuffers) {
		t.fault = fmt.Sprintf("the old instance of %v handles message %d behind the new one", a.at, m.seq)
	}
	t.count[a.at] = a.count
}

// fails notes that a message was not accepted, where there must be a way to each instance.
func (t *trial) fails(to place, err error) {
	if t != nil && to.path == pathMoved && errors.Is(err, partition.ErrUnreachable) {
		t.fault = fmt.Sprintf("no way to %v: %v", to, err)
	}
}

func (t *trial) takesUp(a *actor) {
	if t == nil || a.at.path != pathMoved {
		return
	}
	if t.count[a.at] != a.count {
		t.fault = fmt.Sprintf("the state of %v is %d, and was %d", a.at, a.count, t.count[a.at])
	}
}

// moves has instances of a path handed over in one way while all send, and demands what that promises: the table of
// docs/partitions.md.
func (c *cast) moves(way cluster.Handoff) {
	hosts := c.w.Running()
	if len(hosts) < 2 || c.of[hosts[0]] == nil {
		return
	}
	d := cluster.PartitionDefinition{Path: pathMoved, Count: partition.Exactly(max(1, len(hosts)-1)), Handoff: way}
	if err := hosts[0].Command(membership.DefineCommand{Definition: d}); err != nil {
		c.stage.Violate(hosts[0], "instances", "%v is refused: %v", d, err)
		return
	}
	placed := func() bool {
		s := tableOf(hosts[0].View, pathMoved)
		return s != nil && s.InForce == way && s.Wanted == s.Has() && s.Count == d.Count && len(s.Changes) == 0
	}
	if !c.w.Until(settleBound, placed) {
		c.stage.Violate(hosts[0], "instances", "%v has not come about after %v", d, settleBound)
		return
	}
	if !c.settled(fmt.Sprintf("with %v", way)) {
		return
	}
	c.w.Advance(2 * time.Second) // what was sent before
	c.watch = &trial{way: way, from: len(c.sent), full: c.full(), newer: map[place]*actor{}, count: map[place]uint64{}}
	for at, list := range c.live { // into other maps: the order does not show
		for _, a := range list {
			if at.path == pathMoved && a.h.p.Alive {
				c.watch.newer[at], c.watch.count[at] = a, a.count
			}
		}
	}
	sending := true
	for _, p := range hosts {
		c.sendsOn(c.of[p], &sending)
	}
	done := 0
	for range movesEach {
		done += c.moveOne(way)
	}
	done += c.drainOne(way)
	c.w.Advance(tailTime)
	sending = false
	c.judge(done)
	c.watch = nil
}

// sendsOn sends to all slots of the path, now and then as an ask. All together send half of what an instance handles,
// which takes 3 ms a message: its mailbox may refuse what does not fit, and where a storm has drawn that only 64 bytes
// may be handed over, an instance moves when next to nothing waits for it.
func (c *cast) sendsOn(h *host, on *bool) {
	if !*on {
		return
	}
	every := movesEvery * time.Duration(max(fewSend, len(c.w.Hosts))) / fewSend
	for _, o := range h.open {
		if o.path == pathMoved {
			s, _ := o.p.Table()
			for slot := range s.Instances {
				h.sends(o, slot, c.rng.IntN(8) == 0)
			}
		}
	}
	h.p.Later(c.between(every/2, 2*every), func() { c.sendsOn(h, on) })
}

// moveOne moves an instance to the node without one, and returns how many were moved.
func (c *cast) moveOne(way cluster.Handoff) int {
	hosts := c.w.Running()
	s := tableOf(hosts[0].View, pathMoved)
	var to peer.ID
	for _, p := range hosts {
		if s.SlotOf(p.ID) < 0 && p.View.CountUp() > 1 {
			to = p.ID
		}
	}
	slot := c.rng.IntN(len(s.Instances))
	if to.IsZero() || s.Instances[slot].IsZero() {
		return 0
	}
	by := hosts[c.rng.IntN(len(hosts))]
	if err := by.Command(membership.MoveInstanceCommand{Path: pathMoved, Slot: slot, To: to}); err != nil {
		return 0
	}
	moved := func() bool {
		s := tableOf(by.View, pathMoved)
		return len(s.Changes) == 0 && s.Instances[slot] == to
	}
	if !c.w.Until(settleBound, moved) {
		c.stage.Violate(by, "instances", "slot %d has not moved by %v after %v", slot, way, settleBound)
		return 0
	}
	return 1
}

// drainOne has a node drain that has an instance, or to which one is on its way, until nothing of that lives there, and
// returns how many did. What is sent meanwhile finds its instance as in any other move.
func (c *cast) drainOne(way cluster.Handoff) int {
	hosts := c.w.Running()
	s := tableOf(hosts[0].View, pathMoved)
	at := slices.IndexFunc(hosts, func(p *world.Process) bool { return s.SlotOf(p.ID) < 0 })
	slot := c.rng.IntN(len(s.Instances))
	if at < 0 || s.Instances[slot].IsZero() {
		return 0
	}
	p := hosts[at]
	if c.rng.IntN(2) == 0 {
		move := membership.MoveInstanceCommand{Path: pathMoved, Slot: slot, To: p.ID}
		_ = hosts[0].Command(move) // if it is refused one drains that has nothing
		c.w.Advance(c.between(0, drainsBehind))
	} else {
		p = hosts[slices.IndexFunc(hosts, func(p *world.Process) bool { return p.ID == s.Instances[slot] })]
	}
	if c.stage.Drains(p, true) != nil {
		return 0 // somebody has to take what it has
	}
	gone := func() bool {
		for _, h := range c.w.Running() {
			if s := tableOf(h.View, pathMoved); len(s.Changes) > 0 || s.SlotOf(p.ID) >= 0 {
				return false
			}
			if _, known := c.of[h].ears().ShardAt(p.ID); known {
				return false
			}
		}
		return true
	}
	if !c.w.Until(settleBound, gone) {
		c.stage.Violate(p, "instances", "it drains, and has not given all away by %v after %v", way, settleBound)
	}
	_ = c.stage.Drains(p, false)
	return 1
}

// full is how many messages of partitions were reported to Config.Undelivered because there was no room for them where
// they came. The report is a count, and says of none which it was.
func (c *cast) full() (n int) {
	for _, why := range []route.Reason{route.MailboxFull, route.BudgetFull, route.TableFull, route.QueueFull} {
		n += int(c.w.Book.LateReports(why))
	}
	return n
}

// judge holds what became of the messages against the promises of a hand-off.
func (c *cast) judge(moves int) {
	t := c.watch
	open := func() (n int) {
		for i := t.from; i < len(c.sent); i++ {
			if m := &c.sent[i]; m.accepted && m.handled+m.back == 0 && !m.ask {
				n++
			}
		}
		return n
	}
	lost := open()
	for end := c.w.Now + settleBound; lost > c.full()-t.full && c.w.Now < end; lost = open() {
		c.w.Advance(tailTime) // and look then, not at each event: there are many
	}
	if lost > c.full()-t.full {
		c.stage.Violate(nil, "instances", "%v: %d of %d messages are lost in %d planned moves", t.way, lost,
			len(c.sent)-t.from, moves)
	}
	back := 0
	for i := t.from; i < len(c.sent); i++ {
		if m := &c.sent[i]; m.back > 0 && !m.ask {
			back++
		}
	}
	refuses := t.way.New != cluster.NewBuffers && (t.way.Old == cluster.OldDrops || t.way.Late == cluster.LateDrops)
	if back > 0 && !refuses {
		c.stage.Violate(nil, "instances", "%v: %d messages came back in %d planned moves", t.way, back, moves)
	}
	one := t.way.Old == cluster.OldDrops || t.way.New == cluster.NewBuffers
	if t.most > 1 && one {
		c.stage.Violate(nil, "instances", "%v: %d instances of a slot at a time", t.way, t.most)
	}
	if t.fault != "" {
		c.stage.Violate(nil, "instances", "%v: %s", t.way, t.fault)
	}
	if judged != nil {
		judged(t.way, moves, len(c.sent)-t.from)
	}
}
