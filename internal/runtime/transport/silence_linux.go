// What Linux knows of a connection, and how one is set there.

package transport

import (
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/wire"
)

// acknowledgements asks the system about a connection; false when it does not say.
func acknowledgements(fd int) (acked, bool) {
	i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return acked{}, false
	}
	a := acked{unacked: int(i.Unacked), total: i.Bytes_acked, mss: int(i.Snd_mss),
		rto: time.Duration(i.Rtt+4*i.Rttvar) * time.Microsecond}
	a.bytes, _ = unix.IoctlGetInt(fd, unix.SIOCOUTQ) // zero: not known
	return a, true
}

// tcpRTOMax is the option TCP_RTO_MAX_MS, which systems before Linux 6.15 do not know.
const tcpRTOMax = 44

// boundRTO bounds the pauses after which the system sends again, where it can.
func boundRTO(nc net.Conn) { setTCP(nc, tcpRTOMax, int(longestRTO.Milliseconds())) }

// rtoIsBounded reports whether it can.
var rtoIsBounded = sync.OnceValue(func() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, tcpRTOMax, int(longestRTO.Milliseconds())) == nil
})

// boundSilence makes the system end a connection on which nothing was acknowledged for so long.
func boundSilence(nc net.Conn, d time.Duration) {
	setTCP(nc, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
}

// boundUnsent bounds the bytes that the system takes for a connection beyond those that it has sent.
func boundUnsent(nc net.Conn, bytes int) { setTCP(nc, unix.TCP_NOTSENT_LOWAT, bytes) }

// smallPackets returns what is done with a socket before it is dialled. On a control connection no packet is larger
// than 32 KiB, where the system would send 64 KiB in one on loopback: one that is lost, or that a shaper of traffic
// never lets through, holds up heartbeats.
func smallPackets(lane wire.Lane) func(network, address string, c syscall.RawConn) error {
	if lane != wire.LaneControl {
		return nil
	}
	return func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, maxSegment)
		})
	}
}

// maxSegment is the largest size of a segment that can be asked for, bytes.
const maxSegment = 32767

// setTCP sets an option as far as the system knows it.
func setTCP(nc net.Conn, option, value int) {
	nc = trust.Socket(nc)
	sock, isTCP := nc.(*net.TCPConn)
	if !isTCP {
		return
	}
	if raw, err := sock.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, option, value)
		})
	}
}
