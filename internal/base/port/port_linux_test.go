// Test of kept ports: the system gives them to nobody else.

package port

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A listener at any free port never gets a kept one. So many are kept that a port of theirs would come up at once.
func TestKeptPortIsGivenToNobody(t *testing.T) {
	kept := map[string]bool{}
	for range 500 {
		kept[Keep(t)] = true
	}
	sink, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer sink.Close()
	for range 2000 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.False(t, kept[ln.Addr().String()], "a listener got %s", ln.Addr())
		require.NoError(t, ln.Close())
	}
	for range 200 {
		out, err := net.Dial("tcp", sink.Addr().String())
		require.NoError(t, err)
		require.False(t, kept[out.LocalAddr().String()], "a dial got %s", out.LocalAddr())
		in, err := sink.Accept()
		require.NoError(t, err)
		require.NoError(t, out.(*net.TCPConn).SetLinger(0))
		require.NoError(t, out.Close())
		require.NoError(t, in.Close())
	}
}
