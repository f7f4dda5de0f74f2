// Tests of asks: every form, every way in which one fails, without a reply lost or given twice.

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// twoNodes is a cluster with a second node that alone hosts echo entities of each mode, so that the first one's sends
// are remote; local is for sends of the second.
func twoNodes(t *testing.T, prepare func(i int, cfg *kith.Config)) (
	remote, local map[kith.Mode]*kith.Region, l *ledger, nodes []*kith.Node) {
	t.Helper()
	remote, local, l = map[kith.Mode]*kith.Region{}, map[kith.Mode]*kith.Region{}, newLedger()
	nodes = cluster(t, 2, func(i int, cfg *kith.Config) {
		if i == 1 {
			cfg.Roles = []string{"host"}
		}
		if prepare != nil {
			prepare(i, cfg)
		}
	}, func(i int, node *kith.Node) {
		for _, m := range modes {
			typ := echoType(m.String(), m, l, func() *kith.Node { return node })
			typ.Role = "host"
			r, err := node.Register(typ)
			require.NoError(t, err)
			if i == 0 {
				remote[m] = r
			} else {
				local[m] = r
			}
		}
	})
	return remote, local, l, nodes
}

// each runs f for each mode, over the network and within a node.
func each(t *testing.T, remote, local map[kith.Mode]*kith.Region, f func(t *testing.T, r *kith.Region)) {
	for _, m := range modes {
		t.Run(m.String()+"/remote", func(t *testing.T) { f(t, remote[m]) })
		t.Run(m.String()+"/local", func(t *testing.T) { f(t, local[m]) })
	}
}

