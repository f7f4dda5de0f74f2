// Waiters for room, held to the time that they may take.

package storm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// TestDemandRoom: where nobody may host a type, its parking queue has room as often as what is in it has waited too
// long, and waiters for that get on by and by. A waiter that gets nothing is named, there and where somebody hosts it.
func TestDemandRoom(t *testing.T) {
	for _, tc := range []struct {
		name, role string
		stuck      bool
		rules      []string
	}{
		{"nobody hosts, all get on", "nobody's", false, nil},
		{"nobody hosts, one is stuck", "nobody's", true, []string{"liveness"}},
		{"hosted, all get on", "", false, nil},
		{"hosted, one is stuck", "", true, []string{"liveness"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			typ := &world.EntityType{Type: entity.Type{Name: "slow", Shards: 1, Role: tc.role, Mode: entity.Blocking,
				New: func(string, route.Fence) entity.Handler { return nil }}}
			w := formed(t, 1, setup.Config{Data: setup.DataConfig{ParkRecords: 4, ParkWait: 30 * time.Second}}, typ)
			s := &storm{w: w, check: checks(w)}
			p := w.Hosts[0].Process
			r := s.waits.region(p)
			for range 20 {
				r.TellWait("e0", func() error {
					if tc.role == "" {
						return nil
					}
					payload, nth := w.Book.Write(p, r.ID, "e0", world.LedgerSize)
					err := r.SendWait("e0", payload)
					if err != nil {
						w.Book.Reject(nth)
					}
					return err
				})
			}
			if tc.stuck {
				r.TellWait("e0", func() error { return route.ErrParkFull })
			}
			began := w.Now
			s.demandRoom()
			var rules []string
			for _, v := range checks(w).Violations {
				rules = append(rules, v.Rule)
			}
			require.Equal(t, tc.rules, rules)
			if n, _ := p.Waiting(); !tc.stuck {
				require.Zero(t, n)
				require.Equal(t, tc.role != "", w.Now-began > fatesBound, "longer than one bound")
			}
		})
	}
}
