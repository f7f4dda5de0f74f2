// Tests of hand-offs on real nodes, under traffic.

package partition

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	table "github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/internal/runtime/footing"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// moves moves the instance of slot 0 round the nodes under traffic of two senders, and returns what was accepted.
func (o *opened) moves(t *testing.T, times int) int {
	t.Helper()
	end := o.send([]int{0, 1}, func(p *Partition, b []byte) error { return p.TellAt(0, b) })
	for range times {
		at := o.host(o.parts[2], 0)
		require.NoError(t, o.parts[2].Move(within(t), 0, o.nodes[(at+1)%len(o.nodes)].ID()))
	}
	return end()
}

// Every accepted combination of options keeps its promise in planned moves (PRT-4).
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		name     string
		handoff  Handoff
		order    bool // kept
		apart    bool // one instance at a time
		nothing  bool // is refused
		stateful bool
	}{
		{"2a 3a 4a", Stateless, false, false, true, false},
		{"2b 3a 4a", Handoff{Old: cluster.OldForwards}, false, false, true, false},
		{"2c 3a 4a", Handoff{Old: cluster.OldDrops}, false, true, false, false},
		{"2a 3a 4b", Handoff{Late: cluster.LateDrops}, false, false, false, false},
		{"2c 3a 4b", Lossy, false, true, false, false},
		{"2b 3b 4a", Ordered, true, true, true, true},
		{"2a 3b 4a", Handoff{New: cluster.NewBuffers}, true, true, true, true},
		{"2c 3b 4a", Handoff{Old: cluster.OldDrops, New: cluster.NewBuffers}, true, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := opensWith(t, nil, 3, Config{Path: "a/b", Instances: Exactly(1), Handoff: c.handoff})
			sent := o.moves(t, 6)
			o.b.same(t, sent)
			o.b.mu.Lock()
			defer o.b.mu.Unlock()
			t.Logf("sent %d, came back %d, out of order %d, instances at a time %d", sent, len(o.b.back), o.b.order, o.b.most)
			require.Greater(t, len(o.b.got), 0)
			if c.order {
				require.Zero(t, o.b.order)
			}
			if c.apart {
				require.Equal(t, 1, o.b.most)
			}
			require.LessOrEqual(t, o.b.most, 2)
			if c.nothing {
				require.Empty(t, o.b.back)
			}
			for _, err := range o.b.back {
				require.True(t, next(err), err)
			}
			if c.stateful {
				require.GreaterOrEqual(t, len(o.b.states), 6)
				require.IsNonDecreasing(t, o.b.states)
			}
			for i := range len(o.b.fences) - 1 {
				require.Negative(t, o.b.fences[i].Compare(o.b.fences[i+1]))
			}
		})
	}
}

// What is sent to the instance of a node that drains finds it until it has been handed over, and the shards by which it
// comes go behind that: of no hand-off that refuses nothing anything comes back, and of 2c one instance lives at a
// time. After the drain nothing lives there (PRT-4).
func TestDrainHandsOverFirst(t *testing.T) {
	for _, h := range []Handoff{Stateless, {Old: cluster.OldForwards}, {Old: cluster.OldDrops}} {
		t.Run(h.String(), func(t *testing.T) {
			t.Parallel()
			o := opensWith(t, nil, 3, Config{Path: "a/b", Instances: Exactly(1), Handoff: h})
			var unreachable atomic.Int32
			end := o.send([]int{0, 1}, func(p *Partition, b []byte) error {
				err := p.TellAt(0, b)
				if errors.Is(err, ErrUnreachable) {
					unreachable.Add(1)
				}
				return err
			})
			from := o.host(o.parts[2], 0)
			began := time.Now()
			require.NoError(t, o.nodes[from].Drain(within(t)))
			t.Logf("it took %v", time.Since(began))
			s, _ := o.parts[from].Table()
			require.Negative(t, s.SlotOf(o.nodes[from].ID()))
			o.b.same(t, end())
			require.Zero(t, unreachable.Load())
			o.b.mu.Lock()
			defer o.b.mu.Unlock()
			if h.Old == cluster.OldDrops {
				require.Equal(t, 1, o.b.most)
			} else {
				require.Empty(t, o.b.back)
			}
		})
	}
}

