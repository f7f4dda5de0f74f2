// Tests of surveys: the codec, and which member is asked how often for what.

package survey

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

func id(n int) peer.ID {
	return peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7000", n)), Inc: uint64(n)}
}

var full = Answer{Question: Question{Nonce: 0x0102030405060708, Type: 0x11121314, From: 300}, Known: true, Shards: 1000,
	Hosted: 2, Entities: 130, List: []Shard{{300, false, 128}, {999, true, 2}}, Term: 7,
	Moves: []shard.MoveState{{Shard: 999, From: id(1), To: id(2), Number: shard.Number{Term: 7, Seq: 3},
		Phase: shard.MoveHolds, Age: 1500 * time.Millisecond}}}

// TestGolden holds the bytes that peers of this version send.
func TestGolden(t *testing.T) {
	for _, tc := range []struct{ want, got string }{
		{"080706050403020114131211ac02", hex.EncodeToString(AppendQuestion(nil, full.Question))},
		{"080706050403020114131211ac0201e8030000020000008201020000" + "8001ba0501020007000000" + "01" + "e707" +
			hex.EncodeToString(peer.AppendID(peer.AppendID(nil, id(1)), id(2))) + "070000000300000001dc0b",
			hex.EncodeToString(AppendAnswer(nil, &full))},
	} {
		require.Equal(t, tc.want, tc.got)
	}
}

// TestParse: what was appended is read back, and nothing else is read.
func TestParse(t *testing.T) {
	for _, a := range []Answer{full, {Question: Question{Nonce: 1}}, {Known: true, List: []Shard{{ID: 5}}, More: true}} {
		body := AppendAnswer(nil, &a)
		got, err := ParseAnswer(body)
		require.NoError(t, err)
		require.Equal(t, &a, got)
		for n := range body {
			_, err := ParseAnswer(body[:n])
			require.Error(t, err)
		}
		_, err = ParseAnswer(append(body, 0))
		require.Error(t, err)
	}
	for name, a := range map[string]Answer{
		"a shard out of range":            {Known: true, List: []Shard{{ID: route.MaxShards}}},
		"shards of a type that is none":   {List: []Shard{{ID: 1}}},
		"more behind nothing":             {Known: true, More: true},
		"more shards than one may name":   {Known: true, List: slices.Repeat([]Shard{{}}, MaxShards+1)},
		"shards that do not rise":         {Known: true, List: []Shard{{ID: 5}, {ID: 5}}},
		"more moves than an answer holds": {Moves: slices.Repeat(full.Moves, MaxMoves+1)},
	} {
		_, err := ParseAnswer(AppendAnswer(nil, &a))
		require.Error(t, err, name)
	}
	_, err := ParseQuestion(AppendQuestion(nil, Question{From: route.MaxShards}))
	require.Error(t, err)
}

// FuzzAnswer: no bytes break the reader, and what it takes is what the writer makes.
func FuzzAnswer(f *testing.F) {
	f.Add(AppendAnswer(nil, &full))
	f.Fuzz(func(t *testing.T, body []byte) {
		if a, err := ParseAnswer(body); err == nil {
			require.Equal(t, body, AppendAnswer(nil, a))
		}
	})
}

// member is a picture of that many shards.
func member(shards int) *Picture {
	p := &Picture{Known: true, Shards: uint32(shards), Term: 3, Moves: []shard.MoveState{{Shard: 1}}}
	for s := range shards {
		p.List = append(p.List, Shard{ID: route.ShardID(2 * s), Entities: 1})
		p.Entities++
	}
	return p
}

// The pages of a picture name each shard once, by number, and the last of them what moves.
func TestPagesOfAnAnswer(t *testing.T) {
	for _, n := range []int{0, 1, MaxShards - 1, MaxShards, MaxShards + 1, 5*MaxShards + 7} {
		p := member(n)
		var got []Shard
		for q, more := (Question{Nonce: 7}), true; more; {
			a := p.Page(q)
			body := AppendAnswer(nil, a)
			a, err := ParseAnswer(body)
			require.NoError(t, err)
			require.EqualValues(t, n, a.Hosted)
			require.True(t, !a.More || len(a.List) == MaxShards && len(a.Moves) == 0)
			got = append(got, a.List...)
			if more = a.More; more {
				q.From = got[len(got)-1].ID + 1
			} else {
				require.Len(t, a.Moves, 1)
				require.EqualValues(t, 3, a.Term)
			}
		}
		require.True(t, slices.Equal(p.List, got), "%d shards", n)
	}
}

