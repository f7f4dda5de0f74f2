// Command kithpool is a pair of nodes of ours with pools, whose workers the receiver has.
package main

import (
	"context"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bench/peers/rig"
)

// workerRole keeps the workers off the sender.
const workerRole = "worker"

const limit = 5 * time.Second

// ask in the first byte of a payload asks for an answer.
const ask = 1

var modes = map[string]kith.Mode{"worker": kith.Worker, "blocking": kith.Blocking}

func main() {
	rig.Main(&rig.Program{Serve: serve, Dial: dial})
}

// worker counts what reaches it, and answers what asks.
type worker struct {
	in    *rig.Inbound
	index int
}

// Receive implements kith.Handler.
func (w *worker) Receive(c *kith.Context, payload []byte) error {
	w.in.Count(w.index)
	if payload[0] == ask {
		return c.Reply(payload)
	}
	return nil
}

// Stop implements kith.Handler.
func (*worker) Stop(*kith.Context) {}

// open starts a node and makes a pool of each mode known; in is nil on the sender, which has no workers.
func open(ctx context.Context, in *rig.Inbound, seeds, roles []string) (*kith.Node, map[string]*kith.PoolRef, error) {
	node, err := kith.Start(ctx, kith.Config{Name: "pools", Listen: "127.0.0.1:0", Seeds: seeds, Roles: roles,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return nil, nil, err
	}
	var made atomic.Int64
	pools := map[string]*kith.PoolRef{}
	for name, mode := range modes {
		p := kith.Pool{Name: "pool-" + name, Role: workerRole, PerNode: rig.Workers, Mode: mode,
			New: func() kith.Handler { return &worker{in, int(made.Add(1))} }}
		if pools[name], err = p.Register(node); err != nil {
			return nil, nil, err
		}
	}
	return node, pools, nil
}

func serve(ctx context.Context, in *rig.Inbound) (string, error) {
	node, _, err := open(ctx, in, nil, []string{workerRole})
	if err != nil {
		return "", err
	}
	return node.Addr().String(), nil
}

func dial(ctx context.Context, addr string) (rig.Sender, error) {
	node, pools, err := open(ctx, nil, []string{addr}, nil)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := node.Ready(limited); err != nil {
		return nil, err
	}
	clients := rig.Variants{}
	for name, p := range pools {
		for len(p.Workers()) == 0 {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-limited.Done():
				return nil, limited.Err()
			}
		}
		clients[name] = rig.Client{
			Tell: func(_, _ int, payload []byte) error { return p.TellWait(ctx, payload) },
			Ask: func(_, _ int, payload []byte) error {
				payload[0] = ask
				_, err := p.AskWithin(limit, payload, nil)
				return err
			},
		}
	}
	return clients, nil
}
