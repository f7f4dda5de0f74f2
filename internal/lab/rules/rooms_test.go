// The rooms: what ships and what proves it lie apart, and a visitor can count what there is.

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

// linked returns all packages that these link.
func linked(t *testing.T, packages ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-deps"}, packages...)...)
	cmd.Dir = repository
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// deps returns all packages of the module that these link.
func deps(t *testing.T, packages ...string) []string {
	t.Helper()
	var own []string
	for _, path := range linked(t, packages...) {
		if rest, ok := strings.CutPrefix(path, module+"/"); ok {
			own = append(own, rest)
		}
	}
	return own
}

// TestNothingThatShipsLinksTheLaboratory: neither an embedder nor the node binary has the simulator or the laboratory;
// the machines of a node know no runtime, and the runtime no simulator (CARD-2).
func TestNothingThatShipsLinksTheLaboratory(t *testing.T) {
	for _, c := range []struct {
		what   []string
		beyond []string
	}{
		{[]string{".", "./cmd/kith", "./cmd/node"}, []string{"internal/lab/", "internal/sim/"}},
		{[]string{"./internal/core/..."}, []string{"internal/lab/", "internal/sim/", "internal/runtime/"}},
		{[]string{"./internal/runtime/..."}, []string{"internal/lab/", "internal/sim/"}},
	} {
		own := deps(t, c.what...)
		require.Greater(t, len(own), 10, c.what)
		for _, pkgName := range own {
			for _, prefix := range c.beyond {
				require.False(t, strings.HasPrefix(pkgName, prefix), "%v links %s", c.what, pkgName)
			}
		}
	}
}

// TestNodeBinaryLinksNoTemplates: a template engine is half a megabyte of a binary that fills in none (CARD-2).
func TestNodeBinaryLinksNoTemplates(t *testing.T) {
	all := linked(t, "./cmd/kith")
	require.Contains(t, all, "net/http")
	require.NotContains(t, all, "text/template")
	require.NotContains(t, all, "html/template")
}

// mostOfBinary bounds bin/kith as `make build` makes it, in bytes. It came to 29.98 MB when the laboratory had left
// it; half a megabyte more is for what a node has learnt to do since: the partition table, watches, the proof by the
// lock. 0.3 MB more are for where an entity lives and what it answers (kith where, ask, tell; 79 kB), package service
// (48 kB), who is lost and when it is served again (80 kB), and presets and cancelled asks; 50 kB for what trying to
// break these has mended; 96 kB for leases in files and in Kubernetes; 172 kB for messages that are values, loops
// that read on, the page's words and pictures, verbs and completion; 140 kB for session leases, and for what waits
// for a killed process; 120 kB for pieces of messages between services of nodes, figures of values, and sessions when
// a clock is set; 210 kB for the machine and the seats of tenure in each node, fenced records and backups of stores,
// package service's end, and statements of the page; 100 kB for tenure in real nodes, its flags, metrics and verb,
// and loads of nodes; 210 kB for kith data and the routes that it asks, and for what an outage waits for; 170 kB for
// descriptors in reserve, a container's memory limit, drains that hand instances over first, and a command line that
// tells answers of strangers from those of nodes. What grows beyond that wants a reason here. 3.1 MB more hang on two
// libraries together: kong calls methods by names that it learns as it runs, and protobuf, which the Prometheus
// client links, asks for one called Methods, which reflect.Type has since Go 1.26. Because of either the linker keeps
// every exported method of each type that becomes an interface.
const mostOfBinary = 32_100_000

// TestLongNodeBinaryIsSmall builds it, which takes a minute where the go command has not built it yet (CARD-2).
func TestLongNodeBinaryIsSmall(t *testing.T) {
	long.Test(t)
	file := filepath.Join(t.TempDir(), "kith")
	cmd := exec.Command("go", "build", "-o", file, "./cmd/kith")
	cmd.Dir, cmd.Env = repository, append(os.Environ(), "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(mostOfBinary))
}

// TestFewRooms bounds what a visitor sees first: the rooms of internal/, the entries and the test files of the root.
func TestFewRooms(t *testing.T) {
	rooms, err := os.ReadDir(filepath.Join(repository, "internal"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(rooms), 8)
	tests, err := filepath.Glob(filepath.Join(repository, "*_test.go"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(tests), 8)
	cmd := exec.Command("git", "ls-tree", "--name-only", "HEAD")
	cmd.Dir = repository
	out, err := cmd.Output()
	if err != nil {
		t.Skip("no checkout of git: the entries of the root cannot be told from what was built there")
	}
	// packages that came later: replicated, topic, store, partition, durable, service, gateway, lease, delivery,
	// quorum
	const joined = 10
	require.LessOrEqual(t, len(strings.Fields(string(out))), 70+joined)
}
