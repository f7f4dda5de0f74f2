// Sleeps that the monotonic clock does not show, as of a machine suspended to memory, or a virtual machine that stood
// still; and stalls that it shows (MEM-10).
//
// Where the system counts its own sleeps (Linux: CLOCK_BOOTTIME) they are part of this node's time: it jumps, as after
// any other pause. A virtual machine that its host held shows nothing at all inside, until the wall clock is set right:
// a step of it by more than a step may be late is taken for a sleep. If it was none, others confirm the node and it
// goes on.

package driver

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/runtime/exec"
)

// sleptLeast is the shortest sleep that is looked at; two clocks are never read at one moment.
const sleptLeast = 100 * time.Millisecond

// clocks are those that the monotonic clock is compared with.
type clocks struct {
	boot func() (time.Duration, bool)       // time that counts the machine's sleeps; false: there is no such clock
	wall func() (wall, monotonic time.Time) // both read as one
}

// sleepWatch compares the monotonic clock with two others. look may be called by several goroutines.
type sleepWatch struct {
	clocks
	start  time.Time
	base   time.Duration // boot less monotonic at the start
	clock  *exec.Clock   // to which sleeps are added
	ahead  atomic.Int64  // of the wall clock over this node's time, at the last look
	steps  atomic.Int64  // of the wall clock that the node does not know of yet
	stalls stallWatch

	leapt atomic.Int64 // sum of all steps of the wall clock by sleptLeast and more
}

func (s *sleepWatch) init(start time.Time, clock *exec.Clock) {
	s.clock = clock
	if s.boot == nil {
		s.boot = bootTime
	}
	if s.wall == nil {
		s.wall = func() (wall, monotonic time.Time) {
			t := time.Now()
			return t.Round(0), t
		}
	}
	s.start = start
	for range 3 { // the largest, as a goroutine that is held up between the two readings sees too little
		if boot, ok := s.boot(); ok {
			s.base = max(s.base, boot-time.Since(start))
		}
	}
	s.ahead.Store(int64(s.aheadNow()))
}

func (s *sleepWatch) aheadNow() time.Duration {
	wall, monotonic := s.wall()
	return wall.Sub(s.start.Round(0)) - monotonic.Sub(s.start) - s.clock.Slept()
}

// look compares the clocks and reports whether the wall clock has stepped by more than limit since the last look.
func (s *sleepWatch) look(limit time.Duration) bool {
	if boot, ok := s.boot(); ok { // first, so that a goroutine that is held up here sees too little, never too much
		grown := boot - time.Since(s.start) - s.base
		for old := s.clock.Slept(); grown-old >= sleptLeast; old = s.clock.Slept() {
			s.clock.SetSlept(old, grown)
		}
	}
	now := int64(s.aheadNow())
	step := now - s.ahead.Swap(now)
	if step >= int64(sleptLeast) {
		s.leapt.Add(step)
	}
	if step <= int64(limit) {
		return false
	}
	s.steps.Add(step)
	return true
}

// doubtful reports whether the wall clock has moved otherwise than the node's time since the last look, as it has when
// the machine slept. It reads one clock.
func (s *sleepWatch) doubtful() bool {
	by := s.aheadNow() - time.Duration(s.ahead.Load())
	return by >= sleptLeast || by <= -sleptLeast
}

// exactly is the time for what must not be early: also when the machine woke a moment ago, and nobody has looked since.
func exactly(d *Driver) time.Duration {
	if d.sleeps.doubtful() {
		d.lookForSleep()
	}
	return d.now()
}

// lookForSleep is called by the ticker, at each turn of the control goroutine, and where a timer is set: the first to
// run after a sleep closes the gate.
func (d *Driver) lookForSleep() {
	limit := d.exec.Gate.Limit()
	if d.control.session.on || d.control.tenure.on {
		limit = sleptLeast // neither a store nor other members wait for a machine that stood still
	}
	if d.sleeps.look(limit) {
		d.exec.Gate.Gap()
		d.inbox.post(func() {}) // the next step tells the node
	}
}

// tellSlept tells the node of a step of the wall clock, before anything else of this step. Control goroutine.
func (d *Driver) tellSlept(now time.Duration) {
	if d.sleeps.steps.Load() == 0 {
		return
	}
	by := time.Duration(d.sleeps.steps.Swap(0))
	d.log.Warn("the wall clock has stepped, as after a sleep of the machine", "by", by)
	// Never refused; its effects come out with those of the verb that follows.
	_ = d.control.node.Do(now, node.SleptCommand{For: by})
}

const (
	// stallWindow is how long a stall is remembered, at least, and twice as long at most.
	stallWindow = 5 * time.Minute
	// stallWarnings is how often such a warning is repeated at most.
	stallWarnings = 10 * time.Minute
)

// stallWatch measures by how much sleeps of the control goroutine were too long. Its writer is that goroutine.
type stallWatch struct {
	tolerated   time.Duration // the pause that the failure detectors bear; zero: not known
	now, before atomic.Int64  // the longest since from, and in the window before, in nanoseconds
	from        time.Duration // when the window began
	warned      time.Duration // zero: never
}

// note takes one sleep that should have ended at due and ended at now. It reports whether that deserves a warning: it
// took more than half of what the others bear, and nobody was warned of one lately.
func (s *stallWatch) note(due, now time.Duration) (stall time.Duration, warn bool) {
	if now-s.from >= stallWindow {
		last := s.now.Load()
		if now-s.from >= 2*stallWindow {
			last = 0
		}
		s.before.Store(last)
		s.now.Store(0)
		s.from = now
	}
	if stall = max(0, now-due); int64(stall) > s.now.Load() {
		s.now.Store(int64(stall))
	}
	if s.tolerated == 0 || stall <= s.tolerated/2 || s.warned != 0 && now-s.warned < stallWarnings {
		return stall, false
	}
	s.warned = now
	return stall, true
}

// longest returns the longest stall of the last minutes.
func (s *stallWatch) longest() time.Duration {
	return time.Duration(max(s.now.Load(), s.before.Load()))
}

// ends takes the end of a sleep of the control goroutine, and warns when that is worth it.
func (s *stallWatch) ends(log *slog.Logger, due, now time.Duration) {
	if stall, warn := s.note(due, now); warn {
		log.Warn("this node stood still for a good part of what the other members bear; more, and they give it up "+
			"(Config.Patience)", "stall", stall.Round(time.Millisecond), "borne", s.tolerated)
	}
}
