// Express: frames of a link that go before what waits, and beyond the credit for that.

package flow

import "github.com/kith-io/kith/wire"

// express holds markers of moves of shards that have nothing waiting in the link.
type express struct{ next, spare []byte }

// put takes a marker, and reports whether there was room within limit bytes.
func (x *express) put(m wire.Marker, limit int) bool {
	if len(x.next) >= limit {
		return false
	}
	frame, at := wire.BeginFrame(x.next, wire.KindMarker, 0, 0)
	x.next = wire.AppendMarker(frame, m)
	wire.EndFrame(x.next, at)
	return true
}

// take hands out what is there, and keeps the buffer that was handed out before for what comes.
func (x *express) take() []byte {
	out := x.next
	x.next, x.spare = x.spare[:0], out
	return out
}
