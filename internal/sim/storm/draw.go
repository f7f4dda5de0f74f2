// More that a seed draws, each part by choices of its own, so that a storm without it is what it was before: roles that
// differ, a minimum of members, mistakes of an operator, first seeds that come back as such, sleeps past tombstones,
// policies for entities that panic.

package storm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/sparse"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
)

// What a storm can be run without, so that seeds are what they were before it was drawn: see StormConfig.Without.
const (
	OffTrials      = "trials"      // aimed faults at a cluster that is well
	OffRoles       = "roles"       // a type with a role that differs between nodes
	OffMinimum     = "minimum"     // a minimum of members
	OffMistakes    = "mistakes"    // an operator downs members that live
	OffSupervisors = "supervisors" // a first seed that is started again comes first in its own list
	OffNaps        = "naps"        // sleeps and cuts that outlast tombstones
	OffBounds      = "bounds"      // few asks, little that is kept or waits for workers, and these slow
	OffLarge       = "large"       // messages that fit no frame
	OffLateHomes   = "late-homes"  // homes that are disclosed again when their members were removed
	OffTimers      = "timers"      // named timers, set anew and cancelled
	OffLimits      = "limits"      // asks that nobody waits for long, and headers
	OffWaits       = "waits"       // senders that wait for room at slow entities
	OffCrashes     = "crashes"     // entities that rest, stop or are given up after panics
	OffMoves       = "moves"       // shards that are moved between members that stay
	OffKeeps       = "keeps"       // a singleton and daemons
	OffBalance     = "balance"     // how often balance is looked at, how many shards move at once and wait for markers
	OffDrains      = "drains"      // members that drain and stay
	OffStrategies  = "strategies"  // strategies of types, also some that are broken
	OffStates      = "states"      // entities with a state that moves with them
	OffMany        = "many-shards" // a type of thousands of shards, of which few are used
	OffReadiness   = "readiness"   // regions that declare that they take no shards, and that they do again
	OffHolds       = "holds"       // pauses of the balance, for the whole cluster
	OffPartings    = "partings"    // leaves beside pauses, when all is well again
	OffLeaves      = "leaves"      // planned leaves beside what is aimed at a cluster that is well
	OffLinks       = "links"       // links that carry little, and states that are large for them
	OffFlapping    = "flapping"    // ten or twenty hosts, a minority of which stands still again and again
	OffBacklog     = "backlog"     // far more than its handlers take waits for a shard that is about to move
	OffPools       = "pools"       // a pool of workers, to which hosts send
	OffZones       = "zones"       // members that name zones, and few that watch each
	OffReplicas    = "replicated"  // replicated values
	OffLocks       = "locks"       // processes that prove the last one at their address dead, and some that lie
	OffPartitions  = "partitions"  // partitions that are defined, moved and handed over
	OffInstances   = "instances"   // instances of these, as processes run them: Config.Instances
	OffWatches     = "watches"     // entities that watch one another
	OffPatience    = "patience"    // nodes that go by another preset than PatienceNormal
	OffTopics      = "topics"      // topics, where there are instances: Config.Instances
	OffSessions    = "sessions"    // nodes that hold session leases, in a store that is away at times
	OffTenures     = "tenures"     // nodes that hold tenures, on the word of three or five seats
)

// Draws returns everything that a storm can be run without.
func Draws() []string {
	return []string{OffTrials, OffRoles, OffMinimum, OffMistakes, OffSupervisors, OffNaps, OffBounds, OffLarge,
		OffLateHomes, OffTimers, OffLimits, OffWaits, OffCrashes, OffMoves, OffBalance, OffStrategies, OffKeeps, OffMany,
		OffDrains, OffStates, OffReadiness, OffHolds, OffLeaves, OffLinks, OffPartings, OffFlapping, OffBacklog, OffZones,
		OffPools, OffReplicas, OffLocks, OffPartitions,
		OffWatches, OffPatience, OffSessions, OffInstances, OffTopics, OffTenures}
}

// demanding is a part of a storm that demands something when all is well.
type demanding interface{ demand() }

