// Paths: a document that names a file of the source names one that is there.

package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// sourcePath is a path of a Go file in a document, written as code.
var sourcePath = regexp.MustCompile("`([a-z_]+(?:/[a-z_]+)*\\.go)`")

// strayPaths returns the paths in a text at which nothing is.
func strayPaths(text string, there func(path string) bool) []string {
	var stray []string
	for _, m := range sourcePath.FindAllStringSubmatch(text, -1) {
		if !there(m[1]) {
			stray = append(stray, m[1])
		}
	}
	return stray
}

// TestPathsOfDocs holds docs/contributing/where.md, whose every row leads to files, against the source (CARD-2).
func TestPathsOfDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs", "contributing", "where.md"))
	require.NoError(t, err)
	require.Greater(t, len(sourcePath.FindAllString(string(text), -1)), 80)
	require.Empty(t, strayPaths(string(text), func(path string) bool {
		_, err := os.Stat(filepath.Join(repository, filepath.FromSlash(path)))
		return err == nil
	}))
	onlyC := func(path string) bool { return path == "c.go" }
	require.Equal(t, []string{"a/b.go"}, strayPaths("`a/b.go` and `c.go`", onlyC))
}
