// Tests of the splitter: frames cut at every byte come out whole and in order.

package transport

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/wire"
)

// feed gives b to s as one read and returns the frames that came out.
func feed(s *splitter, b []byte) (out []byte, err error) {
	frame, rest, err := s.straddle(b)
	out = append(out, frame...)
	if err != nil || len(rest) == 0 {
		return out, err
	}
	n, _, _, err := s.whole(rest)
	out = append(out, rest[:n]...)
	if err == nil {
		err = s.keep(rest[n:])
	}
	return out, err
}

func exampleFrames() []byte {
	b := wire.AppendEnvelope(nil, &wire.Envelope{ID: []byte("a"), Payload: []byte("one")})
	b = wire.AppendFrame(b, wire.KindMarker, 0, 0, wire.AppendMarker(nil, wire.Marker{Type: 1}))
	return wire.AppendEnvelope(b, &wire.Envelope{ID: []byte("b"), Payload: bytes.Repeat([]byte("x"), 50)})
}

func TestSplitAtEveryByte(t *testing.T) {
	all := exampleFrames()
	for i := range all {
		for j := i; j <= len(all); j++ {
			s := splitter{lane: wire.LaneData, limit: 4096}
			var got []byte
			for _, part := range [][]byte{all[:i], all[i:j], all[j:]} {
				out, err := feed(&s, part)
				require.NoError(t, err)
				got = append(got, out...)
			}
			require.Equal(t, all, got)
			require.Empty(t, s.carry)
		}
	}
}

// A header that claims a large frame does not make the splitter allocate it.
func TestSplitBuffersWhatArrived(t *testing.T) {
	s := splitter{lane: wire.LaneData, limit: 1 << 28}
	head := make([]byte, wire.HeaderSize)
	wire.PutHeader(head, wire.Header{Size: 1 << 28, Kind: wire.KindEnvelope})
	_, err := feed(&s, head)
	require.NoError(t, err)
	_, err = feed(&s, make([]byte, 1000))
	require.NoError(t, err)
	require.Less(t, cap(s.carry), 8192)
}

func FuzzSplitter(f *testing.F) {
	f.Add(exampleFrames(), uint8(3))
	f.Add([]byte{8, 0, 0, 0, byte(wire.KindMarker), 0, 0, 0, 1}, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		one := splitter{lane: wire.LaneData, limit: 1 << 16}
		want, wantErr := feed(&one, b)
		cut := splitter{lane: wire.LaneData, limit: 1 << 16}
		var got []byte
		var err error
		for rest := b; len(rest) > 0 && err == nil; {
			n := min(int(step)+1, len(rest))
			var out []byte
			out, err = feed(&cut, rest[:n])
			got = append(got, out...)
			rest = rest[n:]
		}
		require.Equal(t, want, got)
		require.Equal(t, wantErr, err)
	})
}
