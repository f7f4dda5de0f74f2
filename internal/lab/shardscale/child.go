// The child: one node process with types of very many shards, which does what it is called for.

package shardscale

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// Child answers calls until the parent has closed stdin, or has gone.
func Child(stdin io.Reader, stdout, stderr io.Writer) error {
	c := &child{log: stderr}
	return c.node.Serve(stdin, stdout, cli.Ops{"start": cli.Op(c.start), "register": cli.Op(c.register),
		"touch": cli.Op(c.touch), "send": cli.Op(c.send), "stop": cli.Op(c.stop), "look": cli.Op(c.look)})
}

// child is the state of the process. start comes before every other call, register before those about messages.
type child struct {
	log    io.Writer
	node   fleet.Node
	region *kith.Region
	failed atomic.Uint64 // messages that were accepted and are said to be undelivered
	sent   atomic.Uint64
	cancel context.CancelFunc
	sender sync.WaitGroup
}

// tallied is the entity: it counts what comes, and answers asks.
type tallied struct{ n uint64 }

// Receive counts one message.
func (t *tallied) Receive(c *kith.Context, _ []byte) error {
	if t.n++; c.Asked() {
		return c.Reply(nil)
	}
	return nil
}

// Stop has nothing to flush.
func (*tallied) Stop(*kith.Context) {}

type startReply struct{ Addr string }

type startArgs struct {
	Seeds    []string
	Role     string
	MaxMoves int
	Interval time.Duration
}

func (c *child) start(ctx context.Context, a startArgs) (startReply, error) {
	node, err := kith.Start(ctx, kith.Config{Name: "scale-shards", Listen: "127.0.0.1:0", Seeds: a.Seeds,
		Roles: []string{a.Role}, Sharding: kith.Sharding{MaxMoves: a.MaxMoves, RebalanceInterval: a.Interval},
		Logger:      slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Undelivered: func(u kith.Undelivered) { c.failed.Add(u.Count) }})
	if err != nil {
		return startReply{}, err
	}
	c.node.Node = node
	return startReply{node.Addr().String()}, node.Ready(ctx)
}

// typeArgs is a type that calls are about from then on, with the role that hosts it.
type typeArgs struct {
	Name, Role string
	Shards     uint32
}

func (c *child) register(_ context.Context, a typeArgs) (cli.None, error) {
	r, err := c.node.Register(kith.EntityType{Name: a.Name, Shards: a.Shards, Role: a.Role, Mode: kith.Worker,
		New: func(string, kith.Fence) kith.Handler { return &tallied{} }})
	c.region = r
	return cli.None{}, err
}

// touched says which entities get a message each. With Shards it is one of each of so many shards, and answers are
// waited for.
type touched struct{ From, To, Shards int }

func tallyID(i int) string { return fmt.Sprintf("tally-%08d", i) }

// touch returns when all have been answered, or accepted.
func (c *child) touch(ctx context.Context, a touched) (cli.None, error) {
	if a.Shards == 0 {
		for i := a.From; i < a.To; i++ {
			if err := c.region.TellWait(ctx, tallyID(i), nil); err != nil {
				return cli.None{}, err
			}
			c.sent.Add(1)
		}
		return cli.None{}, nil
	}
	answers, asked := make(chan error, a.Shards), map[kith.ShardID]bool{}
	for i := 0; len(asked) < a.Shards; i++ {
		if s := c.region.Shard(tallyID(i)); !asked[s] {
			asked[s] = true
			answered := func(_ []byte, err error) { answers <- err }
			if err := c.region.AskFunc(time.Minute, tallyID(i), nil, answered); err != nil {
				return cli.None{}, err
			}
		}
	}
	for range asked {
		select {
		case err := <-answers:
			if err != nil {
				return cli.None{}, err
			}
		case <-ctx.Done():
			return cli.None{}, ctx.Err()
		}
	}
	return cli.None{}, nil
}

// sending is tells to entities picked at random, a second; zero: as many as are accepted.
type sending struct {
	Entities int
	Rate     float64
}

func (c *child) send(_ context.Context, a sending) (cli.None, error) {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.sender.Go(func() {
		payload := make([]byte, 64)
		for range fleet.Due(ctx, a.Rate, fleet.Early) {
			if c.region.TellWait(ctx, tallyID(rand.IntN(a.Entities)), payload) == nil {
				c.sent.Add(1)
			}
		}
	})
	return cli.None{}, nil
}

func (c *child) stop(context.Context, cli.None) (cli.None, error) {
	if c.cancel != nil {
		c.cancel()
		c.sender.Wait()
	}
	return cli.None{}, nil
}

// looked is what a process knows of itself. RSS is zero where the system does not tell it.
type looked struct {
	Hosted              int
	Entities            uint64
	Sent, Handled, Lost uint64
	Moves               uint64 // that this node led as coordinator, and that are done
	RSS, Heap           uint64 // bytes, after a collection when it was asked for
}

type lookArgs struct{ Collect bool }

func (c *child) look(_ context.Context, a lookArgs) (looked, error) {
	if err := c.node.Err(); err != nil {
		return looked{}, err
	}
	s := c.node.Stats()
	l := looked{Sent: c.sent.Load(), Lost: c.failed.Load(), Moves: s.Sharding.Moves.Done}
	for _, t := range s.Types {
		l.Hosted, l.Entities, l.Handled = l.Hosted+t.Hosted, l.Entities+t.Entities, l.Handled+t.Handled
	}
	if a.Collect {
		for range 3 { // what pools keep goes with the second
			debug.FreeOSMemory()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		l.Heap, l.RSS = m.HeapAlloc, resident()
	}
	return l, nil
}

// resident returns how many bytes of this process are in memory, zero when nobody tells.
func resident() uint64 {
	var size, pages uint64
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
