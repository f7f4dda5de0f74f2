// Places: what a name finds, and what a pattern matches.

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
	whole := bug{Name: "a", Rules: "r", Seeds: 1, In: "a/x.box.fill", Drop: "clear"}
	require.NoError(t, whole.check())
	for _, b := range []bug{
		{Name: "a", Rules: "r", Seeds: 1, In: "a/x.box.fill"},
		{Name: "a", Rules: "r", Seeds: 1, In: "a/x.f", Drop: "clear", Without: "n"},
	} {
		require.Error(t, b.check())
	}
}
