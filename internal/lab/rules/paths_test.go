// Paths: a document that names a file of the source, or a test, names one that is there.

package rules

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

var (
	testInDoc = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)(\\*|\\.\\.\\.)?")
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
)

// strayTests returns the tests that a text names and that are not there; one with a star or dots stands for several.
func strayTests(text string, there map[string]bool) (stray []string) {
	for _, m := range testInDoc.FindAllStringSubmatch(text, -1) {
		if m[2] == "" && !there[m[1]] {
			stray = append(stray, m[1])
		}
	}
	return stray
}

// TestTestsOfDocsExist: every test that a page names is there, in whatever module of the repository (CARD-5).
func TestTestsOfDocsExist(t *testing.T) {
	there := map[string]bool{}
	require.NoError(t, filepath.WalkDir(repository, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			there[m[1]] = true
		}
		return err
	}))
	require.Greater(t, len(there), 1000)
	for name, text := range documents(t) {
		require.Empty(t, strayTests(text, there), name)
	}
	require.Equal(t, []string{"TestB"}, strayTests("`TestA`, `TestB` and `TestC*`", map[string]bool{"TestA": true}))
}

// TestPathsOfDocs holds docs/contributing/where.md, where every row leads to files, against the source (CARD-2).
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
