// Tests of what a refusal tells: the standing, the cluster, and what is kept from strangers (SEC-3, MEM-1).

package hello

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Texts of others, earlier builds among them, tell no standing, and no text breaks anything.
func TestStandingOfOtherTexts(t *testing.T) {
	for text, want := range map[string]bool{
		"removed":                               false,
		"":                                      false,
		"removed: 3 up":                         false,
		"removed: -1 up, lowest 10.0.0.1:1":     false,
		"removed: 5000000000 up, lowest a:1":    false,
		"removed: 3 up, lowest nobody":          false,
		"removed: 3 up, lowest 10.0.0.1:7355":   true,
		"removed: 0 up, lowest [2001:db8::1]:9": true,
	} {
		_, _, ok := (&RefusedError{Reason: RefusedRemoved, Theirs: text}).Standing()
		require.Equal(t, want, ok, text)
	}
	_, _, ok := (&RefusedError{Reason: RefusedBusy, Theirs: "removed: 3 up, lowest 10.0.0.1:7355"}).Standing()
	require.False(t, ok)
}

// A dialler that does not know the newer reasons gets the nearest that it knows.
func TestRefusalsAsOldDiallersKnowThem(t *testing.T) {
	old := wire.Versions{Newest: 2, Oldest: 1}
	for r := Refusal(1); r < RefusalCount; r++ {
		e := &RefusedError{Reason: r, Key: "k", Ours: "1", Theirs: "2"}
		require.Equal(t, r, e.Told(wire.Spoken(), true, Standing{}).Reason)
		said := e.Told(old, true, Standing{}).Reason
		require.Less(t, said, RefusedTaken)
		require.Equal(t, r.ForGood(), said.ForGood())
		require.Equal(t, r, e.Reason)
	}
}

// A dialler that has proved nothing learns neither what the cluster is called nor which node is here; removed nodes get
// the standing.
func TestTold(t *testing.T) {
	for r := Refusal(1); r < RefusalCount; r++ {
		e := &RefusedError{Reason: r, Key: "k", Ours: "1", Theirs: "2"}
		require.Equal(t, e, e.Told(wire.Spoken(), true, Standing{}))
		secret := r == RefusedName || r == RefusedIncarnation || r == RefusedSelf
		require.Equal(t, secret, e.Told(wire.Spoken(), false, Standing{}).Theirs == "another", r)
		require.Equal(t, "2", e.Theirs)
	}
	gone := Removed(peer.ID{Addr: peer.MustAddr("a:1"), Inc: 1})
	_, _, ok := gone.Told(wire.Spoken(), false, Standing{}).Standing()
	require.False(t, ok)
	at := Standing{3, peer.MustAddr("10.0.0.1:7355")}
	up, lowest, ok := gone.Told(wire.Spoken(), false, at).Standing()
	require.True(t, ok)
	require.Equal(t, at, Standing{up, lowest})
}

// The cluster of a refusal is that of the acceptor, as far as it says it.
func TestRefusedCluster(t *testing.T) {
	h := exampleHello()
	a := Acceptor{Self: peer.ID{Inc: h.ToInc}, Name: h.Name, ClusterID: 0x77, Birth: 0x88}
	id, birth, ok := a.Judge(&h).Cluster()
	require.Equal(t, []any{uint64(0x77), uint64(0x88), true}, []any{id, birth, ok})
	a.Birth = 0
	id, birth, ok = a.Judge(&h).Cluster()
	require.Equal(t, []any{uint64(0x77), uint64(0), true}, []any{id, birth, ok})
	for _, text := range []string{"", "/", "x", "1/", "1/x", "/1"} {
		_, _, ok := (&RefusedError{Reason: RefusedCluster, Theirs: text}).Cluster()
		require.False(t, ok, text)
	}
	_, _, ok = (&RefusedError{Reason: RefusedName, Theirs: "1/2"}).Cluster()
	require.False(t, ok)
}
