// Command natstopics is a pair of NATS with one subject: a server embedded in the receiving process, where the
// subscribers are; the publisher connects over loopback.
package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/kith-io/kith/bench/peers/rig"
)

const (
	subject    = "load"
	limit      = 5 * time.Second
	maxPending = 1 << 30 // bytes; the window bounds what is under way
)

func main() {
	rig.Main(&rig.Program{Module: "github.com/nats-io/nats-server/v2", Serve: serve, Dial: dial,
		Window: func(int) uint64 { return rig.TopicWindow }})
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
	var all atomic.Uint64
	last := uint64(rig.Nodes() * rig.Subscribers)
	for range rig.Nodes() { // each node of ours has a connection here
		nc, err := nats.Connect("", nats.InProcessServer(s))
		if err != nil {
			return "", err
		}
		for range rig.Subscribers {
			sub, err := nc.Subscribe(subject, func(*nats.Msg) {
				if all.Add(1)%last == 0 {
					in.Count(0)
				}
			})
			if err == nil {
				err = sub.SetPendingLimits(-1, -1)
			}
			if err != nil {
				return "", err
			}
		}
		if err := nc.Flush(); err != nil {
			return "", err
		}
	}
	return s.ClientURL(), nil
}

func dial(_ context.Context, addr string) (rig.Sender, error) {
	nc, err := nats.Connect(addr)
	if err != nil {
		return nil, err
	}
	return rig.Client{
		Tell:  func(_, _ int, payload []byte) error { return nc.Publish(subject, payload) },
		Flush: func(int) error { return nc.Flush() },
	}, nil
}
