// Locks: every mutex of the module stands in the table of docs/contributing/locks.md, which says what it protects and
// which others may be taken while it is held. The code is followed from call to call and held against that.

package rules

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

func isMutex(t types.Type) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	s := t.String()
	return s == "sync.Mutex" || s == "sync.RWMutex"
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
	".ahead).run", // host.enter has the lock only when it returns an entity, and foreseen.exit gives it up
}

// either lists functions that are called under the one of two locks that Host.Lock has taken. A condition at their
// beginning tells which: the first lock is held when it is true.
var either = map[string][2]string{
	".Host).Send":   {"internal/runtime/exec.execQueue.mu", "internal/runtime/exec.Host.mu"},
	".Host).Unlock": {"internal/runtime/exec.execQueue.mu", "internal/runtime/exec.Host.mu"},
}

// keeps lists functions that unlock nothing of their caller's, though their text does not show it.
var keeps = []string{
	".Host).workLeft", // the host is Inline, and take unlocks those of Blocking entities
}

func newRoutine() *routine {
	return &routine{takes: map[string]lockSet{}, leaves: lockSet{}, releases: lockSet{}, frees: lockSet{}}
}

// walker goes through one function in the order of its text.
type walker struct {
	l        *locking
	in       *body
	info     *types.Info
	me       *routine
	held     lockSet                  // false: what was called has unlocked it on some way
	gone     lockSet                  // of the caller, unlocked by now
	freed    lockSet                  // of the caller, unlocked wherever the function returned so far; nil: it did not
	deferred lockSet                  // unlocked when the function returns
	left     map[types.Object]lockSet // by error: what the call that gave it leaves locked when it is nil
	over     bool                     // what follows is not reached from here
	either   []string                 // as in the list of that name; nil after the first condition
}

func newWalker(l *locking, b *body, info *types.Info) *walker {
	return &walker{l: l, in: b, info: info, me: newRoutine(), held: lockSet{}, gone: lockSet{}, deferred: lockSet{},
		left: map[types.Object]lockSet{}}
}

func (w *walker) statement(n ast.Node) {
	if n == nil {
		return
	}
	switch n := n.(type) {
	case *ast.BlockStmt:
		for _, s := range n.List {
			w.statement(s)
		}
	case *ast.IfStmt:
		w.statement(n.Init)
		tried := w.tried(n.Cond)
		w.expression(n.Cond)
		var other ast.Stmt = &ast.EmptyStmt{}
		which := w.either
		w.either = nil
		if n.Else != nil {
			other = n.Else
		}
		w.branches([]ast.Stmt{n.Body, other}, tried, which...)
	case *ast.ForStmt:
		w.statement(n.Init)
		w.expression(n.Cond)
		w.branches([]ast.Stmt{n.Body, &ast.EmptyStmt{}}, w.tried(n.Cond))
		w.statement(n.Post)
	case *ast.RangeStmt:
		w.expression(n.X)
		w.branches([]ast.Stmt{n.Body, &ast.EmptyStmt{}}, nil)
	case *ast.SwitchStmt:
		w.statement(n.Init)
		w.expression(n.Tag)
		w.clauses(n.Body)
	case *ast.TypeSwitchStmt:
		w.statement(n.Init)
		w.statement(n.Assign)
		w.clauses(n.Body)
	case *ast.SelectStmt:
		w.clauses(n.Body)
	case *ast.LabeledStmt:
		w.statement(n.Stmt)
	case *ast.DeferStmt:
		w.later(n.Call)
	case *ast.GoStmt:
		w.elsewhere(n.Call)
	case *ast.ReturnStmt:
		for _, x := range n.Results {
			if lit, ok := x.(*ast.FuncLit); ok {
				w.apart(lit)
			} else {
				w.expression(x)
			}
		}
		w.leave()
		w.over = true
	case *ast.BranchStmt:
		w.over = w.over || n.Tok != token.FALLTHROUGH
	case *ast.AssignStmt:
		w.expression(n)
		w.failing(n)
	default:
		w.expression(n)
	}
}

