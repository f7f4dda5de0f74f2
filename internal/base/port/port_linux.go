// A port kept by a socket that is bound to it and never listens.

package port

import (
	"net/netip"
	"os"
	"syscall"
)

// keep binds a socket with SO_REUSEADDR. Linux lets a second socket with that option, which every listener of package
// net has, bind the same port by name as long as no other one listens, but never picks such a port itself, neither for
// a listener on port 0 nor for a dial.
func keep() (addr string, release func(), err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, os.NewSyscallError("socket", err)
	}
	release = func() { _ = syscall.Close(fd) }
	if err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	var at syscall.Sockaddr
	if err == nil {
		at, err = syscall.Getsockname(fd)
	}
	if err != nil {
		release()
		return "", nil, os.NewSyscallError("bind", err)
	}
	own := at.(*syscall.SockaddrInet4)
	return netip.AddrPortFrom(netip.AddrFrom4(own.Addr), uint16(own.Port)).String(), release, nil
}
