// Command kithtopics are nodes of ours with one topic: those of the receiver have the subscribers.
package main

import (
	"context"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bench/peers/rig"
	"github.com/kith-io/kith/topic"
)

// maxBytes is what may wait for a subscriber: nobody misses anything, as with NATS beside it.
const maxBytes = 1 << 30

func main() {
	rig.Main(&rig.Program{Serve: serve, Dial: dial, Window: func(int) uint64 { return rig.TopicWindow }})
}

func open(ctx context.Context, seeds ...string) (*kith.Node, *topic.Topic, error) {
	node, err := kith.Start(ctx, kith.Config{Name: "topics", Listen: "127.0.0.1:0", Seeds: seeds,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return nil, nil, err
	}
	topics, err := topic.Start(node)
	if err != nil {
		return nil, nil, err
	}
	t, err := topics.Open("load")
	return node, t, err
}

func serve(ctx context.Context, in *rig.Inbound) (string, error) {
	var all atomic.Uint64
	var seeds []string
	nodes := rig.Nodes()
	for range nodes {
		node, t, err := open(ctx, seeds...)
		if err != nil {
			return "", err
		}
		if len(seeds) == 0 {
			seeds = []string{node.Addr().String()}
		}
		for range rig.Subscribers {
			messages, err := t.SubscribeWithin(ctx, topic.Bounds{Messages: topic.MaxMessages, Bytes: maxBytes})
			if err != nil {
				return "", err
			}
			go func() {
				for m := range messages {
					if m.Missed == 0 && all.Add(1)%uint64(nodes*rig.Subscribers) == 0 {
						in.Count(0)
					}
				}
			}()
		}
	}
	return seeds[0], nil
}

func dial(ctx context.Context, addr string) (rig.Sender, error) {
	node, t, err := open(ctx, addr)
	if err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := node.Ready(limit); err != nil {
		return nil, err
	}
	for t.Stats().Nodes < rig.Nodes() || t.Publish(make([]byte, 1)) != nil {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-limit.Done():
			return nil, limit.Err()
		}
	}
	return rig.Client{Tell: func(_, _ int, payload []byte) error { return t.Publish(payload) }}, nil
}