// leave notes what is held where the function returns.
func (w *walker) leave() {
	for name, surely := range w.held { // into a set: no order
		if surely && !w.deferred[name] {
			w.me.leaves[name] = true
		}
	}
	if w.freed == nil {
		w.freed = maps.Clone(w.gone)
	}
	w.freed = both(w.freed, w.gone)
}

// failing remembers which error tells whether a call has left its locks locked.
func (w *walker) failing(n *ast.AssignStmt) {
	id, ok := n.Lhs[len(n.Lhs)-1].(*ast.Ident)
	if !ok {
		return
	}
	o := cmp.Or(w.info.Defs[id], w.info.Uses[id])
	if o == nil || o.Type().String() != "error" {
		return
	}
	delete(w.left, o)
	if c, ok := n.Rhs[0].(*ast.CallExpr); ok && len(n.Rhs) == 1 {
		if r := w.callee(c); r != nil {
			w.left[o] = r.leaves
		}
	}
}

// clauses walks the cases of a switch or select, each from what is held before.
func (w *walker) clauses(body *ast.BlockStmt) {
	list := []ast.Stmt{&ast.EmptyStmt{}}
	for _, c := range body.List {
		switch c := c.(type) {
		case *ast.CaseClause:
			for _, x := range c.List {
				w.expression(x)
			}
			list = append(list, &ast.BlockStmt{List: c.Body})
			if c.List == nil {
				list = list[1:] // one of them is taken
			}
		case *ast.CommClause:
			all := c.Body
			if c.Comm != nil {
				all = append([]ast.Stmt{c.Comm}, all...)
			}
			list = append(list, &ast.BlockStmt{List: all})
		}
	}
	w.branches(list, nil)
}

// branches walks ways of which one is taken. Afterwards is held what any of them holds that goes on. only names locks
// that are held on the first way alone, with a "!" on the others alone. either names two of the caller's: the first is
// not held on the other ways, the second not on the first.
func (w *walker) branches(ways []ast.Stmt, only []string, either ...string) {
	before, after, open := maps.Clone(w.held), lockSet{}, false
	gone, all := maps.Clone(w.gone), lockSet(nil)
	for i, way := range ways {
		w.held, w.gone, w.over = maps.Clone(before), maps.Clone(gone), false
		if len(either) == 2 {
			w.gone[either[1-min(i, 1)]] = true
		}
		for _, name := range only {
			if bare, not := strings.CutPrefix(name, "!"); not == (i == 0) {
				delete(w.held, bare)
			} else {
				w.held[bare] = true
			}
		}
		w.statement(way)
		if !w.over {
			if !open {
				all = w.gone
			}
			open, all = true, both(all, w.gone)
			for name, surely := range w.held { // into a set: no order
				after[name] = after[name] || surely
			}
		}
	}
	if w.held, w.gone, w.over = after, all, !open; !open {
		w.held, w.gone = before, gone
	}
}

// tried returns the locks that a condition tries to take, with a "!" where the condition holds when it failed.
func (w *walker) tried(cond ast.Expr) (names []string) {
	switch c := cond.(type) {
	case *ast.UnaryExpr:
		if c.Op == token.NOT {
			for _, name := range w.tried(c.X) {
				names = append(names, "!"+name)
			}
		}
	case *ast.BinaryExpr:
		if c.Op == token.LAND || c.Op == token.LOR {
			names = append(w.tried(c.X), w.tried(c.Y)...)
		}
		if id, ok := c.X.(*ast.Ident); ok && (c.Op == token.EQL || c.Op == token.NEQ) {
			for _, name := range sortedKeys(w.left[w.info.Uses[id]]) {
				names = append(names, strings.TrimPrefix("!"+name, map[token.Token]string{token.EQL: "!"}[c.Op]))
			}
		}
	case *ast.ParenExpr:
		return w.tried(c.X)
	case *ast.CallExpr:
		if name, verb := w.lock(c); name != "" && strings.HasPrefix(verb, "Try") {
			names = append(names, name)
		} else if r := w.callee(c); r != nil { // what a condition calls leaves its lock to one of the ways
			names = append(names, sortedKeys(r.leaves)...)
		}
	}
	return names
}

