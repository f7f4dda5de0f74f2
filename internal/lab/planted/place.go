// Place: where a bug is planted, named by syntax, so that it survives reformatting and moves between files.

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// place is one declaration of the module with the text of its file.
type place struct {
	file string // relative to the module's root, with slashes
	text string
	fset *token.FileSet
	decl ast.Node
}

// find returns the declaration that a name like "internal/core/courier.Machine.Tick", "fd.Config" or "shard.maxTold"
// stands for: a folder, then a function, a type with its method, a type, a constant or a variable. The root's folder is
// ".", so that its names begin with two dots.
func find(root, name string) (*place, error) {
	folder, names := path.Split(name)
	first, rest, ok := strings.Cut(names, ".")
	if folder += first; folder == "" {
		folder, rest = ".", strings.TrimPrefix(rest, ".")
	}
	if !ok || rest == "" || !filepath.IsLocal(filepath.FromSlash(folder)) {
		return nil, fmt.Errorf("%q names no declaration: folder.Name or folder.Type.Method", name)
	}
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*.go"))
	if err != nil {
		return nil, err
	}
	var found []*place
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, text, 0)
		if err != nil {
			return nil, err
		}
		for _, decl := range parsed.Decls {
			for said, node := range declared(decl) { // of one declaration at most one has the name: no order
				if said == rest {
					found = append(found, &place{path.Join(folder, filepath.Base(file)), string(text), fset, node})
				}
			}
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%q is declared %d times in %s, must be once", rest, len(found), folder)
	}
	return found[0], nil
}

// declared returns the names that a declaration makes, those of methods behind their type's.
func declared(decl ast.Decl) map[string]ast.Node {
	names := map[string]ast.Node{}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		names[strings.TrimPrefix(receiver(d)+"."+d.Name.Name, ".")] = d
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names[s.Name.Name] = s
			case *ast.ValueSpec:
				for _, id := range s.Names {
					names[id.Name] = s
				}
			}
		}
	}
	return names
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	x := d.Recv.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	switch t := x.(type) {
	case *ast.IndexExpr:
		x = t.X
	case *ast.IndexListExpr:
		x = t.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// span is a range of bytes of a file.
type span struct{ begin, end int }

func (p *place) span(n ast.Node) span {
	return span{p.fset.Position(n.Pos()).Offset, p.fset.Position(n.End()).Offset}
}

// replace returns the text of the file with other text in a span.
func (p *place) replace(at span, text string) []byte {
	return []byte(p.text[:at.begin] + text + p.text[at.end:])
}

// word is one token of Go and where it stands in its text.
type word struct {
	text string
	at   span
}

// words returns the tokens of a piece of Go. Comments, and semicolons that a line's end stands for, are none.
func words(text string) (list []word) {
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), func(token.Position, string) {}, 0)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return list
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		if literal == "" || tok == token.SEMICOLON {
			literal = tok.String()
		}
		at := file.Offset(pos)
		list = append(list, word{literal, span{at, at + len(literal)}})
	}
}

// where returns every place of old in the declaration, token by token, whatever the white space between.
func (p *place) where(old string) (found []span) {
	all := p.span(p.decl)
	have, want := words(p.text[all.begin:all.end]), words(old)
	for i := 0; len(want) > 0 && i+len(want) <= len(have); i++ {
		if slices.EqualFunc(have[i:i+len(want)], want, func(a, b word) bool { return a.text == b.text }) {
			found = append(found, span{all.begin + have[i].at.begin, all.begin + have[i+len(want)-1].at.end})
		}
	}
	return found
}

// drops returns the statements that do nothing but call name, written as in the source: "m.repeat" or "clear".
func (p *place) drops(name string) (found []span) {
	ast.Inspect(p.decl, func(n ast.Node) bool {
		if s, ok := n.(*ast.ExprStmt); ok {
			if call, ok := s.X.(*ast.CallExpr); ok && p.print(call.Fun) == name {
				found = append(found, p.span(s))
			}
		}
		return true
	})
	return found
}

// operands returns the operand of every "and" and "or" that is written as term, and the expression without it.
func (p *place) operands(term string) (found []span, rest []string) {
	want := words(term)
	is := func(x ast.Expr) bool {
		at := p.span(x)
		return slices.EqualFunc(words(p.text[at.begin:at.end]), want, func(a, b word) bool { return a.text == b.text })
	}
	ast.Inspect(p.decl, func(n ast.Node) bool {
		if x, ok := n.(*ast.BinaryExpr); ok && (x.Op == token.LAND || x.Op == token.LOR) {
			for _, pair := range [][2]ast.Expr{{x.X, x.Y}, {x.Y, x.X}} {
				if is(pair[0]) {
					at := p.span(pair[1])
					found, rest = append(found, p.span(x)), append(rest, p.text[at.begin:at.end])
				}
			}
		}
		return true
	})
	return found, rest
}

func (p *place) print(n ast.Node) string {
	var b strings.Builder
	_ = printer.Fprint(&b, p.fset, n)
	return b.String()
}
