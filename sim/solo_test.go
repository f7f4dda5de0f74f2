// Tests of the entity that is alone: what its handler does is recorded, in every mode, and time is the test's.

package sim_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim"
)

// auction takes bids, closes when none has come for a minute, and asks the bank for each.
type auction struct {
	best string
	ctx  context.Context
}

var errLow = errors.New("too low")

func (a *auction) Receive(c *entity.Context, bid []byte) error {
	if name, ok := c.Timer(); ok {
		c.Passivate()
		return c.Tell("hall", "main", []byte(name+" "+a.best))
	}
	a.ctx = c.Context()
	switch {
	case string(bid) == "boom":
		panic("a bug")
	case string(bid) <= a.best:
		return errLow
	}
	if c.Asked() {
		if _, err := c.With(c.Headers()).Ask(time.Second, "bank", "b", bid); err != nil {
			return err
		}
	}
	a.best = string(bid)
	if err := c.SetTimer("close", time.Minute, nil); err != nil || !c.Asked() {
		return err
	}
	return c.Reply([]byte("best " + c.ID + " " + c.Fence.String()))
}

func (a *auction) Stop(c *entity.Context) { a.ctx = c.Context() }

func auctionType() (entity.Type, *auction) {
	last := &auction{}
	return entity.Type{Name: "auction", New: func(string, route.Fence) entity.Handler {
		*last = auction{}
		return last
	}}, last
}

func bank(sim.Sent) ([]byte, error) { return nil, nil }

// TestEntityRecordsACall: replies, errors, tells, asks, timers set and cancelled, Passivate and Stop.
func TestEntityRecordsACall(t *testing.T) {
	typ, _ := auctionType()
	e := sim.NewEntity(t, typ, "a1", sim.EntityConfig{Answer: bank, Fence: route.MakeFence(7, 2, 3)})
	c := e.Do(sim.Message{Payload: []byte("10"), Headers: []byte("trace"), Ask: true, Within: time.Second})
	reply, err := c.Reply()
	require.NoError(t, err)
	require.Equal(t, "best a1 00000000000000070000000200000003", string(reply))
	require.Equal(t, []sim.Sent{{Type: "bank", ID: "b", Payload: []byte("10"), Headers: []byte("trace"), Ask: true,
		Within: time.Second}}, c.Sent)
	require.Equal(t, []sim.Timer{{Name: "close", In: time.Minute}}, e.Timers())
	require.Equal(t, e.Timers(), c.Set)

	require.Empty(t, e.Advance(59*time.Second))
	c = e.Tell([]byte("11"))
	require.Equal(t, []sim.Timer{{Name: "close", In: time.Second}}, c.Cancelled)
	require.Equal(t, []sim.Timer{{Name: "close", In: time.Minute}}, c.Set)
	c = e.Tell([]byte("11"))
	require.ErrorIs(t, c.Err, errLow)
	_, err = c.Reply()
	require.ErrorIs(t, err, entity.ErrNoAsk)
	_, err = e.Ask([]byte("11"))
	require.ErrorIs(t, err, route.ErrHandler)
	require.ErrorContains(t, err, errLow.Error())

	calls := e.Advance(2 * time.Minute)
	require.Len(t, calls, 1)
	require.Equal(t, []sim.Sent{{Type: "hall", ID: "main", Payload: []byte("close 11")}}, calls[0].Sent)
	require.Equal(t, []entity.StopReason{entity.StopPassivated}, calls[0].Stopped)
	require.Empty(t, calls[0].Cancelled)
	require.Empty(t, e.Timers())
	require.Equal(t, time.Date(2020, 1, 1, 0, 2, 59, 0, time.UTC), e.Now())
}

