// Trials of a storm: a cluster that is well meets a few faults that are aimed at the decision about the first of them,
// and then is left alone. Nobody helps it: a healthy core must live, come to rest and answer.

package storm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/sim/setup"
)

// How long a trial waits for a cluster that is well, and for the answers of every shard beyond the takeover time.
const (
	trialReady = 40 * time.Second
	trialHomes = 30 * time.Second
)

// trial is the last thing that a storm does before its calm. Its random choices are its own.
type trial struct {
	s    *storm
	rng  *rand.Rand
	pool []int  // the hosts that are met
	cuts []*cut // that hold
	aid  bool   // supervisors go on working
	last time.Duration
}

// cut is a part of the wires that is cut: between groups of hosts, or between two hosts.
type cut struct{ between func(a, b int) bool }

// drawTrial decides whether the seed has a trial; its storm is shorter then.
func (s *storm) drawTrial() {
	rng, ok := s.draw(OffTrials, 1)
	if !ok || !s.resolves() || s.w.Config.Resolver.Strategy == node.ResolverDownAll ||
		rng.IntN(5) >= 3 && s.flapping == nil {
		return
	}
	s.trial = &trial{s: s, rng: rng, aid: rng.IntN(3) == 0}
	s.stormy /= 3
}

// run makes the cluster well, aims the faults, and waits until all must be over.
func (t *trial) run() {
	s, w := t.s, t.s.w
	s.still = true
	s.w.Leases.Sessions.Away = nil
	w.Net.Heal()
	s.check.Core.Links()
	w.Net.Loss, w.Net.Raw = min(w.Net.Loss, check.GoodLoss), setup.RawNetwork{}
	for i, h := range w.Hosts {
		if h.Process == nil || !h.Process.Alive {
			s.restartIn(i, t.between(0, time.Second))
		} else {
			h.Process.Resume()
		}
	}
	undrain(s)
	s.note("a trial begins")
	core := &s.check.Core
	seated := func() bool { // the electorate may have to be founded yet
		held := func(p *world.Process) bool { return p.Held() }
		return w.Config.TenureVoters == 0 || !slices.ContainsFunc(w.Running(), held)
	}
	if !w.Until(trialReady, func() bool { return s.pending == 0 && !s.leaving() && w.Converged() && seated() }) {
		return // whether it comes right is for the calm to say
	}
	for _, p := range w.Running() {
		p.Doomed = false // all hold it for a member, as it holds them
	}
	w.Advance(check.Steady + t.between(2*time.Second, 4*time.Second))
	if !core.Settled() {
		return
	}
	s.deserted = !t.aid
	t.choose()
	if s.flapping != nil {
		t.flap()
	} else {
		t.leave()
		t.aim()
	}
	w.Advance(t.last + time.Second)
	w.Advance(w.Takeover() + check.ProgressBound + 2*time.Second)
	if group := core.Obliged(); len(group) > 0 {
		t.demandHomes(group, w.Takeover()+trialHomes)
	}
	s.still, s.deserted, core.Steadfast = false, false, false
	t.cuts = nil
	t.rewire()
}

// demandHomes is that of the storm, while its load goes on. Then nobody is promised an answer in time where large
// messages are sent: one entity to which more is sent than it handles, or that rests because the store of its lease
// does not answer, keeps all the room that its node has for them. Others to that node wait for room until they are
// given up, one after the other, and whatever is sent to their shards waits behind them. So a shard that did not
// answer, and lives where its asker sends to it, is asked once more when the load has ended. One that has no home, or
// none that its asker knows, has broken its promise.
func (t *trial) demandHomes(from []*world.Process, bound time.Duration) {
	s := t.s
	left := s.ask(shardsOf(s, from), from, bound)
	homeless := func(a *asked) bool { return !a.housed() }
	if len(left) > 0 && s.large && !slices.ContainsFunc(left, homeless) {
		s.note("%d shards at their homes are asked without load: %s", len(left), left[0])
		s.ending = true // the calm comes next
		left = s.ask(left, from, bound)
	}
	silent(s, left, bound)
}

// aim plans the faults: one now, one or two more when the first is about to be decided. Most of what can end does so
// about then, too.
func (t *trial) aim() {
	kinds := []func(at, d time.Duration){t.crash, t.crash, t.split, t.split, t.pause, t.pause, t.pause, t.part, t.part,
		t.stick}
	at := time.Duration(0)
	for range 2 + t.rng.IntN(2) {
		d := time.Hour
		if t.rng.IntN(3) > 0 {
			d = t.aimed()
		}
		kinds[t.rng.IntN(len(kinds))](at, d)
		t.last = max(t.last, at)
		if d < time.Hour {
			t.last = max(t.last, at+d)
		}
		at = t.aimed()
	}
	if t.rng.IntN(3) == 0 {
		t.stutter()
	}
}

