// Tests that nodes missing when a new cluster is formed cannot live on alone.

package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// JOIN-1: those that may be missing are never a side that lives, though each record may lack the last decision.
func TestMayMiss(t *testing.T) {
	majority := Config{}
	for n := range 200 {
		most := majority.MayMiss(n)
		for side := (n + 1) / 2; side <= n; side++ { // those that lived after the last decision, unknown to a record of n
			if side > 0 {
				require.Less(t, 2*most, side, "%d of %d", most, n)
			}
		}
	}
	require.Equal(t, []int{0, 0, 1, 2}, []int{majority.MayMiss(3), majority.MayMiss(4), majority.MayMiss(5),
		majority.MayMiss(9)})
	quorum := Config{Resolver: Resolver{Strategy: ResolverStaticQuorum, QuorumSize: 3, Role: "store"}}
	for n, want := range map[int]int{0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 9: 2} {
		require.Equal(t, want, quorum.MayMiss(n), n)
	}
	require.Equal(t, "store", quorum.RecordRole())
	for _, s := range []Strategy{ResolverKeepOldest, ResolverDownAll, ResolverLeaseMajority, ResolverUnsafeAutoDown,
		ResolverOff} {
		c := Config{Resolver: Resolver{Strategy: s, QuorumSize: 3, Role: "store"}}
		require.Zero(t, c.MayMiss(9), s)
		require.Empty(t, c.RecordRole(), "all may carry it on")
	}
}

// TestSeatsCarryAClusterOn: with tenures the members that may hold a seat can carry a cluster on, whatever role the
// resolver's strategy counts, and never are so many of them missing that these have a quorum of the seats (JOIN-1,
// MEM-10).
func TestSeatsCarryAClusterOn(t *testing.T) {
	for _, s := range []Strategy{ResolverKeepMajority, ResolverStaticQuorum, ResolverKeepOldest, ResolverOff} {
		c := Config{Resolver: Resolver{Strategy: s, QuorumSize: 30, Role: "store"}}
		for _, voters := range []int{3, 5, 7} {
			before := c
			c.Tenure = TenureConfig{Voters: voters, Grant: time.Second}
			require.Empty(t, c.RecordRole(), "any member may hold a seat")
			for n := range 200 {
				require.Less(t, c.MayMiss(n), c.Tenure.Quorum())
				require.LessOrEqual(t, c.MayMiss(n), before.MayMiss(n))
			}
			c.Tenure.Role = "seat"
			require.Equal(t, "seat", c.RecordRole())
			c = before
		}
	}
}

// TestAllCarryAClusterOfSessionsOn: with sessions any majority may live on, with the resolver's role or without it: all
// count, and never is a quarter of them missing, nor anybody where a role decides too (JOIN-1, MEM-10).
func TestAllCarryAClusterOfSessionsOn(t *testing.T) {
	for _, s := range []Strategy{ResolverKeepMajority, ResolverStaticQuorum, ResolverKeepOldest, ResolverOff} {
		c := Config{Resolver: Resolver{Strategy: s, QuorumSize: 30},
			Session: SessionConfig{TTL: 5 * time.Second, Ends: 2 * time.Minute}}
		before := c
		before.Session = SessionConfig{}
		for n := range 200 {
			require.LessOrEqual(t, c.MayMiss(n), before.MayMiss(n))
			require.Less(t, 4*c.MayMiss(n), max(1, n))
		}
		c.Resolver.Role = "store"
		require.Empty(t, c.RecordRole(), "members without the role end the sessions of those with it")
		require.Zero(t, c.MayMiss(200))
	}
}
