// Shutdown: the coordinated shutdown of a node, phase by phase.

package kith

import (
	"context"

	"github.com/kith-io/kith/internal/driver"
)

// What a coordinated shutdown is made of (package driver).
type (
	// Phase is one phase of the shutdown; Config.Phases adds or changes some.
	Phase = driver.Phase
	// ShutdownReason says why a node shuts down. Programs may give reasons of their own.
	ShutdownReason = driver.ShutdownReason
)

// The phases of every shutdown, in their order. docs/shutdown.md says what each is for.
const (
	PhaseBeforeServiceUnbind   = driver.PhaseBeforeServiceUnbind
	PhaseServiceUnbind         = driver.PhaseServiceUnbind
	PhaseServiceRequestsDone   = driver.PhaseServiceRequestsDone
	PhaseServiceStop           = driver.PhaseServiceStop
	PhaseBeforeClusterShutdown = driver.PhaseBeforeClusterShutdown
	PhaseShardingShutdown      = driver.PhaseShardingShutdown
	PhaseClusterLeave          = driver.PhaseClusterLeave
	PhaseClusterExiting        = driver.PhaseClusterExiting
	PhaseClusterExitingDone    = driver.PhaseClusterExitingDone
	PhaseClusterShutdown       = driver.PhaseClusterShutdown
	PhaseBeforeProcessEnd      = driver.PhaseBeforeProcessEnd
	PhaseProcessEnd            = driver.PhaseProcessEnd
)

// The reasons that a node gives by itself, and the ones that programs usually do.
const (
	ReasonLeft             = driver.ReasonLeft
	ReasonSignal           = driver.ReasonSignal
	ReasonDowned           = driver.ReasonDowned
	ReasonRemoved          = driver.ReasonRemoved
	ReasonIsolated         = driver.ReasonIsolated
	ReasonJoinUnsuccessful = driver.ReasonJoinUnsuccessful
	ReasonRejoin           = driver.ReasonRejoin
	ReasonIncompatible     = driver.ReasonIncompatible
	ReasonTwin             = driver.ReasonTwin
)

// Errors of shutdowns; match with errors.Is.
var (
	ErrPhases       = driver.ErrPhases
	ErrUnknownPhase = driver.ErrUnknownPhase
	ErrPhasePassed  = driver.ErrPhasePassed
	ErrPhaseFull    = driver.ErrPhaseFull
	ErrPhaseTimeout = driver.ErrPhaseTimeout
	ErrTaskPanic    = driver.ErrTaskPanic
)

// OnShutdown adds a task to a phase of the coordinated shutdown. Tasks of one phase run side by side, each with a
// context that ends with the phase's time limit. It may be called while the shutdown runs, for phases that have not
// begun. Errors: ErrUnknownPhase, ErrPhasePassed, ErrPhaseFull. Tasks do not run when the node is closed by Close.
func (n *Node) OnShutdown(phase, name string, run func(ctx context.Context) error) error {
	return n.d.OnShutdown(phase, name, run)
}

// Shutdown runs the coordinated shutdown and waits until it is over: the way to end a node on a signal. It runs once:
// the first reason stands, later calls wait for the same run and return its result: nil, or the failure of a Strict
// phase, after which the rest was not run. When ctx ends first it goes on, and ctx's error returns. Leave begins one
// too, and so does a membership that ends by itself.
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
