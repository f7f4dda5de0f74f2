// Crowds from many addresses, which the loopback of Linux has.

package transport

import "net"

const crowds = 8

// crowdAddr is where a crowd comes from; the first is where nodes are.
func crowdAddr(i int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i))} }
