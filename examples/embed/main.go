// Command embed is a node of a market: run it once, then again with the address that it printed.
package main

import (
	"context"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/service"
)

type book struct{ bid int64 } // one entity: one owner in the cluster, one call at a time

func (b *book) Receive(c *kith.Context, order []byte) error {
	qty, err := strconv.ParseInt(string(order), 10, 64)
	if err != nil {
		return err // reaches the asker
	}
	b.bid += qty
	if c.Asked() {
		err = c.Reply(strconv.AppendInt(nil, b.bid, 10))
	}
	return err
}

func (b *book) Stop(c *kith.Context) {} // the shard moves or the node leaves: write b to a store, under c.Fence

var patience = 40 * time.Second // how long to look for a cluster

// main leaves in order on SIGTERM and Ctrl-C, and ends with an exit code for each end of its node.
func main() {
	node := kith.Config{Name: "market", Seeds: os.Args[1:], JoinTimeout: patience} // on a free loopback port
	service.Main(service.Config{Node: node}, serve)
}

// serve returns when the program may be sent work; one with a server of its own blocks until ctx ends.
func serve(ctx context.Context, node *kith.Node) error {
	books, err := node.Register(kith.EntityType{Name: "book",
		New: func(string, kith.Fence) kith.Handler { return &book{} }})
	if err != nil {
		return err
	}
	if err := node.Ready(ctx); err != nil { // it names what it waits for, such as a dead seed
		return err
	}
	if err := books.Tell("EURUSD", []byte("5")); err != nil { // accepted or an error, never blocks
		return err
	}
	bid, err := books.Ask(ctx, "EURUSD", []byte("2")) // wherever EURUSD lives
	if err != nil {
		return err
	}
	log.Printf("bid %s, I am %s", bid, node.Addr())
	return nil
}
