// Here: which addresses lead to this very node.

package names

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Bounds of what a Here remembers.
const (
	maxFound = 64
	foundFor = time.Minute
)

// Here is a Book that knows which addresses lead back to the node that dials by it. Init before use; safe for
// concurrent use.
type Here struct {
	*Book
	port string // that the node listens on

	lock  sync.Mutex
	found []found // the oldest first
}

type found struct {
	addr string
	at   time.Time
}

// Init prepares a Here for a node that listens at an address and dials by a book.
func (h *Here) Init(b *Book, listens net.Addr) {
	h.Book = b
	_, h.port, _ = net.SplitHostPort(listens.String())
}

// Note notes that a connection to host:port came back to this node.
func (h *Here) Note(addr string) {
	h.lock.Lock()
	defer h.lock.Unlock()
	now := time.Now()
	h.found = slices.DeleteFunc(h.found, func(f found) bool { return f.addr == addr || now.Sub(f.at) > foundFor })
	if len(h.found) == maxFound {
		h.found = h.found[1:]
	}
	h.found = append(h.found, found{addr, now})
}

// Noted reports whether a connection to host:port has come back to this node within the last minute.
func (h *Here) Noted(addr string) bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	return slices.ContainsFunc(h.found, func(f found) bool { return f.addr == addr && time.Since(f.at) <= foundFor })
}

// Own reports whether host:port is this node's own, spelled otherwise than the address that it goes by: it has come
// back here, to the port that this node listens on, and its name leads to addresses of this machine only. An address
// that leads to several nodes in turn comes back now and then, and is not its own.
func (h *Here) Own(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != h.port || !h.Noted(addr) {
		return false
	}
	all := h.Known(host)
	if len(all) == 0 {
		return false
	}
	mine, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(all, func(ip netip.Addr) bool { return !ip.IsLoopback() && !among(mine, ip) })
}

// among reports whether ip is one of these addresses of interfaces.
func among(mine []net.Addr, ip netip.Addr) bool {
	return slices.ContainsFunc(mine, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		if !ok {
			return false
		}
		o, ok := netip.AddrFromSlice(n.IP)
		return ok && o.Unmap() == ip
	})
}
