// first is the smallest program with an entity: a counter that two processes share. The README shows it.

package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/kith-io/kith"
)

type counter struct{ n int } // an entity: one owner in the cluster, one message at a time

func (c *counter) Receive(m *kith.Context, word []byte) error {
	c.n++
	return m.Reply(fmt.Appendf(nil, "%s number %d", word, c.n))
}

func (c *counter) Stop(*kith.Context) {} // its shard moves, or the node leaves

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	node, err := kith.Start(ctx, kith.Config{Name: "first", Seeds: os.Args[1:]}) // on a free port of loopback
	check(err)
	counters, err := node.Register(kith.EntityType{Name: "counter",
		New: func(string, kith.Fence) kith.Handler { return &counter{} }})
	check(err)
	answer, err := counters.Ask(ctx, "lobby", []byte("visitor")) // on whichever node the lobby's counter lives
	check(err)
	fmt.Printf("%s, I am %s\n", answer, node.Addr())
	<-ctx.Done() // Ctrl-C
	check(node.Leave(context.Background()))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
