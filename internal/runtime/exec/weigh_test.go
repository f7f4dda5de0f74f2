// Tests of the time that handlers run, by shard.

package exec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

// TestHandlerTimeIsSampled: one message stands for as many as there are for each that is picked, wherever in a pattern
// of messages it stands, and nothing is counted of a type that is not weighed (SHD-6).
func TestHandlerTimeIsSampled(t *testing.T) {
	const every, shards, messages = 64, 64, 64 * 64 * 400
	x := &Exec{cfg: Config{LatencyEvery: every}}
	typ := &Type{x: x, shards: shards}
	typ.hosts.Init(shards)
	var hosts [shards]*Host
	for i := range hosts {
		hosts[i] = &Host{}
		typ.hosts.At(route.ShardID(i)).Store(hosts[i])
	}
	typ.took(0, time.Second, every)
	require.Zero(t, HandlerTime(hosts[0]))
	Weigh(typ)
	require.True(t, x.weighs.Load())
	var s Sampler
	for n := range messages { // in turns: as many shards as there are messages to each that is picked
		if s.Pick(every) {
			typ.took(uint32(n%shards), time.Microsecond, s.stands)
		}
	}
	typ.took(shards, time.Second, every) // no such shard
	for i, h := range hosts {
		require.InEpsilon(t, time.Duration(messages/shards)*time.Microsecond, HandlerTime(h), 0.4, "shard %d", i)
	}
}

// Where messages come fast samples grow rarer, up to sixteen times, and come as often as they should when messages
// come slowly. Together they stand for as many messages as there were; one in one means all at any speed (CARD-4).
func TestSamplesOfFastMessagesAreRare(t *testing.T) {
	const messages = 1 << 20
	var s Sampler
	now := time.Unix(0, 0)
	send := func(every int, gap time.Duration) (samples, stand int) {
		for range messages {
			now = now.Add(gap)
			if s.Pick(every) {
				samples++
				stand += s.Begin(now, every)
			}
		}
		return samples, stand
	}
	const every = 64
	for _, c := range []struct {
		gap  time.Duration
		want int // how many messages there are to one sample
	}{
		{10 * time.Nanosecond, maxStretch * every},
		{20 * time.Microsecond, every},
		{0, maxStretch * every},
		{time.Millisecond, every},
	} {
		send(every, c.gap) // it gets used to it
		samples, stand := send(every, c.gap)
		require.InEpsilon(t, messages/c.want, samples, 0.2, c.gap)
		require.InEpsilon(t, messages, stand, 0.2, c.gap)
	}
	s = Sampler{}
	samples, stand := send(1, 0)
	require.Equal(t, []int{messages, messages}, []int{samples, stand})
}
