// Reached: the types of other packages that callers of some come to hold, and what api.txt has of them.

package api

import (
	"go/types"
	"slices"
)

// Reached returns the types that the exported names of these packages lead to, wherever they are declared: as aliases,
// in fields, methods and signatures.
func Reached(packages ...*types.Package) map[*types.TypeName]bool {
	w := &walker{seen: map[types.Type]bool{}}
	for _, p := range packages {
		for _, name := range p.Scope().Names() {
			if o := p.Scope().Lookup(name); o.Exported() {
				w.walk(o.Type(), name)
			}
		}
	}
	reached := map[*types.TypeName]bool{}
	for t := range w.seen {
		if n, ok := t.(*types.Named); ok {
			reached[n.Origin().Obj()] = true
		}
	}
	return reached
}

// LinesOf returns those of Lines that are about these types of p: what they are, their exported fields and methods.
// What else p exports, its functions and constants too, is left out.
func LinesOf(p *types.Package, name string, these map[*types.TypeName]bool) []string {
	l := &lister{at: p, prefix: name + ": "}
	for _, name := range p.Scope().Names() {
		if o, ok := p.Scope().Lookup(name).(*types.TypeName); ok && o.Exported() && !o.IsAlias() && these[o] {
			l.typ(o)
		}
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines)
}