// TestAsk: a member with many shards is asked for the next ones until it has listed all, a lost question is put again,
// an answer that nobody waits for changes nothing, and a member that does not answer is named.
func TestAsk(t *testing.T) {
	var d Desk
	ctx, cancel := context.WithCancel(t.Context())
	asks := map[peer.ID]int{}
	var send func(a Asked)
	take := func(from peer.ID, a *Answer) {
		for _, next := range d.Take(from, a) {
			send(next)
		}
	}
	send = func(a Asked) {
		require.EqualValues(t, 9, a.Type)
		require.True(t, d.Awaits(a.To, 9, a.Nonce))
		asks[a.To]++
		switch {
		case a.To == id(1):
			page := member(10_000).Page(a.Question)
			again := *page
			take(id(9), page)                                                       // of one that was not asked
			take(id(2), member(5).Page(Question{Nonce: a.Nonce, Type: 9}))          // an answer to another's question
			take(a.To, member(5).Page(Question{Nonce: a.Nonce, Type: 9, From: 77})) // about another part
			take(a.To, page)
			take(a.To, &again) // doubled
		case a.To == id(2) && asks[a.To] > 1: // the first is lost
			take(a.To, (&Picture{}).Page(a.Question))
		case a.To == id(3) && asks[a.To] > 2:
			cancel()
		}
	}
	r := d.Ask(ctx, 9, []peer.ID{id(1), id(2), id(3), id(4)}, func(a Asked) { send(a) })
	require.Len(t, r.Answers, 2)
	list := r.Answers[id(1)].List
	require.Len(t, list, 10_000)
	for i, s := range list {
		require.EqualValues(t, 2*i, s.ID)
	}
	require.Equal(t, map[peer.ID]int{id(1): 3, id(2): 2, id(3): 3, id(4): 3}, asks, "nobody is asked for nothing")
	require.False(t, r.Answers[id(2)].Known)
	require.Equal(t, peer.SetOf(id(3), id(4)), r.Missing)
	require.Empty(t, d.open[9].readers)
	require.Empty(t, d.slots)
	require.Nil(t, d.Take(id(9), member(1).Page(Question{Nonce: 1, Type: 9})))
}

// Any number of readers at a time has each member asked once, and is given the same answers; a reader that has no time
// to wait takes what is there.
func TestReadersShareAQuestion(t *testing.T) {
	var d Desk
	const readers, members = 500, 3 * Window
	var ids []peer.ID
	for n := range members {
		ids = append(ids, id(n+1))
	}
	var mu sync.Mutex
	asks, answers := map[peer.ID]int{}, make(chan Asked, readers*members)
	put := func(a Asked) {
		mu.Lock()
		asks[a.To]++
		mu.Unlock()
		answers <- a
	}
	results := make(chan Result, readers)
	for range readers {
		go func() { results <- d.Ask(t.Context(), 9, ids, put) }()
	}
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.open[9] != nil && len(d.open[9].readers) == readers
	}, 20*time.Second, time.Millisecond)
	d.mu.Lock()
	under, now := 0, time.Now()
	for _, a := range d.open[9].members {
		if a.isAsked(now) {
			under++
		}
	}
	d.mu.Unlock()
	require.LessOrEqual(t, under, Window, "so many are asked at a time")
	go func() {
		for a := range answers {
			for _, next := range d.Take(a.To, member(3).Page(a.Question)) {
				put(next)
			}
		}
	}()
	first := <-results
	for range readers - 1 {
		r := <-results
		require.Len(t, r.Answers, members)
		require.Empty(t, r.Missing)
		require.Same(t, first.Answers[id(1)], r.Answers[id(1)])
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	r := d.Ask(over, 9, append(ids, id(200)), put)
	require.True(t, r.Missing.Has(id(200)))
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, asks, members)
}

