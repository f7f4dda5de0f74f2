// Tests of typed handlers: values in and out, what codecs refuse, timers, and what it costs.

package e2e_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/sim"
)

// put is what an purse gets, sum what it answers.
type (
	put struct {
		N    int64
		Note string
	}
	sum struct{ Total int64 }
)

// binary8 is a codec that allocates nothing, for a value that holds one number.
type binary8[M any] struct{ at func(m *M) *int64 }

func (c binary8[M]) Append(dst []byte, m *M) ([]byte, error) {
	if *c.at(m) == 666 {
		return dst, errors.New("666")
	}
	return binary.BigEndian.AppendUint64(dst, uint64(*c.at(m))), nil
}

func (c binary8[M]) ParseInto(b []byte, m *M) error {
	if len(b) != 8 {
		return errors.New("not 8 bytes")
	}
	*c.at(m) = int64(binary.BigEndian.Uint64(b))
	return nil
}

var (
	putCodec kith.Codec[put] = binary8[put]{func(m *put) *int64 { return &m.N }}
	sumCodec kith.Codec[sum] = binary8[sum]{func(m *sum) *int64 { return &m.Total }}
)

// purse sums up.
type purse struct {
	total  int64
	calls  *int
	timers []string
	token  kith.ReplyToken
	m      kith.Message[put, sum]
}

var errNegative = errors.New("negative")

// Receive gets timers that carry no message.
func (a *purse) Receive(c *kith.Context, payload []byte) error {
	name, _ := c.Timer()
	a.timers = append(a.timers, fmt.Sprintf("%s %q", name, payload))
	return nil
}

func (a *purse) put(c *kith.Context, m *put) (sum, error) {
	*a.calls++
	if name, ok := c.Timer(); ok {
		a.timers = append(a.timers, name)
		a.total += m.N
		return sum{-1}, nil // nobody gets it
	}
	switch {
	case m.N < 0:
		return sum{}, errNegative
	case m.Note == "own":
		return sum{-1}, c.Reply([]byte("own"))
	case m.Note == "later":
		a.token = c.Detach()
		return sum{-1}, nil
	case m.Note == "timers":
		return sum{a.total}, errors.Join(a.m.SetTimer(c, "five", time.Second, &put{N: 5}),
			c.SetTimer("none", 2*time.Second, nil))
	}
	a.total += m.N
	return sum{a.total}, nil
}

func (a *purse) Stop(*kith.Context) {}

func purseType(mode kith.Mode, ask kith.Codec[put], reply kith.Codec[sum], a *purse) kith.EntityType {
	a.m = kith.Message[put, sum]{Type: "purse", Message: ask, Reply: reply}
	return kith.EntityType{Name: "purse", Mode: mode, Shards: 8,
		Typed: kith.Methods(func(*kith.Context) (*purse, error) { return a, nil }, kith.On(a.m, (*purse).put))}
}

var allModes = []kith.Mode{kith.Blocking, kith.Worker, kith.Inline}

// An ask is answered with what the handler returned, unless it has answered itself or will; what a codec refuses is
// handled by nobody, and the asker knows.
func TestTypedHandler(t *testing.T) {
	for _, mode := range allModes {
		t.Run(mode.String(), func(t *testing.T) {
			a := &purse{calls: new(int)}
			e := sim.NewEntity(t, purseType(mode, kith.JSON[put](), kith.JSON[sum](), a), "a", sim.EntityConfig{})
			ask := func(text string) string {
				reply, err := e.Ask([]byte(text))
				require.NoError(t, err)
				return string(reply)
			}
			require.Equal(t, `{"Total":3}`, ask(`{"N":3}`))
			require.NoError(t, e.Tell([]byte(`{"N":4,"Note":"a tell"}`)).Err)
			require.Equal(t, `{"Total":7}`, ask(`{}`), "nothing is left of the message before")
			require.Equal(t, "own", ask(`{"Note":"own"}`))

			c := e.Do(sim.Message{Payload: []byte(`{"Note":"later"}`), Ask: true})
			_, err := c.Reply()
			require.ErrorIs(t, err, kith.ErrTimeout)
			require.NoError(t, a.token.Reply([]byte("later")))
			reply, err := c.Reply()
			require.NoError(t, err)
			require.Equal(t, "later", string(reply))

			_, err = e.Ask([]byte(`{"N":-1}`))
			require.ErrorIs(t, err, kith.ErrHandler)
			require.True(t, kith.MayHaveRun(err))
			before := *a.calls
			_, err = e.Ask([]byte(`{"N":`))
			require.ErrorIs(t, err, kith.ErrBadPayload)
			require.ErrorContains(t, err, "unexpected end of JSON")
			require.False(t, kith.MayHaveRun(err))
			require.ErrorIs(t, e.Tell([]byte(`[]`)).Err, kith.ErrBadPayload)
			require.Equal(t, before, *a.calls, "the handler has seen neither")
		})
	}
}

