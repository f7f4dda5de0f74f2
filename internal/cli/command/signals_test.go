// Tests with real processes: signals of a node that runs, and a stderr that nobody reads (OPS-1, OPS-2).

package command

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
)

// pipeFull is more than a pipe holds.
const pipeFull = 1 << 20

// piped starts the program with a pipe as its stderr, of which the caller has the reading end.
func piped(t *testing.T, args ...string) (*exec.Cmd, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd := envtest.Process(t, Name, args...)
	cmd.Stderr = w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	t.Cleanup(func() { _ = r.Close() })
	return cmd, r
}

// waits returns how a process has ended, which it must do.
func waits(t *testing.T, cmd *exec.Cmd) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	over := make(chan struct{})
	go func() {
		defer close(over)
		within(4*time.Minute, nil)
	}()
	select {
	case err := <-ended:
		return err
	case <-over:
		require.FailNow(t, "the process does not end")
		return nil
	}
}

var adminAt = regexp.MustCompile(`"event":"admin-started","address":"([^"]+)"`)

// answers asks a node's admin interface, and returns the answer's code.
func answers(t *testing.T, address, path string) int {
	t.Helper()
	a, err := (&http.Client{Timeout: 20 * time.Second}).Get("http://" + address + path)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, a.Body)
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	return a.StatusCode
}

// A node goes on while nobody reads its stderr, says so in its metrics, and leaves on SIGTERM.
func TestRunGoesOnWithAStuckStderr(t *testing.T) {
	cmd, r := piped(t, "run", "--listen=127.0.0.1:0", "--log-format=json", "--log-level=debug", "--stats-every=100ms",
		"--admin=127.0.0.1:0", "--demo")
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, pipeFull)
	at := adminAt.FindStringSubmatch(until(t, lines, `"event":"admin-started"`))
	require.NotNil(t, at)
	stalled := regexp.MustCompile(`(?m)^kith_log_stalled_seconds (\S+)$`)
	require.Eventually(t, func() bool { // nobody reads from here on
		require.NoError(t, cmd.Process.Signal(syscall.SIGUSR1)) // a line of statistics is some KiB
		a, err := http.Get("http://" + at[1] + "/metrics")
		require.NoError(t, err)
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		found := stalled.FindStringSubmatch(string(text))
		require.NotNil(t, found)
		return !strings.HasPrefix(found[1], "0") || strings.HasPrefix(found[1], "0.") && found[1] > "0.5"
	}, 4*time.Minute, tick)
	require.Equal(t, 200, answers(t, at[1], "/health/ready"))
	require.Equal(t, 200, answers(t, at[1], "/health/alive"))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, waits(t, cmd))
}

// A log that nobody can read any more ends nobody: the reader of a pipe goes away, as a journal that is restarted.
func TestRunGoesOnWithAClosedStderr(t *testing.T) {
	cmd, r := piped(t, "run", "--listen=127.0.0.1:0", "--log-format=json", "--log-level=debug", "--admin=127.0.0.1:0")
	at := adminAt.FindStringSubmatch(until(t, bufio.NewScanner(r), `"event":"admin-started"`))
	require.NotNil(t, at)
	require.NoError(t, r.Close())
	for range 8 { // each is a line of the log
		require.NoError(t, cmd.Process.Signal(syscall.SIGUSR1))
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
		require.Equal(t, 200, answers(t, at[1], "/health/alive"))
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, waits(t, cmd))
}

// SIGHUP reads the configuration anew: the level of the log changes, what cannot change is named, and what is wrong
// changes nothing. SIGTERM still has it leave.
func TestRunReloadsOnHangup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kith.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("log-level: info\nroles: [a]\n")
	cmd, _, stderr := spawn(t, "run", "--listen=127.0.0.1:0", "--log-format=json", "--config="+file)
	until(t, stderr, `"event":"node-started"`)
	write("log-level: debug\nroles: [b]\nstats-every: 200ms\n")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	log := until(t, stderr, `"msg":"reloaded"`)
	require.Contains(t, log, `"changed":["log-level","stats-every"]`)
	require.Contains(t, log, `"settings":["roles"]`)
	until(t, stderr, "stats {")
	write("log-level: debug\nroles: [b]\nstats-every: 1ms\n")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	require.Contains(t, until(t, stderr, `"event":"node-reload-failed"`), "kith.yaml:3")
	write("log-level: warn\nroles: [b]\n")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	require.NotContains(t, until(t, stderr, "the next start"), `"msg":"reloaded"`, "that is info")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), rest(stderr))
}

