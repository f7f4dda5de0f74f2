// Aliases: the types that people meet first, which the root only names, show their fields and methods there.

package rules

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shownAliases are aliases of the root with comments that name all that go doc does not show of them.
var shownAliases = strings.Fields("EntityType Handler Context Incident Fence View Undelivered")

// alias is a name of the root that stands for a type of another package, and its comment.
type alias struct{ folder, name, comment string }

// aliasesOf returns the aliases that a file of the root declares, by their names.
func aliasesOf(s *source) map[string]alias {
	found := map[string]alias{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !spec.Assign.IsValid() {
			return true
		}
		if target, ok := spec.Type.(*ast.SelectorExpr); ok {
			folder := strings.TrimPrefix(s.pkg(target.X), module+"/")
			found[spec.Name.Name] = alias{folder, target.Sel.Name, spec.Doc.Text()}
		}
		return true
	})
	return found
}

// membersOf returns the exported fields and methods that the sources of a folder give a type.
func membersOf(all []*source, folder, name string) (members []string) {
	add := func(names ...*ast.Ident) {
		for _, n := range names {
			if n.IsExported() {
				members = append(members, n.Name)
			}
		}
	}
	for _, s := range all {
		if s.tests || path.Dir(s.path) != folder {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				of := f.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				if id, ok := of.(*ast.Ident); ok && id.Name == name {
					add(f.Name)
				}
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != name {
				return true
			}
			fields := &ast.FieldList{}
			switch t := spec.Type.(type) {
			case *ast.StructType:
				fields = t.Fields
			case *ast.InterfaceType:
				fields = t.Methods
			}
			for _, f := range fields.List {
				add(f.Names...)
			}
			return false
		})
	}
	return members
}

// unshown returns what the comment of an alias does not say: the command that shows the type, or a name that it has.
func unshown(a alias, members []string) (lacks []string) {
	command := fmt.Sprintf("go doc %s/%s.%s", module, a.folder, a.name)
	for _, want := range append([]string{command}, members...) {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(want) + `\b`).MatchString(a.comment) {
			lacks = append(lacks, want)
		}
	}
	return lacks
}

// TestAliasesShowWhatTheyHave: go doc of an alias shows its comment and nothing else, so the comment names every field
// and method of the type, and the command that explains them (CARD-5).
func TestAliasesShowWhatTheyHave(t *testing.T) {
	all, err := sources()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, s := range all {
		if s.tests || path.Dir(s.path) != "." {
			continue
		}
		for name, a := range aliasesOf(s) {
			if !slices.Contains(shownAliases, name) {
				continue
			}
			seen[name] = true
			members := membersOf(all, a.folder, a.name)
			require.NotEmpty(t, members, name)
			require.Empty(t, unshown(a, members), "the comment of kith.%s (an alias) does not name", name)
		}
	}
	require.Len(t, seen, len(shownAliases))
	require.Equal(t, []string{"B"}, unshown(alias{"x", "T", "go doc " + module + "/x.T A"}, []string{"A", "B"}))
}
