// Examples of the API as godoc shows them.

package kith_test

import (
	"context"
	"fmt"
	"time"

	"github.com/kith-io/kith"
)

type order struct{ Qty int64 }

type quote struct{ Bid int64 }

type orderBook struct{ bid int64 }

func (b *orderBook) Receive(_ *kith.Context, o *order) (quote, error) {
	b.bid += o.Qty
	return quote{b.bid}, nil
}

func (b *orderBook) Stop(*kith.Context) {}

func openBook(*kith.Context) (kith.TypedHandler[order, quote], error) { return &orderBook{}, nil }

// Typed puts values over a region of bytes, TypedType under its handlers.
func ExampleTyped() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{Name: "market"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()
	region, err := node.Register(kith.TypedType(kith.Type{Name: "book", Mode: kith.Worker},
		kith.JSON[order](), kith.JSON[quote](), openBook))
	if err != nil {
		fmt.Println(err)
		return
	}
	books := kith.Typed(region, kith.JSON[order](), kith.JSON[quote]())
	if err := books.Tell("EURUSD", &order{Qty: 5}); err != nil {
		fmt.Println(err)
	}
	q, err := books.Ask(ctx, "EURUSD", &order{Qty: 2})
	fmt.Println(q.Bid, err)
	// Output: 7 <nil>
}

// Events begin with a snapshot and miss nothing after it.
func ExampleNode_Events() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{Name: "market"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()
	for ev := range node.Events(ctx) {
		if self, ok := ev.View.SelfMember(); ok && self.Status == kith.Up {
			fmt.Println("up, with", len(ev.View.Members), "member")
			break
		}
	}
	// Output: up, with 1 member
}
