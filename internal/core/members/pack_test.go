// Tests of the packing of states: gzip, bombs, sizes (GOS-8, CARD-3).

package members

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/wire"
)

// TestGzip pins CARD-3.
func TestGzip(t *testing.T) {
	c := coder{above: 1024}
	plain := payload(bigState(300))
	flags, zipped := c.pack(plain)
	require.Equal(t, byte(flagGzip), flags)
	require.Less(t, len(zipped), len(plain)*3/4)
	t.Logf("300 members: %d bytes, %d packed", len(plain), len(zipped))
	for range 2 { // the second use runs on the kept halves
		back, err := c.unpack(wire.KindGossip, flags, zipped)
		require.NoError(t, err)
		require.Equal(t, plain, back)
		_, again := (&coder{above: 1024}).pack(plain)
		require.Equal(t, zipped, again, "the same bytes each time")
	}
	without, ok := Packed{flags, zipped}.Plain(wire.KindGossip)
	require.True(t, ok)
	require.Equal(t, Packed{0, plain}, without)
	_, ok = without.Plain(wire.KindGossip)
	require.False(t, ok, "nothing to unpack")

	flags, zipped = c.pack(plain[:500])
	require.Zero(t, flags)
	require.Equal(t, plain[:500], zipped, "below the size where it pays")
	noise := make([]byte, 4096)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	flags, _ = c.pack(noise)
	require.Zero(t, flags, "what does not shrink is sent as it is")

	_, zipped = c.pack(plain)
	for n := range len(zipped) {
		if _, err := c.unpack(wire.KindGossip, flagGzip, zipped[:n]); err == nil {
			require.Fail(t, "truncated gzip accepted", n)
		}
	}
}

func TestGzipBomb(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(make([]byte, 64<<20))
	require.NoError(t, w.Close())
	var c coder
	for announced, want := range map[uint64]error{
		64 << 20: wire.ErrTooLarge, // over the limit of a control frame
		1 << 40:  wire.ErrTooLarge,
		1000:     wire.ErrTrailing, // more comes out than was announced
	} {
		_, err := c.unpack(wire.KindGossip, flagGzip, append(wire.AppendUvarint(nil, announced), b.Bytes()...))
		require.ErrorIs(t, err, want)
		require.LessOrEqual(t, cap(c.raw), 1<<20)
	}
	_, err := c.unpack(wire.KindGossip, flagGzip, append(wire.AppendUvarint(nil, 8<<20), b.Bytes()[:100]...))
	require.ErrorIs(t, err, wire.ErrTooLarge, "100 bytes cannot expand to 8 MiB")
	require.LessOrEqual(t, cap(c.raw), 1<<20)
	_, err = c.unpack(wire.KindGossip, flagGzip, append(wire.AppendUvarint(nil, 10), "no gzip at all"...))
	require.ErrorIs(t, err, wire.ErrBadValue)
}

// The full state of 1,000 members fits into 14 kB, of which 8 kB are incarnations that nothing can compress; the
// ancestor takes 21 kB (GOS-8).
func TestStateSizes(t *testing.T) {
	for name, s := range map[string]*State{"3 clock entries": crowd(1000, 0, 3), "full clock": crowd(1000, 0, 1000)} {
		c := coder{above: 1024}
		body := gossip.AppendSeen(make([]byte, 24), s.Seen) // behind incarnation, cluster and digest
		body = AppendPacked(body, c.packOf(s.Version))
		t.Logf("1,000 members, %s: %d bytes, plain %d", name, len(body), len(s.canonical()))
		require.LessOrEqual(t, len(body), 14_000, name)
	}
}

// FuzzUnpack: packed versions, bombs among them. What is accepted is as long as it says and packs into what reads back
// the same; what is allocated is bounded by what the bytes can expand to, and by the largest frame.
func FuzzUnpack(f *testing.F) {
	c := coder{}
	for _, plain := range [][]byte{payload(sample()), payload(bigState(30)), make([]byte, 1<<20), nil} {
		_, b := c.pack(plain)
		f.Add(bytes.Clone(b))
		f.Add(bytes.Clone(b[:len(b)/2]))
	}
	f.Add(append(wire.AppendUvarint(nil, maxStateSize), 0x1f, 0x8b, 8))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := wire.NewReader(wire.KindGossip, b)
		if p := ReadPacked(&r); r.Done() == nil {
			require.Equal(t, b, AppendPacked(nil, p))
		}
		c := coder{}
		plain, err := c.unpack(wire.KindGossip, flagGzip, b)
		if bound := min(len(b)*gzipRatio, maxStateSize); cap(c.raw) > 2*bound+4096 {
			t.Fatalf("%d bytes for %d", cap(c.raw), len(b))
		}
		if err != nil {
			require.Nil(t, c.raw, "what could not be unpacked leaves nothing")
			return
		}
		flags, again := (&coder{}).pack(plain)
		back, err := c.unpack(wire.KindGossip, flags, bytes.Clone(again))
		require.NoError(t, err)
		require.Equal(t, len(plain), len(back))
	})
}
