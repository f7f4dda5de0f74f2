// Tests of what a terminal gets to see (SEC-5).

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Orders to the terminal are escaped, lines and columns stay, and JSON means the same (SEC-5).
func TestCleanEscapesOrders(t *testing.T) {
	var b bytes.Buffer
	w := Clean(&b)
	n, err := fmt.Fprintf(w, "node: %s\n\tnext\n", "\x1b]0;owned\a\r\u009b2J\u202e")
	require.NoError(t, err)
	require.Equal(t, "node: "+`\u001b]0;owned\u0007\u000d\u009b2J\u202e`+"\n\tnext\n", b.String())
	require.Equal(t, len("node: \x1b]0;owned\a\r\u009b2J\u202e\n\tnext\n"), n)
	b.Reset()
	type line struct{ Name string }
	require.NoError(t, Line(w, "word", line{"\x1b\x7f\u0085größer"}))
	require.NotContains(t, b.String(), "\x7f")
	var got line
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(b.String(), "word ")), &got))
	require.Equal(t, "\x1b\x7f\u0085größer", got.Name)
}
