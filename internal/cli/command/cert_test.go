// Tests of kith cert, and of nodes that run with what it made.

package command

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/cli/env"
)

func TestCertCommands(t *testing.T) {
	dir := t.TempDir() + "/certs"
	code, out, errs := program(t, "cert", "issue", "n1", "--dir", dir)
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "kith cert ca makes one")
	require.Empty(t, out)
	code, out, _ = program(t, "cert", "ca", "--dir", dir, "--name", "my CA", "--days", "20")
	require.Equal(t, env.ExitOK, code)
	require.Contains(t, out, "keep it where no node runs")
	code, _, errs = program(t, "cert", "ca", "--dir", dir)
	require.Equal(t, env.ExitFailed, code, "no overwriting")
	require.Contains(t, errs, "--force")

	code, out, _ = program(t, "cert", "issue", "n1", "--dir", dir, "--cluster", "market", "--host", "n1.local", "--host",
		"10.0.0.7",
		"--days", "10")
	require.Equal(t, env.ExitOK, code)
	require.Contains(t, out, `node "n1" of cluster "market"`)
	code, _, _ = program(t, "cert", "issue", "n2", "n3", "--dir", dir, "--out", dir+"/out", "--days", "1")
	require.Equal(t, env.ExitOK, code)
	require.FileExists(t, dir+"/out/n3.key")
	before, err := os.ReadFile(dir + "/n1.crt")
	require.NoError(t, err)
	code, _, errs = program(t, "cert", "issue", "n1", "--dir", dir, "--days", "1")
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "--force")
	code, _, errs = program(t, "cert", "issue", "n9", "--dir", dir, "--days", "21")
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "after its authority")
	after, err := os.ReadFile(dir + "/n1.crt")
	require.NoError(t, err)
	require.Equal(t, before, after)

	code, out, _ = program(t, "cert", "show", dir+"/n1.crt", dir+"/ca.crt")
	require.Equal(t, env.ExitOK, code)
	for _, want := range []string{"CN=n1", "CN=my CA", "server, client", "kith://cluster/market", "n1.local, 10.0.0.7",
		"9 days left",
		"authority  yes"} {
		require.Contains(t, out, want)
	}
	code, _, errs = program(t, "cert", "show", dir+"/n1.key")
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "no certificate")
	code, _, _ = program(t, "cert", "issue", "n1", "--dir", dir, "--days", "1", "--force")
	require.Equal(t, env.ExitOK, code)
}

func TestWrongCertCommandLines(t *testing.T) {
	for args, want := range map[string]string{
		"cert ca --days=0":                       "--days must be",
		"cert issue n1 --days=40000":             "--days must be",
		"cert issue ca":                          "the authority's name",
		"cert issue ../n1":                       "is no name",
		"cert issue n1 n2 --host=a":              "--host is for one name",
		"cert issue n1 --cluster=":               "--cluster must have",
		"cert issue n1 --host=10.0.0.1:7355":     "is no IP address and no host name",
		"cert issue n1 --host=a_b!":              "is no IP address and no host name",
		"cert issue n1 n2 n1":                    `"n1" is there twice`,
		"cert show /no/such/file":                "/no/such/file",
		"cert revoke":                            "name a node, a file or a --serial",
		"cert revoke n1 --days=0":                "--days must be",
		"cert revoke --serial=xyz":               "is no serial number",
		"cert crl --days=40000":                  "--days must be",
		"run --tls-crl=ca.crl":                   "CRLFile without certificates",
		"run --tls-cert=a --tls-key=b":           "are needed together",
		"run --listen=0.0.0.0:1 --advertise=h:1": "needs TLS, or Insecure",
		"run --tls-verify-host":                  "VerifyHost without certificates",
	} {
		code, out, errs := program(t, strings.Fields(args)...)
		require.Equal(t, env.ExitUsage, code, args)
		require.Contains(t, errs, want, args)
		require.Empty(t, out)
	}
}

