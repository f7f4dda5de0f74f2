// Tests of tenures over real sockets: entities of lost owners answer again, nothing has two owners, seats move.

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// electorate is nodes with tenures on the word of three seats. Their entities write under fences into one store.
type electorate struct {
	nodes   []*kith.Node
	regions map[*kith.Node]*kith.Region
	senders sync.WaitGroup

	mu     sync.Mutex
	fences map[string]kith.Fence // by entity, the highest
	late   []string              // writes that the store refused: by an owner behind the next one
}

func (e *electorate) Receive(c *kith.Context, _ []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.Fence.Compare(e.fences[c.ID]) < 0 {
		e.late = append(e.late, fmt.Sprintf("%s under %s, after %s", c.ID, c.Fence, e.fences[c.ID]))
	} else {
		e.fences[c.ID] = c.Fence
	}
	return c.Reply(nil)
}

func (*electorate) Stop(*kith.Context) {}

// tenured configures a node of it.
func tenured(cfg *kith.Config) {
	cfg.Sharding.TakeoverTime = 20 * time.Second // a coordinator of a young cluster waits for it, see failover.md
	cfg.Sharding.Tenure = kith.Tenure{Voters: 3, Grant: 5 * time.Second}
}

func newElectorate(t *testing.T, n int, more func(*kith.Config)) *electorate {
	e := &electorate{regions: map[*kith.Node]*kith.Region{}, fences: map[string]kith.Fence{}}
	e.nodes = cluster(t, n, func(_ int, cfg *kith.Config) {
		tenured(cfg)
		more(cfg)
	}, func(_ int, n *kith.Node) { e.register(t, n) })
	eventually(t, func() bool { return e.answers() }, "all entities answer everywhere")
	t.Cleanup(func() {
		require.Empty(t, e.late, "nothing has had two owners")
	})
	return e
}

func (e *electorate) register(t *testing.T, n *kith.Node) {
	r, err := n.Register(kith.EntityType{Name: "fenced", Mode: kith.Worker, Shards: 16,
		New: func(string, kith.Fence) kith.Handler { return e }})
	require.NoError(t, err)
	e.regions[n] = r
}

// answers reports whether each of the nodes gets answers of many entities.
func (e *electorate) answers() bool {
	for _, n := range e.nodes {
		for i := range 50 {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			_, err := e.regions[n].Ask(ctx, fmt.Sprint(i), nil)
			if cancel(); err != nil {
				return false
			}
		}
	}
	return true
}

// asks has nodes ask entities all the time, until the test is over.
func (e *electorate) asks(t *testing.T, nodes ...*kith.Node) {
	ctx, cancel := context.WithCancel(context.Background())
	for _, n := range nodes {
		r := e.regions[n]
		e.senders.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				one, done := context.WithTimeout(ctx, 100*time.Millisecond)
				if _, err := r.Ask(one, fmt.Sprint(i%50), nil); err != nil {
					<-one.Done() // not in a hot loop
				}
				done()
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		e.senders.Wait()
	})
}

func tenureOf(n *kith.Node) kith.TenureStats { return n.Stats().Suspension.Tenure }

// seated reports whether so many seats have holders, by the list of every node, and all of them are nodes that live.
func (e *electorate) seated(seats int) bool {
	for _, n := range e.nodes {
		held := 0
		for _, s := range tenureOf(n).Seats {
			if s.Holder == (kith.ID{}) {
				continue
			}
			if held++; !slices.ContainsFunc(e.nodes, func(o *kith.Node) bool { return o.ID() == s.Holder }) {
				return false
			}
		}
		if held != seats {
			return false
		}
	}
	return true
}

// holder returns a node that holds a seat, or none, and is not the oldest.
func (e *electorate) holder(t *testing.T, holds bool) *kith.Node {
	for _, n := range e.nodes[1:] {
		if holds == slices.ContainsFunc(tenureOf(n).Seats, func(s kith.TenureSeat) bool { return s.Holder == n.ID() }) {
			return n
		}
	}
	require.FailNow(t, "no such node")
	return nil
}

// ends takes a node out of those that live.
func (e *electorate) ends(n *kith.Node) {
	e.nodes = slices.DeleteFunc(e.nodes, func(o *kith.Node) bool { return o == n })
}

