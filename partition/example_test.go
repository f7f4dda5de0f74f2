// The example of the package.

package partition_test

import (
	"context"
	"fmt"
	"log"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/partition"
)

// prices is an instance.
type prices struct{ slot int }

func (p prices) Receive(c *kith.Context, question []byte) error {
	return c.Reply(fmt.Appendf(nil, "%s by instance %d", question, p.slot))
}

func (prices) Stop(*kith.Context) {}

// A service that survives the loss of two nodes; here there is one node, so it has one instance.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	market, err := partition.Open(node, partition.Config{Path: "market/prices", Instances: partition.Survives(2),
		New: func(slot int, _ kith.Fence) kith.Handler { return prices{slot} }})
	if err != nil {
		log.Fatal(err)
	}
	if err := market.Known(ctx); err != nil {
		log.Fatal(err)
	}
	answer, err := market.Ask(ctx, "EURUSD", []byte("1.0841"))
	if err != nil {
		log.Fatal(err)
	}
	state, _ := market.Table()
	fmt.Printf("%s, %d of %d\n", answer, state.Has(), state.Wanted)
	// Output: 1.0841 by instance 0, 1 of 3
}
