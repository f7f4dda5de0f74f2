// Documents: their lines are no longer than those of the code.

package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// wideLines returns the lines of a text that have more than 120 characters.
func wideLines(text string) (wide []int) {
	for n, line := range strings.Split(text, "\n") {
		if utf8.RuneCountInString(line) > maxLine {
			wide = append(wide, n+1)
		}
	}
	return wide
}

// TestDocumentWidth holds that a reader sees whole lines of every document in an editor (CARD-5).
func TestDocumentWidth(t *testing.T) {
	var wide, names []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		require.NoError(t, err)
		names = append(names, found...)
	}
	require.Greater(t, len(names), 20)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		name, err = filepath.Rel(repository, name)
		require.NoError(t, err)
		if lines := wideLines(string(text)); len(lines) > 0 {
			wide = append(wide, filepath.ToSlash(name))
			t.Logf("%s: lines %v have more than %d characters", name, lines, maxLine)
		}
	}
	require.Empty(t, wide)
	require.Equal(t, []int{2}, wideLines("a\n"+strings.Repeat("é", maxLine+1)+"\n"+strings.Repeat("é", maxLine)))
}
