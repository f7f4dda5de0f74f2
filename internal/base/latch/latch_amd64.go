// Stores of this processor are seen in their order, so that a plain one gives a latch up.

//go:build amd64 && !race

package latch

// storeRelease makes *p zero behind all that was read and written before.
//
//go:noescape
func storeRelease(p *uint32)
