// Tests of the codec: there and back, what is refused, and a typed handler with it.

package protobuf_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/codec/protobuf"
	"github.com/kith-io/kith/sim"
)

var (
	text = protobuf.Codec[wrapperspb.StringValue]()
	span = protobuf.Codec[durationpb.Duration]()
)

// What was encoded is read back, behind what was there, and replaces what the value held.
func TestCodec(t *testing.T) {
	b, err := span.Append([]byte("head"), &durationpb.Duration{Seconds: 7})
	require.NoError(t, err)
	require.Equal(t, "head", string(b[:4]))
	got := durationpb.Duration{Nanos: 9}
	require.NoError(t, span.ParseInto(b[4:], &got))
	require.Equal(t, int64(7), got.GetSeconds())
	require.Zero(t, got.GetNanos())
	_, err = text.Append(nil, &wrapperspb.StringValue{Value: "\xff"})
	require.Error(t, err, "no UTF-8")
	require.Error(t, span.ParseInto([]byte{0xff}, &got))
}

// lengths answers with a duration of as many seconds as the text has bytes.
type lengths struct{}

func (lengths) length(_ *kith.Context, m *wrapperspb.StringValue) (durationpb.Duration, error) {
	return durationpb.Duration{Seconds: int64(len(m.GetValue()))}, nil
}

func (lengths) Stop(*kith.Context) {}

func TestMessage(t *testing.T) {
	length := kith.Message[wrapperspb.StringValue, durationpb.Duration]{Type: "lengths", Name: "length", Message: text,
		Reply: span}
	c := sim.New(t, 3, 1)
	c.Register(kith.EntityType{Name: "lengths", Shards: 8, Typed: kith.Methods(
		func(*kith.Context) (*lengths, error) { return &lengths{}, nil }, kith.On(length, (*lengths).length))})
	c.AwaitUp()
	for n, word := range []string{"", "four", "a"} {
		got, err := length.Ask(c.Node(n), "a", &wrapperspb.StringValue{Value: word})
		require.NoError(t, err)
		require.Equal(t, int64(len(word)), got.GetSeconds())
	}
	other := kith.Message[string, durationpb.Duration]{Type: "lengths", Name: "length", Reply: span}
	_, err := other.Ask(c.Node(0), "a", new(string))
	require.ErrorIs(t, err, kith.ErrBadPayload)
}
