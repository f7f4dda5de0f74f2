// Ratchets: methods and fields of a type, pointers between its parts, files of a package, arrows between files against
// the reading order. What is over its bound today stands in a list with its number, which may only shrink.

package rules

import (
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The flags with which the lists in testdata are written anew, so that nobody has to count.
var (
	update = flag.Bool("update", false, "write the lists of exceptions anew: smaller numbers, and what is gone")
	grow   = flag.Bool("grow", false, "with -update: larger numbers and new exceptions too")
)

// bounds are the largest numbers that need no entry in the list.
var bounds = map[string]int{
	"methods":  40, // of a type, and functions of its package that take it, or a pointer to it, first
	"fields":   24, // of a struct
	"pointers": 6,  // of the parts of a struct, to it and to one another; a part is a struct that it holds by value
	"files":    24, // of a package, tests aside
	"arrows":   0,  // between files of a package, against its reading order
}

// ratchetList holds the exceptions: what, of what, how many.
var ratchetList = filepath.Join("testdata", "ratchets.txt")

const ratchetHead = "# What is over its bound, and by how much: see ratchet_test.go. The numbers may only shrink.\n" +
	"# Written by go test ./internal/lab/rules -run TestRatchets -update\n"

// count adds to numbers the methods, fields and files of one file; keys are "what owner".
func count(s *source, numbers map[string]int) {
	if s.tests || s.generated() {
		return
	}
	dir := path.Dir(s.path)
	if dir == "." {
		dir = root
	}
	numbers["files "+dir]++
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				numbers["methods "+dir+"."+receiver(d)]++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					if of, ok := t.Type.(*ast.StructType); ok {
						numbers["fields "+dir+"."+t.Name.Name] += fieldsOf(of)
					}
				}
			}
		}
	}
}

// takers adds to the methods of each type the functions of its package that take it first: a method that became a
// function is one still.
func takers(pkg *declared, numbers map[string]int) {
	for _, d := range pkg.functions {
		if d.Recv != nil || len(d.Type.Params.List) == 0 {
			continue
		}
		if name, _ := named(d.Type.Params.List[0].Type); pkg.types[name] {
			numbers["methods "+pkg.dir+"."+name]++
		}
	}
}

// named returns the name of a type of its own package, and whether x is a pointer to it; empty for every other type.
func named(x ast.Expr) (name string, pointer bool) {
	if p, ok := x.(*ast.StarExpr); ok {
		x, pointer = p.X, true
	}
	switch g := x.(type) {
	case *ast.IndexExpr:
		x = g.X
	case *ast.IndexListExpr:
		x = g.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name, pointer
	}
	return "", pointer
}

// pointersOf counts, for each struct of a package, the pointers of its parts to it and to one another: a type that is
// cut into parts which all hold one another is one type still.
func pointersOf(pkg *declared, numbers map[string]int) {
	structs := pkg.structs
	fields := func(t *ast.StructType, pointers bool) (names []string) {
		for _, f := range t.Fields.List {
			name, pointer := named(f.Type)
			if structs[name] != nil && pointer == pointers {
				names = append(names, slices.Repeat([]string{name}, max(len(f.Names), 1))...)
			}
		}
		return names
	}
	for whole, t := range structs { // a map in, a map out: no order
		parts := fields(t, false)
		for _, part := range slices.Compact(slices.Sorted(slices.Values(parts))) {
			for _, to := range fields(structs[part], true) {
				if to == whole || slices.Contains(parts, to) {
					numbers["pointers "+pkg.dir+"."+whole]++
				}
			}
		}
	}
}

// declared is what the files of a folder declare.
type declared struct {
	dir       string
	types     map[string]bool
	structs   map[string]*ast.StructType
	functions []*ast.FuncDecl
}

// declarations returns what each folder declares, tests and generated code aside, in the order of their names.
func declarations(all []*source) []*declared {
	found := map[string]*declared{}
	for _, s := range all {
		if s.tests || s.generated() {
			continue
		}
		dir := path.Dir(s.path)
		if dir == "." {
			dir = root
		}
		pkg := found[dir]
		if pkg == nil {
			pkg = &declared{dir, map[string]bool{}, map[string]*ast.StructType{}, nil}
			found[dir] = pkg
		}
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				pkg.functions = append(pkg.functions, d)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if t, ok := spec.(*ast.TypeSpec); ok {
						pkg.types[t.Name.Name] = true
						if of, ok := t.Type.(*ast.StructType); ok {
							pkg.structs[t.Name.Name] = of
						}
					}
				}
			}
		}
	}
	var list []*declared
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		list = append(list, found[dir])
	}
	return list
}

func fieldsOf(t *ast.StructType) (n int) {
	for _, f := range t.Fields.List {
		n += max(len(f.Names), 1)
	}
	return n
}

// over keeps the numbers that are over their bounds.
func over(numbers map[string]int) map[string]int {
	left := map[string]int{}
	for key, n := range numbers { // a map in, a map out: no order
		if what, _, _ := strings.Cut(key, " "); n > bounds[what] {
			left[key] = n
		}
	}
	return left
}

