// Elsewhere an atomic store costs little more than a plain one; and the race detector knows atomic ones alone.

//go:build !amd64 || race

package latch

import "sync/atomic"

// storeRelease makes *p zero behind all that was read and written before.
func storeRelease(p *uint32) { atomic.StoreUint32(p, 0) }
