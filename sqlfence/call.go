// Call: the context under which the statements of a handler run.

package sqlfence

import (
	"context"
	"errors"
	"time"

	"github.com/kith-io/kith"
)

// handOn is how long what a handler has begun may go on once its shard is being stopped.
const handOn = 10 * time.Second

// steady returns the context of a handler's call for what it does in the database, and what ends that. The stop of the
// shard, as in a leave or a balance, does not end it for handOn: the next owner waits until the handler has returned,
// and a save that was broken off would be a failure that nobody has to have. All else that ends a call ends it too.
func steady(c *kith.Context) (context.Context, context.CancelFunc) {
	call := c.Context()
	ctx, end := context.WithCancelCause(context.WithoutCancel(call))
	unwatch := context.AfterFunc(call, func() {
		cause := context.Cause(call)
		if !errors.Is(cause, kith.ErrShardStopping) {
			end(cause)
			return
		}
		late := time.AfterFunc(handOn, func() { end(cause) })
		context.AfterFunc(ctx, func() { late.Stop() })
	})
	return ctx, func() {
		unwatch()
		end(context.Canceled)
	}
}
