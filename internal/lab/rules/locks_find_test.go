// Locks, found: every mutex and every function of the module, and what each function is known to do with locks, until
// following the calls teaches nothing new.

package rules

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// locking follows the functions of a set of packages.
type locking struct {
	names    map[types.Object]string // of locks
	routines map[string]*routine
	bodies   []*body
	methods  map[string]map[string]*types.Func // by type: its methods, by name, with those of what it embeds
	behinds  map[string][]string               // by method of an interface: the routines that may stand behind it
	values   map[string][]string               // by field or parameter: the functions, fields and parameters given to it
	kept     map[*ast.FuncLit]string           // functions made on the spot for a field: the names of their routines
	edges    map[[2]string]token.Pos
}

// body is one function with the types of its package, and what the last walk through it has shown.
type body struct {
	name  string
	code  *ast.BlockStmt
	info  *types.Info
	asked map[string]bool // routines that it depends on
	edges map[[2]string]token.Pos
}

// mutexes are the types that are locks, the last one ours.
var mutexes = []string{"sync.Mutex", "sync.RWMutex", module + "/internal/base/latch.Latch"}

// isMutex reports whether what has this type is a lock. A pointer to a lock of ours is the receiver of its methods.
func isMutex(t types.Type) bool {
	if p, ok := t.(*types.Pointer); ok {
		return slices.Contains(mutexes[:2], p.Elem().String())
	}
	return slices.Contains(mutexes, t.String())
}

// add takes the files of one package.
func (l *locking) add(folder string, files []*source, info *types.Info) {
	for _, s := range files {
		var around []string // the declarations that the walk is in
		var walk func(n ast.Node)
		walk = func(n ast.Node) {
			ast.Inspect(n, func(c ast.Node) bool {
				switch c := c.(type) {
				case *ast.FuncDecl:
					if c == n {
						return true
					}
					around = append(around[:0], strings.TrimPrefix(receiver(c)+"."+c.Name.Name, "."))
					walk(c)
					around = around[:0]
					return false
				case *ast.TypeSpec:
					if c == n {
						return true
					}
					around = append(around, c.Name.Name)
					walk(c)
					around = around[:len(around)-1]
					return false
				case *ast.Ident:
					if o, ok := info.Defs[c].(*types.Var); ok && isMutex(o.Type()) {
						l.names[o] = strings.Join(append([]string{folder}, append(slices.Clone(around), c.Name)...), ".")
					}
				case *ast.Field: // an embedded one
					if t := info.Types[c.Type].Type; len(c.Names) == 0 && t != nil && isMutex(t) {
						l.names[embedded(info, c)] = strings.Join(append([]string{folder},
							append(slices.Clone(around), "Mutex")...), ".")
					}
				}
				return true
			})
		}
		walk(s.file)
		for _, o := range info.Defs { // into a map: no order
			if t, ok := o.(*types.TypeName); ok && !types.IsInterface(t.Type()) {
				has := map[string]*types.Func{}
				for m := range types.NewMethodSet(types.NewPointer(t.Type())).Methods() {
					has[m.Obj().Name()] = m.Obj().(*types.Func)
				}
				l.methods[t.Type().String()] = has
			}
		}
		for _, decl := range s.file.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Body != nil {
				o, ok := info.Defs[d.Name].(*types.Func)
				if !ok {
					continue
				}
				l.bodies = append(l.bodies, &body{name: o.FullName(), code: d.Body, info: info})
				l.handed(d.Body, o, info)
			}
		}
	}
}

// embedded returns the field that an embedded mutex is.
func embedded(info *types.Info, f *ast.Field) types.Object {
	for id, o := range info.Defs { // one stands there: no order
		if v, ok := o.(*types.Var); ok && v.Embedded() && id.Pos() >= f.Pos() && id.Pos() < f.End() {
			return o
		}
	}
	return nil
}

// follow walks all functions, and again those that depend on one of which more is known now, until nothing changes.
func (l *locking) follow() {
	changed := map[string]bool{}
	for round := range 60 {
		last := changed
		changed = map[string]bool{}
		for _, b := range l.bodies {
			stale := round == 0
			for name := range b.asked { // any of them: no order
				stale = stale || last[name] || changed[name]
			}
			if stale && l.walk(b) {
				changed[b.name] = true
			}
		}
		if len(changed) == 0 {
			for _, b := range l.bodies {
				for key, at := range b.edges { // the first in the text counts: no order
					if was := l.edges[key]; was == token.NoPos || at < was {
						l.edges[key] = at
					}
				}
			}
			return
		}
	}
	panic("rules: the search for locks comes to no end")
}

// walk goes through one function and reports whether something new came out.
func (l *locking) walk(b *body) bool {
	b.asked, b.edges = map[string]bool{}, map[[2]string]token.Pos{}
	w := newWalker(l, b, b.info)
	for end, which := range either { // at most one: no order
		if strings.HasSuffix(b.name, end) {
			w.either = which[:]
		}
	}
	w.statement(b.code)
	if !w.over {
		w.leave()
	}
	w.me.frees = w.freed
	if w.freed == nil { // it never returns
		w.me.frees = lockSet{}
	}
	if listed(unlocked, b.name) {
		w.me.leaves = lockSet{}
	}
	if listed(keeps, b.name) {
		w.me.releases = lockSet{}
	}
	was := l.routines[b.name]
	l.routines[b.name] = w.me
	return was == nil || !was.equal(w.me)
}

func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(end string) bool { return strings.HasSuffix(name, end) })
}

// unlocked lists functions that hold nothing when they return, though their text does not show it.
var unlocked = []string{
	".ahead).run", // host.enter has the lock only when it returns an entity, and prefetched.exit gives it up
}

// either lists functions that are called under the one of two locks that Host.Lock has taken. A condition at their
// beginning tells which: the first lock is held when it is true.
var either = map[string][2]string{
	".Host).Send":   {"internal/runtime/exec.execQueue.mu", "internal/runtime/exec.Host.mu"},
	".Host).Tell":   {"internal/runtime/exec.execQueue.mu", "internal/runtime/exec.Host.mu"},
	".Host).Unlock": {"internal/runtime/exec.execQueue.mu", "internal/runtime/exec.Host.mu"},
}

// keeps lists functions that unlock nothing of their caller's, though their text does not show it.
var keeps = []string{
	".Host).workLeft", // the host is Inline, and take unlocks those of Blocking entities
}

// order returns which lock is taken while which is held, sorted.
func (l *locking) order() (list []held) {
	for key, at := range l.edges { // sorted below: no order
		list = append(list, held{key[0], key[1], at})
	}
	slices.SortFunc(list, func(a, b held) int {
		return cmp.Or(cmp.Compare(a.outer, b.outer), cmp.Compare(a.inner, b.inner))
	})
	return list
}
