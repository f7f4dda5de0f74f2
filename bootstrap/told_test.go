// Tests of a node that an operator gives seeds to join while it searches (BOOT-3, MEM-9).

package bootstrap

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bootstrap/formation"
	"github.com/kith-io/kith/internal/base/port"
)

// A node with an operator's seeds forms no cluster and joins no other, whatever look-ups show and whatever node asks
// for its promise; its contact point is no seed (503) until it is a member, and is one then.
func TestToldNodeFollowsItsOperator(t *testing.T) {
	k, other, at := &known{}, &known{}, port.Keep(t)
	b := begun(t, k, kith.Config{}, Config{Expected: 2})
	url := "http://" + b.ContactPoint()
	require.Equal(t, http.StatusOK, get(t, url+contactPath, nil))
	next, err := b.Node().JoinCluster(t.Context(), []string{at})
	require.NoError(t, err)
	require.Same(t, b.Node(), next, "it is in no cluster yet: no other incarnation is needed")

	why, _ := asked{method: "GET", path: contactPath}.answer(t, b, http.StatusServiceUnavailable)
	require.Contains(t, why, at)
	why, _ = asked{"POST", promisePath, "", aJSON, strings.NewReader(anAsk)}.answer(t, b, http.StatusServiceUnavailable)
	require.Contains(t, why, at)
	var e explanationJSON
	require.Equal(t, http.StatusOK, get(t, url+explainPath, &e))
	require.Equal(t, formation.JoinCluster, e.Action)
	require.Equal(t, formation.HoldNothing, e.Hold)
	require.Equal(t, []string{at}, e.Seeds)
	require.Contains(t, e.Detail, "an operator")
	require.ErrorIs(t, b.Node().UseSeeds(t.Context(), []string{b.Node().Addr().String()}), kith.ErrSeedsOverridden)

	c := begun(t, k, kith.Config{}, Config{Expected: 2, Timeout: -1}) // one that it would have formed a cluster with
	k.add(t, b.ContactPoint())
	k.add(t, c.ContactPoint())
	alone := begun(t, other, kith.Config{}, Config{Expected: 1}) // and a cluster that it would have joined
	other.add(t, alone.ContactPoint())
	wrong := up(t, alone)
	require.Eventually(t, func() bool {
		e := c.Explain()
		return e.Stable >= margin && len(e.Points) == 2 && strings.Contains(e.Detail+e.Points[0].Failed+e.Points[1].Failed,
			"status 503")
	}, time.Minute, 5*time.Millisecond)
	require.Zero(t, c.Node().View().ClusterID)
	require.Zero(t, b.Node().View().ClusterID)
	require.Zero(t, b.Explain().Promised)

	meant, err := kith.Start(t.Context(), kith.Config{Listen: at})
	require.NoError(t, err)
	t.Cleanup(func() { _ = meant.Close() })
	id := up(t, b, c)
	require.Equal(t, meant.View().ClusterID, id)
	require.NotEqual(t, wrong, id)
	require.Equal(t, http.StatusOK, get(t, url+contactPath, nil))
}

// When its node goes over to another cluster, the contact point of a process serves the next incarnation: 503 until
// that is a member, and then newcomers find its cluster there.
func TestContactPointFollowsItsNode(t *testing.T) {
	k, at := &known{}, port.Keep(t)
	b := begun(t, k, kith.Config{}, Config{Expected: 1})
	k.add(t, b.ContactPoint())
	up(t, b)
	first := b.Node()
	next, err := first.JoinCluster(t.Context(), []string{at})
	require.NoError(t, err)
	t.Cleanup(func() { _ = next.Close() })
	require.NotSame(t, first, next)
	b.Follow(next)
	b.Follow(next)
	require.Same(t, next, b.Node())
	why, _ := asked{method: "GET", path: contactPath}.answer(t, b, http.StatusServiceUnavailable)
	require.Contains(t, why, at)
	require.Equal(t, []string{at}, next.Told())
	var e explanationJSON
	require.Equal(t, http.StatusOK, get(t, "http://"+b.ContactPoint()+explainPath, &e))
	require.Equal(t, formation.JoinCluster, e.Action)
	require.False(t, e.Member)
	require.Empty(t, e.ClusterID)

	meant, err := kith.Start(t.Context(), kith.Config{Listen: at})
	require.NoError(t, err)
	t.Cleanup(func() { _ = meant.Close() })
	c := begun(t, k, kith.Config{}, Config{Expected: 1, NeverForm: true})
	require.Equal(t, up(t, b, c), meant.View().ClusterID)
	var raw contactJSON
	require.Equal(t, http.StatusOK, get(t, "http://"+b.ContactPoint()+contactPath, &raw))
	r, err := raw.reply()
	require.NoError(t, err)
	require.Equal(t, next.ID(), r.Node)
	require.Equal(t, next.View().ClusterID, r.ClusterID)
	require.NoError(t, b.Err())
}
