// Tests of the table of asks: generations, time limits, lost peers, bounds.

package driver

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/incall"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// A reply counts only if it comes from the node that was asked: others may guess its number. The ask goes on waiting,
// also where it is asked again of another (SEC-5).
func TestRepliesOfOthersAreNotBelieved(t *testing.T) {
	t.Run("numbered", func(t *testing.T) { repliesOfOthers(t, 1) })
	t.Run("numbers have run out", func(t *testing.T) { repliesOfOthers(t, 0) })
}

func repliesOfOthers(t *testing.T, numbers uint32) {
	table := newAskTable(8, 0)
	at := func(inc uint64) *peerConn {
		id := peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: inc}
		return &peerConn{peerNode: &peerNode{id: id, number: numbers * uint32(inc)}}
	}
	asked, next, other := at(1), at(2), at(3)
	w, corr, err := begun(table.begin(time.Second, &Region{}, 0, nil, nil))
	require.NoError(t, err)
	require.False(t, table.answered(corr, asked.peerNode, route.OK, []byte("too early")), "it waits for a home")
	w.goes(corr, &routeEntry{remote: asked})
	require.False(t, table.answered(corr, other.peerNode, route.OK, []byte("forged")))
	require.False(t, table.concludeWith(corr, other.id, []byte("forged")))
	table.goes(corr, &routeEntry{remote: next})
	require.False(t, table.answered(corr, asked.peerNode, route.OK, []byte("no more")))
	require.Nil(t, table.awaiting(corr, asked.id))
	require.EqualValues(t, 5, table.foreign.Load())
	require.True(t, table.answered(corr, at(2).peerNode, route.OK, []byte("true")), "the node counts, not the connection")
	<-w.wake
	require.Equal(t, "true", string(w.reply))
	require.False(t, table.answered(corr, next.peerNode, route.OK, []byte("again")))
	table.free(w)
	require.False(t, table.concludeWith(corr, next.id, []byte("late")))
	require.EqualValues(t, 2, table.late.Load())
	require.EqualValues(t, 5, table.foreign.Load())
	require.Zero(t, table.underway())
}

// An ask that is taken back goes nowhere: an answer of the node that it was meant for is not believed until it has gone
// there (SEC-5).
func TestTakenBackAskIsAnsweredByNobody(t *testing.T) {
	table := newAskTable(8, 0)
	to := &peerConn{peerNode: &peerNode{id: peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: 1}, number: 1}}
	w, corr, err := begun(table.begin(time.Second, &Region{}, 0, nil, nil))
	require.NoError(t, err)
	require.True(t, w.goes(corr, &routeEntry{remote: to}))
	table.stays(corr)
	require.False(t, table.answered(corr, to.peerNode, route.OK, nil))
	require.True(t, table.goes(corr, &routeEntry{remote: to}))
	require.True(t, table.answered(corr, to.peerNode, route.OK, nil))
	<-w.wake
	table.free(w)
}

// An ask that goes on to another node while all are being failed is failed as well (REL-1).
func TestAskThatGoesOnIsNotMissed(t *testing.T) {
	table := newAskTable(8, 0)
	w, corr, err := begun(table.begin(time.Second, &Region{}, 0, nil, nil))
	require.NoError(t, err)
	to := &routeEntry{remote: &peerConn{peerNode: &peerNode{number: 1}}}
	looks := 0
	require.True(t, w.claimIf(func() bool {
		if looks++; looks == 1 {
			require.True(t, w.goes(corr, to))
		}
		return true
	}))
	require.Equal(t, 2, looks)
	require.False(t, w.claimIf(func() bool { t.Error("it waits no more"); return true }))
	table.free(w)
}

// However an ask goes from node to node while its table fails all, its asker gives up and a node answers: it is settled
// once, and by none that it never went to (REL-1, SEC-5).
func TestAskThatGoesOnIsSettledOnce(t *testing.T) {
	table := newAskTable(8, 0)
	at := func(n uint32) *peerConn {
		return &peerConn{peerNode: &peerNode{id: peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: uint64(n)}, number: n}}
	}
	a, b, stranger := at(1), at(2), at(3)
	for i := range 2_000 {
		w, corr, err := begun(table.begin(time.Second, &Region{}, 0, nil, nil))
		require.NoError(t, err)
		var settled atomic.Int32
		var all sync.WaitGroup
		all.Go(func() {
			for n := range 20 {
				w.goes(corr, &routeEntry{remote: []*peerConn{a, b}[n%2]})
				if n%5 == 4 {
					w.stays()
				}
			}
		})
		all.Go(func() {
			if table.answered(corr, stranger.peerNode, route.OK, nil) {
				t.Error("a stranger was believed")
			}
			for range i % 7 {
				if table.answered(corr, b.peerNode, route.OK, nil) {
					settled.Add(1)
				}
			}
		})
		all.Go(func() {
			runtime.Gosched()
			if i%3 == 0 {
				if w.claim(corr) {
					settled.Add(1)
					w.wake <- struct{}{}
				}
				return
			}
			table.fail(nil, route.Stopped) // whatever it goes to meanwhile
			require.False(t, table.waits(corr))
		})
		all.Wait()
		require.False(t, w.claim(corr), "round %d", i)
		require.LessOrEqual(t, settled.Load(), int32(1))
		<-w.wake
		require.Empty(t, w.wake)
		table.free(w)
	}
}

