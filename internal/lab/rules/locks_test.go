// Locks: every mutex of the module stands in the table of docs/contributing/locks.md, which says what it protects and
// which others may be taken while it is held. The code is followed from call to call and held against that.

package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
