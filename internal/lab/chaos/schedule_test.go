// Laws of the schedule: the same seed gives the same rounds, every value is within its bounds, every kind comes.

package chaos

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func draw(seed uint64, nodes, n int, kinds ...Kind) []Round {
	rounds := NewRounds(seed, nodes, kinds...)
	all := make([]Round, n)
	for i := range all {
		all[i] = rounds.Next()
	}
	return all
}

// Equal seeds give equal rounds, and each round stands for itself: what was drawn before does not show in it.
func TestScheduleIsAFunctionOfTheSeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, nodes := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(3, 9).Draw(t, "nodes")
		all := draw(seed, nodes, 20)
		require.Equal(t, all, draw(seed, nodes, 20))
		later := NewRounds(seed, nodes)
		later.next = 10
		require.Equal(t, all[10], later.Next())
	})
}

func TestScheduleKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(3, 9).Draw(t, "nodes")
		for i, r := range draw(rapid.Uint64().Draw(t, "seed"), nodes, 20) {
			require.Equal(t, i+1, r.Number)
			require.True(t, r.Steady >= time.Second && r.Steady <= 3*time.Second)
			require.NotEmpty(t, r.Faults)
			require.LessOrEqual(t, len(r.Faults), 5)
			require.NotContains(t, Beside, r.Faults[0].Kind, "it comes beside another")
			for _, f := range r.Faults {
				require.LessOrEqual(t, f.Victims, nodes)
				require.Len(t, f.Order, nodes)
				require.True(t, f.At >= 0 && f.At <= 12*time.Second && f.For >= 0 && f.For <= 40*time.Second)
				require.True(t, f.Rest > 0 && f.Rest <= 30*time.Second)
				require.Equal(t, f.Kind == Restart, f.Rest < 200*time.Millisecond)
				require.True(t, f.Kind == Kill || !f.away())
				switch f.Kind {
				case Pause, Restart, Starve, Cut, CutOneWay, CutPartial, Flap, DataCut, ControlCut, Loss, Delay,
					StuckLog, DNS, SlowLink:
					require.GreaterOrEqual(t, f.For, time.Second, f.String())
				case Reset:
					require.True(t, f.For >= time.Second || f.PerMille == everyPacket && f.For > 0, f.String())
				}
				require.Equal(t, f.Kind == DNS, f.Trouble != "")
				require.True(t, !f.Twice || f.Again > 0 && contains([]Kind{Leave, Rolling, LeaveLate}, f.Kind))
				switch f.Kind {
				case Cut, CutOneWay, Flap:
					require.True(t, f.Victims >= 1 && 2*f.Victims < nodes, "the cut-off side is the smaller one")
				case Starve:
					require.Positive(t, f.Period)
				case Restart:
					require.True(t, f.Victims == 2 && f.Stagger < f.For, "the first stands while the second restarts")
				}
			}
		}
	})
}

// Where nodes hold sessions their store fails beside other faults, which stay what they are; alone it may end nobody
// (MEM-10).
func TestStoreOfSessionsFailsToo(t *testing.T) {
	kinds := map[Kind]int{}
	with := NewRounds(7, 5).WithStore()
	for _, r := range draw(7, 5, 300) {
		w := with.Next()
		require.Equal(t, r.Faults, w.Faults[:len(r.Faults)])
		for _, f := range w.Faults[len(r.Faults):] {
			require.True(t, f.Kind.OfStore())
			require.Equal(t, f.Kind == StoreAnew, f.For == 0)
			kinds[f.Kind]++
		}
	}
	require.Len(t, kinds, len(OfStores))
	alone := struck{Fault{Kind: StoreCut, Victims: 2}, []int{0, 1}}
	stuck := struck{Fault{Kind: StuckLog}, []int{2}}
	require.Equal(t, []int{0, 1, 2, 3, 4}, obliged([]struck{alone, stuck}, 5))
	require.Equal(t, []int{2, 3, 4}, obliged([]struck{alone, {Fault{Kind: Loss, PerMille: 10}, nil}}, 5))
	require.False(t, alone.explains(0, 0), "what waits is not lost")
	for seed := range uint64(20) {
		for _, k := range OfStores {
			require.Equal(t, k, draw(seed, 5, 1, k)[0].Faults[0].Kind)
		}
	}
}

// A few hundred rounds hold every kind, every role, several victims, and blows in the midst of others.
func TestScheduleHoldsEverything(t *testing.T) {
	kinds, first, two, long, twice := map[Kind]int{}, map[Role]int{}, 0, 0, 0
	for _, r := range draw(1, 5, 500) {
		two += len(r.Faults) - 1
		for _, f := range r.Faults {
			kinds[f.Kind]++
			first[f.First]++
			if f.Twice {
				twice++
			}
			if f.Kind == Pause && f.For > 30*time.Second {
				long++
			}
			require.NotEmpty(t, f.String())
		}
	}
	require.Greater(t, twice, 10)
	for _, k := range slices.Concat(Kinds, Beside) {
		require.Greater(t, kinds[k], 10, k)
	}
	for _, r := range roles {
		require.Greater(t, first[r], 10, r)
	}
	require.Greater(t, two, 20)
	require.Positive(t, long)
}

func TestScheduleOfSomeKinds(t *testing.T) {
	for _, r := range draw(7, 3, 50, Kill, Cut) {
		for _, f := range r.Faults {
			require.Contains(t, []Kind{Kill, Cut}, f.Kind)
		}
	}
}

