// Tests of what is said of messages that were refused: tables of every reason.

package plane

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Every reason that comes from a bound has a limit and words for what it counts, and no other reason has one.
func TestLimits(t *testing.T) {
	b := Bounds{Mailbox: 1, Budget: 2, Entities: 3, Queue: 4, Large: 5, Payload: 6, Kept: 7}
	seen := map[int]bool{}
	for why := range route.Reason(route.Reasons + 2) {
		limit := b.Limit(why)
		require.Equal(t, why.Unit() != "", limit != 0, why)
		if limit != 0 {
			require.False(t, seen[limit], why)
			seen[limit] = true
		}
	}
	require.Len(t, seen, 7, "each bound is that of one reason")
	require.Zero(t, (&Bounds{}).Limit(route.MailboxFull), "the type is not known")
}

// The text of a refused ask is read as it was written; one that is cut short, or a handler's own, has no limit.
func TestLimitText(t *testing.T) {
	require.Equal(t, "65536 bytes wait for the entity", string(AppendLimit(nil, 65536, route.MailboxFull)))
	require.Empty(t, AppendLimit(nil, 0, route.MailboxFull))
	for why := range route.Reason(route.Reasons) {
		if why.Unit() == "" {
			continue
		}
		for _, limit := range []int{1, 9, 10, 1 << 40} {
			text := AppendLimit([]byte{}, limit, why)
			require.Equal(t, limit, ParseLimit(text))
			for n := range text {
				if got := ParseLimit(text[:n]); got != 0 {
					require.Equal(t, limit, got, "%q", text[:n])
				}
			}
		}
	}
	for _, text := range []string{"", "7", " 7", "x 7", "-7 x", "7x 7", "99999999999999999999 x"} {
		require.Zero(t, ParseLimit([]byte(text)), text)
	}
	rapid.Check(t, func(t *rapid.T) {
		limit := ParseLimit(rapid.SliceOf(rapid.SampledFrom([]byte("0123456789 x\x00\xff"))).Draw(t, "text"))
		require.GreaterOrEqual(t, limit, 0)
		require.LessOrEqual(t, limit, math.MaxInt64)
	})
}

// The error of an ask names the node that was asked, or the bound that it met, here or there; a handler's own text goes
// as it is.
func TestBlameFor(t *testing.T) {
	for why := route.OK + 1; why < route.Reason(route.Reasons); why++ {
		bound := why.Unit() != ""
		for _, c := range []struct {
			there bool
			text  string
			want  Blame
			limit int
		}{
			{false, "", BlameText, 0}, {false, "words", BlameText, 0}, {false, "7 bytes", BlameText, 0},
			{true, "", BlamePeer, 0}, {true, "words", BlameText, 0}, {true, "7 bytes", BlameText, 0},
		} {
			switch {
			case bound && !c.there && c.text != "words":
				c.want = BlameHere
			case bound && c.text == "":
				c.want = BlameThat // a node of wire version 1 tells no limit
			case bound && c.text == "7 bytes":
				c.want, c.limit = BlameThat, 7
			}
			blame, limit := BlameFor(why, c.there, []byte(c.text))
			require.Equal(t, c.want, blame, "%v %+v", why, c)
			require.Equal(t, c.limit, limit, "%v %+v", why, c)
		}
	}
}

// No handler was called for an ask that went nowhere, whatever its error; one with an answer that met a bound was
// handled, and says so by words of its own.
func TestRan(t *testing.T) {
	for why := route.OK + 1; why < route.Reason(route.Reasons); why++ {
		require.False(t, route.MayHaveRun(Ran(why, false, nil, why.Err())), why)
		require.Equal(t, route.MayHaveRun(why.Err()), route.MayHaveRun(Ran(why, true, nil, why.Err())), why)
		require.Equal(t, route.MayHaveRun(why.Err()), route.MayHaveRun(Ran(why, true, []byte("7 bytes"), why.Err())), why)
		said := Ran(why, true, []byte("the reply: no room"), why.Err())
		require.Equal(t, why != route.NewFailed && why != route.BadPayload, route.MayHaveRun(said), why)
		require.ErrorIs(t, said, why.Err())
	}
}

// Of a large message its transfer tells, of an ask its answer, and only of a tell the report: never two of them.
func TestHearerOf(t *testing.T) {
	for flags := range uint8(255) {
		want := NotifyEmbedder
		if flags&wire.FlagAsk != 0 {
			want = NotifyAsker
		}
		if flags&wire.FlagBulk != 0 {
			want = NotifyTransfer
		}
		require.Equal(t, want, NotifyTargetOf(flags), "%b", flags)
	}
}
