// Tests of what a seed says of a run of chaos.

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/lab/leasestore"
)

// One seed of four has sessions, another one tenures, unless something else is said: then what is said (MEM-10).
func TestSessionsAndTenuresOfASeed(t *testing.T) {
	drawn := chaosCmd{Nodes: 5, Session: "drawn", Tenure: "drawn"}
	seats := func(n int) kith.Tenure { return kith.Tenure{Voters: n, Grant: grants} }
	for _, c := range []struct {
		change func(*chaosCmd)
		store  leasestore.Kind // at seed 4
		tenure kith.Tenure     // at seed 5
	}{
		{func(*chaosCmd) {}, leasestore.Files, seats(5)},
		{func(c *chaosCmd) { c.Nodes = 4 }, leasestore.Files, seats(3)},
		{func(c *chaosCmd) { c.Nodes = 16 }, leasestore.Files, seats(7)},
		{func(c *chaosCmd) { c.Only = []string{"kill"} }, "", kith.Tenure{}},
		{func(c *chaosCmd) { c.Moves = true }, "", kith.Tenure{}},
		{func(c *chaosCmd) { c.Session = "off" }, "", seats(5)},
		{func(c *chaosCmd) { c.Tenure = "off" }, leasestore.Files, kith.Tenure{}},
		{func(c *chaosCmd) { c.Session = "etcd" }, leasestore.Etcd, kith.Tenure{}},
		{func(c *chaosCmd) { c.Tenure = "3" }, "", seats(3)},
		{func(c *chaosCmd) { c.Tenure, c.Only = "3", []string{"kill"} }, "", seats(3)},
	} {
		cmd := drawn
		c.change(&cmd)
		require.Equal(t, c.store, cmd.sessionsOf(4).Store, "%+v", cmd)
		require.Equal(t, c.tenure, cmd.sessionsOf(5).Tenure, "%+v", cmd)
	}
	require.Zero(t, drawn.sessionsOf(6))
}
