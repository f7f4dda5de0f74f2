// Tests of addresses written by their difference: golden bytes, round trip, what is refused.

package peer

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/wire"
)

// Neighbours take a byte or two (GOS-8).
func TestAddrAfterGolden(t *testing.T) {
	prev := Addr{}
	for _, c := range []struct{ text, want string }{
		{"10.0.0.1:7355", "01040a000001bb1c"}, {"10.0.0.2:7355", "04"}, {"10.0.0.2:7356", "06"},
		{"10.0.0.1:7355", "01040a000001bb1c"}, {"10.0.1.1:7355", "8008"},
		{"[::1]:80", "010600000000000000000000000000000001005000"},
		{"[::1]:90", "2a"}, {"a:90", "010101615a00"}, {"a:91", "06"}, {"b:91", "010101625b00"},
	} {
		a := MustAddr(c.text)
		b := AppendAddrAfter(nil, prev, a)
		require.Equal(t, c.want, hex.EncodeToString(b), c.text)
		for cut := range b {
			r := wire.NewReader(wire.KindGossip, b[:cut])
			require.True(t, ReadAddrAfter(&r, prev).IsZero())
			require.ErrorIs(t, r.Err(), wire.ErrTruncated)
		}
		prev = a
	}
}

func TestAddrAfterRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prev, a := genAddr().Draw(t, "prev"), genAddr().Draw(t, "a")
		b := AppendAddrAfter(nil, prev, a)
		r := wire.NewReader(wire.KindGossip, b)
		require.Equal(t, a, ReadAddrAfter(&r, prev))
		require.NoError(t, r.Done())
	})
}

func TestAddrAfterRefuses(t *testing.T) {
	v4, v6 := MustAddr("255.255.255.255:65535"), MustAddr("[::1]:65535")
	for _, c := range []struct {
		prev Addr
		v    uint64
	}{
		{Addr{}, 4}, {v4, 4}, {v6, 4}, {Addr{}, 6}, {v4, 6}, {v4, 3}, {v4, 5}, {v4, 1<<63 | 0}, {v6, 1<<63 | 2},
	} {
		r := wire.NewReader(wire.KindGossip, wire.AppendUvarint(nil, c.v))
		require.True(t, ReadAddrAfter(&r, c.prev).IsZero())
		require.ErrorIs(t, r.Err(), wire.ErrBadValue, "%v %d", c.prev, c.v)
	}
}

func FuzzAddrAfter(f *testing.F) {
	f.Add([]byte{4})
	f.Add([]byte{1, 4, 10, 0, 0, 1, 0xbb, 0x1c})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, prev := range []Addr{{}, MustAddr("10.0.0.1:7355"), MustAddr("a:1")} {
			r := wire.NewReader(wire.KindGossip, b)
			a := ReadAddrAfter(&r, prev)
			if r.Err() != nil {
				continue
			}
			again := wire.NewReader(wire.KindGossip, AppendAddrAfter(nil, prev, a))
			require.Equal(t, a, ReadAddrAfter(&again, prev))
		}
	})
}
