// A small world for tests: machines stepped by hand, views published by hand, mail that may be lost, doubled and mixed,
// and a checker that sees all nodes.

package shard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/base/contract"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

const testBirth = 7_000_000

var orders = Settings{Name: "order", Shards: 30, Role: ""}

// A machine keeps the contract of all machines.
var _ contract.Machine[Command, Effects] = (*Machine)(nil)

type tester interface {
	require.TestingT
	contract.Tester
}

// world holds the truth about members; each node sees versions of it in order, at its own pace.
type world struct {
	unproven []peer.ID // were removed before, as every state says
	t        tester
	rng      *rand.Rand
	now      time.Duration
	nodes    []*testNode
	queue    []segment
	versions [][]membership.Member // published states, oldest first
	nextUp   uint32
	highest  map[string]route.Fence // per type and shard, the highest fence hosted under
	slowStop bool                   // runtimes confirm stops only when allowed to
	mails    map[wire.Kind]int
	traffic  *traffic // nil: no messages of users
	ordered  func(HostOrder)
	metadata []cluster.Metadata
	costs    func(s route.ShardID) strategy.Load // of the shards of orders; nil: nobody answers a Measure
	strain   strategy.NodeLoad                   // of each node
}

type testNode struct {
	w         *world
	id        peer.ID
	m         *Machine
	seen      int // versions published to it
	first     int // version it was admitted with
	dead      bool
	deaf      bool          // cut off: it lives, nobody hears it and it hears nobody
	until     time.Duration // when deaf: by then it has suspended itself
	drained   bool
	confirmed int
	member    bool
	left      bool
	hosted    map[string]route.Fence
	routes    map[string]RouteChange
	stops     []StoppedCommand
	lost      []StoppedCommand // abandoned, and the end of the handlers is not reported yet
	ending    map[string]bool  // likewise
	refused   []TypeRefused
	events    []Event
	answers   []MoveAnswer
	cut       map[peer.ID]bool  // mail to these is lost
	rests     map[string]string // what was taken up with shards
	untaken   []string
}

type segment struct {
	from, to peer.ID
	kind     wire.Kind
	body     []byte
}

func key(t route.TypeID, s route.ShardID) string { return fmt.Sprintf("%08x/%d", uint32(t), s) }

func newWorld(t tester) *world {
	return &world{t: t, rng: rand.New(rand.NewPCG(1, 2)), now: time.Second, highest: map[string]route.Fence{},
		mails: map[wire.Kind]int{}}
}

// start adds nodes that are all Up in one published state, as a cluster that has formed.
func startWorld(t tester, n int, roles ...string) *world {
	w := newWorld(t)
	for range n {
		w.join(roles...)
		w.publish()
		w.promote()
		w.publish()
	}
	return w
}

// balances makes every node look at the balance so often; negative: never, as in a new world.
func (w *world) balances(every time.Duration) {
	for _, n := range w.nodes {
		n.balances(every)
	}
}

// balances is the same of one node.
func (n *testNode) balances(every time.Duration) {
	n.m.cfg.RebalanceInterval = every
	n.replan()
}

// replan makes a node find again when its types are due: a test has changed how it is configured.
func (n *testNode) replan() {
	for range eachType(n.m) {
	}
	n.m.agenda.settle(func(t *typ) bool { return plan(n.m, t) })
}

func (w *world) state() []membership.Member {
	if len(w.versions) == 0 {
		return nil
	}
	return slices.Clone(w.versions[len(w.versions)-1])
}

func (w *world) commit(s []membership.Member) {
	slices.SortFunc(s, func(a, b membership.Member) int { return a.ID.Compare(b.ID) })
	w.versions = append(w.versions, s)
}

