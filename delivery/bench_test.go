// A bench for one shard of a queue: its clock is set by hand, what it begins runs when it is asked to, and answers of
// receivers come in any order.

package delivery

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// still is a ground whose time passes when somebody waits. Its draws are the largest there are.
type still struct {
	now   time.Time
	later []func()
	fills uint64
}

func (s *still) Now() time.Time        { return s.now }
func (s *still) Wall() time.Time       { return s.now }
func (s *still) Begin(f func())        { s.later = append(s.later, f) }
func (s *still) Close(b chan struct{}) { close(b) }
func (s *still) Chance(n int64) int64  { return n - 1 }

// Wait lets the time pass; a wait without end runs what was begun.
func (s *still) Wait(_ context.Context, d time.Duration, _ <-chan struct{}) bool {
	if s.now = s.now.Add(max(d, 0)); d == ground.Forever {
		s.run()
	}
	return false
}

// run runs what was begun.
func (s *still) run() {
	for len(s.later) > 0 {
		f := s.later[0]
		s.later = s.later[1:]
		f()
	}
}

// Ring does nothing: nobody waits.
func (*still) Ring(chan struct{}) {}

// Within has no end of its own.
func (*still) Within(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// Fill fills with a number.
func (s *still) Fill(b []byte) {
	s.fills++
	binary.BigEndian.PutUint64(b, s.fills)
}

// sent is a message on its way.
type sent struct {
	note
	to, text string
	over     func([]byte, error)
	*bench
}

// is answers with an outcome, and fails with an error.
func (s *sent) is(o outcome) { s.over(o.tells(), nil); s.run() }

func (s *sent) fails(err error) { s.over(nil, err); s.run() }

// bench is one shard.
type bench struct {
	still
	t   *testing.T
	m   *store.MemoryStore
	l   *ledger
	out []*sent
}

// Ask implements ground.Line.
func (*bench) Ask(context.Context, []byte, string, []byte) ([]byte, error) { panic("nobody asks") }

// Tell implements ground.Line.
func (*bench) Tell(string, []byte) error { panic("nobody tells") }

// AskFunc implements ground.Line.
func (b *bench) AskFunc(headers []byte, _ time.Duration, id string, body []byte, over func([]byte, error)) error {
	n, is, err := parseNote(headers)
	require.True(b.t, is)
	require.NoError(b.t, err)
	b.out = append(b.out, &sent{n, id, string(body), over, b})
	return nil
}

func newBench(t *testing.T, q Queue) *bench {
	b := &bench{t: t, m: store.Memory(), still: still{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
	b.owns(1, q)
	return b
}

// owns begins an owner of the shard, which has taken up what is stored.
func (b *bench) owns(term uint64, q Queue) {
	q.Name, q.Store, q.Logger = "q", b.m, slog.New(slog.DiscardHandler)
	d := q.withDefaults().desk(context.Background(), &b.still, b)
	b.out, b.later = nil, nil
	b.l = d.ledger(0, route.MakeFence(term, 1, 1))
	b.l.hosts(true)
	b.run()
}

// puts queues an op as if somebody had asked for it; nobody gets the answer.
func (b *bench) puts(o *op) {
	b.l.mu.Lock()
	if o.kind == opSend {
		b.l.holds(o.m, 1)
	}
	b.l.asks++
	b.l.puts(o)
	b.l.mu.Unlock()
}

// stores stores messages to a receiver.
func (b *bench) stores(to string, texts ...string) {
	for _, text := range texts {
		b.puts(&op{kind: opSend, m: &message{letter: letter{to: to, made: b.now.UnixMilli(), body: []byte(text)}}})
	}
	b.run()
}

// goes returns what goes now.
func (b *bench) goes() (now []*sent) {
	b.l.turn(b.now)
	now, b.out = b.out, nil
	return now
}

// go1 returns the only message that goes now.
func (b *bench) go1(text string) *sent {
	b.t.Helper()
	now := b.goes()
	require.Len(b.t, now, 1)
	require.Equal(b.t, text, now[0].text)
	return now[0]
}

// after lets time pass.
func (b *bench) after(d time.Duration) { b.now = b.now.Add(d) }

// held returns the numbers of what waits in the store, and of dead letters.
func (b *bench) held() (waiting, dead []uint64) {
	at := store.Shard{Type: typePrefix + "q"}
	for id, err := range b.m.Copy().Unsent(context.Background(), at) {
		require.NoError(b.t, err)
		n, _ := numberOf(id)
		waiting = append(waiting, n)
	}
	for a, err := range b.m.Copy().Due(context.Background(), at, forever) {
		require.NoError(b.t, err)
		n, _ := numberOf(a.ID)
		dead = append(dead, n)
	}
	return waiting, dead
}

// grave returns the only dead letter.
func (b *bench) grave() (number uint64, at letter) {
	b.t.Helper()
	_, dead := b.held()
	require.Len(b.t, dead, 1)
	list, err := b.m.Copy().Load(context.Background(), b.l.shard, b.l.fence, idOf(dead[0]))
	require.NoError(b.t, err)
	require.Len(b.t, list, 1)
	require.Empty(b.t, list[0].Outbox, "it is a dead letter, and waits too")
	at, err = parseLetter(list[0].State)
	require.NoError(b.t, err)
	return dead[0], at
}

var (
	errRefused = route.Ran(fmt.Errorf("%w: not now", kith.ErrHandler))
	errUnheard = route.Ran(errors.New("no answer"))
	errNobody  = route.NotRun(errors.New("nobody is there"))
)

const aWhile = time.Second // before a message goes again, with the defaults of slow

// slow is a queue with long rests.
func slow() Queue { return Queue{RetryFirst: aWhile, RetryMost: 8 * aWhile} }

var _ ground.Ground = &still{}
