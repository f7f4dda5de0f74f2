// Tests of messages as values: from nodes, handlers and daemons, over two hops, and what is wrong with declarations.

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/sim"
)

// What sends messages.
var (
	_ kith.Sender = (*kith.Context)(nil)
	_ kith.Sender = (&kith.Context{}).With(nil)
	_ kith.Sender = (*kith.NodeSender)(nil)
	_ kith.Sender = sim.NodeSender{}
	_ kith.Sender = sim.EntitySender{}
)

type (
	fare  struct{ Cents int }
	asked struct{ City string }
	heard struct{ Headers, By string }
)

var (
	price   = kith.Message[asked, fare]{Type: "meter", Name: "price"}
	raise   = kith.Message[fare, struct{}]{Type: "meter", Name: "raise"}
	tells   = kith.Message[struct{}, heard]{Type: "meter", Name: "tells"}
	ride    = kith.Message[asked, fare]{Type: "ride", Name: "ride"}
	passes  = kith.Message[struct{}, heard]{Type: "ride", Name: "relay"}
	quietly = kith.Message[asked, fare]{Type: "meter", Name: "quietly"}
)

var errUnpaved = kith.NewError("unpaved", kith.KindNotFound, "no roads")

// meter has the price of a city.
type meter struct{ cents int }

func (m *meter) price(c *kith.Context, a *asked) (fare, error) {
	if a.City != c.ID {
		return fare{}, fmt.Errorf("%s: %w", a.City, errUnpaved)
	}
	return fare{m.cents}, nil
}

func (m *meter) raise(_ *kith.Context, by *fare) (struct{}, error) {
	m.cents += by.Cents
	return struct{}{}, nil
}

func (m *meter) tells(c *kith.Context, _ *struct{}) (heard, error) {
	return heard{string(c.Headers()), c.ID}, nil
}

func (*meter) Stop(*kith.Context) {}

// riding asks meters.
type riding struct{}

func (riding) ride(c *kith.Context, a *asked) (fare, error) { return price.Ask(c, "rome", a) }

func (riding) pass(c *kith.Context, m *struct{}) (heard, error) {
	return tells.Ask(c.With(c.Headers()), "rome", m)
}

func (riding) Stop(*kith.Context) {}

// metered declares what these tests run on a node.
func metered(t *testing.T, n *kith.Node) {
	for _, typ := range []kith.EntityType{
		{Name: "meter", Shards: 8, Typed: kith.Methods(func(*kith.Context) (*meter, error) { return &meter{}, nil },
			kith.On(price, (*meter).price), kith.On(raise, (*meter).raise), kith.On(tells, (*meter).tells))},
		{Name: "ride", Shards: 8, Typed: kith.Methods(func(*kith.Context) (riding, error) { return riding{}, nil },
			kith.On(ride, riding.ride), kith.On(passes, riding.pass))},
	} {
		_, err := n.Register(typ)
		require.NoError(t, err)
	}
}

// A message is sent and asked from nodes and from handlers, wherever its entity lives. An error with an identity comes
// through two hops, and headers go as far as handlers hand them on.
func TestMessages(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, nil, func(_ int, n *kith.Node) { metered(t, n) })
	for i, n := range nodes {
		from := kith.From(within(t), n)
		require.NoError(t, raise.Tell(from, "rome", &fare{100}))
		eventually(t, func() bool {
			got, err := price.Ask(from, "rome", &asked{"rome"})
			return err == nil && got == fare{100 * (i + 1)}
		}, "it is told")
		for k := range 8 { // some live here, some there
			id := fmt.Sprint(k)
			got, err := ride.Ask(from, id, &asked{"rome"})
			require.NoError(t, err)
			require.Equal(t, fare{100 * (i + 1)}, got)
			_, err = ride.Ask(from, id, &asked{"atlantis"})
			require.ErrorIs(t, err, errUnpaved)
			require.ErrorContains(t, err, "atlantis: no roads")
			var named *kith.Error
			require.ErrorAs(t, err, &named)
			require.Equal(t, []any{"unpaved", kith.KindNotFound}, []any{named.Code, named.Kind})
			said, err := passes.Ask(from.With([]byte("trace "+id)), id, &struct{}{})
			require.NoError(t, err)
			require.Equal(t, heard{"trace " + id, "rome"}, said)
			_, err = quietly.Ask(from, "rome", &asked{})
			require.ErrorIs(t, err, kith.ErrBadPayload)
			require.ErrorContains(t, err, `type "meter" takes no message "quietly"`)
			require.False(t, kith.MayHaveRun(err))
		}
	}
}

