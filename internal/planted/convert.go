// Convert: rewrites entries that replace text of a file so that they name a declaration instead, where that plants the
// very same bug.

package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// convertFile rewrites the entries of one list of bugs and says how many of how many there are name a declaration now.
// What cannot be named so stays as it was.
func convertFile(root, name string, list []bug) (converted, entries int, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, 0, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return 0, 0, err
	}
	type edit struct {
		at   span
		text string
	}
	var edits []edit
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		fields := keyed(literal)
		if fields["Name"] == nil {
			return true
		}
		entries++
		said, _ := strconv.Unquote(fields["Name"].Value.(*ast.BasicLit).Value)
		i := slices.IndexFunc(list, func(b bug) bool { return b.Name == said })
		if i < 0 || list[i].In != "" || fields["File"] == nil || fields["New"] == nil {
			return false
		}
		if to, ok := byName(root, &list[i]); ok {
			begin, end := fset.Position(fields["File"].Pos()).Offset, fset.Position(fields["New"].End()).Offset
			edits = append(edits, edit{span{begin, end}, strings.TrimSuffix(to.fields(), ",")})
			converted++
		}
		return false
	})
	slices.Reverse(edits)
	for _, e := range edits {
		text = slices.Concat(text[:e.at.begin], []byte(e.text), text[e.at.end:])
	}
	if text, err = format.Source(text); err != nil {
		return 0, 0, err
	}
	return converted, entries, os.WriteFile(name, text, 0o600)
}

func keyed(literal *ast.CompositeLit) map[string]*ast.KeyValueExpr {
	fields := map[string]*ast.KeyValueExpr{}
	for _, x := range literal.Elts {
		if pair, ok := x.(*ast.KeyValueExpr); ok {
			if id, ok := pair.Key.(*ast.Ident); ok {
				fields[id.Name] = pair
			}
		}
	}
	return fields
}

// byName returns the entry that plants the same bug by the name of its declaration, with the least that says it.
func byName(root string, b *bug) (*bug, bool) {
	_, want, err := b.mutate(root)
	if err != nil {
		return nil, false
	}
	in := enclosing(root, b)
	if in == "" {
		return nil, false
	}
	p, err := find(root, in)
	if err != nil || p.file != b.File {
		return nil, false
	}
	same := func(to *bug) bool {
		to.Name, to.In = b.Name, in
		_, text, err := to.mutate(root)
		return err == nil && sameWords(string(text), string(want))
	}
	var found *bug
	ast.Inspect(p.decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if to := (&bug{Drop: p.print(n.Fun)}); found == nil && same(to) {
				found = to
			}
		case *ast.BinaryExpr:
			for _, x := range []ast.Expr{n.X, n.Y} {
				if to := (&bug{Without: p.print(x)}); found == nil && n.Op != token.EQL && same(to) {
					found = to
				}
			}
		}
		return found == nil
	})
	if found != nil {
		return found, true
	}
	to := &bug{Old: strings.TrimSpace(b.Old), New: strings.TrimSpace(b.New)}
	if !same(to) {
		to.Old, to.New = b.Old, b.New
		return to, same(to)
	}
	for shorter := to; shorter != nil; { // lines that Old and New share at their begin or end
		shorter = nil
		for _, cut := range []func(string) (line, rest string){firstLine, lastLine} {
			line, old := cut(to.Old)
			same2, next := cut(to.New)
			less := &bug{Old: strings.TrimSpace(old), New: strings.TrimSpace(next)}
			if strings.TrimSpace(line) == strings.TrimSpace(same2) && less.Old != "" && shorter == nil && same(less) {
				shorter, to = less, less
			}
		}
	}
	return to, true
}

func firstLine(text string) (line, rest string) {
	line, rest, _ = strings.Cut(text, "\n")
	return line, rest
}

func lastLine(text string) (line, rest string) {
	i := strings.LastIndexByte(text, '\n')
	return text[i+1:], text[:max(i, 0)]
}

// sameWords reports whether two pieces of Go are equal but for white space and comments.
func sameWords(a, b string) bool {
	return slices.EqualFunc(words(a), words(b), func(x, y word) bool { return x.text == y.text })
}

// enclosing returns the name of the declaration in which the old text of an entry lies, "" when it lies in none.
func enclosing(root string, b *bug) (in string) {
	name := filepath.Join(root, filepath.FromSlash(b.File))
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, 0)
	if err != nil {
		return ""
	}
	begin := strings.Index(string(text), b.Old)
	end := begin + len(strings.TrimRight(b.Old, " \t\n"))
	begin += len(b.Old) - len(strings.TrimLeft(b.Old, " \t\n"))
	for _, decl := range file.Decls {
		for said, node := range declared(decl) { // the text lies in one of them: no order
			if fset.Position(node.Pos()).Offset <= begin && end <= fset.Position(node.End()).Offset {
				in = path.Dir(b.File) + "." + said
			}
		}
	}
	return in
}

// fields prints what says where a bug is planted and what happens there, as lines of its entry.
func (b *bug) fields() string {
	var out strings.Builder
	fmt.Fprintf(&out, "In: %q,\n", b.In)
	switch {
	case b.Drop != "":
		fmt.Fprintf(&out, "Drop: %q,", b.Drop)
	case b.Without != "":
		fmt.Fprintf(&out, "Without: %q,", b.Without)
	default:
		fmt.Fprintf(&out, "Old: %s,\nNew: %s,", quote(b.Old), quote(b.New))
	}
	return out.String()
}

// quote prints a string as Go, in lines that fit.
func quote(text string) string {
	const most = 96
	var lines []string
	for rest := text; ; {
		n := len(rest)
		for len(strconv.Quote(rest[:n])) > most {
			cut := max(strings.LastIndexByte(rest[:n-1], '\n'), strings.LastIndexByte(rest[:n-1], ' '))
			if cut <= 0 {
				break
			}
			n = cut + 1
		}
		lines = append(lines, strconv.Quote(rest[:n]))
		if rest = rest[n:]; rest == "" {
			return strings.Join(lines, " +\n")
		}
	}
}
