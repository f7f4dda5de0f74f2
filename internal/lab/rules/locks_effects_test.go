// Locks, taken: what a call does to the locks that are held, and the order that follows from it.

package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// lockSet is a set of locks by name: folder, type and field.
type lockSet map[string]bool

// held says that a lock is taken while another one is held, and where.
type held struct {
	outer, inner string
	at           token.Pos
}

// routine is what is known of one function: which locks it takes, itself or in what it calls, and for each which ones
// of its caller are always unlocked by then; which it leaves locked; which of its caller's it unlocks, on some way and
// on every way.
type routine struct {
	takes                   map[string]lockSet
	leaves, releases, frees lockSet
}

func (r *routine) equal(o *routine) bool {
	return maps.EqualFunc(r.takes, o.takes, maps.Equal) && maps.Equal(r.leaves, o.leaves) &&
		maps.Equal(r.releases, o.releases) && maps.Equal(r.frees, o.frees)
}

// takesAfter notes that a lock is taken when others of the caller have been unlocked.
func (r *routine) takesAfter(name string, gone lockSet) {
	if was, ok := r.takes[name]; ok {
		gone = both(was, gone)
	}
	r.takes[name] = maps.Clone(gone)
}

// both returns what is in two sets.
func both(a, b lockSet) lockSet {
	c := maps.Clone(a)
	maps.DeleteFunc(c, func(name string, _ bool) bool { return !b[name] })
	return c
}

func newRoutine() *routine {
	return &routine{takes: map[string]lockSet{}, leaves: lockSet{}, releases: lockSet{}, frees: lockSet{}}
}

// lock returns the lock and the method when a call is one of a mutex.
func (w *walker) lock(call *ast.CallExpr) (name, verb string) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	method, ok := w.info.Uses[f.Sel].(*types.Func)
	if !ok || !slices.ContainsFunc(mutexes, func(m string) bool {
		return strings.HasPrefix(method.FullName(), "(*"+m+").")
	}) {
		return "", ""
	}
	var object types.Object
	switch x := f.X.(type) {
	case *ast.SelectorExpr:
		object = w.info.Uses[x.Sel]
	case *ast.Ident:
		object = w.info.Uses[x]
	}
	if name = w.l.names[origin(object)]; name == "" { // an embedded one
		if t := w.info.Types[f.X].Type; t != nil {
			name = w.l.embeddedIn(t)
		}
	}
	return name, method.Name()
}

// embeddedIn returns the lock that a type embeds.
func (l *locking) embeddedIn(t types.Type) string {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	for i := 0; ok && i < s.NumFields(); i++ {
		if name := l.names[s.Field(i)]; name != "" && s.Field(i).Embedded() {
			return name
		}
	}
	return ""
}

// call takes one call into account: a lock of a mutex, or of what the called function is known to do.
func (w *walker) call(c *ast.CallExpr) {
	if name, verb := w.lock(c); name != "" {
		switch {
		case strings.HasSuffix(verb, "nlock"):
			if _, mine := w.held[name]; !mine {
				w.me.releases[name], w.gone[name] = true, true
			}
			delete(w.held, name)
		default:
			w.take(name, c.Pos(), !strings.HasPrefix(verb, "Try"))
			w.held[name] = true
			delete(w.gone, name)
		}
		return
	}
	r := w.callee(c)
	if r == nil {
		return
	}
	w.reach(r, c.Pos())
	for name := range r.releases { // out of a set: no order
		_, mine := w.held[name]
		switch {
		case mine && r.frees[name]:
			delete(w.held, name)
		case mine:
			w.held[name] = false
		default:
			w.me.releases[name] = true
			if r.frees[name] {
				w.gone[name] = true
			}
		}
	}
	for name := range r.leaves { // into a set: no order
		w.held[name] = true
		delete(w.gone, name)
	}
}

// reach notes what a routine takes that is called here.
func (w *walker) reach(r *routine, at token.Pos) {
	if r == nil {
		return
	}
	for name, gone := range r.takes { // into a set: no order
		before := maps.Clone(w.gone)
		maps.Copy(before, gone)
		w.me.takesAfter(name, before)
		for outer := range w.held { // into a map: no order
			if !gone[outer] {
				w.edge(outer, name, at)
			}
		}
	}
}

// take notes that a lock is taken here. Trying waits for nobody, so it may stand in any order.
func (w *walker) take(name string, at token.Pos, waits bool) {
	if !waits {
		return
	}
	w.me.takesAfter(name, w.gone)
	for outer := range w.held { // into a map: no order
		w.edge(outer, name, at)
	}
}

func (w *walker) edge(outer, inner string, at token.Pos) {
	if key := [2]string{outer, inner}; w.in.edges[key] == token.NoPos {
		w.in.edges[key] = at
	}
}