// TestEntityContexts: an ask's limit, a suspension and a stop end what the handler was given, on virtual time.
func TestEntityContexts(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			typ, a := auctionType()
			typ.Mode = mode
			e := sim.NewEntity(t, typ, "a1", sim.EntityConfig{Answer: bank})
			_, err := e.Do(sim.Message{Payload: []byte("1"), Ask: true, Within: time.Second}).Reply()
			require.Equal(t, mode != entity.Blocking, errors.Is(err, entity.ErrWouldBlock) || err != nil)
			at, ok := a.ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, e.Now().Add(time.Second), at)
			e.Advance(time.Second - 1)
			require.NoError(t, a.ctx.Err())
			e.Advance(1)
			require.ErrorIs(t, context.Cause(a.ctx), route.ErrTimeout)
			require.ErrorIs(t, a.ctx.Err(), context.DeadlineExceeded)

			e.Tell([]byte("2"))
			e.Suspend()
			require.ErrorIs(t, context.Cause(a.ctx), route.ErrSuspended)
			require.ErrorIs(t, e.Tell([]byte("3")).Refused, route.ErrSuspended)
			e.Resume()
			e.Tell([]byte("3"))
			before := a.ctx
			c := e.Stop(entity.StopLeaving, 5*time.Second)
			require.ErrorIs(t, context.Cause(before), route.ErrShardStopping)
			require.Equal(t, []entity.StopReason{entity.StopLeaving}, c.Stopped)
			at, _ = a.ctx.Deadline()
			require.Equal(t, e.Now().Add(5*time.Second), at)
			require.Equal(t, []sim.Timer{{Name: "close", In: time.Minute}}, c.Cancelled)

			require.Equal(t, 1, e.Tell([]byte("1")).Received, "another instance")
			require.Equal(t, route.MakeFence(1, 1, 2), e.Fence())
		})
	}
}

// TestEntityFails: panics, handlers that are not made, and answers that come later.
func TestEntityFails(t *testing.T) {
	typ, _ := auctionType()
	typ.RestartBackoff = time.Second
	e := sim.NewEntity(t, typ, "a1", sim.EntityConfig{})
	c := e.Do(sim.Message{Payload: []byte("boom"), Ask: true})
	_, err := c.Reply()
	require.ErrorIs(t, err, route.ErrPanic)
	require.Equal(t, entity.Panicked, c.Incidents[0].Kind)
	require.Zero(t, e.Tell([]byte("1")).Received, "it rests")
	calls := e.Advance(time.Second)
	require.Len(t, calls, 1)
	require.Equal(t, 1, calls[0].Received)

	typ.New = nil
	typ.Open = func(*entity.Context) (entity.Handler, error) { return nil, errLow }
	typ.RestartBackoff = 0
	e = sim.NewEntity(t, typ, "a1", sim.EntityConfig{})
	require.ErrorIs(t, e.Tell(nil).Refused, route.ErrNewFailed)
	_, err = e.Ask(nil)
	require.ErrorIs(t, err, route.ErrNewFailed)

	var token entity.ReplyToken
	typ.Open = func(*entity.Context) (entity.Handler, error) { return detached{&token}, nil }
	e = sim.NewEntity(t, typ, "a1", sim.EntityConfig{})
	c = e.Do(sim.Message{Ask: true})
	_, err = c.Reply()
	require.ErrorIs(t, err, route.ErrTimeout)
	require.NoError(t, token.Reply([]byte("late")))
	reply, err := c.Reply()
	require.NoError(t, err)
	require.Equal(t, "late", string(reply))
}

type detached struct{ token *entity.ReplyToken }

func (d detached) Receive(c *entity.Context, _ []byte) error {
	*d.token = c.Detach()
	return nil
}

func (detached) Stop(*entity.Context) {}

// quiet is a test that has not failed.
type quiet struct{ testing.TB }

func (quiet) Helper() {}

// A handler's unit test: no cluster, no sockets, no waiting.
func ExampleNewEntity() {
	var t quiet // *testing.T in a test
	typ, _ := auctionType()
	e := sim.NewEntity(t, typ, "lot-7", sim.EntityConfig{
		Answer: func(sim.Sent) ([]byte, error) { return []byte("granted"), nil }, // what the handler's Ask returns
	})
	reply, err := e.Ask([]byte("10"))
	fmt.Printf("%s, %v\n", reply, err)
	_, err = e.Ask([]byte("09"))
	fmt.Println(err)
	for _, c := range e.Advance(time.Minute) {
		fmt.Printf("told the %s %q, %v\n", c.Sent[0].Type, c.Sent[0].Payload, c.Stopped)
	}
	// Output:
	// best lot-7 00000000000000010000000100000001, <nil>
	// kith: handler returned an error: too low
	// told the hall "close 10", [passivated]
}
