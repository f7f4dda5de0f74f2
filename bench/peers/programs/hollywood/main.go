// Command hollywood is a pair of hollywood engines: remote actors addressed by their PIDs.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/anthdm/hollywood/actor"
	"github.com/anthdm/hollywood/remote"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/bench/peers/pb"
	"github.com/kith-io/kith/bench/peers/rig"
)

const (
	limit = 5 * time.Second
	// streamBytes is the stream reader's buffer: with the default of 4 MiB the stream breaks, and nothing more arrives,
	// as soon as more is queued to a peer.
	streamBytes = 256 << 20
	window      = 131072 // messages under way
	mailbox     = 4096   // messages; the window spreads over a thousand actors
)

func main() {
	slog.SetLogLoggerLevel(slog.LevelWarn)
	remote.RegisterType(&pb.Work{})
	rig.Main(&rig.Program{Module: "github.com/anthdm/hollywood", Serve: serve, Dial: dial,
		Window: func(int) uint64 { return window }})
}

// kind is the first part of the actors' ids.
const kind = "sink"

// engine starts an engine at a free port. The library does not tell the port that it got for zero, so one is chosen
// before; if another process takes it in between, that costs another try.
func engine() (e *actor.Engine, addr string, err error) {
	for range 5 {
		var port int
		if port, err = rig.FreePort(); err != nil {
			break
		}
		addr = fmt.Sprintf("127.0.0.1:%d", port)
		r := remote.New(addr, remote.NewConfig().WithBufferSize(streamBytes))
		if e, err = actor.NewEngine(actor.NewEngineConfig().WithRemote(r)); err == nil {
			break
		}
	}
	return e, addr, err
}

func serve(_ context.Context, in *rig.Inbound) (string, error) {
	e, addr, err := engine()
	if err != nil {
		return "", err
	}
	for i := range rig.Entities {
		e.SpawnFunc(func(c *actor.Context) {
			m, ok := c.Message().(*pb.Work)
			if !ok {
				return
			}
			in.Count(i)
			if m.Slot == ask {
				c.Respond(m)
			}
		}, kind, actor.WithID(bench.ID(i)), actor.WithInboxSize(mailbox))
	}
	return addr, nil
}

// ask in a message's slot asks for an answer.
const ask = 1

func dial(_ context.Context, addr string) (rig.Sender, error) {
	e, _, err := engine()
	if err != nil {
		return nil, err
	}
	pids := make([]*actor.PID, rig.Entities)
	for i := range pids {
		pids[i] = actor.NewPID(addr, kind+"/"+bench.ID(i))
	}
	return rig.Client{
		Tell: func(_, i int, payload []byte) error {
			e.Send(pids[i], &pb.Work{Payload: payload})
			return nil
		},
		Ask: func(_, i int, payload []byte) error {
			_, err := e.Request(pids[i], &pb.Work{Slot: ask, Payload: payload}, limit).Result()
			return err
		},
	}, nil
}
