// Locks: every mutex of the module stands in the table of docs/locks.md, which says what it protects and which others
// may be taken while it is held. The code is followed from call to call and held against that.

package house

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

// routine is what is known of one function: which locks it takes, itself or in what it calls, which of them it leaves
// locked, and which of its caller's it unlocks.
type routine struct {
	takes, leaves, releases lockSet
}

// locking follows the functions of a set of packages.
type locking struct {
	names    map[types.Object]string // of locks
	routines map[string]*routine     // as of the last walk
	next     map[string]*routine     // of this one
	bodies   []body
	methods  map[string]map[string]string // by type: its methods, by name, as routines are named
	embeds   map[string][]string          // by type: those of its package that it embeds
	edges    map[[2]string]token.Pos
}

// body is one function with the types of its package.
type body struct {
	name string
	code *ast.BlockStmt
	info *types.Info
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
					if id, ok := c.Type.(*ast.Ident); ok && len(c.Names) == 0 && len(around) == 1 {
						of := folder + "." + around[0]
						l.embeds[of] = append(l.embeds[of], folder+"."+id.Name)
					}
					if t := info.Types[c.Type].Type; len(c.Names) == 0 && t != nil && isMutex(t) {
						l.names[embedded(info, c)] = strings.Join(append([]string{folder},
							append(slices.Clone(around), "Mutex")...), ".")
					}
				}
				return true
			})
		}
		walk(s.file)
		for _, decl := range s.file.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Body != nil {
				o, ok := info.Defs[d.Name].(*types.Func)
				if !ok {
					continue
				}
				l.bodies = append(l.bodies, body{o.FullName(), d.Body, info})
				if of := folder + "." + receiver(d); d.Recv != nil {
					if l.methods[of] == nil {
						l.methods[of] = map[string]string{}
					}
					l.methods[of][d.Name.Name] = o.FullName()
				}
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

// follow walks all functions, each time with what the time before has shown, until nothing changes.
func (l *locking) follow() {
	for range 3 { // deep enough for what embeds what embeds
		for of, list := range l.embeds { // adds to a map: no order
			for _, inner := range list {
				if l.methods[of] == nil {
					l.methods[of] = map[string]string{}
				}
				for name, full := range l.methods[inner] { // adds to a map: no order
					if l.methods[of][name] == "" {
						l.methods[of][name] = full
					}
				}
			}
		}
	}
	for range 40 {
		l.next, l.edges = map[string]*routine{}, map[[2]string]token.Pos{}
		for _, b := range l.bodies {
			me := newRoutine()
			l.next[b.name] = me
			w := walker{l: l, info: b.info, me: me, held: lockSet{}, deferred: lockSet{}}
			w.statement(b.code)
			if !w.over {
				w.leave()
			}
			if slices.ContainsFunc(unlocked, func(name string) bool { return strings.HasSuffix(b.name, name) }) {
				me.leaves = lockSet{}
			}
		}
		same := maps.EqualFunc(l.routines, l.next, func(a, b *routine) bool {
			return maps.Equal(a.takes, b.takes) && maps.Equal(a.leaves, b.leaves) && maps.Equal(a.releases, b.releases)
		})
		if l.routines = l.next; same {
			return
		}
	}
	panic("house: the search for locks comes to no end")
}

// unlocked lists functions that hold nothing when they return, though their text does not show it.
var unlocked = []string{
	".ahead).run", // host.enter has the lock only when it returns an entity, and foreseen.exit gives it up
}

func newRoutine() *routine { return &routine{takes: lockSet{}, leaves: lockSet{}, releases: lockSet{}} }

// walker goes through one function in the order of its text.
type walker struct {
	l        *locking
	info     *types.Info
	me       *routine
	held     lockSet
	deferred lockSet // unlocked when the function returns
	over     bool    // what follows is not reached from here
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
		if n.Else != nil {
			other = n.Else
		}
		w.branches([]ast.Stmt{n.Body, other}, tried)
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
	default:
		w.expression(n)
	}
}

