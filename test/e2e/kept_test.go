// Contexts that handlers keep and answer by later, over real nodes: no answer of theirs reaches an ask.

package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// keptReplies is how many answers by Contexts that were kept the test tries in each mode; KITH_KEPT_REPLIES says
// another number.
func keptReplies(t *testing.T) int64 {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("KITH_KEPT_REPLIES"), "20000"))
	require.NoError(t, err)
	return int64(n)
}

// hoarder is an entity with a handler that keeps its Contexts: it answers some asks itself, and leaves others to
// goroutines that answer all that they can lay hands on, again and again.
type hoarder struct {
	late   chan<- *kith.Context
	wrong  []byte
	calls  int
	thrown *atomic.Int64
}

func (k *hoarder) Receive(c *kith.Context, payload []byte) error {
	k.calls++
	select {
	case k.late <- c:
	default:
		k.thrown.Add(1)
	}
	switch k.calls % 4 {
	case 0: // the commonest mistake
		go func() { _ = c.Reply(k.wrong) }()
		return nil
	case 1:
		go func() {
			token := c.Detach()
			_ = token.Reply(k.wrong)
			_ = c.Tell("", "x", k.wrong)
		}()
		return c.Reply(payload)
	case 2:
		return errors.New("no")
	default:
		return c.Reply(payload)
	}
}

func (k *hoarder) Stop(*kith.Context) {}

// A Context that was kept answers no ask, whatever goroutine uses it and whenever (SHD-5).
func TestKeptContextsAnswerNobody(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) { keepContexts(t, mode, keptReplies(t)) })
	}
}

func keepContexts(t *testing.T, mode kith.Mode, want int64) {
	const askers, answerers = 64, 4
	late := make(chan *kith.Context, 256)
	var tried, taken, thrown atomic.Int64
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var all sync.WaitGroup
	for range answerers {
		all.Go(func() { answerLate(ctx, late, want, &tried, &taken, end) })
	}
	var r *kith.Region
	cluster(t, 1, nil, func(_ int, n *kith.Node) {
		var err error
		r, err = n.Register(kith.EntityType{Name: "hoarder", Mode: mode, Shards: 16, New: func(string,
			kith.Fence) kith.Handler {
			return &hoarder{late: late, wrong: []byte("of another ask"), thrown: &thrown}
		}})
		require.NoError(t, err)
	})
	wrong := make(chan error, askers)
	for i := range askers {
		all.Go(func() { wrong <- askOn(ctx, r, i) })
	}
	for range askers {
		require.NoError(t, <-wrong)
	}
	all.Wait()
	require.Zero(t, taken.Load(), "of %d answers by Contexts that were kept", tried.Load())
	require.GreaterOrEqual(t, tried.Load(), want)
}

// answerLate answers by every Context that it gets, more than once, until enough was tried.
func answerLate(ctx context.Context, late <-chan *kith.Context, want int64, tried, taken *atomic.Int64, end func()) {
	var old [16]*kith.Context
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case c := <-late:
			old[n%len(old)] = c
		}
		for _, c := range old {
			if c == nil {
				continue
			}
			if err := c.Reply([]byte("of another ask")); !errors.Is(err, kith.ErrContextKept) {
				taken.Add(1)
			}
			if tried.Add(1) >= want {
				end()
			}
		}
	}
}

// askOn asks until ctx has ended, and returns an error when an answer is not that of its ask.
func askOn(ctx context.Context, r *kith.Region, i int) error {
	for n := 0; ctx.Err() == nil; n++ {
		q := fmt.Sprintf("%d/%d", i, n)
		b, err := r.AskWithin(patience, strconv.Itoa(i), []byte(q), nil)
		switch {
		case err == nil && string(b) == q, errors.Is(err, kith.ErrNoReply), errors.Is(err, kith.ErrHandler):
		default:
			return fmt.Errorf("ask %s got %q, %w", q, b, err)
		}
	}
	return nil
}
