// Locks, called: which functions a call may reach, by name, through an interface, or from a field that holds one.

package rules

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"
)

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
