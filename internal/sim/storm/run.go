// One run of a storm: a random cluster, a random load, random faults, then calm, in which everything must come right.

package storm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
)

// Bounds within which a cluster that is left alone must come right.
const (
	calmBound   = 45 * time.Second  // all running nodes agree
	coreBound   = 30 * time.Second  // a healed core agrees, whatever goes on outside
	homesBound  = time.Minute       // beyond the takeover time, every shard answers
	doomedBound = 20 * time.Second  // an operator that downs a stopped process ends it in the end
	fatesBound  = 100 * time.Second // every message has a fate; longer than one may be parked behind a late one
	quietTime   = 10 * time.Second  // longer than any ask waits
	spareNodes  = 2                 // nodes that no fault takes down
)

// mostSteps is what a second of virtual time takes at most: twenty times what any storm has taken.
const mostSteps = 200_000

// The choices of a storm come from generators of its own, so that a change in what one draws does not shift the others.
// The world's have the numbers 1, 2 and 5.
const (
	purposeSchedule uint64 = 3
	purposeLoad     uint64 = 4
	purposeDraws    uint64 = 100 // the first of those of its further draws
)

// runResult is what one run came to.
type runResult struct {
	hash, records, steps uint64
	virtual              time.Duration
	violations           []check.Violation
	total                int
	crashed              int
	untold               int // of the crashed, those with a living sender
	fates                world.Tally
	fenced, notTold      int
	faults               int
	timers               timers
	bases                int // how often the cluster was well, see core
	obliged, rested      int // how often a healthy core had to live on, and how often it came to rest by itself
	plane                world.PlaneCounts
	accounts             *check.Accounts
	moves                int // of shards, from owner to owner
	trace, options       string
	calm, core           time.Duration // how long it took to come right, and a core before it
}

// storm is one run.
type storm struct {
	w      *world.World
	check  *check.Checker
	rng    *rand.Rand // the schedule of faults
	load   *rand.Rand // what is sent, and what handlers do
	seed   uint64
	types  []*world.EntityType
	faults int
	untold int  // downed processes that nobody notified
	ending bool // no more load
	stormy time.Duration
	mix    mix
	core   bool // a core is healed first

	trial    *trial // nil: none
	still    bool   // no random faults: it is on
	deserted bool   // no supervisor starts anything
	timers   timers
	draws
	heavy *heavy // in storms for the account
	keeps *keeps

	shift              int  // of the burying operator
	pending            int  // processes that are to be started
	rolling            bool // a rolling replacement goes on
	calmTook, coreTook time.Duration
}

func newStorm(seed uint64, without []string, text bool) *storm {
	return makeStorm(seed, &Config{Without: without}, text)
}

func makeStorm(seed uint64, of *Config, text bool) *storm {
	s := &storm{seed: seed, draws: draws{without: of.Without}, rng: rand.New(rand.NewPCG(seed, purposeSchedule)),
		load: rand.New(rand.NewPCG(seed, purposeLoad))}
	n := drawFlapping(s, s.size())
	cfg := setup.Config{Network: s.network(), Data: s.data(), Text: text}
	cfg.Shard = shard.Config{TakeoverTime: time.Duration(5+s.rng.IntN(8)) * time.Second}
	for range n {
		cfg.Roles = append(cfg.Roles, s.roles())
	}
	cfg.Roles[0] = []string{"store"}
	resolverBesideFlappers(s, &cfg)
	cfg.Courier.Messages = []int{0, 0, 64, 6}[s.rng.IntN(4)]
	cfg.Drift = []int64{0, 0, 50, 500}[s.rng.IntN(4)]
	s.drawMore(&cfg)
	drawSessions(&cfg, s)
	drawTenures(&cfg, s)
	_, locks := s.draw(OffLocks, 2)
	cfg.NoLockProof = !locks
	if of.Heavy {
		s.drawHeavy(&cfg)
	}
	hosts := of.Instances != nil && DrawsInstances(seed, of.Without)
	if hosts { // a node without its share of shards has no way to its instances
		cfg.Shard.RebalanceInterval = max(cfg.Shard.RebalanceInterval, 0)
	}
	s.w, s.check = check.NewWorld(n, seed, cfg)
	s.check.CalmMail = true
	world.Bound(s.w, mostSteps)
	s.stormy = time.Duration(30+s.rng.IntN(40)) * time.Second
	s.makeTypes(n)
	drawCrashes(s)
	drawKeeps(s)
	if rng, ok := s.draw(OffPools, 3); ok {
		s.crew = newPools(rng, s)
	}
	s.mix, s.core = s.drawMix(), s.rng.IntN(3) == 0
	s.drawTrial()
	s.drawRoles()
	drawMany(s)
	drawWatches(s)
	if rng, ok := s.draw(OffStrategies, 2); ok {
		s.strategies = true
		drawStrategies(rng, s.types, s.w.Hosts)
	}
	if rng, _ := s.draw(OffInstances, 2); hosts {
		g := &Stage{World: s.w, Rand: rng, s: s}
		if rng, ok := s.draw(OffTopics, 2); ok {
			g.Topics = rng
		}
		s.instances = of.Instances(g)
	}
	return s
}