// A request to make an instance is refused by a node that it does not name, which has got the shard since by which it
// came (PRT-4).
func TestRequestNamesItsNode(t *testing.T) {
	o := opensWith(t, nil, 2, Config{Path: "a/b", Instances: Exactly(1), Handoff: Lossy})
	p := o.parts[0]
	s, _ := p.Table()
	at := o.host(p, 0)
	f := frame{kind: isInit, at: stamp{s.Epoch + 1, s.Writer}, from: o.nodes[at].ID()}
	ask := func(meant []byte) error {
		id, ok := p.hub.ear(o.nodes[1-at].ID(), 0, p.path)
		require.True(t, ok)
		_, err := p.hub.pool.Ask(within(t), appendFrame(nil, &f), id, meant)
		return err
	}
	require.ErrorIs(t, ask(peer.AppendID(nil, o.nodes[at].ID())), ErrMoved)
	require.ErrorIs(t, ask([]byte{1}), ErrMoved)
	require.Zero(t, o.parts[1-at].Stats().Instances)
	require.NoError(t, ask(peer.AppendID(nil, o.nodes[1-at].ID())))
	require.NoError(t, ask(nil), "as an earlier build asks")
	require.Equal(t, 1, o.parts[1-at].Stats().Instances)
}

// holding is a handler with calls that end when it is let go.
type holding struct{ began, goes chan struct{} }

func (h *holding) Receive(*kith.Context, []byte) error {
	h.began <- struct{}{}
	<-h.goes
	return nil
}

func (h *holding) Stop(*kith.Context) {}

// The old node of 2b asks the new one when the call has ended that its own instance is in: one handles at a time
// (PRT-4).
func TestCallEndsFirst(t *testing.T) {
	h := &holding{make(chan struct{}, 1), make(chan struct{})}
	var made atomic.Int32
	o := opensWith(t, nil, 2, Config{Path: "a/b", Instances: Exactly(1), Handoff: Handoff{Old: cluster.OldForwards},
		New: func(int, kith.Fence) kith.Handler { made.Add(1); return h }})
	from := o.host(o.parts[0], 0)
	old, to := o.parts[from], o.nodes[1-from]
	require.NoError(t, old.TellAt(0, []byte("slow")))
	<-h.began
	moved := make(chan error, 1)
	go func() { moved <- old.Move(within(t), 0, to.ID()) }()
	require.Eventually(t, func() bool {
		old.tasks.mu.Lock()
		defer old.tasks.mu.Unlock()
		return old.tasks.busy[task{asks, 0}]
	}, 2*time.Minute, time.Millisecond)
	stale := appendFrame(nil, &frame{kind: isInit, from: old.hub.self})
	for range 20 { // a request that the task had sent would have come before these
		id, ok := old.hub.ear(to.ID(), 0, old.path)
		require.True(t, ok)
		_, err := old.hub.pool.Ask(context.Background(), stale, id, nil)
		require.ErrorIs(t, err, ErrMoved)
	}
	require.EqualValues(t, 1, made.Load(), "the new node has made its instance while the old one handles")
	close(h.goes)
	require.NoError(t, <-moved)
	require.EqualValues(t, 2, made.Load())
}

// TestBeginIsTriedAgain: an instance that could not begin, since its slot is being begun or its room has not ended, is
// forgotten: it is begun anew, and does not wait for a message (PRT-4).
func TestBeginIsTriedAgain(t *testing.T) {
	o := opensWith(t, nil, 1, Config{Path: "a/b", Instances: Exactly(1), Handoff: Stateless})
	p := o.parts[0]
	require.Eventually(t, func() bool { return p.held.lives(0) != nil }, 2*time.Minute, time.Millisecond)
	i, r := p.held.lives(0), p.row.Load()
	goes := make(chan struct{})
	require.Eventually(t, func() bool { // the one that began it may not be through
		return p.tasks.start(task{begins, 0}, func() { <-goes })
	}, 2*time.Minute, time.Millisecond)
	i.stop(&kith.Context{}, true)
	p.carryOut(context.Background(), r, duty{act: begins})
	close(goes)
	require.Eventually(t, func() bool {
		o.b.mu.Lock()
		defer o.b.mu.Unlock()
		return o.b.alive[0] == 1
	}, 2*time.Minute, time.Millisecond)
}

