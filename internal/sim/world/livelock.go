// Livelock: how much happens in a second of virtual time, and which process did it, so that a world in which far more
// does than any law of its processes allows goes no further.

package world

import (
	"time"

	"github.com/kith-io/kith/peer"
)

// turns is what happens in the second of virtual time that goes on.
type turns struct {
	most  int           // so much may; zero: anything
	began time.Duration // the second
	nth   uint64        // which it is
	steps int
	over  bool              // there was more
	did   map[peer.ID]*work // by process, as far as processes did it
}

// work is what one process did of it.
type work struct {
	nth      uint64
	runs     int // of anything that it had planned, or that reached it, its ticks included
	ticks    int // of its control loop
	frames   int // control frames, and commands, that this took
	commands int
}

// of returns the work of a process in the second that goes on.
func (t *turns) of(id peer.ID) *work {
	k := t.did[id]
	if k == nil {
		k = &work{}
		if t.did == nil {
			t.did = map[peer.ID]*work{}
		}
		t.did[id] = k
	}
	if k.nth != t.nth {
		*k = work{nth: t.nth}
	}
	return k
}

// count counts a step, and reports whether there may be one more.
func (t *turns) count(now time.Duration) bool {
	if now-t.began >= time.Second {
		t.began, t.steps = now, 0
		t.nth++
	}
	t.steps++
	return t.most == 0 || t.steps <= t.most
}
