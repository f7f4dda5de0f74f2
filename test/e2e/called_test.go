// Tests of asks to Inline entities of the same node; the asking goroutine calls their handlers while the loop is idle.

package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/incall"
)

// The caller that waits for the answer calls the handler: Ask, AskWithin, and Context.Ask of a Blocking handler.
// AskFunc waits for nobody, so its handler is called by the loop. The handler may tell itself as on a loop, and what
// must wait is refused there as on one (CARD-3).
func TestAskerCallsTheInlineHandler(t *testing.T) {
	t.Parallel()
	var inline, blocking *kith.Region
	at, asking := make(chan uintptr, 1), make(chan uintptr, 1)
	told := make(chan string, 1)
	cluster(t, 1, nil, func(_ int, n *kith.Node) {
		inline = register(t, n, kith.EntityType{Name: "inline", Mode: kith.Inline}, actor{
			receive: func(c *kith.Context, b []byte) error {
				switch string(b) {
				case "told":
					told <- c.ID
					return nil
				case "itself":
					if err := c.Tell("", c.ID, []byte("told")); err != nil {
						return err
					}
				case "waits":
					_, err := inline.Ask(context.Background(), "b", nil)
					return err
				default:
					at <- incall.Here()
				}
				return c.Reply(b)
			}})
		blocking = register(t, n, kith.EntityType{Name: "blocking"}, actor{
			receive: func(c *kith.Context, b []byte) error {
				asking <- incall.Here()
				got, err := c.Ask(time.Minute, "inline", "a", b)
				if err != nil {
					return err
				}
				return c.Reply(got)
			}})
	})
	ask := func() error { _, err := inline.Ask(within(t), "a", []byte("x")); return err }
	here := func() uintptr { return incall.Here() }
	for name, way := range map[string]struct {
		ask  func() error
		asks func() uintptr
	}{
		"Ask": {ask, here},
		"AskWithin": {func() error {
			_, err := inline.AskWithin(time.Minute, "a", []byte("x"), nil)
			return err
		}, here},
		"Context.Ask": {func() error { _, err := blocking.Ask(within(t), "b", []byte("x")); return err },
			func() uintptr { return <-asking }},
	} {
		eventually(t, func() bool { // the loop may have something to do just then
			require.NoError(t, way.ask(), name)
			return <-at == way.asks()
		}, "%s", name)
	}
	answered := make(chan error, 1)
	require.NoError(t, inline.AskFunc(time.Minute, "a", []byte("x"), func(_ []byte, err error) { answered <- err }))
	require.NoError(t, <-answered)
	require.NotEqual(t, here(), <-at)

	_, err := inline.Ask(within(t), "a", []byte("itself"))
	require.NoError(t, err)
	require.Equal(t, "a", <-told)
	_, err = inline.Ask(within(t), "a", []byte("waits"))
	require.ErrorIs(t, err, kith.ErrHandler)
	require.ErrorContains(t, err, "would block")
}
