// Tests of answers with an identity.

package route_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

var (
	errClosed = route.NewError("account-closed", route.KindConflict, "the account is closed")
	errOther  = route.NewError("other", route.KindConflict, "the account is closed")
)

// asked returns what an asker gets when the handler returned err, on a node of a wire version.
func asked(err error, version uint16) error {
	why, payload := route.HandlerFailed, []byte(err.Error())
	if b, ok := route.Named(err, payload); ok {
		why, payload = route.HandlerNamed, b
	}
	return route.ReplyError(why.SpokenWith(version, payload))
}

// The code and the kind of a handler's error reach its asker, through nodes between them too; an older node gets the
// text.
func TestErrorsKeepTheirIdentity(t *testing.T) {
	err := fmt.Errorf("anna: %w", errClosed)
	for _, got := range []error{asked(err, 9), asked(asked(err, 9), 9), fmt.Errorf("more: %w", asked(err, 9))} {
		require.ErrorIs(t, got, route.ErrHandler)
		require.ErrorIs(t, got, errClosed)
		require.NotErrorIs(t, got, errOther)
		require.NotErrorIs(t, got, route.ErrTimeout)
		require.True(t, route.MayHaveRun(got))
		require.Equal(t, 1, strings.Count(got.Error(), "kith: handler returned an error: "), got.Error())
		var named *route.Error
		require.ErrorAs(t, got, &named)
		require.Equal(t, "account-closed", named.Code)
		require.Equal(t, route.KindConflict, named.Kind)
		require.Equal(t, "anna: the account is closed", named.Text)
	}
	for _, got := range []error{asked(err, 8), asked(errors.New("plain"), 9)} {
		require.ErrorIs(t, got, route.ErrHandler)
		require.NotErrorIs(t, got, errClosed)
	}
	require.EqualError(t, asked(err, 8), "kith: handler returned an error: anna: the account is closed")
	require.EqualError(t, asked(asked(errors.New("plain"), 9), 9), "kith: handler returned an error: plain")
}

// The error of an ask of the handler's own stays what it was: its asker may match it, and repeat what has certainly
// not run.
func TestNestedAsksKeepTheirErrors(t *testing.T) {
	for r := route.Reason(1); int(r) < route.Reasons; r++ {
		inner := r.Err()
		if r == route.BadPayload || r == route.HandlerFailed || r == route.HandlerNamed {
			require.Equal(t, route.HandlerFailed, route.ReasonOf(asked(inner, 9)), r)
			continue
		}
		for _, inner := range []error{inner, route.NotRun(inner), route.Ran(inner), fmt.Errorf("b: %w", inner)} {
			got := asked(fmt.Errorf("a: %w", inner), 9)
			require.ErrorIs(t, got, r.Err())
			require.ErrorIs(t, got, route.ErrHandler)
			require.Equal(t, route.MayHaveRun(inner), route.MayHaveRun(got), r)
			require.Equal(t, route.MayHaveRun(inner), route.MayHaveRun(asked(got, 9)), r)
		}
	}
	both := asked(fmt.Errorf("%w: %w", errClosed, route.NotRun(route.ErrPeerLost)), 9)
	require.ErrorIs(t, both, errClosed)
	require.ErrorIs(t, both, route.ErrPeerLost)
	require.False(t, route.MayHaveRun(both))
}

// The bytes stand.
func TestNamedGoldenBytes(t *testing.T) {
	b, ok := route.Named(fmt.Errorf("%w: %w", errClosed, route.ErrLinkFull), []byte("no room"))
	require.True(t, ok)
	require.Equal(t, "030008000e6163636f756e742d636c6f7365646e6f20726f6f6d", hex.EncodeToString(b))
	require.Equal(t, "no room", string(route.NamedText(b)))
}

// What was turned away before its handler has not run, with its identity or without, also when it is handed on; an
// older node gets the text.
func TestTurnedAway(t *testing.T) {
	for _, err := range []error{errors.New("who are you"), fmt.Errorf("bob: %w", errClosed), route.ErrTimeout} {
		text := []byte(err.Error())
		b := route.TurnedAway(err, text)
		got := route.ReplyError(route.HandlerNamed.SpokenWith(9, b))
		require.False(t, route.MayHaveRun(got))
		require.ErrorIs(t, got, route.ErrHandlerNamed)
		require.NotErrorIs(t, got, route.ErrTimeout, "it is the text of another message's")
		require.Equal(t, errors.Is(err, errClosed), errors.Is(got, errClosed))
		require.ErrorContains(t, got, err.Error())
		handedOn := asked(fmt.Errorf("again: %w", got), 9)
		require.False(t, route.MayHaveRun(handedOn))
		require.Equal(t, errors.Is(err, errClosed), errors.Is(handedOn, errClosed))
		old := route.ReplyError(route.HandlerNamed.SpokenWith(8, b))
		require.True(t, route.MayHaveRun(old))
		require.ErrorContains(t, old, err.Error())
	}
	require.False(t, route.MayHaveRun(asked(route.NotRun(errors.New("by an Around here")), 9)))
	b := route.TurnedAway(errClosed, []byte("no"))
	require.Equal(t, "030000000e6163636f756e742d636c6f7365646e6f", hex.EncodeToString(b))
}

// Codes are cut to their bounds, and stay text.
func TestCodes(t *testing.T) {
	for given, want := range map[string]string{"": "_", "a\nb": "a_b", "\xffa": "_a",
		strings.Repeat("a", 100): strings.Repeat("a", 64), strings.Repeat("ä", 33): strings.Repeat("ä", 32)} {
		e := route.NewError(given, route.KindDenied, "")
		require.Equal(t, want, e.Code)
		require.ErrorIs(t, asked(e, 9), e)
		require.Equal(t, want, e.Error())
	}
}

// What is no payload of a handler's error is a text.
func FuzzNamed(f *testing.F) {
	b, _ := route.Named(errClosed, []byte("text"))
	f.Add(b)
	f.Add([]byte{200, 9, 255, 255, 65})
	f.Fuzz(func(t *testing.T, b []byte) {
		err := route.ReplyError(route.HandlerNamed, b)
		require.ErrorIs(t, err, route.ErrHandler)
		require.LessOrEqual(t, len(route.NamedText(b)), len(b))
		var named *route.Error
		if errors.As(err, &named) {
			require.LessOrEqual(t, len(named.Code), route.MaxErrorCode)
			require.Less(t, named.Kind, route.ErrorKind(8))
		}
		again := asked(err, 9)
		require.ErrorIs(t, again, route.ErrHandler)
		require.Equal(t, route.MayHaveRun(err), route.MayHaveRun(again))
	})
}
