// What a user of the command line may take for granted: help, one prefix, exit codes, an error that says what to do.

package command

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/admin"
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

// The port of the node asked for that of its admin interface is an error that says so, and so is a token that is
// missing (OPS-1).
func TestWrongPort(t *testing.T) {
	n, ask := asked(t)
	for _, verb := range []string{"status", "events", "top"} {
		code, _, errs := program(t, verb, "--admin="+n.Addr().String())
		require.Equal(t, env.ExitFailed, code)
		require.Contains(t, errs, "the port of a kith node, which speaks no HTTP", verb)
	}
	code, _, errs := ask("leave")
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

// An admin interface with TLS is asked with --ca, and by the name of its node where its certificate has no host; what
// is missing, or too much, is said (ADM-1).
func TestAdminWithTLS(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range []string{"ca --dir=.", "issue n1 n2 --dir=. --cluster=market",
		"issue n3 --dir=. --host=127.0.0.1", "ca --dir=other"} {
		code, _, errs := program(t, strings.Fields("cert "+args)...)
		require.Equal(t, env.ExitOK, code, errs)
	}
	n, err := kith.Start(t.Context(), kith.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, n.Ready(ctx))
	at := map[string]string{}
	for _, name := range []string{"", "n1", "n3"} {
		cfg := admin.Config{Listen: "127.0.0.1:0"}
		if name != "" {
			pair, err := tls.LoadX509KeyPair(name+".crt", name+".key")
			require.NoError(t, err)
			cfg.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
		}
		s, err := admin.Start(n, cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		at[name] = s.Addr().String()
	}
	const ca = " --ca=ca.crt"
	for _, c := range []struct{ node, args, want string }{
		{"n1", ca + " --server-name=n1", ""},
		{"n3", ca, ""},
		{"n3", ca + " --server-name=n3", ""},
		{"n3", ca + " --server-name=127.0.0.1", ""},
		{"", "", ""},
		{"n1", "", "this port speaks TLS: --admin=https://" + at["n1"] + " and --ca=FILE"},
		{"n1", ca, `it is the certificate of "n1": is that the node that is meant (--ca and --server-name)?`},
		{"n1", ca + " --server-name=n2", `it is the certificate of "n1"`},
		{"n1", ca + " --server-name=market", `it is the certificate of "n1"`},
		{"n1", " --ca=other/ca.crt --server-name=n1", "unknown authority"},
		{"n1", " --server-name=n1", "(--ca and --server-name)"},
		{"n3", " --server-name=127.0.0.1", "--ca=FILE names the authority"},
		{"", ca, at[""] + " speaks no TLS"},
	} {
		for _, verb := range []string{"status", "events --timeout=1m"} {
			if verb != "status" && c.want == "" {
				continue // they do not end
			}
			code, out, errs := program(t, strings.Fields(verb+" --admin="+at[c.node]+c.args)...)
			if c.want == "" {
				require.Equal(t, env.ExitOK, code, "%s: %s", c.args, errs)
				require.Contains(t, out, "ready since")
				continue
			}
			require.Equal(t, env.ExitFailed, code, c.args)
			require.Contains(t, errs, c.want, c.args)
		}
	}
	code, _, errs := program(t, "status", "--admin="+n.Addr().String(), strings.TrimSpace(ca))
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "is it the port of the node itself")
}