// What sends from a node ends with its context, which it names, and says what the node does not know.
func TestMessagesFromANode(t *testing.T) {
	t.Parallel()
	n := start(t, logger(t), kith.Config{})
	metered(t, n)
	_, err := kith.Message[fare, fare]{Type: "nobody"}.Ask(kith.From(within(t), n), "a", &fare{})
	require.ErrorIs(t, err, kith.ErrNotRegistered)
	require.ErrorContains(t, err, `"nobody"`)
	require.False(t, kith.MayHaveRun(err))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = price.Ask(kith.From(ctx, n), "rome", &asked{})
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, kith.MayHaveRun(err))
	require.ErrorIs(t, raise.Tell(kith.From(ctx, n), "rome", &fare{}), context.Canceled)
	require.Same(t, ctx, kith.From(ctx, n).Context())
	short := price
	short.Within = -time.Second
	_, err = short.Ask(kith.From(within(t), n), "rome", &asked{})
	require.ErrorIs(t, err, kith.ErrTimeout)
	require.False(t, kith.MayHaveRun(err))
}

// stated is a meter that hands its state over by itself.
type stated struct{ meter }

func (*stated) HandOver(*kith.Context) ([]byte, error) { return nil, nil }
func (*stated) TakeUp(*kith.Context, []byte) error     { return nil }

// Register, and Singleton, report every fault of a declaration.
func TestMethodsBadInput(t *testing.T) {
	open := func(*kith.Context) (*meter, error) { return &meter{}, nil }
	named := func(name string) kith.Method[*meter] {
		return kith.On(kith.Message[asked, fare]{Type: "meter", Name: name}, (*meter).price)
	}
	other := func(*meter, *kith.Context, *asked) (fare, error) { return fare{}, nil }
	none := kith.HandOver[*meter, int](nil, nil, nil)
	moves := kith.HandOver(nil, func(*meter, *kith.Context) (*int, error) { return nil, nil },
		func(*meter, *kith.Context, *int) error { return nil })
	n := start(t, logger(t), kith.Config{})
	for fault, typed := range map[string]kith.Opener{
		"no method takes a message":                           kith.Methods(open),
		"the function that makes handlers is nil":             kith.Methods(nil, named("a")),
		`message "a" has two methods`:                         kith.Methods(open, named("a"), named("a")),
		"a message has no Name, and is not the only one":      kith.Methods(open, named("a"), named("")),
		`message "ride" is of type "ride"`:                    kith.Methods(open, kith.On(ride, other)),
		`the method of message "price" is nil`:                kith.Methods(open, kith.On[*meter](price, nil)),
		`"a b" has other characters than letters, digits and`: kith.Methods(open, named("a b")),
		"has 65 bytes, must have at most 64":                  kith.Methods(open, named(strings.Repeat("x", 65))),
		"neither On nor HandOver":                             kith.Methods(open, named("a"), kith.Method[*meter]{}),
		"HandOver has a function that is nil":                 kith.Methods(open, named("a"), none),
		"the state is handed over in two ways":                kith.Methods(open, named("a"), moves, moves),
		"handed over in two ways": kith.Methods(func(*kith.Context) (*stated, error) { return nil, nil },
			kith.On(price, func(*stated, *kith.Context, *asked) (fare, error) { return fare{}, nil }),
			kith.HandOver(nil, func(*stated, *kith.Context) (*int, error) { return nil, nil },
				func(*stated, *kith.Context, *int) error { return nil })),
	} {
		_, err := n.Register(kith.EntityType{Name: "meter", Typed: typed})
		require.ErrorContains(t, err, fault)
		_, err = n.Singleton(kith.Singleton{Name: "meter", Typed: typed})
		require.ErrorIs(t, err, kith.ErrBadConfig)
		require.ErrorContains(t, err, fault)
	}
	_, err := n.Register(kith.EntityType{Name: "meter", Typed: kith.Methods(open, named("a")),
		New: func(string, kith.Fence) kith.Handler { return nil }})
	require.ErrorContains(t, err, "Typed is set, and so is New or Open")
	_, err = n.Register(kith.EntityType{Name: "meter"})
	require.ErrorContains(t, err, "New is nil, and so are Open and Typed")
}

// spent is a sender that has a reply ready.
type spent struct{ reply []byte }

func (s *spent) Tell(string, string, []byte) error { return nil }

func (s *spent) Ask(time.Duration, string, string, []byte) ([]byte, error) { return s.reply, nil }

// With codecs that allocate nothing a tell allocates nothing, and an ask its answer alone (CARD-3).
func TestMessagesAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	m := kith.Message[put, sum]{Type: "purse", Name: "put", Message: putCodec, Reply: sumCodec}
	s, v := &spent{make([]byte, 8)}, &put{N: 1}
	require.Zero(t, testing.AllocsPerRun(1000, func() { _ = m.Tell(s, "a", v) }))
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { _, _ = m.Ask(s, "a", v) }), 1.0)
}
