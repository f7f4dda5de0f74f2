// Column: addresses of a sorted list, each written as its difference to the one before it.

package peer

import (
	"encoding/binary"
	"net/netip"

	"github.com/kith-io/kith/wire"
)

// What the two low bits of a difference say of the rest.
const (
	nextIP4   = 0 // a higher or equal IPv4 address on the same port: by how much
	nextWhole = 1 // the address follows whole
	nextPort  = 2 // the same host, a higher or equal port: by how much
	nextBits  = 2
)

// AppendAddrAfter appends a, which comes after prev in a sorted list; prev is the zero Addr for the first. Neighbours
// on one port, or one host, take a byte or two. ReadAddrAfter reads it. Every pair has one encoding that this function
// makes; a reader that must refuse others compares what it would write.
func AppendAddrAfter(b []byte, prev, a Addr) []byte {
	switch {
	case prev.port == a.port && prev.ip.Is4() && a.ip.Is4() && prev.ip.Compare(a.ip) <= 0:
		was, is := prev.ip.As4(), a.ip.As4()
		delta := uint64(binary.BigEndian.Uint32(is[:])) - uint64(binary.BigEndian.Uint32(was[:]))
		return wire.AppendUvarint(b, delta<<nextBits|nextIP4)
	case prev.port != 0 && prev.port <= a.port && prev.ip == a.ip && prev.host == a.host:
		return wire.AppendUvarint(b, uint64(a.port-prev.port)<<nextBits|nextPort)
	}
	return AppendAddr(wire.AppendUvarint(b, nextWhole), a)
}

// ReadAddrAfter reads what AppendAddrAfter wrote for the same prev. Errors stay in r, and the result is then no
// address.
func ReadAddrAfter(r *wire.Reader, prev Addr) Addr {
	v := r.Uvarint()
	if r.Err() != nil {
		return Addr{}
	}
	delta := v >> nextBits
	switch v & (1<<nextBits - 1) {
	case nextIP4:
		if prev.ip.Is4() {
			ip := prev.ip.As4()
			if at := uint64(binary.BigEndian.Uint32(ip[:])); delta <= 1<<32-1-at {
				binary.BigEndian.PutUint32(ip[:], uint32(at+delta))
				return Addr{ip: netip.AddrFrom4(ip), port: prev.port}
			}
		}
	case nextPort:
		if prev.port != 0 && delta <= 1<<16-1-uint64(prev.port) {
			prev.port += uint16(delta)
			return prev
		}
	case nextWhole:
		if delta == 0 {
			return ReadAddr(r)
		}
	}
	r.Fail(wire.ErrBadValue)
	return Addr{}
}
