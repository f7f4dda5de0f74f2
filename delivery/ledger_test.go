// Tests of one shard of a queue, step by step.

package delivery

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// TestNothingOvertakesOneThatRests: behind a message that was refused nothing goes, also while the answer of the one
// before it is still on its way, and also what is stored later (SHD-10).
func TestNothingOvertakesOneThatRests(t *testing.T) {
	b := newBench(t, slow())
	b.stores("anna", "m1", "m2")
	b.stores("ben", "b1")
	now := b.goes()
	require.Len(t, now, 3)
	require.Zero(t, now[0].before)
	require.Equal(t, now[0].number, now[1].before)
	require.Zero(t, now[2].before)
	now[1].fails(errRefused) // the receiver has handled m1, whose answer is late
	b.stores("anna", "m3", "m4")
	require.Empty(t, b.goes())
	now[0].is(outcomeHandled)
	require.Empty(t, b.goes())
	b.after(aWhile)
	m2 := b.go1("m2")
	require.Zero(t, m2.before)
	m2.is(outcomeHandled)
	now = b.goes()
	require.Len(t, now, 2)
	require.Equal(t, "m3", now[0].text)
	require.Zero(t, now[0].before)
	require.Equal(t, now[0].number, now[1].before)
}

// TestNothingOvertakesOneThatDies: what waits behind a message goes when that is known to be a dead letter, not when
// that is decided (SHD-10).
func TestNothingOvertakesOneThatDies(t *testing.T) {
	q := slow()
	q.MaxTries = 1
	b := newBench(t, q)
	b.stores("anna", "m1", "m2")
	now := b.goes()
	now[1].is(outcomeGap)
	now[0].over(nil, errRefused)
	b.after(time.Minute)
	require.Empty(t, b.goes(), "the store does not know yet that it is dead")
	b.run()
	b.grave()
	require.Zero(t, b.go1("m2").before)
}

// TestWindow: so many messages to one receiver go at once; behind one that has failed nothing does (SHD-10).
func TestWindow(t *testing.T) {
	q := slow()
	q.Window = 2
	b := newBench(t, q)
	b.stores("anna", "m1", "m2", "m3", "m4")
	now := b.goes()
	require.Len(t, now, 2)
	now[0].is(outcomeHandled)
	m3 := b.go1("m3")
	require.Equal(t, now[1].number, m3.before)
	now[1].fails(errUnheard)
	m3.is(outcomeGap)
	b.after(aWhile)
	b.go1("m2").is(outcomeHandled)
	require.Len(t, b.goes(), 2)
}

// TestUnderWay: of one shard so many messages are on their way; when one arrives the next one goes (SHD-10).
func TestUnderWay(t *testing.T) {
	b := newBench(t, Queue{Window: maxWindow})
	for i := range 200 {
		b.stores("anna", fmt.Sprint("a", i))
	}
	for i := range 100 {
		b.stores("ben", fmt.Sprint("b", i))
	}
	first := b.goes()
	require.Len(t, first, mostUnderWay)
	require.Empty(t, b.goes())
	first[0].is(outcomeHandled)
	last := b.go1("b56")
	for _, s := range append(first[1:], last) {
		s.is(outcomeHandled)
	}
	require.Len(t, b.goes(), 43)
}

// TestGapBehindItsCause: a message that came before an earlier one was handled goes again when that is gone, also when
// this was known before (SHD-10).
func TestGapBehindItsCause(t *testing.T) {
	b := newBench(t, slow())
	b.stores("anna", "m1", "m2")
	now := b.goes()
	now[1].is(outcomeGap)
	b.after(time.Minute)
	require.Empty(t, b.goes(), "it would come too early again")
	now[0].is(outcomeHandled)
	m2 := b.go1("m2")
	require.Zero(t, m2.before)
	m2.is(outcomeHandled)

	b.stores("anna", "m3", "m4")
	now = b.goes()
	now[0].is(outcomeHandled)
	require.Empty(t, b.goes())
	now[1].is(outcomeGap)
	b.after(aWhile)
	require.Zero(t, b.go1("m4").before)
	require.EqualValues(t, 2, b.l.d.gaps.Load())
}

