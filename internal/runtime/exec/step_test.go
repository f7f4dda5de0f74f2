// Tests of the gate between the calls that one message takes.

package exec

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// waits reports whether the run of an entity waits at the gate.
func (x *bare) waits() bool {
	x.Gate.mu.Lock()
	defer x.Gate.mu.Unlock()
	return len(x.Gate.resting) > 0
}

// stepper notes what is called of it, and with which cause its context has ended.
type stepper struct{ called chan error }

func (h stepper) Receive(c *entity.Context, _ []byte) error {
	h.called <- context.Cause(c.Context())
	c.Passivate()
	return nil
}

func (h stepper) Stop(c *entity.Context) { h.called <- context.Cause(c.Context()) }

// A node that suspends itself while a Blocking entity is made, or handles the message for which it passivates, calls
// neither its Receive nor its Stop before it goes on; they have contexts that live then (MEM-10).
func TestGateBetweenTheCallsOfAMessage(t *testing.T) {
	called, entered, leave := make(chan error, 4), make(chan struct{}), make(chan struct{})
	typ := typeOf(entity.Blocking, 1, nil)
	typ.New = nil
	typ.Open = func(*entity.Context) (entity.Handler, error) {
		entered <- struct{}{}
		<-leave
		return stepper{called}, nil
	}
	x := newBare(t, typ)
	require.Equal(t, route.OK, x.send("a", nil))
	<-entered
	x.Gate.Order()
	close(leave)
	eventually(t, func() bool { return x.waits() || len(called) > 0 })
	require.Empty(t, called, "Receive was called while the node was suspended")
	x.Gate.Judge(false, false)
	require.NoError(t, <-called)
	require.NoError(t, <-called, "Stop")
}

// lingerer passivates in a call that takes as long as the test wants.
type lingerer struct {
	stepper
	entered, leave chan struct{}
}

func (h lingerer) Receive(c *entity.Context, _ []byte) error {
	c.Passivate()
	close(h.entered)
	<-h.leave
	return nil
}

// The same for the Stop of an entity that passivates (MEM-10).
func TestGateBeforeTheStopOfAPassivation(t *testing.T) {
	h := lingerer{stepper{make(chan error, 4)}, make(chan struct{}), make(chan struct{})}
	typ := typeOf(entity.Blocking, 1, nil)
	typ.New = func(string, route.Fence) entity.Handler { return h }
	x := newBare(t, typ)
	require.Equal(t, route.OK, x.send("a", nil))
	<-h.entered
	x.Gate.Order()
	close(h.leave)
	eventually(t, func() bool { return x.waits() || len(h.called) > 0 })
	require.Empty(t, h.called, "Stop was called while the node was suspended")
	x.Gate.Judge(false, false)
	require.NoError(t, <-h.called)
}