// draws are the choices of a seed beyond its mix.
type draws struct {
	without            []string
	oops               *rand.Rand // when and about which member an operator makes mistakes
	mixed              string     // the type with the role that differs
	mistakes           bool
	first              bool // a first seed that is started again comes first in its own list
	naps               bool
	large              bool
	waits              *waits
	backlogs           *backlogs
	crew               demanding // a pool of workers; nil: there is none
	instances          Instances // of partitions; nil: there are none
	replicas           *replicas
	watches            *watches
	crashes            *crashes
	states             *states
	drains, ready      *rand.Rand    // which members drain; which regions are not ready for shards; nil: none
	holds              *rand.Rand    // when the balance is paused; nil: never
	balances           bool          // balance is looked at, as every node does by default
	moves              *rand.Rand    // which shards are moved, and where to; nil: none
	partings, flapping *rand.Rand    // which leave at the end, which pause beside; when a minority stands still; nil: none
	brief              *rand.Rand    // which asks are waited for shortly, and have headers; nil: none
	truce              time.Duration // until then no fault begins

	pad        int    // bytes that each state has beside its count
	strategies bool   // types go by strategies that were drawn
	many       string // the type of very many shards
}

// draw returns a generator for one kind, and whether one in so many seeds has it.
func (s *storm) draw(what string, oneIn int) (*rand.Rand, bool) {
	at := slices.Index(Draws(), what)
	rng := rand.New(rand.NewPCG(s.seed, purposeDraws+uint64(at)))
	return rng, rng.IntN(oneIn) == 0 && !slices.Contains(s.without, what)
}

// shortRetention is how long tombstones are kept where storms outlast it.
const shortRetention = time.Minute

// drawMore draws what goes into the configuration.
func (s *storm) drawMore(cfg *setup.Config) {
	n := len(cfg.Roles)
	resolves := cfg.Resolver.Strategy != node.ResolverOff
	if rng, ok := s.draw(OffMinimum, 6); ok {
		cfg.Membership.MinMembers = 2
		if resolves { // there all hosts run in the end
			cfg.Membership.MinMembers += rng.IntN(n - 1)
		}
	}
	_, s.first = s.draw(OffSupervisors, 6)
	s.first = s.first && resolves
	s.oops, s.mistakes = s.draw(OffMistakes, 8)
	if _, s.naps = s.draw(OffNaps, 24); s.naps {
		cfg.Membership.TombstoneRetention = shortRetention
	}
	if rng, ok := s.draw(OffBounds, 2); ok {
		cfg.Data.MaxAsks = 4 << rng.IntN(5)
		cfg.Data.Keep, cfg.Data.LocalBuffer = 256<<rng.IntN(6), 512<<rng.IntN(5)
		cfg.Data.WorkDelay = []time.Duration{0, 5 * time.Millisecond, 300 * time.Millisecond}[rng.IntN(3)]
	}
	if rng, ok := s.draw(OffTimers, 2); ok {
		s.timers.more = rng
	}
	if rng, ok := s.draw(OffLimits, 2); ok {
		s.brief = rng
	}
	s.drawWaits()
	if rng, ok := s.draw(OffReplicas, 3); ok {
		s.replicas = &replicas{s: s, rng: rng}
	}
	cfg.Shard.RebalanceInterval = -1
	if rng, ok := s.draw(OffMoves, 2); ok {
		drawMoves(&cfg.Shard, rng)
	}
	if rng, ok := s.draw(OffBalance, 2); ok {
		s.balances = true
		drawBalance(&cfg.Shard, rng)
	}
	if rng, ok := s.draw(OffDrains, 3); ok {
		s.drains = rng
	}
	if rng, ok := s.draw(OffReadiness, 3); ok {
		s.ready = rng
	}
	if rng, ok := s.draw(OffHolds, 2); ok && s.balances {
		s.holds = rng
	}
	if rng, ok := s.draw(OffLarge, 2); ok {
		s.drawLarge(&cfg.Data, rng)
	}
	if rng, ok := s.draw(OffLinks, 3); ok {
		drawLinks(s, &cfg.Network, rng)
	}
	if rng, ok := s.draw(OffBacklog, 3); ok && !cfg.Data.OldCredit { // an earlier version moves nothing
		s.backlogs = drawBacklogs(s, &cfg.Data, rng)
	}
	if rng, ok := s.draw(OffZones, 3); ok {
		drawZones(cfg, rng)
	}
}

// drawZones makes some hosts name one of two or three zones, and fewer neighbours watch each.
func drawZones(cfg *setup.Config, rng *rand.Rand) {
	cfg.Membership.MonitoredBy = 2 + rng.IntN(3)
	zones := 2 + rng.IntN(2)
	for i, roles := range cfg.Roles {
		if rng.IntN(6) > 0 {
			cfg.Roles[i] = append(slices.Clone(roles), fmt.Sprint("zone:", rng.IntN(zones)))
		}
	}
}

