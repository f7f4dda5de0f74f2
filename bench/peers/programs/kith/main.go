// Command kith is our own half of a pair: a node that hosts sinks, or one that sends to them.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/bench/peers/rig"
)

// sinkRole keeps the entities off the sender.
const sinkRole = "sink"

// shards is what bench-e2e spreads its entities over.
const shards = 100

// askLimit is the time limit of an ask.
const askLimit = 5 * time.Second

var modes = map[string]kith.Mode{"inline": kith.Inline, "worker": kith.Worker, "blocking": kith.Blocking}

type node struct {
	node    *kith.Node
	sinks   map[string]*bench.Sink
	regions map[string]*kith.Region
}

func main() {
	n := &node{sinks: map[string]*bench.Sink{}, regions: map[string]*kith.Region{}}
	rig.Main(&rig.Program{Serve: n.serve, Dial: n.dial, Counted: n.counted})
}

func (n *node) start(ctx context.Context, seeds, roles []string) error {
	var err error
	poll := time.Duration(0)
	if s := os.Getenv("KITH_POLL_FOR"); s != "" {
		if poll, err = time.ParseDuration(s); err != nil {
			return fmt.Errorf("KITH_POLL_FOR: %w", err)
		}
	}
	n.node, err = kith.Start(ctx, kith.Config{Name: "peers", Listen: "127.0.0.1:0", Seeds: seeds, Roles: roles,
		PollFor: poll,
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return err
	}
	for name, mode := range modes {
		n.sinks[name] = bench.NewSink()
		if n.regions[name], err = n.node.Register(n.sinks[name].Type("sink-"+name, shards, mode, sinkRole)); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) serve(ctx context.Context, _ *rig.Inbound) (string, error) {
	if err := n.start(ctx, nil, []string{sinkRole}); err != nil {
		return "", err
	}
	return n.node.Addr().String(), nil
}

func (n *node) dial(ctx context.Context, addr string) (rig.Sender, error) {
	if err := n.start(ctx, []string{addr}, nil); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := n.node.Ready(ctx); err != nil {
		return nil, err
	}
	for _, region := range n.regions {
		if err := bench.Flush(ctx, region, rig.Entities); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *node) counted() uint64 {
	var sum uint64
	for _, s := range n.sinks {
		sum += s.Count()
	}
	return sum
}

// Load implements rig.Sender with the loads of the package bench.
func (n *node) Load(ctx context.Context, l rig.Load) (rig.Result, error) {
	region := n.regions[l.Variant]
	if region == nil {
		return rig.Result{}, fmt.Errorf("no entities of mode %q", l.Variant)
	}
	load := bench.Load{Mode: bench.Tell, Size: l.Size, Entities: rig.Entities, Senders: rig.Senders,
		Duration: l.Duration(), Timeout: askLimit}
	switch {
	case l.Work == rig.Ask:
		load.Mode, load.Senders, load.Inflight = bench.Ask, 1, l.Inflight
	case l.Work == rig.Call:
		load.Mode, load.Senders, load.Inflight = bench.AskFunc, 1, l.Inflight
	}
	r, err := load.Run(ctx, region)
	if err != nil {
		return rig.Result{}, err
	}
	out := rig.Result{Sent: r.Sent, Failed: r.Failed, FirstErr: r.FirstErr}
	if r.Latency != nil && r.Latency.Count() > 0 {
		out.P50, out.P99 = bench.Micros(r.Latency.Quantile(50)), bench.Micros(r.Latency.Quantile(99))
	}
	flush, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return out, bench.Flush(flush, region, rig.Entities) // makes the receiver's counts exact
}