// TestRests: each rest is twice the one before, up to the longest; those of a message that is refused and of one that
// is not answered are counted apart, and only refusals make a dead letter (SHD-10).
func TestRests(t *testing.T) {
	q := slow()
	q.MaxTries = 7
	b := newBench(t, q)
	b.stores("anna", "m")
	rests := func(err error, want ...time.Duration) {
		for _, d := range want {
			b.go1("m").fails(err)
			b.after(d - 1)
			require.Empty(t, b.goes(), d)
			b.after(1)
		}
	}
	rests(errRefused, aWhile, 2*aWhile, 4*aWhile)
	rests(errUnheard, aWhile, 2*aWhile)
	rests(errRefused, 8*aWhile, 8*aWhile, 8*aWhile)
	b.go1("m").fails(errRefused)
	_, at := b.grave()
	require.Equal(t, 7, at.tries)
	require.EqualValues(t, 7, b.l.d.refused.Load())
	require.EqualValues(t, 2, b.l.d.unheard.Load())
}

// TestAge: the age of a message counts from when it was stored, also at another owner, and ends it at the next failure
// of any kind, not before (SHD-10).
func TestAge(t *testing.T) {
	for name, fails := range map[string]error{"refused": errRefused, "unheard": errUnheard} {
		t.Run(name, func(t *testing.T) {
			q := slow()
			q.MaxAge = time.Hour
			b := newBench(t, q)
			b.stores("anna", "m")
			b.after(59 * time.Minute)
			b.go1("m").fails(fails)
			b.after(59 * time.Second)
			b.owns(2, q)
			b.go1("m").fails(fails)
			_, dead := b.held()
			require.Empty(t, dead)
			b.after(aWhile)
			b.go1("m").fails(fails)
			_, at := b.grave()
			require.Contains(t, at.reason, "not acknowledged in time")
		})
	}
}

// TestSentAgainIsNew: a dead letter that is sent again has the age, the tries and the number of a new message, and is
// no dead letter any more (SHD-10).
func TestSentAgainIsNew(t *testing.T) {
	q := slow()
	q.MaxAge, q.MaxTries = time.Hour, 2
	b := newBench(t, q)
	b.stores("anna", "m")
	b.go1("m").fails(errRefused)
	b.after(2 * time.Hour)
	first := b.go1("m")
	first.fails(errRefused)
	was, _ := b.grave()
	b.puts(&op{kind: opFind, request: request{verb: verbAgain, number: was}})
	b.run()
	waiting, dead := b.held()
	require.Len(t, waiting, 1)
	require.Empty(t, dead)
	m := b.go1("m")
	require.Greater(t, m.number, was)
	require.Equal(t, 1, m.try)
	m.fails(errRefused)
	b.after(aWhile)
	_, dead = b.held()
	require.Empty(t, dead)
	b.go1("m").fails(errRefused)
	b.grave()
	count, _, graves := b.l.waiting()
	require.Equal(t, [2]int{0, 1}, [2]int{count, graves})
}

// TestAgain: a delivery says which try it is, and whether the message may have been handled; so does its dead letter
// (SHD-10).
func TestAgain(t *testing.T) {
	q := slow()
	q.MaxTries = 2
	b := newBench(t, q)
	b.stores("anna", "m")
	for i, c := range []struct {
		fails error
		again bool
	}{{errNobody, false}, {errRefused, false}, {errUnheard, false}, {errRefused, true}} {
		m := b.go1("m")
		require.Equal(t, i+1, m.try)
		require.Equal(t, c.again, m.again)
		m.fails(c.fails)
		b.after(time.Minute)
	}
	_, at := b.grave()
	require.True(t, at.may)

	b.stores("ben", "n")
	b.owns(2, q)
	n := b.go1("n")
	require.True(t, n.again, "its owner before may have delivered it")
	require.Equal(t, 1, n.try)
}

