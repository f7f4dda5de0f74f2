// Tests of what becomes of states when their node leaves, and of verbs on a node that ends while they wait.

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/fd"
)

// lostStates are the entities with states that were reported as lost.
type lostStates struct {
	mu  sync.Mutex
	why map[string]error
	n   int
}

func (l *lostStates) tell(in kith.Incident) {
	if in.Kind == kith.StateLost {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.why[in.ID], l.n = in.Err, l.n+1
	}
}

func (l *lostStates) told() (why map[string]error, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why, l.n
}

// tallies starts nodes with a type of entities that count, and has each of so many count one message.
func tallies(t *testing.T, n, entities int, made func(string) kith.Handler, edit func(i int, cfg *kith.Config)) (
	[]*kith.Node, []*kith.Region, *lostStates) {
	lost := &lostStates{why: map[string]error{}}
	var regions []*kith.Region
	nodes := cluster(t, n, func(i int, cfg *kith.Config) {
		cfg.Incident, cfg.Sharding.RebalanceInterval = lost.tell, 50*time.Millisecond
		if edit != nil {
			edit(i, cfg)
		}
	}, func(_ int, n *kith.Node) {
		r, err := n.Register(kith.EntityType{Name: "tally", Shards: 16, New: func(id string, _ kith.Fence) kith.Handler {
			if made != nil {
				return made(id)
			}
			return &tally{}
		}})
		require.NoError(t, err)
		regions = append(regions, r)
	})
	counts(t, regions[0], entities)
	for _, n := range nodes {
		eventually(t, func() bool { return hosted(n) >= 3 }, "everybody has a share")
	}
	return nodes, regions, lost
}

// counts returns what the entities have counted.
func counts(t *testing.T, r *kith.Region, entities int) (list []string) {
	for i := range entities {
		b, err := r.Ask(within(t), fmt.Sprint(i), nil)
		require.NoError(t, err)
		list = append(list, string(b))
	}
	return list
}

// heldDetector stands still, and the control goroutine with it, while there is a channel to wait for.
type heldDetector struct {
	fd.Detector
	hold  *atomic.Pointer[chan struct{}]
	holds *atomic.Bool
}

// Heartbeat implements fd.Detector.
func (d heldDetector) Heartbeat(at time.Duration) {
	if c := d.hold.Load(); c != nil {
		d.holds.Store(true)
		<-*c
	}
	d.Detector.Heartbeat(at)
}

// A node leaves, or drains, while another one stands still, though not for so long that anybody would take it for lost:
// moves are given up meanwhile, tried again, and every state moves (SHD-9).
func TestLeaveBesideAPause(t *testing.T) {
	t.Parallel()
	for name, gives := range map[string]func(context.Context, *kith.Node) error{
		"leave": func(ctx context.Context, n *kith.Node) error { return n.Leave(ctx) },
		"drain": func(ctx context.Context, n *kith.Node) error { return n.Drain(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			const entities = 60
			var hold atomic.Pointer[chan struct{}]
			var holds atomic.Bool
			nodes, regions, lost := tallies(t, 3, entities, nil, func(i int, cfg *kith.Config) {
				cfg.Membership, cfg.Sharding.MarkTime = quick(), 50*time.Millisecond
				if i == 2 {
					cfg.Membership.Detector = func(s fd.Settings) fd.Detector {
						return heldDetector{fd.PhiAccrual(s), &hold, &holds}
					}
				}
			})
			counts(t, regions[2], entities) // it knows the homes: its markers are waited for
			before := counts(t, regions[0], entities)
			c := make(chan struct{})
			hold.Store(&c)
			eventually(t, holds.Load, "it stands still")
			left := make(chan error, 1)
			go func() { left <- gives(within(t), nodes[1]) }()
			eventually(t, func() bool { return nodes[0].Stats().Sharding.Moves.Aborted > 0 }, "a move is given up")
			hold.Store(nil)
			close(c)
			require.NoError(t, <-left)
			for i, n := range counts(t, regions[0], entities) {
				var was, is int
				_, _ = fmt.Sscan(before[i], &was)
				_, _ = fmt.Sscan(n, &is)
				require.Equal(t, was+1, is, "entity %d", i)
			}
			_, n := lost.told()
			require.Zero(t, n)
		})
	}
}

// brokenTally does not say its state.
type brokenTally struct{ tally }

// HandOver implements kith.Stateful.
func (h *brokenTally) HandOver(*kith.Context) ([]byte, error) { panic("no state") }

