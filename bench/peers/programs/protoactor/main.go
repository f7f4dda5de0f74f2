// Command protoactor is a pair of Proto.Actor systems: remote actors addressed by their PIDs.
package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/bench/peers/pb"
	"github.com/kith-io/kith/bench/peers/rig"
)

const (
	limit  = 5 * time.Second
	window = 131072 // messages under way
)

func main() {
	rig.Main(&rig.Program{Module: "github.com/asynkron/protoactor-go", Serve: serve, Dial: dial,
		Window: func(int) uint64 { return window }})
}

func system() (*actor.ActorSystem, *remote.Remote) {
	s := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}))
	r := remote.NewRemote(s, remote.Configure("127.0.0.1", 0))
	r.Start()
	return s, r
}

// ask in a message's slot asks for an answer.
const ask = 1

func serve(_ context.Context, in *rig.Inbound) (string, error) {
	s, _ := system()
	for i := range rig.Entities {
		_, err := s.Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
			m, ok := c.Message().(*pb.Work)
			if !ok {
				return
			}
			in.Count(i)
			if m.Slot == ask {
				c.Respond(m)
			}
		}), bench.ID(i))
		if err != nil {
			return "", err
		}
	}
	return s.Address(), nil
}

func dial(_ context.Context, addr string) (rig.Sender, error) {
	s, _ := system()
	pids := make([]*actor.PID, rig.Entities)
	for i := range pids {
		pids[i] = actor.NewPID(addr, bench.ID(i))
	}
	return rig.Client{
		Tell: func(_, i int, payload []byte) error {
			s.Root.Send(pids[i], &pb.Work{Payload: payload})
			return nil
		},
		Ask: func(_, i int, payload []byte) error {
			_, err := s.Root.RequestFuture(pids[i], &pb.Work{Slot: ask, Payload: payload}, limit).Result()
			return err
		},
	}, nil
}