// An ask that was handed over is answered by the node that its shard has moved to since, which this node knows; by no
// other, and not by one to which it had moved before. The loss of the node that was asked first does not end it, once
// the next home is known (transfer-names-asker, SEC-5).
func TestAnswerOfTheNextOwner(t *testing.T) {
	at := func(inc uint64) *peerConn {
		return &peerConn{peerNode: &peerNode{id: peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: inc}}}
	}
	fence := func(epoch uint32) route.Fence { return route.MakeFence(1, 1, epoch) }
	owner, next, last, stranger := at(1), at(2), at(3), at(4)
	r := &Region{parking: flow.NewParking(0, 1<<20, time.Minute, nil)}
	r.cells.Init(1)
	table := newAskTable(8, 0)
	ask := func() (*askWaiter, uint64) {
		w, corr, err := begun(table.begin(time.Second, r, 0, nil, nil))
		require.NoError(t, err)
		w.goes(corr, &routeEntry{remote: owner, of: slotRef{r, 0}, fence: fence(5)})
		return w, corr
	}
	r.heirs.add(0, fence(4), stranger.id) // it moved to that one, and on to the owner that was asked
	w, corr := ask()
	require.False(t, table.answered(corr, at(8).peerNode, route.OK, nil))
	r.heirs.add(0, fence(5), next.id)
	r.heirs.add(0, fence(6), last.id)
	require.False(t, table.answered(corr, stranger.peerNode, route.OK, nil))
	require.True(t, table.answered(corr, last.peerNode, route.OK, []byte("true")))
	<-w.wake
	table.free(w)

	w, corr = ask() // the answer is here before the news of a move that a new coordinator began
	require.False(t, table.answered(corr, stranger.peerNode, route.OK, []byte("no")))
	require.False(t, table.answered(corr, at(9).peerNode, route.OK, []byte("ninth")))
	ref := slotRef{r, 0}
	ref.slot().slot.Resolve(false, at(9).id, fence(9))
	table.lookAgain()
	<-w.wake
	require.Equal(t, "ninth", string(w.reply))
	table.free(w)
	require.Equal(t, 1, table.early.list.Len())
	table.lookAgain()
	require.Zero(t, table.early.list.Len(), "nobody waits for it any more")
	ref.slot().slot.Reset()

	w, _ = ask()
	ref.slot().slot.Resolve(false, next.id, fence(6))
	table.fail(owner, route.PeerLost)
	require.EqualValues(t, 1, table.underway(), "it is not the owner that answers it")
	table.fail(nil, route.Stopped)
	<-w.wake
	table.free(w)

	w, corr = ask()
	ref.slot().slot.Reset()
	table.fail(owner, route.PeerLost)
	<-w.wake
	require.ErrorIs(t, w.err, route.ErrPeerLost)
	table.free(w)
	require.False(t, table.answered(corr, next.peerNode, route.OK, nil))
}

func TestLateReplyFailsGeneration(t *testing.T) {
	table := newAskTable(8, 0)
	r := &Region{}
	seen := map[uint64]bool{}
	for i := range 1000 {
		w, corr, err := begun(table.begin(time.Second, r, 0, nil, nil))
		require.NoError(t, err)
		require.NotZero(t, corr, "zero means a tell")
		require.False(t, seen[corr], "a correlation came twice within %d asks", i)
		seen[corr] = true
		require.True(t, table.conclude(corr, route.OK, []byte("first")))
		require.False(t, table.conclude(corr, route.OK, []byte("second")), "answered twice")
		<-w.wake
		require.Equal(t, "first", string(w.reply))
		table.free(w)
		require.False(t, table.conclude(corr, route.OK, []byte("late")))
	}
	require.EqualValues(t, 2000, table.late.Load())
	require.False(t, table.conclude(0, route.OK, nil))
	require.False(t, table.conclude(1<<63|99999, route.OK, nil))
	require.Zero(t, table.underway())
}