// parting is an instance that notes at its end whether its node still has it.
type parting struct{ ends func() }

func (p *parting) Receive(c *kith.Context, _ []byte) error { return c.Reply(nil) }
func (p *parting) Stop(*kith.Context)                      { p.ends() }

// An instance that ends is here until it has: else the next message, or the hub, makes another one while it is still in
// a call, as in storms 13100004054 and 13100004921, where the node of the instance left, and nobody could take it. So
// it is where the hub ends it without a message, since there is no room for one (PRT-4).
func TestInstanceIsHereUntilItsEnd(t *testing.T) {
	had := make(chan bool, 8)
	var of atomic.Pointer[Partition]
	h := &parting{func() { had <- of.Load().held.lives(0) != nil }}
	made := func(int, kith.Fence) kith.Handler { return h }
	o := opensWith(t, nil, 1, Config{Path: "a/b", Instances: Exactly(1), Handoff: Stateless, New: made})
	of.Store(o.parts[0])
	_, err := o.parts[0].AskAt(within(t), 0, []byte("m"))
	require.NoError(t, err)
	require.NoError(t, o.nodes[0].Leave(within(t)))
	require.True(t, <-had, "when its node leaves")

	n := &patient{clock{now: time.Unix(0, 0)}}
	p := &Partition{path: "a", hub: &hub{node: n, self: node(1), pool: &crowded{n: n, until: n.now.Add(time.Hour)}},
		cfg: Config{New: made}}
	p.tasks = tasks{on: n, busy: map[task]bool{}}
	i := newInstance(p, 0, stamp{1, 1}, stamp{1, 1}, 1)
	p.held.here = map[int]*instance{0: i}
	require.NoError(t, i.begin())
	of.Store(p)
	p.end(0)
	require.True(t, <-had, "when its hub ends it")
	require.Nil(t, p.held.lives(0))
}

// A node that leaves with an instance that no other could take does not make it anew under the same fence: the shards
// by which it would end go, or have gone (PRT-4).
func TestLeaverMakesNoneAnew(t *testing.T) {
	o := opensWith(t, nil, 1, Config{Path: "a/b", Instances: Exactly(1), Handoff: Stateless})
	p := o.parts[0]
	require.Eventually(t, func() bool { return p.held.lives(0) != nil }, 2*time.Minute, time.Millisecond)
	p.hub.left.Store(true)
	p.held.lives(0).stop(&kith.Context{}, true)
	for range 3 { // looks: each begins with a row of its own, behind what the one before did
		was := p.row.Load()
		p.hub.ping()
		require.Eventually(t, func() bool { return p.row.Load() != was }, 2*time.Minute, time.Millisecond)
	}
	require.Nil(t, p.held.lives(0))
}

// patient is a node on which waiting takes no time.
type patient struct{ clock }

func (p *patient) Begin(f func()) { f() }
func (p *patient) Err() error     { return nil }

func (p *patient) Wait(_ context.Context, d time.Duration, _ <-chan struct{}) bool {
	p.now = p.now.Add(d)
	return true
}

// crowded is a lane that is full until a time.
type crowded struct {
	heard
	n     *patient
	until time.Time
}

func (l *crowded) ShardAt(kith.ID) (route.ShardID, bool) { return 0, true }

func (l *crowded) Tell(headers []byte, id string, payload []byte) error {
	if l.n.now.Before(l.until) {
		return fmt.Errorf("to a node: %w", route.ErrLinkFull)
	}
	return l.heard.Tell(headers, id, payload)
}

