// Package ringbuf holds the bounded buffers that the measured hot path asks for: Double, the pair of
// byte buffers behind every link; Classes, the buffers by size that all links share under one budget; Queue, a growable
// ring of byte records for messages that must wait.
//
// All are bounded: a full one says so and stays as it was. They are plain values under their owner's lock.
//
// It is no part of what embedders may rely on, but for the types that package kith and its like lead to: the rest may
// change in any version (docs/compatibility.md).
package ringbuf

import "errors"

// ErrFull is returned when an entry would exceed the bound; the buffer is unchanged.
var ErrFull = errors.New("ringbuf: full")

// ErrMemory is returned when an entry is within the bound but there is no memory for it; the buffer is unchanged.
var ErrMemory = errors.New("ringbuf: no memory to be had")