// TestStaleIsNoAck: a receiver that has heard of a later owner has not acknowledged (SHD-10).
func TestStaleIsNoAck(t *testing.T) {
	b := newBench(t, slow())
	b.stores("anna", "m")
	b.go1("m").is(outcomeStale)
	waiting, _ := b.held()
	require.Len(t, waiting, 1)
	b.after(aWhile)
	b.go1("m").is(outcomeHad)
	waiting, _ = b.held()
	require.Empty(t, waiting)
	require.EqualValues(t, 1, b.l.d.acked.Load())
	require.EqualValues(t, 1, b.l.d.had.Load())
}

// TestNumbersGoOn: numbers grow over owners, whatever was taken away, waits or is dead, also where the clock went back,
// and where the store was emptied: a receiver would else take a new message for one that it has had (SHD-10).
func TestNumbersGoOn(t *testing.T) {
	q := slow()
	q.MaxTries = 1
	b := newBench(t, q)
	last := uint64(0)
	next := func(what string) *sent {
		t.Helper()
		now := b.goes()
		require.NotEmpty(t, now)
		m := now[len(now)-1]
		require.Greater(t, m.number, last, what)
		last = m.number
		return m
	}
	b.stores("anna", "m")
	next("the first").is(outcomeHandled)
	back := func(term uint64) {
		b.after(-time.Hour)
		b.owns(term, q)
	}
	back(2)
	b.stores("anna", "m")
	last++ // the version of its end
	next("behind one that was taken away").fails(errRefused)
	back(3)
	b.stores("anna", "m")
	last++
	next("behind a dead letter")
	back(4)
	b.stores("anna", "m")
	next("behind one that waits")
	b.m.Become(store.Memory())
	b.after(5 * time.Hour)
	b.owns(5, q)
	b.stores("anna", "m")
	next("behind a store that was emptied")
}

// TestTakenOver: the next owner counts what its predecessor has left, and refuses what is over its bounds (SHD-10).
func TestTakenOver(t *testing.T) {
	q := slow()
	q.MaxTries, q.MaxDead, q.MaxMessages = 1, 1, 3
	b := newBench(t, q)
	b.stores("anna", "dead", "m1")
	b.goes()[0].fails(errRefused)
	b.stores("anna", "m2", "m3")
	bytes := 3 * (&message{letter: letter{to: "anna", body: []byte("m1")}}).size()
	check := func() {
		t.Helper()
		count, size, graves := b.l.waiting()
		require.Equal(t, [3]int64{3, bytes, 1}, [3]int64{int64(count), size, int64(graves)})
	}
	check()
	b.owns(2, q)
	check()
	require.False(t, b.l.room(&message{}))
	now := b.goes()
	require.Len(t, now, 3)
	now[0].fails(errRefused)
	require.EqualValues(t, 1, b.l.d.deadFull.Load(), "there is no room for another dead letter")
	check()
}

// TestTakenBeforeItIsKnown: what came before the owner knew what is stored is refused where that leaves no room
// (SHD-10).
func TestTakenBeforeItIsKnown(t *testing.T) {
	q := slow()
	q.MaxMessages = 3
	b := newBench(t, q)
	b.stores("anna", "m1", "m2")
	b.l = b.l.d.ledger(0, route.MakeFence(2, 1, 1))
	b.l.hosts(true)
	b.stores("anna", "m3", "m4", "m5") // it does not know of the two yet
	count, _, _ := b.l.waiting()
	require.Equal(t, 3, count)
	require.EqualValues(t, 2, b.l.d.full.Load())
	waiting, _ := b.held()
	require.Len(t, waiting, 3)
	require.Zero(t, b.l.asks)

	q.MaxBytes = 200
	b = newBench(t, q)
	b.l = b.l.d.ledger(0, route.MakeFence(2, 1, 1))
	b.l.hosts(true)
	b.stores("anna", string(make([]byte, 1000)))
	count, _, _ = b.l.waiting()
	require.Equal(t, 1, count, "one may wait alone, however large")
}

