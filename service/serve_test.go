// Tests of Serve: requests under way are answered before the function of Run returns (OPS-2).

package service

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// When its context ends, Serve takes nothing new, and returns when the request under way is answered.
func TestServeAnswersWhatIsUnderWay(t *testing.T) {
	at, began, release := make(chan string, 1), make(chan struct{}), make(chan struct{})
	var returned atomic.Bool
	s := &http.Server{Addr: "127.0.0.1:0", BaseContext: func(l net.Listener) context.Context {
		at <- l.Addr().String()
		return context.Background()
	}, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-release
		if returned.Load() {
			w.WriteHeader(http.StatusTeapot)
		}
	})}
	ctx, end := context.WithCancel(t.Context())
	fit, over := newFitness(), make(chan error, 1)
	go func() {
		err := Serve(context.WithValue(ctx, fitKey{}, fit), s)
		returned.Store(true)
		over <- err
	}()
	addr, answered := <-at, make(chan int, 1)
	go func() {
		r, err := http.Get("http://" + addr + "/")
		if err != nil {
			answered <- 0
			return
		}
		_ = r.Body.Close()
		answered <- r.StatusCode
	}()
	<-began
	require.Empty(t, fit.why(), "it is ready")
	end()
	for c, err := net.Dial("tcp", addr); err == nil; c, err = net.Dial("tcp", addr) {
		require.NoError(t, c.Close())
	}
	require.Empty(t, over)
	close(release)
	require.Equal(t, http.StatusOK, <-answered)
	require.NoError(t, <-over)
}

// It serves by TLS where there are certificates; an address that it cannot have is a wrong configuration, and a server
// that somebody closes is an error.
func TestServeEndsWithItsServer(t *testing.T) {
	other := httptest.NewTLSServer(nil)
	defer other.Close()
	err := Serve(t.Context(), &http.Server{Addr: other.Listener.Addr().String()})
	require.ErrorIs(t, err, kith.ErrBadConfig)
	require.Equal(t, kith.ExitUsage, kith.ExitCode(err))

	at, over := make(chan string, 1), make(chan error, 1)
	s := &http.Server{Addr: "127.0.0.1:0", TLSConfig: other.TLS.Clone()}
	s.BaseContext = func(l net.Listener) context.Context {
		at <- l.Addr().String()
		return context.Background()
	}
	go func() { over <- Serve(t.Context(), s) }()
	r, err := other.Client().Get("https://" + <-at + "/")
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, http.StatusNotFound, r.StatusCode)
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-over, http.ErrServerClosed)
}