// callee returns what is known of the function that a call names, nil for one of another module or of a variable.
func (w *walker) callee(c *ast.CallExpr) *routine {
	var id *ast.Ident
	switch f := c.Fun.(type) {
	case *ast.Ident:
		id = f
	case *ast.SelectorExpr:
		id = f.Sel
	case *ast.IndexExpr:
		id, _ = f.X.(*ast.Ident)
	}
	if id == nil {
		return nil
	}
	f, ok := origin(w.info.Uses[id]).(*types.Func)
	if !ok {
		return w.given(c.Fun)
	}
	return w.function(f)
}

// function returns what is known of a function or method, nil for one of another module.
func (w *walker) function(f *types.Func) *routine {
	if f.Pkg() == nil || !strings.HasPrefix(f.Pkg().Path(), module) {
		return nil
	}
	if recv := f.Signature().Recv(); recv != nil {
		if face, ok := recv.Type().Underlying().(*types.Interface); ok {
			return w.together(w.l.behind(f, recv.Type(), face))
		}
	}
	w.in.asked[f.FullName()] = true
	return w.l.routines[f.FullName()]
}

// users are types of what embedders give: their methods and fields are not followed.
var users = strings.Fields("entity.Handler entity.Type kith.Config kith.Region exec.incidents")

// behind names the routines that stand behind a method of an interface of this module: those of all types that have
// every method of it, by name and shape.
func (l *locking) behind(f *types.Func, recv types.Type, face *types.Interface) []string {
	of := recv.String() + "." + f.Name()
	if list, known := l.behinds[of]; known || slices.Contains(users, path.Base(recv.String())) {
		return list
	}
	list := []string{}
	for _, has := range l.methods { // sorted below: no order
		whole := true
		for m := range face.Methods() {
			is := has[m.Name()]
			whole = whole && is != nil && alike(is, m)
		}
		if whole {
			list = append(list, origin(has[f.Name()]).(*types.Func).FullName())
		}
	}
	slices.Sort(list)
	l.behinds[of] = list
	return list
}

// alike reports whether two methods take and return the same, as far as one can say without knowing type arguments.
func alike(a, b *types.Func) bool {
	x, y := a.Signature(), b.Signature()
	if x.RecvTypeParams().Len() > 0 || y.RecvTypeParams().Len() > 0 {
		return true
	}
	same := func(x, y *types.Tuple) bool {
		ok := x.Len() == y.Len()
		for i := 0; ok && i < x.Len(); i++ {
			ok = x.At(i).Type().String() == y.At(i).Type().String()
		}
		return ok
	}
	return same(x.Params(), y.Params()) && same(x.Results(), y.Results())
}

// together returns what one of several routines may do. What each may unlock of its caller's is not known.
func (w *walker) together(names []string) *routine {
	all := newRoutine()
	for _, name := range names {
		w.in.asked[name] = true
		if r := w.l.routines[name]; r != nil {
			for taken := range r.takes { // into a set: no order
				all.takes[taken] = lockSet{}
			}
		}
	}
	return all
}

// given returns what is known of the functions that are kept in the field that a call names, nil when it is none.
func (w *walker) given(fun ast.Expr) *routine {
	f, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	from := fieldOf(f, w.info)
	if from == "" {
		return nil
	}
	var names []string
	seen, open := map[string]bool{}, []string{from}
	for len(open) > 0 {
		at := open[0]
		if open = open[1:]; seen[at] {
			continue
		}
		seen[at] = true
		if strings.Contains(at, "#") {
			open = append(open, w.l.values[at]...)
		} else {
			names = append(names, at)
		}
	}
	return w.together(names)
}

// fieldOf names the field of a struct of this module that a selector stands for: the type, a "#" and the field. It is
// empty for others and for those of users.
func fieldOf(f *ast.SelectorExpr, info *types.Info) string {
	sel := info.Selections[f]
	if sel == nil || sel.Kind() != types.FieldVal {
		return ""
	}
	t := sel.Recv()
	for _, i := range sel.Index()[:len(sel.Index())-1] {
		t = structOf(t).Field(i).Type()
	}
	return fieldName(t, f.Sel.Name)
}

