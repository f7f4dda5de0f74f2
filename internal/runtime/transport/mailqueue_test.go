// Tests of what goes first on a control connection.

package transport

import (
	"bytes"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// frame puts a frame of n bytes into the queue; the first byte of its body is mark.
func (q *mailQueue) frame(t *testing.T, kind wire.Kind, n int, mark byte) {
	b, err := q.reserve(kind, n)
	require.NoError(t, err)
	wire.PutHeader(b, wire.Header{Size: uint32(n), Kind: kind})
	b[wire.HeaderSize] = mark
}

// marks takes the next batch and returns the marks of its frames.
func (q *mailQueue) marks() (marks []byte) {
	b := q.next()
	for len(b) > 0 {
		size := wire.ParseHeader(b).Size
		marks = append(marks, b[wire.HeaderSize])
		b = b[size:]
	}
	return marks
}

// Segments keep their order and leave in small batches, in whole frames; everything else goes before what is left of
// them; what a peer does not know is dropped from all parts.
func TestSegmentsGoBehind(t *testing.T) {
	var q mailQueue
	q.limit(1 << 20)
	for i := range byte(5) {
		q.frame(t, wire.KindSegment, mailPiece/2, i)
	}
	q.frame(t, wire.KindHeartbeat, 24, 'h')
	require.Equal(t, 5*mailPiece/2+24, q.size())
	require.Equal(t, []byte("h"), q.marks())
	require.Equal(t, []byte{0, 1}, q.marks())
	q.frame(t, wire.KindGossip, 100, 'g')
	q.frame(t, wire.KindSegment, 2*mailPiece, 5)
	require.Equal(t, []byte("g"), q.marks())
	require.Equal(t, []byte{2, 3}, q.marks())
	require.Equal(t, []byte{4}, q.marks())
	q.frame(t, wire.KindSegment, 100, 6)
	require.Equal(t, []byte{5}, q.marks(), "larger than a piece")
	require.Equal(t, []byte{6}, q.marks())
	require.Empty(t, q.next())
	require.Zero(t, q.size())

	for i := range byte(6) {
		q.frame(t, wire.KindSegment, mailPiece/2, i)
	}
	require.Equal(t, []byte{0, 1}, q.marks())
	q.frame(t, wire.KindSegment, 100, 6)
	q.frame(t, wire.KindTaken, 100, 't')
	q.frame(t, wire.KindHeartbeat, 24, 'h')
	require.Equal(t, 1, q.keep(func(k wire.Kind) bool { return k != wire.KindTaken }))
	require.Equal(t, []byte("h"), q.marks())
	require.Equal(t, []byte{2, 3}, q.marks())
	require.Equal(t, []byte{4, 5}, q.marks())
	require.Equal(t, []byte{6}, q.marks())
	q.frame(t, wire.KindSegment, 100, 7)
	q.drop()
	require.Zero(t, q.size()+q.held())
}

// A peer that reads nothing has its socket full of segments. A heartbeat that is sent then is not the last thing that
// it reads later: only what the system had taken comes before (FD-1).
func TestHeartbeatsGoBeforeSegments(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system takes what it likes")
	}
	const segments, size = 256, 32 << 10
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	self := peer.ID{Addr: peer.MustAddr(ln.Addr().String()), Inc: 9}
	tr := start(t, newRider(), nil)
	require.NoError(t, tr.Send(peer.Mail{To: self, Kind: wire.KindStatus}))
	nc := acceptRaw(t, ln, self)
	for range segments {
		require.NoError(t, tr.Send(peer.Mail{To: self, Kind: wire.KindSegment, Body: bytes.Repeat([]byte{1}, size)}))
	}
	c := tr.controlTo(t, self)
	until(t, func() bool { return isParked(t, &c.uplink) })
	require.NoError(t, tr.Send(peer.Mail{To: self, Kind: wire.KindHeartbeat,
		Body: wire.AppendHeartbeat(nil, wire.Heartbeat{Seq: 7})}))
	require.NoError(t, nc.SetReadDeadline(time.Now().Add(patience)))
	before, after, seen := 0, 0, false
	for before+after < segments {
		kind, _, err := readFrame(nc, wire.MaxControlFrame)
		require.NoError(t, err)
		switch {
		case kind == wire.KindHeartbeat:
			seen = true
		case kind == wire.KindSegment && seen:
			after++
		case kind == wire.KindSegment:
			before++
		}
	}
	require.True(t, seen)
	require.Greater(t, after, segments/2, "%d of %d segments came first", before, segments)
}

// controlTo returns the control uplink to a peer.
func (t *Transport) controlTo(tb testing.TB, id peer.ID) *control {
	r, err := t.remote(id)
	require.NoError(tb, err)
	return r.control()
}
