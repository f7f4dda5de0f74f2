// Hidden: which types a caller of a package may come to hold, through exported names, fields, methods and signatures,
// and could not look up.

package api

import (
	"go/types"
	"slices"
	"strings"
)

// Hidden returns the types that the exported names of p lead to and that are declared in an internal package, sorted,
// each with a way to it: an importer of p could hold such a value and not read what it is. The standard library's own
// count for nothing.
func Hidden(p *types.Package) []string {
	w := &walker{seen: map[types.Type]bool{}}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			w.walk(o.Type(), p.Name()+"."+name)
		}
	}
	slices.Sort(w.found)
	return slices.Compact(w.found)
}

// walker follows types. A type that can be looked up is followed once.
type walker struct {
	seen  map[types.Type]bool
	found []string
}

func (w *walker) walk(t types.Type, way string) {
	t = types.Unalias(t)
	if n, ok := t.(*types.Named); ok && foreign(n) {
		if internal(n.Obj().Pkg().Path()) {
			w.found = append(w.found, way+" leads to "+n.Obj().Pkg().Path()+"."+n.Obj().Name())
			return
		}
	}
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		w.named(t, way)
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() { // what is embedded lends its methods
				w.walk(f.Type(), way+"."+f.Name())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			w.walk(m.Type(), way+"."+m.Name())
		}
	case *types.Signature:
		for v := range t.Params().Variables() {
			w.walk(v.Type(), way+"()")
		}
		for v := range t.Results().Variables() {
			w.walk(v.Type(), way+"()")
		}
	case *types.Map:
		w.walk(t.Key(), way)
		w.walk(t.Elem(), way)
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		w.walk(t.Elem(), way)
	}
}

func (w *walker) named(t *types.Named, way string) {
	for a := range t.TypeArgs().Types() {
		w.walk(a, way)
	}
	if !foreign(t) {
		return
	}
	w.walk(t.Underlying(), way)
	for m := range t.Methods() {
		if m.Exported() {
			w.walk(m.Type(), way+"."+m.Name())
		}
	}
}

// foreign tells types of modules, with paths that begin with a domain, from those of the standard library.
func foreign(t *types.Named) bool {
	if t.Obj().Pkg() == nil {
		return false
	}
	first, _, _ := strings.Cut(t.Obj().Pkg().Path(), "/")
	return strings.Contains(first, ".")
}
