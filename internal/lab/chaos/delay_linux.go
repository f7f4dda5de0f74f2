// Delays between network namespaces: while there is one, all that a node sends goes through a tunnel device to the
// harness, which hands each packet to its receiver's device when its time has come. The kernel needs no netem for it.

package chaos

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	tunnelName  = "slow0"
	tunnelMTU   = 1500
	tunnelQueue = 1 << 14 // packets of a sender on their way, some 24 MB; what is more is lost, as on a real one
)

// tunnels holds the device of each node. Safe for concurrent use.
type tunnels struct {
	files []*os.File
	at    map[netip.Addr]*os.File // by address of the node
	delay atomic.Int64            // of packets that come from now on
	over  sync.WaitGroup
}

// delayed is a packet on its way.
type delayed struct {
	due    time.Time
	to     *os.File
	packet []byte
}

// newTunnels makes a device in each namespace, named by space. addr is the address of a node.
func newTunnels(nodes int, space, addr func(slot int) string) (*tunnels, error) {
	t := &tunnels{at: map[netip.Addr]*os.File{}}
	for slot := range nodes {
		f, err := openTunnel(space(slot))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("tunnel of %s: %w", space(slot), err), t.close())
		}
		t.files = append(t.files, f)
		t.at[netip.MustParseAddr(addr(slot))] = f
	}
	for _, f := range t.files {
		line := make(chan delayed, tunnelQueue)
		t.over.Add(2)
		go t.take(f, line)
		go t.hand(line)
	}
	return t, nil
}

// inSpace calls f in a namespace, where what it opens stays. It does so on a thread that ends with its goroutine: the
// thread stays in the namespace.
func inSpace(space string, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		ns, err := os.Open(filepath.Join("/var/run/netns", space))
		if err == nil {
			err = os.NewSyscallError("setns", unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET))
			_ = ns.Close()
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// openTunnel makes a tunnel device in a namespace.
func openTunnel(space string) (f *os.File, err error) {
	err = inSpace(space, func() (err error) {
		f, err = tunnelHere()
		return err
	})
	return f, err
}

// tunnelHere makes the device in the namespace of the thread.
func tunnelHere() (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("open tun", err)
	}
	r, err := unix.NewIfreq(tunnelName)
	if err == nil {
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("tunsetiff", err)
	}
	return os.NewFile(uintptr(fd), tunnelName), nil // which polls it: closing it ends a read
}

// take reads what a node sends until its device is closed.
func (t *tunnels) take(f *os.File, line chan<- delayed) {
	defer t.over.Done()
	defer close(line)
	buf := make([]byte, 1<<16)
	for {
		n, err := f.Read(buf)
		if err != nil {
			return
		}
		if n < 20 || buf[0]>>4 != 4 {
			continue // nodes speak IPv4 here
		}
		d := delayed{due: time.Now().Add(time.Duration(t.delay.Load())), to: t.at[netip.AddrFrom4([4]byte(buf[16:20]))]}
		if d.to == nil {
			continue
		}
		d.packet = append(d.packet, buf[:n]...)
		select {
		case line <- d:
		default:
		}
	}
}

// hand gives packets to their receivers, in the order in which they were sent. A device that is closed takes none.
func (t *tunnels) hand(line <-chan delayed) {
	defer t.over.Done()
	for d := range line {
		time.Sleep(time.Until(d.due))
		_, _ = d.to.Write(d.packet)
	}
}

// close removes the devices and waits for what is under way.
func (t *tunnels) close() error {
	var errs []error
	for _, f := range t.files {
		errs = append(errs, f.Close())
	}
	t.over.Wait()
	return errors.Join(errs...)
}
