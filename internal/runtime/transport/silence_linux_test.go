// Tests of paths that are cut while their connections stand: the kernel drops what comes to chosen sockets, by a
// filter, as if it were lost on the way.

package transport

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kith-io/kith/internal/base/logs/logstest"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// deaf has the kernel drop what comes to a socket, or take it again.
func deaf(t testing.TB, fd int, drop bool) {
	t.Helper()
	if !drop {
		require.NoError(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0))
		return
	}
	nothing := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	require.NoError(t, unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: 1, Filter: &nothing}))
}

// onLoop runs f there and waits.
func onLoop(t testing.TB, l *loop.Loop, f func()) {
	t.Helper()
	done := make(chan struct{})
	require.NoError(t, l.Execute(taskFunc(func() {
		f()
		close(done)
	})))
	want(t, done)
}

// cutIn makes the accepted connections of one lane from a peer deaf, and those of the node's other end to it.
func cutIn(t testing.TB, tr *Transport, from peer.ID, lane wire.Lane, drop bool) (n int) {
	for _, c := range tr.inFrom(nil, from, lane) {
		onLoop(t, c.loop, func() {
			if c.c != nil {
				deaf(t, c.c.Fd(), drop)
				n++
			}
		})
	}
	return n
}

// cutOut makes a dialled connection deaf.
func cutOut(t testing.TB, u *uplink, drop bool) (done bool) {
	onLoop(t, u.loop, func() {
		if u.conn != nil {
			deaf(t, u.conn.c.Fd(), drop)
			done = true
		}
	})
	return done
}

func impatient(c *Config) {
	c.silent, c.silentGrace, c.CreditEvery = 200*time.Millisecond, time.Millisecond, 5*time.Millisecond
}

// counted counts frames in order.
func counted(t *testing.T, r *rider) *atomic.Uint32 {
	var next atomic.Uint32
	r.onData = func(c *InConn, frames []byte) {
		eachFrame(frames, func(f []byte) {
			var e wire.Envelope
			if wire.ParseEnvelope(f, &e) != nil || e.Shard < next.Load() {
				t.Errorf("frame %d behind %d", e.Shard, next.Load())
			}
			next.Store(e.Shard + 1)
		})
		c.Consumed(len(frames))
	}
	return &next
}

