// What a storm's seed decides before it begins: how many hosts, how good the network is, which faults and how often.

package storm

import (
	"fmt"
	"strings"
	"time"
)

// fault is one kind of mischief: its name in words, how often it is drawn on average, and what it does.
type fault struct {
	name   string
	weight int
	do     func(*storm)
}

// faults returns all kinds that a storm knows. A seed draws its own weights around these, so that some storms consist
// of one kind and others of all.
func faults() []fault {
	return []fault{
		{"partition", 2, (*storm).partition},
		{"one-way", 2, (*storm).oneWay},
		{"partial", 1, (*storm).partial},
		{"flip-flop", 1, (*storm).flipFlop},
		{"slow", 1, (*storm).slow},
		{"pause", 2, (*storm).pauseOne},
		{"stuck", 1, (*storm).stickOne},
		{"crash", 2, (*storm).crashAndDown},
		{"restart", 1, (*storm).crashAndRestart},
		{"mass-crash", 1, (*storm).massCrash},
		{"mass-restart", 1, (*storm).massRestart},
		{"leave", 2, (*storm).leaveOne},
		{"rolling", 1, (*storm).rollingReplacement},
		{"weather", 1, (*storm).weather},
		{"break", 1, (*storm).breakConnections},
		{"stop-and-down", 1, (*storm).stopAndDown},
		{"clock", 1, (*storm).clockStep},
	}
}

// mix is the weights of one seed, in the order of faults.
type mix []int

// drawMix draws every weight from zero to double its mean.
func (s *storm) drawMix() (m mix) {
	total := 0
	for _, f := range faults() {
		m = append(m, s.rng.IntN(2*f.weight+1))
		total += m[len(m)-1]
	}
	if total == 0 {
		m[0] = 1
	}
	return m
}

// next draws one fault.
func (m mix) next(draw func(n int) int) fault {
	total, all := 0, faults()
	for _, w := range m {
		total += w
	}
	at := draw(total)
	for i, w := range m {
		if at -= w; at < 0 {
			return all[i]
		}
	}
	return all[0]
}

func (m mix) String() string {
	var b strings.Builder
	all := faults()
	for i, w := range m {
		if w > 0 {
			fmt.Fprintf(&b, " %s %d", all[i].name, w)
		}
	}
	return strings.TrimPrefix(b.String(), " ")
}

// options says in one line what the seed decided.
func (s *storm) options() string {
	n := s.w.Config.Network
	return fmt.Sprintf("%d hosts, %s, %v of faults, takeover %v, delay %v, loss %v, raw %v, break %v, drift %d ppm, "+
		"core %t, window %d%s; mix: %s",
		len(s.w.Hosts), s.resolverText(), s.stormy.Round(time.Second), s.w.Takeover(), n.Delay.Round(time.Microsecond),
		n.Loss, n.Raw,
		n.Break.Round(time.Millisecond), s.w.Config.Drift, s.core, s.w.Config.Courier.Messages, s.drawn(), s.mix.String())
}

// drawn names what the seed has beyond its mix.
func (s *storm) drawn() (text string) {
	add := func(what string, has bool) {
		if has {
			text += ", " + what
		}
	}
	add("a trial", s.trial != nil)
	add("a flapping minority", s.flapping != nil)
	add("large messages", s.large)
	add("brief asks", s.brief != nil)
	add("role of "+s.mixed+" differs", s.mixed != "")
	add(fmt.Sprintf("at least %d members", s.w.Config.Membership.MinMembers), s.w.Config.Membership.MinMembers > 0)
	add("an operator's mistakes", s.mistakes)
	add("first seeds come back as such", s.first)
	add("sleeps past tombstones", s.naps)
	add("senders that wait", s.waits != nil)
	add("replicated values", s.replicas != nil)
	add("watches", s.watches != nil)
	add("named timers", s.timers.more != nil)
	add("crash policies", s.crashes != nil)
	add("moves", s.moves != nil)
	add("balance", s.balances)
	add("drains", s.drains != nil)
	add("leaves beside pauses", s.partings != nil)
	add("backlogs before moves", s.backlogs != nil)
	add("readiness", s.ready != nil)
	add("holds of the balance", s.holds != nil)
	cfg := &s.w.Config
	add(fmt.Sprintf("%d seats, grants of %v, refounded by %v", cfg.TenureVoters, cfg.TenureGrant.Round(time.Millisecond),
		cfg.TenureRefound), cfg.TenureVoters > 0)
	add("strategies", s.strategies)
	add("keeps", s.keeps != nil)
	add("many shards of "+s.many, s.many != "")
	return text
}

// size draws how many hosts there are: mostly few, now and then more than watch each other.
func (s *storm) size() int {
	if s.rng.IntN(12) == 0 {
		return 8 + s.rng.IntN(4)
	}
	return 3 + s.rng.IntN(5)
}

// startTimes plans the first process of every host: most at the beginning, some in the middle of it all.
func (s *storm) startTimes() {
	for i := range s.w.Hosts {
		at := s.between(0, 2*time.Second)
		if i >= 3 && s.rng.IntN(4) == 0 {
			at = s.between(2*time.Second, s.stormy)
		}
		s.w.After(at, func() { s.restartHost(i) })
		s.w.After(s.between(0, 3*time.Second), func() { s.loadTick(i) })
	}
}
