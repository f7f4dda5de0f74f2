// What a proxy has to know of a connection: who dials and for which lane, both in the hello that it begins with.

package chaos

import (
	"encoding/binary"
	"net/netip"
)

// Where things stand in a hello: see docs/wire.md.
const (
	helloMagic    = "KITH"
	helloMagicAt  = 8
	helloLaneAt   = 16
	helloNameAt   = 43
	helloFormIPv4 = 4
)

// helloBytes is enough of a hello to know all: the name of the cluster has at most 64 bytes.
const helloBytes = helloNameAt + 1 + 64 + 1 + 4 + 2

// splitHello returns the lane of a connection and the IPv4 address that its dialler is known by. ok is false when b is
// no hello of that form; more when b may be the beginning of one.
func splitHello(b []byte) (l lane, from netip.AddrPort, ok, more bool) {
	if len(b) <= helloNameAt {
		return 0, from, false, true
	}
	name := int(b[helloNameAt])
	if string(b[helloMagicAt:helloMagicAt+4]) != helloMagic || b[helloLaneAt] >= byte(lanes) || name > 64 {
		return 0, from, false, false
	}
	rest := b[helloNameAt+1:]
	if len(rest) < name+7 {
		return 0, from, false, true
	}
	rest = rest[name:]
	if rest[0] != helloFormIPv4 {
		return 0, from, false, false
	}
	from = netip.AddrPortFrom(netip.AddrFrom4([4]byte(rest[1:5])), binary.LittleEndian.Uint16(rest[5:7]))
	return lane(b[helloLaneAt]), from, true, false
}
