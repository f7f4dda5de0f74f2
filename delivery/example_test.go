// The example of a queue: letters that are kept until their reader has had them.

package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/delivery"
	"github.com/kith-io/kith/store"
)

// reader is an entity without state in a store.
type reader struct {
	had  chan string
	busy bool
}

// Receive acknowledges by nil. What it refuses comes again.
func (r *reader) Receive(c *kith.Context, payload []byte) error {
	if r.busy {
		r.busy = false
		return errors.New("not now")
	}
	m, _ := delivery.Of(c) // m.Key names the message, for a receiver that stores what it has handled
	r.had <- fmt.Sprintf("%s has %s at try %d", c.ID, payload, m.Try)
	return nil
}

// Stop is called when its shard moves, or the node leaves.
func (r *reader) Stop(*kith.Context) {}

// A message that is stored when Send returns, and is delivered until its receiver acknowledges it.
func Example() {
	ctx := context.Background()
	node := must(kith.Start(ctx, kith.Config{}))
	defer node.Close()
	had := make(chan string)
	readers := must(node.Register(delivery.Consumer(kith.EntityType{Name: "reader",
		New: func(string, kith.Fence) kith.Handler { return &reader{had, true} }})))
	letters := must(delivery.Register(node, delivery.Queue{Name: "letters", To: readers, Store: store.Memory()}))
	if err := letters.Send(ctx, "anna", []byte("news")); err != nil {
		log.Fatal(err) // kith.MayHaveRun(err): it may be stored all the same
	}
	fmt.Println(<-had)
	// Output: anna has news at try 2
}

// must ends the program on an error.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
