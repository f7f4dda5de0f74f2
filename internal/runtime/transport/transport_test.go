// Tests of whole transports over loopback sockets: order, credit, heartbeats, bounds, what is forgotten, the end.

package transport

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// 100,000 frames from many goroutines arrive completely and in order per sender (SHD-9).
func TestOrderAndCompleteness(t *testing.T) {
	const senders, each = 16, 6250
	a, b := newRider(), newRider()
	var got [senders]uint32
	total, done := 0, make(chan struct{})
	b.onData = func(c *InConn, frames []byte) {
		eachFrame(frames, func(f []byte) {
			var e wire.Envelope
			require.NoError(t, wire.ParseEnvelope(f, &e))
			if got[e.Type] != e.Shard {
				t.Errorf("sender %d: got %d, want %d", e.Type, e.Shard, got[e.Type])
			}
			got[e.Type]++
			total++
		})
		c.Consumed(len(frames))
		if total == senders*each {
			close(done)
		}
	}
	ta := start(t, a, func(c *Config) { c.Window, c.LinkBuffer, c.MaxFrame = 64<<10, 64<<10, 8<<10 })
	tb := start(t, b, func(c *Config) { c.Window, c.MaxFrame = 64<<10, 8<<10 })
	link := ta.Link(tb.Self())
	require.Same(t, link, ta.Link(tb.Self()))
	room, sent := make(chan struct{}), make(chan struct{})
	go func() {
		for {
			select {
			case <-a.rooms:
			case <-sent:
				return
			}
			select {
			case room <- struct{}{}:
			default:
			}
		}
	}()
	var wg sync.WaitGroup
	for s := range uint32(senders) {
		wg.Go(func() {
			for i := range uint32(each) {
				if err := send(t, link, s, i, int(i%200), room); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	want(t, done)
	close(sent)
	require.Equal(t, uint64(senders*each), tb.Stats().Data.Frames)
	require.EqualValues(t, 1, tb.Stats().Data.In)
	require.Zero(t, ta.Stats().LostBytes)
}

// Frames of every size, also larger than the read buffer, come through whole.
func TestLargeFrames(t *testing.T) {
	b := newRider()
	sizes := make(chan int, 100)
	b.onData = func(c *InConn, frames []byte) {
		eachFrame(frames, func(f []byte) { sizes <- len(f) })
		c.Consumed(len(frames))
	}
	ta, tb := start(t, newRider(), nil), start(t, b, nil)
	link := ta.Link(tb.Self())
	for _, n := range []int{33, 4096, 100_000, loop.ReadBuffer, loop.ReadBuffer + 1, 500_000, wire.DefaultMaxFrame, 33} {
		for send(t, link, 0, 0, n-33, nil) != nil {
			runtime.Gosched()
		}
		require.Equal(t, n, want(t, sizes))
	}
	require.ErrorIs(t, send(t, link, 0, 0, wire.DefaultMaxFrame, nil), route.ErrTooLarge)
}

// Control mail reaches a peer by identity and by address alone, heartbeats are answered by the loop (FD-1).
func TestControlMailAndHeartbeats(t *testing.T) {
	a, b := newRider(), newRider()
	ta := start(t, a, nil)
	tb := start(t, b, func(c *Config) { c.StepAge = func() time.Duration { return 42 * time.Millisecond } })
	require.NoError(t, ta.Send(peer.Mail{To: peer.ID{Addr: tb.Addr()}, Kind: wire.KindJoinProbe, Body: []byte("hi")}))
	require.Equal(t, mail{ta.Self(), wire.KindJoinProbe, "hi"}, want(t, b.mails))
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus, Body: []byte("st")}))
	require.Equal(t, mail{ta.Self(), wire.KindStatus, "st"}, want(t, b.mails))
	require.Equal(t, down{id: tb.Self(), lane: wire.LaneControl}, want(t, a.ups))
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindHeartbeat,
		Body: wire.AppendHeartbeat(nil, wire.Heartbeat{Seq: 7, Sent: 9})}))
	require.Equal(t, wire.KindHeartbeat, want(t, b.mails).kind)
	m := want(t, a.mails)
	require.Equal(t, tb.Self(), m.from)
	answer, err := wire.ParseHeartbeatAck([]byte(m.body))
	require.NoError(t, err)
	require.Equal(t, wire.HeartbeatAck{Seq: 7, Sent: 9, StepAge: uint64(42 * time.Millisecond)}, answer)
	require.EqualValues(t, 2, tb.Stats().Control.In)
}

