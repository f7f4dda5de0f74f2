// Tests of addresses as text.

package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

func TestParseAddr(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:7355": "127.0.0.1:7355", "[::1]:1": "[::1]:1", "Node-1.Local.:443": "node-1.local:443",
		"[::ffff:10.0.0.1]:5": "10.0.0.1:5",
	} {
		a, err := kith.ParseAddr(text)
		require.NoError(t, err, text)
		require.Equal(t, want, a.String())
		again, err := kith.ParseAddr(a.String())
		require.NoError(t, err)
		require.Equal(t, a, again)
	}
	for _, text := range []string{"", "host", "host:", ":1", "host:0", "host:65536", "::1:5", "a b:1"} {
		_, err := kith.ParseAddr(text)
		require.Error(t, err, text)
	}
}
