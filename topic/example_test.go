// The example of the package.

package topic_test

import (
	"context"
	"fmt"
	"log"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/topic"
)

// A node publishes to the subscribers of a topic on all nodes, itself included.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	if err := node.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	topics, err := topic.Start(node)
	if err != nil {
		log.Fatal(err)
	}
	prices, err := topics.Open("prices")
	if err != nil {
		log.Fatal(err)
	}
	messages := prices.Subscribe(ctx)
	if err := prices.Known(ctx); err != nil {
		log.Fatal(err)
	}
	if err := prices.Publish([]byte("EURUSD 1.0841")); err != nil {
		log.Fatal(err)
	}
	for m := range messages {
		fmt.Printf("%s, missed %d\n", m.Payload, m.Missed)
		break
	}
	// Output: EURUSD 1.0841, missed 0
}
