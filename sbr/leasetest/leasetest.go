// Package leasetest is what every lease for the resolver must pass, and a lease in memory that does.
package leasetest

import (
	"context"
	"fmt"
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

// Owner returns who has the lease, "" when nobody has.
func (m *Memory) Owner(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owners[name]
}