func (w *world) join(roles ...string) *testNode {
	n := &testNode{w: w, hosted: map[string]route.Fence{}, routes: map[string]RouteChange{}, cut: map[peer.ID]bool{},
		ending: map[string]bool{}, rests: map[string]string{}}
	i := len(w.nodes) + 1
	n.id = peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7000", i)), Inc: uint64(1000 + i)}
	cfg := Config{RebalanceInterval: -1, Moves: func(peer.ID) bool { return true },
		Costs: func(peer.ID) bool { return true }, Strains: func(peer.ID) bool { return true }}
	n.m = New(n.id, cfg, rand.New(rand.NewPCG(uint64(i), 9)))
	n.m.pace.guess = leastBytes // as if moves that hand over little were known: as many as MaxMoves begin at once
	w.nodes = append(w.nodes, n)
	status := membership.Joining
	w.commit(append(w.state(), membership.Member{ID: n.id, Status: status, Roles: roles}))
	n.first = len(w.versions) - 1
	n.seen = n.first
	return n
}

// set changes a member's status in the next version; a status of Removed takes it out.
func (w *world) set(id peer.ID, st membership.Status) {
	s := w.state()
	i := slices.IndexFunc(s, func(m membership.Member) bool { return m.ID == id })
	require.GreaterOrEqual(w.t, i, 0)
	if st == membership.Removed {
		s = slices.Delete(s, i, i+1)
	} else {
		s[i].Status = st
		if st == membership.Up {
			w.nextUp++
			s[i].UpNumber = w.nextUp
		}
	}
	w.commit(s)
}

// converged reports whether every member that counts has seen the newest version.
func (w *world) converged() bool {
	for _, mb := range w.state() {
		if mb.Status == membership.Down || mb.Status == membership.Exiting && w.node(mb.ID).dead {
			continue
		}
		if n := w.node(mb.ID); n.dead || n.deaf || n.seen < len(w.versions) {
			return false
		}
	}
	return true
}

// promote does what a leader does under convergence: one step of every member that is due.
func (w *world) promote() bool {
	if !w.converged() {
		return false
	}
	changed := false
	for _, mb := range w.state() {
		switch mb.Status {
		case membership.Joining:
			w.set(mb.ID, membership.Up)
		case membership.Leaving:
			w.set(mb.ID, membership.Exiting)
		case membership.Exiting, membership.Down:
			w.set(mb.ID, membership.Removed)
		default:
			continue
		}
		changed = true
	}
	return changed
}

