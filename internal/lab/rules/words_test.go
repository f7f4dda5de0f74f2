// Words and lengths: purpose comments, doc comments, function and file lengths, formatting, sleeps in tests.

package rules

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const (
	maxFunction = 60  // lines, from func to the closing brace
	maxLine     = 120 // characters; a tab is one
)

// longFunctions are the exceptions, each with the length it has today. They may only shrink: an entry that is no longer
// exact, or no longer needed, fails too. A file may be as long as its idea: packages are split along ideas, and a bound
// on files splits them at lines.
var longFunctions = map[string]int{}

// sleepers are the packages with tests that wait for a real world.
var sleepers = strings.Fields("transport driver internal/cli/command cmd/loadgen internal/cli")

// purpose demands a comment before the package clause that says what the file is for.
func purpose(s *source) []finding {
	for _, group := range s.file.Comments {
		if group.Pos() < s.file.Package && strings.TrimSpace(group.Text()) != "" {
			return nil
		}
	}
	return []finding{s.at(s.file.Package, "the file does not open with a purpose comment")}
}

// documented demands a doc comment on every exported name.
func documented(s *source) []finding {
	if s.tests || s.generated() {
		return nil
	}
	var found []finding
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && exportedReceiver(d) && d.Doc.Text() == "" {
				found = append(found, s.at(d.Pos(), "%s has no doc comment", d.Name.Name))
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				found = append(found, undocumented(s, d, spec)...)
			}
		}
	}
	return found
}

func exportedReceiver(d *ast.FuncDecl) bool {
	return d.Recv == nil || ast.IsExported(receiver(d))
}

