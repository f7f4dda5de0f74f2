// Tests of typed entities on a simulated cluster: types, singletons and daemons take the declarations that nodes take.

package sim_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim"
)

type (
	sale  struct{ Copies int }
	stock struct{ Sold int }
	order struct{ Book string }
	none  = struct{}
)

// What the entities of these tests take.
var (
	sell   = kith.Message[sale, stock]{Type: "till", Name: "sell"}
	settle = kith.Message[sale, none]{Type: "till", Name: "settle"}
	buy    = kith.Message[order, stock]{Type: "shop", Name: "buy"}
	count  = kith.Message[none, stock]{Type: "clerk"} // a singleton, which takes nothing else
)

var errClosed = kith.NewError("closed", kith.KindConflict, "the till is closed")

// till counts the sales of a book, and takes back those that nobody confirms within a minute.
type till struct {
	sold int
	told []string // what its node has said
}

func (b *till) sell(c *kith.Context, m *sale) (stock, error) {
	if m.Copies < 0 {
		return stock{}, fmt.Errorf("%s: %w", c.ID, errClosed)
	}
	b.sold += m.Copies
	return stock{b.sold}, settle.SetTimer(c, "", time.Minute, m)
}

func (b *till) settle(_ *kith.Context, m *sale) (none, error) {
	b.sold -= m.Copies
	return none{}, nil
}

func (b *till) Receive(c *kith.Context, payload []byte) error {
	name, _ := c.Timer()
	b.told = append(b.told, fmt.Sprintf("%s %s %v", name, payload, c.StopReason()))
	return nil
}

func (*till) Stop(*kith.Context) {}

func newTill(*kith.Context) (*till, error) { return &till{}, nil }

func tillType() kith.EntityType {
	return kith.EntityType{Name: "till", Shards: 8, StopMessage: []byte("the end"),
		Typed: kith.Methods(newTill, kith.On(sell, (*till).sell), kith.On(settle, (*till).settle))}
}

// shop asks tills for its askers, and hands its headers on.
type shop struct{}

func (*shop) buy(c *kith.Context, m *order) (stock, error) {
	return sell.Ask(c.With(c.Headers()), m.Book, &sale{1})
}

func (*shop) Stop(*kith.Context) {}

func shopType() kith.EntityType {
	return kith.EntityType{Name: "shop", Shards: 8,
		Typed: kith.Methods(func(*kith.Context) (*shop, error) { return &shop{}, nil }, kith.On(buy, (*shop).buy))}
}

// TestTyped: a typed type runs in the simulator as any other, with its timers, and is asked with values; a handler asks
// as a test does, and an error with an identity comes through both.
func TestTyped(t *testing.T) {
	c := sim.New(t, 3, 7)
	c.Register(tillType())
	c.Register(shopType())
	c.AwaitUp()
	for n := range 3 {
		got, err := sell.Ask(c.Node(n), "dune", &sale{2})
		require.NoError(t, err)
		require.Equal(t, stock{3*n + 2}, got)
		got, err = buy.Ask(c.Node(n), "main street", &order{"dune"})
		require.NoError(t, err)
		require.Equal(t, stock{3*n + 3}, got)
	}
	require.NoError(t, sell.Tell(c.Node(0), "dune", &sale{1}))
	c.Advance(2 * time.Minute)
	got, err := sell.Ask(c.Node(1), "dune", &sale{})
	require.NoError(t, err)
	require.Equal(t, stock{}, got, "all that was sold was taken back")

	_, err = sell.Ask(c.Node(0), "dune", &sale{-1})
	require.ErrorIs(t, err, errClosed)
	var named *kith.Error
	require.ErrorAs(t, err, &named)
	require.Equal(t, kith.KindConflict, named.Kind)
	quick := sell
	quick.Within = time.Second
	c.PowerOff(c.Owner("till", "dune"))
	on := 0
	for !c.Running(on) {
		on++
	}
	before := c.Now()
	_, err = quick.Ask(c.Node(on), "dune", &sale{})
	require.ErrorIs(t, err, kith.ErrTimeout)
	require.InDelta(t, 1, (c.Now() - before).Seconds(), 0.1)
}

// TestTypedRefused: what no method takes and what a codec refuses reaches no handler, and the asker knows. Nil is not
// sent.
func TestTypedRefused(t *testing.T) {
	c := sim.New(t, 3, 7)
	c.Register(tillType())
	c.AwaitUp()
	_, err := sell.Ask(c.Node(0), "dune", &sale{2})
	require.NoError(t, err)
	for what, ask := range map[string]func() error{
		"takes no message \"steal\"": func() error {
			_, err := kith.Message[sale, stock]{Type: "till", Name: "steal"}.Ask(c.Node(1), "dune", &sale{2})
			return err
		},
		"takes no message \"{\\\"Copies\\\":2}\"": func() error {
			_, err := kith.Message[sale, stock]{Type: "till"}.Ask(c.Node(1), "dune", &sale{2})
			return err
		},
		"cannot unmarshal string": func() error {
			_, err := kith.Message[string, stock]{Type: "till", Name: "sell"}.Ask(c.Node(1), "dune", new(string))
			return err
		},
		"unexpected end of JSON": func() error {
			_, err := c.Ask(1, "till", "dune", []byte("sell {"))
			return err
		},
		"end of JSON":               func() error { _, err := c.Ask(1, "till", "dune", []byte("sell")); return err },
		"takes no message \"\"":     func() error { _, err := c.Ask(1, "till", "dune", nil); return err },
		"the message is nil":        func() error { _, err := sell.Ask(c.Node(1), "dune", nil); return err },
		"payload refused by codec:": func() error { return sell.Tell(c.Node(1), "dune", nil) },
		"json: unsupported type": func() error {
			return kith.Message[func(), none]{Type: "till"}.Tell(c.Node(1), "dune", new(func()))
		},
	} {
		err := ask()
		require.ErrorIs(t, err, kith.ErrBadPayload, what)
		require.ErrorContains(t, err, what)
		require.False(t, kith.MayHaveRun(err), what)
	}
	got, err := sell.Ask(c.Node(1), "dune", &sale{})
	require.NoError(t, err)
	require.Equal(t, stock{2}, got, "nothing has changed the state")

	_, err = kith.Message[sale, string]{Type: "till", Name: "sell"}.Ask(c.Node(0), "dune", &sale{})
	require.ErrorIs(t, err, kith.ErrBadPayload, "a reply that the asker's codec refuses")
	require.True(t, kith.MayHaveRun(err))
	_, err = kith.Message[sale, stock]{Type: "vault", Name: "sell"}.Ask(c.Node(0), "dune", &sale{})
	require.ErrorIs(t, err, kith.ErrNotRegistered)
}

