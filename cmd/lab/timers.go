// lab timers: very many timers of a node while its process stands still again and again, real or simulated: how many
// came before their time, and how late the others.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/sim/storm"
)

// timersCmd is the flags of lab timers.
type timersCmd struct {
	Timers    int           `default:"1000000" help:"How many timers are set, 1000 to 100 million."`
	Over      time.Duration `default:"20s" help:"How long they are being set; each is one of up to half as long."`
	Stalls    bool          `default:"true" negatable:"" help:"${stalls_help}"`
	Simulated bool          `help:"Simulate it: three nodes, virtual time; the seed decides all."`
	Seed      uint64        `default:"1" help:"Decides what is drawn; of real processes the lengths alone."`
	Progress  bool          `help:"Show progress although stderr is not a terminal."`
}

const stallsHelp = "Stop the process (SIGSTOP) for 0.1 to 3 s again and again, burn all processors, collect garbage; " +
	"--no-stalls leaves it alone."

// Validate is called by the parser.
func (c *timersCmd) Validate() error {
	if c.Timers < 1000 || c.Timers > 100_000_000 {
		return errors.New("--timers must be 1000 to 100000000")
	}
	if c.Over < time.Second || c.Over > time.Hour {
		return errors.New("--over must be 1s to 1h")
	}
	return nil
}

// timersResult is the last line of lab timers.
type timersResult struct {
	Timers    int     `json:"timers"`
	Simulated bool    `json:"simulated"`
	Early     int     `json:"early"`       // came before their time
	LateP50   float64 `json:"late_p50_ms"` // by how much a half of them came late at most, as their handlers see it
	LateP99   float64 `json:"late_p99_ms"`
	LateMax   float64 `json:"late_max_ms"`
	Stalls    int     `json:"stalls"`
	Stalled   float64 `json:"stalled_s"`
	Virtual   float64 `json:"virtual_s,omitempty"`
	Wall      float64 `json:"wall_seconds"`
}

// Run measures and prints the last line.
func (c *timersCmd) Run(e *env.Env) error {
	began := time.Now()
	var r timersResult
	var err error
	if c.Simulated {
		r, err = c.simulate()
	} else {
		r, err = c.real(cli.NewProgress(e.Stderr, c.Progress))
	}
	if err != nil {
		return err
	}
	r.Wall = time.Since(began).Seconds()
	if err := cli.Line(e.Stdout, "timers", r); err != nil {
		return err
	}
	if r.Early > 0 {
		return fmt.Errorf("%d timers came before their time", r.Early)
	}
	return nil
}

