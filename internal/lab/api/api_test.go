// Tests of the lister: each kind of name has its line, and types that cannot be looked up are found.

package api

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// known answers imports of packages that a test made.
type known map[string]*types.Package

func (k known) Import(path string) (*types.Package, error) {
	if p := k[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no package %q", path)
}

// check type-checks one file as the package at path.
func (k known) check(t *testing.T, path, text string) *types.Package {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "x.go", text, 0)
	require.NoError(t, err)
	p, err := (&types.Config{Importer: k}).Check(path, files, []*ast.File{f}, nil)
	require.NoError(t, err)
	k[path] = p
	return p
}

func TestLines(t *testing.T) {
	p := known{}.check(t, "x.y/z", `package z
type hidden struct{ A int }
type S struct { A, b int; Hidden; F func(S) error }
type Hidden struct{ hidden }
type G[K comparable] map[K]int
type I interface { Do(n int) (err error); own() }
type N int
type A = []N
const C N = 1 << 3
const Text = "a"
var V *S
func F(a, b int, c ...string) (*S, error) { return nil, nil }
func (s *S) M(int) bool { return s.b > 0 }
func (n N) M() {}
func (s *S) m() {}
func (h hidden) Lent() {}
func own() {}
func Map[K comparable](f func(k K) int) []func(k K) { return nil }
`)
	require.Equal(t, []string{
		"z: const C N = 8", `z: const Text untyped string = "a"`,
		"z: func F(int, int, ...string) (*S, error)", "z: func Map[K comparable](func(K) int) []func(K)",
		"z: method (*S) M(int) bool", "z: method (N) M()",
		"z: type A = []N", "z: type G[K comparable] map[K]int",
		"z: type Hidden struct",
		"z: type I interface", "z: type I interface, Do(int) error", "z: type I interface, unexported methods",
		"z: type N int",
		"z: type S struct, A int", "z: type S struct, F func(S) error", "z: type S struct, embedded Hidden",
		"z: type S struct, not comparable",
		"z: var V *S",
	}, Lines(p, "z"))
}

func TestHidden(t *testing.T) {
	all := known{}
	all.check(t, "x.y/z/internal/q", "package q\ntype T struct{}\ntype I interface{ M() T }\nconst C N = 1\ntype N int\n")
	all.check(t, "x.y/z/open", `package open
import "x.y/z/internal/q"
type T struct{ F q.T }
type Fine struct{ f q.T }
`)
	head := "package z\nimport (\n\"x.y/z/internal/q\"\n\"x.y/z/open\"\n)\nvar (\n_ q.T\n_ open.T\n)\n"
	for text, want := range map[string]string{
		"type A = q.T":                        "z.A leads to x.y/z/internal/q.T",
		"type S struct{ F []map[int]*q.T }":   "z.S.F leads to x.y/z/internal/q.T",
		"type K struct{ F map[q.N]int }":      "z.K.F leads to x.y/z/internal/q.N",
		"func F(f func() q.I)":                "z.F()() leads to x.y/z/internal/q.I",
		"const C = q.C":                       "z.C leads to x.y/z/internal/q.N",
		"type L int\nfunc (*L) M(<-chan q.T)": "z.L.M() leads to x.y/z/internal/q.T",
		"type O = open.T":                     "z.O.F leads to x.y/z/internal/q.T",
		"type G[P any] []P\nvar V G[q.T]":     "z.V leads to x.y/z/internal/q.T",
		"type E struct{ lent }\ntype lent struct{}\nfunc (lent) M() q.T": "z.E.lent.M() leads to x.y/z/internal/q.T",
		"type P struct{ f q.T }\nfunc f() q.T\ntype F = open.Fine":       "",
	} {
		files := known{"x.y/z/internal/q": all["x.y/z/internal/q"], "x.y/z/open": all["x.y/z/open"]}
		require.Equal(t, want, strings.Join(Hidden(files.check(t, "x.y/z", head+text+"\n")), ", "), text)
	}
}

func TestChanged(t *testing.T) {
	gone, added := Changed([]string{"a", "b", "d"}, []string{"a", "c", "d", "e"})
	require.Equal(t, []string{"b"}, gone)
	require.Equal(t, []string{"c", "e"}, added)
}

// TestPublic: commands and internal packages are not among them.
func TestPublic(t *testing.T) {
	all, err := Public("../../..")
	require.NoError(t, err)
	var paths []string
	for _, p := range all {
		paths = append(paths, p.Path())
	}
	const module = "github.com/kith-io/kith"
	require.Subset(t, paths, []string{module, module + "/entity", module + "/sbr/leasetest"})
	require.NotContains(t, paths, module+"/internal/lab/api")
	require.NotContains(t, paths, module+"/cmd/node")
}

// TestReached: what a promised package leads to is promised with it, and nothing else of the package where it lies.
func TestReached(t *testing.T) {
	k := known{}
	engine := k.check(t, "x.y/z/engine", `package engine
type Alias struct{ A int }
func (Alias) M() Far { return 0 }
type Far int
type Field struct{}
type Own struct{}
const C = 1
func F() {}`)
	front := k.check(t, "x.y/z", `package z
import "x.y/z/engine"
type Front = engine.Alias
type S struct{ F []*engine.Field; own engine.Own }
func own(engine.Own) {}`)
	require.Equal(t, []string{"engine: method (Alias) M() Far", "engine: type Alias struct",
		"engine: type Alias struct, A int", "engine: type Far int", "engine: type Field struct"},
		LinesOf(engine, "engine", Reached(front)))
	require.Empty(t, LinesOf(engine, "engine", Reached()))
}