// A second SIGTERM while the node leaves, as orchestrators send it, is logged and changes nothing; SIGINT then ends the
// process at once, with an exit code of its own.
func TestSignalsWhileANodeLeaves(t *testing.T) {
	for _, c := range []struct {
		first, second syscall.Signal
		code          int
		says          string
	}{
		{syscall.SIGTERM, syscall.SIGTERM, 0, `"event":"node-left"`},
		{syscall.SIGINT, syscall.SIGTERM, 0, `"event":"node-left"`},
		{syscall.SIGTERM, syscall.SIGHUP, 0, `"event":"node-left"`},
		{syscall.SIGINT, syscall.SIGINT, env.ExitInterrupted, `"event":"node-interrupted"`},
		{syscall.SIGTERM, syscall.SIGINT, env.ExitInterrupted, `"event":"node-interrupted"`},
	} {
		first, _, other := spawn(t, "run", "--listen=127.0.0.1:0", "--log-format=json")
		line := until(t, other, `"event":"node-started"`)
		addr := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line)
		cmd, _, stderr := spawn(t, "run", "--listen=127.0.0.1:0", "--log-format=json", "--seeds="+addr, "--demo")
		until(t, stderr, `"event":"member-up"`)
		require.NoError(t, first.Process.Signal(syscall.SIGSTOP)) // so that nobody lets it go
		require.NoError(t, cmd.Process.Signal(c.first))
		until(t, stderr, `"event":"node-leaving"`)
		require.NoError(t, cmd.Process.Signal(c.second))
		log := ""
		if c.second != syscall.SIGHUP {
			log = until(t, stderr, `"signal":`)
		}
		require.NoError(t, first.Process.Signal(syscall.SIGCONT))
		log += rest(stderr)
		_ = cmd.Wait()
		require.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%v, %v: %s", c.first, c.second, log)
		require.Contains(t, log, c.says)
		require.NoError(t, first.Process.Kill())
	}
}

// SIGHUP reads the file of the admin interface's token; when it is no good the old one stays, and a warning says so.
func TestRunReloadsItsToken(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("the-first-token-of-it\n")
	cmd, _, stderr := spawn(t, "run", "--listen=127.0.0.1:0", "--log-format=json", "--admin=127.0.0.1:0",
		"--admin-token-file="+file)
	at := adminAt.FindStringSubmatch(until(t, stderr, `"event":"admin-started"`, `"event":"node-started"`))
	pauses := func(token string) int {
		own := filepath.Join(dir, "own")
		require.NoError(t, os.WriteFile(own, []byte(token), 0o600))
		code, _, _ := program(t, "rebalancing", "resume", "--admin="+at[1], "--token-file="+own)
		return code
	}
	require.Equal(t, env.ExitOK, pauses("the-first-token-of-it"))
	write("the-second-token-of-it\n")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	require.Contains(t, until(t, stderr, `"event":"node-reloaded"`), `"token":true`)
	require.Equal(t, env.ExitFailed, pauses("the-first-token-of-it"))
	require.Equal(t, env.ExitOK, pauses("the-second-token-of-it"))
	require.NoError(t, os.Remove(file))
	for _, bad := range []func() error{
		func() error { return os.WriteFile(file, nil, 0o600) },
		func() error { return os.WriteFile(file, []byte("short"), 0o600) },
		func() error { return os.WriteFile(file, bytes.Repeat([]byte("x"), 4<<10+1), 0o600) },
		func() error { return os.Mkdir(file, 0o700) },
		func() error { return nil },
	} {
		require.NoError(t, bad())
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
		line := until(t, stderr, "admin token not reloaded: the one that is in force stays")
		require.Contains(t, line, `"level":"WARN"`)
		require.Contains(t, line, `"file":"`+file+`"`)
		until(t, stderr, "the configuration is wrong: its settings stay as they are")
		require.Equal(t, env.ExitOK, pauses("the-second-token-of-it"))
		require.NoError(t, os.RemoveAll(file))
	}
	write("the-second-token-of-it\n")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), rest(stderr))
}

// SIGHUP loads certificates at once, and says so when they are no good: then those that are in force stay.
func TestRunReloadsCertificates(t *testing.T) {
	dir := t.TempDir()
	makes := func(args ...string) {
		code, _, errs := program(t, append(append([]string{"cert"}, args...), "--dir", dir)...)
		require.Equal(t, env.ExitOK, code, errs)
	}
	makes("ca")
	makes("issue", "n1")
	cmd, _, stderr := spawn(t, "run", "--listen=127.0.0.1:0", "--log-format=json", "--tls-cert="+dir+"/n1.crt",
		"--tls-key="+dir+"/n1.key", "--tls-ca="+dir+"/ca.crt")
	until(t, stderr, `"event":"node-started"`)
	makes("issue", "n1", "--force")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	log := until(t, stderr, `"event":"node-reloaded"`)
	require.Contains(t, log, `"msg":"tls credentials loaded","number":2`)
	require.NoError(t, os.WriteFile(dir+"/n1.crt", []byte("nonsense"), 0o600))
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	until(t, stderr, `"event":"node-reload-failed"`)
	require.Contains(t, until(t, stderr, `"event":"node-reloaded"`), `"certificates":false`)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), rest(stderr))
}
