// Test of network namespaces on the kernel's own TCP, where the machine permits it.

package chaos

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kith-io/kith/internal/lab/bootruns"
)

// insideOf runs f on a thread that is in the namespace of a node: sockets made there stay there. The thread ends with
// its goroutine.
func insideOf(t *testing.T, space string, f func()) {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		fd, err := os.Open(filepath.Join("/var/run/netns", space))
		if err == nil {
			if err = unix.Setns(int(fd.Fd()), unix.CLONE_NEWNET); err == nil {
				f()
			}
			_ = fd.Close()
		}
		done <- err
	}()
	require.NoError(t, <-done)
}

// spacesOf makes namespaces of two nodes, and a listener in the second one's.
func spacesOf(t *testing.T, pid int) (*namespaces, net.Listener) {
	c, err := newNamespaces(pid, 2)
	if err != nil {
		t.Skip(err)
	}
	n := c.(*namespaces)
	t.Cleanup(func() { require.NoError(t, n.close()) })
	listen, _, err := n.place(1)
	require.NoError(t, err)
	var ln net.Listener
	insideOf(t, n.space(1), func() { ln, err = net.Listen("tcp4", listen) })
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	return n, ln
}

// A delay holds up each way of a connection, new ones too, and is over when it ends.
func TestNamespacesDelay(t *testing.T) {
	n, ln := spacesOf(t, os.Getpid())
	if !n.can(Delay) {
		t.Skip(n.about())
	}
	const wait = 300 * time.Millisecond
	echo := func() time.Duration {
		began := time.Now()
		var c net.Conn
		var err error
		insideOf(t, n.space(0), func() { c, err = net.Dial("tcp4", ln.Addr().String()) })
		require.NoError(t, err)
		defer c.Close()
		peer, err := ln.Accept()
		require.NoError(t, err)
		defer peer.Close()
		require.True(t, passes(t, c, peer, ample))
		require.True(t, passes(t, peer, c, ample))
		return time.Since(began)
	}
	slow := []struck{{Fault{Kind: Delay, Extra: wait}, []int{0, 1}}}
	require.NoError(t, n.apply(linksUnder(slow, 2)))
	require.GreaterOrEqual(t, echo(), 4*wait, "a handshake there and back, one message each way")
	require.NoError(t, n.apply(newLinks(2)))
	fast := echo()
	for fast > wait { // a loaded machine
		fast = echo()
	}
}

// Lanes are known by the hello, in both directions of a connection, and a cut of one leaves the other alone.
func TestNamespacesCutLanes(t *testing.T) {
	n, ln := spacesOf(t, os.Getpid())
	listen := ln.Addr().String()
	var err error
	connect := func(l lane) (dialler, acceptor net.Conn) {
		insideOf(t, n.space(0), func() { dialler, err = net.Dial("tcp4", listen) })
		require.NoError(t, err)
		t.Cleanup(func() { _ = dialler.Close() })
		_, err = dialler.Write(helloFrom(t, l, "10.77.0.1:7355"))
		require.NoError(t, err)
		acceptor, err = ln.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { _ = acceptor.Close() })
		_, err = acceptor.Read(make([]byte, 100))
		require.NoError(t, err)
		return dialler, acceptor
	}
	control, controlEnd := connect(controlLane)
	data, dataEnd := connect(dataLane)
	require.NoError(t, n.apply(linksUnder([]struck{{Fault{Kind: DataCut}, []int{0}}}, 2)))
	require.True(t, passes(t, control, controlEnd, ample))
	require.True(t, passes(t, controlEnd, control, ample))
	require.False(t, passes(t, data, dataEnd, soon))
	require.False(t, passes(t, dataEnd, data, soon))
	require.NoError(t, n.apply(newLinks(2)))
	require.True(t, passes(t, data, dataEnd, ample))
	require.NoError(t, n.apply(linksUnder([]struck{{Fault{Kind: Cut}, []int{0}}}, 2)))
	require.False(t, passes(t, control, controlEnd, soon))
}

