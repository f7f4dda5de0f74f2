// Command nats is a pair of NATS: a server embedded in the receiving process, which subscribes in process; the sender
// connects over loopback.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/bench/peers/rig"
)

// Subscriptions share the entities: each has a goroutine of its own at the receiver.
const subscriptions = 8

const (
	limit      = 5 * time.Second
	maxPending = 1 << 30 // bytes; the window bounds what is under way
	queue      = "queue"
	window     = 131072 // messages
)

func main() {
	rig.Main(&rig.Program{Module: "github.com/nats-io/nats-server/v2", Serve: serve, Dial: dial,
		Window: func(int) uint64 { return window }})
}

func serve(_ context.Context, in *rig.Inbound) (string, error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
		MaxPending: maxPending})
	if err != nil {
		return "", err
	}
	s.Start()
	if !s.ReadyForConnections(limit) {
		return "", errors.New("server is not ready")
	}
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		return "", err
	}
	for k := range subscriptions {
		for kind, handler := range map[string]nats.MsgHandler{
			"t": func(*nats.Msg) { in.Count(k) },
			"a": func(m *nats.Msg) { in.Count(k); _ = m.Respond(m.Data) }, // the asker sees what is not answered
		} {
			sub, err := nc.Subscribe(kind+strconv.Itoa(k)+".*", handler)
			if err == nil {
				err = sub.SetPendingLimits(-1, -1)
			}
			if err != nil {
				return "", err
			}
		}
	}
	for k := range rig.Workers {
		sub, err := nc.QueueSubscribe(queue, queue, func(m *nats.Msg) {
			in.Count(k)
			if m.Reply != "" {
				_ = m.Respond(m.Data)
			}
		})
		if err == nil {
			err = sub.SetPendingLimits(-1, -1)
		}
		if err != nil {
			return "", err
		}
	}
	return s.ClientURL(), nc.Flush()
}

func dial(_ context.Context, addr string) (rig.Sender, error) {
	nc, err := nats.Connect(addr)
	if err != nil {
		return nil, err
	}
	subjects := func(kind string) []string {
		all := make([]string, rig.Entities)
		for i := range all {
			all[i] = fmt.Sprintf("%s%d.%s", kind, i%subscriptions, bench.ID(i))
		}
		return all
	}
	tells, asks := subjects("t"), subjects("a")
	flush := func(int) error { return nc.Flush() }
	return rig.Variants{
		"": {
			Tell:  func(_, i int, payload []byte) error { return nc.Publish(tells[i], payload) },
			Flush: flush,
			Ask: func(_, i int, payload []byte) error {
				_, err := nc.Request(asks[i], payload, limit)
				return err
			},
		},
		queue: {
			Tell:  func(_, _ int, payload []byte) error { return nc.Publish(queue, payload) },
			Flush: flush,
			Ask: func(_, _ int, payload []byte) error {
				_, err := nc.Request(queue, payload, limit)
				return err
			},
		},
	}, nil
}
