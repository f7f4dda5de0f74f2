// The receiving side alone: what a data loop does with a read pass of envelopes.

package driver

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// summing reads its payload, as a handler does that is not there for show.
type summing struct{ sum uint64 }

func (s *summing) Receive(_ *entity.Context, payload []byte) error {
	s.sum += binary.LittleEndian.Uint64(payload)
	return nil
}

func (s *summing) Stop(*entity.Context) {}

// BenchmarkInboundInline gives 64-byte messages for 1,000 entities over 100 shards to the loop's own code, without a
// socket: parse, host, fence, entity, handler.
func BenchmarkInboundInline(b *testing.B) {
	d, err := Start(b.Context(), Config{}.WithDefaults())
	require.NoError(b, err)
	defer d.Close()
	require.NoError(b, d.Ready(b.Context()))
	r, err := d.Register(entity.Type{Name: "in", Shards: 100, Mode: entity.Inline,
		New: func(string, route.Fence) entity.Handler { return &summing{} }})
	require.NoError(b, err)
	var frames []byte
	for i := range 1000 {
		id := fmt.Sprintf("entity-%09d", i*7919%1000)
		_, err := r.AskWithin(patience, id, make([]byte, 64), nil)
		require.ErrorIs(b, err, route.ErrNoReply)
		h := r.hosts[r.Shard(id)].Load()
		env := wire.Envelope{Type: uint32(r.id), Shard: uint32(h.shard), Term: h.term, Epoch: h.epoch, ID: []byte(id),
			Payload: make([]byte, 64)}
		frames = wire.AppendEnvelope(frames, &env)
	}
	p := d.passes[0]
	from := d.remote(d.self, 0)
	b.ReportAllocs()
	now, left := d.now(), 0
	for b.Loop() {
		if left--; left < 0 {
			_, _, left = p.frames(now, nil, from, frames)
			left--
		}
	}
}
