// The suite: queues on real nodes over the engine itself, by a line that loses calls and answers.

package queuetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/delivery"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/store/storetest"
)

const (
	patience = 2 * time.Minute // of each wait; far beyond what any takes
	shards   = 4               // of each queue
	refusals = 2               // of a message that is not refused for good
)

// Run runs the suite: each law is a subtest, with a queue of its own. Of the engine it uses Open and Again.
func Run(t *testing.T, e storetest.Engine) {
	for name, law := range map[string]func(*suite){"Moves": moves, "Survives": survives, "LargeMessages": largeMessages} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			law(&suite{T: t, e: e, ctx: ctx, name: strings.ToLower(name), refused: map[string]int{},
				h: History{Again: map[string]bool{}, Discarded: map[string]bool{}}})
		})
	}
}

// suite is one law.
type suite struct {
	*testing.T
	e    storetest.Engine
	ctx  context.Context
	name string // of the queue

	mu      sync.Mutex
	h       History
	lives   int
	closed  bool           // receivers refuse all
	refused map[string]int // how often a message was
}

// place is a node with receivers and the queue.
type place struct {
	*kith.Node
	queue *delivery.Producer
}

// receiver is an entity that messages are for.
type receiver struct {
	s    *suite
	life string
}

// label is what of a payload names it: all before the padding.
func label(payload []byte) string {
	text, _, _ := strings.Cut(string(payload[:min(len(payload), 64)]), "#")
	return text
}

// Receive refuses what is to be refused, and notes the rest.
func (r *receiver) Receive(c *kith.Context, payload []byte) error {
	text, s := label(payload), r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, _, _ := strings.Cut(text, "-")
	if s.closed || kind == "poison" || kind != "plain" && s.refused[text] < refusals {
		if s.refused[text]++; kind == "panics" {
			panic("on demand")
		}
		return errors.New("not now")
	}
	if _, delivered := delivery.Of(c); !delivered {
		text = "undelivered " + text // nobody has sent that
	}
	s.h.Handled = append(s.h.Handled, Handled{c.ID, text, r.life})
	return nil
}

// Stop does nothing.
func (*receiver) Stop(*kith.Context) {}

// opens opens a store of the engine.
func (s *suite) opens() store.Store {
	s.Helper()
	return s.e.Open(s.T)
}

// begins starts a node with a queue over a store, which joins others.
func (s *suite) begins(st store.Store, q delivery.Queue, others ...*place) *place {
	s.Helper()
	cfg := kith.Config{Name: "queues", Logger: slog.New(slog.DiscardHandler),
		Resolver: kith.Resolver{Strategy: kith.ResolverOff},
		Sharding: kith.Sharding{TakeoverTime: 3 * time.Second, ProcessDeathIsProof: true,
			RebalanceInterval: 50 * time.Millisecond},
		Membership: kith.MembershipConfig{GossipInterval: 100 * time.Millisecond, LeaderInterval: 50 * time.Millisecond,
			ProbeInterval: 100 * time.Millisecond, SeedTimeout: 2 * time.Second}}
	for _, o := range others {
		cfg.Seeds = append(cfg.Seeds, o.Addr().String())
	}
	n, err := kith.Start(s.ctx, cfg)
	require.NoError(s, err)
	s.Cleanup(func() { _ = n.Close() }) // it may be closed already
	to, err := n.Register(delivery.Consumer(kith.EntityType{Name: "receiver", Shards: 4,
		New: func(string, kith.Fence) kith.Handler {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lives++
			return &receiver{s, fmt.Sprint(s.lives)}
		}}))
	require.NoError(s, err)
	q.Name, q.To, q.Store, q.Shards = s.name, to, st, shards
	p, err := delivery.Register(n, q)
	require.NoError(s, err)
	require.NoError(s, n.Ready(s.ctx))
	return &place{n, p}
}

// sends sends one message and notes what came of it.
func (s *suite) sends(p *place, sender, to, text string, padding int) error {
	payload := append([]byte(text+"#"), make([]byte, padding)...)
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second) // an ask to a node that is gone has no answer
	defer cancel()
	err := p.queue.Send(ctx, to, payload)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.h.Sent = append(s.h.Sent, Sent{sender, to, text, OutcomeOf(err)})
	return err
}