// A data connection with packets that are lost, for good, while the peer can be reached, is given up for a new one:
// what comes later arrives, what was on its way is reported as lost, and the silence is reported, counted and logged
// once (CARD-3, AVL-4).
func TestSilentConnectionIsReplaced(t *testing.T) {
	for _, lane := range []string{"to the peer", "from the peer"} {
		t.Run(lane, func(t *testing.T) {
			var log logstest.Text
			a, b := newRider(), newRider()
			next := counted(t, b)
			ta := start(t, a, func(c *Config) { impatient(c); c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			tb := start(t, b, nil)
			link := ta.Link(tb.Self())
			require.NoError(t, send(t, link, 0, 0, 10, nil))
			until(t, func() bool { return next.Load() == 1 })
			if lane == "to the peer" {
				until(t, func() bool { return cutIn(t, tb, ta.Self(), wire.LaneData, true) == 1 })
			} else {
				require.True(t, cutOut(t, &link.uplink, true))
			}
			require.NoError(t, send(t, link, 0, 1, 10, nil))
			s := want(t, a.silent)
			require.Equal(t, silent{tb.Self(), wire.LaneData, 0, s.since}, s)
			require.GreaterOrEqual(t, s.since, ta.cfg.silent)
			lost := want(t, a.downs)
			require.ErrorIs(t, lost.err, errSilent)
			require.NotZero(t, lost.lost)
			require.Zero(t, want(t, a.silent).since)
			require.NoError(t, send(t, link, 0, 2, 10, nil))
			until(t, func() bool { return next.Load() == 3 })
			st := ta.Stats()
			require.Equal(t, []uint64{1, 1}, []uint64{st.Silences, st.Replaced})
			require.EqualValues(t, 1, st.Links[0].Data[0].Silent.Times)
			require.EqualValues(t, 2, st.Links[0].Data[0].Connects)
			require.Zero(t, st.Silent)
			require.Equal(t, 1, log.Count("connection is silent"))
			require.Equal(t, 1, log.Count("silent connection has ended"))
		})
	}
}

// A control connection likewise: mail goes on.
func TestSilentControlConnection(t *testing.T) {
	a, b := newRider(), newRider()
	ta, tb := start(t, a, impatient), start(t, b, nil)
	for _, to := range []peer.ID{tb.Self(), {Addr: tb.Addr()}} {
		m := peer.Mail{To: to, Kind: wire.KindGossip, Body: []byte("1")}
		require.NoError(t, ta.Send(m))
		require.Equal(t, "1", wantMail(t, b, wire.KindGossip).body)
		r, err := ta.remote(to)
		require.NoError(t, err)
		require.True(t, cutOut(t, &r.control().uplink, true))
		m.Body = []byte("2")
		until(t, func() bool {
			require.NoError(t, ta.Send(m))
			return ta.Stats().Replaced > 0
		})
		m.Body = []byte("3")
		require.NoError(t, ta.Send(m))
		until(t, func() bool { return wantMail(t, b, wire.KindGossip).body == "3" })
		ta.count.replaced.Store(0)
	}
}

// A bulk connection likewise: what was on its way is reported as lost, and what comes later arrives.
func TestSilentBulkConnection(t *testing.T) {
	for _, secure := range []bool{false, true} {
		change := impatient
		if secure {
			both := member(t, authority(t))
			change = func(c *Config) { impatient(c); both(c) }
		}
		a, b := startBulk(t, change), startBulk(t, change)
		deliver := func() {
			x := &flow.BulkTransfer{Payload: noise(100_000)}
			require.NoError(t, a.Bulk(b.Self()).Send(x))
			require.Equal(t, x.Payload, take(t, b, a.Transport, want(t, a.whole).ref))
			require.Equal(t, route.OK, want(t, a.over).reason)
		}
		deliver()
		b.Transport.mu.Lock()
		in := b.remotes[a.Self()].bulkIn
		b.Transport.mu.Unlock()
		ask(in.nc, func(fd int) { deaf(t, fd, true) })
		require.NoError(t, a.Bulk(b.Self()).Send(&flow.BulkTransfer{Payload: noise(100_000)}))
		lost := want(t, a.over)
		require.Equal(t, route.PeerLost, lost.reason)
		require.ErrorIs(t, lost.err, errSilent)
		deliver()
		require.EqualValues(t, 1, a.Stats().Replaced)
	}
}

// When nobody can be reached, a silent connection stays, and goes on when its path is well again: nothing is lost.
func TestSilentConnectionGoesOn(t *testing.T) {
	a, b := newRider(), newRider()
	next := counted(t, b)
	ta, tb := start(t, a, impatient), start(t, b, nil)
	link := ta.Link(tb.Self())
	require.NoError(t, send(t, link, 0, 0, 10, nil))
	until(t, func() bool { return next.Load() == 1 })
	require.NoError(t, tb.listener.Close())
	require.True(t, cutOut(t, &link.uplink, true))
	require.NoError(t, send(t, link, 0, 1, 10, nil))
	require.NotZero(t, want(t, a.silent).since)
	require.NoError(t, send(t, link, 0, 2, 10, nil))
	require.True(t, cutOut(t, &link.uplink, false))
	require.Zero(t, want(t, a.silent).since)
	until(t, func() bool { return next.Load() == 3 })
	until(t, func() bool { link.Lock(); defer link.Unlock(); return !link.dialing })
	st := ta.Stats()
	require.EqualValues(t, 1, st.Links[0].Data[0].Connects)
	require.Zero(t, st.LostBytes)
	require.Zero(t, st.Replaced)
}

// What was dialled beside a silent connection that goes on is closed before its hello, and the peer counts no fault of
// it (CARD-3).
func TestSilentConnectionGoesOnWithoutAFault(t *testing.T) {
	a, b := newRider(), newRider()
	next := counted(t, b)
	ta := start(t, a, func(c *Config) { impatient(c); c.silentGrace = time.Hour })
	tb := start(t, b, func(c *Config) { c.FirstByteTimeout = time.Hour })
	link := ta.Link(tb.Self())
	require.NoError(t, send(t, link, 0, 0, 10, nil))
	until(t, func() bool { return next.Load() == 1 && tb.Stats().Pending == 0 })
	require.True(t, cutOut(t, &link.uplink, true))
	require.NoError(t, send(t, link, 0, 1, 10, nil))
	require.NotZero(t, want(t, a.silent).since)
	until(t, func() bool { return tb.Stats().Pending == 1 })
	require.True(t, cutOut(t, &link.uplink, false))
	until(t, func() bool { return tb.Stats().Withdrawn == 1 && next.Load() == 2 })
	require.Zero(t, tb.Stats().FaultsHello)
}

// A receiver with a loop that is held up for many times as long, until its socket takes no more, is slow and not
// silent: its system acknowledges, and no message is lost (CARD-3, AVL-4).
func TestSlowIsNotSilent(t *testing.T) {
	a, b := newRider(), newRider()
	next := counted(t, b)
	count, hold, held := b.onData, make(chan struct{}), make(chan struct{}, 1)
	b.onData = func(c *InConn, frames []byte) {
		select {
		case held <- struct{}{}:
		default:
		}
		<-hold
		count(c, frames)
	}
	bounds := func(c *Config) { impatient(c); c.Window, c.LinkBuffer = 8<<20, 8<<20 }
	ta, tb := start(t, a, bounds), start(t, b, bounds)
	link := ta.Link(tb.Self())
	sent := uint32(0)
	until(t, func() bool {
		for send(t, link, 0, sent, 4000, nil) == nil {
			sent++
		}
		return isParked(t, &link.uplink)
	})
	<-time.After(10 * ta.cfg.silent)
	require.Zero(t, ta.Stats().Silences)
	close(hold)
	arrives(t, func() (int, bool) { return int(next.Load()), next.Load() == sent })
	require.EqualValues(t, 1, ta.Stats().Links[0].Data[0].Connects)
}

// Credit that is lost on its way back comes by the control connection: the sender, which has none left and therefore
// nothing on its way, goes on. The sender never takes its own connection for silent: an acknowledgement that is still
// due when the path is cut would make it so, and a new connection would bring everything (CARD-3).
func TestCreditOfASilentWayBack(t *testing.T) {
	a, b := newRider(), newRider()
	held := make(chan *InConn, 1024)
	b.onData = func(c *InConn, frames []byte) { held <- c }
	small := func(c *Config) { impatient(c); c.Window = 4096 }
	ta, tb := start(t, a, func(c *Config) { small(c); c.silent = time.Hour }), start(t, b, small)
	link := ta.Link(tb.Self())
	for range 8 {
		require.NoError(t, send(t, link, 0, 0, 1000, nil))
	}
	c := want(t, held)
	until(t, func() bool { // its window is used up, and all of it has arrived
		link.Lock()
		defer link.Unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		return link.queue.Pending() > 0 && int64(c.received) == link.queue.Outstanding()
	})
	require.True(t, cutOut(t, &link.uplink, true))
	c.mu.Lock()
	n := int(c.received)
	c.mu.Unlock()
	c.Consumed(n)
	until(t, func() bool { return link.stats().Queued == 0 })
	st := ta.Stats()
	require.EqualValues(t, 1, st.Links[0].Data[0].Connects)
	require.Zero(t, st.Silences)
}

// A peer that is heard again is dialled at once, whatever is left of the back-off.
func TestHeardAgainIsDialledAtOnce(t *testing.T) {
	a, b := newRider(), newRider()
	slow := func(c *Config) { c.BackoffMin, c.BackoffMax = time.Hour, time.Hour }
	ta, tb := start(t, a, slow), start(t, b, nil)
	next := counted(t, b)
	link := ta.Link(tb.Self())
	link.Lock()
	link.failures, link.notBefore = 9, time.Now().Add(time.Hour)
	link.Unlock()
	require.NoError(t, send(t, link, 0, 0, 10, nil))
	until(t, func() bool { link.Lock(); defer link.Unlock(); return link.dialing })
	require.NoError(t, tb.Send(peer.Mail{To: ta.Self(), Kind: wire.KindGossip}))
	until(t, func() bool { return next.Load() == 1 })
}

// swallowing has the kernel drop packets of more than so many bytes that come to the data connections from a peer.
func swallowing(t testing.TB, tr *Transport, from peer.ID, bytes uint32) (n int) {
	t.Helper()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_LEN},
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: bytes, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 18},
		{Code: unix.BPF_RET | unix.BPF_K},
	}
	for _, c := range tr.inFrom(nil, from, wire.LaneData) {
		onLoop(t, c.loop, func() {
			if c.c != nil {
				require.NoError(t, unix.SetsockoptSockFprog(c.c.Fd(), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
					&unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}))
				n++
			}
		})
	}
	return n
}

