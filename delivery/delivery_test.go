// Tests of queues on real nodes, with a store in memory that answers as real ones do.

package delivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/delivery"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

const patience = 2 * time.Minute

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// desk is where receivers note what they handle.
type desk struct {
	mu     sync.Mutex
	do     func(c *kith.Context, id, payload string) error
	had    map[string][]string
	lives  int
	tries  []int
	agains int
}

func (d *desk) handles(c *kith.Context, payload []byte) error {
	d.mu.Lock()
	do := d.do
	d.mu.Unlock()
	if do != nil {
		if err := do(c, c.ID, string(payload)); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if m, is := delivery.Of(c); is {
		d.tries = append(d.tries, m.Try)
		if m.Again {
			d.agains++
		}
	}
	d.had[c.ID] = append(d.had[c.ID], string(payload))
	return nil
}

// does has the handler do something before it notes a message.
func (d *desk) does(do func(c *kith.Context, id, payload string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.do = do
}

// of returns what a receiver has handled.
func (d *desk) of(id string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.had[id]...)
}

func newDesk() *desk { return &desk{had: map[string][]string{}} }

// clerk is a receiver.
type clerk struct{ d *desk }

// Receive notes a message.
func (c clerk) Receive(k *kith.Context, payload []byte) error { return c.d.handles(k, payload) }

// Stop does nothing.
func (clerk) Stop(*kith.Context) {}

func clerks(d *desk) kith.EntityType {
	return kith.EntityType{Name: "clerk", Shards: 4, New: func(string, kith.Fence) kith.Handler { return clerk{d} }}
}

// start starts a node that joins others.
func start(t *testing.T, others ...*kith.Node) *kith.Node {
	t.Helper()
	cfg := kith.Config{Name: "delivery", Logger: slog.New(slog.DiscardHandler),
		Resolver: kith.Resolver{Strategy: kith.ResolverOff},
		Sharding: kith.Sharding{TakeoverTime: 3 * time.Second, ProcessDeathIsProof: true,
			RebalanceInterval: 50 * time.Millisecond},
		Membership: kith.MembershipConfig{GossipInterval: 100 * time.Millisecond, LeaderInterval: 50 * time.Millisecond,
			ProbeInterval: 100 * time.Millisecond, SeedTimeout: 2 * time.Second}}
	for _, o := range others {
		cfg.Seeds = append(cfg.Seeds, o.Addr().String())
	}
	n, err := kith.Start(within(t), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// opens registers receivers and a queue to them.
func opens(t *testing.T, n *kith.Node, d *desk, q delivery.Queue) *delivery.Producer {
	t.Helper()
	to, err := n.Register(delivery.Consumer(clerks(d)))
	require.NoError(t, err)
	q.To = to
	if q.Name == "" {
		q.Name = "letters"
	}
	if q.Shards == 0 {
		q.Shards = 4
	}
	if q.RetryFirst == 0 {
		q.RetryFirst, q.RetryMost = 5*time.Millisecond, 20*time.Millisecond
	}
	p, err := delivery.Register(n, q)
	require.NoError(t, err)
	require.NoError(t, n.Ready(within(t)))
	return p
}

func soon(t *testing.T, is func() bool, words ...any) {
	t.Helper()
	require.Eventually(t, is, patience, 2*time.Millisecond, words...)
}

// held returns how many messages and dead letters a store holds.
func held(t *testing.T, m *store.MemoryStore) (waiting, dead int) {
	for n := range route.ShardID(4) {
		at := store.Shard{Type: "delivery/letters", N: n}
		for _, err := range m.Copy().Unsent(context.Background(), at) {
			require.NoError(t, err)
			waiting++
		}
		for _, err := range m.Copy().Due(context.Background(), at, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) {
			require.NoError(t, err)
			dead++
		}
	}
	return waiting, dead
}

// TestStoredThenDelivered: Send returns when a message is stored, not before; it is delivered, acknowledged, and leaves
// the store; messages to one receiver come in order (SHD-10).
func TestStoredThenDelivered(t *testing.T) {
	t.Parallel()
	m, d := store.Memory(), newDesk()
	n := start(t)
	p := opens(t, n, d, delivery.Queue{Store: m})
	open := make(chan struct{})
	m.Fail(func(c store.Call) store.Fate {
		if c.Do == "commit" {
			return store.Fate{Before: open}
		}
		return store.Fate{}
	})
	sent := make(chan error, 1)
	go func() { sent <- p.Send(within(t), "anna", []byte("m0")) }()
	soon(t, func() bool { return p.Stats().Waiting == 1 })
	require.Empty(t, sent)
	require.Empty(t, d.of("anna"), "it was delivered before it was stored")
	close(open)
	require.NoError(t, <-sent)
	want := []string{"m0"}
	for i := 1; i < 100; i++ {
		want = append(want, fmt.Sprint("m", i))
		require.NoError(t, p.Send(within(t), "anna", []byte(want[i])))
	}
	soon(t, func() bool { return len(d.of("anna")) == 100 })
	require.Equal(t, want, d.of("anna"))
	soon(t, func() bool { w, _ := held(t, m); return w == 0 && p.Stats().Waiting == 0 })
	s := p.Stats()
	require.EqualValues(t, 100, s.Stored)
	require.EqualValues(t, 100, s.Acked)
	require.Zero(t, s.WaitingBytes)
}

// TestRefusedThenDead: an error and a panic have a message delivered again; after MaxTries it is a dead letter, with
// its reason, and what waits behind it goes on. It can be read, sent again, and taken away (SHD-10).
func TestRefusedThenDead(t *testing.T) {
	t.Parallel()
	m, d := store.Memory(), newDesk()
	d.does(func(_ *kith.Context, _, payload string) error {
		switch {
		case strings.HasPrefix(payload, "panics"):
			panic("on demand")
		case strings.HasPrefix(payload, "bad"):
			return errors.New("not a word of it")
		}
		return nil
	})
	p := opens(t, start(t), d, delivery.Queue{Store: m, MaxTries: 3})
	for _, text := range []string{"bad1", "good2", "panics3", "good4", "bad5", "good6"} {
		require.NoError(t, p.Send(within(t), "anna", []byte(text)))
	}
	soon(t, func() bool { return len(d.of("anna")) == 3 })
	require.Equal(t, []string{"good2", "good4", "good6"}, d.of("anna"))
	require.EqualValues(t, 9, p.Stats().Refused)
	page, next, err := p.Dead(within(t), delivery.Place{}, 10)
	require.NoError(t, err)
	require.Zero(t, next)
	require.Len(t, page, 3)
	require.Equal(t, "bad1", string(page[0].Payload))
	require.Equal(t, "anna", page[0].To)
	require.Equal(t, 3, page[0].Tries)
	require.Contains(t, page[0].Reason, "not a word of it")
	require.False(t, page[0].MayHaveRun)
	require.WithinDuration(t, time.Now(), page[0].Made, patience)

	first, next, err := p.Dead(within(t), delivery.Place{}, 2)
	require.NoError(t, err)
	require.Equal(t, page[:2], first)
	second, next, err := p.Dead(within(t), next, 2)
	require.NoError(t, err)
	require.Equal(t, page[2:], second)
	require.Zero(t, next)

	d.does(nil)
	require.NoError(t, p.SendAgain(within(t), page[0].Place))
	require.NoError(t, p.Discard(within(t), page[1].Place))
	soon(t, func() bool { return len(d.of("anna")) == 4 })
	require.Equal(t, "bad1", d.of("anna")[3])
	require.ErrorIs(t, p.SendAgain(within(t), page[0].Place), delivery.ErrNoLetter)
	require.ErrorIs(t, p.Discard(within(t), page[1].Place), delivery.ErrNoLetter)
	soon(t, func() bool { w, dead := held(t, m); return w == 0 && dead == 1 })
	require.Equal(t, 1, p.Stats().DeadNow)
}

// TestFullQueue: what is over a bound is refused with ErrFull, has no effect, and is taken when there is room; one that
// is too large is refused at once (SHD-10).
func TestFullQueue(t *testing.T) {
	t.Parallel()
	d, m := newDesk(), store.Memory()
	d.does(func(*kith.Context, string, string) error { return errors.New("not now") })
	p := opens(t, start(t), d, delivery.Queue{Store: m, Shards: 1, MaxMessages: 3, MaxBytes: 2000, MaxTries: 1 << 20})
	for range 3 {
		require.NoError(t, p.Send(within(t), "anna", []byte("m")))
	}
	err := p.Send(within(t), "ben", []byte("m"))
	require.ErrorIs(t, err, delivery.ErrFull)
	require.False(t, kith.MayHaveRun(err))
	require.EqualValues(t, 1, p.Stats().Full)
	large := opens(t, start(t), d, delivery.Queue{Store: store.Memory(), Shards: 1, MaxBytes: 2000, MaxTries: 1 << 20})
	require.NoError(t, large.Send(within(t), "anna", []byte("m")))
	require.ErrorIs(t, large.Send(within(t), "ben", make([]byte, 2000)), delivery.ErrFull, "by its size")
	require.ErrorIs(t, p.Send(within(t), "ben", make([]byte, delivery.MaxPayload+1)), delivery.ErrTooLarge)
	require.ErrorIs(t, p.Send(within(t), "", nil), kith.ErrBadID)
	d.does(nil)
	soon(t, func() bool { return p.Send(within(t), "ben", []byte("m")) == nil })
	soon(t, func() bool { return p.Stats().Waiting == 0 })
	require.NoError(t, p.Send(within(t), "ben", make([]byte, delivery.MaxPayload)), "one may wait alone, however large")
	soon(t, func() bool { return len(d.of("ben")) == 2 })
}

// TestFullDead: where no further dead letter has room, a message stays, and is not lost (SHD-10).
func TestFullDead(t *testing.T) {
	t.Parallel()
	d, m := newDesk(), store.Memory()
	d.does(func(*kith.Context, string, string) error { return errors.New("never") })
	p := opens(t, start(t), d, delivery.Queue{Store: m, Shards: 1, MaxDead: 1, MaxTries: 1})
	for _, to := range []string{"a", "b"} {
		require.NoError(t, p.Send(within(t), to, []byte("m")))
	}
	soon(t, func() bool { return p.Stats().DeadFull > 1 })
	require.Equal(t, 1, p.Stats().DeadNow)
	require.Equal(t, 1, p.Stats().Waiting)
	page, _, err := p.Dead(within(t), delivery.Place{}, 10)
	require.NoError(t, err)
	require.NoError(t, p.Discard(within(t), page[0].Place))
	soon(t, func() bool { return p.Stats().Waiting == 0 && p.Stats().DeadNow == 1 })
}

// TestStoreAway: Send returns ErrAway in a bounded time; when the store is back all goes on without a restart; what was
// answered as not stored is not (SHD-10).
func TestStoreAway(t *testing.T) {
	t.Parallel()
	d, m := newDesk(), store.Memory()
	var lines bytes.Buffer
	queue := logs.New(slog.NewTextHandler(&lines, nil))
	p := opens(t, start(t), d, delivery.Queue{Store: m, Shards: 1, Patience: 50 * time.Millisecond,
		Logger: queue.Logger()})
	m.Fail(func(store.Call) store.Fate { return store.Fate{Lost: true} })
	err := p.Send(within(t), "anna", []byte("lost"))
	require.ErrorIs(t, err, delivery.ErrAway)
	soon(t, func() bool { return p.Stats().Failing == 1 })
	require.Error(t, p.Stats().StoreError)
	m.Fail(nil)
	soon(t, func() bool { return p.Send(within(t), "anna", []byte("m")) == nil })
	soon(t, func() bool { h := d.of("anna"); return len(h) > 0 && h[len(h)-1] == "m" })
	require.Zero(t, p.Stats().Failing)
	soon(t, func() bool { return p.Stats().Waiting == 0 }, "what was given up counts no more")
	if !kith.MayHaveRun(err) {
		require.NotContains(t, d.of("anna"), "lost")
	}
}

// TestNobodyToDeliverTo: while no node hosts the receivers' type, messages wait and are no dead letters before MaxAge;
// then one more failure makes them so (SHD-10).
func TestNobodyToDeliverTo(t *testing.T) {
	t.Parallel()
	n := start(t)
	typ := clerks(newDesk())
	typ.Role = "nobody"
	to, err := n.Register(delivery.Consumer(typ))
	require.NoError(t, err)
	p, err := delivery.Register(n, delivery.Queue{Name: "letters", To: to, Store: store.Memory(), Shards: 1,
		AckTime: 20 * time.Millisecond, RetryFirst: time.Millisecond, RetryMost: 5 * time.Millisecond,
		MaxAge: time.Second, MaxTries: 1})
	require.NoError(t, err)
	require.NoError(t, n.Ready(within(t)))
	require.NoError(t, p.Send(within(t), "anna", []byte("m")))
	soon(t, func() bool { return p.Stats().Unheard > 2 })
	soon(t, func() bool { return p.Stats().DeadNow == 1 })
	page, _, err := p.Dead(within(t), delivery.Place{}, 10)
	require.NoError(t, err)
	require.Contains(t, page[0].Reason, "not acknowledged in time")
	require.Zero(t, page[0].Tries)
}

// TestNoConsumer: the dead letter names a type that Consumer did not make (SHD-10).
func TestNoConsumer(t *testing.T) {
	t.Parallel()
	n := start(t)
	to, err := n.Register(clerks(newDesk()))
	require.NoError(t, err)
	p, err := delivery.Register(n, delivery.Queue{Name: "letters", To: to, Store: store.Memory(), Shards: 1,
		RetryFirst: time.Millisecond, RetryMost: 5 * time.Millisecond, MaxTries: 2})
	require.NoError(t, err)
	require.NoError(t, n.Ready(within(t)))
	require.NoError(t, p.Send(within(t), "anna", []byte("m")))
	soon(t, func() bool { return p.Stats().DeadNow == 1 })
	page, _, err := p.Dead(within(t), delivery.Place{}, 10)
	require.NoError(t, err)
	require.Contains(t, page[0].Reason, kith.ErrNoReply.Error())
}

// TestQueueMoves: nodes that send, own and receive come and go, by a leave and by a crash; all that was stored is
// delivered, in order (SHD-10).
func TestQueueMoves(t *testing.T) {
	t.Parallel()
	m, d := store.Memory(), newDesk()
	first := start(t)
	p := opens(t, first, d, delivery.Queue{Store: m, AckTime: time.Second})
	var stored [4][]string
	maybe := map[string]bool{}
	sends := func(from *delivery.Producer, i int) {
		to, text := i%4, fmt.Sprint("m", i)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) // an ask to a node that died has no answer
		defer cancel()
		if err := from.Send(ctx, fmt.Sprint("r", to), []byte(text)); err == nil {
			stored[to] = append(stored[to], text)
		} else if kith.MayHaveRun(err) {
			maybe[text] = true
		}
	}
	for i := range 40 {
		sends(p, i)
	}
	second := start(t, first)
	opens(t, second, d, delivery.Queue{Store: m, AckTime: time.Second})
	for i := 40; i < 120; i++ {
		sends(p, i)
	}
	third := start(t, first)
	p3 := opens(t, third, d, delivery.Queue{Store: m, AckTime: time.Second})
	for i := 120; i < 200; i++ {
		sends(p3, i)
	}
	require.NoError(t, second.Leave(within(t)))
	for i := 200; i < 240; i++ {
		sends(p3, i)
	}
	_ = third.Close() // without a word; it says what it abandons
	for i := 240; i < 280; i++ {
		sends(p, i)
	}
	soon(t, func() bool { w, _ := held(t, m); return w == 0 })
	for to := range stored {
		at := 0
		had := d.of(fmt.Sprint("r", to))
		seen := map[string]bool{}
		for _, text := range had { // first times
			if !seen[text] && at < len(stored[to]) && text == stored[to][at] {
				at++
			}
			seen[text] = true
		}
		require.Equal(t, len(stored[to]), at, "r%d: %v was stored, %v was handled", to, stored[to], had)
	}
	_, dead := held(t, m)
	require.Zero(t, dead)
}

// TestTwoQueuesOfOneName: of two clusters with one store and name the one with the higher fence goes on; the other one
// writes nothing more, and says so (SHD-10).
func TestTwoQueuesOfOneName(t *testing.T) {
	t.Parallel()
	m := store.Memory()
	a, b := newDesk(), newDesk()
	pa := opens(t, start(t), a, delivery.Queue{Store: m, Shards: 1})
	require.NoError(t, pa.Send(within(t), "anna", []byte("one")))
	pb := opens(t, start(t), b, delivery.Queue{Store: m, Shards: 1})
	young, old, had := pb, pa, b
	if err := pb.Send(within(t), "anna", []byte("two")); err != nil { // its clock is behind
		require.ErrorIs(t, err, delivery.ErrLost)
		require.False(t, kith.MayHaveRun(err))
		young, old, had = pa, pb, a
		require.NoError(t, young.Send(within(t), "anna", []byte("two")))
	}
	soon(t, func() bool { h := had.of("anna"); return len(h) > 0 && h[len(h)-1] == "two" })
	err := old.Send(within(t), "anna", []byte("three"))
	require.ErrorIs(t, err, delivery.ErrLost)
	require.False(t, kith.MayHaveRun(err))
	require.EqualValues(t, 1, old.Stats().Fenced)
	require.Zero(t, young.Stats().Fenced)
}

// TestSendOfALateOwner: a message whose commit the fence refused is not stored; it may be where an earlier call had no
// answer (SHD-10).
func TestSendOfALateOwner(t *testing.T) {
	for name, unknown := range map[string]bool{"refused at once": false, "of unknown outcome before": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, d := store.Memory(), newDesk()
			p := opens(t, start(t), d, delivery.Queue{Store: m, Shards: 1})
			require.NoError(t, p.Send(within(t), "anna", []byte("m")))
			soon(t, func() bool { return p.Stats().Waiting == 0 }) // nothing is to be written
			m.Fail(func(c store.Call) store.Fate { return store.Fate{Lost: unknown && c.Do == "commit"} })
			sent := make(chan error, 1)
			overtakes := func() {
				_, err := m.Claim(within(t), store.Shard{Type: "delivery/letters"}, route.MakeFence(1<<63, 1, 1))
				require.NoError(t, err)
				m.Fail(nil)
			}
			if !unknown {
				overtakes()
			}
			go func() { sent <- p.Send(within(t), "anna", []byte("late")) }()
			if unknown {
				soon(t, func() bool { return p.Stats().Unknown > 0 })
				overtakes()
			}
			err := <-sent
			require.ErrorIs(t, err, delivery.ErrLost)
			require.Equal(t, unknown, kith.MayHaveRun(err))
		})
	}
}

