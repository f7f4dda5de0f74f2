// Tests of large messages on sockets: intact, beside others, cancelled, refused, and over broken connections.

package transport

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

type bulkOver struct {
	x      *flow.BulkTransfer
	reason route.Reason
	limit  int
	err    error
}

type bulkIsWhole struct {
	x   *flow.BulkTransfer
	ref wire.BulkRef
}

type bulkReply struct {
	corr    uint64
	payload []byte
}

// bulkRider is a BulkUpcalls for tests.
type bulkRider struct {
	mu      sync.Mutex
	judge   func(b *wire.BulkBegin) flow.BulkEnd
	moved   map[*flow.BulkTransfer]int
	whole   chan bulkIsWhole
	over    chan bulkOver
	begun   chan wire.BulkBegin
	replies chan bulkReply
}

func newBulkRider() *bulkRider {
	return &bulkRider{moved: map[*flow.BulkTransfer]int{}, whole: make(chan bulkIsWhole, 4096),
		over: make(chan bulkOver, 4096), begun: make(chan wire.BulkBegin, 4096), replies: make(chan bulkReply, 4096)}
}

func (r *bulkRider) BulkBegin(_ peer.ID, b *wire.BulkBegin) flow.BulkEnd {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun <- *b
	if r.judge != nil {
		return r.judge(b)
	}
	return flow.BulkEnd{}
}

func (r *bulkRider) BulkReply(_ peer.ID, corr uint64, payload []byte) {
	r.replies <- bulkReply{corr, payload}
}

func (r *bulkRider) BulkMoved(x *flow.BulkTransfer, sent int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moved[x] = max(sent, r.moved[x])
}

func (r *bulkRider) BulkWhole(x *flow.BulkTransfer, ref wire.BulkRef) { r.whole <- bulkIsWhole{x, ref} }

func (r *bulkRider) BulkOver(x *flow.BulkTransfer, end flow.BulkEnd, err error) {
	r.over <- bulkOver{x, end.Reason, end.Limit, err}
}

// bulkNode is a transport with its two runtimes.
type bulkNode struct {
	*Transport
	*bulkRider
}

func startBulk(t testing.TB, change func(*Config)) bulkNode {
	r := newBulkRider()
	tr := start(t, newRider(), func(c *Config) {
		c.Bulk, c.BulkWindow = r, 256<<10
		if change != nil {
			change(c)
		}
	})
	return bulkNode{tr, r}
}

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// take does what a rider does when the envelope comes.
func take(t testing.TB, n bulkNode, from *Transport, ref wire.BulkRef) []byte {
	payload, free, ok := n.BulkTake(from.Self(), ref)
	require.True(t, ok)
	n.BulkEnd(from.Self(), ref, flow.BulkEnd{})
	free()
	return payload
}

// TestBulkIsIntact sends 64 MiB and smaller ones beside it, with and without TLS; all arrive as they were, and neither
// side holds anything afterwards.
func TestBulkIsIntact(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "tls"}[secure], func(t *testing.T) {
			var change func(*Config)
			if secure {
				change = member(t, authority(t))
			}
			a, b := startBulk(t, change), startBulk(t, change)
			large := &flow.BulkTransfer{Payload: noise(64 << 20)}
			sums := map[*flow.BulkTransfer][32]byte{large: sha256.Sum256(large.Payload)}
			require.NoError(t, a.Bulk(b.Self()).Send(large))
			for i := range 20 {
				x := &flow.BulkTransfer{Payload: noise(1 + i*100_000)}
				sums[x] = sha256.Sum256(x.Payload)
				require.NoError(t, a.Bulk(b.Self()).Send(x))
			}
			order := []*flow.BulkTransfer{}
			for range len(sums) {
				w := want(t, a.whole)
				require.Equal(t, sums[w.x], sha256.Sum256(take(t, b, a.Transport, w.ref)))
				order = append(order, w.x)
			}
			require.NotEqual(t, large, order[0], "small ones take their turn beside a large one")
			for range len(sums) {
				o := want(t, a.over)
				require.Equal(t, route.OK, o.reason)
			}
			s, r := a.Stats().Bulk, b.Stats().Bulk
			require.Equal(t, []int{1, 0, 0}, []int{s.Out, s.Queued, s.Begun})
			require.Equal(t, []int{1, 0, 0}, []int{r.In, r.Held, r.Waiting})
			require.Equal(t, uint64(21), s.Sent.Taken)
			require.Equal(t, s.Sent.Bytes, r.Received.Bytes)
		})
	}
}

