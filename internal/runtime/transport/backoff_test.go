// Tests of back-off: the law of its pauses, their spread, and where it starts anew.

package transport

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/wire"
)

// TestPauses holds the law of pauses, whatever the settings: the first is drawn up to the least, each further one up to
// twice as much, none over the most; each is at least half of what it may be at most, larger for a larger random
// number, and reaches both ends. Reconnect with capped back-off and jitter (CARD-3).
func TestPauses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := rapid.Int64Range(1, math.MaxInt64)
		least := time.Duration(spans.Draw(t, "least"))
		most := time.Duration(spans.Draw(t, "most"))
		if least > most {
			least, most = most, least
		}
		random, larger := rapid.Uint64().Draw(t, "random"), rapid.Uint64().Draw(t, "larger")
		random, larger = min(random, larger), max(random, larger)
		require.Zero(t, pauseAfter(0, least, most, random), "the first dial waits for nothing")
		whole, last := least, time.Duration(0)
		for failures := 1; failures <= 70; failures++ {
			pause := pauseAfter(failures, least, most, random)
			require.LessOrEqual(t, pause, whole, "after %d", failures)
			require.GreaterOrEqual(t, pause, whole-whole/2, "after %d", failures)
			require.LessOrEqual(t, pause, pauseAfter(failures, least, most, larger), "after %d", failures)
			require.GreaterOrEqual(t, pause, last, "pauses grow: after %d", failures)
			require.Equal(t, whole-whole/2, pauseAfter(failures, least, most, 0), "the least of all draws")
			require.Equal(t, whole, pauseAfter(failures, least, most, math.MaxUint64), "the most of all draws")
			last = pause
			if whole > most/2 {
				whole = most
			} else {
				whole *= 2
			}
		}
		require.Equal(t, most, pauseAfter(math.MaxInt, least, most, math.MaxUint64))
	})
}

// TestPausesOfTheDefaults writes them down.
func TestPausesOfTheDefaults(t *testing.T) {
	c := Config{}.withDefaults()
	for failures, want := range []time.Duration{0, 50, 100, 200, 400, 800, 1600, 2000, 2000} {
		require.Equal(t, want*time.Millisecond, pauseAfter(failures, c.BackoffMin, c.BackoffMax, math.MaxUint64))
	}
}

// TestPausesSpread draws the pauses of ten thousand peers that lost the same node from one seeded source: they fill
// their range evenly, each twentieth of it.
func TestPausesSpread(t *testing.T) {
	const peers, parts = 10_000, 20
	random := rand.New(rand.NewPCG(1, 2))
	for _, failures := range []int{1, 4, 50} {
		most := pauseAfter(failures, 50*time.Millisecond, 2*time.Second, math.MaxUint64)
		var met [parts]int
		for range peers {
			pause := pauseAfter(failures, 50*time.Millisecond, 2*time.Second, random.Uint64())
			met[min(parts-1, parts*(pause-most/2)/(most/2))]++
		}
		for part, n := range met {
			require.InDelta(t, peers/parts, n, peers/parts/4, "part %d after %d failures", part, failures)
		}
	}
}

// TestBackoffStartsAnew breaks a connection that stood for a moment, which is one more failure, and one that held: the
// next dial is a first one again, and waits for nothing.
func TestBackoffStartsAnew(t *testing.T) {
	require.Equal(t, 8, failuresAfter(7, steadyAfter-1))
	require.Zero(t, failuresAfter(7, steadyAfter))
	for name, c := range map[string]struct {
		stood time.Duration
		want  int
	}{"brief": {0, 8}, "held": {steadyAfter, 0}} {
		t.Run(name, func(t *testing.T) {
			a, b := newRider(), newRider()
			ta, tb := start(t, a, nil), start(t, b, nil)
			link := ta.Link(tb.Self())
			require.NoError(t, send(t, link, 0, 0, 8, nil))
			for up := want(t, a.ups); up.lane != wire.LaneData; up = want(t, a.ups) {
			}
			link.Lock()
			link.failures, link.upSince = 7, time.Now().Add(-c.stood)
			if c.stood == 0 {
				link.upSince = time.Now().Add(time.Hour) // it is brief however slow the machine is
			}
			conn := link.conn
			link.Unlock()
			require.NoError(t, link.loop.Execute(taskFunc(conn.hangUp)))
			for gone := want(t, a.downs); gone.lane != wire.LaneData; gone = want(t, a.downs) {
			}
			link.Lock()
			defer link.Unlock()
			require.Equal(t, c.want, link.failures)
			require.Equal(t, c.want == 0, link.notBefore.IsZero())
		})
	}
}