// A node runs with the files of kith cert on an address that is not loopback, without a warning, and does not start
// with another cluster's.
func TestRunWithCertificates(t *testing.T) {
	dir := t.TempDir()
	for _, args := range []string{"ca", "issue n1", "issue n2 --cluster=other"} {
		code, _, errs := program(t, append([]string{"cert"}, append(strings.Fields(args), "--dir", dir)...)...)
		require.Equal(t, env.ExitOK, code, errs)
	}
	run := func(name string) []string {
		cert, key := pki.Paths(dir, name)
		return []string{"run", "--listen=0.0.0.0:0", "--advertise=127.0.0.1:7355", "--tls-cert", cert, "--tls-key", key,
			"--tls-ca", dir + "/ca.crt"}
	}
	code, _, errs := program(t, run("n2")...)
	require.Equal(t, env.ExitUsage, code)
	require.Contains(t, errs, "this node's own certificate would be refused")
	cmd, _, stderr := spawn(t, run("n1")...)
	log := until(t, stderr, "event=node-started")
	require.NotContains(t, log, "neither encrypted")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Contains(t, rest(stderr), "event=node-left")
	require.NoError(t, cmd.Wait())
}

// The local cluster over TLS: nothing lost, and nothing left behind.
func TestDevOverTLS(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd, stdout, stderr := spawn(t, "dev", "--duration=1s", "--progress", "--rate=5000", "--tls")
	log := rest(stderr)
	require.NoError(t, cmd.Wait(), log)
	requireClean(t, stdout.Bytes(), 3)
	require.Contains(t, log, "mutual TLS 1.3")
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// The authority's list: an empty one, one that grows, one by number, and what cannot be put on it.
func TestRevokeCommands(t *testing.T) {
	dir := t.TempDir()
	run := func(want int, args string) (out, errs string) {
		t.Helper()
		code, out, errs := program(t, append(strings.Fields("cert "+args), "--dir", dir)...)
		require.Equal(t, want, code, errs)
		return out, errs
	}
	_, errs := run(env.ExitFailed, "revoke n1")
	require.Contains(t, errs, "kith cert ca makes one")
	run(env.ExitOK, "ca")
	run(env.ExitOK, "issue n1 n2 n3")
	out, _ := run(env.ExitOK, "crl --days 7")
	require.Contains(t, out, "certificates revoked: 0")
	show := func() string {
		code, out, errs := program(t, "cert", "show", dir+"/ca.crl")
		require.Equal(t, env.ExitOK, code, errs)
		return out
	}
	require.NotContains(t, show(), "revoked")
	code, out, _ := program(t, "cert", "show", dir+"/n2.crt")
	require.Equal(t, env.ExitOK, code)
	_, serial, ok := strings.Cut(out, "serial ")
	require.True(t, ok)
	serial = strings.Fields(serial)[0]
	out, _ = run(env.ExitOK, "revoke n1")
	require.Contains(t, out, `"CN=n1", serial`)
	out, _ = run(env.ExitOK, "revoke n1 "+dir+"/n3.crt --serial "+serial)
	require.Contains(t, out, "was revoked before")
	require.Contains(t, out, "certificate, serial "+serial+": revoked")
	require.Contains(t, out, "certificates revoked: 3")
	require.Equal(t, 3, strings.Count(show(), "revoked "))
	require.Contains(t, show(), serial)
	before, err := os.ReadFile(pki.CRLPath(dir))
	require.NoError(t, err)
	for args, want := range map[string]string{
		"revoke ca": "is the authority itself", "revoke nobody": "no node's name, nor a file",
		"revoke n2 " + dir + "/n1.key": "no certificate",
	} {
		_, errs = run(env.ExitFailed, args)
		require.Contains(t, errs, want)
	}
	other := t.TempDir()
	for _, args := range []string{"ca", "issue n1", "crl"} {
		code, _, errs := program(t, append(strings.Fields("cert "+args), "--dir", other)...)
		require.Equal(t, env.ExitOK, code, errs)
	}
	_, errs = run(env.ExitFailed, "revoke "+other+"/n1.crt")
	require.Contains(t, errs, "was not issued by")
	after, err := os.ReadFile(pki.CRLPath(dir))
	require.NoError(t, err)
	require.Equal(t, before, after, "what failed has written nothing")
	require.NoError(t, os.Rename(pki.CRLPath(other), pki.CRLPath(dir)))
	_, errs = run(env.ExitFailed, "crl")
	require.Contains(t, errs, "the list is not one of")
}

// A node does not start with a certificate that its list names, and starts with that of another.
func TestRunWithRevoked(t *testing.T) {
	dir := t.TempDir()
	for _, args := range []string{"ca", "issue n1 n2", "revoke n2"} {
		code, _, errs := program(t, append([]string{"cert"}, append(strings.Fields(args), "--dir", dir)...)...)
		require.Equal(t, env.ExitOK, code, errs)
	}
	run := func(name string) []string {
		cert, key := pki.Paths(dir, name)
		return []string{"run", "--listen=127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--tls-ca", dir + "/ca.crt",
			"--tls-crl", pki.CRLPath(dir)}
	}
	code, _, errs := program(t, run("n2")...)
	require.Equal(t, env.ExitUsage, code)
	require.Contains(t, errs, "is revoked by")
	cmd, _, stderr := spawn(t, run("n1")...)
	until(t, stderr, "event=node-started")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Contains(t, rest(stderr), "event=node-left")
	require.NoError(t, cmd.Wait())
}

// A private key of the authority that others can read is warned of, by the commands that use it and by a node beside
// which it lies; what a certificate says is shown, and not obeyed (SEC-5).
func TestReadableAuthorityKey(t *testing.T) {
	dir := t.TempDir() + "/certs"
	code, _, _ := program(t, "cert", "ca", "--dir", dir, "--name", "my \x1b[2JCA\nhosts\tall")
	require.Equal(t, env.ExitOK, code)
	code, _, errs := program(t, "cert", "issue", "n1", "--dir", dir)
	require.Equal(t, env.ExitOK, code)
	require.Empty(t, errs)
	require.NoError(t, os.Chmod(dir+"/ca.key", 0o640))
	for _, args := range [][]string{{"cert", "issue", "n2"}, {"cert", "crl"}, {"cert", "revoke", "n2"}} {
		code, _, errs = program(t, append(args, "--dir", dir)...)
		require.Equal(t, env.ExitOK, code, errs)
		require.Contains(t, errs, "warning: others can read "+dir+"/ca.key (-rw-r-----)")
	}
	var log bytes.Buffer
	c := &runCmd{tlsFlags: tlsFlags{TLSCA: dir + "/ca.crt"}}
	c.warnOfKeys(slog.New(slog.NewTextHandler(&log, nil)))
	require.Contains(t, log.String(), "the authority's private key lies where a node runs")
	require.Contains(t, log.String(), "others can read the authority's private key")
	require.NoError(t, os.Remove(dir+"/ca.key"))
	log.Reset()
	c.warnOfKeys(slog.New(slog.NewTextHandler(&log, nil)))
	require.Empty(t, log.String())

	code, out, _ := program(t, "cert", "show", dir+"/ca.crt")
	require.Equal(t, env.ExitOK, code)
	require.Contains(t, out, `CN=my \u001b[2JCA\nhosts\tall`, "no row, and no cell, of its own")
	require.NotContains(t, out, "\x1b")
	code, out, _ = program(t, "cert", "show", "--json", dir+"/ca.crt", dir+"/n1.crt")
	require.Equal(t, env.ExitOK, code)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 2)
	var said map[string]string
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &said))
	require.Equal(t, "CN=my \x1b[2JCA\nhosts\tall", said["subject"])
	require.Equal(t, []string{dir + "/ca.crt", "yes"}, []string{said["file"], said["authority"]})
}
