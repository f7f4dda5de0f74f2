// Every fault at every step of a move: each message of it lost, doubled or late, each participant dead, cut off, asleep
// or leaving, each connection broken or too slow for markers. Nothing is drawn.

package shard

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

var everyStep = flag.Bool("every-step", false, "try each fault at every step of a move, not at some")

// The nodes of a movePlay, by what they are in its move.
const (
	playOwner  = "owner"
	playNext   = "next"
	playBoss   = "coordinator"
	playSender = "sender"

	playNewcomer = "newcomer" // has never sent to the shard, and knows no home

	// No node but the coordinator: nobody else of these, in a second coordinator term, in which everybody counts as
	// notified. The newcomer may not host the type then.
	playLater = "nobody, later"
)

// movePlay is one move of a shard under traffic, step by step, with one fault.
type movePlay struct {
	w     *world
	x     *traffic
	typ   Settings
	shard route.ShardID
	nodes map[string]*testNode
	order string // what goes first: see step
	steps int
	sends int // messages that are still to be sent
	late  []segment
	wait  time.Duration // how late these come
	goes  bool          // the fault is none that may keep the move from coming about
}

// newMovePlay forms a cluster in which the shard lives at the owner, everybody has sent to it, and the move has begun.
// boss says which of the others coordinates, or that nobody else does, or playLater. Entities have states, or none.
func newMovePlay(t tester, boss, order string, states bool) *movePlay {
	p := &movePlay{w: startWorld(t, 5, "r"), typ: Settings{Name: "moves", Shards: 4, Role: "r"}, order: order,
		nodes: map[string]*testNode{}, sends: 12}
	w := p.w
	p.x = newTraffic(w, p.typ)
	p.x.states.on = states
	w.traffic = p.x
	if boss == playLater {
		w.join("other")
		w.publish()
		w.promote()
		w.publish()
	}
	w.registerAll(p.typ)
	for _, n := range w.nodes[:len(w.nodes)-1] {
		n.want(p.typ, all(p.typ)...)
	}
	w.pass(time.Second)
	if boss == playLater {
		boss = ""
		w.nodes[0].do(LeaveCommand{})
		for range 8 {
			w.heal1(p.typ)
		}
		require.True(t, w.nodes[0].left)
		w.nodes = w.nodes[1:]
	}
	old := w.nodes[:4]
	p.nodes[playNewcomer] = w.nodes[4]
	names := []string{playOwner, playNext, playSender}
	names = slices.DeleteFunc(names, func(n string) bool { return n == boss })
	p.nodes[playBoss] = w.nodes[0]
	if boss != "" {
		p.nodes[boss] = w.nodes[0]
	}
	for i, name := range names {
		p.nodes[name] = w.nodes[i+1]
	}
	p.shard = p.of(p.nodes[playOwner])
	for _, n := range old {
		p.x.send(n, p.shard)
	}
	w.flow()
	require.NoError(t, p.nodes[playBoss].m.Do(w.now, MoveCommand{p.typ.ID(), p.shard, p.nodes[playNext].id}))
	p.nodes[playBoss].collect()
	return p
}

// of returns a shard that lives at a node.
func (p *movePlay) of(n *testNode) route.ShardID {
	for _, s := range all(p.typ) {
		if _, ok := n.hosted[key(p.typ.ID(), s)]; ok {
			return s
		}
	}
	return route.NoShard
}

// step does one thing and reports whether there was anything to do. The orders: "control" before data, "data" before
// control, and "stop", in which a shard stops before its mailbox is worked off, so that the rest is handed over.
func (p *movePlay) step() bool {
	p.steps++
	if n := p.w.nodes[p.steps%4]; p.sends > 0 && n.well() {
		p.sends--
		p.x.send(n, p.shard)
	}
	for _, do := range map[string][]func() bool{
		"control": {p.mail, p.data, p.handle, p.stop},
		"data":    {p.data, p.handle, p.mail, p.stop},
		"stop":    {p.mail, p.stop, p.data, p.handle},
	}[p.order] {
		if do() {
			return true
		}
	}
	return p.sends > 0
}

func (p *movePlay) mail() bool {
	if len(p.w.queue) == 0 {
		return false
	}
	p.w.deliver(0)
	return true
}

func (p *movePlay) data() bool {
	list := p.x.busy()
	if len(list) > 0 {
		p.x.carry(list[0])
	}
	return len(list) > 0
}