// Asked for alone, each trouble of DNS comes beside each of what has connections made anew, within its time.
func TestScheduleOfDNS(t *testing.T) {
	came := map[string]int{}
	for _, r := range draw(7, 5, 200, DNS) {
		require.Len(t, r.Faults, 2)
		ill, beside := r.Faults[0], r.Faults[1]
		require.Equal(t, DNS, ill.Kind)
		require.Zero(t, ill.At)
		require.Contains(t, []Kind{Reset, Kill, Leave}, beside.Kind)
		require.True(t, beside.At > 0 && beside.At+beside.For < ill.For, "it comes while DNS is in trouble")
		require.LessOrEqual(t, beside.Victims, 1)
		came[string(ill.Trouble)+" "+string(beside.Kind)]++
	}
	require.Len(t, came, 9)
}

// What comes beside the faults of a round changes nothing of them: a seed has the rounds that it had before.
func TestBesideChangesNoRound(t *testing.T) {
	rounds, beside := draw(1, 5, 100), 0
	for i, want := range []string{"pause anybody for 2.897s", "loss for 11.123s 50 per mille", "delay for 18.955s by 21ms",
		"starve owner for 18.672s period 189ms; stuck-log seed for 3.406s (after 1.413s)", "rolling"} {
		before, _, _ := strings.Cut(rounds[i].String(), "; dns ")
		require.Equal(t, want, before)
	}
	for _, r := range rounds {
		at := slices.IndexFunc(r.Faults, func(f Fault) bool { return f.Kind == DNS })
		if at < 0 {
			continue
		}
		beside++
		require.Positive(t, at)
		require.LessOrEqual(t, len(r.Faults)-at, 2, "and a reset of everything at most")
		for _, f := range r.Faults[at+1:] {
			require.True(t, f.Kind == Reset && f.PerMille == everyPacket && f.Victims == 0, f.String())
		}
	}
	require.Positive(t, beside)
}

// The nodes that must live on: the untouched, as long as they are the majority (MEM-10).
func TestWhoMustLive(t *testing.T) {
	hit := func(k Kind, who ...int) struck { return struck{Fault{Kind: k, Victims: len(who)}, who} }
	flap := hit(Flap, 1)
	flap.For = 20 * time.Second
	brief := hit(Flap, 1)
	brief.For = 5 * time.Second
	heavy := struck{Fault: Fault{Kind: Loss, PerMille: 200}}
	for _, c := range []struct {
		name string
		hits []struck
		want []int
	}{
		{"nothing", nil, []int{0, 1, 2, 3, 4}},
		{"one killed", []struck{hit(Kill, 2)}, []int{0, 1, 3, 4}},
		{"two killed", []struck{hit(Kill, 2, 0)}, []int{1, 3, 4}},
		{"two killed, one paused", []struck{hit(Kill, 2, 0), hit(Pause, 1)}, nil},
		{"one hit twice", []struck{hit(Kill, 2), hit(Pause, 2)}, []int{0, 1, 3, 4}},
		{"one started anew beside one that is stopped", []struck{hit(Restart, 3, 4)}, []int{0, 1, 2}},
		{"all killed", []struck{hit(KillAll, 0, 1, 2, 3, 4)}, nil},
		{"three paused", []struck{hit(Pause, 0, 1, 2)}, nil},
		{"a smaller side cut off", []struck{hit(Cut, 3, 4)}, []int{0, 1, 2}},
		{"two that do not hear each other", []struck{hit(CutPartial, 3, 4)}, []int{0, 1, 2}},
		{"only control flows", []struck{hit(DataCut, 3)}, []int{0, 1, 2, 3, 4}},
		{"resets", []struck{hit(Reset)}, []int{0, 1, 2, 3, 4}},
		{"heavy loss", []struck{heavy}, nil},
		{"long flapping", []struck{flap}, nil},
		{"brief flapping", []struck{brief}, []int{0, 2, 3, 4}},
		{"nobody reads their logs", []struck{hit(StuckLog, 0, 1, 2, 3, 4)}, []int{0, 1, 2, 3, 4}},
		{"nobody reads three logs, and one is killed", []struck{hit(StuckLog, 0, 1, 2), hit(Kill, 2)}, []int{0, 1, 3, 4}},
		{"DNS fails, and all connections are made anew", []struck{hit(DNS), hit(Reset)}, []int{0, 1, 2, 3, 4}},
		{"one is killed while DNS fails", []struck{hit(DNS), hit(Kill, 0)}, []int{1, 2, 3, 4}},
		{"one leaves", []struck{hit(Leave, 0)}, []int{1, 2, 3, 4}},
		{"each in turn", []struck{hit(Rolling, 0, 1, 2, 3, 4)}, nil},
	} {
		require.Equal(t, c.want, obliged(c.hits, 5), c.name)
	}
}

func TestWhatExplainsALoss(t *testing.T) {
	kill := struck{Fault{Kind: Kill, Victims: 1}, []int{2}}
	require.True(t, kill.explains(2, 0))
	require.True(t, kill.explains(0, 2))
	require.False(t, kill.explains(0, 1))
	loss := struck{Fault: Fault{Kind: Loss}}
	require.True(t, loss.explains(0, 1))
	dns := struck{Fault: Fault{Kind: DNS}}
	require.False(t, dns.explains(0, 1), "no message goes by DNS")
}
