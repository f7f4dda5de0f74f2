// A long read is worked off in pieces, and what was made of one is on its way before the next.

package transport

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/wire"
)

// Answers that a loop makes of the first part of a read leave before the rest is delivered, whether they were sent as
// by the loop itself or as by anybody (CARD-3).
func TestAnswersLeaveBetweenPieces(t *testing.T) {
	for _, name := range []string{"on the loop", "off the loop"} {
		t.Run(name, func(t *testing.T) {
			a, b := newRider(), newRider()
			begun, goOn := make(chan struct{}), make(chan struct{})
			ta, tb := start(t, a, nil), start(t, b, nil)
			back := tb.Link(ta.Self())
			require.NoError(t, send(t, back, 0, 0, 1, nil))
			until(t, func() bool { return back.taken() > 0 }) // it is connected

			var pieces, seen atomic.Int64
			before, pass := int64(0), 0
			b.onPass = func(*loop.Loop) { before, pass = 0, pass+1 }
			b.onData = func(c *InConn, frames []byte) {
				switch {
				case pass == 0: // hold the loop until more is there to be read
					close(begun)
					<-goOn
				case before > 0:
					pieces.Add(1)
					if back.taken() > before {
						seen.Add(1)
					}
				}
				before = back.taken()
				back.Lock()
				room, err := back.Reserve(wire.ReplySize)
				if err != nil {
					back.Unlock()
					return
				}
				wire.PutReply(room, 0, 1, nil)
				wake := back.Commit()
				back.Unlock()
				if on := c.Loop(); wake && name == "on the loop" {
					back.Wake(on)
				} else if wake {
					back.Wake(nil)
				}
				c.Consumed(len(frames))
			}
			link := ta.Link(tb.Self())
			require.NoError(t, send(t, link, 0, 0, 100, nil))
			want(t, begun)
			for seq := range uint32(400) {
				require.NoError(t, send(t, link, 0, seq, 100, nil))
			}
			until(t, func() bool { return link.taken() == int64(401*wire.SizeEnvelope(1, 100)) })
			close(goOn)
			until(t, func() bool { return pieces.Load() > 2 })
			require.Equal(t, pieces.Load(), seen.Load())
		})
	}
}

// taken returns the bytes that the link has handed to its connection.
func (l *Link) taken() int64 {
	l.Lock()
	defer l.Unlock()
	return int64(l.queue.Stats().Sent)
}
