// Fuzz targets of what the codec tests do not reach: packed versions, and versions of the application.

package membership

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/wire"
)

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
