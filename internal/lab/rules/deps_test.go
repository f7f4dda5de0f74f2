// What an embedder pays: the third-party modules that the root package reaches, and the Makefile's promises.

package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// paid are the modules that an embedder may be made to compile: what the owner's card names, and what gnet pulls.
var paid = strings.Fields(`
	github.com/cespare/xxhash/v2 github.com/klauspost/compress github.com/valyala/bytebufferpool
	github.com/panjf2000/gnet/v2 github.com/panjf2000/ants/v2 go.uber.org/zap go.uber.org/multierr
	gopkg.in/natefinch/lumberjack.v2 golang.org/x/sync golang.org/x/sys`)

// strangers returns the modules of a `go list -deps` answer, one a line, that are neither ours nor paid.
func strangers(listed string) []string {
	var found []string
	for line := range strings.Lines(listed) {
		name := strings.TrimSpace(line)
		if name != "" && name != module && !slices.Contains(paid, name) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// TestRootReachesOnlyPaidModules asks the go command itself (CARD-1).
func TestRootReachesOnlyPaidModules(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	list.Dir = repository
	var complaint strings.Builder
	list.Stderr = &complaint
	out, err := list.Output()
	require.NoError(t, err, complaint.String())
	require.Contains(t, string(out), module, "the go command listed nothing of ours")
	require.Empty(t, strangers(string(out)))
}

// TestStrangersAreFound proves that the rule can fail.
func TestStrangersAreFound(t *testing.T) {
	require.Empty(t, strangers("\n"+module+"\ngithub.com/panjf2000/gnet/v2\n"))
	require.Equal(t, []string{"example.com/cli"}, strangers("\nexample.com/cli\n"+module+"\nexample.com/cli"))
}

// TestMakefileListsItsTargets holds that every target says in one line what it does and that none is missing.
func TestMakefileListsItsTargets(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	require.NoError(t, err)
	targets := regexp.MustCompile(`(?m)^([a-z0-9-]+):[^=\n]*?(?:## (.+))?$`).FindAllStringSubmatch(string(text), -1)
	var names []string
	for _, target := range targets {
		names = append(names, target[1])
		require.NotEmpty(t, target[2], "target %s has no description", target[1])
		require.Regexp(t, `(?m)^\.PHONY:.*\b`+target[1]+`\b`, string(text), "target %s is not phony", target[1])
	}
	require.Subset(t, names, strings.Fields(`help run test race storm scale kill-test planted fuzz bench bench-e2e
		bench-gate bench-peers test-peers check build clean`))
}
