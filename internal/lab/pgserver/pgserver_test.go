//go:build linux

// Tests of a server, where one is installed.

package pgserver

import (
	"bytes"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server that is killed starts again with its data, and one that runs is left alone.
func TestServer(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, err := New(&log, "shared_buffers=1MB")
	if err != nil {
		t.Skipf("no PostgreSQL server: %v (Debian: apt-get install postgresql)", err)
	}
	defer func() { require.NoError(t, s.Remove()) }()
	require.False(t, s.Running())
	s.Stop(syscall.SIGINT) // nothing runs
	require.NoError(t, s.Init())
	require.ErrorContains(t, s.Init(), "initdb", "there is a database")
	for range 2 {
		require.NoError(t, s.Start())
		require.True(t, s.Running())
		s.Stop(syscall.SIGKILL)
		require.False(t, s.Running())
	}
	require.NoError(t, s.Start())
	defer s.Stop(syscall.SIGINT)
	pid := s.cmd.Process.Pid
	require.NoError(t, s.Start())
	require.Equal(t, pid, s.cmd.Process.Pid)
}
