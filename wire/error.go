// The typed decode error: what was being read, where it went wrong, why.

package wire

import (
	"errors"
	"fmt"
)

// Reasons a decoder gives. Match them with errors.Is on the returned *Error.
var (
	ErrTruncated = errors.New("truncated")              // the input ends before the value does
	ErrTrailing  = errors.New("trailing bytes")         // the value ends before the input does
	ErrTooLarge  = errors.New("length over the limit")  // a length or count exceeds its bound
	ErrTooSmall  = errors.New("length below its least") // a frame shorter than its header
	ErrBadKind   = errors.New("unknown frame kind")     // not in the table of kinds
	ErrBadLane   = errors.New("frame on the wrong lane")
	ErrBadMagic  = errors.New("wrong magic")        // the connection does not speak this protocol
	ErrBadWire   = errors.New("wrong wire version") // it speaks a version that this node does not
	ErrBadValue  = errors.New("value out of range") // an enum or flag outside its set, an index outside its table
	ErrBadOrder  = errors.New("entries out of order")
)

// Error is the only error that decoders return: the kind being decoded, the byte offset inside the body (or frame)
// where reading stopped, and the reason, which errors.Is matches.
type Error struct {
	Kind   Kind
	Offset int
	Err    error
}

// Error prints kind, offset and reason.
func (e *Error) Error() string {
	return fmt.Sprintf("wire: %s at byte %d: %v", e.Kind, e.Offset, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
