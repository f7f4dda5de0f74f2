// The rules under test: each is fed snippets that break it and snippets that do not.

package rules

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// judged parses text as the file at name and applies one rule.
func judged(t *testing.T, rule func(*source) []finding, name, text string) []finding {
	t.Helper()
	s, err := parse(name, []byte(text))
	require.NoError(t, err)
	return rule(s)
}

// TestRoomOf holds how folders become packages.
func TestRoomOf(t *testing.T) {
	for dir, pkgName := range map[string]string{
		".": root, "wire": "wire", "cmd/kith": "cmd/kith", "cmd/kith/internal/ui": "cmd/kith",
		"examples/embed": "examples", "bench/tcp": "bench", "wireless": "wireless", "cmd": "cmd",
	} {
		require.Equal(t, pkgName, packageOf(dir), dir)
	}
}

// TestImportsRule feeds the matrix allowed and forbidden imports.
func TestImportsRule(t *testing.T) {
	for _, c := range []struct {
		file, target string
		broken       bool
	}{
		{"peer/x.go", module + "/wire", false},
		{"peer/x.go", module + "/internal/base/invariant", false},
		{"peer/x.go", module + "/route", true},
		{"wire/x.go", module + "/peer", true},
		{"wire/x_test.go", module + "/peer", false},
		{"entity/x.go", module + "/wire", true},
		{"internal/cli/command/x.go", module, false},
		{"internal/cli/command/x.go", module + "/driver", true},
		{"cmd/kith/x.go", module, true},
		{"shard/x.go", module, true},
		{"bench/tcp/x.go", module + "/bench", false},
		{"attic/x.go", "fmt", true},
		{"wire/x.go", module + "-other/peer", false},
		{"wire/x.go", "encoding/binary", false},
	} {
		text := "package x\nimport _ \"" + c.target + "\"\n"
		require.Equal(t, c.broken, len(judged(t, imports, c.file, text)) > 0, "%s imports %s", c.file, c.target)
	}
}

// TestPurityRule feeds the ban one breach after another, and look-alikes that are none.
func TestPurityRule(t *testing.T) {
	broken := map[string]string{
		"goroutine":        "func f() { go f() }",
		"select":           "func f() { select {} }",
		"channel type":     "var c chan int",
		"channel made":     "func f() { _ = make(chan int) }",
		"receive":          "func f(c interface{ C() }) { _ = <-c }",
		"send":             "func f() { c <- 1 }",
		"sync":             `import "sync"; var m sync.Mutex`,
		"atomic":           `import "sync/atomic"; var n atomic.Int64`,
		"os":               `import "os"; var a = os.Args`,
		"os below":         `import _ "os/exec"`,
		"net":              `import _ "net"`,
		"http":             `import _ "net/http"`,
		"log":              `import _ "log"`,
		"slog":             `import _ "log/slog"`,
		"context":          `import "context"; var c = context.Background()`,
		"old rand":         `import "math/rand"; var n = rand.New(nil)`,
		"crypto rand":      `import _ "crypto/rand"`,
		"maphash":          `import _ "hash/maphash"`,
		"global rand":      `import "math/rand/v2"; var n = rand.IntN(3)`,
		"global rand name": `import r "math/rand/v2"; var n = r.Uint64()`,
		"now":              `import "time"; var n = time.Now()`,
		"since":            `import "time"; func f(t time.Time) { _ = time.Since(t) }`,
		"until as value":   `import "time"; var f = time.Until`,
		"sleep":            `import "time"; func f() { time.Sleep(1) }`,
		"after":            `import "time"; var c = time.After(1)`,
		"timer":            `import "time"; var c = time.NewTimer(1)`,
		"renamed clock":    `import clock "time"; var n = clock.Now()`,
		"dot import":       `import . "time"; var n = Now()`,
		"exp":              `import "math"; var n = math.Exp(1)`,
		"pow":              `import "math"; var n = math.Pow(1, 2)`,
		"log10":            `import "math"; var n = math.Log10(1)`,
	}
	for name, text := range broken {
		text = "package x\n" + text + "\n"
		require.NotEmpty(t, judged(t, impure, "fd/x.go", text), name)
		require.Empty(t, judged(t, impure, "fd/x_test.go", text), "%s in a test", name)
		require.Empty(t, judged(t, impure, "internal/runtime/driver/x.go", text), "%s in a runtime", name)
	}
	fine := map[string]string{
		"duration":    `import "time"; const d time.Duration = 3 * time.Second`,
		"context":     `import "context"; func f(c context.Context) {}`,
		"netip":       `import "net/netip"; var a netip.Addr`,
		"passed rand": `import "math/rand/v2"; func f(r *rand.Rand) int { return r.IntN(3) }`,
		"sqrt":        `import "math"; var n = math.Sqrt(2)`,
		"own Now":     `type c struct{}; func (c) Now() int { return 1 }; func f(time c) int { return time.Now() }`,
	}
	for name, text := range fine {
		require.Empty(t, judged(t, impure, "fd/x.go", "package x\n"+text+"\n"), name)
	}
	display := "package x\nimport \"math\"\nvar n = math.Exp(1)\n"
	require.Empty(t, judged(t, impure, "fd/display.go", display))
	require.NotEmpty(t, judged(t, impure, "fd/display.go", display+"func f() { go f() }\n"))
}

