// Locks, walked: the statements of a function in the order of its text, branch by branch.

package rules

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

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
