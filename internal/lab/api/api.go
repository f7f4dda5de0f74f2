// Package api lists what packages export, one line for each name, field and method, so that a test can hold the list
// against a file and a change of it is seen; and it finds types that an exported name leads to and that nobody outside
// can look up. It asks the go command for compiled packages and reads those.
package api

import (
	"bytes"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Public returns the packages of the module in folder dir that others may import, in the order of their paths: no
// command, and none below a folder internal. The go command compiles what is not compiled yet; an error says what it
// said.
func Public(dir string) ([]*types.Package, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-f",
		"{{.ImportPath}}\t{{.Export}}\t{{.Name}}\t{{.DepOnly}}\t{{.Dir}}", "./...")
	list.Dir = dir
	var complaint bytes.Buffer
	list.Stderr = &complaint
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, complaint.String())
	}
	compiled, public := map[string]string{}, []string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t") // path, compiled file, name, asked for or not, folder
		compiled[f[0]] = f[1]
		if f[2] == "main" || f[3] == "true" || internal(f[0]) || f[1] == "" { // or it has nothing but tests
			continue
		}
		public = append(public, f[0])
		// The go command keeps the results of tests, and asks only folders that they have read whether they still hold.
		if _, err := os.ReadDir(f[4]); err != nil {
			return nil, err
		}
	}
	slices.Sort(public)
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(compiled[path])
	})
	all := make([]*types.Package, len(public))
	for i, path := range public {
		if all[i], err = from.Import(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// internal reports whether only its own module may import the package of a path.
func internal(path string) bool { return strings.Contains("/"+path+"/", "/internal/") }

// Lines returns the exported surface of p, sorted, each line beginning with name, which tells p from others. A type
// says what it is, and each of its exported fields and methods has a line of its own; an alias only says of what, for
// the rest is listed where that is declared. Names of other packages are written with the package's name. A constant
// has its value, for programs are compiled with it.
func Lines(p *types.Package, name string) []string {
	l := &lister{at: p, prefix: name + ": "}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			l.object(o)
		}
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines)
}

// lister gathers the lines of one package.
type lister struct {
	at     *types.Package
	prefix string
	lines  []string
}

func (l *lister) add(format string, a ...any) {
	l.lines = append(l.lines, l.prefix+fmt.Sprintf(format, a...))
}

// text writes a type; names of this package stand alone, those of parameters are left out: a change of them breaks
// nobody.
func (l *lister) text(t types.Type) string {
	return types.TypeString(nameless(t), func(p *types.Package) string {
		if p == l.at {
			return ""
		}
		return p.Name()
	})
}

// call writes parameters and results.
func (l *lister) call(t types.Type) string { return strings.TrimPrefix(l.text(t), "func") }

// nameless returns t without the names of parameters, wherever they stand outside of named types.
func nameless(t types.Type) types.Type {
	switch t := t.(type) {
	case *types.Signature:
		return types.NewSignatureType(nil, nil, nil, unnamed(t.Params()), unnamed(t.Results()), t.Variadic())
	case *types.Pointer:
		return types.NewPointer(nameless(t.Elem()))
	case *types.Slice:
		return types.NewSlice(nameless(t.Elem()))
	case *types.Array:
		return types.NewArray(nameless(t.Elem()), t.Len())
	case *types.Map:
		return types.NewMap(nameless(t.Key()), nameless(t.Elem()))
	case *types.Chan:
		return types.NewChan(t.Dir(), nameless(t.Elem()))
	}
	return t
}

func unnamed(t *types.Tuple) *types.Tuple {
	var list []*types.Var
	for v := range t.Variables() {
		list = append(list, types.NewParam(token.NoPos, nil, "", nameless(v.Type())))
	}
	return types.NewTuple(list...)
}

func (l *lister) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		l.add("const %s %s = %s", o.Name(), l.text(o.Type()), o.Val().ExactString())
	case *types.Var:
		l.add("var %s %s", o.Name(), l.text(o.Type()))
	case *types.Func:
		l.add("func %s%s%s", o.Name(), l.params(o.Type()), l.call(o.Type()))
	case *types.TypeName:
		l.typ(o)
	}
}

func (l *lister) typ(o *types.TypeName) {
	if o.IsAlias() {
		l.add("type %s%s = %s", o.Name(), l.params(o.Type()), l.text(types.Unalias(o.Type())))
		return
	}
	named := o.Type().(*types.Named)
	name := o.Name() + l.params(named)
	switch u := named.Underlying().(type) {
	case *types.Struct:
		l.fields(name, u)
	case *types.Interface:
		l.add("type %s interface", name)
		for m := range u.Methods() {
			if m.Exported() {
				l.add("type %s interface, %s%s", name, m.Name(), l.call(m.Type()))
			} else {
				l.add("type %s interface, unexported methods", name)
			}
		}
	default:
		l.add("type %s %s", name, l.text(u))
	}
	for m := range named.Methods() { // promoted ones are listed with the type that declares them
		if m.Exported() {
			l.add("method (%s) %s%s", l.text(m.Signature().Recv().Type()), m.Name(), l.call(m.Type()))
		}
	}
}

// fields lists the exported fields of a struct, and whether values of it can be compared: a field that ends that breaks
// callers, exported or not.
func (l *lister) fields(name string, u *types.Struct) {
	compared := ""
	if !types.Comparable(u) {
		compared = ", not comparable"
	}
	l.add("type %s struct%s", name, compared)
	for f := range u.Fields() {
		switch {
		case f.Embedded() && f.Exported():
			l.add("type %s struct, embedded %s", name, l.text(f.Type()))
		case f.Exported():
			l.add("type %s struct, %s %s", name, f.Name(), l.text(f.Type()))
		}
	}
}

// params writes the type parameters of a generic type.
func (l *lister) params(t types.Type) string {
	g, ok := t.(interface{ TypeParams() *types.TypeParamList })
	if !ok || g.TypeParams().Len() == 0 {
		return ""
	}
	var list []string
	for p := range g.TypeParams().TypeParams() {
		list = append(list, p.Obj().Name()+" "+l.text(p.Constraint()))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// Changed returns the lines that are only in was and those that are only in is. Both are sorted.
func Changed(was, is []string) (gone, added []string) {
	only := func(from, of []string) (list []string) {
		for _, line := range from {
			if _, found := slices.BinarySearch(of, line); !found {
				list = append(list, line)
			}
		}
		return list
	}
	return only(was, is), only(is, was)
}
