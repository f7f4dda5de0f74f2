// Tests of addresses and identities: what parses to what, the order's laws, one encoding per value.

package peer

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/wire"
)

// TestParseAddr holds what text becomes which address, and that its print reads back (MEM-1).
func TestParseAddr(t *testing.T) {
	label := strings.Repeat("a", MaxHostSize)
	for text, want := range map[string]string{
		"127.0.0.1:7355": "127.0.0.1:7355", "10.0.0.1:1": "10.0.0.1:1", "10.0.0.1:65535": "10.0.0.1:65535",
		"[::1]:80": "[::1]:80", "[2001:DB8:0:0::1]:80": "[2001:db8::1]:80", "[fe80::1%eth0]:80": "[fe80::1%eth0]:80",
		"[::ffff:10.0.0.1]:80": "10.0.0.1:80", "[10.0.0.1]:80": "10.0.0.1:80",
		"Node-1.Example.COM:80": "node-1.example.com:80", "node_1.local.:80": "node_1.local:80",
		"localhost:08080": "localhost:8080", label + ":1": label + ":1", "10.0.0.1.:80": "10.0.0.1:80",
		"1.2.3:4": "1.2.3:4",
	} {
		a, err := ParseAddr(text)
		require.NoError(t, err, text)
		require.Equal(t, want, a.String(), text)
		require.Equal(t, a, MustAddr(a.String()), text)
		require.False(t, a.IsZero())
		again, err := MakeAddr(a.Host(), a.Port())
		require.NoError(t, err)
		require.Equal(t, a, again)
	}
}

// TestParseAddrRefuses holds what is no address, each with ErrBadAddr.
func TestParseAddrRefuses(t *testing.T) {
	for _, text := range []string{
		"", ":", "host", "host:", ":80", "host:0", "host:65536", "host:-1", "host:+1", "host:http", "host:8 0",
		"::1:80", "::1", "[::1]", "[::1:80", "fe80::1%eth0:80", "ho st:80", "host/:80", "käse:80", "a..b:80", ".a:80",
		"a..:80", ".:80", "[]:80", "[fe80::1%a/b]:80", "[fe80::1%" + strings.Repeat("z", MaxZoneSize+1) + "]:80",
		strings.Repeat("a", MaxHostSize+1) + ":80", "a\x00b:80", "[::1]]:80", "host:80:",
	} {
		a, err := ParseAddr(text)
		require.ErrorIs(t, err, ErrBadAddr, "%q", text)
		require.True(t, a.IsZero(), "%q", text)
		require.Panics(t, func() { MustAddr(text) })
	}
}

// ordered is a list of identities in their order: IPv4 before IPv6 before names, numerically, then by port as a number,
// then by incarnation. Members are sorted by it, so it may never change. No address orders as the first name.
var ordered = []ID{
	{MustAddr("2.0.0.1:9"), 5}, {MustAddr("2.0.0.1:80"), 0}, {MustAddr("2.0.0.1:80"), 1},
	{MustAddr("2.0.0.1:80"), 1 << 63}, {MustAddr("2.0.0.1:100"), 2}, {MustAddr("2.0.0.1:1000"), 1},
	{MustAddr("10.0.0.1:1"), 1}, {MustAddr("10.0.0.2:1"), 1}, {MustAddr("10.0.0.10:1"), 1},
	{MustAddr("[::1]:1"), 1}, {MustAddr("[fe80::1]:1"), 1}, {MustAddr("[fe80::1%a]:1"), 1},
	{MustAddr("[fe80::1%b]:1"), 1}, {}, {MustAddr("a:1"), 1}, {MustAddr("a:2"), 1}, {MustAddr("a-b:1"), 1},
	{MustAddr("b:1"), 1}, {MustAddr("b:2"), 0},
}