// clerk sells a book when it begins, and says how many it has.
type clerk struct{ sold int }

func (k *clerk) count(*kith.Context, *none) (stock, error) { return stock{k.sold}, nil }

func (*clerk) Stop(*kith.Context) {}

func newClerk(c *kith.Context) (*clerk, error) {
	s, err := sell.Ask(c, "dune", &sale{1})
	return &clerk{s.Sold}, err
}

// TestTypedKept: a singleton and daemons are declared here as on a node, and their Contexts send as those of entities.
func TestTypedKept(t *testing.T) {
	c := sim.New(t, 3, 11)
	c.Register(tillType())
	c.Keep(kith.Singleton{Name: "clerk", Typed: kith.Methods(newClerk, kith.On(count, (*clerk).count))})
	rounds, fences := map[int]int{}, map[int]kith.Fence{}
	c.Keep(kith.Daemons{Name: "buyers", N: 4, MinBackoff: 10 * time.Second,
		Run: func(ctx context.Context, k *kith.Context, index int) error {
			require.NoError(t, ctx.Err())
			require.NoError(t, k.Context().Err())
			require.Positive(t, k.Fence.Compare(fences[index])+1)
			rounds[index], fences[index] = rounds[index]+1, k.Fence
			_, err := sell.Ask(k, "emma", &sale{1})
			return errors.Join(err, sell.Tell(k, "ulysses", &sale{1}))
		}})
	c.AwaitUp()
	got, err := count.Ask(c.Node(2), count.Type, &none{})
	require.NoError(t, err)
	require.Equal(t, stock{1}, got)
	_, err = count.Ask(c.Node(2), "another", &none{})
	require.ErrorIs(t, err, kith.ErrNewFailed, "a singleton has one id")
	require.True(t, c.Until(time.Minute, func() bool { return len(rounds) == 4 && rounds[0] > 1 }))
	for _, book := range []string{"emma", "ulysses"} {
		require.True(t, c.Until(time.Minute, func() bool {
			sold, err := sell.Ask(c.Node(0), book, &sale{})
			return err == nil && sold.Sold == rounds[0]+rounds[1]+rounds[2]+rounds[3]
		}))
	}
	on := c.Owner("clerk", "clerk")
	c.Leave(on)
	require.True(t, c.Until(time.Minute, func() bool { return !c.Running(on) }))
	got, err = count.Ask(c.Node((on+1)%3), count.Type, &none{})
	require.NoError(t, err)
	require.Equal(t, stock{1}, got, "it has begun elsewhere")
}

// TestTypedEntity: a typed entity alone; what no method is for comes to Receive, and what it asks is read as values.
func TestTypedEntity(t *testing.T) {
	b := &till{}
	typ := tillType()
	open := func(c *kith.Context) (*till, error) { return b, c.SetTimer("tick", time.Second, []byte("tock")) }
	typ.Typed = kith.Methods(open, kith.On(sell, (*till).sell), kith.On(settle, (*till).settle))
	e := sim.NewEntity(t, typ, "dune", sim.EntityConfig{})
	got, err := sell.Ask(e.Sender(), "dune", &sale{2})
	require.NoError(t, err)
	require.Equal(t, stock{2}, got)
	require.NoError(t, sell.Tell(e.Sender(), "dune", &sale{1}))
	_, err = sell.Ask(e.Sender(), "emma", &sale{2})
	require.ErrorIs(t, err, kith.ErrBadID)
	require.ErrorIs(t, buy.Tell(e.Sender(), "dune", &order{}), kith.ErrNotRegistered)
	e.Advance(time.Hour)
	require.Zero(t, b.sold, "both were taken back")
	e.Stop(kith.StopLeaving, 0)
	require.Equal(t, []string{"tick tock not-stopping", " the end leaving"}, b.told)

	s := sim.NewEntity(t, shopType(), "main street", sim.EntityConfig{Answer: func(s sim.Sent) ([]byte, error) {
		m, ok := sell.Of(s.Payload)
		require.True(t, ok)
		require.Equal(t, sale{1}, *m)
		require.Equal(t, kith.DefaultWithin, s.Within)
		_, other := settle.Of(s.Payload)
		require.False(t, other)
		return nil, fmt.Errorf("%w: alas", route.ErrPeerLost)
	}})
	_, err = buy.Ask(s.Sender(), "main street", &order{"dune"})
	require.ErrorIs(t, err, kith.ErrPeerLost, "of the ask within")
	call := s.Do(sim.Message{Payload: []byte(`buy {"Book":"dune"}`), Headers: []byte("trace"), Ask: true})
	require.Equal(t, "trace", string(call.Sent[0].Headers), "headers go on where the handler hands them on")
}