// aimed draws when something happens after a fault: when it is about to be decided, while the decision is carried out,
// or at any time until all would have gone.
func (t *trial) aimed() time.Duration {
	stable := stable(t.s)
	noticed := 300 * time.Millisecond // a process that dies; silence takes longer
	if t.rng.IntN(2) == 0 {
		noticed = t.between(2*time.Second, 5*time.Second)
	}
	decided := noticed + stable + min(2*time.Second, stable/4)
	switch t.rng.IntN(3) {
	case 0:
		return t.between(decided-2*time.Second, decided+time.Second)
	case 1:
		return t.between(decided-stable/2, decided+stable)
	}
	return t.between(500*time.Millisecond, noticed+stable*7/4+2*time.Second)
}

func (t *trial) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(t.rng.Int64N(int64(hi-lo)+1))
}

// at plans something and says what.
func (t *trial) at(d time.Duration, what string, do func()) {
	t.s.w.After(d, func() {
		if what != "" {
			t.s.note("%s", what)
		}
		do()
	})
}

// choose draws the processes that the faults meet: mostly as many as leave others that have to live without them.
func (t *trial) choose() {
	core, n := &t.s.check.Core, len(t.s.w.Hosts)
	for range poolTries {
		t.pool = t.rng.Perm(n)[:1+t.rng.IntN(max((n-1)/2, 1))]
		if core.LivesWithout(t.pool) {
			break
		}
	}
	if t.rng.IntN(4) == 0 {
		t.pool = t.rng.Perm(n)
	}
}

// leave makes one that no fault meets leave, at any time until the first fault must have been decided: a rolling
// restart does not wait for that. It counts until all may know that it is gone, so it is drawn like a part of the core.
func (t *trial) leave() {
	rng, ok := t.s.draw(OffLeaves, 3)
	host := rng.IntN(len(t.s.w.Hosts))
	at := between(rng, 0, 10*time.Second+stable(t.s))
	if !ok || slices.Contains(t.pool, host) || len(t.s.w.Hosts) < 3 {
		return
	}
	t.at(at, fmt.Sprintf("n%d leaves", host+1), func() { t.s.w.Leave(t.s.w.Hosts[host].Process) })
}

// poolTries is how often it is drawn until a core is left that has to live.
const poolTries = 8

// some draws hosts that are met, at most half of all.
func (t *trial) some() (hosts []int) {
	order := slices.Clone(t.pool)
	t.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order[:1+t.rng.IntN(min(len(order), max(len(t.s.w.Hosts)/2, 1)))]
}

func (t *trial) crash(at, _ time.Duration) {
	hosts, reset := t.some(), t.rng.IntN(2) == 0
	if t.rng.IntN(2) == 0 {
		hosts = hosts[:1]
	}
	back := time.Hour
	if t.aid {
		back = t.between(time.Second, 20*time.Second)
	}
	t.at(at, "", func() {
		for _, i := range hosts {
			if p := t.s.w.Hosts[i].Process; p.Alive {
				p.Crash(reset)
				t.at(back, "", func() {
					if t.s.still {
						t.s.startHost(i)
					}
				})
			}
		}
	})
}

func (t *trial) pause(at, d time.Duration) {
	hosts := t.some()
	if t.rng.IntN(3) > 0 {
		hosts = hosts[:1]
	}
	if d == time.Hour {
		d = t.between(time.Second, 40*time.Second)
		t.last = max(t.last, at+d)
	}
	t.at(at, "", func() {
		for _, i := range hosts {
			t.s.w.Hosts[i].Process.Pause(d)
		}
	})
}

func (t *trial) stick(at, d time.Duration) {
	host := t.some()[0]
	t.at(at, "", func() { t.s.w.Hosts[host].Process.Stick(min(d, 12*time.Second)) })
}

// split cuts the hosts in two or three.
func (t *trial) split(at, d time.Duration) {
	side := make([]int, len(t.s.w.Hosts))
	for _, i := range t.some() {
		side[i] = 1
	}
	if t.rng.IntN(3) == 0 {
		for i := range side {
			if side[i] == 1 && t.rng.IntN(2) == 0 {
				side[i] = 2
			}
		}
	}
	t.cut(at, d, fmt.Sprintf("split %v for %v", side, d), func(a, b int) bool { return side[a] != side[b] })
}

