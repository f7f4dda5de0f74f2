// The check of timers: none comes before its time (ACC-4).

package check

import (
	"time"

	"github.com/kith-io/kith/internal/sim/world"
)

// Timers knows the timers that handlers have set and that have not come.
type Timers struct {
	due   map[uint32]time.Duration // by number, in the world's time
	last  uint32
	Early int
}

// Set notes a timer of d that a handler of p sets now, and returns its number. A process's clock may run fast: by as
// much the world's time falls short of d.
func (t *Timers) Set(p *world.Process, d time.Duration) (number uint32) {
	if t.due == nil {
		t.due = map[uint32]time.Duration{}
	}
	t.last++
	w := p.World
	t.due[t.last] = w.Now + d - d/1_000_000*time.Duration(w.Config.Drift) - time.Microsecond
	return t.last
}

// Unset forgets a timer that was not set after all, or that will not come.
func (t *Timers) Unset(number uint32) { delete(t.due, number) }

// Fired takes the message of a timer, and returns how late it came. ok is false when there is no such timer: it was
// cancelled, or came before.
func (t *Timers) Fired(p *world.Process, number uint32) (late time.Duration, ok bool) {
	due, ok := t.due[number]
	t.Unset(number)
	late = p.World.Now - due
	if ok && late < 0 {
		t.Early++
		p.World.Watcher.Violate(p, "timers", "a timer came %v before its time", -late)
	}
	return max(late, 0), ok
}