func (p *movePlay) handle() bool {
	k := key(p.typ.ID(), p.shard)
	for _, n := range p.w.nodes {
		if n.well() && !n.m.confirm.held && len(at2(p.x.boxes, n)[k]) > 0 && n.hosted[k] != (route.Fence{}) {
			p.x.handle(n, k)
			return true
		}
	}
	return false
}

func (p *movePlay) stop() bool {
	for _, n := range p.w.nodes {
		if len(n.stops)+len(n.lost) > 0 {
			n.confirm()
			return true
		}
	}
	return false
}

// end lets everything come to rest, and demands that it does.
func (p *movePlay) end() {
	w := p.w
	for _, n := range w.nodes {
		if n.m.confirm.held && n.well() {
			w.pass(10 * time.Second)
			require.Positive(w.t, n.confirmed, "%s sleeps for ever", n.id)
			n.do(SuspendCommand{On: false})
		}
	}
	stalled := 4 * time.Second // more than MarkTime
	for range 45 {             // more than the takeover time, and the deadlines of what waits for it
		w.housekeep()
		w.publish()
		for w.promote() {
			w.publish()
		}
		p.x.pump()
		w.pass(time.Second)
		if stalled -= time.Second; stalled <= 0 {
			p.x.stalls = peer.ID{}
		}
		if p.wait -= time.Second; p.wait <= 0 {
			for _, l := range p.late {
				w.hand(l)
			}
			p.late = nil
		}
	}
	w.heal(p.typ)
	p.x.pump()
	p.x.settled()
	if done := count(p.nodes[playBoss].events, MoveDone); p.goes {
		require.Equal(w.t, 1, done, "the move has not come about")
		require.NotZero(w.t, p.nodes[playNext].hosted[key(p.typ.ID(), p.shard)])
	}
	for _, n := range w.nodes {
		if h := n.m.types[p.typ.ID()].region.hand; n.well() {
			require.Empty(w.t, h.out)
			require.Empty(w.t, h.kept)
		}
	}
}

// dies takes off the account what a process takes with it: what it sent, what is under way to it or from it, what lies
// in its mailbox or was handed over to it and is its alone.
func (p *movePlay) dies(n *testNode) {
	x := p.x
	for _, pair := range x.order {
		if pair.from == n.id || pair.to == n.id {
			for _, f := range x.wires[pair] {
				if f.mark == nil {
					x.lose([]letter{f.letter})
				}
			}
			x.wires[pair] = nil
		}
	}
	for k, seq := range at2(x.sent, n) {
		for i := 1; i <= seq; i++ {
			x.over[letter{n, k, i}] = true
		}
	}
	for _, box := range at2(x.boxes, n) {
		x.lose(box)
	}
	delete(x.boxes, n)
	h := n.m.types[p.typ.ID()].region.hand
	for _, s := range slices.Sorted(maps.Keys(h.kept)) {
		x.loseRest(h.kept[s].bytes)
	}
	for _, o := range h.out {
		x.loseRest(o.left)
	}
	for k := range n.hosted {
		x.states.broken[k] = true
	}
}

