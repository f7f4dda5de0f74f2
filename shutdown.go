// Shutdown: the coordinated shutdown of a node, phase by phase.

package kith

import (
	"context"
	"errors"

	"github.com/kith-io/kith/shutdown"
)

// What a coordinated shutdown is made of (package shutdown).
type (
	// Phase is one phase of the shutdown; Config.Phases adds or changes some.
	Phase = shutdown.Phase
	// ShutdownReason says why a node shuts down. Programs may give reasons of their own.
	ShutdownReason = shutdown.Reason
)

// The phases of every shutdown, in their order. Package shutdown says what each is for.
const (
	PhaseBeforeServiceUnbind   = shutdown.PhaseBeforeServiceUnbind
	PhaseServiceUnbind         = shutdown.PhaseServiceUnbind
	PhaseServiceRequestsDone   = shutdown.PhaseServiceRequestsDone
	PhaseServiceStop           = shutdown.PhaseServiceStop
	PhaseBeforeClusterShutdown = shutdown.PhaseBeforeClusterShutdown
	PhaseShardingShutdown      = shutdown.PhaseShardingShutdown
	PhaseClusterLeave          = shutdown.PhaseClusterLeave
	PhaseClusterExiting        = shutdown.PhaseClusterExiting
	PhaseClusterExitingDone    = shutdown.PhaseClusterExitingDone
	PhaseClusterShutdown       = shutdown.PhaseClusterShutdown
	PhaseBeforeProcessEnd      = shutdown.PhaseBeforeProcessEnd
	PhaseProcessEnd            = shutdown.PhaseProcessEnd
)

// The reasons that a node gives by itself, and the ones that programs usually do.
const (
	ReasonLeft             = shutdown.ReasonLeft
	ReasonSignal           = shutdown.ReasonSignal
	ReasonDowned           = shutdown.ReasonDowned
	ReasonRemoved          = shutdown.ReasonRemoved
	ReasonIsolated         = shutdown.ReasonIsolated
	ReasonJoinUnsuccessful = shutdown.ReasonJoinUnsuccessful
	ReasonRejoin           = shutdown.ReasonRejoin
	ReasonIncompatible     = shutdown.ReasonIncompatible
	ReasonDuplicate        = shutdown.ReasonDuplicate
)

// Errors of shutdowns; match with errors.Is.
var (
	ErrPhases       = shutdown.ErrPhases
	ErrUnknownPhase = shutdown.ErrUnknownPhase
	ErrPhasePassed  = shutdown.ErrPhasePassed
	ErrPhaseFull    = shutdown.ErrPhaseFull
	ErrPhaseTimeout = shutdown.ErrPhaseTimeout
	ErrTaskPanic    = shutdown.ErrTaskPanic
)

// The exit codes of a process that runs a node, as kith run has them and ExitCode gives them. A supervisor starts it
// again after ExitFailed, ExitEnded, ExitNotAdmitted and ExitNoCluster; after ExitRefused somebody has to look at the
// configuration first. After ExitUsage it tries a few times: an address may be free soon, and the Go runtime ends a
// process with the same code (a fatal error, lack of memory, SIGQUIT).
const (
	ExitOK          = 0   // done; the node has left
	ExitFailed      = 1   // any other error
	ExitUsage       = 2   // the configuration is wrong, or an address is taken; Go gives it to a process that crashed too
	ExitEnded       = 3   // the cluster ended the node: it was downed, removed, cut off, or of the younger of two clusters
	ExitNotAdmitted = 4   // not admitted within Config.JoinTimeout
	ExitRefused     = 5   // refused for good: settings that must agree differ
	ExitNoCluster   = 6   // package bootstrap found no cluster in time
	ExitStatesLost  = 7   // the node has left, and states of entities are lost
	ExitInterrupted = 130 // got two signals to end, and ended at once: what shells say of a program that SIGINT has ended
)

// Errors that a process ends with beside the EndedError of its node; ExitCode knows them.
var (
	// ErrNoCluster is matched by the error of a search that found no cluster in time (bootstrap.TimeoutError).
	ErrNoCluster = errors.New("kith: no cluster was found in time")
	// ErrInterrupted is why a process ends that got a second signal to end while its node left.
	ErrInterrupted = errors.New("kith: interrupted while the node left")
)

// ExitCode returns the exit code of a process that ends with err, which may be wrapped: that of Start, Ready, Leave,
// Shutdown, Err, Supervise, or of package service. Nil is ExitOK, and so is the EndedError of a node that has left;
// what it knows nothing of is ExitFailed. Of several that are joined the first that fits counts, in the order:
// interrupted, no cluster, the end of the node, states lost, configuration.
func ExitCode(err error) int {
	var e *EndedError
	_ = errors.As(err, &e)
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrInterrupted):
		return ExitInterrupted
	case errors.Is(err, ErrNoCluster):
		return ExitNoCluster
	case e != nil && e.Kind != EndLeft && e.Kind != EndClosed:
		return codeOf(e.Kind)
	case errors.Is(err, ErrStatesLost):
		return ExitStatesLost
	case errors.Is(err, ErrBadConfig):
		return ExitUsage
	case e != nil && err == error(e) && e.Kind == EndLeft:
		return ExitOK
	}
	return ExitFailed
}

// codeOf returns the exit code of a process after its node has ended so.
func codeOf(kind EndKind) int {
	switch kind {
	case EndJoinTimeout:
		return ExitNotAdmitted
	case EndJoinRefused:
		return ExitRefused
	}
	return ExitEnded
}

// OnShutdown adds a task to a phase of the coordinated shutdown. Tasks of one phase run side by side, each with a
// context that ends with the phase's time limit. It may be called while the shutdown runs, for phases that have not
// begun. Errors: ErrUnknownPhase, ErrPhasePassed, ErrPhaseFull. Tasks do not run when the node is closed by Close.
func (n *Node) OnShutdown(phase, name string, run func(ctx context.Context) error) error {
	return n.d.OnShutdown(phase, name, run)
}

// Shutdown runs the coordinated shutdown and waits until it is over: the way to end a node on a signal. It runs once:
// the first reason stands, later calls wait for the same run and return its result: nil, the failure of a Strict phase,
// after which the rest was not run, or what Leave returns: an *EndedError of a node that did not leave, an
// *AbandonedError, a *LostStatesError, a *NeededDisksError. When ctx ends first it goes on, and ctx's error returns.
// Leave begins one too, and so does a membership that ends by itself.
func (n *Node) Shutdown(ctx context.Context, why ShutdownReason) error {
	return n.d.Shutdown(ctx, why, "")
}

// ShutdownFrom is Shutdown that begins at a phase; those before it are passed over. ErrUnknownPhase.
func (n *Node) ShutdownFrom(ctx context.Context, why ShutdownReason, phase string) error {
	return n.d.Shutdown(ctx, why, phase)
}

// ShutdownDone is closed when the coordinated shutdown has run to its end. Done, by contrast, is closed as soon as the
// node itself has ended, which may be phases earlier, or without any shutdown.
func (n *Node) ShutdownDone() <-chan struct{} { return n.d.ShutdownDone() }

// ShutdownReason returns why the coordinated shutdown runs or ran; empty before it has begun.
func (n *Node) ShutdownReason() ShutdownReason { return n.d.ShutdownReason() }
