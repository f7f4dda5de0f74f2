// The law of the time limit of what waits for a home: it holds for each message, whatever came before it.

package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/wire"
)

// A slot ridden as both runtimes do: each message that waits in it is failed when its time is over, at the next look,
// which is a ScanParked later at most, and not before; and somebody asks for the home as long as one waits: also for
// the second message to a shard that never had a home (SHD-4).
func TestParkTimeHoldsForEachMessage(t *testing.T) {
	const limit = 3 * time.Second
	rapid.Check(t, func(t *rapid.T) {
		slot := flow.MakeSlot(flow.NewParking(0, 1<<16, limit, nil))
		s := &slot
		var agenda Agenda[int]
		now, asked := time.Duration(0), 0
		var waiting []time.Duration // when each came that waits, oldest first
		follow := func(next Next) {
			if next == LookUp {
				agenda.Want(now, 1)
			}
		}
		turn := func() {
			asked += len(agenda.Wanted())
			for range agenda.Waiting(now) {
				next, watch := Expire(s, now, func([]byte) {
					require.NotEmpty(t, waiting)
					require.GreaterOrEqual(t, now, waiting[0]+limit, "not before its time")
					waiting = waiting[1:]
				})
				follow(next)
				if watch {
					agenda.Watch(now, 1)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"park": func(*rapid.T) {
				before := asked
				next, err := Park(s, now, &wire.Envelope{Type: 1, Shard: 2}, "a")
				require.NoError(t, err)
				first := len(waiting) == 0
				waiting = append(waiting, now)
				follow(next)
				turn()
				require.Equal(t, first, asked > before, "whoever is the first to wait has the home asked for")
			},
			"hold": func(*rapid.T) { // a large message
				next, err := Hold(s, now, &wire.Envelope{Type: 1, Shard: 2, Flags: wire.FlagBulk}, "a")
				require.NoError(t, err)
				waiting = append(waiting, now)
				follow(next)
				turn()
			},
			"time": func(*rapid.T) {
				end := now + time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms"))*time.Millisecond
				for at, ok := agenda.Next(); ok && at <= end; at, ok = agenda.Next() {
					now = max(now, at)
					turn()
				}
				now = end
			},
			"": func(*rapid.T) {
				n, _ := s.Parked()
				require.Equal(t, len(waiting), n)
				for _, at := range waiting {
					require.LessOrEqual(t, now, at+limit+ScanParked, "it waits for longer than it may")
				}
			},
		})
	})
}
