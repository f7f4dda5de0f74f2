//go:build linux

// The wall clock of a server is set while it runs and while it does not: leases last as long as they do (MEM-10).

package etcd

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/lab/etcdserver"
)

// TestClockOfTheServerIsSet needs an etcd with a clock that it can set: make etcd-clock builds one.
func TestClockOfTheServerIsSet(t *testing.T) {
	program := os.Getenv("KITH_ETCD_CLOCK")
	if program == "" {
		t.Skip("KITH_ETCD_CLOCK names no etcd with a clock that can be set (make etcd-clock)")
	}
	s, err := etcdserver.New(io.Discard)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Remove() })
	file := filepath.Join(t.TempDir(), "step")
	s.Program, s.Env = program, []string{"KITH_CLOCK_STEP=" + file}
	step := func(d time.Duration) {
		require.NoError(t, os.WriteFile(file+"1", fmt.Append(nil, int(d.Seconds())), 0o600))
		require.NoError(t, os.Rename(file+"1", file))
	}
	shows := func(d time.Duration) bool {
		a, err := http.Get(s.URL() + "/version")
		require.NoError(t, err)
		require.NoError(t, a.Body.Close())
		at, err := http.ParseTime(a.Header.Get("Date"))
		require.NoError(t, err)
		return time.Until(at).Round(time.Hour) == d
	}
	step(0)
	require.NoError(t, s.Start())
	const ttl = 3 * time.Second
	for _, to := range []time.Duration{0, 24 * time.Hour, -24 * time.Hour} {
		a, b := open(t, s, "", ttl), open(t, s, "", ttl)
		begin := time.Now()
		acquires(t, a, "a", true)
		step(to)
		await(t, func() bool { return shows(to) })
		acquires(t, b, "b", false)
		await(t, func() bool {
			ok, err := b.Acquire(within2min(t), "n", "b")
			require.NoError(t, err)
			return ok
		})
		took := time.Since(begin)
		require.GreaterOrEqual(t, took, ttl, "set by %v", to)
		require.Less(t, took, time.Minute, "set by %v", to)
		require.NoError(t, b.Release(within2min(t), "n", "b"))

		long := open(t, s, "", 0)
		acquires(t, long, "a", true)
		s.Stop(9)
		step(-to)
		require.NoError(t, s.Start())
		require.True(t, shows(-to))
		acquires(t, b, "b", false)
		acquires(t, long, "a", true)
		require.NoError(t, long.Release(within2min(t), "n", "a"))
		step(to)
		await(t, func() bool { return shows(to) })
	}
}
