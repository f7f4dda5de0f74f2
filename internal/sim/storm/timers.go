// Timers of a storm's entities: set, with names and without, cancelled, and never early.

package storm

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
)

// timerMark is the first byte of a timer's message; its number follows.
const timerMark = 2

// lastMark is the stop message of types that have one.
const lastMark = 3

// timers are those of all entities of a storm.
type timers struct {
	check check.Timers
	more  *rand.Rand // what handlers do with timers beyond the load's; nil: nothing
	late  entity.Lateness
	fired int
}

// ownTimers are what one instance knows of its timers: those that have not come.
type ownTimers struct{ list []ownTimer }

type ownTimer struct {
	number uint32
	name   string
}

// set sets a timer, which takes the place of another one of its name, and reports whether it was accepted.
func (o *ownTimers) set(t *timers, p *world.Process, c *entity.Context, name string, d time.Duration) bool {
	n := t.check.Set(p, d)
	if c.SetTimer(name, d, strconv.AppendUint([]byte{timerMark}, uint64(n), 10)) != nil {
		t.check.Unset(n)
		return false
	}
	o.forget(t, name)
	o.list = append(o.list, ownTimer{n, name})
	return true
}

// forget drops what is known of the timer of a name, and reports whether there was one.
func (o *ownTimers) forget(t *timers, name string) bool {
	i := slices.IndexFunc(o.list, func(x ownTimer) bool { return name != "" && x.name == name })
	if i < 0 {
		return false
	}
	t.check.Unset(o.list[i].number)
	o.list = slices.Delete(o.list, i, i+1)
	return true
}

// came takes the message of a timer: one of this instance, once, with its name, and not one that was cancelled.
func (o *ownTimers) came(t *timers, p *world.Process, c *entity.Context, payload []byte) {
	violate := func(what string) { p.World.Watcher.Violate(p, "timers", "a timer of %s/%s: %s", c.Type(), c.ID, what) }
	n, err := strconv.ParseUint(string(payload[1:]), 10, 32)
	if err != nil {
		violate("its message is not what was given")
		return
	}
	number := uint32(n)
	i := slices.IndexFunc(o.list, func(x ownTimer) bool { return x.number == number })
	if i < 0 {
		violate("it was cancelled, came before, or is that of another instance")
		return
	}
	if name, ok := c.Timer(); !ok || name != o.list[i].name {
		violate("it is not told from messages by its name")
	}
	o.list = slices.Delete(o.list, i, i+1)
	late, _ := t.check.Fired(p, number)
	t.fired++
	t.late.Add(late)
}

// play does something with timers, in the seeds that draw it.
func (o *ownTimers) play(t *timers, p *world.Process, c *entity.Context) {
	if t.more == nil {
		return
	}
	name := []string{"", "x", "y", "z"}[t.more.IntN(4)]
	switch t.more.IntN(12) {
	case 0, 1, 2:
		o.set(t, p, c, name, time.Duration(t.more.IntN(4000))*time.Millisecond)
	case 3:
		knew := o.forget(t, name)
		if c.CancelTimer(name) && !knew {
			p.World.Watcher.Violate(p, "timers", "%s/%s cancels a timer %q that it has not set", c.Type(), c.ID, name)
		}
	case 4:
		if t.more.IntN(4) == 0 {
			c.CancelTimers()
			for _, x := range o.list {
				t.check.Unset(x.number)
			}
			o.list = nil
		}
	}
}
