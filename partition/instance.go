// Instances of hand-offs that do not buffer: the handler of a slot on this node, which gets one call at a time.

package partition

import (
	"context"
	"errors"
	"fmt"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/ground"
)

var (
	errOver = errors.New("partition: the instance has ended")                            // by one that has
	errRoom = errors.New("partition: the instance of the hand-off before has not ended") // it is tried again
)

// take waits for the turn, which give gives back.
func (i *instance) take() {
	select {
	case <-i.turn:
	default:
		i.p.hub.node.Wait(context.Background(), ground.Forever, i.turn)
	}
}

func (i *instance) give() { i.p.hub.node.Ring(i.turn) }

// make makes the handler by New, for the caller that has the turn.
func (i *instance) make() (err error) {
	if i.h != nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: it panicked: %.300v", ErrNotMade, v)
		}
	}()
	if i.h = i.p.cfg.New(i.slot, i.fence); i.h == nil {
		return ErrNotMade
	}
	return nil
}

// begin makes the handler, so that it lives before its first message.
func (i *instance) begin() error {
	if i.p.room.Load().has(i.slot) {
		return errRoom
	}
	i.take()
	defer i.give()
	if i.over {
		return errOver
	}
	err := i.make()
	if err != nil {
		i.fails()
	}
	return err
}

// forget takes an instance without a handler out again, so that it is begun anew. One that has the turn, or that a
// message has made meanwhile, stays.
func (i *instance) forget() {
	select {
	case <-i.turn:
	default:
		return
	}
	defer i.give()
	if i.h == nil {
		i.over = true
		i.p.held.drop(i)
	}
}

// fails ends an instance that has panicked, or could not be made, for the caller that has the turn: it is begun anew by
// the next message, or when its rest is over.
func (i *instance) fails() {
	i.h, i.over = nil, true
	if i.p.held.drop(i) {
		i.p.held.failed(i.slot, i.p.hub)
	}
}

// receive has the handler handle a message: errOver, ErrNotMade, or what it returns. A panic ends the instance.
func (i *instance) receive(c *kith.Context, payload []byte) error {
	i.take()
	defer i.give()
	if i.over {
		return errOver
	}
	if err := i.make(); err != nil {
		i.fails()
		return err
	}
	returned := false
	defer i.show(c)()
	defer func() {
		if !returned {
			i.fails()
		}
	}()
	i.p.count.handled.Add(1)
	err := i.h.Receive(c, payload)
	returned = true
	return plain(err)
}

// show makes a Context show the slot as the entity's id, and the fence of the instance, until the function that it
// returns is called.
func (i *instance) show(c *entity.Context) func() {
	id, f := c.ID, c.Fence
	c.ID, c.Fence = i.name, i.fence
	return func() { c.ID, c.Fence = id, f }
}

// stop ends the handler, and the instance if it goes for good. That is here until its last call has ended, and Stop:
// only then another one is made, on this node or on the one to which it goes.
func (i *instance) stop(c *kith.Context, good bool) {
	i.take()
	defer i.give()
	h := i.h
	i.h = nil
	if good {
		i.over = true
		defer i.p.held.drop(i) // also if Stop panics
	}
	if h == nil {
		return
	}
	defer i.show(c)()
	h.Stop(c)
}
