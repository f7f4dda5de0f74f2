// Package localname says by which names a listener of HTTP may be asked that nobody but this machine reaches. A browser
// that was shown a page under a name of somebody else's, which leads to 127.0.0.1 by now (DNS rebinding), asks in that
// name and lets the page read the answer: a server that answers to every name shows this machine's secrets to that
// page.
package localname

import (
	"net"
	"net/netip"
	"strings"
)

// Names are those of one listener. The zero value answers to IP addresses and to localhost.
type Names struct {
	any  bool
	more []string // in lower case, without a dot at the end
}

// Of returns the names of a listener at an address: all, when others than this machine reach it, or when it is secure,
// for a certificate vouches for a name better; else IP addresses, localhost and more, which are host names or
// host:port. What is empty of more does not count.
func Of(at net.Addr, secure bool, more ...string) Names {
	n := Names{any: secure || !onLoopback(at)}
	for _, name := range more {
		if name = bare(name); name != "" {
			n.more = append(n.more, name)
		}
	}
	return n
}

// onLoopback reports whether a listener is reached from this machine alone.
func onLoopback(at net.Addr) bool {
	tcp, is := at.(*net.TCPAddr)
	return is && tcp.IP.IsLoopback()
}

// Loopback reports whether a host of a listen address is reached from this machine alone: a loopback address, or
// localhost.
func Loopback(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.IsLoopback()
	}
	return host == "localhost"
}

// bare is a host without port, brackets and the dot at its end, in lower case.
func bare(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// Same reports whether two hosts are one, whatever their ports and the case of their letters.
func Same(a, b string) bool { return bare(a) == bare(b) }

// Has reports whether a request for a host, as its Host header says, is answered. None at all, as of a client of HTTP
// 1.0, is: browsers name one.
func (n Names) Has(host string) bool {
	if n.any || host == "" {
		return true
	}
	host = bare(host)
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	for _, name := range n.more {
		if host == name {
			return true
		}
	}
	return false
}
