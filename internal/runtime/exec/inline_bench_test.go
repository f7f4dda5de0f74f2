// The receiving side alone: what a data loop does with a read pass of envelopes.

package exec

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
	x := newBare(b, entity.Type{Name: "in", Shards: 100, Mode: entity.Inline,
		New: func(string, route.Fence) entity.Handler { return &summing{} }})
	var frames []byte
	for i := range 1000 {
		env := x.envelope(fmt.Sprintf("entity-%09d", i*7919%1000), make([]byte, 64))
		frames = wire.AppendEnvelope(frames, &env)
	}
	x.onLoop(b, 0, func() {
		p := x.passes[0]
		_, _, handled := p.frames(x.Clock.Now(), nil, x.other, frames) // the first message makes an entity
		require.Equal(b, 1000, handled)
	})
	b.ReportAllocs()
	p, now, left := x.passes[0], x.Clock.Now(), 0
	for b.Loop() {
		if left--; left < 0 {
			_, _, left = p.frames(now, nil, x.other, frames)
			left--
		}
	}
}
