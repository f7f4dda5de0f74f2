// Recall: the marker of a move, and what waits before it.

package plane

import (
	"time"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/wire"
)

// Mark sends the marker of a move to the owner of a shard with a closed route: behind what was sent there, and
// before all that is not. What still waits in the link for the shard waits in its slot instead, before what does
// already, and goes with that to the next owner, or to this one if the move is given up; the marker then waits for
// nothing. So a move gets its marker through however much waits for an owner that is slow, also when the slot is full:
// senders fill it while the shard moves, and if the marker waited for room, an overloaded owner would keep the shard
// for as long as they send. Where a large message is among it, the marker stands in the link behind it.
//
// asks are the numbers of asks that wait again. s may be nil: then nobody here has sent there. Errors are those of
// flow.Link.AppendMarker.
func Mark(s *flow.Slot, l *flow.Link, now time.Duration, m wire.Marker) (asks []uint64, next Next, err error) {
	frames, bytes, large := l.Waiting(m.Type, m.Shard)
	switch {
	case frames == 0:
		return nil, Rest, l.ExpressMarker(m)
	case large || s == nil:
		return nil, Rest, l.AppendMarker(m)
	}
	if !s.PutFirst(now, frames, bytes, func(put func([]byte)) {
		l.Withdraw(m.Type, m.Shard, func(frame []byte) {
			var e wire.Envelope
			if wire.ParseEnvelope(frame, &e) == nil && e.Flags&wire.FlagAsk != 0 {
				asks = append(asks, e.Corr)
			}
			put(frame)
		})
	}) {
		return nil, Rest, l.AppendMarker(m)
	}
	return asks, want(s), l.ExpressMarker(m)
}
