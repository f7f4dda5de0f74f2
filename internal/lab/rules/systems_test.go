// Other systems: what compiles where. No test can run there; the compiler and vet need no such machine.

package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
)

// forSystem runs the go command for another system from the root of the repository.
func forSystem(system, arch string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// On macOS the library and the node binary compile. On Windows the library does, so that tests on sim run there,
// and the node binary is one error that says so (API-2).
func TestLongOtherSystems(t *testing.T) {
	long.Test(t)
	out, err := forSystem("darwin", "arm64", "build", "./sim", "./service", "./cmd/kith", "./internal/lab/chaos")
	require.NoError(t, err, "darwin: %s", out)
	out, err = forSystem("windows", "amd64", "build", "./sim", "./service", "./gateway", "./durable/durabletest",
		"./sqlfence", "./examples/first")
	require.NoError(t, err, "windows: %s", out)
	out, err = forSystem("windows", "amd64", "build", "./cmd/kith")
	require.Error(t, err)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 2, "the package, and one error: %s", out)
	require.Contains(t, out, "kith_nodes_run_on_Linux_macOS_and_the_BSDs")
}
