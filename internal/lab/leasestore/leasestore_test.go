//go:build linux

// Tests of the stores: what is cut off gets nothing, everybody else does, and what comes back has kept what was there.

package leasestore

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/lease"
)

// tries asks for a lease once, and waits for no longer than a moment where nothing answers.
func tries(t *testing.T, address, owner string, wait time.Duration) (bool, error) {
	l, err := lease.Open(t.Context(), address)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	return l.Acquire(ctx, "x", owner)
}

const patient = 2 * time.Minute

// Files: one that is cut off has an error, one lease is for all, a store that stands answers nobody (MEM-10).
func TestFiles(t *testing.T) {
	s, err := Open(Config{Kind: Files, Dir: t.TempDir(), Nodes: 2})
	require.NoError(t, err)
	ok, err := tries(t, s.Address(0), "a", patient)
	require.NoError(t, err)
	require.True(t, ok)
	ok, err = tries(t, s.Address(1), "b", patient)
	require.NoError(t, err)
	require.False(t, ok, "the two nodes see one store")
	require.NoError(t, s.Cut([]int{0}))
	_, err = tries(t, s.Address(0), "a", patient)
	require.Error(t, err)
	_, err = tries(t, s.Address(1), "b", patient)
	require.NoError(t, err)
	require.NoError(t, s.Cut(nil))
	require.NoError(t, s.Stop(true))
	_, err = tries(t, s.Address(0), "a", 20*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, s.Stop(false))
	ok, err = tries(t, s.Address(0), "a", patient)
	require.NoError(t, err)
	require.True(t, ok, "it has kept what was there")
	require.ErrorIs(t, s.Restart(), ErrNoRestart)
	require.NoError(t, s.Close())
	_, err = Open(Config{Kind: "rain"})
	require.ErrorContains(t, err, `no kind "rain"`)
}

// Etcd: each node has a way of its own, which can be cut; what was sent meanwhile comes when the cut is over (MEM-10).
func TestEtcd(t *testing.T) {
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("no etcd here")
	}
	s, err := Open(Config{Kind: Etcd, Dir: t.TempDir(), Nodes: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	ask := func(slot int, wait time.Duration) error {
		host := strings.TrimSuffix(strings.TrimPrefix(s.Address(slot), "etcd://"), "/lab/")
		client := http.Client{Timeout: wait, Transport: &http.Transport{DisableKeepAlives: true}}
		r, err := client.Get("http://" + host + "/health")
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s %w", r.Status, text, err)
		}
		return nil
	}
	require.NoError(t, ask(0, patient))
	require.NoError(t, s.Cut([]int{0}))
	require.Error(t, ask(0, 50*time.Millisecond))
	require.NoError(t, ask(1, patient))
	late := make(chan error, 1)
	go func() { late <- ask(0, patient) }()
	require.NoError(t, s.Cut([]int{1}))
	require.NoError(t, <-late, "asked while it was cut off")
	require.Error(t, ask(1, 50*time.Millisecond))
	require.NoError(t, s.Cut(nil))
	require.NoError(t, s.Restart())
	require.NoError(t, ask(1, patient))
	require.NoError(t, s.Stop(true))
	require.Error(t, ask(1, 50*time.Millisecond))
	require.NoError(t, s.Stop(false))
	require.NoError(t, ask(1, patient))
}
