// Frames: their bytes are read by offset in package wire alone, and one package knows what is in a kind.

package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// byOffset lists the files outside of package wire that read or write bytes by offset, and what of. The list only
// shrinks. Commands and tools that play a peer by its bytes are not bound.
var byOffset = map[string]string{
	"internal/runtime/driver/driver.go":    "random numbers",
	"entity/table.go":                      "ids that are compared",
	"internal/core/flow/slot.go":           "deadlines in front of parked frames",
	"peer/column.go":                       "columns of a packed state",
	"ringbuf/queue.go":                     "lengths of its records",
	"route/fence.go":                       "a fence, which compares as bytes",
	"internal/core/quorum/records/view.go": "keys of a disk, which compare as bytes",
	"internal/sim/world/bulk.go":           "keys of large messages",
	"internal/sim/world/ledger.go":         "payloads of the simulator's own messages",
	"internal/lab/hosting/cast.go":         "likewise",
}

// Nor are files of a form of their own: flight records.
var unboundPackages = strings.Fields(`wire bench internal/cli/command cmd/loadgen internal/lab/chaos
	internal/lab/rolling internal/lab/instances internal/cli/fleet
	internal/lab/hostile internal/cli internal/lab/shardscale internal/core/flight`)

// offsets judges one file: it does not import encoding/binary, and takes no kind from a byte.
func offsets(s *source) []finding {
	if s.tests || slices.Contains(unboundPackages, s.pkgName) {
		return nil
	}
	var found []finding
	for _, spec := range s.file.Imports {
		if importPath(spec) == "encoding/binary" && byOffset[s.path] == "" {
			found = append(found, s.at(spec.Pos(), "reads bytes by offset: wire knows where they are"))
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		_, indexed := call.Args[0].(*ast.IndexExpr)
		if ok && indexed && sel.Sel.Name == "Kind" && s.pkg(sel.X) == module+"/wire" {
			found = append(found, s.at(call.Pos(), "takes a kind from a byte: wire.KindOf knows where it is"))
		}
		return true
	})
	return found
}

// readKinds returns the kinds with bodies that a file reads, and where.
func readKinds(s *source) map[string]token.Pos {
	read := map[string]token.Pos{}
	if s.tests {
		return read
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		fun, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || fun.Sel.Name != "NewReader" || s.pkg(fun.X) != module+"/wire" {
			return true
		}
		if kind, ok := call.Args[0].(*ast.SelectorExpr); ok && s.pkg(kind.X) == module+"/wire" {
			read[kind.Sel.Name] = call.Pos()
		}
		return true
	})
	return read
}

// shared returns the kinds that are read in two packages.
func shared(all []*source) []finding {
	pkgNames := map[string]string{}
	var found []finding
	for _, s := range all {
		for kind, pos := range readKinds(s) {
			if pkgName, known := pkgNames[kind]; known && pkgName != s.pkgName {
				found = append(found, s.at(pos, "%s is read in %s too", kind, pkgName))
			}
			pkgNames[kind] = s.pkgName
		}
	}
	return found
}

// TestFramesAreReadInWire holds which files read bytes by offset, and that the list of exceptions is no longer than it
// must be (CARD-3).
func TestFramesAreReadInWire(t *testing.T) {
	judge(t, offsets)
	all, err := sources()
	require.NoError(t, err)
	left := len(byOffset)
	for _, s := range all {
		if byOffset[s.path] != "" && slices.ContainsFunc(s.file.Imports, func(i *ast.ImportSpec) bool {
			return importPath(i) == "encoding/binary"
		}) {
			left--
		}
	}
	require.Zero(t, left, "files of the list that read nothing by offset any more")
}

// TestOneRoomReadsAKind holds that no frame is parsed in two places that could differ (CARD-3).
func TestOneRoomReadsAKind(t *testing.T) {
	all, err := sources()
	require.NoError(t, err)
	require.Empty(t, shared(all))
	kinds := 0
	for _, s := range all {
		kinds += len(readKinds(s))
	}
	require.Greater(t, kinds, 10, "the search finds next to nothing")
}

// TestFrameRules feeds the two rules what breaks them.
func TestFrameRules(t *testing.T) {
	const text = "package x\nimport (\n%s\n\"" + module + "/wire\"\n)\nfunc f(b []byte) { %s }\n"
	for _, c := range []struct {
		file, imports, body string
		broken              bool
	}{
		{"internal/runtime/driver/x.go", `"encoding/binary"`, "_ = wire.SizeOf(b)", true},
		{"internal/runtime/driver/driver.go", `"encoding/binary"`, "_ = wire.SizeOf(b)", false},
		{"wire/x.go", `"encoding/binary"`, "_ = wire.SizeOf(b)", false},
		{"internal/runtime/driver/x.go", "", "_ = wire.Kind(b[4])", true},
		{"internal/runtime/driver/x.go", "", "_ = wire.KindOf(b)", false},
		{"internal/runtime/driver/x_test.go", "", "_ = wire.Kind(b[4])", false},
	} {
		found := judged(t, offsets, c.file, fmt.Sprintf(text, c.imports, c.body))
		require.Equal(t, c.broken, len(found) > 0, "%s: %s", c.file, c.body)
	}
	reads := func(file string) *source {
		s, err := parse(file, []byte(fmt.Sprintf(text, "", "_ = wire.NewReader(wire.KindRefused, b)")))
		require.NoError(t, err)
		return s
	}
	require.Empty(t, shared([]*source{reads("driver/x.go"), reads("driver/y.go"), reads("sim/x_test.go")}))
	require.Len(t, shared([]*source{reads("driver/x.go"), reads("sim/x.go")}), 1)
}
