// Conformance: the reference's scenario of a contact point, before and after its node has joined.

package bootstrap

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/peer"
)

// F-M4: a contact point answers 200 and names nobody before its node has joined, and itself, with the cluster, after
// that (BOOT-2, BOOT-3).
func TestConformanceContactPoint(t *testing.T) {
	k := &known{}
	b := begun(t, k, kith.Config{}, Config{Expected: 1})
	var raw map[string]any
	require.Equal(t, http.StatusOK, get(t, "http://"+b.ContactPoint()+contactPath, &raw))
	require.Equal(t, []any{}, raw["seeds"])
	require.NotContains(t, raw, "cluster_id")
	require.Equal(t, b.Node().Addr().String(), raw["node"])
	k.add(t, b.ContactPoint())
	id := up(t, b)
	require.Equal(t, http.StatusOK, get(t, "http://"+b.ContactPoint()+contactPath, &raw))
	require.Equal(t, []any{b.Node().Addr().String()}, raw["seeds"])
	require.Equal(t, hex(id), raw["cluster_id"])
}

// F-M4: at most the first five members by address that are Up, WeaklyUp or Joining and that nobody holds unreachable
// are named (BOOT-3).
func TestConformanceContactPointNamesFive(t *testing.T) {
	v := &kith.View{ClusterID: 5}
	add := func(host string, s kith.Status) peer.ID {
		id := peer.ID{Addr: peer.MustAddr(host + ":17355"), Inc: 1}
		v.Members = append(v.Members, kith.Member{ID: id, Status: s})
		return id
	}
	named := func(hosts ...string) {
		t.Helper()
		var want []peer.Addr
		for _, h := range hosts {
			want = append(want, peer.MustAddr(h+":17355"))
		}
		require.Equal(t, want, seeds(v))
	}
	named()
	add("10.0.0.1", kith.Leaving)
	add("10.0.0.2", kith.Up)
	v.Unreachable = peer.SetOf(add("10.0.0.3", kith.Up))
	add("10.0.0.4", kith.WeaklyUp)
	for host, s := range map[string]kith.Status{"10.0.0.5": kith.Exiting, "10.0.0.6": kith.Down} {
		add(host, s)
	}
	named("10.0.0.2", "10.0.0.4")
	add("10.0.0.7", kith.Joining)
	add("10.0.0.8", kith.Up)
	named("10.0.0.2", "10.0.0.4", "10.0.0.7", "10.0.0.8")
	add("10.0.0.9", kith.Up)
	add("10.0.0.10", kith.Up)
	named("10.0.0.2", "10.0.0.4", "10.0.0.7", "10.0.0.8", "10.0.0.9")
}
