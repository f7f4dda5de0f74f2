// Tests of large messages of a sender that ends before it has heard what became of them.

package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// A large message that its receiver has taken or refused, while its sender stands still and then ends: the closed
// sender reports that nobody knows what became of it. Found by accounts seed 788.
func TestLargeMessagesOfOneThatEnds(t *testing.T) {
	for _, gaveUp := range []bool{true, false} {
		for _, closes := range []bool{true, false} {
			var w *World
			typ := &EntityType{Type: entity.Type{Name: "t", Shards: 1, RestartWindow: time.Hour, MaxRestarts: 1,
				New: func(string, route.Fence) entity.Handler {
					return handlerFunc(func(_ *entity.Context, b []byte) error {
						if gaveUp {
							panic("as it is told")
						}
						if Numbered(b) {
							w.Delivered(w.Hosts[0].Process, route.TypeOf("t"), "x", b)
						}
						return nil
					})
				}}}
			w = formed(t, 2, setup.Config{Data: setup.DataConfig{MaxPayload: 300, BulkChunk: 256}}, typ)
			at, from := w.Hosts[0].Process, w.Hosts[1].Process
			r := from.Region(route.TypeOf("t"))
			for range 2 {
				_, err := r.Send("x", []byte("small"), 0)
				require.NoError(t, err)
				w.Advance(time.Second)
			}
			payload, nth := w.Book.Write(from, r.ID, "x", 3000)
			_, err := r.Send("x", payload, 0)
			require.NoError(t, err)
			e := &w.Book.entries[nth]
			before := at.dropped[route.Crashed]
			over := func() bool { return e.hosted || at.dropped[route.Crashed] > before }
			for !over() {
				w.Advance(10 * time.Microsecond)
			}
			require.Equal(t, gaveUp, !e.hosted)
			require.Equal(t, gaveUp, e.where == from, "what is refused is its sender's again")
			require.Len(t, from.bulk.out, 1, "it has not heard of that")
			from.Pause(time.Minute)
			w.Advance(time.Second)
			if closes {
				from.Close()
			} else {
				from.Crash(true)
			}
			w.Advance(time.Second)
			require.True(t, w.Quiet())
			w.Audit()
			require.Empty(t, broken(w))
			if closes {
				require.EqualValues(t, 1, w.Book.Reports()[Report{Sender: from, Type: r.ID, Why: route.Stopped}])
			}
			if !gaveUp {
				require.Equal(t, FateDelivered, e.fate)
			}
		}
	}
}
