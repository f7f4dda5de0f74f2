// Fence: sixteen bytes that only grow from owner to owner of a shard.

package route

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// FenceSize is the size of a Fence in bytes.
const FenceSize = 16

// Fence identifies one ownership of one shard. It is big-endian and ordered byte by byte: cluster birth (8 bytes),
// term (4: the up-number of the coordinator's member), epoch (4: one sequence per type and term). A store that
// remembers the highest fence it saw and refuses lower ones refuses every late owner. The zero Fence is no ownership.
type Fence [FenceSize]byte

// MakeFence builds a fence from its parts.
func MakeFence(birth uint64, term, epoch uint32) Fence {
	var f Fence
	binary.BigEndian.PutUint64(f[:], birth)
	binary.BigEndian.PutUint32(f[8:], term)
	binary.BigEndian.PutUint32(f[12:], epoch)
	return f
}

// Birth returns the birth of the cluster that issued f.
func (f Fence) Birth() uint64 { return binary.BigEndian.Uint64(f[:]) }

// Term returns the up-number of the coordinator that issued f.
func (f Fence) Term() uint32 { return binary.BigEndian.Uint32(f[8:]) }

// Epoch returns the position of f in its term.
func (f Fence) Epoch() uint32 { return binary.BigEndian.Uint32(f[12:]) }

// IsZero reports whether f is no ownership.
func (f Fence) IsZero() bool { return f == Fence{} }

// Compare orders fences: -1, 0 or +1.
func (f Fence) Compare(g Fence) int { return bytes.Compare(f[:], g[:]) }

// String prints birth.term.epoch.
func (f Fence) String() string { return fmt.Sprintf("%x.%d.%d", f.Birth(), f.Term(), f.Epoch()) }
