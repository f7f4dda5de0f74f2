// Tests of what is logged of losses: all that is counted, and not more often than somebody can read (OPS-1).

package driver

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/logs/logstest"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Losses of one type, reason and node are one record a second, the first at once, whatever shards they are of.
func TestLossesAreSummed(t *testing.T) {
	var text logstest.Text
	var hooked uint64
	f := undeliveredTable{log: slog.New(slog.NewTextHandler(&text, nil)), hook: func(u Undelivered) { hooked += u.Count }}
	r, other := typedRegion("cart"), typedRegion("user")
	lost := cause{peer: peer.ID{Inc: 1}, reason: route.PeerLost}
	lines := func() (list []string) {
		for _, line := range text.Lines("messages not delivered") {
			_, line, _ = strings.Cut(line, "delivered\" ")
			list = append(list, strings.TrimSpace(line))
		}
		return list
	}
	f.add(r, 1, lost, 2, []byte("anna"))
	f.add(r, 2, lost, 3, []byte("ben"))
	f.add(other, 3, lost, 1, []byte("emma"))
	require.True(t, f.some(0))
	f.tell(0, false)
	require.Len(t, lines(), 2)
	require.Contains(t, lines()[0], "type=cart shard=several reason=peer-lost")
	require.Contains(t, lines()[0], "count=5 samples=\"[anna ben]\"")
	require.Contains(t, lines()[1], "type=user shard=3")
	for i := range 20 { // 50 ms each
		f.add(r, 7, lost, 1, []byte("anna"))
		require.True(t, f.some(0))
		f.tell(time.Duration(i)*tellEvery, false)
	}
	require.Len(t, lines(), 2)
	require.False(t, f.some(lossEvery-1))
	require.True(t, f.some(lossEvery))
	f.tell(lossEvery, false)
	require.Len(t, lines(), 3)
	require.Contains(t, lines()[2], "type=cart shard=7")
	require.Contains(t, lines()[2], "count=20")
	f.add(other, 3, cause{reason: route.MailboxFull}, 4, nil)
	f.tell(lossEvery, false)
	require.Len(t, lines(), 4, "another reason is told at once")
	f.add(r, 1, lost, 6, nil)
	f.tell(lossEvery+1, true)
	require.Contains(t, lines()[4], "count=6", "the end tells what is left")
	require.EqualValues(t, 5+1+20+4+6, hooked, "the hook is told of each at once")
	f.tell(10*lossEvery, false)
	require.Empty(t, f.losses, "nothing is kept")
	require.False(t, f.some(20*lossEvery))
}

// Whatever is lost when, each loss is in one record; the sums are bounded, and so are the samples.
func TestLossesAreAllLogged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f undeliveredTable
		var counted, told uint64
		now := time.Duration(0)
		types := []*Region{typedRegion("a"), typedRegion("b"), nil}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "losses") {
				n := rapid.Uint64Range(0, 5).Draw(t, "count")
				counted += n
				f.add(rapid.SampledFrom(types).Draw(t, "type"), route.ShardID(n), cause{peer: peer.ID{Inc: n % 3},
					reason: route.PeerLost}, n, []byte("x"))
			}
			now += time.Duration(rapid.IntRange(0, int(lossEvery)).Draw(t, "rest"))
			for _, u := range f.sum(f.take(), now, false) {
				told += u.Count
				require.LessOrEqual(t, len(u.Samples), plane.MaxRefusedSamples)
			}
		}
		for _, u := range f.sum(f.take(), now, true) {
			told += u.Count
		}
		require.Equal(t, counted, told)
	})
	var f undeliveredTable
	r := typedRegion("many")
	for i := range 2 * maxUndelivered {
		f.addAll(r, 1, cause{peer: peer.ID{Inc: uint64(i + 1)}, reason: route.PeerLost}, 1, nil)
		f.sum(f.take(), 0, false)
	}
	require.LessOrEqual(t, len(f.losses), maxUndelivered+1, fmt.Sprint("of ", 2*maxUndelivered, " nodes"))
}

// A type with entities that nothing ends is reported when it has many, and again when it has twice as many; one with a
// bound is not.
func TestCrowdsAreTold(t *testing.T) {
	var text logstest.Text
	d, err := Start(t.Context(), Config{Logger: slog.New(slog.NewTextHandler(&text, nil))}.WithDefaults())
	require.NoError(t, err)
	t.Cleanup(func() { closes(t, d) })
	types := map[string]*Region{}
	for name, change := range map[string]func(*entity.Type){"bare": func(*entity.Type) {},
		"idle": func(t *entity.Type) { t.IdleAfter = time.Hour }, "most": func(t *entity.Type) { t.MaxActive = 1000 }} {
		typ := entity.Type{Name: name, Shards: 1, New: func(string, route.Fence) entity.Handler {
			return &plain{func([]byte) {}}
		}}
		change(&typ)
		types[name], err = d.Register(typ)
		require.NoError(t, err)
	}
	told := func(most int) (n int) {
		for name, r := range types {
			for i := range most {
				require.NoError(t, r.Tell(fmt.Sprint(i), nil))
			}
			require.Eventually(t, func() bool { return r.stats().Entities == uint64(most) }, 2*time.Minute, tellEvery, name)
		}
		tellCrowds(d, 3)
		require.True(t, d.logged.Flush(2*time.Minute))
		lines := text.Lines("nothing ends those that are idle")
		for _, line := range lines {
			require.Contains(t, line, "type=bare")
		}
		return len(lines)
	}
	for _, c := range []struct{ most, told int }{{2, 0}, {3, 1}, {3, 1}, {5, 1}, {6, 2}, {11, 2}, {12, 3}} {
		require.Equal(t, c.told, told(c.most), "with %d", c.most)
	}
}

// typedRegion is a region of which nothing but the name of its type is looked at.
func typedRegion(name string) *Region { return &Region{typ: entity.Type{Name: name}} }