// An old node sends on what all senders send to it, and the link to the new one may be full: it waits, ten seconds at
// most, for a planned move refuses nothing. Found by storm 2014 (PRT-4).
func TestSendingOnWaitsForRoom(t *testing.T) {
	for _, c := range []struct {
		full    time.Duration
		refused int
	}{{time.Second, 0}, {9 * time.Second, 0}, {11 * time.Second, 1}} {
		n := &patient{clock{now: time.Unix(0, 0)}}
		l := &crowded{n: n, until: n.now.Add(c.full)}
		b := newBook()
		p := &Partition{path: "a", hub: &hub{node: n, self: node(1), began: n.now, pool: l}, cfg: Config{Refused: b.refused}}
		p.hub.open = map[string]*Partition{"a": p}
		p.held.known.asked = map[int]stamp{}
		s := placed(Handoff{Old: cluster.OldForwards}, node(2), false)
		p.row.Store(&row{State: *s, ok: true})
		require.NoError(t, p.receive(&kith.Context{}, 0, &frame{kind: isMessage, at: stampOf(s), from: node(1)}, []byte("m")))
		require.Len(t, b.back, c.refused, "%v", c.full)
		require.Len(t, l.said, 1-c.refused)
		require.Equal(t, uint64(1-c.refused), p.count.forwarded.Load())
		require.Zero(t, p.waiting.Load())
	}
}

// old is a door that shows a table from long ago.
type old struct {
	door
	s State
}

func (o old) Table() []State { return []State{o.s} }

// A message that comes back to the old node by a later table than its own waits until that has come, and is looked at
// anew then: the new one has heard that the hand-off was given up, and the two would send it to and fro. One that comes
// for the first time is sent on: the hand-off may be pending in that table too. Found by storm 12800005625 (PRT-4).
func TestWhatComesBackWaitsForTheTable(t *testing.T) {
	for hops, waits := range map[uint8]time.Duration{0: 0, 2: waitTime} {
		n := &patient{clock{now: time.Unix(0, 0)}}
		l := &crowded{n: n}
		b := newBook()
		s := placed(Stateless, node(2), false)
		p := &Partition{path: "a", hub: &hub{node: n, self: node(1), began: n.now, pool: l, door: old{s: *s}},
			cfg: Config{Refused: b.refused}}
		p.hub.open = map[string]*Partition{"a": p}
		p.held.known.asked, p.held.known.over = map[int]stamp{}, map[int]stamp{0: changeOf(&s.Changes[0])}
		p.row.Store(&row{State: *s, ok: true})
		f := frame{kind: isMessage, hops: hops, at: stamp{6, 1}, from: node(3)}
		require.NoError(t, p.receive(&kith.Context{}, 0, &f, []byte("m")))
		require.Empty(t, b.back)
		require.Len(t, l.said, 1)
		require.Equal(t, waits, n.now.Sub(time.Unix(0, 0)), "%d", hops)
	}
}

// apart is a node in a cluster that does not converge.
type apart struct {
	patient
	v kith.View
}

func (a *apart) View() *kith.View                      { return &a.v }
func (*apart) Converged(context.Context) (bool, error) { return false, nil }

// A node that leaves waits longer for all to have heard of it where all can be reached, and does not wait for those who
// cannot (PRT-4).
func TestLeaverWaitsUntilAllHaveSeen(t *testing.T) {
	for _, c := range []struct {
		away peer.Set
		want time.Duration
	}{{nil, seenInTheEnd}, {peer.SetOf(node(2)), seenByAll}} {
		n := &apart{patient: patient{clock{now: time.Unix(0, 0)}}, v: kith.View{Unreachable: c.away}}
		h := &hub{node: n, began: n.now}
		h.settle(t.Context(), seenInTheEnd)
		require.Equal(t, c.want, h.uptime())
	}
}

// TestSenderLooksAtTheTable: the shard by which messages come to a node that drains goes when all members have seen the
// table that has the instance elsewhere. Where the hub of a sender has not looked at it yet the sender does. Found by
// storm 12800001531 (PRT-4).
func TestSenderLooksAtTheTable(t *testing.T) {
	o := opensWith(t, nil, 2, Config{Path: "a/b", Instances: Exactly(1), Handoff: Lossy})
	p := o.parts[0]
	require.NoError(t, p.Move(within(t), 0, o.nodes[1-o.host(p, 0)].ID()))
	old := *p.row.Load()
	old.Epoch--
	old.Instances = []kith.ID{node(9)}
	p.row.Store(&old)
	require.NoError(t, p.TellAt(0, numbered(0, 1)))
	require.Eventually(t, func() bool { got, _ := o.b.sums(); return got == 1 }, time.Minute, time.Millisecond)
}

