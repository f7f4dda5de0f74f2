// The node of the process: how it starts, when all are there, and what it has used.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"

	"github.com/kith-io/kith"
)

// hostRole is the role of the processes that host entities.
const hostRole = "host"

// startLimit bounds how long nodes take to form a cluster, and homes to become known.
const startLimit = 2 * time.Minute

// program is the state of the process.
type program struct {
	node  *kith.Node
	types map[string]*target
	idle  idle
	prof  *os.File // of the CPU profile under way
}

// target is one type of entities.
type target struct {
	sink   *sink
	region *kith.Region
}

type (
	startArgs struct {
		Seeds []string
		Host  bool // host entities
		Types []typeArgs
	}
	typeArgs struct {
		Name   string
		Mode   string // inline, worker or blocking
		Shards uint32
		Ring   int  // how many of its entities stand in a ring
		Exact  bool // its entities publish each message: so many that a load hardly comes round
		Idle   bool // its entities do nothing, and are not counted one by one
	}
	startReply struct{ Addr string }
	none       struct{}
)

var modes = map[string]kith.Mode{"inline": kith.Inline, "worker": kith.Worker, "blocking": kith.Blocking}

// start starts the node with its types.
func (p *program) start(a startArgs) (startReply, error) {
	cfg := kith.Config{Name: "gate", Seeds: a.Seeds,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if a.Host {
		cfg.Roles = []string{hostRole}
	}
	var err error
	if p.node, err = kith.Start(context.Background(), cfg); err != nil {
		return startReply{}, err
	}
	for _, t := range a.Types {
		mode, ok := modes[t.Mode]
		if !ok {
			return startReply{}, fmt.Errorf("no mode %q", t.Mode)
		}
		s := &sink{name: t.Name, every: publishEvery, ring: t.Ring}
		if mode == kith.Blocking || t.Exact {
			s.every = 1
		}
		typ := of(p.node.Register)
		typ.Name, typ.Shards, typ.Mode, typ.Role, typ.New = t.Name, t.Shards, mode, hostRole, s.entity
		if t.Idle {
			typ.New = func(string, kith.Fence) kith.Handler { return &p.idle }
		}
		region, err := p.node.Register(typ)
		if err != nil {
			return startReply{}, err
		}
		p.types[t.Name] = &target{s, region}
	}
	return startReply{p.node.Addr().String()}, nil
}

// of returns what register takes, with nothing set: its type has one name in this commit and another one in older ones.
func of[T any](register func(T) (*kith.Region, error)) (t T) { return t }

type awaitArgs struct{ Up int }

// await waits until this node sees that many members Up.
func (p *program) await(a awaitArgs) (none, error) {
	for end := time.Now().Add(startLimit); p.node.View().CountUp() < a.Up; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return none{}, fmt.Errorf("%d of %d members up after %v", p.node.View().CountUp(), a.Up, startLimit)
		}
		if err := p.node.Err(); err != nil {
			return none{}, err
		}
	}
	return none{}, nil
}

func (p *program) of(name string) (*target, error) {
	if t := p.types[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("no type %q", name)
}

type flushArgs struct {
	Type     string
	Entities int
}

// flushers is how many entities are asked at a time.
const flushers = 64

// flush asks each entity until it has answered: it exists then, its home is known, and what was sent to it before has
// been handled.
func (p *program) flush(a flushArgs) (none, error) {
	t, err := p.of(a.Type)
	if err != nil {
		return none{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	errs := make([]error, flushers)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := w; i < a.Entities && errs[w] == nil; i += flushers {
				errs[w] = t.flush(ctx, entityID(i))
			}
		}()
	}
	wg.Wait()
	return none{}, errors.Join(errs...)
}

// flush asks one entity until it answers.
func (t *target) flush(ctx context.Context, id string) error {
	for {
		_, err := t.region.AskWithin(5*time.Second, id, []byte{opFlush}, nil)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond): // its home is not settled yet, or its mailbox is full
		case <-ctx.Done():
			return fmt.Errorf("flush %s: %w", id, cmp.Or(err, ctx.Err()))
		}
	}
}

type usageArgs struct{ Type string }

// usageReply is what the process has used since it began, times in nanoseconds. At is its own clock's.
type usageReply struct {
	At, CPU time.Duration
	Count   uint64 // messages that have reached handlers of the type
}

var epoch = time.Now()

func (p *program) usage(a usageArgs) (usageReply, error) {
	t, err := p.of(a.Type)
	if err != nil {
		return usageReply{}, err
	}
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return usageReply{}, fmt.Errorf("processor time: %w", err)
	}
	return usageReply{time.Since(epoch), time.Duration(r.Utime.Nano() + r.Stime.Nano()), t.sink.count()}, nil
}

type profileArgs struct{ Path string }

// profile begins a CPU profile, or ends the one under way when no path is given.
func (p *program) profile(a profileArgs) (none, error) {
	if a.Path == "" {
		pprof.StopCPUProfile()
		return none{}, p.prof.Close()
	}
	var err error
	if p.prof, err = os.Create(a.Path); err != nil {
		return none{}, err
	}
	return none{}, pprof.StartCPUProfile(p.prof)
}
