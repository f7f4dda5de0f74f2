// Tests of due times: a law, and setters beside a look.

package dues

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// thing is one with its time, which the test keeps beside.
type thing struct {
	due Due[thing]
	at  time.Duration
}

// Whatever is added, removed and set: what is due is found, all of it and nothing else, until its time is set anew
// (ACC-4: never early, never forgotten).
func TestDuesLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table[thing]
		var all []*thing
		now := time.Duration(0)
		add := func() {
			v := &thing{at: Never}
			table.Add(&v.due, v)
			all = append(all, v)
		}
		for range rapid.SampledFrom([]int{0, 1, blockSize - 1, blockSize, 3*blockSize + 1}).Draw(t, "first") {
			add()
		}
		pick := func() int { return rapid.IntRange(0, len(all)-1).Draw(t, "which") }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case what == 0 || len(all) == 0:
				add()
			case what == 1:
				i := pick()
				table.Remove(&all[i].due, all[i])
				table.Remove(&all[i].due, all[i])
				all = slices.Delete(all, i, i+1)
			case what <= 3:
				v := all[pick()]
				v.at = rapid.SampledFrom([]time.Duration{0, now - 1, now, now + 1, now + 7, Never}).Draw(t, "at")
				v.due.Set(v.at)
				require.Equal(t, v.at, v.due.At())
			default:
				now += time.Duration(rapid.IntRange(0, 5).Draw(t, "passes"))
				want := map[*thing]bool{}
				for _, v := range all {
					if v.at <= now {
						want[v] = true
					}
				}
				got := table.Over(now, nil)
				require.Len(t, got, len(want))
				for _, v := range got {
					require.True(t, want[v])
				}
			}
			require.Equal(t, len(all), table.Len())
		}
		require.ElementsMatch(t, all, slices.Collect(table.All))
	})
}

// Times that are set while others look are not forgotten: each thing is found after the last of them (ACC-4).
func TestDuesMeanwhile(t *testing.T) {
	const setters, each = 4, 300
	var table Table[thing]
	all := make([]*thing, setters*each)
	for i := range all {
		all[i] = &thing{}
		table.Add(&all[i].due, all[i])
	}
	var now atomic.Int64
	var wg sync.WaitGroup
	var over atomic.Int64
	for n := range setters {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			for range 20_000 {
				i := r.IntN(each)*setters + n // neighbours in one block belong to others
				all[i].due.Set(time.Duration(now.Load() + r.Int64N(50)))
			}
			over.Add(1)
		})
	}
	for over.Load() < setters {
		now.Add(1)
		for _, v := range table.Over(time.Duration(now.Load()), nil) {
			require.NotNil(t, v)
		}
	}
	wg.Wait()
	require.Len(t, table.Over(time.Duration(now.Load()+50), nil), len(all)-never(all))
}

func never(all []*thing) (n int) {
	for _, v := range all {
		if v.due.At() == Never {
			n++
		}
	}
	return n
}

// What is not due costs a look at one time in so many, whatever its number (CARD-3).
func BenchmarkOver(b *testing.B) {
	var table Table[thing]
	all := make([]thing, 100_000)
	for i := range all {
		table.Add(&all[i].due, &all[i])
	}
	for b.Loop() {
		table.Over(1, nil)
	}
}
