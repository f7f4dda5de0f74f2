// Tests of the proxy on real sockets: what a fault holds up, what it lets through, how connections end.

package chaos

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// helloFrom is as much of a hello as the proxy looks at.
func helloFrom(t testing.TB, l lane, from string) []byte {
	b := make([]byte, helloNameAt)
	b[4] = 1
	copy(b[helloMagicAt:], helloMagic)
	b[helloLaneAt] = byte(l)
	b = append(append(b, byte(len("chaos"))), "chaos"...)
	addr, err := netip.ParseAddrPort(from)
	require.NoError(t, err)
	b = append(append(b, helloFormIPv4), addr.Addr().AsSlice()...)
	return binary.LittleEndian.AppendUint16(b, addr.Port())
}

// Every piece of a hello is the beginning of one; the whole tells lane and dialler; anything else is none.
func TestHelloIsUnderstood(t *testing.T) {
	b := helloFrom(t, dataLane, "127.1.2.3:7355")
	for n := range b {
		_, _, ok, more := splitHello(b[:n])
		require.False(t, ok)
		require.True(t, more, n)
	}
	l, from, ok, _ := splitHello(append(b, "more"...))
	require.True(t, ok)
	require.Equal(t, dataLane, l)
	require.Equal(t, "127.1.2.3:7355", from.String())
	for _, at := range []int{helloMagicAt, helloLaneAt, helloNameAt, helloNameAt + 6} {
		bad := bytes.Clone(b)
		bad[at] = 200
		_, _, ok, more := splitHello(append(bad, make([]byte, helloBytes)...))
		require.False(t, ok || more, at)
	}
}

func FuzzSplitHello(f *testing.F) {
	f.Add(helloFrom(f, bulkLane, "127.0.0.1:1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, ok, more := splitHello(b); more {
			require.False(t, ok)
			require.Less(t, len(b), helloBytes)
		}
	})
}

// behind starts proxies for two nodes and listens as the second.
func behind(t *testing.T) (*proxies, net.Listener) {
	p, err := newProxies(2, 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.close()) })
	listen, _, err := p.place(1)
	require.NoError(t, err)
	ln, err := net.Listen("tcp4", listen)
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	return p, ln
}

// connect dials the second node as the first and returns both ends, the hello read.
func connect(t *testing.T, p *proxies, ln net.Listener, l lane) (dialler, acceptor *net.TCPConn) {
	c, err := net.Dial("tcp4", p.slots[1].self.String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	hello := helloFrom(t, l, p.slots[0].self.String())
	_, err = c.Write(hello)
	require.NoError(t, err)
	d, err := ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	got := make([]byte, len(hello))
	_, err = io.ReadFull(d, got)
	require.NoError(t, err)
	require.Equal(t, hello, got)
	return c.(*net.TCPConn), d.(*net.TCPConn)
}

// passes reports whether a byte comes through; a cut is looked at for a moment only.
func passes(t *testing.T, from, to net.Conn, patience time.Duration) bool {
	_, err := from.Write([]byte{7})
	require.NoError(t, err)
	require.NoError(t, to.SetReadDeadline(time.Now().Add(patience)))
	var b [1]byte
	_, err = to.Read(b[:])
	return err == nil
}

const (
	soon  = 100 * time.Millisecond
	ample = 20 * time.Second
)

// A cut of one lane and one direction holds up that alone, and loses nothing of what it holds up.
func TestProxyCuts(t *testing.T) {
	p, ln := behind(t)
	control, controlEnd := connect(t, p, ln, controlLane)
	data, dataEnd := connect(t, p, ln, dataLane)
	require.NoError(t, p.apply(linksUnder([]struck{{Fault{Kind: DataCut}, []int{0}}}, 2)))
	require.True(t, passes(t, control, controlEnd, ample))
	require.True(t, passes(t, controlEnd, control, ample))
	require.False(t, passes(t, data, dataEnd, soon))
	require.False(t, passes(t, dataEnd, data, soon), "what comes back is of the same lane")
	require.NoError(t, p.apply(linksUnder([]struck{{Fault{Kind: CutOneWay}, []int{0}}}, 2)))
	require.False(t, passes(t, control, controlEnd, soon))
	require.True(t, passes(t, controlEnd, control, ample), "the other direction is open")
	require.NoError(t, p.apply(newLinks(2)))
	var b [2]byte
	require.NoError(t, dataEnd.SetReadDeadline(time.Now().Add(ample)))
	_, err := io.ReadFull(dataEnd, b[:1])
	require.NoError(t, err)
	require.True(t, passes(t, data, dataEnd, ample))
}

// A connection that is reset loses what is in its sockets; one that is closed in order loses nothing.
func TestProxyEndsConnections(t *testing.T) {
	p, ln := behind(t)
	c, d := connect(t, p, ln, dataLane)
	_, err := c.Write(make([]byte, 100_000))
	require.NoError(t, err)
	require.NoError(t, c.CloseWrite())
	all, err := io.ReadAll(d)
	require.NoError(t, err)
	require.Len(t, all, 100_000)
	require.True(t, passes(t, d, c, ample), "the other direction is open still")

	c, d = connect(t, p, ln, dataLane)
	require.NoError(t, p.apply(linksUnder([]struck{{Fault: Fault{Kind: Reset, PerMille: 1000}}}, 2)))
	_, err = c.Write([]byte("chunk"))
	require.NoError(t, err)
	for _, end := range []net.Conn{c, d} {
		require.NoError(t, end.SetReadDeadline(time.Now().Add(ample)))
		_, err = io.Copy(io.Discard, end)
		require.ErrorContains(t, err, "reset")
	}
}

// Behind a cut a dead host and a living one look alike; without one, the dialler of a dead node learns it.
func TestProxyBeforeADeadNode(t *testing.T) {
	p, ln := behind(t)
	require.NoError(t, ln.Close())
	require.NoError(t, p.apply(linksUnder([]struck{{Fault{Kind: Cut}, []int{0}}}, 2)))
	c, err := net.Dial("tcp4", p.slots[1].self.String())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write(helloFrom(t, controlLane, p.slots[0].self.String()))
	require.NoError(t, err)
	var b [1]byte
	require.NoError(t, c.SetReadDeadline(time.Now().Add(soon)))
	_, err = c.Read(b[:])
	require.ErrorContains(t, err, "timeout")
	require.NoError(t, p.apply(newLinks(2)))
	require.NoError(t, c.SetReadDeadline(time.Now().Add(ample)))
	_, err = c.Read(b[:])
	require.ErrorContains(t, err, "reset")
}

// Loss and delay hold up what they hit and what is behind it, in order.
func TestProxyLosesAndDelays(t *testing.T) {
	p, ln := behind(t)
	c, d := connect(t, p, ln, dataLane)
	require.NoError(t, p.apply(linksUnder([]struck{{Fault: Fault{Kind: Delay, Extra: soon}},
		{Fault: Fault{Kind: Loss, PerMille: 500}}}, 2)))
	go func() {
		for i := range 20 {
			_, _ = c.Write([]byte{byte(i)})
		}
	}()
	began := time.Now()
	require.NoError(t, d.SetReadDeadline(began.Add(3*ample)))
	var b [20]byte
	_, err := io.ReadFull(d, b[:])
	require.NoError(t, err)
	for i := range b {
		require.EqualValues(t, i, b[i])
	}
	require.GreaterOrEqual(t, time.Since(began), soon, "never sooner than the delay")
}
