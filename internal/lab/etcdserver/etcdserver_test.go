//go:build linux

// Tests of a server, where one is installed.

package etcdserver

import (
	"bytes"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server that is killed starts again with its data, one that runs is left alone, and one that cannot start says so.
func TestServer(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, err := New(&log)
	if err != nil {
		require.ErrorIs(t, err, exec.ErrNotFound)
		t.Skipf("no etcd: %v (Debian: apt-get install etcd-server)", err)
	}
	t.Cleanup(func() { require.NoError(t, s.Remove()) })
	require.False(t, s.Running())
	s.Stop(syscall.SIGKILL)
	began := make(chan error)
	go func() {
		runtime.LockOSThread() // which ends with this goroutine, and the server lives on
		began <- s.Start()
	}()
	require.NoError(t, <-began)
	require.NoError(t, s.Start())
	call := func(verb, body string) string {
		r, err := http.Post(s.URL()+"/v3/kv/"+verb, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		defer r.Body.Close()
		var b bytes.Buffer
		_, err = b.ReadFrom(r.Body)
		require.NoError(t, err)
		return b.String()
	}
	call("put", `{"key":"a2V5","value":"d29ydGg="}`)
	s.Stop(syscall.SIGKILL)
	require.False(t, s.Running())
	require.NoError(t, s.Start())
	require.Contains(t, call("range", `{"key":"a2V5"}`), "d29ydGg=")

	broken, err := New(&log, "--no-such-flag")
	require.NoError(t, err)
	require.ErrorContains(t, broken.Start(), "see its log")
	require.NoError(t, broken.Remove())
}
