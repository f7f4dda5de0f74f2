// Kinds shows what a node offers beside entities, one of each: a pool, a replicated value, a topic, a
// partition. It is in docs/quickstart.md.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/partition"
	"github.com/kith-io/kith/replicated"
	"github.com/kith-io/kith/topic"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	node, err := kith.Start(ctx, kith.Config{Name: "kinds", Seeds: os.Args[1:]}) // on a free port of loopback
	check(err)
	check(node.Ready(ctx))
	count(ctx, node)
	listen(ctx, node)
	shout(ctx, node)
	spread(ctx, node)
	check(node.Leave(context.Background()))
}

type shouter struct{}

func (shouter) Receive(c *kith.Context, word []byte) error { return c.Reply(append(word, '!')) }
func (shouter) Stop(*kith.Context)                         {}

// shout asks a worker of a pool: any of any node will do, one of this node first.
func shout(ctx context.Context, node *kith.Node) {
	shouters, err := kith.Pool{Name: "shouters", New: func() kith.Handler { return shouter{} }}.Register(node)
	check(err)
	answer, err := shouters.Ask(ctx, []byte("hello"))
	check(err)
	fmt.Printf("pool: %s\n", answer)
}

// count adds to a number that every node holds, and waits until more than half of them have it.
func count(ctx context.Context, node *kith.Node) {
	visits, err := replicated.Open(node, "visits", replicated.GCounter{})
	check(err)
	one := func(v replicated.GCounter, me kith.ID) replicated.GCounter { return v.Add(me, 1) }
	check(visits.Update(ctx, replicated.Majority, one))
	fmt.Printf("replicated: %d nodes were here, I am %s\n", visits.Get().Value(), node.Addr())
}

// listen subscribes to a topic and publishes to it, here and on every other node.
func listen(ctx context.Context, node *kith.Node) {
	topics, err := topic.Start(node)
	check(err)
	news, err := topics.Open("news")
	check(err)
	messages := news.Subscribe(ctx)
	check(news.Publish(fmt.Appendf(nil, "it is %s", time.Now().Format(time.TimeOnly))))
	for m := range messages {
		fmt.Printf("topic: %s\n", m.Payload)
		break
	}
}

// spread runs a service as two instances, each on another node as soon as there are two, and asks both.
func spread(ctx context.Context, node *kith.Node) {
	twice, err := partition.Open(node, partition.Config{Path: "twice", Instances: partition.Exactly(2),
		New: func(int, kith.Fence) kith.Handler { return shouter{} }})
	check(err)
	check(twice.Known(ctx))
	for from, answer := range twice.AskAll(ctx, 1, []byte("both")) {
		fmt.Printf("partition: %s from instance %d\n", answer.Payload, from.Slot)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
