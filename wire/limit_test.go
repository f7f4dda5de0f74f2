// Tests of limits: what is left on the wire, what a clock makes of it, and what older peers are sent.

package wire

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// limitIn returns the limit of a frame.
func limitIn(t require.TestingT, frame []byte) uint32 {
	var e Envelope
	require.NoError(t, ParseEnvelope(frame, &e))
	require.NotZero(t, e.Flags&FlagLimit)
	return e.Limit
}

// What waits at both ends counts, the time on the way does not: the moment at the receiver is as far ahead of the
// arrival as the sender's was of the departure, whatever the clocks show, also when they wrap.
func TestLimitTravelsAsWhatIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, there := rapid.Uint32().Draw(t, "now"), rapid.Uint32().Draw(t, "there")
		left := rapid.Int32Range(-1000, MaxLimit).Draw(t, "left")
		f := put(&Envelope{Flags: FlagAsk | FlagLimit, Limit: now + uint32(left), Payload: []byte("p")}, "e")
		tell := put(&Envelope{Flags: FlagHeaders, Headers: []byte("h"), Payload: []byte("p")}, "e")
		frames := slices.Concat(tell, f, tell, putReply(0, 1, []byte("r")), f)
		out := Depart(frames, now, Version)
		require.Len(t, out, len(frames))
		require.Equal(t, tell, out[:len(tell)])
		last := out[len(out)-len(f):]
		require.EqualValues(t, max(left, 0), limitIn(t, last))
		Arrive(last, there)
		if left <= 0 {
			left = -1 // over, also at a clock that is rounded down
		}
		require.EqualValues(t, left, Left(limitIn(t, last), there))
	})
}

// A peer may say anything: what it says is bounded, and a frame that does not parse is left alone.
func TestArriveOfNonsense(t *testing.T) {
	f := put(&Envelope{Flags: FlagAsk | FlagLimit, Limit: 1<<32 - 1}, "e")
	Arrive(f, 7)
	require.EqualValues(t, MaxLimit, Left(limitIn(t, f), 7))
	for _, cut := range []int{0, 7, 8, EnvelopeSize - 1, EnvelopeSize, EnvelopeSize + 1, EnvelopeSize + 4} {
		was := slices.Clone(f[:cut])
		Arrive(f[:cut:cut], 9)
		require.Equal(t, was, f[:cut])
	}
	reply := putReply(0, 1<<63, []byte("reply"))
	reply[5] = FlagLimit
	was := slices.Clone(reply)
	Arrive(reply, 9)
	require.Equal(t, was, reply)
}

// A peer that speaks an older version is sent neither limits nor headers, and everything else, in order.
func TestOlderPeersAreSentNoMore(t *testing.T) {
	e := Envelope{Flags: FlagAsk | FlagParked, Type: 1, Shard: 2, Term: 3, Epoch: 4, Corr: 5, Payload: []byte("pay")}
	plain := put(&e, "entity")
	e.Flags |= FlagLimit | FlagHeaders
	e.Limit, e.Headers = 6, []byte("trace")
	more := put(&e, "entity")
	reply := putReply(0, 1, []byte("r"))
	for version := uint16(1); version < 4; version++ {
		got := Depart(slices.Concat(plain, more, reply, more), 1, version)
		require.Equal(t, slices.Concat(plain, plain, reply, plain), got)
	}
	require.Len(t, Depart(slices.Clone(more), 1, 0), len(more), "not known yet: ours")
}
