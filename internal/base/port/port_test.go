// Tests of kept ports: refused to dials and free for a listener that names them.

package port

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A kept port refuses dials and can be listened on again and again, by its name.
func TestKeptPortIsFreeForItsName(t *testing.T) {
	addr := Keep(t)
	require.NotEqual(t, addr, Keep(t))
	for range 3 {
		_, err := net.Dial("tcp", addr)
		require.Error(t, err)
		ln, err := net.Listen("tcp", addr)
		require.NoError(t, err)
		out, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		in, err := ln.Accept()
		require.NoError(t, err)
		require.NoError(t, in.Close()) // closed here first: the port stays behind in TIME_WAIT
		require.NoError(t, out.Close())
		require.NoError(t, ln.Close())
	}
}

// The address is released with the test.
func TestKeptPortIsReleased(t *testing.T) {
	var addr string
	t.Run("keeps", func(t *testing.T) { addr = Keep(t) })
	ln, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, ln.Close())
}