func TestSendErrors(t *testing.T) {
	ta := start(t, newRider(), func(c *Config) { c.ControlBuffer = 4096 })
	other := peer.ID{Addr: peer.MustAddr("127.0.0.1:1"), Inc: 5}
	require.ErrorIs(t, ta.Send(peer.Mail{To: ta.Self(), Kind: wire.KindStatus}), ErrSelf)
	require.ErrorIs(t, ta.Send(peer.Mail{To: other, Kind: wire.KindEnvelope}), ErrProtocol)
	require.ErrorIs(t, ta.Send(peer.Mail{To: other, Kind: wire.KindCredit}), ErrProtocol)
	require.ErrorIs(t, ta.Send(peer.Mail{To: other, Kind: 250}), ErrProtocol)
	require.ErrorIs(t, ta.Send(peer.Mail{To: other, Kind: wire.KindGossip, Body: make([]byte, 4096)}), route.ErrTooLarge)
	require.ErrorIs(t, send(t, ta.Link(ta.Self()), 0, 0, 1, nil), ErrSelf)
	ta.Forget(other)
	require.ErrorIs(t, ta.Send(peer.Mail{To: other, Kind: wire.KindStatus}), ErrForgotten)
	require.ErrorIs(t, send(t, ta.Link(other), 0, 0, 1, nil), route.ErrPeerLost)
	ta.Close()
	require.ErrorIs(t, ta.Send(peer.Mail{To: other, Kind: wire.KindStatus}), route.ErrStopped)
	require.ErrorIs(t, ta.Loops()[0].Execute(ta.Link(other)), loop.ErrClosed)
}

// The bound of the control queue is a typed error; a heartbeat still finds room.
func TestControlQueueBound(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers
	require.NoError(t, err)
	defer ln.Close()
	ta := start(t, newRider(), func(c *Config) { c.ControlBuffer = 4096 })
	to := peer.ID{Addr: peer.MustAddr(ln.Addr().String()), Inc: 5}
	n := 0
	for err = nil; err == nil; n++ {
		err = ta.Send(peer.Mail{To: to, Kind: wire.KindStatus, Body: make([]byte, 100)})
	}
	require.ErrorIs(t, err, ErrControlFull)
	require.ErrorContains(t, err, to.String())
	require.Equal(t, 4096/108+1, n)
	for range 4096 / 24 { // far more than what the last mail has left
		require.NoError(t, ta.Send(peer.Mail{To: to, Kind: wire.KindHeartbeat, Body: make([]byte, 16)}))
	}
	require.EqualValues(t, 1, ta.Stats().ControlFull)
}

// A peer that consumes nothing: the sender gets a typed error, memory stays bounded, heartbeats are answered, and all
// that was accepted is delivered once the peer goes on.
func TestSlowReader(t *testing.T) {
	const window, buffer = 256 << 10, 128 << 10
	a, b := newRider(), newRider()
	var open atomic.Bool
	var held atomic.Int64
	var frames atomic.Int64
	var in atomic.Pointer[InConn]
	all, accepted := make(chan struct{}), make(chan int64, 1)
	want1 := int64(-1)
	b.onData = func(c *InConn, fs []byte) {
		in.Store(c)
		eachFrame(fs, func([]byte) { frames.Add(1) })
		if open.Load() {
			c.Consumed(len(fs))
		} else {
			held.Add(int64(len(fs)))
		}
		select {
		case want1 = <-accepted:
		default:
		}
		if frames.Load() == want1 {
			close(all)
			want1 = -2
		}
	}
	small := func(c *Config) { c.Window, c.LinkBuffer, c.MaxFrame = window, buffer, 64<<10 }
	ta, tb := start(t, a, small), start(t, b, small)
	link := ta.Link(tb.Self())
	n := int64(0)
	for {
		err := send(t, link, 0, 0, 1000, nil)
		if err == nil {
			n++
			continue
		}
		require.ErrorIs(t, err, route.ErrLinkFull)
		require.ErrorContains(t, err, tb.Self().String())
		link.Lock()
		stuck := link.queue.Connected() && link.queue.Credit() <= 0
		link.Unlock()
		if stuck {
			break
		}
		runtime.Gosched()
	}
	require.LessOrEqual(t, n*1033, int64(window+buffer+2*1033))
	for seq := range uint64(3) {
		require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindHeartbeat,
			Body: wire.AppendHeartbeat(nil, wire.Heartbeat{Seq: seq})}))
		ack, err := wire.ParseHeartbeatAck([]byte(wantMail(t, a, wire.KindHeartbeatAck).body))
		require.NoError(t, err)
		require.Equal(t, seq, ack.Seq)
	}
	require.LessOrEqual(t, held.Load(), int64(window+1033))
	for len(a.rooms) > 0 {
		<-a.rooms
	}
	// What was on its way out when the link was full may have made room since, and said so: only a sender that is refused
	// now gets a signal.
	for err := error(nil); err == nil; {
		if err = send(t, link, 0, 0, 1000, nil); err == nil {
			n++
		}
	}
	require.LessOrEqual(t, n*1033, int64(window+buffer+2*1033))
	until(t, func() bool { return held.Load() >= window }) // all on its way was held; only what comes next is consumed
	accepted <- n
	open.Store(true)
	in.Load().Consumed(int(held.Load())) // from this goroutine
	require.Same(t, link, want(t, a.rooms))
	want(t, all)
}

