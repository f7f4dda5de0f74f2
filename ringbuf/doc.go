// Package ringbuf holds the bounded buffers that the measured hot path asks for: SPSC, a ring between exactly one
// producer and one consumer; Double, the pair of byte buffers behind every link; Queue, a growable ring of byte records
// for messages that must wait.
//
// All are bounded: a full one says so and stays as it was. Only SPSC may be used from two goroutines at once; Double and
// Queue are plain values under their owner's lock.
package ringbuf

import "errors"

// ErrFull is returned when an entry would exceed the bound; the buffer is unchanged.
var ErrFull = errors.New("ringbuf: full")