// compare judges today's numbers against the list: larger ones and new ones, smaller ones and what is gone.
func compare(now, list map[string]int) (larger, smaller []string) {
	for _, key := range slices.Sorted(maps.Keys(now)) {
		switch was, listed := list[key]; {
		case !listed:
			what, _, _ := strings.Cut(key, " ")
			larger = append(larger, fmt.Sprintf("%s: %d, more than %d", key, now[key], bounds[what]))
		case now[key] > was:
			larger = append(larger, fmt.Sprintf("%s: %d, the list says %d: it may only shrink", key, now[key], was))
		case now[key] < was:
			smaller = append(smaller, fmt.Sprintf("%s: %d, the list says %d: run with -update", key, now[key], was))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(list)) {
		if _, is := now[key]; !is {
			smaller = append(smaller, key+" is within its bound now: run with -update")
		}
	}
	return larger, smaller
}

// readList reads a list of lines "what owner number".
func readList(name string) (map[string]int, error) {
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	list := map[string]int{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cut := strings.LastIndexByte(line, ' ')
		n, err := strconv.Atoi(line[cut+1:])
		if err != nil || cut < 0 {
			return nil, fmt.Errorf("%s: %q is no line of the list", name, line)
		}
		list[line[:cut]] = n
	}
	return list, nil
}

func writeList(name, head string, list map[string]int) error {
	var b strings.Builder
	b.WriteString(head)
	for _, key := range slices.Sorted(maps.Keys(list)) {
		fmt.Fprintf(&b, "%s %d\n", key, list[key])
	}
	return os.WriteFile(name, []byte(b.String()), 0o600)
}

// TestRatchets holds the sizes of types and packages and the reading order of files (CARD-2).
func TestRatchets(t *testing.T) {
	all, err := sources()
	require.NoError(t, err)
	numbers := map[string]int{}
	for _, s := range all {
		count(s, numbers)
	}
	for _, pkg := range declarations(all) {
		takers(pkg, numbers)
		pointersOf(pkg, numbers)
	}
	maps.Copy(numbers, arrowsOfAll(t, all))
	now := over(numbers)
	list, err := readList(ratchetList)
	require.NoError(t, err)
	larger, smaller := compare(now, list)
	if *update {
		for key, n := range now { // a map in, a map out: no order
			if was, listed := list[key]; !*grow && (!listed || n > was) {
				if now[key] = was; !listed {
					delete(now, key)
				}
			}
		}
		require.NoError(t, writeList(ratchetList, ratchetHead, now))
		smaller = nil
		if *grow {
			larger = nil
		}
	}
	if found := append(larger, smaller...); len(found) > 0 {
		t.Fatalf("%d ratchets:\n%s", len(found), strings.Join(found, "\n"))
	}
}

// TestRatchetRules feeds the counts a file, and the comparison lists that are too small and too large.
func TestRatchetRules(t *testing.T) {
	s, err := parse("fd/x.go", []byte("package fd\ntype T[K any] struct {\n\ta, b int\n\tfmt.Stringer\n"+
		"\tf struct{ c int }\n}\nfunc (t *T[K]) M() {}\nfunc (T[K]) N() {}\nfunc f() {}\n"))
	require.NoError(t, err)
	numbers := map[string]int{}
	count(s, numbers)
	require.Equal(t, map[string]int{"files fd": 1, "methods fd.T": 2, "fields fd.T": 4}, numbers)
	require.Empty(t, over(numbers))
	s, err = parse("fd/y.go", []byte("package fd\ntype whole struct {\n\ta, other part\n\tb next\n\tc *far\n}\n"+
		"type part struct {\n\t*whole\n\tn, m *next\n\tf *far\n}\ntype next struct{ p part }\ntype far struct{}\n"+
		"func do(w *whole, n int) {}\nfunc other(n int, w *whole) {}\nfunc (p part) method(*whole) {}\nfunc g(part) {}\n"))
	require.NoError(t, err)
	numbers = map[string]int{}
	for _, pkg := range declarations([]*source{s}) {
		takers(pkg, numbers)
		pointersOf(pkg, numbers)
	}
	require.Equal(t, map[string]int{"methods fd.whole": 1, "methods fd.part": 1, "pointers fd.whole": 3,
		"pointers fd.next": 2}, numbers)
	for _, c := range []struct {
		now, list       map[string]int
		larger, smaller int
	}{
		{map[string]int{"methods a.T": 50}, map[string]int{"methods a.T": 50}, 0, 0},
		{map[string]int{"methods a.T": 51}, map[string]int{"methods a.T": 50}, 1, 0},
		{map[string]int{"methods a.T": 49}, map[string]int{"methods a.T": 50}, 0, 1},
		{map[string]int{"methods a.T": 50}, nil, 1, 0},
		{nil, map[string]int{"methods a.T": 50}, 0, 1},
	} {
		larger, smaller := compare(c.now, c.list)
		require.Len(t, larger, c.larger)
		require.Len(t, smaller, c.smaller)
	}
	name := filepath.Join(t.TempDir(), "list")
	require.NoError(t, writeList(name, ratchetHead, map[string]int{"fields a b.T": 3, "files x": 1}))
	back, err := readList(name)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"fields a b.T": 3, "files x": 1}, back)
}