// TestUnreadable: a message that cannot be read stays in the store, and the others go on (SHD-10).
func TestUnreadable(t *testing.T) {
	b := newBench(t, slow())
	b.stores("anna", "m1")
	w := b.l.d.write(7, 7)
	w.Outbox, w.New = []byte{letterForm + 1}, true
	b.m.Become(store.Memory())
	_, err := b.m.Claim(context.Background(), b.l.shard, b.l.fence)
	require.NoError(t, err)
	require.NoError(t, b.m.Commit(context.Background(), b.l.shard, b.l.fence, w))
	b.owns(2, slow())
	b.stores("anna", "m2")
	b.go1("m2").is(outcomeHandled)
	require.EqualValues(t, 1, b.l.d.unreadable.Load())
	waiting, _ := b.held()
	require.Equal(t, []uint64{7}, waiting)
}

// TestForgets: a shard that went is forgotten after a while, one that came back meanwhile is not, and what was on its
// way before it was forgotten says nothing about what was read since (SHD-10).
func TestForgets(t *testing.T) {
	b := newBench(t, slow())
	b.stores("anna", "m")
	gone, end := context.WithCancel(context.Background())
	end()
	b.l.d.hosts(gone, 0, b.l.fence)
	b.l.hosts(true)
	b.run() // it came back
	late := b.go1("m")
	count, _, _ := b.l.waiting()
	require.Equal(t, 1, count)
	b.l.d.hosts(gone, 0, b.l.fence)
	b.run()
	count, _, _ = b.l.waiting()
	require.Zero(t, count)
	require.Empty(t, b.goes())
	b.l.hosts(true)
	b.run()
	late.is(outcomeHandled)
	waiting, _ := b.held()
	require.Len(t, waiting, 1)
	b.go1("m").is(outcomeHandled)
	waiting, _ = b.held()
	require.Empty(t, waiting)
}

// TestUnknownCommits: a commit of unknown outcome is repeated until it is known, whatever it writes; then each message
// is there once: it waits, or is a dead letter, or is gone (SHD-10).
func TestUnknownCommits(t *testing.T) {
	for name, fate := range map[string]store.Fate{"lost": {Lost: true}, "blind": {Blind: true}} {
		t.Run(name, func(t *testing.T) {
			q := slow()
			q.MaxTries = 1
			b := newBench(t, q)
			fails := func() {
				n := 0
				b.m.Fail(func(c store.Call) store.Fate {
					if n++; c.Do == "commit" && n <= 3 {
						return fate
					}
					return store.Fate{}
				})
			}
			check := func(waits, graves int) {
				t.Helper()
				waiting, dead := b.held()
				require.Equal(t, [2]int{waits, graves}, [2]int{len(waiting), len(dead)})
				count, _, held := b.l.waiting()
				require.Equal(t, [2]int{waits, graves}, [2]int{count, held})
				require.Zero(t, b.l.asks)
			}
			fails()
			b.stores("anna", "m1", "m2")
			check(2, 0)
			now := b.goes()
			fails()
			now[0].fails(errRefused)
			check(1, 1)
			was, _ := b.grave()
			fails()
			now[1].is(outcomeHandled)
			check(0, 1)
			fails()
			b.puts(&op{kind: opFind, request: request{number: was}})
			b.run()
			check(1, 0)
			b.go1("m1").fails(errRefused)
			was, _ = b.grave()
			fails()
			b.puts(&op{kind: opDrop, request: request{number: was}})
			b.run()
			check(0, 0)
			require.NoError(t, b.l.d.ctx.Err())
			require.Nil(t, b.l.d.stopped.Load())
		})
	}
}

// TestSettles: an owner that ends waits until what it has taken is stored (SHD-10).
func TestSettles(t *testing.T) {
	b := newBench(t, slow())
	b.puts(&op{kind: opSend, m: &message{letter: letter{to: "anna", body: []byte("m")}}})
	b.l.settles(context.Background())
	waiting, _ := b.held()
	require.Len(t, waiting, 1)
	b.l.settles(context.Background()) // there is nothing to wait for
}