// TestStoreWentBack: an owner whose store has lost what it had acknowledged stops the queue, and says so (SHD-10).
func TestStoreWentBack(t *testing.T) {
	t.Parallel()
	m, d := store.Memory(), newDesk()
	d.does(func(*kith.Context, string, string) error { return errors.New("not now") })
	p := opens(t, start(t), d, delivery.Queue{Store: m, Shards: 1, MaxTries: 1 << 20})
	require.NoError(t, p.Send(within(t), "anna", []byte("m")))
	m.Become(store.Memory())
	require.ErrorIs(t, p.Send(within(t), "anna", []byte("m")), store.ErrStoreWentBack)
	require.ErrorIs(t, p.Err(), store.ErrStoreWentBack)
}

// TestDetached: a handler that answers later acknowledges by its token's Reply, and refuses by its Fail; a tell and an
// ask of somebody else reach the handler as ever (SHD-10).
func TestDetached(t *testing.T) {
	t.Parallel()
	d := newDesk()
	fail := make(chan bool, 10)
	d.does(func(c *kith.Context, _, payload string) error {
		if payload == "later" {
			token := c.Detach()
			if <-fail {
				return errors.Join(token.Fail(errors.New("no")))
			}
			return token.Reply(nil)
		}
		if c.Asked() && (payload == "asked" || payload == "replied") {
			return c.Reply([]byte("here"))
		}
		return nil
	})
	n := start(t)
	to, err := n.Register(delivery.Consumer(clerks(d)))
	require.NoError(t, err)
	p, err := delivery.Register(n, delivery.Queue{Name: "letters", To: to, Store: store.Memory(), Shards: 1,
		RetryFirst: time.Millisecond, RetryMost: 5 * time.Millisecond})
	require.NoError(t, err)
	require.NoError(t, n.Ready(within(t)))
	fail <- true
	fail <- false
	require.NoError(t, p.Send(within(t), "anna", []byte("later")))
	require.NoError(t, p.Send(within(t), "anna", []byte("replied")))
	require.NoError(t, p.Send(within(t), "anna", []byte("next")))
	soon(t, func() bool { return p.Stats().Acked == 3 })
	require.EqualValues(t, 1, p.Stats().Refused)
	require.Equal(t, []string{"later", "later", "replied", "next"}, d.of("anna"))
	answer, err := to.Ask(within(t), "anna", []byte("asked"))
	require.NoError(t, err)
	require.Equal(t, "here", string(answer))
	require.NoError(t, to.Tell("anna", []byte("told")))
	soon(t, func() bool { return len(d.of("anna")) == 6 })
}

