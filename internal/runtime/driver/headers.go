// Headers: what a caller gives with a message apart from its payload, and how an envelope carries what only some have.

package driver

import (
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Headers go with messages, and belong to the caller; nil: there are none. A pointer, so that nothing is passed along
// where there are none.
type Headers struct{ B []byte }

// check judges headers; nil is in order.
func (h *Headers) check() error {
	if h != nil && len(h.B) > wire.MaxHeaders {
		return &route.HeadersError{Size: len(h.B), Limit: wire.MaxHeaders}
	}
	return nil
}

// more gives an envelope the limit of the ask that it is, if a is not nil, and headers, and returns what both take.
func more(env *wire.Envelope, a *asking, h *Headers) int {
	if a != nil && a.limited {
		env.Flags |= wire.FlagLimit
		env.Limit = a.limit
	}
	if h != nil && len(h.B) > 0 {
		env.Flags |= wire.FlagHeaders
		env.Headers = h.B
	}
	return env.More()
}