func TestAskTableBound(t *testing.T) {
	for _, limit := range []int{1, 7, 8, 9, 300, 5000} {
		table := newAskTable(limit, 0)
		var held []*askWaiter
		for range limit {
			w, _, err := begun(table.begin(time.Second, &Region{}, 0, nil, nil))
			require.NoError(t, err, "limit %d after %d", limit, len(held))
			held = append(held, w)
		}
		_, _, err := table.begin(time.Second, &Region{}, 0, nil, nil)
		require.ErrorIs(t, err, route.ErrAsksFull)
		require.Equal(t, limit, table.underway())
		table.free(held[0])
		_, _, err = table.begin(time.Second, &Region{}, 0, nil, nil)
		require.NoError(t, err)
	}
}

// The wheel never fires early, and late by less than two of its ticks, also beyond one turn and when it was not driven
// for a while.
func TestWheelFiresInTime(t *testing.T) {
	const wheelTurn = 512 // ticks
	table := newAskTable(4096, 0)
	limits := []time.Duration{-1, 0, 1, wheelTick, wheelTick + 1, 3 * wheelTick, wheelTurn * wheelTick,
		(wheelTurn + 1) * wheelTick, 3*wheelTurn*wheelTick + 5}
	table.advance(1000)
	type fired struct{ at, due int64 }
	var got []fired
	tick := int64(1000)
	waiting := map[*askWaiter]int64{}
	for _, d := range limits {
		w, _, err := begun(table.begin(d, &Region{}, 0, nil, nil))
		require.NoError(t, err)
		waiting[w] = tick + int64((max(d, 0)+wheelTick-1)/wheelTick)
	}
	for tick = 1001; tick < 1000+4*wheelTurn; tick++ {
		table.advance(tick)
		for w, due := range waiting {
			select {
			case <-w.wake:
				require.ErrorIs(t, w.err, route.ErrTimeout)
				got = append(got, fired{tick, due})
				delete(waiting, w)
				table.free(w)
			default:
			}
		}
	}
	require.Len(t, got, len(limits))
	for _, f := range got {
		require.GreaterOrEqual(t, f.at, f.due)
		require.LessOrEqual(t, f.at, f.due+2)
	}
	over := make(chan struct{})
	_, _, err := table.begin(time.Hour, &Region{}, 0, nil, func([]byte, error) { close(over) })
	require.NoError(t, err)
	tick += int64(2 * time.Hour / wheelTick)
	table.advance(tick)
	<-over // a wheel that stood still fires all that is over
	require.Zero(t, table.underway())
}

// begun returns the waiter of an ask that has begun.
func begun(a asking, corr uint64, err error) (*askWaiter, uint64, error) { return a.w, corr, err }

// An ask by callback is over while its sender stands still in front of the link: the waiter is another ask's by then,
// of which the sender says and reads nothing (API-2).
func TestSenderLeavesTheWaiterOfAnotherAskAlone(t *testing.T) {
	table := newAskTable(askStripes, 0)
	type begins struct {
		asking
		corr uint64
	}
	old := map[*askWaiter]begins{}
	var over sync.WaitGroup
	over.Add(askStripes)
	for range askStripes {
		a, corr, err := table.begin(wheelTick, &Region{}, 0, nil, func([]byte, error) { over.Done() })
		require.NoError(t, err)
		old[a.w] = begins{a, corr}
	}
	table.advance(10)
	over.Wait()
	for range askStripes {
		next, corr, err := table.begin(time.Hour, &Region{}, 0, nil, func([]byte, error) {})
		require.NoError(t, err)
		was := old[next.w]
		require.NotEqual(t, corr, was.corr)
		require.False(t, was.goes(table, was.corr, &routeEntry{}))
		require.Nil(t, next.w.dest.Load())
		here := &routeEntry{}
		require.True(t, next.goes(table, corr, here))
		was.stays(table, was.corr)
		require.Same(t, here, next.w.dest.Load())
		require.True(t, was.limited, "what the envelope says is the old ask's own")
	}
}

func TestLostPeerFailsItsAsksOnly(t *testing.T) {
	table := newAskTable(1000, 0)
	gone, there := &peerConn{peerNode: &peerNode{}}, &peerConn{peerNode: &peerNode{}}
	var lost, others atomic.Int64
	for i := range 600 {
		to, count := gone, &lost
		if i%2 == 0 {
			to, count = there, &others
		}
		w, corr, err := begun(table.begin(time.Hour, &Region{}, 0, nil, func(_ []byte, err error) {
			require.ErrorIs(t, err, route.ErrPeerLost)
			count.Add(1)
		}))
		require.NoError(t, err)
		if i%3 == 0 {
			table.goes(corr, &routeEntry{remote: to}) // parked before
		} else {
			w.goes(corr, &routeEntry{remote: to})
		}
	}
	table.lose(nil, route.PeerLost)
	require.Zero(t, lost.Load()+others.Load())
	table.fail(gone, route.PeerLost)
	eventually(t, func() bool { return lost.Load() == 300 })
	require.Zero(t, others.Load())
	table.fail(nil, route.PeerLost)
	eventually(t, func() bool { return others.Load() == 300 })
}

