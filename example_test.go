// Examples of the API as godoc shows them.

package kith_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/kith-io/kith"
)

type order struct{ Qty int64 }

type quote struct{ Bid int64 }

// jsonCodec is a codec of any value. Codecs of a hot path are written by hand.
type jsonCodec[M any] struct{}

func (jsonCodec[M]) Append(dst []byte, m *M) ([]byte, error) {
	b, err := json.Marshal(m)
	return append(dst, b...), err
}

func (jsonCodec[M]) ParseInto(b []byte, m *M) error { return json.Unmarshal(b, m) }

type orderBook struct{ bid int64 }

func (b *orderBook) Receive(c *kith.Context, payload []byte) error {
	var o order
	if err := json.Unmarshal(payload, &o); err != nil {
		return err
	}
	b.bid += o.Qty
	reply, err := json.Marshal(quote{b.bid})
	if err != nil || !c.Asked() {
		return err
	}
	return c.Reply(reply)
}

func (b *orderBook) Stop(*kith.Context) {}

// Typed puts values over a region of bytes.
func ExampleTyped() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{Name: "market"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()
	region, err := node.Register(kith.Type{Name: "book", Mode: kith.Worker,
		New: func(string, kith.Fence) kith.Handler { return &orderBook{} }})
	if err != nil {
		fmt.Println(err)
		return
	}
	books := kith.Typed[order, quote](region, jsonCodec[order]{}, jsonCodec[quote]{})
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
