// Command embed is a node of a market: run it once, then again with the address that it printed.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"strconv"

	"github.com/kith-io/kith"
)

type book struct{ bid int64 } // one entity: one owner in the cluster, one call at a time

func (b *book) Receive(c *kith.Context, order []byte) error {
	qty, err := strconv.ParseInt(string(order), 10, 64)
	if err != nil {
		return err // reaches whoever asked
	}
	b.bid += qty
	if c.Asked() {
		err = c.Reply(strconv.AppendInt(nil, b.bid, 10))
	}
	return err
}

func (b *book) Stop(c *kith.Context) {} // the shard moves or the node leaves: write b to a store, under c.Fence

func main() {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
	node, err := kith.Start(ctx, kith.Config{Name: "market", Seeds: os.Args[1:]}) // on a free loopback port
	check(err)
	books, err := node.Register(kith.Type{Name: "book", New: func(string, kith.Fence) kith.Handler { return &book{} }})
	check(err)
	check(node.Ready(ctx))
	check(books.Tell("EURUSD", []byte("5")))          // accepted or an error, never blocks
	bid, err := books.Ask(ctx, "EURUSD", []byte("2")) // wherever EURUSD lives
	check(err)
	log.Printf("bid %s, I am %s", bid, node.Addr())
	<-ctx.Done()
	check(node.Leave(context.Background())) // gives its shards back first
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
