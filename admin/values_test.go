// Tests of what the interface says of stores of values.

package admin

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/quorum"
)

// TestValues: a node says which stores are open on it, which disks one has, what this disk has yet to read, and what
// the replicas of a key have; where there is none it says so (DYN-1, OPS-1).
func TestValues(t *testing.T) {
	a, sa := start(t, Config{})
	d := described(t)
	get := func(s *Server, path, described string, want int) map[string]any {
		t.Helper()
		return d.answers(t, s, "GET", path, described, "", want).(map[string]any)
	}
	const one, key = "/v1/values/{name}", "/v1/values/{name}/key"
	require.Empty(t, get(sa, "/v1/values", "/v1/values", 200)["stores"])
	require.Contains(t, get(sa, "/v1/values/carts", one, 404)["error"],
		`no store of values "carts" is open on this node; it has none`)

	nodes, values := []*kith.Node{a}, []*quorum.Values{}
	for range 2 {
		n, _ := start(t, Config{}, a.Addr().String())
		nodes = append(nodes, n)
	}
	open := func(n *kith.Node) {
		v, err := quorum.Open(n, quorum.Store{Name: "carts", Engine: quorum.Memory(), Round: 100 * time.Millisecond})
		require.NoError(t, err)
		values = append(values, v)
	}
	open(a)
	require.Equal(t, false, get(sa, "/v1/values/carts", one, 200)["begun"])
	get(sa, "/v1/values/carts/key?key=k", key, 409)
	open(nodes[1])
	open(nodes[2])
	for _, v := range values {
		require.NoError(t, v.Ready(t.Context()))
	}
	require.Contains(t, get(sa, "/v1/values/none", one, 404)["error"], "it has carts")

	_, err := values[1].Put(t.Context(), []byte("a/b\xff"), []byte("data"), nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // a third replica may have it a moment later
		rep := get(sa, "/v1/values/carts/key?key=a%2Fb%FF", key, 200)
		require.Equal(t, `a/b\xff`, rep["key"])
		require.Equal(t, 1.0, rep["values"])
		whole := 0
		for _, x := range rep["replicas"].([]any) {
			r := x.(map[string]any)
			require.Equal(t, true, r["answered"])
			if vs := r["versions"].([]any); len(vs) == 1 && r["behind"] == false {
				require.Equal(t, 4.0, vs[0].(map[string]any)["bytes"])
				whole++
			}
		}
		return whole == 3
	}, time.Minute, 10*time.Millisecond)
	rep := get(sa, "/v1/values/carts", one, 200)
	require.Equal(t, 3.0, rep["founders"])
	require.Equal(t, 64.0, rep["groups"])
	require.Empty(t, rep["filling"])
	require.Len(t, rep["disks"], 3)
	list := get(sa, "/v1/values", "/v1/values", 200)["stores"].([]any)
	require.Equal(t, "carts", list[0].(map[string]any)["store"])

	get(sa, "/v1/values/carts/key", key, 400)
	get(sa, "/v1/values/carts/key?key="+strings.Repeat("x", 1025), key, 400)
	status, _, _ := call(t, sa, "POST", "/v1/values/carts", "")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	require.NoError(t, values[0].Close())
	get(sa, "/v1/values/carts", one, 404)
	require.NoError(t, a.Close())
	for path, name := range map[string]string{"": "/v1/values", "/carts": one, "/carts/key?key=k": key} {
		get(sa, "/v1/values"+path, name, 503)
	}
}