// Two transports on one port: the second says which address it could not have.
func TestTwoOnOnePort(t *testing.T) {
	ta := start(t, newRider(), nil)
	_, err := New(Config{Incarnation: 1, Name: "test", Listen: ta.Addr().String()}, newRider())
	require.ErrorContains(t, err, ta.Addr().String())
	require.ErrorContains(t, err, "in use")
}

func TestAdvertise(t *testing.T) {
	_, err := New(Config{Incarnation: 1, Name: "test", Listen: "0.0.0.0:0"}, newRider())
	require.ErrorContains(t, err, "Advertise")
	require.ErrorContains(t, err, "127.0.0.1")
	for _, advertise := range []string{"127.0.0.1", "127.0.0.1:0", "localhost", "[::1]", "example.org:99"} {
		tr, err := New(Config{Incarnation: 1, Name: "test", Listen: "0.0.0.0:0", Advertise: advertise}, newRider())
		require.NoError(t, err, advertise)
		require.Equal(t, tr.Addr() == peer.MustAddr("example.org:99"), advertise == "example.org:99")
		tr.Close()
		tr.Close()
	}
}

// All faults of a configuration are named at once.
func TestConfigFaults(t *testing.T) {
	_, err := New(Config{Window: 1, MaxFrame: 7, BackoffMin: time.Hour, HelloTimeout: -1, Terms: []hello.Term{{}}},
		newRider())
	for _, name := range []string{"Incarnation", "Name", "Window", "MaxFrame", "BackoffMin", "HelloTimeout", "setting"} {
		require.ErrorContains(t, err, name)
	}
}

// Forget closes both directions and refuses what comes later.
func TestForget(t *testing.T) {
	a, b := newRider(), newRider()
	ta, tb := start(t, a, nil), start(t, b, nil)
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
	want(t, b.mails)
	require.NoError(t, tb.Send(peer.Mail{To: ta.Self(), Kind: wire.KindStatus}))
	want(t, a.mails)
	require.NoError(t, send(t, ta.Link(tb.Self()), 0, 0, 1, nil))
	want(t, a.ups)
	want(t, a.ups)
	tb.Forget(ta.Self())
	want(t, b.downs) // b's own control connection to a
	want(t, a.downs)
	want(t, a.downs) // both of a's connections were closed by b
	var e *hello.RefusedError
	if err := ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}); err != nil {
		require.ErrorAs(t, err, &e) // the loss of the connection was looked into already
	}
	refused := want(t, a.refused)
	require.Equal(t, hello.RefusedRemoved, refused.Reason)
	require.ErrorContains(t, refused, ta.Self().String())
	require.ErrorAs(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}), &e)
	until(t, func() bool { return tb.Stats().Peers == 0 })
}

// A refusal for good is reported once and tried again after SetCluster changed what the hello says.
func TestSetClusterPardons(t *testing.T) {
	a := newRider()
	ta := start(t, a, func(c *Config) { c.ClusterID, c.Birth = 1, 1 })
	b := newRider()
	tb := start(t, b, func(c *Config) { c.ClusterID, c.Birth = 2, 2 })
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
	require.Equal(t, hello.RefusedCluster, want(t, a.refused).Reason)
	require.Error(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
	ta.SetCluster(2, 2)
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus, Body: []byte("now")}))
	require.Equal(t, "now", want(t, b.mails).body)
}

// Mail to an address where nobody listens is lost, not kept for later, and the dial is tried again for new mail.
func TestUnreachablePeer(t *testing.T) {
	addr := peer.MustAddr(port.Keep(t))
	a := newRider()
	ta := start(t, a, nil)
	require.NoError(t, ta.Send(peer.Mail{To: peer.ID{Addr: addr}, Kind: wire.KindStatus, Body: []byte("old")}))
	until(t, func() bool { return ta.Stats().MailLost > 0 })
	b := newRider()
	start(t, b, func(c *Config) { c.Listen = addr.String() })
	require.NoError(t, ta.Send(peer.Mail{To: peer.ID{Addr: addr}, Kind: wire.KindStatus, Body: []byte("new")}))
	require.Equal(t, "new", want(t, b.mails).body)
	require.Empty(t, a.downs)
}