// TestManyMessages: a shard has more messages in its life than may wait, be asked for, or be on their way at once; each
// is handled once (SHD-10).
func TestManyMessages(t *testing.T) {
	t.Parallel()
	const senders, each = 50, 100 // more than 4,096
	d, ctx := newDesk(), within(t)
	p := opens(t, start(t), d, delivery.Queue{Store: store.Memory(), Shards: 1, MaxMessages: senders * each / 2})
	var all sync.WaitGroup
	for i := range senders {
		all.Go(func() {
			for k := range each {
				err := delivery.ErrFull
				for errors.Is(err, delivery.ErrFull) {
					err = p.Send(ctx, fmt.Sprint("r", i), fmt.Append(nil, k))
				}
				if err != nil {
					t.Errorf("%v", err)
				}
			}
		})
	}
	all.Wait()
	soon(t, func() bool { return p.Stats().Acked == senders*each && p.Stats().Waiting == 0 })
	for i := range senders {
		had := d.of(fmt.Sprint("r", i))
		require.Len(t, had, each)
		require.Equal(t, fmt.Sprint(each-1), had[each-1])
	}
}

// TestGivenUpRequests: what was given up while the store was away keeps no place of what comes later (SHD-10).
func TestGivenUpRequests(t *testing.T) {
	t.Parallel()
	d, m, ctx := newDesk(), store.Memory(), within(t)
	p := opens(t, start(t), d, delivery.Queue{Store: m, Shards: 1, Patience: 20 * time.Millisecond})
	m.Fail(func(store.Call) store.Fate { return store.Fate{Lost: true} })
	for range 3 { // together more than may wait
		var all sync.WaitGroup
		for range 1500 {
			all.Go(func() {
				err := p.Send(ctx, "anna", []byte("m"))
				if !errors.Is(err, delivery.ErrAway) && !errors.Is(err, delivery.ErrFull) {
					t.Errorf("%v", err)
				}
			})
		}
		all.Wait()
	}
	m.Fail(nil)
	soon(t, func() bool { return p.Send(within(t), "ben", []byte("m")) == nil })
	soon(t, func() bool { return len(d.of("ben")) == 1 })
}

