// Documents: their lines are no longer than those of the code, and a row of a table is one line.

package rules

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// wideLines returns the lines of a text that have more than 120 characters. Rows of tables cannot be broken.
func wideLines(text string) (wide []int) {
	for n, line := range strings.Split(text, "\n") {
		if utf8.RuneCountInString(line) > maxLine && !strings.HasPrefix(line, "|") {
			wide = append(wide, n+1)
		}
	}
	return wide
}

// brokenRows returns the lines of a text that are rows of a table without a first cell. Such a row goes on with what is
// above it, and is shown as one of its own. The head of a table may have no first cell.
func brokenRows(text string) (broken []int) {
	fenced, within := false, false
	for n, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		row := !fenced && strings.HasPrefix(line, "|")
		if row && within && strings.HasPrefix(strings.TrimLeft(line[1:], " "), "|") {
			broken = append(broken, n+1)
		}
		within = row
	}
	return broken
}

// TestTableRows holds that no row of a table is written as several (CARD-5).
func TestTableRows(t *testing.T) {
	for name, text := range documents(t) {
		require.Empty(t, brokenRows(text), "%s: rows that go on with the row above: write each row as one line", name)
	}
	table := "| | a |\n|---|---|\n| b | |\n|  | c |\n\n```\n| x |\n| | y |\n```\n|| a |\n"
	require.Equal(t, []int{4}, brokenRows(table))
}

// TestDocumentWidth holds that a reader sees whole lines of every document in an editor (CARD-5).
func TestDocumentWidth(t *testing.T) {
	var wide []string
	for name, text := range documents(t) {
		if lines := wideLines(text); len(lines) > 0 {
			wide = append(wide, name)
			t.Logf("%s: lines %v have more than %d characters", name, lines, maxLine)
		}
	}
	require.Empty(t, wide)
	require.Equal(t, []int{2}, wideLines("a\n"+strings.Repeat("é", maxLine+1)+"\n"+strings.Repeat("é", maxLine)+
		"\n|"+strings.Repeat("x", maxLine)))
}
