// Tests of the commands that ask a running node.

package command

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/admin"
)

// asked starts a node with demo entities and its admin interface, and returns how to ask it.
func asked(t *testing.T) (n *kith.Node, ask func(args string) (code int, stdout, stderr string)) {
	t.Helper()
	n, err := kith.Start(t.Context(), kith.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	r, err := n.Register(demo(newLedger(), 10))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, n.Ready(ctx))
	require.NoError(t, r.Tell("a", make([]byte, 16)))
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef\n"), 0o600))
	s, err := admin.Start(n, admin.Config{Listen: "127.0.0.1:0", Token: "0123456789abcdef"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return n, func(args string) (int, string, string) {
		args = strings.ReplaceAll(args, "TOKEN", "--token-file="+file)
		return program(t, append(strings.Fields(args), "--admin="+s.Addr().String())...)
	}
}

// Each command asks the node and prints what it says; what is refused says why, with exit code 1.
func TestAskARunningNode(t *testing.T) {
	n, ask := asked(t)
	self := n.Addr().String()
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"status", 0, "ready since"},
		{"status --json", 0, `{"state":"ready"`},
		{"members", 0, self + "  up"},
		{"members --json", 0, `"self":"` + n.ID().String()},
		{"shards", 0, "counter  10"},
		{"shards counter", 0, "1 of 10 shards live somewhere"},
		{"shards counter --json", 0, `"coordinator":"` + n.ID().String()},
		{"shards none", 1, "not registered on this node"},
		{"explain", 0, "all members have seen one state"},
		{"down " + self + " --dry-run", 0, "it would be downed"},
		{"down 10.0.0.1:1 --dry-run", 1, "no member at"},
		{"down 10.0.0.1:1 TOKEN", 1, "unknown member"},
		{"down 10.0.0.1:1", 1, "the token is missing"},
		{"rebalancing pause TOKEN", 0, "nothing moves for balance"},
		{"rebalancing resume TOKEN", 0, "again"},
		{"move counter 99 " + self + " TOKEN", 1, "a number below 10"},
		{"move counter 1 10.0.0.1:1 TOKEN", 1, "no member at"},
		{"drain", 1, "the token is missing"},
		{"drain --wait --timeout=1ns TOKEN", 1, "no answer of the admin interface"},
		{"drain --undo TOKEN", 0, "may be given shards again"},
		{"leave", 1, "the token is missing"},
		{"leave TOKEN", 0, "leaving " + n.ID().String()},
	} {
		code, stdout, stderr := ask(c.args)
		require.Equal(t, c.code, code, "%s: %s", c.args, stderr)
		require.Contains(t, stdout+stderr, c.want, c.args)
	}
	<-n.Done()
	code, _, stderr := ask("status")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "this node is ended")
	code, stdout, _ := ask("events") // of a node that has ended: one last look
	require.Equal(t, 0, code)
	require.Contains(t, stdout, "snapshot")
	code, _, stderr = program(t, "status", "--admin=127.0.0.1:1")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no answer of the admin interface")
}

// A node that runs serves it, and one that is told to leave ends with exit code 0.
func TestRunServesItsAdminInterface(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	cmd, _, stderr := spawn(t, "run", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--admin-token-file="+file)
	line := until(t, stderr, "event=admin-started")
	_, at, _ := strings.Cut(line, "address=")
	at, _, _ = strings.Cut(at, " ")
	until(t, stderr, "node started")
	answer, err := http.Get("http://" + at + "/metrics")
	require.NoError(t, err)
	shown, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Contains(t, string(shown), "\nkith_ready ")
	code, stdout, text := program(t, "leave", "--admin="+at, "--token-file="+file)
	require.Equal(t, 0, code, text)
	require.True(t, bytes.HasPrefix([]byte(stdout), []byte("leaving")))
	until(t, stderr, "event=node-left")
	require.NoError(t, cmd.Wait())
}
