// The sources under test: every Go file of the module, parsed once, and the shape of a rule over one file.

package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/kith-io/kith"

// repository is the module's root, seen from this package.
var repository = filepath.Join("..", "..", "..")

// positions are shared by all sources, as type-checking a package wants it.
var positions = token.NewFileSet()

// source is one parsed Go file.
type source struct {
	path    string // relative to the module's root, with slashes
	pkgName string // longest row of the import matrix that covers it; the folder itself when no row does
	text    []byte
	fset    *token.FileSet
	file    *ast.File
	tests   bool // a _test.go file
}

// finding is one broken rule, in words.
type finding string

// at makes a finding that editors can jump to.
func (s *source) at(pos token.Pos, format string, args ...any) finding {
	return finding(fmt.Sprintf("%s:%d: %s", s.path, s.fset.Position(pos).Line, fmt.Sprintf(format, args...)))
}

// pkg returns the import path under which an identifier of this file names a package, "" when it names none.
func (s *source) pkg(x ast.Expr) string {
	id, ok := x.(*ast.Ident)
	if !ok || id.Obj != nil { // a local name hides the package
		return ""
	}
	for _, spec := range s.file.Imports {
		target := importPath(spec)
		name := path.Base(target)
		if name == "v2" {
			name = path.Base(path.Dir(target))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == id.Name {
			return target
		}
	}
	return ""
}

func importPath(spec *ast.ImportSpec) string { return strings.Trim(spec.Path.Value, `"`) }

// parse reads one file as it would stand at name.
func parse(name string, text []byte) (*source, error) {
	s := &source{path: name, text: text, fset: positions, tests: strings.HasSuffix(name, "_test.go")}
	var err error
	s.file, err = parser.ParseFile(s.fset, name, text, parser.ParseComments)
	s.pkgName = packageOf(path.Dir(name))
	return s, err
}

// generated reports whether a machine wrote the file.
func (s *source) generated() bool { return ast.IsGenerated(s.file) }

// sources parses every Go file of the module; nested modules, testdata and hidden folders are not part of it.
var sources = sync.OnceValues(func() ([]*source, error) {
	var all []*source
	err := filepath.WalkDir(repository, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(repository, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if relative != "." && skipped(name, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(relative, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(relative), text)
		all = append(all, s)
		return err
	})
	return all, err
})

func skipped(name, base string) bool {
	if base == "testdata" || base == "bin" || base == "out" || strings.HasPrefix(base, ".") ||
		strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(name, "go.mod"))
	return err == nil
}

// judge applies a rule to every file and fails with all findings at once.
func judge(t *testing.T, rule func(*source) []finding) {
	t.Helper()
	all, err := sources()
	require.NoError(t, err)
	require.Greater(t, len(all), 20, "the walk found next to nothing: it looks in the wrong place")
	var found []string
	for _, s := range all {
		for _, f := range rule(s) {
			found = append(found, string(f))
		}
	}
	slices.Sort(found)
	if len(found) > 0 {
		t.Fatalf("%d broken rules:\n%s", len(found), strings.Join(found, "\n"))
	}
}