// TestBulkReplyIsHandedOver: a reply needs no envelope.
func TestBulkReplyIsHandedOver(t *testing.T) {
	a, b := startBulk(t, nil), startBulk(t, nil)
	x := &flow.BulkTransfer{Begin: wire.BulkBegin{Reply: true, Corr: 77}, Payload: noise(3 << 20)}
	require.NoError(t, a.Bulk(b.Self()).Send(x))
	got := want(t, b.replies)
	require.Equal(t, uint64(77), got.corr)
	require.True(t, bytes.Equal(x.Payload, got.payload))
	require.Equal(t, bulkOver{x, route.OK, 0, nil}, want(t, a.over))
	until(t, func() bool { return b.Stats().Bulk.Held == 0 })
}

// TestBulkIsRefused by the rider's judgement, by size, and by a node that takes none.
func TestBulkIsRefused(t *testing.T) {
	a, b := startBulk(t, nil), startBulk(t, func(c *Config) { c.MaxBulk = 1 << 20 })
	b.judge = func(b *wire.BulkBegin) flow.BulkEnd {
		if b.Type == 9 {
			return flow.BulkEnd{Reason: route.MailboxFull, Limit: 7}
		}
		return flow.BulkEnd{}
	}
	x := &flow.BulkTransfer{Begin: wire.BulkBegin{Type: 9}, Payload: noise(100)}
	require.NoError(t, a.Bulk(b.Self()).Send(x))
	require.Equal(t, bulkOver{x, route.MailboxFull, 7, nil}, want(t, a.over))
	x = &flow.BulkTransfer{Payload: noise(1<<20 + 1)}
	require.NoError(t, a.Bulk(b.Self()).Send(x))
	require.Equal(t, bulkOver{x, route.TooLarge, 1 << 20, nil}, want(t, a.over))
	without := start(t, newRider(), nil)
	require.NoError(t, a.Bulk(without.Self()).Send(x))
	o := want(t, a.over)
	require.Equal(t, route.PeerLost, o.reason)
	require.ErrorContains(t, o.err, "large messages")
	require.Zero(t, a.moved[x], "not a byte went")
}

// TestBulkRoomHoldsSendersBack: what a node holds is bounded; a sender that finds no room waits, and goes on when there
// is some.
func TestBulkRoomHoldsSendersBack(t *testing.T) {
	b := startBulk(t, func(c *Config) { c.MaxBulk, c.BulkRoom = 2<<20, 5<<20 })
	var senders []bulkNode
	for range 3 {
		a := startBulk(t, nil)
		senders = append(senders, a)
		for range 4 {
			require.NoError(t, a.Bulk(b.Self()).Send(&flow.BulkTransfer{Payload: noise(2 << 20)}))
		}
	}
	until(t, func() bool { return b.Stats().Bulk.Waiting == 10 })
	require.Equal(t, 4<<20, b.Stats().Bulk.Held)
	for range 12 {
		var w bulkIsWhole
		var from bulkNode
		until(t, func() bool {
			for _, a := range senders {
				select {
				case w = <-a.whole:
					from = a
					return true
				default:
				}
			}
			return false
		})
		require.LessOrEqual(t, b.Stats().Bulk.Held, 5<<20)
		require.Len(t, take(t, b, from.Transport, w.ref), 2<<20)
	}
	require.Zero(t, b.Stats().Bulk.Held)
}

// TestBulkPeersHaveShares: a peer that lets lie what it has sent keeps half of the room at most, and what lies there
// comes to its end, which is reported to its sender (SEC-4).
func TestBulkPeersHaveShares(t *testing.T) {
	b := startBulk(t, func(c *Config) { c.MaxBulk, c.BulkRoom, c.BulkStall = 1<<20, 4<<20, 500*time.Millisecond })
	greedy, other := startBulk(t, nil), startBulk(t, nil)
	for range 8 { // none of which it claims
		require.NoError(t, greedy.Bulk(b.Self()).Send(&flow.BulkTransfer{Payload: noise(1 << 20)}))
	}
	want(t, greedy.whole)
	want(t, greedy.whole)
	until(t, func() bool { return b.Stats().Bulk.Waiting > 0 })
	require.LessOrEqual(t, b.Stats().Bulk.Held, 2<<20)
	require.NoError(t, other.Bulk(b.Self()).Send(&flow.BulkTransfer{Payload: noise(1 << 20)}))
	take(t, b, other.Transport, want(t, other.whole).ref)
	require.Equal(t, route.TimedOut, want(t, greedy.over).reason)
	until(t, func() bool { return b.Stats().Bulk.Received.Unclaimed >= 2 })
}