// falseClaim makes a process at a host say, now and then, that a living one of another host is dead.
func falseClaim(w *world.World, h *world.Host, rng *rand.Rand) uint64 {
	if rng.IntN(4) > 0 {
		return 0
	}
	for _, i := range rng.Perm(len(w.Hosts)) {
		if p := w.Hosts[i].Process; w.Hosts[i] != h && p != nil && p.Alive {
			return p.ID.Inc
		}
	}
	return 0
}

// drawMany gives one type so many shards that what is known of them is made on demand, everywhere.
func drawMany(s *storm) {
	if rng, ok := s.draw(OffMany, 12); ok {
		t := s.types[rng.IntN(3)] // one of each mode: of the others every shard lives
		t.Shards, s.many = sparse.Flat+1+rng.Uint32N(4*sparse.Flat), t.Name
	}
}

// drawBalance draws how moves are paced: the default interval as often as others.
func drawBalance(cfg *shard.Config, rng *rand.Rand) {
	if cfg.RebalanceInterval = 0; rng.IntN(2) == 0 {
		cfg.RebalanceInterval = between(rng, 200*time.Millisecond, 20*time.Second)
	}
	cfg.MaxMoves = []int{0, 1, 2, 4}[rng.IntN(4)]
	if rng.IntN(2) == 0 {
		cfg.MarkTime = between(rng, 100*time.Millisecond, 10*time.Second)
	}
}

// drawRoles lets the role of one type differ: between hosts, or between the processes before and after a deploy that
// has a new one. A process that others refuse, for they registered the type before, may not use it; what nobody ever
// may have is two owners.
func (s *storm) drawRoles() {
	rng, ok := s.draw(OffRoles, 8)
	if !ok {
		return
	}
	t := s.types[rng.IntN(len(s.types))]
	other := "store"
	if t.Role == other {
		other = ""
	}
	s.mixed = t.Name
	if rng.IntN(2) == 0 {
		deploy := time.Duration(rng.Int64N(int64(s.stormy)))
		t.RoleAt = func(p *world.Process) string {
			if p.Began >= deploy {
				return other
			}
			return t.Role
		}
		return
	}
	differs := make([]bool, len(s.w.Hosts))
	for i := range differs {
		differs[i] = rng.IntN(2) == 0
	}
	t.RoleAt = func(p *world.Process) string {
		if differs[p.Index] {
			return other
		}
		return t.Role
	}
}

// crashes is what a storm draws of the restart policy; nil in storms of types that make an entity anew at once.
type crashes struct {
	rng   *rand.Rand
	oneIn int // messages: so many lead to a panic
}

// drawCrashes draws a policy for each type: an entity that panics is dropped with what waits for it, rests, or is given
// up for a while. Windows are short, so that one given up is back before a storm demands answers.
func drawCrashes(s *storm) {
	rng, ok := s.draw(OffCrashes, 2)
	if !ok {
		return
	}
	s.crashes = &crashes{rng: rng, oneIn: 8 << rng.IntN(4)}
	for _, t := range s.types {
		t.RestartWindow = between(rng, 500*time.Millisecond, 8*time.Second)
		switch rng.IntN(5) {
		case 0:
			t.Restart = entity.RestartStop
		case 1:
			t.Restart, t.RestartBackoff = entity.RestartStop, between(rng, time.Millisecond, t.RestartWindow)
		case 2:
			t.Restart, t.RestartBackoff = entity.RestartFresh, between(rng, time.Millisecond, t.RestartWindow)
		case 3:
			t.Restart, t.MaxRestarts = entity.RestartFresh, 1+rng.IntN(3)
		default:
			t.Restart, t.MaxRestarts = entity.RestartFresh, 1+rng.IntN(3)
			t.RestartBackoff = between(rng, time.Millisecond, t.RestartWindow/2)
		}
	}
}

// panics makes a handler panic now and then, until all is to come right.
func (x *crashes) panics(s *storm) {
	if x != nil && !s.quiet() && x.rng.IntN(x.oneIn) == 0 {
		panic("as the dice fell")
	}
}

// tumbles reports whether a handler panics by its dice. When all is to come right none does that would make its entity
// rest: a rest after each hundred messages makes a backlog outlast the calm (storm 1127700345).
func (x *crashes) tumbles(s *storm) bool { return s.load.IntN(4) == 0 && (x == nil || !s.quiet()) }

