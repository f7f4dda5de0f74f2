// Tests of loads and sinks on two real nodes in this process.

package bench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// twoNodes returns the sender's region of a type that only the other node hosts, and its sink.
func twoNodes(t *testing.T, mode kith.Mode) (*kith.Region, *Sink) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	receiver, err := kith.Start(ctx, kith.Config{Roles: []string{"sink"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = receiver.Close() })
	require.NoError(t, receiver.Ready(ctx))
	sender, err := kith.Start(ctx, kith.Config{Seeds: []string{receiver.Addr().String()}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = sender.Close() })
	sink := NewSink()
	_, err = receiver.Register(sink.Type("sink", 10, mode, "sink"))
	require.NoError(t, err)
	none := NewSink()
	region, err := sender.Register(none.Type("sink", 10, mode, "sink"))
	require.NoError(t, err)
	require.NoError(t, sender.Ready(ctx))
	require.NoError(t, Flush(ctx, region, 20))
	require.Zero(t, sink.Count(), "a flush does not count")
	t.Cleanup(func() { require.Zero(t, none.Count(), "the sender hosts nothing") })
	return region, sink
}

// What a load says it sent is what the handlers counted, in every mode of execution and of sending.
func TestLoadsAreCountedAtTheHandlers(t *testing.T) {
	for _, exec := range []kith.Mode{kith.Inline, kith.Worker, kith.Blocking} {
		region, sink := twoNodes(t, exec)
		var total uint64
		for _, l := range []Load{
			{Mode: Tell, Size: 64, Senders: 2, Rate: 5000},
			{Mode: Tell, Size: 16, Senders: 2, Rate: 1000, Stamp: true},
			{Mode: Ask, Size: 1, Senders: 2, Inflight: 3},
			{Mode: Ask, Size: 64, Senders: 1, Inflight: 4, Rate: 1000},
			{Mode: AskFunc, Size: 64, Senders: 2, Inflight: 8},
		} {
			l.Entities, l.Duration, l.Timeout = 20, 50*time.Millisecond, 5*time.Second
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			r, err := l.Run(ctx, region)
			require.NoError(t, err)
			require.NoError(t, Flush(ctx, region, 20))
			cancel()
			require.Zero(t, r.Failed, r.FirstErr)
			require.Positive(t, r.Sent, "%s %s", exec, l.Mode)
			total += r.Sent
			require.Equal(t, total, sink.Count(), "%s %s", exec, l.Mode)
			if l.Mode == Tell {
				require.Nil(t, r.Latency)
			} else {
				require.EqualValues(t, r.Sent, r.Latency.Count())
			}
			ages := sink.Ages()
			if l.Stamp {
				require.EqualValues(t, r.Sent, ages.Count())
			} else {
				require.Zero(t, ages.Count())
			}
		}
	}
}

// A load against nobody fails message by message, and ends.
func TestLoadThatFails(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{})
	require.NoError(t, err)
	region, err := node.Register(NewSink().Type("sink", 10, kith.Worker, "nobody"))
	require.NoError(t, err)
	require.NoError(t, node.Ready(ctx))
	for _, mode := range []Mode{Ask, AskFunc} {
		l := Load{Mode: mode, Size: 1, Entities: 5, Senders: 1, Inflight: 2, Duration: 60 * time.Millisecond,
			Timeout: 20 * time.Millisecond}
		r, err := l.Run(ctx, region)
		require.NoError(t, err)
		require.Zero(t, r.Sent)
		require.Positive(t, r.Failed)
		require.NotEmpty(t, r.FirstErr)
	}
	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	require.ErrorIs(t, Flush(short, region, 3), context.DeadlineExceeded)
	require.NoError(t, node.Close())
}

func TestMicroAndRoute(t *testing.T) {
	region, sink := twoNodes(t, kith.Inline)
	f := Micro(region)
	r, err := Route(context.Background(), region)
	require.NoError(t, err)
	f.Merge(r)
	for _, name := range []string{"frame_bytes", "encode_ns", "decode_ns", "hash_ns", "route_ns"} {
		require.Positive(t, f[name], name)
	}
	require.Contains(t, f, "route_allocs")
	require.NoError(t, Flush(context.Background(), region, 1000))
	require.EqualValues(t, routeBurst*routeBursts, sink.Count())
}