// TestTenures: while owners, holders of seats and the coordinator are lost, leave and join, all entities answer again,
// the seats go to those that live, and nothing has two owners. No resolver decides anything (SHD-4, AVL-5, MEM-10).
func TestTenures(t *testing.T) {
	t.Parallel()
	e := newElectorate(t, 5, func(*kith.Config) {})
	for _, n := range e.nodes {
		s := tenureOf(n)
		require.True(t, s.On)
		require.Len(t, s.Seats, 3)
		require.Contains(t, s.String(), "of 3 seats vouch for this node")
	}
	again := func(what string) {
		eventually(t, func() bool { return e.answers() }, "%s: all entities answer", what)
		eventually(t, func() bool { return e.seated(3) }, "%s: the seats are held by those that live", what)
	}
	lost := e.holder(t, true)
	e.asks(t, e.nodes...)
	e.ends(lost)
	closes(t, lost)
	again("an owner with a seat is lost")
	ended := uint64(0)
	for _, n := range e.nodes {
		ended += tenureOf(n).Ended
	}
	require.Positive(t, ended, "its end was proven")

	leaver := e.holder(t, true)
	e.ends(leaver)
	require.NoError(t, leaver.Leave(within(t)))
	again("an owner with a seat leaves")

	cfg := kith.Config{Seeds: []string{e.nodes[1].Addr().String()}}
	tenured(&cfg)
	joiner := start(t, logger(t), cfg)
	e.register(t, joiner)
	e.nodes = append(e.nodes, joiner)
	again("a node joins")
	require.True(t, tenureOf(joiner).Held)

	oldest := e.nodes[0]
	e.ends(oldest)
	closes(t, oldest)
	again("the coordinator is lost")
	for _, n := range e.nodes {
		require.NoError(t, n.Err())
	}
}

// TestCutOffOwnerHandlesNothing: an owner that is cut off from all others stops when its tenure has run out, and learns
// of its end when it is heard again; its entities answer elsewhere meanwhile. With nobody left of a quorum of the seats
// nothing is handled (AVL-5, MEM-10).
func TestCutOffOwnerHandlesNothing(t *testing.T) {
	t.Parallel()
	g := newPaths(t)
	e := newElectorate(t, 3, func(cfg *kith.Config) { cfg.Advertise, cfg.Listen = g.gate(t) })
	e.asks(t, e.nodes...)
	cut := e.nodes[2]
	rest := e.nodes[:2]
	g.set(true, rest, []*kith.Node{cut})
	g.set(true, []*kith.Node{cut}, rest)
	eventually(t, func() bool { return cut.Health().State == kith.StateSuspended }, "it handles nothing")
	require.Contains(t, cut.Health().Reason, "its tenure has run out")
	s := tenureOf(cut)
	require.False(t, s.Held)
	require.Contains(t, s.Why, "of 3 seats vouch for this node, 2 have to")
	_, err := e.regions[cut].Ask(within(t), "1", nil)
	require.ErrorIs(t, err, kith.ErrSuspended)
	e.ends(cut)
	eventually(t, func() bool { return e.answers() }, "what lived there answers elsewhere")
	g.set(false, rest, []*kith.Node{cut})
	g.set(false, []*kith.Node{cut}, rest)
	eventually(t, func() bool { return cut.Err() != nil }, "it learns of its end")

	last := e.nodes[0]
	require.NoError(t, last.Err())
	closes(t, e.nodes[1])
	eventually(t, func() bool { return last.Health().State == kith.StateSuspended }, "the last one handles nothing")
	require.Contains(t, last.Health().Reason, "its tenure has run out")
}

// TestRefound: two of three seats are lost at once. Nothing is proven and nothing handled, until a person says that
// both processes are dead: others get the seats, and all entities answer. No word is taken where none is needed
// (MEM-10).
func TestRefound(t *testing.T) {
	t.Parallel()
	e := newElectorate(t, 5, func(*kith.Config) {})
	require.ErrorIs(t, e.nodes[0].Refound(within(t)), kith.ErrNoRefound)
	e.asks(t, e.nodes...)
	var lost []*kith.Node
	for range 2 {
		n := e.holder(t, true)
		e.ends(n)
		lost = append(lost, n)
	}
	for _, n := range lost {
		closes(t, n)
	}
	for _, n := range e.nodes {
		eventually(t, func() bool { return n.Health().State == kith.StateSuspended }, "it handles nothing")
	}
	for _, n := range lost {
		require.NoError(t, e.nodes[1].Down(within(t), n.Addr().String()))
	}
	require.NoError(t, e.nodes[1].Refound(within(t)))
	eventually(t, func() bool { return e.seated(3) }, "the seats are held by those that live")
	eventually(t, func() bool { return e.answers() }, "all entities answer")
	require.ErrorIs(t, e.nodes[1].Refound(within(t)), kith.ErrNoRefound)
}

// TestTenuresAreAgreed: nodes without tenures, and with others, are refused by those that have them (JOIN-1).
func TestTenuresAreAgreed(t *testing.T) {
	t.Parallel()
	first := start(t, logger(t), kith.Config{Sharding: kith.Sharding{Tenure: kith.Tenure{Voters: 3}}})
	require.NoError(t, first.Ready(within(t)))
	for _, other := range []kith.Tenure{{}, {Voters: 5}, {Voters: 3, Grant: time.Second}, {Voters: 3, Role: "voter"}} {
		n := start(t, logger(t), kith.Config{Seeds: []string{first.Addr().String()}, Sharding: kith.Sharding{Tenure: other}})
		eventually(t, func() bool { return n.Err() != nil }, "it is refused")
		require.ErrorContains(t, n.Err(), "kith.takeover-time")
	}
	require.NoError(t, first.Err())
}
