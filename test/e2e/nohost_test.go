// Tests of types that no node hosts.

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// An ask for a type that no member may host fails at once, and was not executed; a tell waits, as the first node that
// may host it can come at any time. When it has come, asks are answered, and what waited is delivered. Pins SHD-4.
func TestNobodyHosts(t *testing.T) {
	t.Parallel()
	l := newLedger()
	regions := make([]*kith.Region, 2)
	make2 := func(i int, node *kith.Node) {
		var err error
		typ := echoType("hosted", kith.Worker, l, func() *kith.Node { return node })
		typ.Role = "host"
		regions[i], err = node.Register(typ)
		require.NoError(t, err)
	}
	log := logger(t)
	first := start(t, log, kith.Config{Membership: quick()})
	make2(0, first)
	require.NoError(t, first.Ready(within(t)))
	for _, size := range []int{1, 2 << 20} {
		_, err := regions[0].Ask(within(t), "a", make([]byte, size))
		require.ErrorIs(t, err, kith.ErrNoHost)
		require.False(t, kith.MayHaveRun(err))
	}
	require.NoError(t, regions[0].Tell("a", numbered(0, 0)))
	second := start(t, log, kith.Config{Membership: quick(), Roles: []string{"host"},
		Seeds: []string{first.Addr().String()}})
	make2(1, second)
	require.NoError(t, second.Ready(within(t)))
	awaitView(t, first, func(v *kith.View) bool { return len(v.Members) == 2 })
	got, err := regions[0].Ask(within(t), "a", []byte("now"))
	require.NoError(t, err)
	require.Equal(t, "re: now", string(got))
	l.await(t, 1)
}

// A member that has the role and has not registered the type may register it at any moment, so nothing is certain: an
// ask waits, and when its time is over it was not executed, and gets that error. One that is waited for is answered as
// soon as the type is registered there. Pins SHD-4.
func TestRoleWithoutTheType(t *testing.T) {
	t.Parallel()
	l := newLedger()
	var near *kith.Region
	typ := func(node *kith.Node) kith.EntityType {
		typ := echoType("late", kith.Worker, l, func() *kith.Node { return node })
		typ.Role = "host"
		return typ
	}
	nodes := cluster(t, 2, func(i int, cfg *kith.Config) {
		if i == 1 {
			cfg.Roles = []string{"host"}
		}
	}, func(i int, node *kith.Node) {
		if i == 0 {
			var err error
			near, err = node.Register(typ(node))
			require.NoError(t, err)
		}
	})
	for _, size := range []int{1, 2 << 20} {
		_, err := near.AskWithin(50*time.Millisecond, "a", make([]byte, size), nil)
		require.ErrorIs(t, err, kith.ErrTimeout)
		require.ErrorIs(t, err, kith.ErrExpired)
		require.NotErrorIs(t, err, kith.ErrNoHost)
		require.False(t, kith.MayHaveRun(err))
	}
	answer := make(chan string, 1)
	require.NoError(t, near.AskFunc(patience, "a", []byte("waits"), func(b []byte, err error) {
		if err != nil {
			b = []byte(err.Error())
		}
		answer <- string(b)
	}))
	_, err := nodes[1].Register(typ(nodes[1]))
	require.NoError(t, err)
	require.Equal(t, "re: waits", <-answer)
}
