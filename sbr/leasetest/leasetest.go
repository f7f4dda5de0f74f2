// Package leasetest is what every lease for the resolver must pass, and a lease in memory that does.
package leasetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Lease is what is tested: kith.Lease has the same methods.
type Lease interface {
	Acquire(ctx context.Context, name, owner string) (bool, error)
	Release(ctx context.Context, name, owner string) error
}

// limit bounds every call of the suite.
const limit = 30 * time.Second

// owners is how many ask for a lease at the same time.
const owners = 16

// Run tests a lease. open returns another handle to the same store at each call, as another process would have one;
// names are taken from the test's own, so that the store need not be empty.
func Run(t *testing.T, open func(t *testing.T) Lease) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, a, b Lease, name string)
	}{
		{"one owner at a time", oneOwner}, {"acquiring again is harmless", again},
		{"released, another may have it", released}, {"only the owner can release", notYours},
		{"releasing what one has not is no error", nothing}, {"names are apart", names}, {"a race has one winner", race},
		{"an ended context is an error, and takes nothing", ended},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t), open(t), t.Name()) })
	}
}

func call(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func acquire(t *testing.T, l Lease, name, owner string, want bool) {
	t.Helper()
	got, err := l.Acquire(call(t), name, owner)
	if err != nil || got != want {
		t.Errorf("Acquire for %s: %t, %v; want %t", owner, got, err, want)
	}
}

func release(t *testing.T, l Lease, name, owner string) {
	t.Helper()
	if err := l.Release(call(t), name, owner); err != nil {
		t.Errorf("Release by %s: %v", owner, err)
	}
}

func oneOwner(t *testing.T, a, b Lease, name string) {
	acquire(t, a, name, "a", true)
	acquire(t, b, name, "b", false)
	acquire(t, a, name, "b", false)
}

func again(t *testing.T, a, b Lease, name string) {
	acquire(t, a, name, "a", true)
	acquire(t, a, name, "a", true)
	acquire(t, b, name, "a", true) // the owner counts, not the handle
	release(t, a, name, "a")
	acquire(t, b, name, "b", true) // it does not take as many releases
}

func released(t *testing.T, a, b Lease, name string) {
	acquire(t, a, name, "a", true)
	release(t, a, name, "a")
	acquire(t, b, name, "b", true)
	acquire(t, a, name, "a", false)
}

func notYours(t *testing.T, a, b Lease, name string) {
	acquire(t, a, name, "a", true)
	_ = b.Release(call(t), name, "b") // an error is fine
	acquire(t, b, name, "b", false)
	acquire(t, a, name, "a", true)
}

func nothing(t *testing.T, a, b Lease, name string) {
	release(t, a, name, "a")
	acquire(t, a, name, "a", true)
	release(t, a, name, "a")
	release(t, a, name, "a")
	acquire(t, b, name, "b", true)
}

func names(t *testing.T, a, b Lease, name string) {
	acquire(t, a, name+"-1", "a", true)
	acquire(t, b, name+"-2", "b", true)
	release(t, a, name+"-1", "a")
	acquire(t, a, name+"-2", "a", false)
}

func race(t *testing.T, a, b Lease, name string) {
	var winners atomic.Int32
	var all sync.WaitGroup
	for i := range owners {
		l := a
		if i%2 == 1 {
			l = b
		}
		all.Go(func() {
			ok, err := l.Acquire(call(t), name, fmt.Sprintf("owner-%d", i))
			if err != nil {
				t.Errorf("Acquire in a race: %v", err)
			}
			if ok {
				winners.Add(1)
			}
		})
	}
	all.Wait()
	if n := winners.Load(); n != 1 {
		t.Errorf("%d owners have the lease after a race, want 1", n)
	}
}

func ended(t *testing.T, a, b Lease, name string) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if ok, err := a.Acquire(ctx, name, "a"); ok || err == nil {
		t.Errorf("Acquire under an ended context: %t, %v; want an error", ok, err)
	}
	acquire(t, b, name, "b", true)
}

// odd are names, and owners, of which no two are the same.
var odd = []string{"a", "A", "a/b", "a/", "/a", "a b", " ", "..", ".", "a%2Fb", "a\x00b", "\x00", "a\x00",
	"\xff\xfe", "\u00fc", "u\u0308", `"a"`, `'a'`, "a'; --", "$1", "a\nb", "a:b@c?d=e#f", strings.Repeat("n", 1024),
	strings.Repeat("n", 1023) + "m"}

// RunNames tests that a lease tells names and owners apart whatever their bytes are, up to 1,024 of them. open is that
// of Run; what it opens need have no lease of such a name.
func RunNames(t *testing.T, open func(t *testing.T) Lease) {
	a, b, n := open(t), open(t), len(odd)
	for i, name := range odd {
		acquire(t, a, name, odd[n-1-i], true)
	}
	for i, name := range odd { // each is the name of one lease and the owner of another
		acquire(t, b, name, odd[(2*n-i)%n], false)
		acquire(t, b, name, odd[(2*n-2-i)%n], false)
		acquire(t, b, name, odd[n-1-i], true)
	}
	for i, name := range odd {
		release(t, b, name, odd[n-1-i])
		acquire(t, a, name, "next", true)
		release(t, a, name, "next")
	}
}

// RunEnds tests that a lease of an owner that has gone silent ends by itself, and not before ttl, and that each Acquire
// of its owner begins that time anew. open is that of Run. It takes a little more than twice ttl.
func RunEnds(t *testing.T, ttl time.Duration, open func(t *testing.T) Lease) {
	a, b, name := open(t), open(t), t.Name()
	acquire(t, a, name, "a", true)
	begin := time.Now()
	for time.Since(begin) < ttl/2 {
		acquire(t, b, name, "b", false)
	}
	begin = time.Now()
	acquire(t, a, name, "a", true)
	for {
		ok, err := b.Acquire(call(t), name, "b")
		if err != nil {
			t.Fatalf("Acquire while the lease of another ends: %v", err)
		}
		if passed := time.Since(begin); ok && passed < ttl {
			t.Errorf("the lease of another has ended after %v, of %v", passed, ttl)
		}
		if ok {
			break
		}
		if time.Since(begin) > ttl+limit {
			t.Fatalf("the lease of another has not ended after %v, of %v", ttl+limit, ttl)
		}
	}
	acquire(t, a, name, "a", false)
	release(t, a, name, "a") // a is its owner no more
	acquire(t, a, name, "a", false)
}

// Memory is a lease in this process's memory, for tests. The zero value is ready; all methods are safe for concurrent
// use.
type Memory struct {
	mu     sync.Mutex
	owners map[string]string
}

// Acquire gives the lease to owner if nobody else has it.
func (m *Memory) Acquire(ctx context.Context, name, owner string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("lease %s: %w", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now, taken := m.owners[name]; taken {
		return now == owner, nil
	}
	if m.owners == nil {
		m.owners = map[string]string{}
	}
	m.owners[name] = owner
	return true, nil
}

// Release takes the lease from owner if it has it.
func (m *Memory) Release(ctx context.Context, name, owner string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lease %s: %w", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owners[name] == owner {
		delete(m.owners, name)
	}
	return nil
}

// Owner returns the owner of the lease, "" when there is none.
func (m *Memory) Owner(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owners[name]
}
