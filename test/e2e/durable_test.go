// Tests of entities that keep their state in a store of their own: what is moved is the ownership, never the state.

package e2e_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

var errLateOwner = errors.New("the store knows a newer owner")

// vault is a store that checks fences, as users' stores are meant to: it stands outside of all nodes.
type vault struct {
	mu     sync.Mutex
	fence  map[string]kith.Fence
	saved  map[string]int
	claims map[string]int
}

func newVault() *vault {
	return &vault{fence: map[string]kith.Fence{}, saved: map[string]int{}, claims: map[string]int{}}
}

// claim raises the fence of an id and returns what was saved of it.
func (v *vault) claim(id string, f kith.Fence) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f.Compare(v.fence[id]) < 0 {
		return 0, errLateOwner
	}
	v.fence[id] = f
	v.claims[id]++
	return v.saved[id], nil
}

// owner returns the fence that claimed an id last, and how many claimed it.
func (v *vault) owner(id string) (kith.Fence, int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.fence[id], v.claims[id]
}

// save is a conditional write: of the owner that claimed last, or not at all.
func (v *vault) save(id string, f kith.Fence, n int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f != v.fence[id] {
		return errLateOwner
	}
	v.saved[id] = n
	return nil
}

// account counts its messages. A durable one claims and reads at its first message, and saves as it goes or at its end.
type account struct {
	v       *vault // nil: not durable
	atEnd   bool
	claimed bool
	n       int
}

func (a *account) Receive(c *kith.Context, _ []byte) (err error) {
	if a.v != nil && !a.claimed {
		if a.n, err = a.v.claim(c.ID, c.Fence); err != nil {
			return err
		}
		a.claimed = true
	}
	a.n++
	if a.v != nil && !a.atEnd {
		if err := a.v.save(c.ID, c.Fence, a.n); err != nil {
			return err
		}
	}
	return c.Reply([]byte(strconv.Itoa(a.n)))
}

func (a *account) Stop(c *kith.Context) {
	if a.v != nil && a.atEnd {
		_ = a.v.save(c.ID, c.Fence, a.n)
	}
}

// The state of an entity is not moved: one that saves it, message by message or in Stop, goes on at its new home with
// what the store has; one that does not begins anew there. Its earlier owner's fence is refused by the store (SHD-11).
func TestDurableEntitiesRecoverFromTheirStore(t *testing.T) {
	t.Parallel()
	const ids, before = 24, 3
	always, atEnd := newVault(), newVault()
	kinds := map[string]func() kith.Handler{
		"always":   func() kith.Handler { return &account{v: always} },
		"at end":   func() kith.Handler { return &account{v: atEnd, atEnd: true} },
		"volatile": func() kith.Handler { return &account{} },
	}
	regions := map[string]*kith.Region{}
	nodes := cluster(t, 3, func(i int, cfg *kith.Config) {
		if i > 0 {
			cfg.Roles = []string{"host"}
		}
	}, func(i int, n *kith.Node) {
		for name, handler := range kinds {
			r, err := n.Register(kith.EntityType{Name: name, Role: "host", Shards: 16,
				New: func(string, kith.Fence) kith.Handler { return handler() }})
			require.NoError(t, err)
			if i == 0 {
				regions[name] = r
			}
		}
	})
	ctx := within(t)
	count := func(kind, id string) string {
		var reply []byte
		eventually(t, func() bool {
			var err error
			reply, err = regions[kind].Ask(ctx, id, nil)
			return err == nil
		}, "answer of %s %s", kind, id)
		return string(reply)
	}
	for e := range ids {
		for kind := range kinds {
			for range before {
				count(kind, fmt.Sprint(e))
			}
		}
	}
	first := map[string]kith.Fence{}
	for e := range ids {
		first[fmt.Sprint(e)], _ = always.owner(fmt.Sprint(e))
	}
	require.NoError(t, nodes[2].Leave(ctx))
	awaitView(t, nodes[0], func(v *kith.View) bool { return len(v.Members) == 2 })
	moved := 0
	for e := range ids {
		id := fmt.Sprint(e)
		next := strconv.Itoa(before + 1)
		require.Equal(t, next, count("always", id), id)
		require.Equal(t, next, count("at end", id), id)
		newest, claims := always.owner(id)
		if claims == 1 {
			continue // it lives where it lived
		}
		moved++
		require.Positive(t, newest.Compare(first[id]), "a newer owner has a higher fence")
		require.ErrorIs(t, always.save(id, first[id], 99), errLateOwner)
	}
	require.Positive(t, moved, "some lived on the node that left")
	anew := 0
	for e := range ids {
		if count("volatile", fmt.Sprint(e)) == "1" {
			anew++
		}
	}
	require.Positive(t, anew, "what nobody saved is not there")
	require.Less(t, anew, ids, "those of the other host went on")
}