// TestPurposeRule feeds files with and without a first comment.
func TestPurposeRule(t *testing.T) {
	require.Empty(t, judged(t, purpose, "fd/x.go", "// What it is for.\n\npackage x\n"))
	require.Empty(t, judged(t, purpose, "fd/x.go", "// What it is for.\n\n//go:build race\n\npackage x\n"))
	require.Empty(t, judged(t, purpose, "fd/x.go", "// Package x is.\npackage x\n"))
	require.NotEmpty(t, judged(t, purpose, "fd/x.go", "package x\n"))
	require.NotEmpty(t, judged(t, purpose, "fd/x.go", "//go:build race\n\npackage x\n"))
	require.NotEmpty(t, judged(t, purpose, "fd/x.go", "package x\n\n// Too late.\nvar a int\n"))
	require.NotEmpty(t, judged(t, purpose, "fd/x_test.go", "package x\n"))
}

// TestDocumentedRule feeds declarations with and without doc comments.
func TestDocumentedRule(t *testing.T) {
	broken := []string{
		"func F() {}", "type T int", "const C = 1", "var V int", "type t int\n\ntype (\n\tU int\n)",
		"// T is.\ntype T int\n\nfunc (T) M() {}", "// T is.\ntype T[K any] struct{}\n\nfunc (t *T[K]) M() {}",
		"const (\n\ta = 1\n\tB = 2\n)", "//go:noinline\nfunc F() {}", "// Group.\ntype (\n\tA int\n\tB int\n)",
	}
	for _, text := range broken {
		require.NotEmpty(t, judged(t, documented, "fd/x.go", "package x\n\n"+text+"\n"), text)
		require.Empty(t, judged(t, documented, "fd/x_test.go", "package x\n\n"+text+"\n"), text)
	}
	fine := []string{
		"// F does.\nfunc F() {}", "func f() {}", "// C is.\nconst C = 1", "const (\n\tC = 1 // is\n)",
		"// All of them.\nconst (\n\tA = 1\n\tB = 2\n)", "type t int\n\nfunc (t) M() {}", "// T is.\ntype T struct{ F int }",
		"type (\n\t// A is.\n\tA int\n)",
	}
	for _, text := range fine {
		require.Empty(t, judged(t, documented, "fd/x.go", "package x\n\n"+text+"\n"), text)
	}
}

// TestWideRule feeds lines at and over the bound; a tab is one character, and so is one of several bytes.
func TestWideRule(t *testing.T) {
	fine := "package x\n\nfunc f() {\n\t// " + strings.Repeat("ü", maxLine-4) + "\n}\n"
	require.Empty(t, judged(t, wide, "fd/x.go", fine))
	for _, name := range []string{"fd/x.go", "fd/x_test.go"} {
		found := judged(t, wide, name, strings.Replace(fine, "ü", "üu", 1))
		require.Len(t, found, 1)
		require.Contains(t, string(found[0]), name+":4: ")
	}
	require.Empty(t, judged(t, wide, "fd/x.go", "// Code generated by x. DO NOT EDIT.\n\n"+fine+"// "+
		strings.Repeat("u", maxLine)+"\n"))
}

// TestLengthsRule feeds functions at and over their bound, and stale list entries.
func TestLengthsRule(t *testing.T) {
	function := func(lines int) string {
		return "package x\n\nfunc (t *T[K]) f() {\n" + strings.Repeat("\tg()\n", lines-2) + "}\n"
	}
	none := map[string]int{}
	require.Empty(t, judged(t, lengths(none), "fd/x.go", function(maxFunction)))
	require.Len(t, judged(t, lengths(none), "fd/x.go", function(maxFunction+1)), 1)
	listed := map[string]int{"fd.T.f": maxFunction + 1}
	require.Empty(t, judged(t, lengths(listed), "fd/x.go", function(maxFunction+1)))
	require.NotEmpty(t, judged(t, lengths(listed), "fd/x.go", function(maxFunction+2)), "it grew")
	require.NotEmpty(t, judged(t, lengths(listed), "fd/x.go", function(maxFunction)), "it is short now")
}

// TestFormattedRule feeds text that gofmt would change.
func TestFormattedRule(t *testing.T) {
	require.Empty(t, judged(t, formatted, "fd/x.go", "package x\n\nvar a int\n"))
	require.NotEmpty(t, judged(t, formatted, "fd/x.go", "package x\n\nvar a  int\n"))
	require.NotEmpty(t, judged(t, formatted, "fd/x.go", "package x\n\nvar a int"))
}

// TestSleeplessRule feeds sleeping tests.
func TestSleeplessRule(t *testing.T) {
	text := "package x\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n"
	require.NotEmpty(t, judged(t, sleepless, "fd/x_test.go", text))
	require.NotEmpty(t, judged(t, sleepless, "fd/x_test.go", strings.ReplaceAll(
		strings.Replace(text, "\"time\"", "clock \"time\"", 1), "time.S", "clock.S")))
	require.Empty(t, judged(t, sleepless, "fd/x.go", text), "not a test: the purity ban looks there")
	require.Empty(t, judged(t, sleepless, "internal/runtime/driver/x_test.go", text))
}