// TestOwnersFollow: a desk has one ledger for each shard, that of the highest fence (SHD-10).
func TestOwnersFollow(t *testing.T) {
	b := newBench(t, slow())
	first, d := b.l, b.l.d
	require.Same(t, first, d.ledger(0, first.fence))
	second := d.ledger(0, route.MakeFence(2, 1, 1))
	require.NotSame(t, first, second)
	require.Nil(t, d.ledger(0, first.fence))
	require.Same(t, second, d.ledger(0, second.fence))
}

// noEnd has a large store take no deletion.
const noEnd = "no end"

// large is a store whose commits have one write at most, or one and a deletion, and none of some message.
type large struct {
	store.Store
	not string
}

// Commit implements store.Store.
func (l large) Commit(ctx context.Context, s store.Shard, f route.Fence, w ...store.Write) error {
	for i := range w {
		at, err := parseLetter(append(w[i].State, w[i].Outbox...))
		if len(w) > 1 && !w[1].Delete || err == nil && string(at.body) == l.not || w[i].Delete && l.not == noEnd {
			return store.ErrTooLarge
		}
	}
	return l.Store.Commit(ctx, s, f, w...)
}

// TestTooLargeForTheStore: of a batch that the store does not take what it takes is stored, one by one and in order;
// what it does not take by itself is refused, or stays as it is (SHD-10).
func TestTooLargeForTheStore(t *testing.T) {
	q := slow()
	q.MaxTries = 1
	b := newBench(t, q)
	b.l.d.store = large{b.m, "m2"}
	b.stores("anna", "m1", "m2", "m3")
	count, _, _ := b.l.waiting()
	require.Equal(t, 2, count)
	require.Zero(t, b.l.asks)
	b.l.d.store = large{b.m, "m1"} // it cannot become a dead letter
	now := b.goes()
	require.Len(t, now, 2)
	require.Equal(t, "m1", now[0].text)
	now[1].is(outcomeGap)
	now[0].fails(errRefused)
	count, _, graves := b.l.waiting()
	require.Equal(t, [2]int{2, 0}, [2]int{count, graves})
	require.Empty(t, b.goes())
	b.after(8 * aWhile)
	b.l.d.store = b.m
	b.go1("m1").fails(errRefused)
	b.grave()
	b.go1("m3").is(outcomeHandled)
	waiting, _ := b.held()
	require.Empty(t, waiting)
}

// TestTooLargeForTheStoreOnceDead: a dead letter that the store does not take as a message, or whose end it does not
// take, stays what it is, and what is asked for later takes place (SHD-10).
func TestTooLargeForTheStoreOnceDead(t *testing.T) {
	q := slow()
	q.MaxTries = 1
	b := newBench(t, q)
	b.stores("anna", "m")
	b.go1("m").fails(errRefused)
	was, _ := b.grave()
	for not, kind := range map[string]opKind{"m": opFind, noEnd: opDrop} {
		b.l.d.store = large{b.m, not}
		b.puts(&op{kind: kind, request: request{number: was}})
		b.run()
		b.grave()
		count, bytes, graves := b.l.waiting()
		require.Equal(t, [3]int{0, 0, 1}, [3]int{count, int(bytes), graves})
		require.Equal(t, []uint64{was}, b.l.dead)
		require.Zero(t, b.l.asks)
	}
	b.l.d.store = b.m
	b.puts(&op{kind: opDrop, request: request{number: was}})
	b.run()
	_, dead := b.held()
	require.Empty(t, dead)
}

// TestSentAgainWithoutRoom: a dead letter that is sent again while the queue is full stays what it is (SHD-10).
func TestSentAgainWithoutRoom(t *testing.T) {
	q := slow()
	q.MaxTries, q.MaxMessages = 1, 1
	b := newBench(t, q)
	b.stores("anna", "m1")
	b.go1("m1").fails(errRefused)
	was, _ := b.grave()
	b.stores("anna", "m2")
	b.puts(&op{kind: opFind, request: request{number: was}})
	b.run()
	b.grave()
	require.EqualValues(t, 1, b.l.d.full.Load())
	require.Equal(t, []uint64{was}, b.l.dead)
	b.go1("m2").is(outcomeHandled)
	b.puts(&op{kind: opFind, request: request{number: was}})
	b.run()
	b.go1("m1")
}