func (w *world) node(id peer.ID) *testNode {
	for _, n := range w.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

// publish gives every node the newest version.
func (w *world) publish() {
	for _, n := range w.nodes {
		for n.behind() {
			n.see()
		}
	}
}

func (n *testNode) behind() bool { return !n.dead && !n.deaf && !n.left && n.seen < len(n.w.versions) }

// see gives a node the next version. A node learns that it was removed, and is over then.
func (n *testNode) see() {
	v := &membership.View{Self: n.id, Seq: uint64(n.seen + 1), ClusterID: 5, Birth: testBirth,
		Members: n.w.versions[n.seen], Metadata: n.w.metadata}
	n.seen++
	for _, o := range n.w.nodes {
		if o.dead || o.deaf {
			if _, in := v.Member(o.id); in {
				v.Unreachable.Add(o.id)
			}
		}
	}
	if _, in := v.SelfMember(); !in {
		n.left = true
	}
	n.do(ViewCommand{View: v, Lost: n.w.unproven})
}

func (n *testNode) do(c Command) {
	n.w.t.Helper()
	require.NoError(n.w.t, n.m.Do(n.w.now, c))
	n.collect()
}

// collect carries out the effects and checks them.
func (n *testNode) collect() {
	w := n.w
	w.t.Helper()
	var e Effects
	contract.Drain(w.t, n.m, &e, "out", "drained")
	n.checkAgenda()
	for _, h := range e.Hosts {
		n.order(h)
	}
	for _, r := range e.Routes {
		n.routes[key(r.Type, r.Shard)] = r
		if r.State == RouteLocal {
			require.Equal(w.t, r.Fence, n.hosted[key(r.Type, r.Shard)], "a local route without a hosted shard")
		}
	}
	if w.traffic != nil {
		w.traffic.collect(n, &e)
	}
	for _, k := range e.Marks {
		if w.traffic != nil {
			break
		}
		body := wire.AppendMarker(nil, wire.Marker{Type: uint32(k.Type), Shard: uint32(k.Shard), Term: k.Number.Term,
			Seq: k.Number.Seq})
		w.queue = append(w.queue, segment{n.id, k.To, wire.KindMarker, body})
	}
	for _, ml := range e.Mail {
		require.NotEqual(w.t, n.id, ml.To, "mail to itself")
		w.mails[ml.Kind]++
		if n.deaf {
			continue
		}
		w.queue = append(w.queue, segment{n.id, ml.To, ml.Kind, slices.Clone(ml.Body)})
	}
	for _, u := range e.Untaken {
		n.untaken = append(n.untaken, string(u.Left))
	}
	n.refused = append(n.refused, e.Refused...)
	n.events = append(n.events, e.Events...)
	n.answers = append(n.answers, e.Answers...)
	measure := slices.Clone(e.Measure)
	n.drained = n.drained || e.Drained
	n.member = n.member || e.Member
	if e.Confirmed {
		n.confirmed++
	}
	if e.Drained {
		require.Empty(w.t, n.hosted)
	}
	if d, ok := n.m.Next(); ok {
		require.Positive(w.t, d)
	}
	if w.traffic != nil {
		w.traffic.flush(n)
	}
	for _, t := range measure {
		n.measure(t)
	}
}

// measure reads the shards of a type that live here.
func (n *testNode) measure(t route.TypeID) {
	c := LoadsCommand{Type: t, Node: n.w.strain}
	for _, s := range all(orders) {
		if f, lives := n.hosted[key(t, s)]; lives && n.w.costs != nil {
			l := n.w.costs(s)
			total := n.w.now.Seconds() * float64(l.Rate)
			c.Readings = append(c.Readings, strategy.Reading{Shard: s, Fence: f, Entities: l.Entities, Handled: uint64(total),
				Queued: l.Queued})
		}
	}
	n.do(c)
}

func (n *testNode) order(h HostOrder) {
	w, k := n.w, key(h.Type, h.Shard)
	w.t.Helper()
	if w.ordered != nil {
		w.ordered(h)
	}
	switch {
	case h.Abandon:
		require.True(w.t, h.Stop)
		delete(n.hosted, k)
		n.lost = append(n.lost, StoppedCommand{h.Type, h.Shard, h.Fence})
		n.ending[k] = true
	case h.Stop:
		require.Equal(w.t, n.hosted[k], h.Fence, "a stop of what is not hosted")
		n.stops = append(n.stops, StoppedCommand{h.Type, h.Shard, h.Fence})
	default:
		require.False(w.t, n.ending[k], "%s hosts shard %s while a handler of it may run", n.id, k)
		_, again := n.hosted[k]
		require.False(w.t, again, "%s hosts shard %s twice", n.id, k)
		require.Positive(w.t, h.Fence.Compare(w.highest[k]), "fence %s of shard %s is not above %s", h.Fence, k, w.highest[k])
		for _, o := range w.nodes {
			if f, ok := o.hosted[k]; ok {
				require.Fail(w.t, "two owners", "shard %s lives at %s under %s and now at %s under %s", k, o.id, f, n.id, h.Fence)
			}
		}
		w.highest[k] = h.Fence
		n.hosted[k] = h.Fence
		if len(h.Left) > 0 {
			n.rests[k] += string(h.Left)
		}
	}
}

// confirm tells the machine that everything ordered to stop has stopped.
func (n *testNode) confirm() {
	stops, lost := n.stops, n.lost
	n.stops, n.lost = nil, nil
	for _, s := range lost {
		if delete(n.ending, key(s.Type, s.Shard)); !n.dead && !n.left {
			n.do(s)
		}
	}
	for _, s := range stops {
		if n.dead {
			return
		}
		delete(n.hosted, key(s.Type, s.Shard))
		if w := n.w; w.traffic != nil {
			w.traffic.stopped(n, s)
			continue
		}
		n.do(s)
	}
}

// crash ends a process: it hosts nothing any more.
func (n *testNode) crash() {
	n.dead = true
	n.hosted = map[string]route.Fence{}
	n.stops = nil
}

// silence cuts a node off. It goes on hosting until the takeover time is over: then it has suspended itself.
func (n *testNode) silence() {
	n.deaf = true
	n.until = n.w.now + DefaultTakeoverTime
}

// deliver takes segment i out of the queue and hands it over.
func (w *world) deliver(i int) {
	w.t.Helper()
	p := w.queue[i]
	w.queue = slices.Delete(w.queue, i, i+1)
	w.hand(p)
}

func (w *world) hand(p segment) {
	w.t.Helper()
	to, from := w.node(p.to), w.node(p.from)
	if to.dead || to.deaf || to.left || from.cut[p.to] {
		return
	}
	if p.kind == wire.KindMarker {
		k, err := wire.ParseMarker(p.body)
		require.NoError(w.t, err)
		to.do(MarkedCommand{route.TypeID(k.Type), route.ShardID(k.Shard), Number{k.Term, k.Seq}, p.from})
		return
	}
	require.NoError(w.t, to.m.Handle(w.now, w.now, p.from, p.kind, p.body))
	to.collect()
}

// flow delivers mail in order and confirms stops until nothing is under way.
func (w *world) flow() {
	w.t.Helper()
	for steps := 0; ; steps++ {
		require.Less(w.t, steps, 100_000, "mail without end")
		if !w.slowStop {
			for _, n := range w.nodes {
				n.confirm()
			}
		}
		if len(w.queue) == 0 {
			return
		}
		w.deliver(0)
	}
}

// pass lets time go by, step by step, with mail and deadlines as they come.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	end := w.now + d
	for {
		w.flow()
		next := end
		for _, n := range w.nodes {
			if at, ok := n.m.Next(); ok && !n.dead && !n.left {
				next = min(next, max(at, w.now))
			}
			if n.deaf && n.until > w.now {
				next = min(next, n.until)
			}
		}
		w.tickAt(next)
		if next >= end {
			w.flow()
			return
		}
	}
}