// A reply that its codec refuses is the handler's error: the message was executed.
func TestTypedHandlerReplyRefused(t *testing.T) {
	a := &purse{calls: new(int), total: 600}
	e := sim.NewEntity(t, purseType(kith.Worker, putCodec, sumCodec, a), "a", sim.EntityConfig{})
	b, err := putCodec.Append(nil, &put{N: 66})
	require.NoError(t, err)
	_, err = e.Ask(b)
	require.ErrorIs(t, err, kith.ErrHandler)
	require.NotErrorIs(t, err, kith.ErrBadPayload)
	require.True(t, kith.MayHaveRun(err))
	require.ErrorContains(t, err, "the reply: kith: payload refused by codec: 666")
	require.Equal(t, int64(666), a.total)
}

// Timers reach their method with a value, and Receive when they have none.
func TestTypedTimers(t *testing.T) {
	for _, mode := range allModes {
		a := &purse{calls: new(int)}
		e := sim.NewEntity(t, purseType(mode, kith.JSON[put](), kith.JSON[sum](), a), "a", sim.EntityConfig{})
		c := e.Tell([]byte(`{"Note":"timers"}`))
		require.NoError(t, c.Err)
		require.Len(t, c.Set, 2)
		for _, c := range e.Advance(time.Minute) {
			require.NoError(t, c.Err)
		}
		require.Equal(t, []string{"five", `none ""`}, a.timers)
		require.Equal(t, int64(5), a.total)
	}
}

// Open's error and its nil are passed on.
func TestTypedOpenFails(t *testing.T) {
	for _, fails := range []error{errNegative, nil} {
		typ := kith.EntityType{Name: "purse", Typed: kith.Methods(
			func(*kith.Context) (*purse, error) { return nil, fails },
			kith.On(kith.Message[put, sum]{Type: "purse"}, (*purse).put))}
		_, err := sim.NewEntity(t, typ, "a", sim.EntityConfig{}).Ask(make([]byte, 8))
		require.ErrorIs(t, err, kith.ErrNewFailed)
	}
}

// plain is purse without types: what a message costs by itself.
type plain struct{ buf []byte }

func (p *plain) Receive(c *kith.Context, b []byte) error {
	if !c.Asked() {
		return nil
	}
	p.buf = append(p.buf[:0], b...)
	return c.Reply(p.buf)
}

func (*plain) Stop(*kith.Context) {}

// With codecs that allocate nothing, neither a tell nor an ask of a typed handler allocates more than that of a plain
// one (CARD-3).
func TestTypedHandlerAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	payload, err := putCodec.Append(nil, &put{N: 1})
	require.NoError(t, err)
	typed := purseType(kith.Worker, putCodec, sumCodec, &purse{calls: new(int)})
	h, err := typed.Typed.Open(&kith.Context{})
	require.NoError(t, err)
	c := &kith.Context{} // of a tell
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if h.Receive(c, payload) != nil {
			t.Error("a tell fails")
		}
	}))
	asks := func(typ kith.EntityType) float64 {
		e := sim.NewEntity(t, typ, "a", sim.EntityConfig{})
		return testing.AllocsPerRun(1000, func() {
			if _, err := e.Ask(payload); err != nil {
				t.Error(err)
			}
		})
	}
	require.Equal(t, asks(kith.EntityType{Name: "plain", Mode: kith.Worker,
		New: func(string, kith.Fence) kith.Handler { return &plain{} }}), asks(typed))
}

// Over sockets: values go there and back, and a request that its codec refuses there is known here as not executed.
func TestTypedHandlerRemote(t *testing.T) {
	t.Parallel()
	a := &purse{calls: new(int)}
	var regions []*kith.Region
	var nodes []*kith.Node
	for i := range 2 {
		cfg := kith.Config{Name: "test", Membership: quick()}
		if i == 1 {
			cfg.Roles, cfg.Seeds = []string{"host"}, []string{nodes[0].Addr().String()}
		}
		node, err := kith.Start(t.Context(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = node.Close() })
		typ := purseType(kith.Worker, putCodec, sumCodec, a)
		typ.Role = "host"
		r, err := node.Register(typ)
		require.NoError(t, err)
		nodes, regions = append(nodes, node), append(regions, r)
	}
	for _, n := range nodes {
		require.NoError(t, n.Ready(within(t)))
	}
	got, err := a.m.In(regions[0]).Ask(within(t), "a", &put{N: 2})
	require.NoError(t, err)
	require.Equal(t, sum{2}, got)
	other := a.m
	other.Message = nil
	for _, r := range regions { // remote, and local
		_, err = other.In(r).Ask(within(t), "a", &put{N: 2})
		require.ErrorIs(t, err, kith.ErrBadPayload)
		require.ErrorContains(t, err, "not 8 bytes")
		require.False(t, kith.MayHaveRun(err))
	}
}