// moveFaults are all faults, by name. One that finds nothing to do there does nothing.
func moveFaults() map[string]func(*movePlay) {
	first := func(p *movePlay, do func(w *world, i int, s segment)) {
		w := p.w
		if i := slices.IndexFunc(w.queue, func(s segment) bool { return s.kind != wire.KindMarker }); i >= 0 {
			do(w, i, w.queue[i])
		}
	}
	list := map[string]func(*movePlay){
		"none": func(*movePlay) {},
		"lost": func(p *movePlay) {
			first(p, func(w *world, i int, _ segment) { w.queue = slices.Delete(w.queue, i, i+1) })
		},
		"doubled": func(p *movePlay) { first(p, func(w *world, _ int, s segment) { w.hand(s) }) },
		"old": func(p *movePlay) { // it comes again when all is over
			first(p, func(_ *world, _ int, s segment) { p.late, p.wait = append(p.late, s), 20*time.Second })
		},
	}
	for _, d := range []time.Duration{time.Second, 4 * time.Second, 30 * time.Second} {
		list[fmt.Sprint("late by ", d)] = func(p *movePlay) {
			first(p, func(w *world, i int, s segment) {
				w.queue = slices.Delete(w.queue, i, i+1)
				p.late, p.wait = append(p.late, s), d
			})
		}
	}
	list["newcomer sends"] = func(p *movePlay) { p.x.send(p.nodes[playNewcomer], p.shard) }
	for _, who := range []string{playOwner, playNext, playBoss, playSender} {
		crash := func(p *movePlay) {
			p.dies(p.nodes[who])
			p.nodes[who].crash()
		}
		list[who+" dies"] = crash
		list[who+" dies, with proof"] = func(p *movePlay) {
			crash(p)
			for _, n := range p.w.nodes {
				if n.well() {
					n.do(DeathCommand{p.nodes[who].id})
				}
			}
		}
		list[who+" is cut off"] = func(p *movePlay) {
			p.dies(p.nodes[who])
			p.nodes[who].silence()
		}
		list[who+" leaves"] = func(p *movePlay) { p.nodes[who].do(LeaveCommand{}) }
		list[who+" sleeps"] = func(p *movePlay) { p.nodes[who].do(SuspendCommand{On: true}) }
		list["data of the "+who+" stands still"] = func(p *movePlay) { p.x.stalls = p.nodes[who].id }
		list["connections of the "+who+" break"] = func(p *movePlay) {
			for _, pair := range slices.Clone(p.x.order) {
				if pair.from == p.nodes[who].id || pair.to == p.nodes[who].id {
					p.x.breaks(pair)
				}
			}
		}
	}
	list["another is lost"] = func(p *movePlay) {
		for _, n := range p.w.nodes {
			if n.well() && !slices.Contains(slices.Collect(maps.Values(p.nodes)), n) {
				p.dies(n)
				n.crash()
				p.w.set(n.id, membership.Down)
			}
		}
	}
	return list
}

// goesOn reports whether a move has to come about under a fault. Where control mail is lost, which the courier sees to
// that it is not, a region may hear too late that it is to mark, and the move is given up.
func goesOn(name string) bool {
	return slices.Contains([]string{"none", "doubled", "old", "late by 1s", "newcomer sends"}, name) ||
		strings.HasPrefix(name, "connections")
}

// TestMoveWithEveryFault: whatever happens to one message or one participant of a planned move, at whatever step, there
// is one owner, nothing is doubled or overtaken, nothing is lost but what a dead process had or a broken connection
// carried, and all of it comes to rest (SHD-9, SHD-12).
func TestMoveWithEveryFault(t *testing.T) {
	faults := moveFaults()
	runs, broken := 0, map[string]int{}
	for _, boss := range []string{"", playOwner, playNext, playSender, playLater} {
		for _, order := range []string{"control", "data", "stop", "control, states", "data, states", "stop, states"} {
			order, has, _ := strings.Cut(order, ", ")
			states, most := has != "", 0
			for p := newMovePlay(t, boss, order, states); p.step(); most++ {
			}
			for i, name := range slices.Sorted(maps.Keys(faults)) {
				stride := 7
				if testing.Short() {
					stride = 61
				} else if *everyStep || boss == "" && (order == "stop" || !strings.Contains(name, " ") && !states) {
					stride = 1
				}
				for at := (i + runs) % stride; at <= most; at += stride {
					runs++
					where := fmt.Sprintf("coordinator also %q, %s first, states %t, %s at step %d of %d", boss, order, states,
						name, at, most)
					if why := tryMove(boss, order, states, at, faults[name], goesOn(name)); why != "" {
						if broken[name]++; broken[name] == 1 {
							t.Errorf("%s: %s", where, why)
						}
					}
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(broken)) {
		t.Errorf("%s: %d runs", name, broken[name])
	}
	t.Logf("%d runs", runs)
}

// tryMove plays a move with a fault and returns what went wrong.
func tryMove(boss, order string, states bool, at int, fault func(*movePlay), goes bool) (why string) {
	c := &catcher{}
	defer func() {
		if r := recover(); r != nil && c.why == "" {
			panic(r)
		}
		why = c.why
	}()
	p := newMovePlay(c, boss, order, states)
	for p.steps < at && p.step() {
	}
	fault(p)
	p.goes = goes
	for p.step() {
	}
	p.end()
	return ""
}

// catcher is a tester that notes the first failure and ends the run.
type catcher struct{ why string }

func (c *catcher) Helper() {}

func (c *catcher) Errorf(format string, args ...any) {
	if c.why == "" {
		c.why = fmt.Sprintf(format, args...)
	}
}

func (c *catcher) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	c.FailNow()
}

func (c *catcher) FailNow() { panic("failed") }
