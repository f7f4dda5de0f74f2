// Programs that pages show: they stand there to the letter as they are compiled and run.

package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shown returns the first block of Go behind the mark of a page, "" where there is none.
func shown(page, mark string) string {
	_, part, _ := strings.Cut(page, "<!-- "+mark+":begin")
	part, _, ended := strings.Cut(part, "<!-- "+mark+":end -->")
	_, code, _ := strings.Cut(part, "```go\n")
	code, _, closed := strings.Cut(code, "```")
	if !ended || !closed {
		return ""
	}
	return code
}

// TestPagesShowWhatRuns holds programs from their package clause on, and a test as it stands in its file.
func TestPagesShowWhatRuns(t *testing.T) {
	for _, c := range []struct{ page, mark, source, from string }{
		{"README.md", "first", "examples/first/main.go", "package main\n"},
		{"docs/quickstart.md", "embed", "examples/embed/main.go", "package main\n"},
		{"docs/quickstart.md", "kinds", "examples/kinds/main.go", "// shout asks"},
		{"docs/tutorial.md", "lobby", "examples/lobby/main.go", "package main\n"},
		{"docs/tutorial.md", "lobby-test", "examples/lobby/main_test.go", ""},
		{"docs/durable.md", "durable", "test/durable/purse/main.go", "package main\n"},
		{"docs/delivery.md", "delivery", "delivery/example_test.go", ""},
		{"docs/sql.md", "sql", "test/sqlfence/account/main.go", "package main\n"},
		{"docs/simulator.md", "simtest", "sim/book_test.go", ""},
	} {
		page, err := os.ReadFile(filepath.Join(repository, c.page))
		require.NoError(t, err)
		source, err := os.ReadFile(filepath.Join(repository, c.source))
		require.NoError(t, err)
		code := shown(string(page), c.mark)
		require.NotEmpty(t, code, c.page)
		if c.from == "" {
			require.Contains(t, string(source), "\n"+code+"\n", c.page)
			continue
		}
		_, program, _ := strings.Cut(string(source), "\n"+c.from)
		require.Equal(t, c.from+program, code, c.page)
	}
	page := "<!-- a:begin (x) -->\n```go\nx\n```\n<!-- a:end -->\n<!-- b:begin -->\n<!-- b:end -->\n```go\ny\n```\n"
	require.Equal(t, "x\n", shown(page, "a"))
	require.Empty(t, shown(page, "b"))
	require.Empty(t, shown(page, "c"))
}
