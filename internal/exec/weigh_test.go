// Tests of the time that handlers run, by shard.

package exec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHandlerTimeIsSampled: one message stands for as many as there are for each that is picked, wherever in a pattern
// of messages it stands, and nothing is counted of a type that is not weighed (SHD-6).
func TestHandlerTimeIsSampled(t *testing.T) {
	const every, shards, messages = 64, 64, 64 * 64 * 400
	x := &Exec{cfg: Config{LatencyEvery: every}}
	typ := &Type{x: x, shards: shards}
	typ.hosts.Init(shards, nil)
	var hosts [shards]*Host
	for i := range hosts {
		hosts[i] = &Host{}
		typ.hosts.flat[i].Store(hosts[i])
	}
	typ.took(0, time.Second)
	require.Zero(t, HandlerTime(hosts[0]))
	Weigh(typ)
	require.True(t, x.weighs.Load())
	var s Sampler
	for n := range messages { // in turns: as many shards as there are messages to each that is picked
		if s.Pick(every) {
			typ.took(uint32(n%shards), time.Microsecond)
		}
	}
	typ.took(shards, time.Second) // no such shard
	for i, h := range hosts {
		require.InEpsilon(t, time.Duration(messages/shards)*time.Microsecond, HandlerTime(h), 0.4, "shard %d", i)
	}
}
