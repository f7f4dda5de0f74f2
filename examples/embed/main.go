// Command embed is a node of a market: run it once, then again with the address that it printed.
package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

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

var patience = 40 * time.Second // how long to look for a cluster, and how long leaving it may take

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop() // not before: an orchestrator may send SIGTERM twice, and must not end a leave half-way
	cfg := kith.Config{Name: "market", Seeds: os.Args[1:], JoinTimeout: patience, Logger: slog.Default()}
	node, err := kith.Start(ctx, cfg) // on a free loopback port
	check(err)
	books, err := node.Register(kith.EntityType{Name: "book",
		New: func(string, kith.Fence) kith.Handler { return &book{} }})
	check(err)
	check(node.Ready(ctx))                            // its error names what it waits for, such as a dead seed
	check(books.Tell("EURUSD", []byte("5")))          // accepted or an error, never blocks
	bid, err := books.Ask(ctx, "EURUSD", []byte("2")) // wherever EURUSD lives
	check(err)
	log.Printf("bid %s, I am %s", bid, node.Addr())
	select {
	case <-ctx.Done(): // told to go: it gives its shards back first, but not for ever
		bounded, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		check(node.Leave(bounded))
	case <-node.Done(): // cut off and ended, or downed: whoever started this process starts it again
		check(node.Err())
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