// Replies, time limits and lost peers race for the same asks: each is settled once, and never with another's reply.
func TestAskIsSettledOnce(t *testing.T) {
	table := newAskTable(64, 0)
	peer := &peerConn{peerNode: &peerNode{}}
	stop := make(chan struct{})
	var racers, askers sync.WaitGroup
	corrs := make(chan uint64, 1024)
	racers.Go(func() {
		for tick := int64(1); ; tick++ {
			select {
			case <-stop:
				return
			default:
				table.advance(tick)
				runtime.Gosched()
			}
		}
	})
	racers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				table.fail(peer, route.PeerLost)
				runtime.Gosched()
			}
		}
	})
	for range 2 {
		racers.Go(func() {
			for corr := range corrs {
				table.conclude(corr, route.OK, []byte{byte(corr), byte(corr >> 32)})
			}
		})
	}
	for range 4 {
		askers.Go(func() {
			for range 400 {
				w, corr, err := begun(table.begin(wheelTick, &Region{}, 0, nil, nil))
				if err != nil {
					continue
				}
				w.goes(corr, &routeEntry{remote: peer})
				corrs <- corr
				<-w.wake
				if w.err == nil && (w.reply[0] != byte(corr) || w.reply[1] != byte(corr>>32)) {
					t.Errorf("somebody else's reply")
				}
				table.free(w)
			}
		})
	}
	askers.Wait()
	close(corrs)
	close(stop)
	racers.Wait()
	require.Zero(t, table.underway())
}

func TestAskAllocatesNothing(t *testing.T) {
	table := newAskTable(64, 0)
	into := make([]byte, 0, 16)
	reply := []byte("reply")
	ask := func() {
		w, corr, _ := begun(table.begin(time.Second, nil, 0, into, nil))
		table.conclude(corr, route.OK, reply)
		<-w.wake
		table.free(w)
	}
	ask()
	require.Zero(t, testing.AllocsPerRun(200, ask))
}

// ACC-4: after a stall the table's tick is old until the ticker runs. An ask that begins before that has all its time.
func TestAskAfterAStallIsNotEarly(t *testing.T) {
	table := newAskTable(8, 0)
	stall := int64(4 * time.Second / wheelTick)
	now := stall
	table.at = func() int64 { return now }
	w, corr, err := begun(table.begin(time.Second, &Region{}, 0, nil, nil))
	require.NoError(t, err)
	for ; now < stall+int64(time.Second/wheelTick)+1; now++ {
		table.advance(now)
		require.True(t, table.waits(corr), "over after %d ticks", now-stall)
	}
	table.advance(now + 1)
	require.False(t, table.waits(corr))
	<-w.wake
	require.Error(t, w.err)
}

// The table of a node asks the exact clock, not the ticker, which may have stood still since a stall (ACC-4).
func TestAsksBeginByTheExactClock(t *testing.T) {
	d, _, err := newDriver(Config{}.WithDefaults())
	require.NoError(t, err)
	t.Cleanup(d.wires.Close)
	d.exec.Clock.Init(time.Now().Add(-time.Hour))
	require.GreaterOrEqual(t, d.asks.at(), int64(time.Hour/wheelTick), "no ticker has run")
}

// A goroutine that asks again has the waiter of its last ask, which its core has at hand, and finds another where all
// of its stripe are in use (CARD-3).
func TestAsksOfAGoroutineUseOneWaiter(t *testing.T) {
	if !incall.Known {
		t.Skip("goroutines are not told apart")
	}
	table := newAskTable(askStripes, 0)
	var first *askWaiter
	for range 3 * askStripes {
		w, corr, err := begun(table.begin(time.Hour, &Region{}, 0, nil, nil))
		require.NoError(t, err)
		if first == nil {
			first = w
		}
		require.Same(t, first, w)
		require.True(t, table.abandon(w, corr, false))
	}
	used := map[*askWaiter]bool{}
	for range askStripes {
		w, _, err := begun(table.begin(time.Hour, &Region{}, 0, nil, nil))
		require.NoError(t, err)
		used[w] = true
	}
	require.Len(t, used, askStripes)
}

// Each ask moves its waiter between the cores of asker and answerer.
func TestLinesOfAWaiter(t *testing.T) {
	const line = 64
	var w askWaiter
	require.EqualValues(t, 3*line, unsafe.Sizeof(w), "no other begins in its lines")
	require.EqualValues(t, line, unsafe.Offsetof(w.by), "what most answers need comes before")
	require.EqualValues(t, 2*line, unsafe.Offsetof(w.Ask), "who settles it needs nothing of this")
}
