// Tests of what becomes of frames that are given up: one of each kind.

package plane

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// The one that waits for a frame that goes nowhere is notified, by what the frame was (SHD-9).
func TestGiveUp(t *testing.T) {
	frame := func(flags uint8) []byte {
		b := make([]byte, wire.SizeEnvelope(1, 1))
		wire.PutEnvelope(b, &wire.Envelope{Type: 1, Shard: 2, Corr: 7, Flags: flags, Payload: []byte("p")}, "a")
		return b
	}
	reply := make([]byte, wire.ReplySize)
	wire.PutReply(reply, uint16(route.OK), 7, nil)
	marker, at := wire.BeginFrame(nil, wire.KindMarker, 0, 0)
	wire.EndFrame(wire.AppendMarker(marker, wire.Marker{}), at)
	for _, c := range []struct {
		frame []byte
		want  Unsent
	}{
		{frame(0), UnsentTell}, {frame(wire.FlagParked), UnsentTell}, {frame(wire.FlagAsk), UnsentAsk},
		{frame(wire.FlagBulk), UnsentLarge}, {frame(wire.FlagBulk | wire.FlagAsk), UnsentLarge},
		{reply, UnsentReply}, {marker, UnsentOther},
	} {
		var e wire.Envelope
		require.Equal(t, c.want, ClassifyUnsent(c.frame, &e))
		if c.want >= UnsentLarge {
			require.Equal(t, "a", string(e.ID))
		}
	}
	require.Equal(t, route.Abandoned, WhyUnsent(true))
	require.Equal(t, route.PeerLost, WhyUnsent(false))
}
