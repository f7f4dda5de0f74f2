// Where the kernel is not Linux it is not asked, and a connection goes on when the kernel sends again.

//go:build !linux

package transport

import (
	"net"
	"syscall"
	"time"

	"github.com/kith-io/kith/wire"
)

func acknowledgements(int) (acked, bool) { return acked{}, false }

func boundRTO(net.Conn) {}

func rtoIsBounded() bool { return false }

func boundSilence(net.Conn, time.Duration) {}

func boundUnsent(net.Conn, int) {}

func smallPackets(wire.Lane) func(network, address string, c syscall.RawConn) error { return nil }
