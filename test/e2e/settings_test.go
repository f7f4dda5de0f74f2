// Types with a role that differs between nodes: one side is refused, and how a role is added to a type while a cluster
// runs (SHD-1, SHD-9).

package e2e_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// placed is the type of the tests below: its entities answer with the name of the node they live on.
func placed(node, role string) kith.EntityType {
	answer := &actor{receive: func(c *kith.Context, _ []byte) error { return c.Reply([]byte(node)) }}
	return kith.EntityType{Name: "placed", Shards: 8, Role: role,
		New: func(string, kith.Fence) kith.Handler { return answer }}
}

// registerAgain registers until the cluster takes the settings and an entity answers with the name of its node: a
// refusal comes at once or with the use.
func registerAgain(t *testing.T, n *kith.Node, typ kith.EntityType, node string) {
	var r *kith.Region
	eventually(t, func() bool {
		got, err := n.Register(typ)
		if err == nil {
			r = got
		} else if !errors.Is(err, kith.ErrTypeExists) {
			require.ErrorIs(t, err, kith.ErrSettingsDiffer)
			return false
		}
		b, err := r.Ask(within(t), "a", nil)
		for err != nil && !errors.Is(err, kith.ErrSettingsDiffer) { // its old home is on its way out
			b, err = r.Ask(within(t), "a", nil)
		}
		return err == nil && string(b) == node
	}, "settings that the cluster takes")
}

// A role that differs is refused naming both values, on whichever node registers later, and the entities live where the
// first registration says.
func TestRoleOfATypeDiffers(t *testing.T) {
	t.Parallel()
	for first, role := range []string{"", "store"} {
		nodes := cluster(t, 2, func(i int, c *kith.Config) {
			if i == 1 {
				c.Roles = []string{"store"}
			}
		}, nil)
		here := fmt.Sprint(first)
		early, err := nodes[first].Register(placed(here, role))
		require.NoError(t, err)
		b, err := early.Ask(within(t), "a", nil)
		require.NoError(t, err)
		require.Equal(t, here, string(b))
		other := map[string]string{"": "store", "store": ""}[role]
		late, err := nodes[1-first].Register(placed("late", other))
		if err == nil { // it had not heard of the type yet
			eventually(t, func() bool { return errors.Is(late.Tell("a", nil), kith.ErrSettingsDiffer) }, "the refusal")
			_, err = nodes[1-first].Register(placed("late", other))
		}
		require.ErrorIs(t, err, kith.ErrSettingsDiffer)
		require.ErrorContains(t, err, `role "store"`)
		require.ErrorContains(t, err, `role ""`)
		registerAgain(t, nodes[1-first], placed(here, role), here)
	}
}

// The walk of docs/sharding.md, "Changing the settings of a type": those with the new role come and are refused, those
// of the old settings leave, and the entities live with the newcomers.
func TestRollingDeployAddsARole(t *testing.T) {
	t.Parallel() // most of it is waiting
	old := cluster(t, 2, nil, func(i int, n *kith.Node) {
		_, err := n.Register(placed("old", ""))
		require.NoError(t, err)
	})
	l := logger(t)
	var fresh []*kith.Node
	for range 2 {
		n := start(t, l, kith.Config{Roles: []string{"store"}, Seeds: []string{old[1].Addr().String()}})
		fresh = append(fresh, n)
	}
	awaitView(t, fresh[1], func(v *kith.View) bool { return v.CountUp() == 4 })
	eventually(t, func() bool {
		r, err := fresh[0].Register(placed("new", "store"))
		if err == nil {
			_, err = r.Ask(within(t), "a", nil)
		}
		return errors.Is(err, kith.ErrSettingsDiffer)
	}, "the refusal of the first with the new role")
	for _, n := range old {
		require.NoError(t, n.Leave(within(t)))
	}
	for _, n := range fresh {
		registerAgain(t, n, placed("new", "store"), "new")
	}
}
