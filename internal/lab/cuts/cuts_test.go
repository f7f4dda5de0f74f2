// Tests of the proxies: what is cut hears nothing, what is gone refuses, and both come back.

package cuts

import (
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hello is what a node sends first: its address lies in it.
func hello(w *Network, from int) []byte {
	at := w.Addr(from)
	return append(append(make([]byte, 64), at.IP.To4()...), byte(at.Port), byte(at.Port>>8))
}

// dial has a node connect to another one, and say its address.
func dial(t *testing.T, w *Network, from, to int) *net.TCPConn {
	c, err := net.DialTCP("tcp4", nil, w.Addr(to))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(2*time.Minute)))
	_, err = c.Write(hello(w, from))
	require.NoError(t, err)
	return c
}

// answered demands that a node answers on a connection.
func answered(t *testing.T, c net.Conn) {
	_, err := io.ReadFull(c, make([]byte, 1))
	require.NoError(t, err)
}

// TestCuts: a node behind a cut gets nothing, one on the same side does; a node that is gone refuses, and is there when
// it comes; a connection that was there breaks with the cut.
func TestCuts(t *testing.T) {
	w, err := Lay(3)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	came := make([]atomic.Int32, 3)
	for i := range 3 {
		ln, err := net.Listen("tcp4", w.Back(i))
		require.NoError(t, err)
		t.Cleanup(func() { _ = ln.Close() })
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				came[i].Add(1)
				go func() {
					_, _ = io.CopyN(c, c, 1)
					_, _ = io.Copy(io.Discard, c)
					_ = c.Close()
				}()
			}
		}()
	}
	open := dial(t, w, 0, 1)
	answered(t, open)
	w.Cut(1)
	_, err = io.ReadFull(open, make([]byte, 1))
	require.Error(t, err)
	cut := dial(t, w, 0, 1)
	require.NoError(t, cut.CloseWrite())
	n, err := io.Copy(io.Discard, cut) // the proxy has heard all, and hangs up
	require.NoError(t, err)
	require.Zero(t, n)
	require.EqualValues(t, 1, came[1].Load())
	answered(t, dial(t, w, 0, 2))
	w.Cut()
	answered(t, dial(t, w, 0, 1))
	w.Gone(2)
	_, err = net.DialTCP("tcp4", nil, w.Addr(2))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoError(t, w.Comes(2))
	answered(t, dial(t, w, 0, 2))
}
