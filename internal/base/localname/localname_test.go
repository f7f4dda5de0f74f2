// Tests of the names that a listener on loopback answers to.

package localname

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func at(host string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(host), Port: 1} }

// Names of others are not answered to on loopback without TLS; anything is elsewhere, as by the names of services and
// by the addresses of pods (SEC-1).
func TestNames(t *testing.T) {
	for host, want := range map[string]bool{"": true, "127.0.0.1": true, "127.0.0.1:7626": true, "10.1.2.3:80": true,
		"[::1]:7626": true, "[::1]": true, "::1": true, "localhost": true, "LocalHost.:7626": true, "a.localhost:1": true,
		"n1.test": true, "N1.test.:9": true, "mine": true, "evil.example": false, "evil.example:7626": false,
		"localhost.evil.example": false, "notlocalhost": false, "127.0.0.1.evil.example": false, "0x7f000001": false,
		"n1.test.evil.example": false, "mine:": true, "[mine": true, "a b": false, "127.1": false} {
		for _, where := range []string{"127.0.0.1", "127.9.8.7", "::1"} {
			require.Equal(t, want, Of(at(where), false, "n1.test:7355", "", "Mine.").Has(host), "%q at %s", host, where)
		}
		require.True(t, Of(at("127.0.0.1"), true).Has(host), "%q with TLS", host)
		for _, where := range []string{"0.0.0.0", "10.0.0.1", "::"} {
			require.True(t, Of(at(where), false).Has(host), "%q at %s", host, where)
		}
	}
	require.False(t, Names{}.Has("evil.example"))
	require.True(t, Same("A.test.:1", "a.test"))
	require.False(t, Same("a.test:1", "b.test:1"))
}

// Which hosts of a configuration are this machine's own.
func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{"127.0.0.1": true, "::1": true, "127.3.2.1": true, "localhost": true,
		"": false, "0.0.0.0": false, "10.0.0.1": false, "localhost.example": false} {
		require.Equal(t, want, Loopback(host), host)
	}
}
