// loadgen idle: a node process that holds many idle entities, and what that costs in memory.

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// idleCmd is the flags of loadgen idle.
type idleCmd struct {
	Entities int           `default:"1000000" help:"Entities to hold, 1 to 10000000."`
	Exec     string        `enum:"inline,worker,blocking" default:"blocking" help:"${exec_help}"`
	Shards   uint32        `default:"1000" help:"Shards that they are spread over, 1 to 1048576."`
	Limit    time.Duration `default:"5m" help:"${limit_help}"`
	Progress bool          `help:"Show progress although stderr is not a terminal."`
}

// Validate is called by the parser.
func (c *idleCmd) Validate() error {
	switch {
	case c.Entities < 1 || c.Entities > 10_000_000:
		return errors.New("--entities must be 1 to 10000000")
	case c.Shards < 1 || c.Shards > 1<<20:
		return errors.New("--shards must be 1 to 1048576")
	case c.Limit <= 0:
		return errors.New("--limit must be more than zero")
	}
	return nil
}

// idleLine is the last line of loadgen idle. MB are millions of bytes. Figures that the system does not tell are
// absent.
type idleLine struct {
	Entities       int     `json:"entities"`
	Exec           string  `json:"exec"`
	Shards         uint32  `json:"shards"`
	RSS            float64 `json:"rss_mb,omitempty"`           // resident, after a forced return of memory
	Peak           float64 `json:"peak_rss_mb,omitempty"`      // most that was resident, while the entities were made
	EmptyRSS       float64 `json:"empty_rss_mb,omitempty"`     // resident before the first entity, also after a return
	BytesPerEntity float64 `json:"bytes_per_entity,omitempty"` // resident growth over entities
	HeapPerEntity  float64 `json:"heap_bytes_per_entity"`      // growth of the live heap over entities
	Cores          float64 `json:"idle_cores"`                 // processor over time while the entities rested
	GCMillis       float64 `json:"gc_ms"`                      // wall time of one full collection with all entities
	Goroutines     int     `json:"goroutines"`
	FillSeconds    float64 `json:"fill_s"`
}

// idleChunk is how many entities are made between two looks.
const idleChunk = 50_000

// Run starts one process with a node, has it make the entities, and reports what it holds.
func (c *idleCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	progress := cli.NewProgress(e.Stderr, c.Progress)
	holder, err := startWorker(e, "holder", nil)
	if err != nil {
		return err
	}
	defer holder.Kill()
	var empty, full bench.Held
	if err := holder.Call(ctx, "hold", holdArgs{Exec: c.Exec, Shards: c.Shards}, &empty); err != nil {
		return err
	}
	progress.Printf("no entities: %v", empty)
	began := time.Now()
	for first := 0; first < c.Entities; first += idleChunk {
		end := min(first+idleChunk, c.Entities)
		if err := holder.Call(ctx, "fill", fillArgs{first, end}, nil); err != nil {
			return err
		}
		progress.Printf("%d entities", end)
	}
	took := time.Since(began)
	if err := holder.Call(ctx, "held", cli.None{}, &full); err != nil {
		return err
	}
	progress.Printf("%d idle entities: %v", c.Entities, full)
	if err := holder.Close(fleet.CloseGrace); err != nil {
		return err
	}
	return cli.Line(e.Stdout, "idle", c.line(empty, full, took))
}

func (c *idleCmd) line(empty, full bench.Held, took time.Duration) idleLine {
	per := func(a, b uint64) float64 { return (float64(b) - float64(a)) / float64(c.Entities) }
	return idleLine{
		Entities: c.Entities, Exec: c.Exec, Shards: c.Shards,
		RSS: float64(full.RSS) / 1e6, Peak: float64(full.Peak) / 1e6, EmptyRSS: float64(empty.RSS) / 1e6,
		BytesPerEntity: per(empty.RSS, full.RSS), HeapPerEntity: per(empty.Heap, full.Heap), Cores: full.Cores,
		GCMillis: float64(full.GC.Microseconds()) / 1e3, Goroutines: full.Goroutines, FillSeconds: took.Seconds(),
	}
}

type (
	holdArgs struct {
		Exec   string
		Shards uint32
	}
	fillArgs struct{ First, End int }
)

// hold starts a node alone with a type of idle entities, and tells what the process holds without any.
func (w *worker) hold(ctx context.Context, a holdArgs) (bench.Held, error) {
	node, err := kith.Start(ctx, kith.Config{Name: "idle"})
	if err != nil {
		return bench.Held{}, err
	}
	w.node.Node, w.idle = node, bench.NewIdle()
	region, err := node.Register(w.idle.Type("idle", a.Shards, execs[a.Exec]))
	if err != nil {
		return bench.Held{}, err
	}
	w.filled = region
	if err := node.Ready(ctx); err != nil {
		return bench.Held{}, fmt.Errorf("not ready: %w", err)
	}
	return bench.Hold(), nil
}

// fill makes entities and waits until they are idle.
func (w *worker) fill(ctx context.Context, a fillArgs) (cli.None, error) {
	return cli.None{}, w.idle.Fill(ctx, w.node.Node, w.filled, a.First, a.End)
}

// Shards let go what they kept for busy entities after a second or two; then the process is looked at for watchTime, in
// which it does what a node does without messages.
const (
	restTime  = 3 * time.Second
	watchTime = 5 * time.Second
)

// held tells what the process burns and holds when its entities have rested.
func (w *worker) held(ctx context.Context, _ cli.None) (bench.Held, error) {
	cli.Pause(ctx, restTime)
	debug.FreeOSMemory() // a collection, and a return of memory, would come by themselves in these seconds or later
	before := bench.Now()
	cli.Pause(ctx, watchTime)
	after := bench.Now()
	h := bench.Hold()
	h.Cores = float64(after.CPU-before.CPU) / float64(after.At-before.At)
	return h, ctx.Err()
}
