// Leaves beside pauses: how long a pause may be.

package storm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/sim/setup"
)

// TestBearablePauses: nobody takes a process for lost that pauses beside a leave, under any preset, and whether its end
// is proven or decided upon. A pause of 4.4 s is more than calm bears, and more than normal bears where an end is
// proven. Found by storm 12100003185.
func TestBearablePauses(t *testing.T) {
	for name, tc := range map[string]struct {
		patience cluster.Patience
		seats    int
		session  time.Duration
		want     time.Duration
		lost     bool // in a pause of mostPause
	}{
		"normal":               {want: mostPause},
		"normal with tenures":  {seats: 3, want: 3 * time.Second, lost: true},
		"normal with sessions": {session: 2 * time.Second, want: 3 * time.Second, lost: true},
		"calm":                 {patience: cluster.PatienceCalm, want: 2400 * time.Millisecond, lost: true},
		"calm with tenures":    {patience: cluster.PatienceCalm, seats: 3, want: time.Second, lost: true},
		"noisy with tenures":   {patience: cluster.PatienceNoisy, seats: 3, want: mostPause},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := setup.Config{Resolver: node.Resolver{Strategy: node.ResolverKeepMajority}, Patience: tc.patience,
				TenureVoters: tc.seats, TenureGrant: 2500 * time.Millisecond,
				SessionTTL: tc.session, SessionEnds: 10 * tc.session}
			lost := func(longest bool) (is bool) {
				for phase := range time.Duration(4) { // of the heartbeats
					w := formed(t, 5, cfg)
					d := bearable(&w.Config, 5)
					require.InDelta(t, tc.want, d, float64(50*time.Millisecond))
					if longest {
						d = mostPause
					}
					w.Advance(20*time.Second + phase*240*time.Millisecond)
					p := w.Hosts[1].Process
					p.Pause(d)
					w.Advance(d + time.Second)
					is = is || checks(w).Lost(p.ID)
				}
				return is
			}
			require.False(t, lost(false))
			require.Equal(t, tc.lost, lost(true))
		})
	}
}