// Resets reach the sender, also while both sides reset what comes in (OPS-3).
func TestNamespacesReset(t *testing.T) {
	n, ln := spacesOf(t, os.Getpid())
	var c net.Conn
	var err error
	insideOf(t, n.space(0), func() { c, err = net.Dial("tcp4", ln.Addr().String()) })
	require.NoError(t, err)
	defer c.Close()
	peer, err := ln.Accept()
	require.NoError(t, err)
	defer peer.Close()
	require.NoError(t, n.apply(linksUnder([]struck{{Fault: Fault{Kind: Reset, PerMille: everyPacket}}}, 2)))
	for range 3 { // one may be spared
		_, _ = c.Write([]byte("hello"))
	}
	require.NoError(t, c.SetReadDeadline(time.Now().Add(ample)))
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection has ended")
}

// narrow counts the ends of links that carry 20 Mbit/s.
func narrow(t *testing.T, n *namespaces) (some int) {
	if !n.can(SlowLink) {
		t.Skip("no tc")
	}
	for slot := range n.nodes {
		for space, dev := range map[string]string{n.space(slot): "eth0", n.hub(): "w" + strconv.Itoa(slot+1)} {
			out, err := exec.Command("tc", "-n", space, "qdisc", "show", "dev", dev).CombinedOutput()
			require.NoError(t, err, "%s", out)
			some += strings.Count(string(out), "rate 20Mbit")
		}
	}
	return some
}

// A slow link holds for every node, both ways, and is over when it ends.
func TestNamespacesAreNarrow(t *testing.T) {
	n, _ := spacesOf(t, os.Getpid())
	require.Zero(t, narrow(t, n))
	slow := []struck{{Fault: Fault{Kind: SlowLink, MBit: 20}}}
	require.NoError(t, n.apply(linksUnder(slow, 2)))
	require.Equal(t, 4, narrow(t, n))
	require.NoError(t, n.apply(newLinks(2)))
	require.Zero(t, narrow(t, n))
}

// In every namespace the names of all nodes are known to a process started there, unless DNS is in trouble; the files
// that say so are gone with the namespaces.
func TestNamespacesHaveNames(t *testing.T) {
	c, err := newNamespaces(os.Getpid(), 2)
	if err != nil {
		t.Skip(err)
	}
	n := c.(*namespaces)
	files := filepath.Join(spaceFiles, n.space(1))
	over := sync.OnceValue(n.close)
	t.Cleanup(func() { _ = over() })
	require.False(t, n.can(DNS))
	if err := n.byNames(); err != nil {
		t.Skip(err)
	}
	require.True(t, n.can(DNS))
	listen, advertise, err := n.place(0)
	require.NoError(t, err)
	require.Equal(t, "10.77.0.1:7355", listen)
	require.Equal(t, "n1.chaos.test:7355", advertise)
	getent, err := exec.LookPath("getent")
	if err != nil {
		t.Skip(err)
	}
	ask := func() (string, error) {
		out, err := exec.Command("ip", "netns", "exec", n.space(1), getent, "ahostsv4", hostName(0)).Output()
		return string(out), err
	}
	found, err := ask()
	require.NoError(t, err)
	require.Contains(t, found, "10.77.0.1")
	n.trouble(bootruns.Fails)
	_, err = ask()
	require.Error(t, err)
	n.trouble("")
	_, err = ask()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(files, "resolv.conf"))
	require.NoError(t, over())
	require.NoDirExists(t, files)
}

// Namespaces of another command are narrow from the begin.
func TestSpacesOfAnotherCommand(t *testing.T) {
	s, err := NewSpaces(2, 20)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.Equal(t, 4, narrow(t, s.net.(*namespaces)))
	addr, err := s.Addr(1)
	require.NoError(t, err)
	require.Equal(t, "10.77.0.2:7355", addr)
}
