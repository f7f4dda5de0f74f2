// The page of log lines: docs/logs.md and the source name the same messages, at the same levels.

package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// logLevels are the methods of a slog.Logger that log something for operators, and the word of the page.
var logLevels = map[string]string{"Info": "info", "Warn": "warning", "Error": "error"}

// literal returns the text of a string that is written out, in one piece or as a sum that may end in what is not.
func literal(e ast.Expr) (text string, ok bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := literal(x.X)
		right, more := literal(x.Y)
		if !more {
			right = "..."
		}
		return left + right, ok
	}
	return "", false
}

// messages returns the level of each message that a package logs.
func messages(t *testing.T, dir string) map[string]string {
	found := map[string]string{}
	files, err := filepath.Glob(filepath.Join("../../..", dir, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if ok && method.Sel.Name == "tell" && len(call.Args) > 1 { // of package admin: it warns
				if text, ok := literal(call.Args[1]); ok {
					found[text] = "warning"
				}
			}
			if !ok || logLevels[method.Sel.Name] == "" {
				return true
			}
			if text, ok := literal(call.Args[0]); ok {
				found[text] = logLevels[method.Sel.Name]
			}
			return true
		})
	}
	return found
}

var logRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (info|warning|error) \\| .+ \\|$")

// logging are the packages with records that operators of a node see.
const logging = "internal/runtime/driver internal/runtime/exec internal/runtime/transport " +
	"internal/runtime/trust internal/runtime/loop internal/base/logs internal/base/descriptors " +
	"internal/base/callback internal/cli/command admin bootstrap partition durable delivery service"

// TestPageOfLogLines: every warning and error that a node logs is on the page, with its level, and the page names no
// message that no node logs.
func TestPageOfLogLines(t *testing.T) {
	page, err := os.ReadFile("../../../docs/logs.md")
	require.NoError(t, err)
	told := map[string]string{}
	for _, row := range logRow.FindAllStringSubmatch(string(page), -1) {
		require.NotContains(t, told, row[1], "twice on the page")
		told[row[1]] = row[2]
	}
	logged := map[string]string{}
	for _, dir := range strings.Fields(logging) {
		for text, level := range messages(t, dir) {
			logged[text] = level
		}
	}
	for text, level := range logged {
		if level != "info" {
			require.Equal(t, level, told[text], "docs/logs.md and the source differ about %q", text)
		}
	}
	for text, level := range told {
		require.Equal(t, logged[text], level, "docs/logs.md names %q, which is not logged so", text)
	}
}

// behindAQueue are the packages that take a logger of an embedder's, or make one for a node, and put it behind a queue
// (internal/base/logs); the others are given theirs by these.
var behindAQueue = strings.Fields("driver admin bootstrap internal/cli/command internal/lab/chaos durable delivery " +
	"service")

// given are packages with a Logger in a configuration that one of those fills in, and commands that are no nodes.
var given = strings.Fields("root exec transport loop bench examples internal/base/logs")

// TestLoggersStandBehindAQueue: no goroutine that holds a lock, or carries a node, waits for somebody else's logger
// (OPS-1).
func TestLoggersStandBehindAQueue(t *testing.T) {
	takes, queued := map[string]bool{}, map[string]bool{}
	all, err := sources()
	require.NoError(t, err)
	for _, s := range all {
		if s.tests {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && len(field.Names) == 1 && field.Names[0].Name == "Logger" {
				takes[s.pkgName] = true
			}
			if call, ok := n.(*ast.SelectorExpr); ok {
				x, isName := call.X.(*ast.Ident)
				queued[s.pkgName] = queued[s.pkgName] ||
					isName && x.Name == "logs" && (call.Sel.Name == "Behind" || call.Sel.Name == "New")
			}
			return true
		})
	}
	for name := range takes {
		require.Contains(t, append(behindAQueue, given...), name, "it takes a Logger: put it behind a queue (logs.Behind)")
	}
	for _, name := range behindAQueue {
		require.True(t, queued[name], "%s puts no logger behind a queue", name)
	}
}
