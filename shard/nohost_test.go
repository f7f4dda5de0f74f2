// Tests of when a node is sure that nobody may host a type.

package shard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// Nobody may host a type when this node is up and no member that is not Down has the role; before that a node does not
// know, and a joining node counts (SHD-4).
func TestNoHost(t *testing.T) {
	id := func(n uint64) peer.ID { return peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: n} }
	self := membership.Member{ID: id(1), Status: membership.Up, UpNumber: 1, Roles: []string{"web"}}
	with := func(s membership.Status, role string) *membership.View {
		other := membership.Member{ID: id(2), Status: s, Roles: []string{role}}
		return &membership.View{Self: self.ID, Members: []membership.Member{self, other}}
	}
	alone := &membership.View{Self: self.ID, Members: []membership.Member{self}}
	require.True(t, NoHost(alone, "host"))
	require.False(t, NoHost(alone, "web"), "this node itself")
	require.False(t, NoHost(alone, ""), "all may")
	require.False(t, NoHost(nil, "host"))
	require.True(t, NoHost(with(membership.Up, "other"), "host"))
	require.True(t, NoHost(with(membership.Down, "host"), "host"))
	for _, s := range []membership.Status{membership.Joining, membership.WeaklyUp, membership.Up, membership.Leaving} {
		require.False(t, NoHost(with(s, "host"), "host"), s)
	}
	alone.Members[0].Status, alone.Members[0].UpNumber = membership.Joining, 0
	require.False(t, NoHost(alone, "host"), "it knows too little")
}
