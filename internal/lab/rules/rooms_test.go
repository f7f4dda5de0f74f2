// The rooms: what ships and what proves it lie apart, and a visitor can count what there is.

package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// deps returns all packages of the module that these link.
func deps(t *testing.T, packages ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-deps"}, packages...)...)
	cmd.Dir = repository
	out, err := cmd.Output()
	require.NoError(t, err)
	var own []string
	for _, path := range strings.Fields(string(out)) {
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
	require.LessOrEqual(t, len(strings.Fields(string(out))), 70)
}
