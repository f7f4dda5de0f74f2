// Shutdown: the coordinated shutdown of a node, phase by phase.

package kith

import (
	"context"

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
	ReasonTwin             = shutdown.ReasonTwin
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

// OnShutdown adds a task to a phase of the coordinated shutdown. Tasks of one phase run side by side, each with a
// context that ends with the phase's time limit. It may be called while the shutdown runs, for phases that have not
// begun. Errors: ErrUnknownPhase, ErrPhasePassed, ErrPhaseFull. Tasks do not run when the node is closed by Close.
func (n *Node) OnShutdown(phase, name string, run func(ctx context.Context) error) error {
	return n.d.OnShutdown(phase, name, run)
}

// Shutdown runs the coordinated shutdown and waits until it is over: the way to end a node on a signal. It runs once:
// the first reason stands, later calls wait for the same run and return its result: nil, the failure of a Strict phase,
// after which the rest was not run, or what Leave returns: an *EndedError of a node that did not leave, an
// *AbandonedError, a *LostStatesError. When ctx ends first it goes on, and ctx's error returns. Leave begins one too,
// and so does a membership that ends by itself.
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