func (c *timersCmd) simulate() (timersResult, error) {
	m := storm.MeasureTimers(c.Timers, c.Seed)
	if len(m.Violations) > 0 {
		fmt.Fprintln(os.Stderr, m.Violations[0])
	}
	if m.Fired < c.Timers && m.Early == 0 {
		return timersResult{}, fmt.Errorf("only %d timers came", m.Fired)
	}
	return timersResult{Timers: m.Fired, Simulated: true, Early: m.Early, LateP50: millis(m.Late.Quantile(0.5)),
		LateP99: millis(m.Late.Quantile(0.99)), LateMax: millis(m.Late.Max), Stalls: m.Stalls,
		Stalled: m.Stalled.Seconds(), Virtual: m.Virtual.Seconds()}, nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// timerCrowd are the entities of a real run.
type timerCrowd struct {
	start time.Time
	most  time.Duration // of one timer
	came  atomic.Int64
	fault atomic.Pointer[error]

	mu  sync.Mutex
	all []*crowdEntity
}

// timersEach is how many timers an entity sets.
const timersEach = 8

// crowdEntity sets its timers with its one message, and notes how late each comes.
type crowdEntity struct {
	c    *timerCrowd
	late []time.Duration
}

func (e *crowdEntity) Receive(c *kith.Context, p []byte) error {
	if _, ok := c.Timer(); ok {
		due, err := strconv.ParseInt(string(p), 10, 64)
		e.late = append(e.late, time.Since(e.c.start)-time.Duration(due))
		e.c.came.Add(1)
		return err
	}
	for range timersEach {
		d := time.Duration(rand.Int64N(int64(e.c.most)))
		due := time.Since(e.c.start) + d
		if err := c.After(d, strconv.AppendInt(nil, int64(due), 10)); err != nil {
			e.c.fault.CompareAndSwap(nil, &err)
			return err
		}
	}
	return nil
}

func (*crowdEntity) Stop(*kith.Context) {}

func (c *timerCrowd) make(string, kith.Fence) kith.Handler {
	e := &crowdEntity{c: c, late: make([]time.Duration, 0, timersEach)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, e)
	return e
}

// real sets the timers on a node of this process, and waits until all have come.
func (c *timersCmd) real(progress *cli.Progress) (r timersResult, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{Name: "timers"})
	if err != nil {
		return r, err
	}
	defer node.Close()
	crowd := &timerCrowd{start: time.Now(), most: c.Over / 2}
	var regions []*kith.Region
	for _, mode := range []kith.Mode{kith.Blocking, kith.Worker, kith.Inline} {
		region, err := node.Register(kith.EntityType{Name: mode.String(), Mode: mode, New: crowd.make})
		if err != nil {
			return r, err
		}
		regions = append(regions, region)
	}
	if err := node.Ready(ctx); err != nil {
		return r, err
	}
	stalls := &staller{rng: rand.New(rand.NewPCG(c.Seed, 0))}
	if c.Stalls {
		go stalls.run(ctx)
	}
	n := (c.Timers + timersEach - 1) / timersEach
	r.Timers = n * timersEach
	for i := range n {
		if i%100 == 0 {
			time.Sleep(time.Until(crowd.start.Add(c.Over * time.Duration(i) / time.Duration(n))))
		}
		if err := regions[i%len(regions)].TellWait(ctx, strconv.Itoa(i), []byte("set")); err != nil {
			return r, err
		}
	}
	for int(crowd.came.Load()) < r.Timers {
		if fault := crowd.fault.Load(); fault != nil {
			return r, fmt.Errorf("a timer was not set: %w", *fault)
		}
		progress.Printf("%d of %d timers have come", crowd.came.Load(), r.Timers)
		time.Sleep(time.Second / 10)
	}
	cancel()
	crowd.judge(&r)
	r.Stalls, r.Stalled = stalls.figures()
	return r, nil
}

// judge fills in what the entities have noted. All timers have come.
func (c *timerCrowd) judge(r *timersResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var late []time.Duration
	for _, e := range c.all {
		late = append(late, e.late...)
	}
	slices.Sort(late)
	r.Early, _ = slices.BinarySearch(late, 0)
	at := func(q float64) float64 { return millis(late[int(q*float64(len(late)-1))]) }
	r.LateP50, r.LateP99, r.LateMax = at(0.5), at(0.99), at(1)
}

// staller makes the process stand still.
type staller struct {
	rng *rand.Rand
	mu  sync.Mutex
	n   int
	sum time.Duration
}

func (s *staller) figures() (n int, seconds float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, s.sum.Seconds()
}

// run stalls the process in turn in three ways until ctx ends: stopped, by garbage, by work for all processors.
func (s *staller) run(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(100+s.rng.IntN(1500)) * time.Millisecond)
		d := time.Duration(100+s.rng.IntN(2900)) * time.Millisecond
		began := time.Now()
		switch s.rng.IntN(3) {
		case 0:
			script := fmt.Sprintf("kill -STOP %d; sleep %.3f; kill -CONT %d", os.Getpid(), d.Seconds(), os.Getpid())
			if exec.Command("sh", "-c", script).Run() != nil {
				return
			}
		case 1:
			for range 4 {
				garbage := make([][]byte, 0, 1<<15)
				for range cap(garbage) {
					garbage = append(garbage, make([]byte, 1<<10))
				}
				runtime.GC()
				runtime.KeepAlive(garbage)
			}
		default:
			burn(min(d, time.Second))
		}
		s.mu.Lock()
		s.n, s.sum = s.n+1, s.sum+time.Since(began)
		s.mu.Unlock()
	}
}

// burn keeps all processors busy, several times over.
func burn(d time.Duration) {
	var all sync.WaitGroup
	end := time.Now().Add(d)
	for range 8 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for time.Now().Before(end) {
			}
		})
	}
	all.Wait()
}