// Close flushes what was queued: everything sent before it arrives.
func TestCloseFlushes(t *testing.T) {
	const frames = 2000
	b := newRider()
	var n atomic.Int64
	all := make(chan struct{})
	b.onData = func(c *InConn, fs []byte) {
		eachFrame(fs, func([]byte) {
			if n.Add(1) == frames {
				close(all)
			}
		})
		c.Consumed(len(fs))
	}
	a := newRider()
	ta, tb := start(t, a, func(c *Config) { c.CloseTimeout = patience }), start(t, b, nil)
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindHeartbeat, Body: make([]byte, 16)}))
	link := ta.Link(tb.Self())
	require.NoError(t, send(t, link, 0, 0, 64, nil))
	for want(t, a.ups).lane != wire.LaneData {
	}
	for i := range uint32(frames - 1) {
		require.NoError(t, send(t, link, 0, i, 64, make(chan struct{})))
	}
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindExitDone, Body: []byte("bye")}))
	ta.Close()
	want(t, all)
	require.Equal(t, "bye", wantMail(t, b, wire.KindExitDone).body)
	require.ErrorIs(t, send(t, link, 0, 0, 1, nil), ErrClosed)
	for len(a.downs) > 0 {
		d := <-a.downs
		require.Error(t, d.err)
	}
}

// Replies made on the loop that owns the link leave at the end of the pass, without waking anybody.
func TestCorkedReplies(t *testing.T) {
	a, b := newRider(), newRider()
	ta := start(t, a, nil)
	tb := start(t, b, nil)
	back := tb.Link(ta.Self())
	var passes atomic.Int64
	b.onPass = func(l *loop.Loop) {
		require.Same(t, back.Loop(), l)
		passes.Add(1)
	}
	b.onData = func(c *InConn, fs []byte) {
		require.Same(t, back.Loop(), c.Loop())
		eachFrame(fs, func(f []byte) {
			back.Lock()
			room, err := back.Reserve(len(f))
			require.NoError(t, err)
			copy(room, f)
			wake := back.Commit()
			back.Unlock()
			if wake {
				back.Wake(c.Loop())
			}
		})
		c.Consumed(len(fs))
	}
	got := make(chan struct{}, 1000)
	a.onData = func(c *InConn, fs []byte) {
		eachFrame(fs, func([]byte) { got <- struct{}{} })
		c.Consumed(len(fs))
	}
	link := ta.Link(tb.Self())
	for i := range uint32(500) {
		require.NoError(t, send(t, link, 0, i, 64, make(chan struct{})))
	}
	for range 500 {
		want(t, got)
	}
	require.Positive(t, passes.Load())
	require.LessOrEqual(t, tb.Stats().Data.Wakes, uint64(20), "replies need no wake-ups")
}

// counterTask counts its runs.
type counterTask struct {
	runs  int
	limit int
	done  chan struct{}
}

func (c *counterTask) Run(on *loop.Loop) {
	if c.runs++; c.runs == c.limit {
		close(c.done)
		return
	}
	_ = on.Execute(c)
}

// A task that queues itself again and again does not keep the loop from its sockets, and tasks keep their order.
func TestLoopTasks(t *testing.T) {
	a := newRider()
	ta := start(t, a, nil)
	self := &counterTask{limit: 1000, done: make(chan struct{})}
	require.NoError(t, ta.Loops()[0].Execute(self))
	want(t, self.done)
	require.Zero(t, ta.Loops()[0].Index())
	order := make(chan int, 3000)
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for i := range 1000 {
				_ = ta.Loops()[0].Execute(taskFunc(func() { order <- g*1000 + i }))
			}
		})
	}
	wg.Wait()
	next := [3]int{}
	for range 3000 {
		v := want(t, order)
		require.Equal(t, next[v/1000], v%1000)
		next[v/1000]++
	}
}

type taskFunc func()

func (f taskFunc) Run(*loop.Loop) { f() }

func TestErrorTexts(t *testing.T) {
	id := peer.ID{Addr: peer.MustAddr("h:1"), Inc: 255}
	full := &FullError{LinkFullError: route.LinkFullError{Peer: id, Limit: 77}}
	require.ErrorContains(t, full, "77 bytes wait for h:1#ff")
	var told *route.LinkFullError
	require.ErrorAs(t, error(full), &told)
	require.EqualError(t, &hello.RefusedError{Peer: id, Reason: hello.RefusedBusy},
		"transport: h:1#ff refused the connection: busy")
	other := &hello.RefusedError{Peer: id, Reason: hello.RefusedName, Key: "cluster name", Ours: "a", Theirs: "b"}
	require.ErrorContains(t, other,
		`cluster name differs: ours "a", theirs "b"`)
	require.Equal(t, "refusal-99", hello.Refusal(99).String())
	require.True(t, errors.Is(ErrClosed, route.ErrStopped))
	for r := hello.Refusal(0); r < hello.RefusalCount; r++ {
		require.NotContains(t, r.String(), "refusal-", fmt.Sprint(uint8(r)))
	}
}