func (s *storm) roles() []string {
	if s.rng.IntN(2) == 0 {
		return []string{"store"}
	}
	return nil
}

func (s *storm) network() setup.Network {
	n := setup.Network{Delay: s.between(100*time.Microsecond, 5*time.Millisecond),
		Jitter: s.between(time.Millisecond, 10*time.Millisecond),
		Break:  s.between(3*time.Second, 15*time.Second)}
	switch s.rng.IntN(8) {
	case 0, 1, 2:
		n.Loss = float64(s.rng.IntN(40)) / 1000
	case 3:
		n.Loss = float64(s.rng.IntN(201)) / 1000
	}
	if s.rng.IntN(3) == 0 {
		n.Raw = s.raw()
	}
	return n
}

func (s *storm) raw() setup.RawNetwork {
	return setup.RawNetwork{Loss: float64(1+s.rng.IntN(80)) / 1000, Duplicate: float64(s.rng.IntN(80)) / 1000,
		Spread: s.between(10*time.Millisecond, 300*time.Millisecond)}
}

func (s *storm) data() setup.DataConfig {
	return setup.DataConfig{
		ParkRecords: 16 << s.rng.IntN(6), ParkBytes: 8 << 10 << s.rng.IntN(5), ParkTotal: 64 << 10 << s.rng.IntN(5),
		ParkWait: s.between(15*time.Second, time.Minute), LinkBuffer: 6 << 10 << s.rng.IntN(5),
		Window: 1 << 10 << s.rng.IntN(7), MailboxBudget: 32 << 10 << s.rng.IntN(6), Connections: 1 + int(s.seed%3),
		OldCredit: oldCredit(s.seed), AskTogether: s.seed%2 == 0,
	}
}

// oldCredit reports whether the nodes of a seed's storm speak the first wire version.
func oldCredit(seed uint64) bool { return seed%4 == 0 }

// between draws a duration from lo to hi.
func (s *storm) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(s.rng.Int64N(int64(hi-lo)+1))
}

// makeTypes declares one type of each mode; some nodes do not register some of them.
func (s *storm) makeTypes(n int) {
	for mode := entity.Blocking; mode <= entity.Inline; mode++ {
		t := &world.EntityType{Type: entity.Type{Name: mode.String(), Mode: mode, Shards: 2 + uint32(s.rng.IntN(14)),
			MailboxBytes: 1 << 10 << s.rng.IntN(5), Restart: entity.Restart(s.rng.IntN(2))}}
		if t.Shards%3 == 0 {
			t.StopMessage = []byte{lastMark}
		}
		if t.Shards%2 == 1 { // which is as good as a draw
			t.ShardBy = mirrored(t.Shards)
		}
		if s.rng.IntN(3) == 0 {
			t.Role = "store"
		}
		if s.rng.IntN(2) == 0 {
			t.IdleAfter = s.between(time.Second, 10*time.Second)
		}
		for i := 1; i < n; i++ {
			if s.rng.IntN(8) == 0 {
				t.Absent = append(t.Absent, i)
			}
		}
		typ := route.TypeOf(t.Name)
		t.Open = func(c *entity.Context) (entity.Handler, error) {
			if !s.ending && s.load.IntN(60) == 0 {
				return nil, errors.New("as the dice fell")
			}
			return &stormEntity{s: s, typ: typ, id: c.ID, p: s.w.Acting, lasts: t.StopMessage != nil}, nil
		}
		t.Type = t.WithDefaults()
		s.types = append(s.types, t)
		s.w.AddType(t)
	}
}

// mirrored is a shard function by which an id is in the last shard that the hash has in the first, and so on.
func mirrored(shards uint32) entity.ShardBy {
	return entity.ShardBy{Name: "mirrored", Of: func(id string) route.ShardID {
		return mirror(route.ShardOf(id, shards), shards)
	}}
}

func mirror(n route.ShardID, shards uint32) route.ShardID { return route.ShardID(shards) - 1 - n }

// run is the life of the storm.
func (s *storm) run() runResult {
	w := s.w
	w.OnEnd = s.ended
	s.startTimes()
	w.After(s.between(0, 8*time.Second), s.faultTick)
	s.watch()
	s.planMore()
	if s.heavy != nil {
		s.heavy.plan()
	}
	w.Advance(s.stormy)
	if s.trial != nil {
		s.trial.run()
	}
	undrain(s)
	s.calm()
	hash, records := w.Traced()
	res := runResult{hash: hash, records: records, steps: w.Steps, virtual: w.Now, calm: s.calmTook,
		core: s.coreTook, options: s.options(),
		fates:  w.Book.Fates,
		fenced: s.check.Fenced, notTold: s.check.NotTold, faults: s.faults}
	res.bases, res.obliged, res.rested = s.check.Core.Bases, s.check.Core.Tested, s.check.Core.Progress
	res.plane, res.timers = w.Plane, s.timers
	res.untold = w.Untold()
	res.crashed, _ = w.Audit()
	res.accounts, res.moves = check.Account(w), check.Moves(s.check)
	res.accounts.Law(s.check)
	w.End()
	res.violations, res.total = s.check.Violations, s.check.Total
	res.trace = w.Text()
	return res
}

