// What a flight record rests on: a node that is taken apart and put together again between two steps goes on as if
// nothing had been, and a node that is given its inputs again does what it did.

package storm

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/flight"
	"github.com/kith-io/kith/shard"
)

// thawed runs a storm in which, again and again, each node is replaced by one that was read from its state, or, for
// comparison, is left as it is. It returns the trace's hash and how many were replaced.
func thawed(t *testing.T, seed uint64, replace bool) (hash uint64, count, bytes int) {
	s := newStorm(seed, []string{OffStrategies}, false)
	rng := rand.New(rand.NewPCG(seed, 9))
	var again func()
	again = func() {
		for _, p := range s.w.Processes {
			if !p.Alive || rng.IntN(3) > 0 || !replace {
				continue
			}
			state, err := flight.Freeze(nil, p.Node.Node, 0)
			require.NoError(t, err)
			n, err := flight.Thaw(p.Setup, state)
			require.NoError(t, err)
			anew, err := flight.Freeze(nil, n, 0)
			require.NoError(t, err)
			require.Equal(t, state, anew, "what was read differs from what was written")
			p.Node = &flight.Node{Node: n}
			count, bytes = count+1, max(bytes, len(state))
		}
		s.w.After(time.Duration(rng.Int64N(int64(2*time.Second))), again)
	}
	s.w.After(time.Second, again)
	r := s.run()
	require.Zero(t, r.total, r.violations)
	return r.hash, count, bytes
}

// seedsOf is how many seeds these tests run.
func seedsOf() uint64 {
	if testing.Short() {
		return 1
	}
	return 3
}

// TestThawedNodesGoOn: the trace of a storm does not show that its nodes were replaced by their own states.
func TestThawedNodesGoOn(t *testing.T) {
	for seed := range seedsOf() {
		plain, _, _ := thawed(t, 1+seed, false)
		hash, count, bytes := thawed(t, 1+seed, true)
		require.Equal(t, plain, hash, "seed %d: the trace shows it", 1+seed)
		require.Greater(t, count, 20)
		t.Logf("seed %d: %d nodes replaced, the largest state had %d bytes", 1+seed, count, bytes)
	}
}

// TestRecordsReplay: every process of a storm is recorded in a ring, and its record, written and read, replays to the
// end, from one half of the ring into the other too. Which strategy was asked, which peers understood moves, and when
// somebody asked the node for its next deadline makes no difference.
func TestRecordsReplay(t *testing.T) {
	rings := []int{128 << 10, 512 << 10, 512 << 10} // as small as the states of the seed allow
	var whole, partial, halves, verbs, decisions, asked int
	for seed := range seedsOf() {
		without := []string{OffTenures} // with them nothing is left to be decided in these seeds
		s := newStorm(3+seed, without, false)
		plain := newStorm(3+seed, without, false).run().hash
		s.w.Config.FlightBytes = rings[seed]
		require.Equal(t, plain, s.run().hash, "recording changes nothing")
		for _, p := range s.w.Processes {
			rec, err := p.Node.Record()
			require.NoError(t, err)
			require.Empty(t, rec.Over)
			var file bytes.Buffer
			require.NoError(t, rec.Write(&file))
			read, err := flight.Read(&file)
			require.NoError(t, err)
			require.Equal(t, rec.Header, read.Header)
			if read.From == 0 {
				whole++
			} else {
				partial++
			}
			if read.Bytes > rings[seed]/2 {
				halves++
			}
			last := uint64(0)
			require.NoError(t, read.Replay(func(st *flight.Step) error {
				verbs, last = verbs+1, st.Verb
				decisions += len(st.Effects.Decisions)
				if c, ok := st.Command.(shard.RegisterCommand); ok {
					if _, other := c.Strategy.(*flight.Asked); other {
						asked++
					}
				}
				return nil
			}), "seed %d, process %s", 3+seed, p.ID)
			require.NotZero(t, last)
		}
	}
	t.Logf("%d whole records, %d partial ones, %d of two halves, %d verbs, %d decisions", whole, partial, halves, verbs,
		decisions)
	require.Positive(t, whole, "some records begin at the start")
	require.Positive(t, halves, "some go on behind a state")
	if testing.Short() {
		return
	}
	require.Positive(t, partial, "some have lost their beginning")
	require.Positive(t, decisions)
	require.Positive(t, asked, "some strategies are not ours")
}
