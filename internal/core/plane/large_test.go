// Tests of large messages: what is done with one at the head of a slot, and how each ends, by table and by law.

package plane

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// A large message goes payload first, then its envelope; one is called back when its home has changed (SHD-4, SHD-9).
func TestLargeForward(t *testing.T) {
	var l Large
	forward := func(at peer.ID, term uint32, want LargeStep, recalled bool) {
		t.Helper()
		step, recall := l.Forward(at, term, 1)
		require.Equal(t, want, step)
		require.Equal(t, recalled, recall)
	}
	forward(there, 3, LargeBegin, false)
	l.Began(there, 3, 1)
	forward(there, 3, LargeAwait, false)
	forward(there, 4, LargeBegin, true) // the same node under another fence is another home
	l.Began(there, 4, 1)
	forward(other, 4, LargeBegin, true)
	l.Began(other, 4, 1)
	require.True(t, l.Arrived())
	require.False(t, l.Arrived())
	forward(other, 4, LargeRefer, false)
	require.True(t, l.Recall(), "its shard lives here now")
	forward(other, 4, LargeBegin, false)
	l.Began(other, 4, 1)
	l.Arrived()
	l.Referred()
	require.False(t, l.Recall(), "it may have been taken")
	forward(there, 4, LargeSkip, false)
	require.True(t, l.LostWith(other))
	require.False(t, l.LostWith(there))
	require.True(t, l.End())
	require.False(t, l.End())
	require.False(t, l.LostWith(other))
	forward(other, 4, LargeSkip, false)
}

// What another node begins to send is judged by its fence first: a stop is the word of the owner alone.
func TestAcceptLarge(t *testing.T) {
	b := &wire.BulkBegin{Term: 3, Epoch: 4}
	require.Equal(t, route.OK, AcceptLarge(b, 3, 4, false))
	require.Equal(t, route.ShardStopping, AcceptLarge(b, 3, 4, true))
	require.Equal(t, route.NotOwner, AcceptLarge(b, 3, 5, true))
	require.Equal(t, route.NotOwner, AcceptLarge(b, 2, 4, false))
}

// Whatever happens, a large message is taken at one home at most, and tries no more homes than it may (SHD-9).
func TestLargeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Large
		homes, referred, over := 0, false, false
		at := peer.ID{}
		t.Repeat(map[string]func(*rapid.T){
			"head": func(t *rapid.T) {
				to := rapid.SampledFrom([]peer.ID{there, other}).Draw(t, "to")
				step, recall := l.Forward(to, 3, 4)
				require.False(t, recall && (referred || at == to))
				switch step {
				case LargeBegin:
					l.Began(to, 3, 4)
					at = to
				case LargeRefer:
					require.Equal(t, at, to)
					require.False(t, referred, "its envelope goes once")
					l.Referred()
					referred = true
				case LargeSkip:
					require.True(t, over || referred)
				}
			},
			"arrived": func(*rapid.T) { l.Arrived() },
			"local": func(*rapid.T) {
				if l.Recall() {
					require.False(t, referred)
					at = peer.ID{}
				}
			},
			"ended": func(t *rapid.T) {
				if st := l.State(); st == flow.LargeWaits || st == flow.LargeOver {
					return
				}
				why := route.Reason(rapid.IntRange(0, int(route.Reasons)-1).Draw(t, "why"))
				if l.Ended(why, rapid.Bool().Draw(t, "leads")) {
					homes++
					at = peer.ID{}
					require.False(t, referred, "it may have been taken")
					require.LessOrEqual(t, homes, MaxLargeRefusals)
					return
				}
				require.True(t, l.End())
				over = true
			},
			"": func(t *rapid.T) {
				now, _, _ := l.Home()
				if l.State() != flow.LargeOver {
					require.Equal(t, l.State() == flow.LargeWaits, now == peer.ID{})
				}
			},
		})
	})
}
