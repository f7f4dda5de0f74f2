// Places: what a name finds, what a pattern matches, and that a converted entry plants the very same bug.

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const placeText = `package x

// most is a bound.
const most = 3

type box[K any] struct{ n, m int }

func (b *box[K]) fill(n int) bool {
	clear(nil)
	b.note(n) // why
	if n > 0 && b.n < most && n < most {
		b.n += n
		return true
	}
	return b.m   >  n
}

func (b *box[K]) note(int) {}

func fill() { println(); println() }
`

// module makes a module with one package.
func moduleWith(t *testing.T, text string) string {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "a", "x"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a", "x", "y.go"), []byte(text), 0o600))
	tests := []byte("package x\nfunc fill() {}\n")
	require.NoError(t, os.WriteFile(filepath.Join(root, "a", "x", "y_test.go"), tests, 0o600))
	return root
}

// TestPlaces plants bugs by name.
func TestPlaces(t *testing.T) {
	root := moduleWith(t, placeText)
	for _, c := range []struct {
		b    bug
		old  string
		then string
	}{
		{bug{In: "a/x.box.fill", Drop: "b.note"}, "\tb.note(n) // why\n", "\t // why\n"},
		{bug{In: "a/x.box.fill", Drop: "clear"}, "\tclear(nil)\n", "\t\n"},
		{bug{In: "a/x.box.fill", Without: "b.n<most"}, "n > 0 && b.n < most && n < most", "n > 0 && n < most"},
		{bug{In: "a/x.box.fill", Without: "n < most"}, "n > 0 && b.n < most && n < most", "n > 0 && b.n < most"},
		{bug{In: "a/x.box.fill", Old: "return b.m > n", New: "return false"}, "return b.m   >  n", "return false"},
		{bug{In: "a/x.box.fill", Old: "b.note(n)\nif n", New: "if n"}, "b.note(n) // why\n\tif n", "if n"},
		{bug{In: "a/x.most", Old: "3", New: "4"}, "most = 3", "most = 4"},
		{bug{In: "a/x.box", Old: "n, m", New: "m, n"}, "{ n, m int }", "{ m, n int }"},
	} {
		file, text, err := c.b.mutate(root)
		require.NoError(t, err)
		require.Equal(t, "a/x/y.go", file)
		require.Contains(t, placeText, c.old)
		require.NotContains(t, string(text), c.old)
		require.Contains(t, string(text), c.then)
	}
	for _, c := range []struct {
		b    bug
		want string
	}{
		{bug{In: "a/x.box.empty", Drop: "clear"}, "declared 0 times"},
		{bug{In: "a/z.box", Drop: "clear"}, "declared 0 times"},
		{bug{In: "box", Drop: "clear"}, "names no declaration"}, {bug{In: "../x.box", Drop: "clear"}, "names no declaration"},
		{bug{In: "a/x.fill", Drop: "println"}, "stands 2 times"}, {bug{In: "a/x.box.fill", Without: "n"}, "stands 0 times"},
		{bug{In: "a/x.box.fill", Old: "b.n", New: "n"}, "stands 2 times"},
	} {
		_, _, err := c.b.mutate(root)
		require.ErrorContains(t, err, c.want, c.b.In)
	}
	whole := bug{Name: "a", Seeds: 1, In: "a/x.box.fill", Drop: "clear"}
	require.NoError(t, whole.check())
	for _, b := range []bug{
		{Name: "a", Seeds: 1, In: "a/x.box.fill"}, {Name: "a", Seeds: 1, In: "a/x.f", Drop: "clear", Without: "n"},
		{Name: "a", Seeds: 1, In: "a/x.f", File: "a/x/y.go", Old: "n"},
		{Name: "a", Seeds: 1, File: "a/x/y.go", Drop: "clear"},
	} {
		require.Error(t, b.check())
	}
}

// TestConvert rewrites a list whose entries replace text, and leaves the one that lies outside of any declaration.
func TestConvert(t *testing.T) {
	root := moduleWith(t, placeText)
	list := []bug{
		{Name: "drop", Seeds: 1, File: "a/x/y.go", Old: "\tclear(nil)\n\tb.note(n) // why\n", New: "\tclear(nil)\n"},
		{Name: "without", Seeds: 1, File: "a/x/y.go", Old: "n > 0 && b.n < most", New: "n > 0"},
		{Name: "text", Seeds: 1, File: "a/x/y.go", Old: "\t\tb.n += n\n\t\treturn true\n",
			New: "\t\tb.n += n\n\t\treturn false\n"},
		{Name: "outside", Seeds: 1, File: "a/x/y.go", Old: "package x\n", New: "package y\n"},
	}
	name := filepath.Join(t.TempDir(), "list.go")
	text := "package main\n\nvar l = []bug{\n"
	for i := range list {
		text += "\t{\n\t\tName: " + quote(list[i].Name) + ", Seeds: 1,\n\t\tFile: " + quote(list[i].File) + ",\n\t\tOld: " +
			quote(list[i].Old) + ",\n\t\tNew: " + quote(list[i].New) + ",\n\t},\n"
	}
	require.NoError(t, os.WriteFile(name, []byte(text+"}\n"), 0o600))
	converted, entries, err := convertFile(root, name, list)
	require.NoError(t, err)
	require.Equal(t, 3, converted)
	require.Equal(t, 4, entries)
	after, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Contains(t, string(after), "In:   \"a/x.box.fill\",\n\t\tDrop: \"b.note\",\n")
	require.Contains(t, string(after), "In:      \"a/x.box.fill\",\n\t\tWithout: \"b.n < most\",\n")
	require.Contains(t, string(after), "In:  \"a/x.box.fill\",\n\t\tOld: \"return true\",\n\t\tNew: \"return false\",\n")
	require.Contains(t, string(after), "Old:  \"package x\\n\",\n")
}

// TestEntriesNameDeclarations holds that no entry replaces text of a file where it could name a declaration.
func TestEntriesNameDeclarations(t *testing.T) {
	for i := range bugs {
		if b := &bugs[i]; b.File != "" {
			_, could := byName(filepath.Join("..", ".."), b)
			require.False(t, could, "%s: run go run ./internal/planted -convert on its list", b.Name)
		}
	}
}