// watch looks once a second whether the cluster is well, and whether those that must have gone on.
func (s *storm) watch() {
	if s.resolves() {
		s.check.Core.Watch(s.check)
		s.check.Core.Look()
		s.w.After(time.Second, s.watch)
	}
}

// demandHomes asks one entity of every shard from each of these processes: all must answer within a bound, as long as
// the asking process lives and may use the type. Where roles differ, a refused process may hear of it only now.
func (s *storm) demandHomes(from []*world.Process, bound time.Duration) {
	silent(s, s.ask(shardsOf(s, from), from, bound), bound)
}

// silent says that those that had to answer within a bound have not, if there are any.
func silent(s *storm, left []*asked, bound time.Duration) {
	if len(left) > 0 {
		s.check.Violate(nil, "homes", "%d shards do not answer %v after the last fault, as: %v", len(left), bound,
			left[:min(3, len(left))])
	}
}

// probes is about how many shards of a type are asked when all have to answer: all, but for types of very many.
const probes = 32

// asked is one shard that a process asks until it answers.
type asked struct {
	r        *world.Region
	shard    route.ShardID
	end      time.Duration // it is asked until then
	answered bool
	why      error // of the last time that it did not answer
}

// shardsOf returns what these processes are to ask.
func shardsOf(s *storm, from []*world.Process) (list []*asked) {
	for _, p := range from {
		for _, r := range plain(s, p) {
			if r.Refused != nil || !s.hostable(r.ID, from) {
				continue
			}
			for n := uint32(0); n < r.Type.Shards; n += 1 + r.Type.Shards/probes {
				list = append(list, &asked{r: r, shard: route.ShardID(n)})
			}
		}
	}
	return list
}

// ask has shards asked until they answer, or a bound is over, and returns those that have not, though they had to.
func (s *storm) ask(list []*asked, from []*world.Process, bound time.Duration) (left []*asked) {
	end := s.w.Now + bound
	for _, a := range list {
		a.end = end
		a.probe(s)
	}
	open := func(a *asked) bool {
		return !a.answered && a.r.Process.Alive && a.r.Refused == nil && s.hostable(a.r.ID, from)
	}
	s.w.Until(bound+time.Second, func() bool { return !slices.ContainsFunc(list, open) })
	for _, a := range list {
		if open(a) {
			left = append(left, a)
		}
		a.end = 0
	}
	return left
}

// probe asks a shard until it answers, or its type is refused, or its time is over. A full mailbox is an answer when
// entities rest after panics: the shard has a home, and waiters for room there come first. demandRoom asks for room.
func (a *asked) probe(s *storm) {
	p, end := a.r.Process, a.end
	again := func(err error) {
		switch {
		case a.end != end:
		case s.crashes != nil && errors.Is(err, route.ErrMailboxFull):
			a.answered = true
		case a.r.Refused != nil:
		case p.World.Now >= end:
			a.why = err
		default:
			a.why = err
			p.Later(500*time.Millisecond, func() {
				if a.end == end {
					a.probe(s)
				}
			})
		}
	}
	err := p.Ask(5*time.Second, a.r.Type.Name, idIn(a.r, a.shard), []byte{probeMark}, func(b []byte, err error) {
		if err != nil {
			again(err)
			return
		}
		a.answered = true
	})
	if err != nil {
		again(err)
	}
}

// housed reports whether the shard lives on the process to which its asker sends what is for it.
func (a *asked) housed() bool {
	p, s := a.r.Process, a.r.Slot(a.shard)
	home := p
	if !s.IsLocal() {
		home = p.World.ProcessOf(s.Home())
	}
	if home == nil || !home.Alive {
		return false
	}
	r := home.Region(a.r.ID)
	return r != nil && r.Lives(a.shard) != nil
}

// String says which process has no answer of which shard, and why.
func (a *asked) String() string {
	p := a.r.Process
	return fmt.Sprintf("%s from n%d: %v", p.World.ShardName(a.r.ID, a.shard), p.Index+1, a.why)
}

// hostable reports whether some node of these that runs may host the type.
func (s *storm) hostable(typ route.TypeID, among []*world.Process) bool {
	for _, p := range among {
		r := p.Region(typ)
		if m, ok := p.View.SelfMember(); p.Alive && ok && r != nil && r.Refused == nil && m.HasRole(r.Role()) {
			return true
		}
	}
	return false
}

// plain returns the regions of a process with entities that get messages by their id.
func plain(s *storm, p *world.Process) []*world.Region {
	if s.keeps == nil && s.crew == nil && s.instances == nil {
		return p.Regions
	}
	var list []*world.Region
	for _, r := range p.Regions {
		if !r.Kept() {
			list = append(list, r)
		}
	}
	return list
}