// States that nobody can be given before a leave is over, or that their entities do not say, are reported by name, and
// the leave counts them (SHD-9, MEM-8).
func TestLeaveTellsWhatItLoses(t *testing.T) {
	t.Parallel()
	const entities = 60
	for name, play := range map[string]struct {
		nodes  int
		broken string
		timely bool
		loses  int
		begins func(nodes []*kith.Node)
		why    error
	}{
		"alone": {nodes: 1, timely: true, loses: entities, why: kith.ErrStateNotMoved},
		"another is dead, and nobody decides": {nodes: 3, why: kith.ErrStateNotMoved, begins: func(nodes []*kith.Node) {
			_ = nodes[2].Close()
		}},
		"one does not say its state": {nodes: 2, broken: "7", timely: true, loses: 1, why: kith.ErrHandOverFailed},
	} {
		t.Run(name, func(t *testing.T) {
			nodes, regions, lost := tallies(t, play.nodes, entities, func(id string) kith.Handler {
				if id == play.broken {
					return &brokenTally{}
				}
				return &tally{}
			}, func(_ int, cfg *kith.Config) {
				if !play.timely {
					cfg.LeaveTimeout = 300 * time.Millisecond
					cfg.Phases = []kith.Phase{{Name: kith.PhaseClusterExiting, Timeout: 100 * time.Millisecond},
						{Name: kith.PhaseClusterExitingDone, Timeout: 100 * time.Millisecond}}
				}
			})
			leaver := nodes[len(nodes)/2]
			if play.broken != "" {
				for i, r := range regions {
					rep, err := r.Report(within(t))
					require.NoError(t, err)
					for _, n := range rep.Nodes {
						for _, s := range n.Shards {
							if s.Shard == r.Shard(play.broken) && n.Node == nodes[i].ID() {
								leaver = nodes[i]
							}
						}
					}
				}
			}
			if play.begins != nil {
				play.begins(nodes)
				awaitView(t, leaver, func(v *kith.View) bool { return len(v.Unreachable) > 0 })
			}
			err := leaver.Leave(within(t))
			require.ErrorIs(t, err, kith.ErrStatesLost)
			all := &kith.LostStatesError{}
			require.ErrorAs(t, err, &all)
			why, n := lost.told()
			require.Len(t, why, n, "each once")
			require.Equal(t, []kith.LostStates{{Type: "tally", States: uint64(n)}}, all.Types)
			require.ErrorContains(t, err, fmt.Sprintf("%d of tally", n))
			if play.loses > 0 {
				require.Equal(t, play.loses, n)
			}
			for id, err := range why {
				require.ErrorIs(t, err, play.why, id)
			}
			require.ErrorIs(t, leaver.Shutdown(within(t), kith.ReasonLeft), kith.ErrStatesLost, "later, too")
		})
	}
}

// Two that are all there is leave at once: what one hands over to the other, and that one cannot pass on, is reported.
func TestLastTwoLeaveAtOnce(t *testing.T) {
	t.Parallel()
	const entities = 60
	nodes, _, lost := tallies(t, 2, entities, nil, nil)
	errs := make([]error, len(nodes))
	var leaves sync.WaitGroup
	for i, n := range nodes {
		leaves.Go(func() { errs[i] = n.Leave(within(t)) })
	}
	leaves.Wait()
	var told uint64
	for _, err := range errs {
		if err == nil {
			continue
		}
		all := &kith.LostStatesError{}
		require.ErrorAs(t, err, &all)
		told += all.Total()
	}
	why, n := lost.told()
	require.EqualValues(t, entities, told)
	require.Len(t, why, entities)
	require.Equal(t, entities, n)
}

// waits stops when its time is over.
type waits struct{ tally }

// Stop implements kith.Handler.
func (h *waits) Stop(c *kith.Context) { <-c.Context().Done() }

// A waiter for a node that is marked down meanwhile hears of that, whatever it waits for (SHD-7, MEM-8).
func TestVerbsEndWithTheirNode(t *testing.T) {
	t.Parallel()
	for name, verb := range map[string]func(n *kith.Node) error{
		"drain":    func(n *kith.Node) error { return n.Drain(within(t)) },
		"leave":    func(n *kith.Node) error { return n.Leave(within(t)) },
		"shutdown": func(n *kith.Node) error { return n.Shutdown(within(t), kith.ReasonSignal) },
	} {
		t.Run(name, func(t *testing.T) {
			nodes, _, _ := tallies(t, 2, 60, func(string) kith.Handler { return &waits{} }, nil)
			result := make(chan error, 1)
			go func() { result <- verb(nodes[0]) }()
			eventually(t, func() bool { return nodes[0].Stats().Types[0].Stopping > 0 }, "a shard stops")
			require.NoError(t, nodes[1].Down(within(t), nodes[0].Addr().String()))
			err := <-result
			var end *kith.EndedError
			require.ErrorAs(t, err, &end)
			require.Equal(t, kith.EndDowned, end.Kind)
			require.True(t, errors.Is(err, kith.ErrStopped))
			require.Equal(t, end, nodes[0].Err())
		})
	}
}

// A drain that is waited for ends when its node leaves: what cannot move stops then.
func TestDrainEndsWithTheLeave(t *testing.T) {
	t.Parallel()
	nodes, _, _ := tallies(t, 2, 60, func(string) kith.Handler { return &waits{} }, func(_ int, cfg *kith.Config) {
		cfg.LeaveTimeout = time.Second
	})
	result := make(chan error, 1)
	go func() { result <- nodes[0].Drain(within(t)) }()
	eventually(t, func() bool { return nodes[0].Stats().Types[0].Stopping > 0 }, "a shard stops")
	go func() { _ = nodes[0].Leave(within(t)) }()
	require.ErrorIs(t, <-result, kith.ErrLeaving)
}