// TestOrderFrozen compares each with each.
func TestOrderFrozen(t *testing.T) {
	for i, a := range ordered {
		for j, b := range ordered {
			require.Equal(t, cmp.Compare(i, j), a.Compare(b), "%s against %s", a, b)
		}
	}
}

func genAddr() *rapid.Generator[Addr] {
	return rapid.Custom(func(t *rapid.T) Addr {
		port := uint16(rapid.IntRange(1, 3).Draw(t, "port"))
		var host string
		switch rapid.IntRange(0, 3).Draw(t, "form") {
		case 0:
			return Addr{}
		case 1:
			host = netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.ByteRange(0, 2), 4, 4).Draw(t, "v4"))).String()
		case 2:
			host = netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.ByteRange(0, 1), 16, 16).Draw(t, "v6"))).String()
			host += rapid.SampledFrom([]string{"", "%a", "%eth0"}).Draw(t, "zone")
		default:
			host = rapid.StringMatching(`[a-z0-9_-]{1,4}(\.[a-z0-9]{1,3}){0,2}`).Draw(t, "name")
		}
		a, err := MakeAddr(host, port)
		require.NoError(t, err, host)
		return a
	})
}

func genID() *rapid.Generator[ID] {
	return rapid.Custom(func(t *rapid.T) ID {
		a := genAddr().Draw(t, "addr")
		if a.IsZero() {
			return ID{}
		}
		return ID{a, rapid.OneOf(rapid.Uint64Range(0, 2), rapid.Uint64()).Draw(t, "inc")}
	})
}

// TestOrderLaws holds that the order is total: antisymmetric, transitive, and equal only for the same identity.
func TestOrderLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := genID().Draw(t, "a"), genID().Draw(t, "b"), genID().Draw(t, "c")
		require.Equal(t, -a.Compare(b), b.Compare(a))
		require.Equal(t, a == b, a.Compare(b) == 0)
		require.Equal(t, a.Compare(b) < 0, a.Less(b))
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 {
			require.LessOrEqual(t, a.Compare(c), 0)
		}
		if a.Addr != b.Addr {
			require.Equal(t, a.Addr.Compare(b.Addr), a.Compare(b), "the address decides first")
		} else {
			require.Equal(t, cmp.Compare(a.Inc, b.Inc), a.Compare(b))
		}
	})
}

// TestIDRoundTrip is the law of the encoding, and of the text form.
func TestIDRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := genID().Draw(t, "id")
		b := AppendID([]byte{7}, id)[1:]
		require.GreaterOrEqual(t, len(b), MinIDSize)
		r := wire.NewReader(wire.KindJoin, b)
		require.Equal(t, id, ReadID(&r))
		require.NoError(t, r.Done())
		if !id.IsZero() {
			require.Equal(t, id.Addr, MustAddr(id.Addr.String()))
		}
		for cut := range b {
			r := wire.NewReader(wire.KindJoin, b[:cut:cut])
			require.True(t, ReadID(&r).IsZero())
			require.ErrorIs(t, r.Done(), wire.ErrTruncated, "cut at %d", cut)
		}
	})
}

// goldenIDs freezes the bytes of every form of identity.
var goldenIDs = map[string]string{
	"":                  "00" + "0000000000000000",
	"127.0.0.1:7355":    "04" + "7f000001" + "bb1c" + "0807060504030201",
	"[2001:db8::1]:80":  "06" + "20010db8000000000000000000000001" + "00" + "5000" + "0807060504030201",
	"[fe80::1%eth0]:80": "06" + "fe800000000000000000000000000001" + "0465746830" + "5000" + "0807060504030201",
	"node-1:443":        "01" + "066e6f64652d31" + "bb01" + "0807060504030201",
}

// TestIDGolden holds the bytes.
func TestIDGolden(t *testing.T) {
	for text, want := range goldenIDs {
		id := ID{}
		if text != "" {
			id = ID{MustAddr(text), 0x0102030405060708}
		}
		require.Equal(t, want, hex.EncodeToString(AppendID(nil, id)), text)
	}
}