// part cuts one pair of hosts, now and then one direction of it only.
func (t *trial) part(at, d time.Duration) {
	x, y, both := t.some()[0], t.rng.IntN(len(t.s.w.Hosts)), t.rng.IntN(2) == 0
	if t.rng.IntN(2) == 0 {
		y = t.some()[0]
	}
	t.cut(at, d, fmt.Sprintf("cut n%d->n%d (back %t) for %v", x+1, y+1, both, d), func(a, b int) bool {
		return a == x && b == y || both && a == y && b == x
	})
}

func (t *trial) cut(at, d time.Duration, what string, between func(a, b int) bool) {
	c := &cut{between}
	t.at(at, what, func() {
		t.cuts = append(t.cuts, c)
		t.rewire()
	})
	t.at(at+d, "", func() {
		t.cuts = slices.DeleteFunc(t.cuts, func(o *cut) bool { return o == c })
		if t.s.still {
			t.rewire()
		}
	})
}

// rewire sets the wires as the cuts of the trial have them.
func (t *trial) rewire() {
	net := t.s.w.Net
	for a := range net.Cuts {
		for b := range net.Cuts[a] {
			net.Cuts[a][b] = a != b && slices.ContainsFunc(t.cuts, func(c *cut) bool { return c.between(a, b) })
		}
	}
	t.s.check.Core.Links()
}

// stutter lets processes stand still again and again, mostly all that no other fault meets at once, as on one machine
// that is too busy, and never for so long that anybody may hold it against them.
func (t *trial) stutter() {
	var rest []int
	for i := range t.s.w.Hosts {
		if !slices.Contains(t.pool, i) {
			rest = append(rest, i)
		}
	}
	end := t.last + 5*time.Second
	gap := func() time.Duration { return t.between(200*time.Millisecond, 3*time.Second) }
	brief := check.Brief(&t.s.w.Config)
	for at := gap(); at < end && len(rest) > 0; at += gap() {
		d, who := t.between(brief/8, brief), rest
		if t.rng.IntN(3) == 0 {
			who = who[:1+t.rng.IntN(len(who))]
		}
		t.at(at, "", func() {
			for _, i := range who {
				t.s.w.Hosts[i].Process.Pause(d)
			}
		})
		at += d
	}
}

// flappingOneIn is how many seeds there are to one with a flapping minority: twenty hosts take a hundred times as long
// as four.
const flappingOneIn = 60

// drawFlapping makes a cluster of the n hosts that a seed would have, or of ten or twenty.
func drawFlapping(s *storm, n int) int {
	rng, ok := s.draw(OffFlapping, flappingOneIn)
	if !ok {
		return n
	}
	s.flapping = rng
	if rng.IntN(3) == 0 {
		return 20
	}
	return 10
}

// resolverBesideFlappers draws a resolver; beside a flapping minority one that has a side live which heard itself.
func resolverBesideFlappers(s *storm, cfg *setup.Config) {
	s.drawResolver(cfg)
	switch r := &cfg.Resolver; {
	case s.flapping == nil:
	case r.Strategy == node.ResolverOff, r.Strategy == node.ResolverDownAll, r.Strategy == node.ResolverLeaseMajority:
		*r, cfg.Records, cfg.Shard.TakeoverTime = node.Resolver{}, true, 0
	}
}

// flap makes a third of the hosts at most stand still for 4 to 10 s, again and again for a minute or two. The others go
// on, whatever becomes of these.
func (t *trial) flap() {
	s, rng := t.s, t.s.flapping
	hosts := rng.Perm(len(s.w.Hosts))
	hosts = hosts[:1+rng.IntN(len(hosts)/3)]
	for !s.check.Core.LivesWithout(hosts) && len(hosts) > 1 {
		hosts = hosts[1:]
	}
	slices.Sort(hosts)
	t.last = between(rng, time.Minute, 2*time.Minute)
	s.check.Core.Steadfast = true
	s.note("hosts %v flap for %v", hosts, t.last)
	for _, i := range hosts {
		t.flapHost(i, between(rng, 0, 5*time.Second), s.w.Now+t.last)
	}
}

func (t *trial) flapHost(host int, at, end time.Duration) {
	rng := t.s.flapping
	d, gap := between(rng, 4*time.Second, 10*time.Second), between(rng, time.Second, 6*time.Second)
	t.at(at, "", func() {
		if !t.s.still || t.s.w.Now+d > end {
			return
		}
		if p := t.s.w.Hosts[host].Process; p != nil && p.Alive {
			p.Pause(d)
		}
		t.flapHost(host, d+gap, end)
	})
}
