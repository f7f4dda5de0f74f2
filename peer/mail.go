// Mail: one control message that a machine wants sent. Every machine's Effects carry a list of them.

package peer

import (
	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/wire"
)

// Mail is a control message to one node. To.Inc zero means any incarnation at the address (a contact point with an
// incarnation that is not known yet). Body is encoded by the machine; it is a view into the Effects' arena and valid
// until the machine's next verb, so a runtime that keeps it longer copies it.
type Mail struct {
	To   ID
	Kind wire.Kind
	Body []byte
}

// Arena collects mail bodies of one step in one growing buffer, so that a step allocates once or not at all. Reset
// it when the effects have been carried out. The zero value is ready.
type Arena struct{ buf []byte }

// keptArena is the largest buffer in bytes that an Arena keeps: a state of thousands of members goes out now and then,
// and its memory need not wait for the next one.
const keptArena = 16 << 10

// Reset forgets all bodies; views handed out before are void.
func (a *Arena) Reset() {
	if a.buf = a.buf[:0]; cap(a.buf) > keptArena {
		a.buf = nil
	}
}

// Begin returns the buffer to append a body to; pass the result to End before the next Begin.
func (a *Arena) Begin() []byte { return a.buf }

// End takes the buffer that grew from Begin and returns the appended body as a view.
func (a *Arena) End(b []byte) []byte {
	at := len(a.buf)
	invariant.Check(at <= len(b), "peer: Arena.End without its Begin")
	a.buf = b
	return b[at:len(b):len(b)]
}
