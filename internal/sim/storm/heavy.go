// Storms for the account: much more traffic, little room for it, slow handlers, and all the ways in which processes and
// shards end, so that messages meet every end that there is.

package storm

import (
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/sim/setup"
)

// purposeHeavy is the number of the generator of what heavy storms draw.
const purposeHeavy uint64 = 99

// heavy is what a storm for the account draws beyond any other; nil in these.
type heavy struct {
	s       *storm
	rng     *rand.Rand
	slow    int           // one Blocking call in so many takes its time,
	longest time.Duration // up to this
	crowd   int           // one burst in so many is a crowd
	pace    time.Duration // between two bursts of a host, at most
}

// drawHeavy draws the bounds of a heavy storm: tight ones, each in some of the seeds.
func (s *storm) drawHeavy(cfg *setup.Config) {
	rng := rand.New(rand.NewPCG(s.seed, purposeHeavy))
	h := &heavy{s: s, rng: rng, slow: 8 << rng.IntN(4), crowd: 3 + rng.IntN(10)}
	h.longest = between(rng, 50*time.Millisecond, 20*time.Second)
	h.pace = between(rng, 60*time.Millisecond, 400*time.Millisecond)
	d := &cfg.Data
	if rng.IntN(2) == 0 {
		d.ParkWait = between(rng, 500*time.Millisecond, 12*time.Second)
	}
	if rng.IntN(2) == 0 {
		d.ParkRecords, d.ParkBytes, d.ParkTotal = 4<<rng.IntN(5), 1<<10<<rng.IntN(5), 8<<10<<rng.IntN(5)
	}
	if rng.IntN(2) == 0 {
		d.MailboxBudget = 4 << 10 << rng.IntN(5)
	}
	if rng.IntN(2) == 0 {
		d.Window, d.LinkBuffer = 512<<rng.IntN(6), 4<<10<<rng.IntN(4)
	}
	if rng.IntN(3) > 0 {
		cfg.LeaveTimeout = between(rng, 200*time.Millisecond, 10*time.Second)
	}
	s.heavy = h
}

// plan has processes end again and again, in every way.
func (h *heavy) plan() {
	h.s.w.After(between(h.rng, 2*time.Second, 9*time.Second), func() {
		if h.s.quiet() {
			return
		}
		h.end()
		h.plan()
	})
}

// end ends one process, or something of it.
func (h *heavy) end() {
	s := h.s
	switch h.rng.IntN(8) {
	case 0, 1:
		h.close()
	case 2, 3:
		s.leaveOne()
	case 4:
		s.crashAndRestart()
	case 5:
		s.pauseOne()
	default:
		s.breakConnections()
	}
}

// close is an embedder that closes its node without leaving, and starts another one at the address.
func (h *heavy) close() {
	s := h.s
	p := s.victim()
	if p == nil {
		return
	}
	p.Close()
	s.laterDown(p, between(h.rng, 0, 12*time.Second))
	s.w.After(between(h.rng, 500*time.Millisecond, 15*time.Second), func() { s.restartHost(p.Index) })
}

// burst is storm.burst.
func (h *heavy) burst() (n, most int) {
	if h.rng.IntN(h.crowd) == 0 && !h.s.quiet() {
		return 60, 60 + h.rng.IntN(800)
	}
	if h.s.quiet() {
		return 1 + h.rng.IntN(4), 60 // a trial demands answers
	}
	return 1 + h.rng.IntN(12), 60
}

// rest is storm.rest.
func (h *heavy) rest() time.Duration {
	if h.s.quiet() {
		return between(h.rng, 300*time.Millisecond, time.Second)
	}
	return between(h.rng, 20*time.Millisecond, h.pace)
}

// dawdles makes a Blocking handler take its time, now and then.
func (h *heavy) dawdles(p *world.Process) {
	if h != nil && !h.s.quiet() && h.rng.IntN(h.slow) == 0 {
		p.Dawdle(between(h.rng, time.Millisecond, h.longest))
	}
}
