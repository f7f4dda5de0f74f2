// A test with a real process: the terminal that it was started from goes away (OPS-2).

package command

import (
	"bufio"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kith-io/kith/internal/cli/env/envtest"
)

// terminal returns both ends of a new pseudo terminal.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	require.NoError(t, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	return ours, theirs
}

// SIGHUP reloads while there is a terminal; once that is gone the node leaves, and does not live on unseen.
func TestRunLeavesWithItsTerminal(t *testing.T) {
	ours, theirs := terminal(t)
	defer ours.Close()
	cmd := envtest.Process(t, Name, "run", "--listen=127.0.0.1:0", "--log-format=json")
	cmd.Stdin = theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, theirs.Close())
	lines := bufio.NewScanner(log)
	until(t, lines, `"event":"node-started"`)
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	until(t, lines, `"event":"node-reloaded"`)
	require.NoError(t, ours.Close())
	said := rest(lines)
	require.NoError(t, cmd.Wait(), said)
	require.Contains(t, said, `"event":"node-left"`)
}
