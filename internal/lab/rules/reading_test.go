// Reading order: the files of a package stand in an order in which each uses only what stands before it. Arrows that
// run against it are counted, and their number may only shrink.

package rules

import (
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fewFiles is up to how many files a package needs no reading order.
const fewFiles = 4

// orderList holds the reading order of every package: its folder, a colon, its files from the first to the last.
var orderList = filepath.Join("testdata", "order.txt")

const orderHead = "# The order in which to read the files of a package: each uses what stands before it. Arrows\n" +
	"# against it are counted in ratchets.txt. Move names by hand to better it; new files are placed, and those gone\n" +
	"# taken out, by go test ./internal/lab/rules -run TestRatchets -update\n"

// arrow says that a file uses what another one declares.
type arrow struct{ from, to string }

// arrowsOf returns which file uses names of which among the files of one package, by base names.
func arrowsOf(files []*source, info *types.Info) map[arrow]bool {
	home := map[types.Object]string{}
	for _, s := range files {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if object := info.Defs[id]; object != nil {
					home[object] = path.Base(s.path)
				}
			}
			return true
		})
	}
	found := map[arrow]bool{}
	for _, s := range files {
		from := path.Base(s.path)
		ast.Inspect(s.file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				object := info.Uses[id]
				if to := home[origin(object)]; to != "" && to != from {
					found[arrow{from, to}] = true
				}
			}
			return true
		})
		for _, decl := range s.file.Decls { // a method uses its type
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv != nil {
				for object, to := range home { // at most one has that name: no order
					if _, is := object.(*types.TypeName); is && object.Name() == receiver(d) && to != from {
						found[arrow{from, to}] = true
					}
				}
			}
		}
	}
	return found
}

// origin returns the declared object behind one of a generic type's instances.
func origin(object types.Object) types.Object {
	switch o := object.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return object
}

// against counts the arrows that run against an order.
func against(order []string, arrows map[arrow]bool) (n int) {
	at := map[string]int{}
	for i, name := range order {
		at[name] = i
	}
	for a := range arrows { // a count: no order
		if at[a.to] > at[a.from] {
			n++
		}
	}
	return n
}

// place returns a reading order of files: that of the list without what is gone, and new files each where it costs
// least. doc.go is first.
func place(list, files []string, arrows map[arrow]bool) []string {
	order := slices.DeleteFunc(slices.Clone(list), func(name string) bool { return !slices.Contains(files, name) })
	for _, name := range files {
		if slices.Contains(order, name) {
			continue
		}
		best, least := 0, -1
		for i := range len(order) + 1 {
			if n := against(slices.Insert(slices.Clone(order), i, name), arrows); least < 0 || n < least {
				best, least = i, n
			}
		}
		order = slices.Insert(order, best, name)
	}
	if i := slices.Index(order, "doc.go"); i > 0 {
		order = slices.Insert(slices.Delete(order, i, i+1), 0, "doc.go")
	}
	return order
}

// better moves files, one at a time, as long as that leaves fewer arrows against the order.
func better(order []string, arrows map[arrow]bool) []string {
	for gained := true; gained; {
		gained = false
		for _, name := range slices.Clone(order) {
			rest := slices.DeleteFunc(slices.Clone(order), func(o string) bool { return o == name })
			if next := place(rest, order, arrows); against(next, arrows) < against(order, arrows) {
				order, gained = next, true
			}
		}
	}
	return order
}

func readOrder(name string) (map[string][]string, error) {
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	list, folder := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if before, _, found := strings.Cut(line, ":"); found {
			folder = before
			continue
		}
		list[folder] = append(list[folder], strings.Fields(line)...)
	}
	return list, nil
}

func writeOrder(name string, list map[string][]string) error {
	var b strings.Builder
	b.WriteString(orderHead)
	for _, folder := range sortedKeys(list) {
		fmt.Fprintf(&b, "%s:\n", folder)
		for _, file := range list[folder] {
			fmt.Fprintf(&b, "\t%s\n", file)
		}
	}
	return os.WriteFile(name, []byte(b.String()), 0o600)
}

// arrowsOfAll returns how many arrows of each package run against its reading order, and with -update writes that anew.
func arrowsOfAll(t *testing.T, all []*source) map[string]int {
	t.Helper()
	packages := map[string][]*source{}
	for _, s := range all {
		if !s.tests && !s.generated() {
			packages[path.Dir(s.path)] = append(packages[path.Dir(s.path)], s)
		}
	}
	folders := slices.DeleteFunc(sortedKeys(packages), func(f string) bool { return len(packages[f]) <= fewFiles })
	from := exports(t, prefixed("./", folders)...)
	list, err := readOrder(orderList)
	require.NoError(t, err)
	next, numbers := map[string][]string{}, map[string]int{}
	for _, folder := range folders {
		var files []string
		for _, s := range packages[folder] {
			files = append(files, path.Base(s.path))
		}
		arrows := arrowsOf(packages[folder], typed(folder, packages[folder], from))
		order := place(list[folder], files, arrows)
		if list[folder] == nil {
			order = better(order, arrows)
		}
		if next[folder] = order; !*update && !slices.Equal(order, list[folder]) {
			t.Errorf("the reading order of %s lacks a file or names one that is gone: run with -update", folder)
		}
		name := folder
		if folder == "." {
			name = root
		}
		numbers["arrows "+name] = against(order, arrows)
	}
	for _, folder := range sortedKeys(list) {
		if next[folder] == nil && !*update {
			t.Errorf("%s needs no reading order any more: run with -update", folder)
		}
	}
	if *update {
		require.NoError(t, writeOrder(orderList, next))
	}
	return numbers
}

// TestReadingRule feeds arrows between three files, and orders that they follow and that they do not.
func TestReadingRule(t *testing.T) {
	var files []*source
	for name, text := range map[string]string{ // files in no order
		"x/a.go": "type T[K any] struct{ n int }\n", "x/b.go": "func (t *T[K]) M() { f(t.n) }\n",
		"x/c.go": "func f(int) {}\nfunc g(t *T[int]) { t.M() }\n",
	} {
		s, err := parse(name, []byte("package x\n"+text))
		require.NoError(t, err)
		files = append(files, s)
	}
	arrows := arrowsOf(files, typed("x", files, nil))
	require.Equal(t, map[arrow]bool{{"b.go", "a.go"}: true, {"b.go", "c.go"}: true, {"c.go", "a.go"}: true,
		{"c.go", "b.go"}: true}, arrows)
	require.Equal(t, 1, against([]string{"a.go", "b.go", "c.go"}, arrows))
	require.Equal(t, 3, against([]string{"c.go", "b.go", "a.go"}, arrows))
	names := []string{"c.go", "b.go", "a.go"}
	require.Equal(t, 1, against(better(names, arrows), arrows))
	placed := place([]string{"b.go", "gone.go"}, names, arrows)
	require.ElementsMatch(t, names, placed)
	require.Equal(t, "a.go", placed[0], "it is used by both")
	name := filepath.Join(t.TempDir(), "order")
	require.NoError(t, writeOrder(name, map[string][]string{"x": names, "a/y": {"z.go"}}))
	back, err := readOrder(name)
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"x": names, "a/y": {"z.go"}}, back)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m { // sorted below: no order
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
