// One run: a cluster, its store, what is asked of it and what befalls it; then quiet, in which all must come right.

package durables

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/kith-io/kith/durable/durabletest"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/sim"
)

// Each purpose has a generator of its own, so that a change in what one draws does not shift the others.
const (
	purposeDraw uint64 = 0xd501 + iota
	purposeFaults
	purposeLoad
)

const (
	mostViolations = 20               // of a run
	mostSteps      = 200_000          // of a second of virtual time: as in storms of protocols
	settleBound    = 15 * time.Minute // of virtual time, until all has come right when the faults have ended
	lookEvery      = 200 * time.Millisecond
)

// run is one run of a seed.
type run struct {
	seed  uint64
	bench *bench
	c     *sim.Cluster
	kit   *durabletest.Kit
	drawn
	faults, load *rand.Rand

	accounts *durabletest.Set[order, account]
	vaults   *durabletest.Set[archive, int]
	builds   []uint32        // the schema of each host's processes
	back     []time.Duration // when a host that is down gets its next process; zero: it is not known yet
	calm     bool            // no more faults, and nothing new is asked
	began    time.Duration   // when the storm did
	calmed   time.Duration   // when that began
	gens     int             // of all accounts
	ops      []*op
	open     int // asks of which more is to be heard
	*history

	settle time.Duration
	late   time.Duration
}

// fresh returns a run in which nothing has begun.
func fresh(seed uint64) *run {
	return &run{seed: seed, bench: &bench{}, drawn: draws(seed), faults: rand.New(rand.NewPCG(seed, purposeFaults)),
		load: rand.New(rand.NewPCG(seed, purposeLoad))}
}

// live is the whole of a run.
func live(seed uint64, text bool) (o outcome) {
	s := fresh(seed)
	func() {
		defer func() {
			if why := recover(); why != nil && why != (fatal{}) {
				panic(why)
			}
		}()
		s.begins(text)
		s.storms()
		s.quiet()
		(&judge{run: s, all: map[line][]place{}}).judges()
		s.goesBack()
	}()
	hash, records := s.w.Traced()
	o = outcome{hash: hash, records: records, virtual: s.w.Now, settle: s.settle, late: s.late, options: s.String()}
	s.bench.ends()
	for _, text := range s.bench.broken {
		if strings.Contains(text, " suspended-before: ") {
			s.counts.Late++
			continue
		}
		s.violate("cluster", "%s", text)
	}
	s.counts.Nodes = s.nodes
	n := s.kit.Store().Counts()
	s.counts.StoreCalls, s.counts.StoreLost = n.Calls, n.Lost
	s.counts.StoreMute, s.counts.StoreAgain = n.Unanswered, n.Again
	o.violations, o.counts = s.found, s.counts
	o.trace = s.w.Text()
	return o
}

// begins makes the cluster begin.
func (s *run) begins(text bool) {
	s.c = sim.New(s.bench, s.nodes, s.seed, sim.With(func(cfg *sim.Config) { s.configures(cfg, text) }))
	s.history = newHistory(&book{w: s.c.World().(*world.World)}, s.drawn.shards)
	world.Bound(s.w, mostSteps)
	s.kit = durabletest.New(s.c, s.seed)
	s.kit.Store().Watch(s.sees)
	for range s.nodes {
		s.builds, s.back = append(s.builds, s.schema), append(s.back, 0)
	}
	var err error
	s.accounts, err = durabletest.RegisterEach(s.kit, s.accountType)
	if err == nil {
		s.vaults, err = durabletest.Register(s.kit, s.vaultType())
	}
	if err != nil {
		s.bench.Fatalf("no types: %v", err)
	}
	s.c.AwaitUp()
}

// storms is the time of the faults.
func (s *run) storms() {
	s.w.After(0, s.sends)
	s.w.After(between(s.faults, 0, 5*time.Second), func() { faultTick(s) })
	s.w.After(between(s.faults, 0, 5*time.Second), func() { storeTick(s) })
	s.w.After(lookEvery, func() { supervises(s) })
	if s.deploys {
		s.w.After(s.lasts/4, func() {
			s.note("a newer build is deployed")
			s.schema = 2
		})
	}
	s.began = s.w.Now
	if s.outage > 0 { // until the storm ends
		s.w.After(s.lasts-s.outage, func() {
			s.note("the store is away for %v", s.outage)
			s.kit.Store().Fail(durabletest.Faults{Away: true})
		})
	}
	s.c.Advance(s.lasts)
}

// quiet ends the faults, and waits until all has come right.
func (s *run) quiet() {
	calms(s)
	end := s.w.Now + settleBound
	for s.w.Now < end && len(s.found) == 0 && s.unsettled() != "" { // what is broken need not come right
		s.c.Advance(lookEvery)
		s.stops()
	}
	s.settle = s.w.Now - s.calmed
	if why := s.unsettled(); why != "" && len(s.found) == 0 {
		s.violate("settle", "%v after the last fault: %s", settleBound, why)
	}
	s.c.Advance(5 * time.Second) // what comes twice comes now
}

// unsettled says what is still on its way, "" when nothing is.
func (s *run) unsettled() string {
	switch {
	case s.open > 0:
		return fmt.Sprintf("%d asks have no answer, as %v", s.open, firstOpen(s))
	case !s.w.Converged():
		return s.w.WhyNotConverged()
	}
	for i := range s.nodes {
		if p := s.w.Hosts[i].Process; !p.Alive || p.Leaving || s.builds[i] < s.schema {
			return fmt.Sprintf("n%d does not run the build that it is to run", i+1)
		}
	}
	return s.history.unsettled()
}

// between draws a duration from lo to hi.
func between(r interface{ Int64N(int64) int64 }, lo, hi time.Duration) time.Duration {
	return lo + time.Duration(r.Int64N(int64(hi-lo)+1))
}