// No more types than a few are asked about at a time; a caller that waits for its turn goes with its context.
func TestTypesAtATime(t *testing.T) {
	var d Desk
	put := make(chan Asked, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan Result, 2*MaxTypes)
	for typ := range 2 * MaxTypes {
		go func() { done <- d.Ask(ctx, route.TypeID(typ), []peer.ID{id(1)}, func(a Asked) { put <- a }) }()
	}
	types := map[route.TypeID]bool{}
	require.Eventually(t, func() bool {
		select {
		case a := <-put:
			types[a.Type] = true
		default:
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(types) == MaxTypes && len(d.open) == 2*MaxTypes
	}, 20*time.Second, time.Millisecond)
	cancel()
	for range 2 * MaxTypes {
		require.Equal(t, peer.SetOf(id(1)), (<-done).Missing)
	}
	require.Empty(t, d.slots)
}

// office is one with its pictures and frames counted.
type office struct {
	*Office
	looks, sent atomic.Int64
	bytes       atomic.Int64
	invalid     atomic.Int64
	gate        chan struct{} // a picture is taken for each value
}

func newOffice(t *testing.T) *office {
	o := &office{gate: make(chan struct{}, 1<<20)}
	o.Office = NewOffice(Needs{Self: id(99),
		Look: func(ctx context.Context, typ route.TypeID) (*Picture, bool) {
			select {
			case <-o.gate:
			case <-ctx.Done():
				return nil, false
			}
			o.looks.Add(1)
			return member(3 * MaxShards), true
		},
		Send:    func(_ peer.ID, _ wire.Kind, body []byte) { o.sent.Add(1); o.bytes.Add(int64(len(body))) },
		Invalid: func(peer.ID, wire.Kind, error) { o.invalid.Add(1) }})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); o.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-over })
	return o
}

// idle waits until nothing waits.
func (o *office) idle(t *testing.T) {
	require.Eventually(t, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.waiting) == 0
	}, 20*time.Second, time.Millisecond)
}

// A peer that asks without end has the node look no more often than it wants to, is sent no more than its share, and
// takes no room from the others.
func TestPeersCannotMakeANodeWork(t *testing.T) {
	o := newOffice(t)
	ask := func(from peer.ID, nonce uint64) bool {
		return o.Take(from, wire.KindSurvey, AppendQuestion(nil, Question{Nonce: nonce, Type: 9}))
	}
	refused := 0
	for n := range uint64(maxWaitingEach + 10) { // the first is being worked off, perhaps
		if !ask(id(1), n) {
			refused++
		}
	}
	require.GreaterOrEqual(t, refused, 9)
	require.True(t, ask(id(2), 1), "another one is heard")
	for range 100 {
		o.gate <- struct{}{}
	}
	o.idle(t)
	began := time.Now()
	for n := range uint64(20_000) {
		for !ask(id(1), n) {
			o.idle(t)
		}
	}
	o.idle(t)
	took := time.Since(began) + time.Second
	require.LessOrEqual(t, o.looks.Load(), int64(2+took/pictureAge), "pictures are shared")
	require.LessOrEqual(t, o.bytes.Load(), int64(2*bytesAtOnce+MaxShards*8+took.Seconds()*bytesPerSecond))
	require.False(t, o.Take(id(3), wire.KindSurvey, make([]byte, maxBytes+1)))
	require.True(t, o.Take(id(3), wire.KindSurvey, []byte{1}))
	require.True(t, o.Take(id(3), wire.KindSurveyAnswer, []byte{1}))
	require.True(t, o.Take(id(3), wire.KindSurveyAnswer, make([]byte, 1000)), "that nobody awaits is not even kept")
	o.idle(t)
	require.Eventually(t, func() bool { return o.invalid.Load() == 2 }, 20*time.Second, time.Millisecond)
}

// A node answers itself without a frame, page by page.
func TestOfficeAnswersItself(t *testing.T) {
	o := newOffice(t)
	o.gate <- struct{}{}
	r := o.Ask(t.Context(), 9, []peer.ID{id(99)}, o.Put)
	require.Empty(t, r.Missing)
	require.Len(t, r.Answers[id(99)].List, 3*MaxShards)
	require.EqualValues(t, 1, o.looks.Load())
	require.Zero(t, o.sent.Load())
}
