//go:build linux

// What stands between a test and its server: a process that stands still, and a way on which each request is seen.

package kubeserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/lab/kubeserver"
)

// pause makes a process stand still until the function that it returns is called, or the test ends.
func pause(t *testing.T, signal func(syscall.Signal) error) (goOn func()) {
	t.Helper()
	require.NoError(t, signal(syscall.SIGSTOP))
	once := false
	goOn = func() {
		if !once {
			once = true
			require.NoError(t, signal(syscall.SIGCONT))
		}
	}
	t.Cleanup(goOn)
	return goOn
}

// front is a way to the server on which a test sees each request, and may change it or hold it; what it returns is
// called when the server has answered, also a client that has gone. front returns its URL, and the folder of an account
// there.
func front(t *testing.T, s *kubeserver.Server, dir string, see func(*http.Request) (after func())) (at, to string) {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(ca))
	where, err := url.Parse(s.URL())
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(where)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		after := see(q)
		defer after()
		proxy.ServeHTTP(w, q.WithContext(context.WithoutCancel(q.Context())))
	}))
	t.Cleanup(server.Close)
	to = t.TempDir()
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(filepath.Join(to, "ca.crt"), own, 0o600))
	for _, name := range []string{"token", "namespace"} {
		require.NoError(t, os.Symlink(filepath.Join(dir, name), filepath.Join(to, name)))
	}
	return server.URL, to
}

// nothing is what a test has to do behind a request.
func nothing() {}
