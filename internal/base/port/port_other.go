// Where a bound socket would keep even a listener that names the port away, nothing keeps it.

//go:build !linux

package port

import "net"

// keep returns a port that was free a moment ago.
func keep() (addr string, release func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	return ln.Addr().String(), func() {}, ln.Close()
}