// TestReadIDRefuses holds that only what AppendID writes is read: no second encoding of one place.
func TestReadIDRefuses(t *testing.T) {
	inc := "0807060504030201"
	for name, text := range map[string]string{
		"unknown form":             "05" + "7f000001" + "bb1c" + inc,
		"port zero":                "04" + "7f000001" + "0000" + inc,
		"incarnation of nowhere":   "00" + inc,
		"IPv4 as IPv6":             "06" + "00000000000000000000ffff7f000001" + "00" + "5000" + inc,
		"zone with a slash":        "06" + "fe800000000000000000000000000001" + "012f" + "5000" + inc,
		"upper case name":          "01" + "0141" + "bb01" + inc,
		"empty name":               "01" + "00" + "bb01" + inc,
		"IP as name":               "01" + "07" + hex.EncodeToString([]byte("1.2.3.4")) + "bb01" + inc,
		"name that ends in a dot":  "01" + "02" + "612e" + "bb01" + inc,
		"name with a control byte": "01" + "02" + "6107" + "bb01" + inc,
		"name of 254 bytes":        "01" + "fe01" + strings.Repeat("61", 254) + "bb01" + inc,
		"zone of 65 bytes": "06" + "fe800000000000000000000000000001" + "41" + strings.Repeat("61", 65) + "5000" +
			inc,
	} {
		body, err := hex.DecodeString(text)
		require.NoError(t, err, name)
		r := wire.NewReader(wire.KindJoin, body)
		require.Equal(t, ID{}, ReadID(&r), name)
		require.Error(t, r.Done(), name)
		require.NotErrorIs(t, r.Err(), wire.ErrTrailing, name)
		require.NotErrorIs(t, r.Err(), wire.ErrTruncated, name)
	}
}

// TestIsLoopback holds which listen addresses need no protection.
func TestIsLoopback(t *testing.T) {
	for text, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true, "LocalHost:1": true,
		"[::ffff:127.0.0.1]:1": true, "10.0.0.1:1": false, "0.0.0.0:1": false, "localhost.evil.example:1": false,
	} {
		require.Equal(t, want, MustAddr(text).IsLoopback(), text)
	}
}

// TestIDStrings holds the printed forms.
func TestIDStrings(t *testing.T) {
	require.Equal(t, "-#0", ID{}.String())
	require.Equal(t, "-", Addr{}.String())
	require.Equal(t, "10.0.0.1:80#ff", fmt.Sprint(ID{MustAddr("10.0.0.1:80"), 255}))
}

// FuzzReadID feeds garbage: no panic; what is accepted encodes to the same bytes, and its text reads back.
func FuzzReadID(f *testing.F) {
	for _, golden := range goldenIDs {
		b, _ := hex.DecodeString(golden)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(b)) }()
		r := wire.NewReader(wire.KindJoin, b)
		id := ReadID(&r)
		if r.Done() != nil {
			return
		}
		require.Equal(t, b, AppendID(nil, id))
		if !id.IsZero() {
			require.Equal(t, id.Addr, MustAddr(id.Addr.String()))
		}
	})
}

// FuzzParseAddr feeds text: no panic; what is accepted prints to text that parses to the same address.
func FuzzParseAddr(f *testing.F) {
	for _, text := range []string{"127.0.0.1:7355", "[fe80::1%eth0]:80", "node-1.example.:443", "[::ffff:1.2.3.4]:1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(text)) }()
		a, err := ParseAddr(text)
		if err != nil {
			require.ErrorIs(t, err, ErrBadAddr)
			return
		}
		require.Equal(t, a, MustAddr(a.String()))
		r := wire.NewReader(wire.KindJoin, AppendAddr(nil, a))
		require.Equal(t, a, ReadAddr(&r))
		require.NoError(t, r.Done())
	})
}