// refuses makes receivers refuse all, or ends that.
func (s *suite) refuses(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = all
}

// stored returns how many messages wait in a store, and how many dead letters it has.
func (s *suite) stored(st store.Store) (waiting, dead int) {
	s.Helper()
	for n := range route.ShardID(shards) {
		at := store.Shard{Type: "delivery/" + s.name, N: n}
		for _, err := range st.Unsent(s.ctx, at) {
			require.NoError(s, err)
			waiting++
		}
		for _, err := range st.Due(s.ctx, at, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) {
			require.NoError(s, err)
			dead++
		}
	}
	return waiting, dead
}

// settles waits until nothing waits.
func (s *suite) settles(st store.Store) {
	s.Helper()
	for {
		waiting, _ := s.stored(st)
		if waiting == 0 {
			return
		}
		select {
		case <-s.ctx.Done():
			s.Fatalf("%d messages wait", waiting)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// letters returns all dead letters, by pages of most.
func (s *suite) letters(p *place, most int) (all []delivery.Letter) {
	s.Helper()
	for at := (delivery.Place{}); ; {
		page, next, err := p.queue.Dead(s.ctx, at, most)
		for err != nil && s.ctx.Err() == nil { // the line to the store is bad, or a shard moves
			page, next, err = p.queue.Dead(s.ctx, at, most)
		}
		require.NoError(s, err)
		if all = append(all, page...); next == (delivery.Place{}) {
			return all
		}
		at = next
	}
}

// judges holds all that happened against what was sent.
func (s *suite) judges(p *place, st store.Store) {
	s.Helper()
	letters := s.letters(p, 7)
	_, dead := s.stored(st)
	require.Len(s, letters, dead)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.h.Dead = nil
	for _, l := range letters {
		s.h.Dead = append(s.h.Dead, Dead{l.To, label(l.Payload)})
	}
	v := s.h.Judge()
	require.NoError(s, v.Err())
	require.Positive(s, v.Stored)
}

// bad is a line to a store that loses calls and answers, and carries commits twice, at once or behind later ones.
type bad struct {
	store.Store
	mu   sync.Mutex
	rand *rand.Rand
	late []func()
}

// mostLate bounds the commits that come again.
const mostLate = 8

// draws returns a number below n.
func (b *bad) draws(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rand.IntN(n)
}

// again makes one of the last commits come again, and keeps another one for later.
func (b *bad) again(commit func()) {
	b.mu.Lock()
	b.late = append(b.late, commit)
	i := b.rand.IntN(len(b.late))
	before := b.late[i]
	if len(b.late) > mostLate {
		b.late = append(b.late[:i], b.late[i+1:]...)
	}
	b.mu.Unlock()
	before()
}

var errLine = fmt.Errorf("%w: the line is bad", store.ErrUnknown)

// Claim implements store.Store.
func (b *bad) Claim(ctx context.Context, s store.Shard, f route.Fence) (store.Claimed, error) {
	if b.draws(8) == 0 {
		return store.Claimed{}, errLine
	}
	c, err := b.Store.Claim(ctx, s, f)
	if b.draws(8) == 0 {
		return store.Claimed{}, errLine
	}
	return c, err
}

// Load implements store.Store.
func (b *bad) Load(ctx context.Context, s store.Shard, f route.Fence, ids ...string) ([]store.Record, error) {
	if b.draws(8) == 0 {
		return nil, errLine
	}
	return b.Store.Load(ctx, s, f, ids...)
}

// Commit implements store.Store.
func (b *bad) Commit(ctx context.Context, s store.Shard, f route.Fence, w ...store.Write) error {
	switch b.draws(8) {
	case 0:
		return errLine
	case 1:
		_ = b.Store.Commit(ctx, s, f, w...)
		return errLine
	case 2:
		w := append([]store.Write(nil), w...)
		defer b.again(func() { _ = b.Store.Commit(context.WithoutCancel(ctx), s, f, w...) })
	}
	return b.Store.Commit(ctx, s, f, w...)
}