// leave notes what is held where the function returns.
func (w *walker) leave() {
	for name := range w.held { // into a set: no order
		if !w.deferred[name] {
			w.me.leaves[name] = true
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
// that are held on the first way alone, with a "!" on the others alone.
func (w *walker) branches(ways []ast.Stmt, only []string) {
	before, after, open := maps.Clone(w.held), lockSet{}, false
	for i, way := range ways {
		w.held, w.over = maps.Clone(before), false
		for _, name := range only {
			if bare, not := strings.CutPrefix(name, "!"); not == (i == 0) {
				delete(w.held, bare)
			} else {
				w.held[bare] = true
			}
		}
		w.statement(way)
		if !w.over {
			open = true
			maps.Copy(after, w.held)
		}
	}
	if w.held, w.over = after, !open; !open {
		w.held = before
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
		return nil
	}
	if r := w.l.routines[f.FullName()]; r != nil {
		return r
	}
	return w.l.behind(f)
}

// users are interfaces that embedders implement: what they do is not followed.
var users = strings.Fields("entity.Handler")

// behind returns what the methods together may do that stand behind one of an interface of this module: those of all
// types that have every method of it, by name.
func (l *locking) behind(f *types.Func) *routine {
	recv := f.Signature().Recv()
	if recv == nil || f.Pkg() == nil || !strings.HasPrefix(f.Pkg().Path(), module) {
		return nil
	}
	face, ok := recv.Type().Underlying().(*types.Interface)
	if !ok || slices.Contains(users, path.Base(recv.Type().String())) {
		return nil
	}
	all := newRoutine()
	for _, has := range l.methods { // sets: no order
		whole := true
		for m := range face.Methods() {
			whole = whole && has[m.Name()] != ""
		}
		if r := l.routines[has[f.Name()]]; whole && r != nil {
			maps.Copy(all.takes, r.takes)
		}
	}
	return all
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
			w.literal(c)
			return false
		case *ast.CallExpr:
			if lit, ok := c.Fun.(*ast.FuncLit); ok {
				w.literal(lit)
			} else {
				w.expression(c.Fun)
			}
			for _, arg := range c.Args {
				if lit, ok := arg.(*ast.FuncLit); ok && slices.Contains(laters, called(c)) {
					w.apart(lit)
					continue
				}
				w.expression(arg)
			}
			w.call(c)
			return false
		}
		return true
	})
}

// laters are the functions that keep what they are given for another goroutine, or for later.
var laters = strings.Fields("post spawn AfterFunc")

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
	inner := walker{l: w.l, info: w.info, me: newRoutine(), held: lockSet{}, deferred: lockSet{}}
	inner.statement(f.Body)
}

// literal walks a function that is made here as if it were called here.
func (w *walker) literal(f *ast.FuncLit) {
	inner := walker{l: w.l, info: w.info, me: w.me, held: maps.Clone(w.held), deferred: maps.Clone(w.held)}
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
			if !w.held[name] {
				w.me.releases[name] = true
			}
			delete(w.held, name)
		default:
			w.take(name, c.Pos(), !strings.HasPrefix(verb, "Try"))
			w.held[name] = true
		}
		return
	}
	r := w.callee(c)
	if r == nil {
		return
	}
	outside := maps.Clone(w.held)
	for name := range r.releases { // out of a set: no order
		delete(outside, name)
		delete(w.held, name)
	}
	for name := range r.takes { // into a set: no order
		w.me.takes[name] = true
		for outer := range outside { // into a map: no order
			w.l.edge(outer, name, c.Pos())
		}
	}
	maps.Copy(w.held, r.leaves)
}

// take notes that a lock is taken here. Trying waits for nobody, so it may stand in any order.
func (w *walker) take(name string, at token.Pos, waits bool) {
	if !waits {
		return
	}
	w.me.takes[name] = true
	for outer := range w.held { // into a map: no order
		w.l.edge(outer, name, at)
	}
}

func (l *locking) edge(outer, inner string, at token.Pos) {
	if key := [2]string{outer, inner}; l.edges[key] == token.NoPos {
		l.edges[key] = at
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

var lockTable = filepath.Join(repository, "docs", "locks.md")

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

// TestLocks holds every mutex of the module, and the order in which they are taken, against docs/locks.md (CARD-2).
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
	text, err := os.ReadFile(lockTable)
	require.NoError(t, err)
	if *update {
		text = []byte(rewriteLocks(string(text), names, l.order()))
		require.NoError(t, os.WriteFile(lockTable, text, 0o600))
	}
	if found := judgeLocks(names, l.order(), readLocks(string(text))); len(found) > 0 {
		t.Fatalf("%d contradictions between the code and docs/locks.md:\n%s", len(found), strings.Join(found, "\n"))
	}
}

// TestLocksRule feeds the search code that takes two locks in every way it has to understand, and the table orders that
// the code breaks.
func TestLocksRule(t *testing.T) {
	const head = "package x\nimport \"sync\"\ntype a struct { mu sync.Mutex }\ntype b struct { mu sync.RWMutex }\n" +
		"type c struct { sync.Mutex }\ntype face interface { take() }\n" +
		"func (y *b) take() { y.mu.RLock(); y.mu.RUnlock() }\n" +
		"func (x *a) lock() { x.mu.Lock() }\nfunc (x *a) unlock() { x.mu.Unlock() }\nfunc post(f func()) {}\n" +
		"func do(f func()) { f() }\n"
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
	} {
		require.Equal(t, ab, order(body), body)
	}
	require.Equal(t, []string{"x.c.Mutex x.a.mu"}, order("z.Lock(); x.lock()"))
	for _, body := range []string{
		"x.mu.Lock(); x.mu.Unlock(); y.take()", "x.lock(); x.unlock(); y.take()", "x.mu.Lock(); go y.take()",
		"x.mu.Lock(); go func() { y.take() }()", "x.mu.Lock(); post(func() { y.take() })",
		"if x.mu.TryLock() { x.mu.Unlock(); return }; y.take()", "if ok { x.mu.Lock(); return }; y.take()",
		"x.mu.Lock(); y.mu.TryLock()",
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
		methods: map[string]map[string]string{}, embeds: map[string][]string{}}
}
