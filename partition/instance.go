// Instances of hand-offs that do not buffer: the handler of a slot on this node, which gets one call at a time.

package partition

import (
	"errors"
	"fmt"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/entity"
)

// errOver is returned by an instance that has ended.
var errOver = errors.New("partition: the instance has ended")

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
	i.turn <- struct{}{}
	defer func() { <-i.turn }()
	if i.over {
		return errOver
	}
	return i.make()
}

// receive has the handler handle a message: errOver, ErrNotMade, or what it returns. A panic ends the handler; the next
// message makes another one.
func (i *instance) receive(c *kith.Context, payload []byte) error {
	i.turn <- struct{}{}
	defer func() { <-i.turn }()
	if i.over {
		return errOver
	}
	if err := i.make(); err != nil {
		return err
	}
	returned := false
	defer i.show(c)()
	defer func() {
		if !returned {
			i.h = nil
		}
	}()
	i.p.count.handled.Add(1)
	err := i.h.Receive(c, payload)
	returned = true
	return plain(err)
}

// show makes a Context show the slot as the entity's id until the function that it returns is called.
func (i *instance) show(c *entity.Context) func() {
	id := c.ID
	c.ID = i.name
	return func() { c.ID = id }
}

// stop ends the handler, and the instance if it goes for good.
func (i *instance) stop(c *kith.Context, good bool) {
	i.turn <- struct{}{}
	defer func() { <-i.turn }()
	h := i.h
	i.h, i.over = nil, i.over || good
	if h == nil {
		return
	}
	defer i.show(c)()
	h.Stop(c)
}
