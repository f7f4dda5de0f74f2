// Tests of what receivers remember, and of the types that Consumer makes.

package delivery

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
)

// TestWhatIsHandled: a receiver handles what follows what it has had, and says of all else what it is (SHD-10).
func TestWhatIsHandled(t *testing.T) {
	old, now, later := route.MakeFence(1, 1, 1), route.MakeFence(2, 1, 1), route.MakeFence(3, 1, 1)
	for name, c := range map[string]struct {
		n    note
		was  had
		want outcome
	}{
		"the first one":                 {note{fence: now, number: 7}, had{}, outcomeHandled},
		"the next one":                  {note{fence: now, number: 8, before: 7}, had{now, 7}, outcomeHandled},
		"the next one, all before gone": {note{fence: now, number: 9}, had{now, 7}, outcomeHandled},
		"of the next owner":             {note{fence: later, number: 8}, had{now, 7}, outcomeHandled},
		"the same one":                  {note{fence: now, number: 7}, had{now, 7}, outcomeHad},
		"the same one, next owner":      {note{fence: later, number: 7}, had{now, 7}, outcomeHad},
		"an earlier one":                {note{fence: now, number: 6}, had{now, 7}, outcomeHad},
		"one is between":                {note{fence: now, number: 9, before: 8}, had{now, 7}, outcomeGap},
		"one is before the first":       {note{fence: now, number: 9, before: 8}, had{}, outcomeGap},
		"of the owner before":           {note{fence: old, number: 8}, had{now, 7}, outcomeStale},
		"had, of the owner before":      {note{fence: old, number: 7}, had{now, 7}, outcomeStale},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, judge(&c.n, c.was)) })
	}
}

// TestOwnersAreRemembered: a receiver remembers the latest owner that it has heard of, whatever it said of its message,
// and what it has had of the one before (SHD-10).
func TestOwnersAreRemembered(t *testing.T) {
	old, now := route.MakeFence(1, 1, 1), route.MakeFence(2, 1, 1)
	h := &consumer{}
	is := func(want outcome, n note) {
		t.Helper()
		require.Equal(t, want, h.takes(&n))
		if want == outcomeHandled {
			h.handled(&n)
		}
	}
	is(outcomeHandled, note{fence: old, number: 6})
	is(outcomeHandled, note{fence: old, number: 7, before: 6})
	is(outcomeGap, note{fence: now, number: 9, before: 8})
	is(outcomeStale, note{fence: old, number: 8, before: 7})
	is(outcomeHad, note{fence: now, number: 6})
	is(outcomeHad, note{fence: now, number: 7, before: 6})
	is(outcomeHandled, note{fence: now, number: 8, before: 7})
	is(outcomeHandled, note{fence: now, number: 9})
	is(outcomeHandled, note{queue: "other", fence: old, number: 1})
	is(outcomeHandled, note{shard: 1, fence: old, number: 1})
	is(outcomeHad, note{fence: now, number: 9})
	is(outcomeStale, note{fence: old, number: 10})
}

// TestSourcesHaveABound: a receiver remembers so many sources; one more has it begin anew, one that it knows does not
// (SHD-10).
func TestSourcesHaveABound(t *testing.T) {
	h := &consumer{}
	for n := range maxKnown {
		h.keeps(source{"q", route.ShardID(n)}, had{number: 1})
	}
	h.keeps(source{"q", 0}, had{number: 2})
	require.Len(t, h.had, maxKnown)
	require.EqualValues(t, 2, h.had[source{"q", 0}].number)
	h.keeps(source{"other", 0}, had{number: 3})
	require.Len(t, h.had, 1)
	require.EqualValues(t, 3, h.had[source{"other", 0}].number)
}

// plain is a handler, and rich one with state.
type plain struct{}

// Receive does nothing.
func (plain) Receive(*kith.Context, []byte) error { return nil }

// Stop does nothing.
func (plain) Stop(*kith.Context) {}

type rich struct{ plain }

// HandOver hands something over.
func (rich) HandOver(*kith.Context) ([]byte, error) { return []byte("state"), nil }

// TakeUp fails.
func (rich) TakeUp(_ *kith.Context, state []byte) error { return fmt.Errorf("had %s", state) }

// TestConsumersOfAllKinds: New and Open make handlers that acknowledge, with state if theirs have it; none where theirs
// make none (SHD-10).
func TestConsumersOfAllKinds(t *testing.T) {
	errNo := errors.New("no store")
	for name, c := range map[string]struct {
		made  kith.Handler
		fails error
	}{"plain": {made: plain{}}, "rich": {made: rich{}}, "none": {}, "an error": {fails: errNo}} {
		t.Run(name, func(t *testing.T) {
			check := func(h kith.Handler) {
				t.Helper()
				if c.made == nil {
					require.Nil(t, h)
					return
				}
				_, isPlain := h.(*consumer)
				s, isRich := h.(kith.Stateful)
				require.Equal(t, name == "plain", isPlain)
				require.Equal(t, name == "rich", isRich)
				if isRich {
					_, is := h.(*statefulConsumer)
					require.True(t, is)
					b, err := s.HandOver(nil)
					require.NoError(t, err)
					require.Equal(t, "state", string(b))
					require.EqualError(t, s.TakeUp(nil, []byte("x")), "had x")
				}
			}
			if c.fails == nil {
				made := func(string, kith.Fence) kith.Handler { return c.made }
				check(Consumer(kith.EntityType{New: made}).New("", kith.Fence{}))
			}
			opens := func(*kith.Context) (kith.Handler, error) { return c.made, c.fails }
			h, err := Consumer(kith.EntityType{Open: opens}).Open(nil)
			require.Equal(t, c.fails, err)
			check(h)
		})
	}
}
