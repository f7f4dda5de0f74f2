// Tests of state that moves with its entity: typed handlers, and a cluster of nodes that are all replaced in turn.

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/sim"
)

// till is a typed handler with a sum that moves.
type till struct{ total int64 }

func (h *till) put(_ *kith.Context, m *put) (sum, error) {
	h.total += m.N
	return sum{h.total}, nil
}

func (h *till) Stop(*kith.Context) {}

func (h *till) handOver(*kith.Context) (*sum, error) {
	if h.total == 1 {
		return nil, nil
	}
	return &sum{h.total}, nil
}

func (h *till) takeUp(_ *kith.Context, s *sum) error {
	if s.Total == 13 {
		return errors.New("not with me")
	}
	h.total = s.Total
	return nil
}

// A typed handler's state travels by its codec; nil is none, and what the codec or TakeUp refuses is lost with a name.
func TestTypedStateMoves(t *testing.T) {
	for _, mode := range []kith.Mode{kith.Blocking, kith.Worker, kith.Inline} {
		puts := kith.Message[put, sum]{Type: "till", Message: putCodec, Reply: sumCodec}
		typ := kith.EntityType{Name: "till", Mode: mode, Typed: kith.Methods(
			func(*kith.Context) (*till, error) { return &till{}, nil }, kith.On(puts, (*till).put),
			kith.HandOver(sumCodec, (*till).handOver, (*till).takeUp))}
		e := sim.NewEntity(t, typ, "a", sim.EntityConfig{})
		add := func(n int64) int64 {
			b, err := putCodec.Append(nil, &put{N: n})
			require.NoError(t, err)
			reply, err := e.Ask(b)
			require.NoError(t, err)
			var s sum
			require.NoError(t, sumCodec.ParseInto(reply, &s))
			return s.Total
		}
		require.EqualValues(t, 1, add(1))
		require.Empty(t, e.Stop(entity.StopMoved, 0).Incidents)
		require.EqualValues(t, 5, add(5), "nil is no state")
		require.Empty(t, e.Stop(entity.StopLeaving, time.Second).Incidents)
		require.EqualValues(t, 10, add(5))
		for _, refused := range []struct {
			total int64
			why   error
		}{{666, kith.ErrHandOverFailed}, {13, kith.ErrStateRefused}} {
			b, err := putCodec.Append(nil, &put{N: refused.total - add(0)})
			require.NoError(t, err)
			require.NoError(t, e.Tell(b).Err)
			list := e.Stop(entity.StopMoved, 0).Incidents
			if len(list) == 0 {
				c := e.Do(sim.Message{Payload: b})
				list = c.Incidents
			}
			require.Len(t, list, 1)
			require.Equal(t, kith.StateLost, list[0].Kind)
			require.ErrorIs(t, list[0].Err, refused.why)
			require.EqualValues(t, 0, add(0))
		}
	}
}

// tally counts, and its count moves.
type tally struct{ n int }

func (h *tally) Receive(c *kith.Context, _ []byte) error {
	h.n++
	if c.Asked() {
		return c.Reply(fmt.Append(nil, h.n))
	}
	return nil
}

func (h *tally) Stop(*kith.Context) {}

func (h *tally) HandOver(*kith.Context) ([]byte, error) { return fmt.Append(nil, h.n), nil }

func (h *tally) TakeUp(_ *kith.Context, state []byte) error {
	_, err := fmt.Sscan(string(state), &h.n)
	return err
}

// Every node of a cluster is replaced in turn while others ask: each answer is one more than the last, in all three
// modes (SHD-9, SHD-12).
func TestCountsSurviveARollingRestart(t *testing.T) {
	t.Parallel()
	modes := []kith.Mode{kith.Blocking, kith.Worker, kith.Inline}
	regions := map[*kith.Node][]*kith.Region{}
	registered := func(_ int, n *kith.Node) {
		for _, mode := range modes {
			r, err := n.Register(kith.EntityType{Name: mode.String(), Mode: mode, Shards: 8, Role: "host",
				New: func(string, kith.Fence) kith.Handler { return &tally{} }})
			require.NoError(t, err)
			regions[n] = append(regions[n], r)
		}
	}
	edit := func(i int, cfg *kith.Config) {
		if i > 0 {
			cfg.Roles = []string{"host"}
		}
	}
	nodes := cluster(t, 4, edit, registered)
	asker := regions[nodes[0]]
	const entities = 24
	counts := map[string]int{}
	ask := func(who int) {
		r, id := asker[who%len(modes)], fmt.Sprint("e", who/len(modes)%entities)
		b, err := r.Ask(within(t), id, nil)
		require.NoError(t, err)
		key := r.Type().Name + id
		counts[key]++
		require.Equal(t, fmt.Sprint(counts[key]), string(b), key)
	}
	for i := range entities * len(modes) {
		ask(i)
	}
	for _, gone := range nodes[1:] {
		cfg := kith.Config{Seeds: []string{nodes[0].Addr().String()}}
		edit(1, &cfg)
		next := start(t, logger(t), cfg)
		registered(1, next)
		require.NoError(t, next.Ready(within(t)))
		var leaves sync.WaitGroup
		over, cancel := context.WithCancel(context.Background())
		leaves.Go(func() {
			defer cancel()
			if err := gone.Leave(within(t)); err != nil {
				t.Errorf("leave: %v", err)
			}
		})
		for i := 0; over.Err() == nil; i++ {
			if i%5 > 0 { // some get no message while they move
				ask(i)
			}
		}
		leaves.Wait()
		for _, st := range gone.Stats().Types {
			require.Zero(t, st.States.Lost, st.Name)
		}
	}
	for i := range entities * len(modes) {
		ask(i)
	}
}
