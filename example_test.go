// Examples of the API as godoc shows them.

package kith_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith"
)

type order struct{ Qty int64 }

type quote struct{ Bid int64 }

type orderBook struct{ bid int64 }

func (b *orderBook) order(_ *kith.Context, o *order) (quote, error) {
	b.bid += o.Qty
	return quote{b.bid}, nil
}

func (b *orderBook) watch(c *kith.Context, user *string) (struct{}, error) {
	return struct{}{}, notices.Tell(c, *user, &quote{b.bid}) // to another entity, with the same form
}

func (b *orderBook) Stop(*kith.Context) {}

func openBook(*kith.Context) (*orderBook, error) { return &orderBook{}, nil }

// Each kind of message is declared once, where senders and handlers see it.
var (
	orders  = kith.Message[order, quote]{Type: "book", Name: "order"}
	watches = kith.Message[string, struct{}]{Type: "book", Name: "watch"}
	notices = kith.Message[quote, struct{}]{Type: "user", Name: "notice"}
)

type user struct{ got chan<- quote }

func (u *user) notice(_ *kith.Context, q *quote) (struct{}, error) {
	u.got <- *q
	return struct{}{}, nil
}

func (u *user) Stop(*kith.Context) {}

// A Message is a value that can be sent and asked from everywhere; a type takes each by a method of its own.
func ExampleMessage() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{Name: "market"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()
	got := make(chan quote, 1)
	for _, t := range []kith.EntityType{
		{Name: "book", Typed: kith.Methods(openBook, kith.On(orders, (*orderBook).order),
			kith.On(watches, (*orderBook).watch))},
		{Name: "user", Typed: kith.Methods(func(*kith.Context) (*user, error) { return &user{got}, nil },
			kith.On(notices, (*user).notice))},
	} {
		if _, err := node.Register(t); err != nil {
			fmt.Println(err)
			return
		}
	}
	from := kith.From(ctx, node)
	q, err := orders.Ask(from, "EURUSD", &order{Qty: 7})
	fmt.Println(q.Bid, err)
	anna := "anna"
	err = watches.Tell(from, "EURUSD", &anna)
	fmt.Println((<-got).Bid, err)
	// Output:
	// 7 <nil>
	// 7 <nil>
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

// mailer is a singleton: there is one of it in the cluster.
type mailer struct{ sent int }

func (m *mailer) Receive(c *kith.Context, _ []byte) error {
	m.sent++
	return c.Reply(fmt.Append(nil, "mail ", m.sent))
}

func (m *mailer) Stop(*kith.Context) {}

// A singleton begins on the oldest member; every node that declares it sends to it.
func ExampleNode_Singleton() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{Name: "market"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()
	ref, err := node.Singleton(kith.Singleton{Name: "mailer", New: func(kith.Fence) kith.Handler { return &mailer{} }})
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := ref.Ask(ctx, []byte("hello"))
	fmt.Println(string(reply), err)
	// Output: mail 1 <nil>
}

// resizer is a worker: it keeps nothing from message to message.
type resizer struct{}

func (resizer) Receive(c *kith.Context, picture []byte) error { return c.Reply(picture[:5]) }
func (resizer) Stop(*kith.Context)                            {}

// A pool has workers on every node of its role. A message goes to one of the node that sends it, if that has room.
func ExamplePool() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{Name: "market"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()
	pool := kith.Pool{Name: "thumbs", PerNode: 4, New: func() kith.Handler { return resizer{} }}
	thumbs, err := pool.Register(node)
	if err != nil {
		fmt.Println(err)
		return
	}
	small, err := thumbs.Ask(ctx, []byte("large picture"))
	fmt.Printf("%s %v\n", small, err)
	// Output: large <nil>
}

// Daemons are called without a message, each on one node, until their context ends.
func ExampleNode_Daemons() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{Name: "market"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()
	began := make(chan int, 3)
	crawl := func(ctx context.Context, _ *kith.Context, index int) error {
		began <- index
		<-ctx.Done()
		return ctx.Err()
	}
	_, err = node.Daemons(kith.Daemons{Name: "crawler", N: 3, Run: crawl})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-began + <-began + <-began) // 0, 1 and 2, in any order
	// Output: 3
}

// Around is called around each message of a type: here the sender signs, and the receiver looks.
func ExampleAround() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{Name: "market"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()
	denied := kith.NewError("denied", kith.KindDenied, "sign your orders")
	key := []byte("anna")
	signed := kith.Around{
		Send: func(m *kith.Sending) (func([]byte, error), error) {
			m.Headers = key
			return func(reply []byte, err error) { fmt.Println(m.Type, m.ID, string(reply), err) }, nil
		},
		Receive: func(c *kith.Context, payload []byte, next func([]byte) error) error {
			if string(c.Headers()) != "anna" {
				return denied
			}
			return next(payload)
		},
	}
	_, err = node.Register(kith.EntityType{Name: "book", Around: []kith.Around{signed},
		Typed: kith.Methods(openBook, kith.On(orders, (*orderBook).order))})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = orders.Ask(kith.From(ctx, node), "EURUSD", &order{Qty: 5})
	fmt.Println(err)
	key = []byte("eve")
	_, err = orders.Ask(kith.From(ctx, node), "EURUSD", &order{Qty: 5})
	fmt.Println(errors.Is(err, denied), kith.MayHaveRun(err))
	// Output:
	// book EURUSD {"Bid":5} <nil>
	// <nil>
	// book EURUSD  kith: handler returned an error: sign your orders
	// true false
}