func structOf(t types.Type) *types.Struct {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, _ := t.Underlying().(*types.Struct)
	return s
}

func fieldName(t types.Type, field string) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := t.(*types.Named)
	if !ok || n.Obj().Pkg() == nil || !strings.HasPrefix(n.Obj().Pkg().Path(), module) {
		return ""
	}
	of := n.Obj().Pkg().Path() + "." + n.Obj().Name()
	if slices.Contains(users, path.Base(of)) {
		return ""
	}
	return of + "#" + field
}

// handed notes which functions are given to fields and parameters in a function.
func (l *locking) handed(code *ast.BlockStmt, in *types.Func, info *types.Info) {
	give := func(to string, v ast.Expr) {
		if from := l.value(v, in, info); to != "" && from != "" {
			l.values[to] = append(l.values[to], from)
			if lit, ok := v.(*ast.FuncLit); ok && l.kept[lit] == "" {
				l.bodies = append(l.bodies, &body{name: from, code: lit.Body, info: info})
				l.kept[lit] = from
			}
		}
	}
	ast.Inspect(code, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			t := info.Types[n].Type
			for i, v := range n.Elts {
				if pair, ok := v.(*ast.KeyValueExpr); ok {
					if id, ok := pair.Key.(*ast.Ident); ok && t != nil && structOf(t) != nil {
						give(fieldName(t, id.Name), pair.Value)
					}
				} else if s := structOf(t); s != nil && i < s.NumFields() {
					give(fieldName(t, s.Field(i).Name()), v)
				}
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if f, ok := to.(*ast.SelectorExpr); ok && len(n.Rhs) == len(n.Lhs) {
					give(fieldOf(f, info), n.Rhs[i])
				}
			}
		case *ast.CallExpr:
			var id *ast.Ident
			switch f := n.Fun.(type) {
			case *ast.Ident:
				id = f
			case *ast.SelectorExpr:
				id = f.Sel
			}
			f, ok := origin(info.Uses[id]).(*types.Func)
			if !ok || f.Pkg() == nil || !strings.HasPrefix(f.Pkg().Path(), module) {
				return true
			}
			for i, v := range n.Args {
				if i < f.Signature().Params().Len() {
					give(fmt.Sprintf("%s#%d", f.FullName(), i), v)
				}
			}
		}
		return true
	})
}

// value names what a function value is: a function, a field or a parameter. It is empty for anything else.
func (l *locking) value(v ast.Expr, in *types.Func, info *types.Info) string {
	if t := info.Types[v].Type; t == nil {
		return ""
	} else if _, ok := t.Underlying().(*types.Signature); !ok {
		return ""
	}
	var id *ast.Ident
	switch v := v.(type) {
	case *ast.FuncLit:
		return cmp.Or(l.kept[v], fmt.Sprintf("%s@%d", in.FullName(), v.Pos()))
	case *ast.SelectorExpr:
		if field := fieldOf(v, info); field != "" {
			return field
		}
		id = v.Sel
	case *ast.Ident:
		id = v
	}
	switch o := origin(info.Uses[id]).(type) {
	case *types.Func:
		return o.FullName()
	case *types.Var:
		for i := range in.Signature().Params().Len() {
			if in.Signature().Params().At(i) == o {
				return fmt.Sprintf("%s#%d", in.FullName(), i)
			}
		}
	}
	return ""
}

