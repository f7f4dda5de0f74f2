// Map order: the order in which Go walks a map is random, so in a pure package it must never show.

package rules

import (
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unordered judges one type-checked file: a walk over a map, and a sequence of package maps that does not go straight
// into a sort, needs the word "order" in a comment on its line or the line above, which says why the order does not
// show.
func unordered(s *source, info *types.Info) []finding {
	said := map[int]bool{} // lines that explain themselves
	for _, group := range s.file.Comments {
		for _, comment := range group.List {
			if strings.Contains(comment.Text, "order") {
				line := s.fset.Position(comment.Pos()).Line
				said[line], said[line+1] = true, true
			}
		}
	}
	sorted := map[ast.Expr]bool{} // what stands directly inside a call of slices.Sorted, SortedFunc or SortedStableFunc
	var found []finding
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			of := info.Types[n.X].Type
			if of == nil {
				return true
			}
			if _, is := of.Underlying().(*types.Map); is && !said[s.fset.Position(n.Pos()).Line] {
				found = append(found, s.at(n.Pos(), "walks a map: sort first, or say why the order does not show"))
			}
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch pkg := s.pkg(f.X); {
			case pkg == "slices" && strings.HasPrefix(f.Sel.Name, "Sorted") && len(n.Args) > 0:
				sorted[n.Args[0]] = true
			case pkg == "maps" && slices.Contains([]string{"Keys", "Values", "All"}, f.Sel.Name) &&
				!sorted[n] && !said[s.fset.Position(n.Pos()).Line]:
				found = append(found, s.at(n.Pos(), "maps.%s outside of slices.Sorted: sort, or say why the order "+
					"does not show", f.Sel.Name))
			}
		}
		return true
	})
	return found
}

// exports asks the go command for the compiled form of packages and of all that they import.
func exports(t *testing.T, packages ...string) types.Importer {
	t.Helper()
	args := append([]string{"list", "-e", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, packages...)
	list := exec.Command("go", args...)
	list.Dir = repository
	out, err := list.Output()
	require.NoError(t, err)
	compiled := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		compiled[name] = file
	}
	return importer.ForCompiler(positions, "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(compiled[name])
	})
}

// typed type-checks the files of one package as far as it goes: what does not compile fails elsewhere.
func typed(name string, files []*source, from types.Importer) *types.Info {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	parsed := make([]*ast.File, len(files))
	for i, s := range files {
		parsed[i] = s.file
	}
	config := types.Config{Importer: from, Error: func(error) {}}
	_, _ = config.Check(name, positions, parsed, info)
	return info
}

// TestMapOrderNeverShows holds every pure package against the rule.
func TestMapOrderNeverShows(t *testing.T) {
	var pkgNames, folders []string
	for _, pkgName := range pure {
		folder := folderOf(pkgName)
		if files, _ := filepath.Glob(filepath.Join(repository, folder, "*.go")); len(files) > 0 {
			pkgNames, folders = append(pkgNames, pkgName), append(folders, folder)
		}
	}
	require.NotEmpty(t, pkgNames)
	from := exports(t, prefixed("./", folders)...)
	checked := map[string]*types.Info{}
	all, err := sources()
	require.NoError(t, err)
	for _, pkgName := range pkgNames {
		var files []*source
		for _, s := range all {
			if s.pkgName == pkgName && !s.tests {
				files = append(files, s)
			}
		}
		checked[pkgName] = typed(pkgName, files, from)
	}
	judge(t, func(s *source) []finding {
		if info := checked[s.pkgName]; info != nil && !s.tests {
			return unordered(s, info)
		}
		return nil
	})
}

func prefixed(prefix string, names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, prefix+name)
	}
	return out
}

// TestUnorderedRule feeds walks that show their order and walks that do not.
func TestUnorderedRule(t *testing.T) {
	from := exports(t, "maps", "slices", "fmt")
	judge := func(body string) []finding {
		s, err := parse("fd/x.go", []byte("package x\n\nimport (\n\t\"fmt\"\n\t\"maps\"\n\t\"slices\"\n)\n\n"+
			"type set map[int]bool\n\nfunc f(m map[int]bool, n set) {\n"+body+"\n}\n\n"+
			"var _, _, _ = fmt.Sprint, maps.Clone[set], slices.Max[[]int]\n"))
		require.NoError(t, err)
		return unordered(s, typed("x", []*source{s}, from))
	}
	for _, body := range []string{
		"for k := range m { fmt.Println(k) }", "for range n {}", "for k, v := range maps.Clone(m) { _, _ = k, v }",
		"for k := range maps.Keys(m) { fmt.Println(k) }", "_ = slices.Collect(maps.Values(m))",
		"_ = slices.Collect(maps.Keys(n))", "for k := range m { // every one\n fmt.Println(k) }",
	} {
		require.Len(t, judge(body), 1, body)
	}
	for _, body := range []string{
		"for k := range m { delete(m, k) } // deletes only: the order does not show",
		"// Counts only, whatever the order.\nfor range n {}", "_ = slices.Sorted(maps.Keys(m))",
		"for _, k := range slices.Sorted(maps.Keys(n)) { fmt.Println(k) }", "for i := range 3 { fmt.Println(i) }",
		"for _, k := range []int{1} { fmt.Println(k) }",
		"_ = len(slices.Collect(maps.Keys(m))) // a count: no order",
	} {
		require.Empty(t, judge(body), body)
	}
}