// Every form of ask gets its own reply, and every failure of a handler comes back as its error (SHD-5).
func TestAskForms(t *testing.T) {
	t.Parallel()
	var incidents atomic.Int64
	remote, local, _, nodes := twoNodes(t, func(_ int, cfg *kith.Config) {
		cfg.Incident = func(i kith.Incident) {
			if i.Kind == kith.Panicked && strings.Contains(i.Text, "boom") {
				incidents.Add(1)
			}
		}
	})
	each(t, remote, local, func(t *testing.T, r *kith.Region) {
		ctx := within(t)
		reply, err := r.Ask(ctx, "a", []byte("hello"))
		require.NoError(t, err)
		require.Equal(t, "re: hello", string(reply))

		into := make([]byte, 0, 64)
		reply, err = r.AskWithin(patience, "a", []byte("again"), into)
		require.NoError(t, err)
		require.Equal(t, "re: again", string(reply))
		require.Same(t, &into[:1][0], &reply[0], "the reply lies in the caller's buffer")

		done := make(chan string, 1)
		require.NoError(t, r.AskFunc(patience, "a", []byte("later"), func(reply []byte, err error) {
			done <- fmt.Sprint(string(reply), err)
		}))
		require.Equal(t, "re: later<nil>", <-done)

		_, err = r.Ask(ctx, "a", []byte("fail"))
		require.ErrorIs(t, err, kith.ErrHandler)
		require.ErrorContains(t, err, "out of stock")
		_, err = r.Ask(ctx, "a", []byte("panic"))
		require.ErrorIs(t, err, kith.ErrPanic)
		_, err = r.Ask(ctx, "a", []byte("silent"))
		require.ErrorIs(t, err, kith.ErrNoReply)
		_, err = r.AskWithin(20*time.Millisecond, "a", []byte("never"), nil)
		require.ErrorIs(t, err, kith.ErrTimeout)
		require.NoError(t, r.AskFunc(20*time.Millisecond, "a", []byte("never"), func(_ []byte, err error) {
			done <- fmt.Sprint(errors.Is(err, kith.ErrTimeout))
		}))
		require.Equal(t, "true", <-done)

		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		_, err = r.Ask(short, "a", []byte("never"))
		require.ErrorIs(t, err, kith.ErrTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		over, stop := context.WithCancel(ctx)
		stop()
		_, err = r.Ask(over, "a", []byte("never"))
		require.ErrorIs(t, err, context.Canceled)
	})
	eventually(t, func() bool { return incidents.Load() == 6 }, "each panic is an incident")
	for _, n := range nodes {
		eventually(t, func() bool { return n.Stats().AsksUnderway == 0 }, "all asks over")
	}
}

// What a caller gives is judged before it goes anywhere.
func TestBadInput(t *testing.T) {
	t.Parallel()
	remote, local, _, _ := twoNodes(t, func(_ int, cfg *kith.Config) { cfg.MaxPayload, cfg.MaxMessage = 2000, 2000 })
	each(t, remote, local, func(t *testing.T, r *kith.Region) {
		ctx := within(t)
		for _, id := range []string{"", strings.Repeat("x", 1025)} {
			require.ErrorIs(t, r.Tell(id, nil), kith.ErrBadID)
			require.ErrorIs(t, r.TellWait(ctx, id, nil), kith.ErrBadID)
			_, err := r.Ask(ctx, id, nil)
			require.ErrorIs(t, err, kith.ErrBadID)
		}
		require.ErrorIs(t, r.Tell("a", make([]byte, 2001)), kith.ErrTooLarge)
		require.ErrorIs(t, r.AskFunc(patience, "a", make([]byte, 2001), nil), kith.ErrTooLarge)
		reply, err := r.Ask(ctx, strings.Repeat("x", 1024), bytes.Repeat([]byte("y"), 1900))
		require.NoError(t, err)
		require.Len(t, reply, 1904)
		_, err = r.Ask(ctx, "a", bytes.Repeat([]byte("y"), 2000))
		require.Error(t, err, "the reply is over the limit")
	})
}

// Many asks at once, some given up: every caller gets its own reply or its own error (the generation test).
func TestAsksDoNotMix(t *testing.T) {
	t.Parallel()
	remote, local, _, nodes := twoNodes(t, func(_ int, cfg *kith.Config) { cfg.MaxAsks = 64 })
	each(t, remote, local, func(t *testing.T, r *kith.Region) {
		ctx := within(t)
		var wg sync.WaitGroup
		for g := range 16 {
			wg.Go(func() {
				for i := range 100 {
					want := fmt.Sprintf("%d/%d", g, i)
					if i%7 == 0 {
						given, cancel := context.WithTimeout(ctx, time.Duration(i)*time.Microsecond)
						reply, err := r.Ask(given, want, []byte(want))
						cancel()
						if err == nil && string(reply) != "re: "+want {
							t.Errorf("reply %q to %q", reply, want)
						}
						continue
					}
					reply, err := r.Ask(ctx, want, []byte(want))
					if err != nil || string(reply) != "re: "+want {
						t.Errorf("reply %q to %q: %v", reply, want, err)
					}
				}
			})
		}
		wg.Wait()
		calls := make(chan error, 200)
		accepted := 0
		for range 200 {
			err := r.AskFunc(2*time.Second, "a", []byte("never"), func(_ []byte, err error) { calls <- err })
			if err == nil {
				accepted++
				continue
			}
			require.ErrorIs(t, err, kith.ErrAsksFull)
		}
		require.Equal(t, 64, accepted)
		for range accepted {
			require.ErrorIs(t, <-calls, kith.ErrTimeout)
		}
	})
	for _, n := range nodes {
		eventually(t, func() bool { return n.Stats().AsksUnderway == 0 }, "all asks over")
	}
}

type number struct{ n int }

type decimal struct{}

func (decimal) Append(dst []byte, m *number) ([]byte, error) {
	if m.n < 0 {
		return dst, errors.New("negative")
	}
	return fmt.Appendf(dst, "%d", m.n), nil
}

func (decimal) ParseInto(b []byte, m *number) error {
	_, err := fmt.Sscanf(string(b), "re: %d", &m.n)
	return err
}

// The typed layer is the same region with codecs around it.
func TestTyped(t *testing.T) {
	t.Parallel()
	remote, _, _, _ := twoNodes(t, nil)
	ctx := within(t)
	m := kith.Message[number, number]{Type: remote[kith.Worker].Type().Name, Message: decimal{}, Reply: decimal{}}
	r := m.In(remote[kith.Worker])
	got, err := r.Ask(ctx, "a", &number{42})
	require.NoError(t, err)
	require.Equal(t, number{42}, got)
	require.NoError(t, r.AskWithin(patience, "a", &number{43}, &got))
	require.Equal(t, number{43}, got)
	done := make(chan number, 1)
	require.NoError(t, r.AskFunc(patience, "a", &number{44}, func(n number, err error) { done <- n }))
	require.Equal(t, number{44}, <-done)

	_, err = r.Ask(ctx, "a", &number{-1})
	require.ErrorIs(t, err, kith.ErrBadPayload)
	require.ErrorContains(t, err, "negative")
	require.ErrorIs(t, r.Tell("a", &number{-1}), kith.ErrBadPayload)
	require.ErrorIs(t, r.TellWait(ctx, "a", &number{-1}), kith.ErrBadPayload)
	require.ErrorIs(t, r.AskFunc(patience, "a", &number{-1}, nil), kith.ErrBadPayload)
	m.Message = words("where")
	where := m.In(remote[kith.Worker])
	_, err = where.Ask(ctx, "a", &number{})
	require.ErrorIs(t, err, kith.ErrBadPayload, "a reply that the codec refuses")
}

// words is a codec that always says the same.
type words string

func (w words) Append(dst []byte, _ *number) ([]byte, error) { return append(dst, w...), nil }
func (w words) ParseInto([]byte, *number) error              { return nil }