// TestBulkCancelledMidway frees both sides, and the connection goes on.
func TestBulkCancelledMidway(t *testing.T) {
	a, b := startBulk(t, nil), startBulk(t, nil)
	x := &flow.BulkTransfer{Payload: noise(32 << 20)}
	link := a.Bulk(b.Self())
	require.NoError(t, link.Send(x))
	until(t, func() bool {
		a.bulkRider.mu.Lock()
		defer a.bulkRider.mu.Unlock()
		return a.moved[x] > 0
	})
	require.True(t, link.Cancel(x))
	require.False(t, link.Cancel(x))
	clear(x.Payload) // it is the caller's again
	until(t, func() bool { return b.Stats().Bulk.Held == 0 && b.Stats().Bulk.Received.Aborted == 1 })
	y := &flow.BulkTransfer{Payload: noise(1 << 20)}
	require.NoError(t, link.Send(y))
	w := want(t, a.whole)
	require.Equal(t, y, w.x)
	require.Equal(t, y.Payload, take(t, b, a.Transport, w.ref))
	require.Equal(t, y, want(t, a.over).x, "nothing is told of the one that was cancelled")
}

// TestBulkReceiverGoesAway: what had begun is lost and said to be, what waits goes to nobody once the peer is
// forgotten.
func TestBulkReceiverGoesAway(t *testing.T) {
	a, b := startBulk(t, nil), startBulk(t, func(c *Config) { c.MaxBulk, c.BulkRoom = 1<<20, 1<<20 })
	link := a.Bulk(b.Self())
	for range 2 * flow.MaxBulkActive {
		require.NoError(t, link.Send(&flow.BulkTransfer{Payload: noise(1 << 20)}))
	}
	want(t, a.whole) // it has no room for a second one: the others have begun and wait, or have not
	b.Close()
	for range flow.MaxBulkActive {
		require.Equal(t, route.PeerLost, want(t, a.over).reason)
	}
	until(t, func() bool { return a.Stats().Bulk.Begun == 0 })
	require.Equal(t, flow.MaxBulkActive, a.Stats().Bulk.Queued, "these may still reach it, for all that is known")
	a.Forget(b.Self())
	for range flow.MaxBulkActive {
		o := want(t, a.over)
		require.Equal(t, route.PeerLost, o.reason)
		require.ErrorIs(t, o.err, ErrForgotten)
	}
	require.ErrorIs(t, link.Send(&flow.BulkTransfer{Payload: noise(1)}), ErrForgotten)
	require.ErrorIs(t, a.Bulk(b.Self()).Send(&flow.BulkTransfer{Payload: noise(1)}), ErrForgotten)
	require.ErrorIs(t, a.Bulk(a.Self()).Send(&flow.BulkTransfer{Payload: noise(1)}), ErrSelf)
}

// TestBulkSenderGoesAway: the receiver forgets what it had of it, and a sender that waited for room gets it.
func TestBulkSenderGoesAway(t *testing.T) {
	b := startBulk(t, func(c *Config) { c.MaxBulk, c.BulkRoom = 1<<20, 1<<20 })
	gone, stays := startBulk(t, nil), startBulk(t, nil)
	require.NoError(t, gone.Bulk(b.Self()).Send(&flow.BulkTransfer{Payload: noise(1 << 20)}))
	lost := want(t, gone.whole)
	require.NoError(t, stays.Bulk(b.Self()).Send(&flow.BulkTransfer{Payload: noise(1 << 20)}))
	until(t, func() bool { return b.Stats().Bulk.Waiting == 1 })
	gone.Close()
	w := want(t, stays.whole)
	_, _, ok := b.BulkTake(gone.Self(), lost.ref)
	require.False(t, ok)
	take(t, b, stays.Transport, w.ref)
	require.Zero(t, b.Stats().Bulk.Held)
	require.Equal(t, uint64(1), b.Stats().Bulk.Received.Broken)
}

// TestBulkStalledPeer: an acceptor that answers the hello and nothing else costs its sender the stall's time, no more.
func TestBulkStalledPeer(t *testing.T) {
	a := startBulk(t, func(c *Config) { c.BulkStall = 50 * time.Millisecond })
	mute, id := muteAcceptor(t)
	defer mute.Close()
	x := &flow.BulkTransfer{Payload: noise(1 << 20)}
	require.NoError(t, a.Bulk(id).Send(x))
	o := want(t, a.over)
	require.Equal(t, []any{x, route.TimedOut}, []any{o.x, o.reason})
	require.Equal(t, uint64(1), a.Stats().Bulk.Sent.Stalled)
}

// muteAcceptor accepts every hello and says nothing more.
func muteAcceptor(t testing.TB) (net.Listener, peer.ID) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr, err := peer.ParseAddr(ln.Addr().String())
	require.NoError(t, err)
	id := peer.ID{Addr: addr, Inc: 5}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		_ = ln.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer nc.Close()
				_, body, err := readFrame(nc, hello.MaxFrame)
				if err != nil {
					return
				}
				h, err := hello.Parse(body, wire.Spoken())
				if err != nil {
					return
				}
				answer := hello.Ack{Version: wire.Version, From: id}
				_, _ = nc.Write(wire.AppendFrame(nil, wire.KindHelloAck, 0, 0, hello.AppendAck(nil, &answer, h.Versions)))
				<-ctx.Done()
			})
		}
	})
	return ln, id
}
