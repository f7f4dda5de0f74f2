// The purity ban: what makes a stepped room depend on anything but its inputs may not appear in it.

package rules

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// pure packages are stepped: the same inputs give the same effects, in the simulator and on real sockets.
var pure = strings.Fields(`wire peer route flow hello plane entity gossip fd courier cluster members membership
	shard shard/strategy sbr bootstrap/formation node sparse internal/base/enum
	internal/core/replica internal/core/partition internal/core/watch internal/core/quorum
	internal/core/session internal/core/tenure internal/core/quorum/records`)

// bannedImports bring threads, clocks, randomness, I/O or logs; a row covers the packages below it too.
var bannedImports = strings.Fields("sync os net log math/rand crypto/rand hash/maphash context syscall runtime io/fs " +
	"time/tzdata testing golang.org/x/sys golang.org/x/sync")

// openImports are exceptions from bannedImports: values, a source that is passed in, and the stack of a handler's panic
// as text for people.
var openImports = strings.Fields("net/netip math/rand/v2 runtime/debug context")

// timeNames are the only names of package time that a pure package may use: durations are numbers.
var timeNames = strings.Fields("Duration Nanosecond Microsecond Millisecond Second Minute Hour ParseDuration")

// timeValues are those that one pure package may use beyond them: values that a runtime hands to user code.
var timeValues = map[string]string{"entity": "Time"}

// randNames are the only names of math/rand/v2 that a pure package may use: everything else there draws from the global
// source.
var randNames = strings.Fields("Rand Source PCG ChaCha8 Zipf New NewPCG NewChaCha8 NewZipf")

// contextNames are the only names of package context that a pure package may use: the type of what a handler is given.
// The runtime makes contexts and ends them.
var contextNames = []string{"Context"}

// mathNames give results that differ between architectures, so nothing may be decided by them; display.go may.
var mathNames = strings.Fields("Exp Exp2 Expm1 Log Log2 Log10 Log1p Pow")

// impure judges one file of a pure package.
func impure(s *source) []finding {
	if s.tests || !slices.Contains(pure, s.pkgName) {
		return nil
	}
	var found []finding
	for _, spec := range s.file.Imports {
		target := importPath(spec)
		if covers(bannedImports, target) && !slices.Contains(openImports, target) {
			found = append(found, s.at(spec.Pos(), "pure package %s imports %s", s.pkgName, target))
		}
		if spec.Name != nil && spec.Name.Name == "." {
			found = append(found, s.at(spec.Pos(), "pure package %s imports %s without its name", s.pkgName, target))
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if what := impureNode(s, n); what != "" {
			found = append(found, s.at(n.Pos(), "pure package %s uses %s", s.pkgName, what))
		}
		return true
	})
	return found
}

func covers(rows []string, target string) bool {
	return slices.ContainsFunc(rows, func(row string) bool {
		return target == row || strings.HasPrefix(target, row+"/")
	})
}

// impureNode names what is wrong with one node of the tree, or returns "".
func impureNode(s *source, n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a goroutine"
	case *ast.SelectStmt:
		return "select"
	case *ast.ChanType:
		return "a channel"
	case *ast.SendStmt:
		return "a channel send"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a channel receive"
		}
	case *ast.SelectorExpr:
		name := n.Sel.Name
		switch s.pkg(n.X) {
		case "time":
			if !slices.Contains(timeNames, name) && timeValues[s.pkgName] != name {
				return "time." + name
			}
		case "math/rand/v2":
			if !slices.Contains(randNames, name) {
				return "rand." + name
			}
		case "context":
			if !slices.Contains(contextNames, name) {
				return "context." + name
			}
		case "math":
			if slices.Contains(mathNames, name) && path.Base(s.path) != "display.go" {
				return "math." + name
			}
		}
	}
	return ""
}

// TestPureRoomsArePure holds every pure package against the ban (ARCHITECTURE.md, "where effects live").
func TestPureRoomsArePure(t *testing.T) { judge(t, impure) }