// TestPagesOfLargeLetters: pages of dead letters have a size, too, and none of a shard is left out (SHD-10).
func TestPagesOfLargeLetters(t *testing.T) {
	t.Parallel()
	const letters, size = 16, 100 << 10
	d := newDesk()
	d.does(func(*kith.Context, string, string) error { return errors.New("never") })
	p := opens(t, start(t), d, delivery.Queue{Store: store.Memory(), Shards: 4, MaxTries: 1})
	for i := range letters {
		require.NoError(t, p.Send(within(t), fmt.Sprint("r", i), make([]byte, size)))
	}
	soon(t, func() bool { return p.Stats().DeadNow == letters })
	seen := map[delivery.Place]bool{}
	for at := (delivery.Place{}); ; {
		page, next, err := p.Dead(within(t), at, delivery.MaxPage)
		require.NoError(t, err)
		require.Less(t, len(page), letters, "1.6 MiB on one page")
		for _, l := range page {
			require.Len(t, l.Payload, size)
			seen[l.Place] = true
		}
		if at = next; next == (delivery.Place{}) {
			break
		}
	}
	require.Len(t, seen, letters)
}

// TestTwoQueuesToOneReceiver: a receiver keeps queues apart, whose numbers have nothing in common (SHD-10).
func TestTwoQueuesToOneReceiver(t *testing.T) {
	t.Parallel()
	d, n := newDesk(), start(t)
	to, err := n.Register(delivery.Consumer(clerks(d)))
	require.NoError(t, err)
	m := store.Memory()
	var queues []*delivery.Producer
	for _, name := range []string{"old", "new"} {
		p, err := delivery.Register(n, delivery.Queue{Name: name, To: to, Store: m, Shards: 1})
		require.NoError(t, err)
		queues = append(queues, p)
	}
	require.NoError(t, n.Ready(within(t)))
	want := 0
	for range 5 {
		for i, p := range queues {
			want++
			require.NoError(t, p.Send(within(t), "anna", fmt.Append(nil, i)))
			soon(t, func() bool { return len(d.of("anna")) == want })
		}
	}
	require.Zero(t, queues[0].Stats().Had+queues[1].Stats().Had)
}

// TestBadQueue: all faults are reported at once, and nothing is registered (SHD-10).
func TestBadQueue(t *testing.T) {
	n := start(t)
	_, err := delivery.Register(n, delivery.Queue{Name: "a\x00b", Shards: 1025, MaxMessages: -1, MaxBytes: -1, MaxDead: -1,
		MaxTries: -1, MaxAge: -1, RetryFirst: time.Hour, RetryMost: time.Minute, AckTime: -1, Window: 300, Patience: -1})
	require.ErrorIs(t, err, kith.ErrBadConfig)
	for _, word := range []string{"Type of the shard", "Store", "To", "Shards", "MaxMessages", "MaxBytes", "MaxDead",
		"MaxTries", "MaxAge", "RetryMost", "AckTime", "Window", "Patience"} {
		require.ErrorContains(t, err, word)
	}
	require.ErrorContains(t, delivery.Queue{Name: strings.Repeat("n", 300)}.Validate(), "Name has 300 bytes")
	_, _, err = delivery.On(n, "clerk", delivery.Queue{Name: "a", Store: store.Memory()})
	require.ErrorIs(t, err, kith.ErrBadConfig, "it is no node of a simulated cluster")
}