// A path that loses packets above a size ends every data connection with its first large one, while hellos pass. The
// third end in a row says what that means, once; small messages pass all the while (CARD-3, AVL-4).
func TestPathThatLosesLargePackets(t *testing.T) {
	var log logstest.Text
	a, b := newRider(), newRider()
	next := counted(t, b)
	ta := start(t, a, func(c *Config) { impatient(c); c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	tb := start(t, b, nil)
	link := ta.Link(tb.Self())
	const said = "connections end with their first large packet"
	for round := range uint32(4) {
		require.NoError(t, send(t, link, 0, 2*round, 10, nil))
		until(t, func() bool { return next.Load() == 2*round+1 })
		require.Equal(t, map[bool]int{true: 1}[round >= 3], log.Count(said))
		until(t, func() bool { return swallowing(t, tb, ta.Self(), 1400) == 1 })
		require.NoError(t, send(t, link, 0, 2*round+1, 4000, nil))
		require.NotZero(t, want(t, a.silent).since)
		require.ErrorIs(t, want(t, a.downs).err, errSilent)
		require.Zero(t, want(t, a.silent).since)
	}
	require.EqualValues(t, 4, ta.Stats().Replaced)
}

// What is said of a path that loses large packets, and when.
func TestHole(t *testing.T) {
	now := time.Now()
	var h hole
	for i, c := range []struct {
		after time.Duration
		large bool
		say   bool
	}{{0, true, false}, {time.Second, true, false}, {time.Second, true, true}, {time.Second, true, false},
		{unreachedEvery, true, true}, {time.Second, false, false}, {time.Second, true, false}, {time.Second, true, false},
		{2 * holeWithin, true, false}, {time.Second, true, false}, {time.Second, true, true}} {
		now = now.Add(c.after)
		require.Equal(t, c.say, h.ended(c.large, now), "%d", i)
	}
}