// twoWriters is a store that has another version of a record, for a while.
type twoWriters struct {
	store.Store
	n int
}

// Commit implements store.Store.
func (w *twoWriters) Commit(ctx context.Context, s store.Shard, f route.Fence, list ...store.Write) error {
	if w.n++; w.n < 4 {
		return store.ErrVersion
	}
	return w.Store.Commit(ctx, s, f, list...)
}

// TestAnotherWriter: where a record has a version that this owner has not written, the store went back: the queue stops
// (SHD-10).
func TestAnotherWriter(t *testing.T) {
	b := newBench(t, slow())
	b.l.d.store = &twoWriters{Store: b.m}
	b.stores("anna", "m")
	require.NotNil(t, b.l.d.stopped.Load())
	require.ErrorIs(t, *b.l.d.stopped.Load(), store.ErrStoreWentBack)
	waiting, _ := b.held()
	require.Empty(t, waiting)
}

// TestRequestsKeepTheirTurn: what is asked about dead letters takes place between what came before and behind it
// (SHD-10).
func TestRequestsKeepTheirTurn(t *testing.T) {
	q := slow()
	q.MaxTries = 1
	b := newBench(t, q)
	b.stores("anna", "m1")
	b.go1("m1").fails(errRefused)
	was, _ := b.grave()
	send := func(text string) {
		b.puts(&op{kind: opSend, m: &message{letter: letter{to: "anna", body: []byte(text)}}})
	}
	send("m0")
	b.puts(&op{kind: opFind, request: request{number: was}})
	send("m2")
	b.run()
	require.Zero(t, b.l.asks)
	require.Equal(t, 3, b.l.count)
	waiting, dead := b.held()
	require.Len(t, waiting, 3)
	require.Empty(t, dead)
}

// TestDeadLettersWhileTheStoreIsAway: what is asked about dead letters waits until the store answers (SHD-10).
func TestDeadLettersWhileTheStoreIsAway(t *testing.T) {
	q := slow()
	q.MaxTries = 1
	b := newBench(t, q)
	b.stores("anna", "m")
	b.go1("m").fails(errRefused)
	was, _ := b.grave()
	n := 0
	b.m.Fail(func(c store.Call) store.Fate {
		if c.Do == "load" {
			n++
		}
		return store.Fate{Lost: c.Do == "load" && n <= 3}
	})
	b.puts(&op{kind: opFind, request: request{number: was}})
	b.run()
	require.Greater(t, n, 3)
	require.Zero(t, b.l.asks)
	b.go1("m")
}

// TestMayHaveRun: errors say whether a message may be stored (SHD-10).
func TestMayHaveRun(t *testing.T) {
	for c, maybe := range map[code]bool{codeFull: false, codeTooLarge: false, codeLost: false, codeMaybe: true,
		codeAway: false, codeUnknown: true, codeWentBack: true, codeNoLetter: false, codeBad: false} {
		_, err := answered(fails(c, nil).answer())
		require.Equal(t, maybe, kith.MayHaveRun(err), "%v", err)
		require.ErrorIs(t, err, meanings[c].err)
	}
	_, err := answered(nil)
	require.True(t, kith.MayHaveRun(err))
	_, err = answered([]byte{byte(codes)})
	require.True(t, kith.MayHaveRun(err))
}

// TestRefusals: what the receiver's side said of a message is a refusal; that nobody said anything is none (SHD-10).
func TestRefusals(t *testing.T) {
	for _, err := range []error{kith.ErrHandler, kith.ErrPanic, kith.ErrNoReply, kith.ErrBadPayload, kith.ErrTooLarge} {
		require.True(t, isRefusal(route.Ran(fmt.Errorf("%w: why", err))), "%v", err)
	}
	for _, err := range []error{kith.ErrTimeout, kith.ErrMailboxFull, kith.ErrNoHost, kith.ErrCrashed} {
		require.False(t, isRefusal(err), "%v", err)
	}
}
