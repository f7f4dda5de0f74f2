// The bounds checks of the codec, as the compiler says itself: one per frame and direction.

package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// A frame that is read costs the one comparison of its length that stands in the source, and no check of the compiler's
// beside it; one that is written in place costs the one check that its room holds a header (CARD-4).
func TestBoundsChecks(t *testing.T) {
	out, err := exec.Command("go", "build", "-gcflags=-d=ssa/check_bce", ".").CombinedOutput()
	require.NoError(t, err, string(out))
	found := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^\./(\w+\.go):(\d+):\d+: Found Is`).FindAllStringSubmatch(string(out), -1) {
		line, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		found[functionAt(t, m[1], line)]++
	}
	require.NotEmpty(t, found, "the compiler says nothing any more")
	for name, most := range map[string]int{
		"Split": 0, "ParseEnvelope": 0, "ParseReply": 0, "AppendEnvelope": 0, "ParseHeader": 1, "PutHeader": 1,
		"PutEnvelope": 1, "PutReply": 1,
	} {
		require.LessOrEqual(t, found[name], most, name)
	}
}

// functionAt returns the name of the function that holds a line.
func functionAt(t *testing.T, file string, line int) string {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, nil, 0)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && fset.Position(f.Pos()).Line <= line && line <= fset.Position(f.End()).Line {
			return f.Name.Name
		}
	}
	return ""
}