// lock returns the lock and the method when a call is one of a mutex.
func (w *walker) lock(call *ast.CallExpr) (name, verb string) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	method, ok := w.info.Uses[f.Sel].(*types.Func)
	if !ok || !strings.HasPrefix(method.FullName(), "(*sync.Mutex).") &&
		!strings.HasPrefix(method.FullName(), "(*sync.RWMutex).") {
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

// expression walks calls, inner ones first.
func (w *walker) expression(n ast.Node) {
	if n == nil {
		return
	}
	ast.Inspect(n, func(c ast.Node) bool {
		switch c := c.(type) {
		case *ast.FuncLit:
			if w.l.kept[c] == "" {
				w.literal(c)
			}
			return false
		case *ast.CallExpr:
			if lit, ok := c.Fun.(*ast.FuncLit); ok {
				w.literal(lit)
			} else {
				w.expression(c.Fun)
			}
			for _, arg := range c.Args {
				later := slices.Contains(laters, called(c))
				if lit, ok := arg.(*ast.FuncLit); ok && later {
					w.apart(lit)
				} else if ok {
					w.literal(lit)
				} else if w.expression(arg); !later {
					w.passed(arg)
				}
			}
			w.call(c)
			return false
		}
		return true
	})
}

// laters are the functions that keep what they are given for another goroutine, or for later.
var laters = strings.Fields("post spawn AfterFunc Go")

// passed counts a function that is given by its name as called here.
func (w *walker) passed(arg ast.Expr) {
	var id *ast.Ident
	switch a := arg.(type) {
	case *ast.Ident:
		id = a
	case *ast.SelectorExpr:
		id = a.Sel
	}
	if f, ok := origin(w.info.Uses[id]).(*types.Func); ok {
		w.reach(w.function(f), arg.Pos())
	}
}

// called returns the name of the function that a call names.
func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// apart walks a function that runs when nothing of this one is held.
func (w *walker) apart(f *ast.FuncLit) {
	newWalker(w.l, w.in, w.info).statement(f.Body)
}

// literal walks a function that is made here as if it were called here.
func (w *walker) literal(f *ast.FuncLit) {
	inner := newWalker(w.l, w.in, w.info)
	inner.me, inner.held, inner.gone, inner.deferred = w.me, maps.Clone(w.held), maps.Clone(w.gone), maps.Clone(w.held)
	inner.statement(f.Body)
}

// elsewhere walks a call that another goroutine makes: nothing is held there.
func (w *walker) elsewhere(call *ast.CallExpr) {
	for _, arg := range call.Args {
		w.expression(arg)
	}
	if lit, ok := call.Fun.(*ast.FuncLit); ok {
		w.apart(lit)
	}
}

// later walks a deferred call.
func (w *walker) later(call *ast.CallExpr) {
	if name, verb := w.lock(call); name != "" && strings.HasSuffix(verb, "nlock") {
		w.deferred[name] = true
		return
	}
	if lit, ok := call.Fun.(*ast.FuncLit); ok {
		ast.Inspect(lit.Body, func(n ast.Node) bool {
			if _, ok := n.(*ast.IfStmt); ok {
				return false // not always
			}
			if c, ok := n.(*ast.CallExpr); ok {
				if name, verb := w.lock(c); name != "" && strings.HasSuffix(verb, "nlock") {
					w.deferred[name] = true
				}
			}
			return true
		})
	}
	if r := w.callee(call); r != nil {
		maps.Copy(w.deferred, r.releases)
	}
	before := maps.Clone(w.held)
	w.expression(call)
	w.held = before
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

// order returns who is taken while who is held, sorted.
func (l *locking) order() (list []held) {
	for key, at := range l.edges { // sorted below: no order
		list = append(list, held{key[0], key[1], at})
	}
	slices.SortFunc(list, func(a, b held) int {
		return cmp.Or(cmp.Compare(a.outer, b.outer), cmp.Compare(a.inner, b.inner))
	})
	return list
}

// lockRow is a row of the table: what a lock protects, and what is taken while it is held.
type lockRow struct {
	protects string
	inner    []string
}

var lockTable = filepath.Join(repository, "docs", "contributing", "locks.md")

// lockLine splits a line of the table: | `lock` | what it protects |
func lockLine(line string) (name, protects string, ok bool) {
	cells := strings.Split(strings.TrimSpace(line), "|")
	if len(cells) != 4 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
		return "", "", false
	}
	return strings.Trim(strings.TrimSpace(cells[1]), "`"), strings.TrimSpace(cells[2]), true
}

// orderLine splits a line of the order: a lock with a colon, indented by four, or locks taken under it, by eight.
func orderLine(line string) (outer string, inner []string, ok bool) {
	if rest, deep := strings.CutPrefix(line, "        "); deep {
		return "", strings.Fields(rest), true
	}
	rest, is := strings.CutPrefix(line, "    ")
	outer, end, found := strings.Cut(strings.TrimSpace(rest), ":")
	return outer, nil, is && found && end == ""
}

// readLocks reads the table and, below it, the order.
func readLocks(text string) map[string]lockRow {
	rows, at := map[string]lockRow{}, ""
	for line := range strings.Lines(text) {
		if name, protects, ok := lockLine(line); ok {
			rows[name] = lockRow{protects: protects}
		}
		if outer, inner, ok := orderLine(line); ok && len(rows) > 0 {
			at = cmp.Or(outer, at)
			row := rows[at]
			row.inner = append(row.inner, inner...)
			rows[at] = row
		}
	}
	return rows
}

// leads reports whether the table leads from one lock to another, directly or over others.
func leads(rows map[string]lockRow, from, to string) bool {
	seen, open := lockSet{}, slices.Clone(rows[from].inner)
	for len(open) > 0 {
		at := open[0]
		if open = open[1:]; at == to {
			return true
		}
		if !seen[at] {
			seen[at] = true
			open = append(open, rows[at].inner...)
		}
	}
	return false
}

// judgeLocks holds the locks and their order against the table.
func judgeLocks(names []string, order []held, rows map[string]lockRow) (found []string) {
	for _, name := range names {
		if rows[name].protects == "" {
			found = append(found, name+": the table does not say what it protects")
		}
	}
	for _, name := range sortedKeys(rows) {
		if !slices.Contains(names, name) {
			found = append(found, name+" is no lock any more: run with -update")
		}
		for _, inner := range rows[name].inner {
			if !slices.ContainsFunc(order, func(h held) bool { return h.outer == name && h.inner == inner }) {
				found = append(found, fmt.Sprintf("%s is not taken under %s any more: run with -update", inner, name))
			}
		}
		if leads(rows, name, name) {
			found = append(found, "the order leads from "+name+" back to itself")
		}
	}
	for _, h := range order {
		if !leads(rows, h.outer, h.inner) {
			found = append(found, fmt.Sprintf("%s: %s is taken under %s, which the table does not allow",
				positions.Position(h.at), h.inner, h.outer))
		}
	}
	return found
}

// rewriteLocks returns the text of the table with today's locks: one whose type has moved keeps its words, a new one
// gets a row without any, and of the order stands what does not follow from the rest.
func rewriteLocks(text string, names []string, order []held) string {
	was, now := readLocks(text), map[string]lockRow{}
	for _, name := range names {
		row := was[name]
		for _, old := range sortedKeys(was) {
			if row.protects == "" && tail2(old) == tail2(name) {
				row.protects = was[old].protects
			}
		}
		row.inner = nil
		for _, h := range order {
			if h.outer == name {
				row.inner = append(row.inner, h.inner)
			}
		}
		now[name] = row
	}
	for _, name := range names { // what others lead to as well is left out
		row := now[name]
		row.inner = slices.DeleteFunc(slices.Clone(row.inner), func(inner string) bool {
			return slices.ContainsFunc(row.inner, func(over string) bool { return over != inner && leads(now, over, inner) })
		})
		now[name] = row
	}
	var b strings.Builder
	table, orders := false, false
	for line := range strings.Lines(text) {
		_, _, row := lockLine(line)
		_, _, ordered := orderLine(line)
		if ordered = ordered && table; ordered && !orders {
			orders = true
			b.WriteString(orderText(names, now))
		}
		if !row && !ordered {
			b.WriteString(line)
		}
		if strings.HasPrefix(line, "|---") {
			table = true
			for _, name := range names {
				fmt.Fprintf(&b, "| `%s` | %s |\n", name, now[name].protects)
			}
		}
	}
	return b.String()
}

// orderText prints who is taken under whom, in lines of up to maxLine characters.
func orderText(names []string, rows map[string]lockRow) string {
	var b strings.Builder
	for _, name := range names {
		if len(rows[name].inner) == 0 {
			continue
		}
		fmt.Fprintf(&b, "    %s:\n", name)
		line := "       "
		for _, inner := range rows[name].inner {
			if len(line)+1+len(inner) > maxLine {
				b.WriteString(line + "\n")
				line = "       "
			}
			line += " " + inner
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// tail2 returns the type and field of a lock's name.
func tail2(name string) string {
	parts := strings.Split(path.Base(name), ".")
	return strings.Join(parts[max(0, len(parts)-2):], ".")
}

// TestLocks holds every mutex of the module, and the order in which they are taken, against docs/contributing/locks.md
// (CARD-2).
func TestLocks(t *testing.T) {
	all, err := sources()
	require.NoError(t, err)
	l := newLocking()
	packages := map[string][]*source{}
	for _, s := range all {
		if !s.tests {
			packages[path.Dir(s.path)] = append(packages[path.Dir(s.path)], s)
		}
	}
	from := exports(t, prefixed("./", sortedKeys(packages))...)
	for _, folder := range sortedKeys(packages) {
		l.add(folder, packages[folder], typed(path.Join(module, folder), packages[folder], from))
	}
	l.follow()
	names := slices.Sorted(maps.Values(l.names))
	require.Greater(t, len(names), 40, "the search finds next to nothing")
	for _, end := range slices.Concat(unlocked, keeps, sortedKeys(either)) {
		require.True(t, slices.ContainsFunc(l.bodies, func(b *body) bool { return strings.HasSuffix(b.name, end) }),
			"%s is listed and there is no such function", end)
	}
	text, err := os.ReadFile(lockTable)
	require.NoError(t, err)
	if *update {
		text = []byte(rewriteLocks(string(text), names, l.order()))
		require.NoError(t, os.WriteFile(lockTable, text, 0o600))
	}
	if found := judgeLocks(names, l.order(), readLocks(string(text))); len(found) > 0 {
		t.Fatalf("%d contradictions between the code and docs/contributing/locks.md:\n%s", len(found),
			strings.Join(found, "\n"))
	}
}

// TestLocksRule feeds the search code that takes two locks in every way it has to understand, and the table orders that
// the code breaks.
func TestLocksRule(t *testing.T) {
	const head = "package x\nimport \"sync\"\ntype a struct { mu sync.Mutex }\ntype b struct { mu sync.RWMutex }\n" +
		"type c struct { sync.Mutex }\ntype face interface { take() }\n" +
		"func (y *b) take() { y.mu.RLock(); y.mu.RUnlock() }\n" +
		"func (x *a) lock() { x.mu.Lock() }\nfunc (x *a) unlock() { x.mu.Unlock() }\nfunc post(f func()) {}\n" +
		"func do(f func()) { f() }\n" +
		"func (x *a) pass() { x.unlock() }\nfunc (x *a) maybe(ok bool) { if ok { x.unlock() } }\n" +
		"func (x *a) late(y *b) { y.take(); x.mu.Unlock() }\nfunc (x *a) early(y *b) { x.unlock(); y.take() }\n" +
		"func (x *a) try() (err error) {\nx.mu.Lock()\ndefer func() { if err != nil { x.mu.Unlock() } }()\n" +
		"return nil\n}\n" +
		"type keeper struct { call func() }\nfunc keep(k *keeper, f func()) { k.call = f }\n" +
		"type wide interface { take(); more() }\ntype rider struct { *b }\nfunc (rider) more() {}\n"
	from := exports(t, "sync")
	order := func(body string) (found []string) {
		s, err := parse("x/x.go", []byte(head+"func f(x *a, y *b, z *c, i face, ok bool) {\n"+body+"\n}\n"))
		require.NoError(t, err)
		l := newLocking()
		l.add("x", []*source{s}, typed(module+"/x", []*source{s}, from))
		l.follow()
		require.Equal(t, []string{"x.a.mu", "x.b.mu", "x.c.Mutex"}, slices.Sorted(maps.Values(l.names)))
		for _, h := range l.order() {
			found = append(found, h.outer+" "+h.inner)
		}
		return found
	}
	ab := []string{"x.a.mu x.b.mu"}
	for _, body := range []string{
		"x.mu.Lock(); y.mu.Lock()", "x.mu.Lock(); defer x.mu.Unlock(); y.take()", "x.lock(); y.take(); x.unlock()",
		"if ok { x.mu.Lock() }; y.take()", "x.mu.Lock(); i.take()", "x.mu.Lock(); do(func() { y.take() })",
		"if !x.mu.TryLock() { return }; y.take()", "for ok { x.lock(); y.take(); x.unlock() }",
		"switch { case ok: x.lock() }; y.take()", "x.lock(); defer x.unlock(); y.take()",
		"k := &keeper{call: y.take}; x.lock(); k.call()", "k := &keeper{y.take}; x.lock(); k.call()",
		"k := &keeper{}; k.call = func() { y.take() }; x.lock(); k.call()",
		"k := &keeper{}; keep(k, y.take); x.lock(); k.call()", "x.lock(); do(y.take)",
		"x.lock(); x.maybe(ok); y.take()", "x.lock(); x.late(y)", "if x.try() == nil { y.take() }",
		"if err := x.try(); err == nil { y.take() }", "err := x.try(); if err != nil { return }; y.take()",
		"x.lock(); wide.take(runtime{y})",
	} {
		require.Equal(t, ab, order(body), body)
	}
	require.Equal(t, []string{"x.c.Mutex x.a.mu"}, order("z.Lock(); x.lock()"))
	for _, body := range []string{
		"x.mu.Lock(); x.mu.Unlock(); y.take()", "x.lock(); x.unlock(); y.take()", "x.mu.Lock(); go y.take()",
		"x.mu.Lock(); go func() { y.take() }()", "x.mu.Lock(); post(func() { y.take() })",
		"if x.mu.TryLock() { x.mu.Unlock(); return }; y.take()", "if ok { x.mu.Lock(); return }; y.take()",
		"x.mu.Lock(); y.mu.TryLock()", "x.lock(); x.pass(); y.take()", "x.lock(); x.early(y)",
		"k := &keeper{call: y.take}; k.call(); x.lock()", "x.lock(); _ = &keeper{call: func() { y.take() }}",
		"if err := x.try(); err != nil { y.take() }", "x.lock(); post(y.take)",
	} {
		require.Empty(t, order(body), body)
	}
	names, row := []string{"x.a.mu", "x.b.mu"}, lockRow{protects: "a thing"}
	taken := []held{{outer: "x.a.mu", inner: "x.b.mu"}}
	fine := map[string]lockRow{"x.a.mu": {"a", []string{"x.b.mu"}}, "x.b.mu": row}
	require.Empty(t, judgeLocks(names, taken, fine))
	require.Len(t, judgeLocks(names, nil, fine), 1, "the table is larger than need be")
	require.Len(t, judgeLocks(append(names, "x.c.mu"), taken, fine), 1, "a lock without a row")
	require.Len(t, judgeLocks(names[:1], taken, fine), 1, "a row without a lock")
	back := append(taken, held{outer: "x.b.mu", inner: "x.a.mu"})
	require.Len(t, judgeLocks(names, back, fine), 1, "against the order")
	circle := map[string]lockRow{"x.a.mu": {"a", []string{"x.b.mu"}}, "x.b.mu": {"b", []string{"x.a.mu"}}}
	require.Len(t, judgeLocks(names, back, circle), 2, "both lead back to themselves")
	table := "    go test\n| lock | protects |\n|---|---|\n%s\nThe order:\n\n%s\nEnd.\n"
	text := fmt.Sprintf(table, "| `y.a.mu` | a |\n", "    y.a.mu:\n        x.b.mu\n")
	require.Equal(t, map[string]lockRow{"y.a.mu": {"a", []string{"x.b.mu"}}}, readLocks(text))
	require.Equal(t, fmt.Sprintf(table, "| `x.a.mu` | a |\n| `x.b.mu` |  |\n", "    x.a.mu:\n        x.b.mu\n"),
		rewriteLocks(text, names, taken))
}

func newLocking() *locking {
	return &locking{names: map[types.Object]string{}, routines: map[string]*routine{}, edges: map[[2]string]token.Pos{},
		methods: map[string]map[string]*types.Func{}, behinds: map[string][]string{},
		values: map[string][]string{}, kept: map[*ast.FuncLit]string{}}
}
