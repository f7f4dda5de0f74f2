// Tests of bad input on bulk connections: each is closed with a counted fault and hurts nobody beside it.

package transport

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// strangeBulk opens a bulk connection by hand.
func strangeBulk(t testing.TB, to *Transport, generation uint32) net.Conn {
	nc, err := net.Dial("tcp", to.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
	h := hello.Hello{Versions: wire.Spoken(), Lane: wire.LaneBulk, Generation: generation, Name: "test",
		From: peer.ID{Addr: peer.MustAddr("127.0.0.1:9"), Inc: 9}, To: to.Addr()}
	_, err = nc.Write(wire.AppendFrame(nil, wire.KindHello, 0, 0, hello.Append(nil, &h)))
	require.NoError(t, err)
	kind, _, err := readFrame(nc, hello.MaxAnswer)
	require.NoError(t, err)
	require.Equal(t, wire.KindHelloAck, kind)
	return nc
}

func bulkFrame(k wire.Kind, body []byte) []byte { return wire.AppendFrame(nil, k, 0, 0, body) }

func bulkBegin(number, size uint32) []byte {
	return bulkFrame(wire.KindBulkBegin, wire.AppendBulkBegin(nil, &wire.BulkBegin{Number: number, Size: size}))
}

// TestBulkGarbage says everything that no honest sender says.
func TestBulkGarbage(t *testing.T) {
	join := func(frames ...[]byte) (b []byte) {
		for _, f := range frames {
			b = append(b, f...)
		}
		return b
	}
	begins := func(n uint32) (b []byte) {
		for i := range n {
			b = append(b, bulkBegin(i+1, 1<<20)...)
		}
		return b
	}
	for name, say := range map[string][]byte{
		"no frame":                   []byte("GET / HTTP/1.1\r\n\r\n"),
		"another lane's frame":       bulkFrame(wire.KindMarker, make([]byte, 16)),
		"an answer":                  bulkFrame(wire.KindBulkWhole, wire.AppendBulkNumber(nil, 1)),
		"a frame over the limit":     {255, 255, 255, 15, byte(wire.KindBulkChunk), 0, 0, 0},
		"a begin with a tail":        bulkFrame(wire.KindBulkBegin, make([]byte, 34)),
		"a begin that is cut":        bulkFrame(wire.KindBulkBegin, make([]byte, 20)),
		"a size of nothing":          bulkBegin(1, 0),
		"a size over all bounds":     bulkBegin(1, wire.MaxBulkSize+1),
		"a number that is not next":  bulkBegin(2, 100),
		"the same number again":      join(bulkBegin(1, 100), bulkBegin(1, 100)),
		"too many at a time":         begins(flow.MaxBulkActive + 1),
		"a chunk of nothing begun":   wire.AppendBulkChunk(nil, 1, []byte{1}),
		"an empty chunk":             join(bulkBegin(1, 100), wire.AppendBulkChunk(nil, 1, nil)),
		"a chunk without a number":   join(bulkBegin(1, 100), bulkFrame(wire.KindBulkChunk, []byte{1})),
		"more than there is":         join(bulkBegin(1, 100), wire.AppendBulkChunk(nil, 1, make([]byte, 101))),
		"more than was granted":      join(bulkBegin(1, 8<<20), wire.AppendBulkChunk(nil, 1, make([]byte, 200<<10))),
		"an end of what never began": bulkFrame(wire.KindBulkAbort, wire.AppendBulkNumber(nil, 1)),
		"an end of number zero":      bulkFrame(wire.KindBulkAbort, wire.AppendBulkNumber(nil, 0)),
		"a chunk, and nonsense behind": join(bulkBegin(1, 100),
			wire.AppendBulkChunk(nil, 1, make([]byte, 50)), make([]byte, 8)),
	} {
		t.Run(name, func(t *testing.T) {
			b := startBulk(t, func(c *Config) { c.BulkWindow = 100 << 10 })
			nc := strangeBulk(t, b.Transport, 1)
			_, err := nc.Write(say)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, nc) // until it is closed
			until(t, func() bool { return b.Stats().Bulk.In == 0 && b.Stats().FaultsFrames == 1 })
			require.Zero(t, b.Stats().Bulk.Held)
			require.Zero(t, b.Stats().Bulk.Waiting)
		})
	}
}

// TestBulkNewerConnectionReplacesOlder: one connection of a peer is read at a time, and an older one never again.
func TestBulkNewerConnectionReplacesOlder(t *testing.T) {
	b := startBulk(t, nil)
	old := strangeBulk(t, b.Transport, 3)
	_, err := old.Write(bulkBegin(1, 100))
	require.NoError(t, err)
	want(t, b.begun)
	until(t, func() bool { return b.Stats().Bulk.Held == 100 })
	strangeBulk(t, b.Transport, 4)
	_, _ = io.Copy(io.Discard, old)
	require.Equal(t, []int{1, 0}, []int{b.Stats().Bulk.In, b.Stats().Bulk.Held})
	nc, err := net.Dial("tcp", b.Addr().String())
	require.NoError(t, err)
	defer nc.Close()
	h := hello.Hello{Versions: wire.Spoken(), Lane: wire.LaneBulk, Generation: 4, Name: "test",
		From: peer.ID{Addr: peer.MustAddr("127.0.0.1:9"), Inc: 9}, To: b.Addr()}
	_, err = nc.Write(wire.AppendFrame(nil, wire.KindHello, 0, 0, hello.Append(nil, &h)))
	require.NoError(t, err)
	kind, body, err := readFrame(nc, hello.MaxAnswer)
	require.NoError(t, err)
	require.Equal(t, wire.KindHelloRefuse, kind)
	refusal, err := hello.ParseRefusal(body)
	require.NoError(t, err)
	require.Equal(t, hello.RefusedStale, refusal.Reason)
}