// planMore plans what the draws add to the faults.
func (s *storm) planMore() {
	if s.mistakes {
		s.mistake()
	}
	if rng, ok := s.draw(OffLateHomes, 2); ok {
		s.lateHomes(rng)
	}
	s.waits.start()
	s.replicas.start()
	if rng, ok := s.draw(OffLocks, 2); ok {
		s.w.False = func(h *world.Host) uint64 { return falseClaim(s.w, h, rng) }
	}
	if rng, ok := s.draw(OffMoves, 2); ok {
		s.moves = rng
		moveShards(s)
	}
	if s.drains != nil {
		drainNodes(s)
	}
	if rng, ok := s.draw(OffPartitions, 3); ok {
		planPartitions(rng, s)
	}
	planLeaves(s)
	rng, _ := s.draw(OffSessions, 4)
	sessionTrouble{s, rng}.plan()
	refound(refoundEvery, s)
	s.backlogs.plan()
	declare(s)
	holdBalance(s)
	if rng, _ := s.draw(OffNaps, 1); s.naps {
		s.stormy += shortRetention + 40*time.Second
		s.w.After(between(rng, 8*time.Second, 20*time.Second), func() { s.nap(rng) })
	}
}

func between(rng *rand.Rand, lo, hi time.Duration) time.Duration {
	return lo + time.Duration(rng.Int64N(int64(hi-lo)+1))
}

// mistake lets an operator down a member that lives, runs and hears all others, and plans the next time. The member
// gets the order at once, and no fault begins before it must have heard of it: what comes of an order about a member
// behind a cut nobody has promised.
func (s *storm) mistake() {
	rng := s.oops
	s.w.After(between(rng, 5*time.Second, 25*time.Second), func() {
		if s.quiet() {
			return
		}
		defer s.mistake()
		list := s.victims()
		if len(list) == 0 || !check.Good(s.w.Net) || slices.ContainsFunc(s.w.Running(), func(p *world.Process) bool {
			return p.Paused() || p.Stuck()
		}) {
			return
		}
		p, on := list[rng.IntN(len(list))], list[rng.IntN(len(list))]
		s.truce = s.w.Now + truceTime
		s.check.Core.Spoil()
		s.down(on, p.ID)
	})
}

// truceTime is how long a member that an operator downs may take to hear of it.
const truceTime = 3 * time.Second

// nap lets one or two processes sleep, or be cut off, for longer than tombstones are kept. Without a resolver an
// operator downs them meanwhile.
func (s *storm) nap(rng *rand.Rand) {
	list := s.victims()
	d := between(rng, shortRetention+2*time.Second, shortRetention+20*time.Second)
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	asleep := rng.IntN(2) == 0
	var hosts []int
	for i, p := range list {
		if i == 2 || i == 1 && rng.IntN(2) == 0 {
			break
		}
		p.Doomed, p.Outside = true, true
		hosts = append(hosts, p.Index)
		if asleep {
			p.Pause(d)
		}
		s.laterDown(p, between(rng, 5*time.Second, 9*time.Second))
	}
	s.note("nap of %v for %v, asleep %t", hosts, d, asleep)
	if !asleep {
		s.apart(hosts, d)
	}
}

// apart cuts hosts off from the others, and keeps it so whatever other cuts come and go.
func (s *storm) apart(hosts []int, d time.Duration) {
	end := s.w.Now + d
	var cut func()
	cut = func() {
		if s.quiet() || s.w.Now >= end {
			if !s.quiet() {
				s.w.Net.Heal()
				s.check.Core.Links()
			}
			return
		}
		for a := range s.w.Hosts {
			for b := range s.w.Hosts {
				if slices.Contains(hosts, a) != slices.Contains(hosts, b) {
					s.w.Net.Cuts[a][b] = true
				}
			}
		}
		s.check.Core.Links()
		s.w.After(apartEvery, cut)
	}
	cut()
}

// apartEvery is how soon a cut that other faults have mended holds again.
const apartEvery = 200 * time.Millisecond

// firstSeed returns the contact points of a first seed that is started again: itself first, as its settings say.
func (s *storm) firstSeed(order []int) []int {
	if s.first {
		return order
	}
	return append(order[1:], 0)
}

// moveShards makes the coordinators move a few shards to members drawn at random, and plans the next time. What cannot
// be moved is refused; several move at once, and faults do not wait for them.
func moveShards(s *storm) {
	s.w.After(between(s.moves, 200*time.Millisecond, 4*time.Second), func() {
		if s.quiet() {
			return
		}
		defer moveShards(s)
		if len(s.up()) == 0 {
			return
		}
		t := s.types[s.moves.IntN(len(s.types))]
		for range 1 + s.moves.IntN(4) {
			moveOne(s, s.moves, t)
		}
	})
}
