// Package wire is the ground floor of bytes: the one table of frame kinds, the frame and envelope headers, append and
// cursor primitives, limits and the typed decode error.
//
// It knows bytes only; what a body means lives in the room that owns the kind. All integers are little-endian except
// the fence, which is big-endian so that its byte order is its order (see package route). Nothing here allocates but
// errors; readers hand out views into their input, which the caller owns and must not reuse while a view lives.
//
// A frame on a connection is
//
//	offset 0  u32  size of the whole frame, this header included
//	       4  u8   kind
//	       5  u8   flags
//	       6  u16  auxiliary: the length of the entity id in an envelope, the status in a reply, else zero
//	       8  ...  body
//
// It is no part of what embedders may rely on, but for the types that package kith and its like lead to: the rest may
// change in any version (docs/compatibility.md).
package wire
