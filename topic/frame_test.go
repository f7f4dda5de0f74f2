// Tests of frames and of the numbers in them.

package topic

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/peer"
)

var sender = kith.ID{Addr: peer.MustAddr("10.0.0.1:7355"), Inc: 0x0807060504030201}

// A frame's bytes do not change: nodes of two builds speak of topics (compatibility).
func TestFrameBytes(t *testing.T) {
	sent := frame{0x1122334455667788, 5, "px", sender, []byte{0xaa, 0xbb}}
	b := appendFrame(nil, &sent)
	require.Equal(t, "01"+"8877665544332211"+"0500000000000000"+"027078"+"040a000001bb1c"+"0102030405060708"+"aabb",
		hex.EncodeToString(b))
	f, err := parseFrame(b)
	require.NoError(t, err)
	require.Equal(t, sent, f)
	for n := range len(b) - 2 {
		_, err := parseFrame(b[:n])
		require.ErrorIs(t, err, errFrame, n)
	}
	b[0] = 2
	_, err = parseFrame(b)
	require.ErrorContains(t, err, "format 2")
	far := kith.ID{Addr: peer.MustAddr(strings.Repeat("h", 253) + ":65535"), Inc: 1}
	require.LessOrEqual(t, len(appendFrame(nil, &frame{name: strings.Repeat("a", MaxName), from: far})), overhead)
}

func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, &frame{1, 2, "px", sender, []byte{1}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseFrame(b)
		if err != nil {
			require.ErrorIs(t, err, errFrame)
			return
		}
		again := appendFrame(nil, &m)
		if len(again) == len(b) { // a length may be written longer than it has to be
			require.Equal(t, b, again)
		}
	})
}

// A subscriber learns how many were lost on the way since it began; what comes late is dropped (REP-2).
func TestStream(t *testing.T) {
	s := stream{}
	for _, step := range []struct{ number, n, missed, since uint64 }{
		{3, 1, 2, 0}, {4, 2, 0, 1}, {7, 5, 2, 2}, {8, 7, 0, 5},
	} {
		missed, since, ok := s.next(step.number, step.n)
		require.True(t, ok)
		require.Equal(t, step.missed, missed, step)
		require.Equal(t, step.since, since, step)
	}
	for _, late := range []uint64{8, 6, 1} { // counted as missed when a later one came, or here twice
		_, _, ok := s.next(late, 8)
		require.False(t, ok)
	}
	_, since, _ := s.next(9, 9)
	require.EqualValues(t, 7, since, "what was late changes nothing")
}
