// Command goakt is a pair of GoAkt actor systems: the receiver has a router with its routees, and the same actors by
// name for asks, which a router does not answer.
package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tochemey/goakt/v4/actor"
	"github.com/tochemey/goakt/v4/log"
	"github.com/tochemey/goakt/v4/remote"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/bench/peers/pb"
	"github.com/kith-io/kith/bench/peers/rig"
)

const (
	limit  = 5 * time.Second
	window = 131072 // messages under way
	router = "router"
	host   = "127.0.0.1"
)

// ask in a message's slot asks for an answer.
const ask = 1

func main() {
	rig.Main(&rig.Program{Module: "github.com/tochemey/goakt/v4", Serve: serve, Dial: dial,
		Window: func(int) uint64 { return window }})
}

// inbound counts for all actors: the router makes its routees by their type alone.
var (
	inbound *rig.Inbound
	made    atomic.Int64
)

// worker counts what reaches it, and answers what asks.
type worker struct{ index int }

// PreStart implements actor.Actor.
func (w *worker) PreStart(*actor.Context) error {
	w.index = int(made.Add(1))
	return nil
}

// PostStop implements actor.Actor.
func (*worker) PostStop(*actor.Context) error { return nil }

// Receive implements actor.Actor.
func (w *worker) Receive(c *actor.ReceiveContext) {
	switch m := c.Message().(type) {
	case []byte: // by way of the router
		inbound.Count(w.index)
	case *pb.Work:
		inbound.Count(w.index)
		if m.Slot == ask {
			c.Response(m)
		}
	}
}

// broadcasts has what a router takes travel between systems: its own type has no encoding. It is the payload behind one
// byte, less than protobuf would need.
type broadcasts struct{}

var errNoBroadcast = errors.New("not a message for a router")

// Serialize implements remote.Serializer.
func (broadcasts) Serialize(m any) ([]byte, error) {
	b, ok := m.(*actor.Broadcast)
	if !ok {
		return nil, errNoBroadcast
	}
	return append([]byte{0xff}, b.Message().([]byte)...), nil
}

// Deserialize implements remote.Serializer.
func (broadcasts) Deserialize(b []byte) (any, error) {
	if len(b) == 0 || b[0] != 0xff {
		return nil, errNoBroadcast
	}
	return actor.NewBroadcast(b[1:]), nil
}

func system(ctx context.Context, name string) (actor.ActorSystem, error) {
	port, err := rig.FreePort()
	if err != nil {
		return nil, err
	}
	s, err := actor.NewActorSystem(name, actor.WithLogger(log.DiscardLogger), actor.WithRemote(
		remote.NewConfig(host, port, remote.WithSerializers(new(actor.Broadcast), broadcasts{}))))
	if err != nil {
		return nil, err
	}
	return s, s.Start(ctx)
}

func serve(ctx context.Context, in *rig.Inbound) (string, error) {
	inbound = in
	s, err := system(ctx, "receiver")
	if err != nil {
		return "", err
	}
	if _, err := s.SpawnRouter(ctx, router, rig.Workers, &worker{},
		actor.WithRoutingStrategy(actor.RoundRobinRouting)); err != nil {
		return "", err
	}
	for i := range rig.Entities {
		if _, err := s.Spawn(ctx, bench.ID(i), &worker{}, actor.WithLongLived()); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(host, strconv.Itoa(s.Port())), nil
}

func dial(ctx context.Context, addr string) (rig.Sender, error) {
	s, err := system(ctx, "sender")
	if err != nil {
		return nil, err
	}
	_, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	asker, err := s.Spawn(ctx, "asker", &worker{}, actor.WithLongLived())
	if err != nil {
		return nil, err
	}
	to, err := asker.RemoteLookup(ctx, host, port, router)
	if err != nil {
		return nil, err
	}
	all := make([]*actor.PID, rig.Entities)
	for i := range all {
		if all[i], err = asker.RemoteLookup(ctx, host, port, bench.ID(i)); err != nil {
			return nil, err
		}
	}
	return rig.Variants{
		"router": {Tell: func(_, _ int, payload []byte) error {
			return asker.Tell(ctx, to, actor.NewBroadcast(payload))
		}},
		"actors": {
			Tell: func(_, i int, payload []byte) error { return asker.Tell(ctx, all[i], &pb.Work{Payload: payload}) },
			Ask: func(_, i int, payload []byte) error {
				_, err := asker.Ask(ctx, all[i], &pb.Work{Slot: ask, Payload: payload}, limit)
				return err
			},
		},
	}, nil
}