// narrow is a lane that has a shard on each node, and knows of those on some.
type narrow struct {
	footing.Lane
	knows map[kith.ID]bool
	to    kith.ID // of the last message
	at    stamp
}

func (l *narrow) ShardAt(id kith.ID) (route.ShardID, bool) {
	return route.ShardID(id.Inc), l.knows[id]
}

func (l *narrow) Tell(headers []byte, id string, _ []byte) error {
	shard, _, _, _ := parseEar(id)
	f, err := parseFrame(headers)
	l.to, l.at = node(byte(shard)), f.at
	return err
}

// A hand-off is complete when its two nodes have done it. Other senders may not have heard yet which shards are on the
// new node: as long as that is so they send by the table before, and the old node deals with it as with all that comes
// late. Found by storm 14400004089 (PRT-4).
func TestSenderGoesByTheTableBefore(t *testing.T) {
	at := func(epoch uint64, host kith.ID) *State {
		return &State{PartitionDefinition: Definition{Path: "a"}, Epoch: epoch, Writer: 1, Instances: []kith.ID{host}}
	}
	lossy := at(6, node(2))
	lossy.InForce = Lossy
	for _, c := range []struct {
		what   string
		tables []*State
		knows  []byte
		to     byte
		at     uint64
	}{
		{"the way is known", []*State{placed(Stateless, node(2), true)}, []byte{1, 2}, 2, 5},
		{"it is complete", []*State{placed(Stateless, node(2), false), placed(Stateless, node(2), true)}, []byte{1}, 1, 5},
		{"it is in the table", []*State{at(5, node(1)), at(6, node(2))}, []byte{1}, 1, 5},
		{"both, one after the other", []*State{placed(Stateless, node(2), true), at(6, node(2))}, []byte{1}, 1, 4},
		{"other slots change", []*State{at(5, node(1)), at(6, node(2)), at(7, node(2))}, []byte{1}, 1, 5},
		{"it went on", []*State{at(5, node(1)), at(6, node(2)), at(7, node(4))}, []byte{1}, 1, 5},
		{"the way was known meanwhile", []*State{at(5, node(1)), at(6, node(2)), at(7, node(4))}, []byte{1, 2}, 2, 6},
		{"it is back", []*State{at(5, node(1)), at(6, node(2)), at(7, node(1))}, []byte{1}, 1, 7},
		{"no way is known to either", []*State{at(5, node(1)), at(6, node(2))}, []byte{4}, 0, 0},
		{"it ended meanwhile", []*State{at(5, node(1)), at(6, kith.ID{}), at(7, node(4))}, []byte{1}, 0, 0},
		{"another kind of hand-off", []*State{at(5, node(1)), lossy}, []byte{1}, 0, 0},
	} {
		n, l := &patient{clock{now: time.Unix(0, 0)}}, &narrow{knows: map[kith.ID]bool{}}
		for _, k := range c.knows {
			l.knows[node(k)] = true
		}
		p := &Partition{path: "a", hub: &hub{node: n, self: node(3), began: n.now, pool: l}}
		p.held.known.seen = map[int]seen{}
		p.row.Store(&row{State: *at(4, node(1)), ok: true})
		for _, s := range c.tables {
			p.hub.door = old{s: *s}
			p.step(t.Context(), table.Table{*s})
		}
		err := p.TellAt(0, []byte("m"))
		if c.to == 0 {
			require.ErrorIs(t, err, ErrUnreachable, c.what)
			continue
		}
		require.NoError(t, err, c.what)
		require.Equal(t, node(c.to), l.to, c.what)
		require.Equal(t, stamp{c.at, 1}, l.at, c.what)
	}
}
