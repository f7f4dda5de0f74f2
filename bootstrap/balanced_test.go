// Tests of contact points that are one address of several nodes: a service of Kubernetes, a load balancer (JOIN-1).

package bootstrap

import (
	"context"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// A contact point behind which several nodes stand is connected to anew while it shows no cluster: another node behind
// it may be in one (JOIN-1).
func TestContactPointsBehindOneAddress(t *testing.T) {
	nobody := &known{}
	waits := begun(t, nobody, kith.Config{}, Config{NeverForm: true})
	own := &known{}
	first := begun(t, own, kith.Config{}, Config{Expected: 1})
	own.add(t, first.ContactPoint())
	id := up(t, first)
	var conns atomic.Int64
	type number struct{}
	balancer := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to := first.ContactPoint()
		if n, _ := r.In.Context().Value(number{}).(int64); n <= 2 {
			to = waits.ContactPoint()
		}
		r.SetURL(&url.URL{Scheme: "http", Host: to})
	}})
	balancer.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, number{}, conns.Add(1))
	}
	balancer.Start()
	t.Cleanup(balancer.Close)
	one := &known{}
	one.add(t, balancer.Listener.Addr().String())
	require.Equal(t, id, up(t, begun(t, one, kith.Config{}, Config{NeverForm: true})))
	require.Greater(t, conns.Load(), int64(2))
}
