// The coordinated shutdown of real nodes: every phase in its order, around the node's own part, for each of its causes.

package e2e_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

var allPhases = []string{kith.PhaseBeforeServiceUnbind, kith.PhaseServiceUnbind, kith.PhaseServiceRequestsDone,
	kith.PhaseServiceStop, kith.PhaseBeforeClusterShutdown, kith.PhaseShardingShutdown, kith.PhaseClusterLeave,
	kith.PhaseClusterExiting, kith.PhaseClusterExitingDone, kith.PhaseClusterShutdown, kith.PhaseBeforeProcessEnd,
	kith.PhaseProcessEnd}

// phasesOf makes every phase of n note that it ran, and what the node was then.
func phasesOf(t *testing.T, n *kith.Node) (ran func() []string, alive map[string]bool) {
	var mu sync.Mutex
	var list []string
	alive = map[string]bool{}
	for _, p := range allPhases {
		require.NoError(t, n.OnShutdown(p, "note", func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, p)
			alive[p] = n.Err() == nil
			return nil
		}))
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(list)
	}, alive
}

// TestLeaveRunsAllPhases (MEM-8): the node is a member until its own phases, and closed after them.
func TestLeaveRunsAllPhases(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, nil, nil)
	ran, alive := phasesOf(t, nodes[1])
	require.NoError(t, nodes[1].Leave(within(t)))
	require.Equal(t, allPhases, ran())
	require.True(t, alive[kith.PhaseBeforeClusterShutdown])
	require.False(t, alive[kith.PhaseBeforeProcessEnd])
	require.Equal(t, kith.ReasonLeft, nodes[1].ShutdownReason())
	<-nodes[1].ShutdownDone()
	require.NoError(t, nodes[1].Shutdown(within(t), kith.ReasonSignal), "the same run's result")
	require.Equal(t, kith.ReasonLeft, nodes[1].ShutdownReason(), "the first reason stands")
	require.ErrorIs(t, nodes[1].OnShutdown(kith.PhaseProcessEnd, "late", nil), kith.ErrPhasePassed)
}

// TestDownedNodeRunsItsPhases: the node has ended before the first of them, and says why.
func TestDownedNodeRunsItsPhases(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, nil, nil)
	ran, alive := phasesOf(t, nodes[1])
	require.NoError(t, nodes[0].Down(within(t), nodes[1].Addr().String()))
	<-nodes[1].ShutdownDone()
	require.Equal(t, allPhases, ran())
	require.False(t, alive[kith.PhaseBeforeProcessEnd])
	require.Contains(t, []kith.ShutdownReason{kith.ReasonDowned, kith.ReasonRemoved}, nodes[1].ShutdownReason())
}

// TestStrictPhaseAborts: the node stays, and the caller learns which task failed.
func TestStrictPhaseAborts(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is full")
	n := start(t, logger(t), kith.Config{Phases: []kith.Phase{
		{Name: "flush", After: []string{kith.PhaseServiceStop}, Strict: true},
		{Name: kith.PhaseBeforeClusterShutdown, After: []string{"flush"}}}})
	require.NoError(t, n.Ready(within(t)))
	require.NoError(t, n.OnShutdown("flush", "store", func(context.Context) error { return broken }))
	err := n.Shutdown(within(t), "tired")
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "flush")
	require.NoError(t, n.Err(), "the node was not touched")
	require.Equal(t, kith.ShutdownReason("tired"), n.ShutdownReason())
}

// TestShutdownFromTheMiddle: earlier phases are passed over, hosted shards are not waited for.
func TestShutdownFromTheMiddle(t *testing.T) {
	t.Parallel()
	n := start(t, logger(t), kith.Config{})
	require.NoError(t, n.Ready(within(t)))
	ran, _ := phasesOf(t, n)
	require.ErrorIs(t, n.ShutdownFrom(within(t), kith.ReasonSignal, "nowhere"), kith.ErrUnknownPhase)
	require.NoError(t, n.ShutdownFrom(within(t), kith.ReasonSignal, kith.PhaseClusterLeave))
	require.Equal(t, allPhases[6:], ran())
	var e *kith.EndedError
	require.ErrorAs(t, n.Err(), &e)
	require.Equal(t, kith.EndLeft, e.Kind)
}

// TestCloseRunsNoPhases: it is the stop that looks like a crash.
func TestCloseRunsNoPhases(t *testing.T) {
	t.Parallel()
	n := start(t, logger(t), kith.Config{})
	ran, _ := phasesOf(t, n)
	require.NoError(t, n.Close())
	require.Empty(t, ran())
	require.Empty(t, n.ShutdownReason())
}

func TestBadPhasesAreRefusedAtStart(t *testing.T) {
	_, err := kith.Start(t.Context(), kith.Config{Phases: []kith.Phase{{Name: "a", After: []string{"a"}}}})
	require.ErrorIs(t, err, kith.ErrPhases)
	require.ErrorIs(t, err, kith.ErrBadConfig)
}