func (w *world) tickAt(at time.Duration) {
	w.t.Helper()
	w.now = at
	for _, n := range w.nodes {
		if n.deaf && w.now >= n.until {
			n.hosted = map[string]route.Fence{}
			n.dead = true
		}
	}
	for _, n := range w.nodes {
		if n.dead || n.left {
			continue
		}
		if d, ok := n.m.Next(); ok && d <= w.now {
			n.m.Tick(w.now)
			n.collect()
			d, ok := n.m.Next()
			require.True(w.t, !ok || d > w.now, "a deadline that Tick does not clear")
		}
	}
}

func (w *world) registerAll(s Settings) {
	for _, n := range w.nodes {
		n.do(RegisterCommand{Settings: s})
	}
	w.flow()
}

func (n *testNode) want(s Settings, shards ...route.ShardID) {
	n.do(WantCommand{s.ID(), shards})
}

func all(s Settings) []route.ShardID {
	list := make([]route.ShardID, s.Shards)
	for i := range list {
		list[i] = route.ShardID(i)
	}
	return list
}

func (n *testNode) route(s Settings, shard route.ShardID) RouteChange {
	return n.routes[key(s.ID(), shard)]
}

func (n *testNode) stats(s Settings) Stats {
	st, _ := n.m.Stats(s.ID())
	return st
}

// agree demands that every node that wants has a route to the node that hosts, under its fence.
func (w *world) agree(s Settings, shards ...route.ShardID) {
	w.t.Helper()
	for _, n := range w.nodes {
		if n.dead || n.left || n.m.types[s.ID()] == nil || n.m.types[s.ID()].region == nil ||
			n.m.types[s.ID()].region.refused != nil {
			continue
		}
		for _, sh := range shards {
			r := n.route(s, sh)
			require.NotEqual(w.t, RouteUnknown, r.State, "%s does not know shard %d", n.id, sh)
			require.Equal(w.t, r.Fence, w.node(r.Home).hosted[key(s.ID(), sh)], "shard %d at %s", sh, n.id)
		}
	}
}

func count(events []Event, k EventKind) int {
	n := 0
	for _, e := range events {
		if e.Kind == k {
			n++
		}
	}
	return n
}

var _ tester = (*testing.T)(nil)
