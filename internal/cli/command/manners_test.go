// What a user of the command line may take for granted: help, one prefix, exit codes, an error that says what to do.

package command

import (
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli/env"
)

// kith help is --help, of a command too (OPS-1).
func TestHelpCommand(t *testing.T) {
	for words, flags := range map[string]string{"help": "--help", "help run": "run --help",
		"help cert issue": "cert issue --help"} {
		code, out, errs := program(t, strings.Fields(words)...)
		require.Equal(t, env.ExitOK, code, errs)
		_, want, _ := program(t, strings.Fields(flags)...)
		require.Equal(t, want, out, words)
	}
	code, _, errs := program(t, "help", "nonsense")
	require.Equal(t, env.ExitUsage, code)
	require.Contains(t, errs, "nonsense")
}

// status --json has what status says (OPS-1).
func TestStatusAsJSON(t *testing.T) {
	n, ask := asked(t)
	code, _, errs := ask("rebalancing pause TOKEN")
	require.Equal(t, env.ExitOK, code, errs)
	code, out, errs := ask("status --json")
	require.Equal(t, env.ExitOK, code, errs)
	var all map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	for name, want := range map[string]any{"state": "ready", "node": n.ID().String(), "leader": n.ID().String(),
		"members": 1., "up": 1., "converged": true, "rebalancing_paused_by": n.ID().String()} {
		require.Equal(t, want, all[name], name)
	}
	require.Contains(t, all, "since")
	require.Contains(t, all, "cluster")
	require.NoError(t, n.Close())
	code, out, errs = ask("status --json")
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, out, `"state":"ended"`)
	require.Contains(t, errs, "this node is ended")
}

// Files of TLS that are no good, and a port that is taken, are exit code 2, and the program says its name once (OPS-1).
func TestUnusableSettings(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	none := filepath.Join(t.TempDir(), "none.pem")
	for args, want := range map[string]string{
		"run --listen=" + l.Addr().String():                                                        "address already in use",
		"run --listen=127.0.0.1:0 --admin=" + l.Addr().String():                                    "address already in use",
		"dashboard 127.0.0.1:1 --listen=" + l.Addr().String():                                      "address already in use",
		"run --listen=127.0.0.1:0 --tls-cert=" + none + " --tls-key=" + none + " --tls-ca=" + none: "no such file",
		"run --name=":  "--name is empty",
		"shards \"\"":  "the name of the type is empty",
		"where \"\" x": "must not be empty",
	} {
		words := strings.Fields(args)
		for i, w := range words {
			words[i] = strings.ReplaceAll(w, `""`, "")
		}
		code, _, errs := program(t, words...)
		require.Equal(t, env.ExitUsage, code, "%s: %s", args, errs)
		require.Contains(t, errs, want, args)
		require.NotContains(t, errs, ": kith: ", args)
		require.Contains(t, errs, Name+": ", args)
	}
}

func TestPlainErrors(t *testing.T) {
	require.Equal(t, "bad configuration: a\nstart: b", env.Plain("kith: bad configuration: a\nkith: start: kith: b"))
	require.Equal(t, `cluster "kith" is another`, env.Plain(`cluster "kith" is another`))
}

// A user who asks the node's port instead of the admin interface's gets an error that says so, and so does one without
// a token (OPS-1).
func TestWrongPort(t *testing.T) {
	n, ask := asked(t)
	code, _, errs := program(t, "status", "--admin="+n.Addr().String())
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "the port of a kith node, which speaks no HTTP")
	code, _, errs = ask("leave")
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "--token-file")

	old, err := net.Listen("tcp", "127.0.0.1:0") // a node that answers in its own protocol
	require.NoError(t, err)
	defer old.Close()
	go func() {
		for nc, err := old.Accept(); err == nil; nc, err = old.Accept() {
			_, _ = nc.Write([]byte{12, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0})
			_ = nc.(*net.TCPConn).CloseWrite()
		}
	}()
	code, _, errs = program(t, "status", "--admin="+old.Addr().String())
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "speaks no HTTP: is it the port of the node itself")
}

// The codes of the program are those of kith.ExitCode.
func TestUnusableIsBadConfig(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = kith.Start(t.Context(), kith.Config{Listen: l.Addr().String()})
	require.ErrorIs(t, err, kith.ErrBadConfig)
	require.Equal(t, kith.ExitUsage, kith.ExitCode(err))
}