// receiver returns the name of the type that method d is of, "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	x := d.Recv.List[0].Type
	for {
		switch t := x.(type) {
		case *ast.StarExpr:
			x = t.X
		case *ast.IndexExpr:
			x = t.X
		case *ast.IndexListExpr:
			x = t.X
		case *ast.ParenExpr:
			x = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// undocumented judges one row of a type, const or var declaration. The comment of a group speaks for its constants and
// variables, but each type needs its own.
func undocumented(s *source, d *ast.GenDecl, spec ast.Spec) []finding {
	group := d.Doc.Text()
	var found []finding
	switch v := spec.(type) {
	case *ast.TypeSpec:
		if d.Lparen.IsValid() {
			group = ""
		}
		if v.Name.IsExported() && v.Doc.Text()+v.Comment.Text()+group == "" {
			found = append(found, s.at(v.Pos(), "%s has no doc comment", v.Name.Name))
		}
	case *ast.ValueSpec:
		for _, name := range v.Names {
			if name.IsExported() && v.Doc.Text()+v.Comment.Text()+group == "" {
				found = append(found, s.at(name.Pos(), "%s has no doc comment", name.Name))
			}
		}
	}
	return found
}

// lengths judges functions against their bound; list entries are the exceptions.
func lengths(functions map[string]int) func(*source) []finding {
	return func(s *source) (found []finding) {
		if s.tests || s.generated() {
			return nil
		}
		for _, decl := range s.file.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok {
				lines := s.fset.Position(d.End()).Line - s.fset.Position(d.Pos()).Line + 1
				name := s.pkgName + "." + strings.TrimPrefix(receiver(d)+"."+d.Name.Name, ".")
				found = append(found, ratchet(s, d.Pos(), name, lines, functions)...)
			}
		}
		return found
	}
}

// ratchet judges one length: over its bound it needs an exact entry, within it must have none.
func ratchet(s *source, pos token.Pos, name string, lines int, list map[string]int) []finding {
	was, listed := list[name]
	switch {
	case !listed && lines > maxFunction:
		return []finding{s.at(pos, "function %s has %d lines, more than %d", name, lines, maxFunction)}
	case listed && lines <= maxFunction:
		return []finding{s.at(pos, "function %s is within %d lines now: take it off the list", name, maxFunction)}
	case listed && lines != was:
		return []finding{s.at(pos, "function %s has %d lines, the list says %d: it may only shrink", name, lines, was)}
	}
	return nil
}

// wide demands lines that fit on a screen, in tests too. The tag of a field cannot be broken.
func wide(s *source) []finding {
	if s.generated() {
		return nil
	}
	var found []finding
	tokens := s.fset.File(s.file.Pos())
	for n, line := range bytes.Split(s.text, []byte("\n")) {
		if long := utf8.RuneCount(line); long > maxLine && !bytes.HasSuffix(line, []byte("\"`")) {
			found = append(found, s.at(tokens.LineStart(n+1), "the line has %d characters, more than %d", long, maxLine))
		}
	}
	return found
}

// formatted demands what gofmt would write.
func formatted(s *source) []finding {
	want, err := format.Source(s.text)
	if err != nil {
		return []finding{s.at(s.file.Package, "does not format: %v", err)}
	}
	if !bytes.Equal(want, s.text) {
		return []finding{s.at(s.file.Package, "is not gofmt clean")}
	}
	return nil
}

// sleepless forbids tests that wait by sleeping, outside the packages that must.
func sleepless(s *source) []finding {
	if !s.tests || slices.Contains(sleepers, s.pkgName) {
		return nil
	}
	var found []finding
	ast.Inspect(s.file, func(n ast.Node) bool {
		if x, ok := n.(*ast.SelectorExpr); ok && x.Sel.Name == "Sleep" && s.pkg(x.X) == "time" {
			found = append(found, s.at(x.Pos(), "a test sleeps: wait for the condition instead"))
		}
		return true
	})
	return found
}

// TestEveryFileHasAPurpose holds the first comment of each file.
func TestEveryFileHasAPurpose(t *testing.T) { judge(t, purpose) }

// TestEveryExportedNameIsDocumented holds the doc comments.
func TestEveryExportedNameIsDocumented(t *testing.T) { judge(t, documented) }

// TestLengths holds the lengths of functions against their bound and the ratchet list.
func TestLengths(t *testing.T) { judge(t, lengths(longFunctions)) }

// TestLineWidth holds the length of every line.
func TestLineWidth(t *testing.T) { judge(t, wide) }

// TestCommentsNameTheSubject: comments name the node, the sender or the caller, and say "reported", where they could
// say "who" and "told". Names of functions still hold "told", and users are who they are; more than that is our old
// dialect, which a stranger could not read (CARD-5).
func TestCommentsNameTheSubject(t *testing.T) {
	all, err := sources()
	require.NoError(t, err)
	const most = 60 // lines of each kind; 44 and 43 when this test was written
	for kind, words := range map[string]*regexp.Regexp{"told": regexp.MustCompile(`(?i)\btold\b`),
		"who": regexp.MustCompile(`(?i)\b(who|whom|whoever|whose)\b`)} {
		var found []string
		for _, s := range all {
			for _, group := range s.file.Comments {
				for _, c := range group.List {
					if words.MatchString(c.Text) {
						found = append(found, string(s.at(c.Pos(), "%s", c.Text)))
					}
				}
			}
		}
		require.LessOrEqual(t, len(found), most, "%s, in comments: name the subject\n%s", kind, strings.Join(found, "\n"))
		require.NotEmpty(t, found, "the walk finds nothing: it looks in the wrong place")
	}
}

// TestEditorsLintersAgree: the settings of golangci-lint are what these tests hold; no target runs it (CARD-5).
func TestEditorsLintersAgree(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, ".golangci.yml"))
	require.NoError(t, err)
	for _, want := range []string{fmt.Sprintf("\n      lines: %d\n", maxFunction),
		fmt.Sprintf("\n      line-length: %d\n      tab-width: 1\n", maxLine), "prefix(" + module + ")"} {
		require.Contains(t, string(text), want)
	}
}

// TestFormatted holds gofmt cleanliness.
func TestFormatted(t *testing.T) { judge(t, formatted) }

// TestNoTestSleeps holds the ban on sleeping tests.
func TestNoTestSleeps(t *testing.T) { judge(t, sleepless) }
