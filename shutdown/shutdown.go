// Package shutdown says how and why a node ends: the phases of its coordinated shutdown, the reasons for one,
// and the error that a node leaves behind. What runs the phases is the node; docs/shutdown.md tells the whole story.
package shutdown

import (
	"errors"
	"time"
)

// The phases of every shutdown, in their order. In those from PhaseShardingShutdown to PhaseClusterShutdown the node
// does its own part, beside the tasks of programs. docs/shutdown.md has their time limits.
const (
	PhaseBeforeServiceUnbind   = "before-service-unbind"   // tell load balancers
	PhaseServiceUnbind         = "service-unbind"          // no new requests are taken
	PhaseServiceRequestsDone   = "service-requests-done"   // those under way end
	PhaseServiceStop           = "service-stop"            // what served them is stopped
	PhaseBeforeClusterShutdown = "before-cluster-shutdown" // the last tasks of a full member
	PhaseShardingShutdown      = "sharding-shutdown"       // the shards hosted here are given back
	PhaseClusterLeave          = "cluster-leave"           // the member becomes Leaving
	PhaseClusterExiting        = "cluster-exiting"         // and Exiting
	PhaseClusterExitingDone    = "cluster-exiting-done"    // and is removed: the node has ended
	PhaseClusterShutdown       = "cluster-shutdown"        // what has not ended ends now
	PhaseBeforeProcessEnd      = "before-process-end"      // buffers are flushed, stores closed
	PhaseProcessEnd            = "process-end"             // the last
)

// DefaultPhaseTimeout is the time limit of a phase that states none.
const DefaultPhaseTimeout = 5 * time.Second

// MaxPhases bounds the phases of a shutdown, MaxPhaseTasks the tasks of one phase.
const (
	MaxPhases     = 256
	MaxPhaseTasks = 1024
)

// Errors of shutdown phases.
var (
	ErrPhases       = errors.New("kith: bad shutdown phases")
	ErrUnknownPhase = errors.New("kith: unknown shutdown phase")
	ErrPhasePassed  = errors.New("kith: shutdown phase has begun already")
	ErrPhaseFull    = errors.New("kith: too many tasks in a shutdown phase")
	ErrPhaseTimeout = errors.New("kith: shutdown phase ran out of time")
	ErrTaskPanic    = errors.New("kith: shutdown task panicked")
)

// Phase is one phase of the shutdown. One with the name of a default phase changes it: what it leaves zero stays.
type Phase struct {
	Name    string
	After   []string      // phases that must be over before this one begins
	Timeout time.Duration // zero: the default phase's own, or DefaultPhaseTimeout
	// Strict aborts the rest of the shutdown when a task of this phase fails or its time is over. Otherwise that is
	// logged and the next phase begins.
	Strict bool
}

// Reason says why a node shuts down. Programs may give reasons of their own.
type Reason string

// The reasons that the node itself gives, and the ones that programs usually do.
const (
	ReasonLeft             Reason = "left"              // Leave was called
	ReasonSignal           Reason = "signal"            // the process got SIGTERM or SIGINT
	ReasonDowned           Reason = "downed"            // marked Down: by an operator, a resolver, or a successor
	ReasonRemoved          Reason = "removed"           // others had removed this incarnation
	ReasonIsolated         Reason = "isolated"          // heard no member for too long
	ReasonJoinUnsuccessful Reason = "join-unsuccessful" // not admitted in time
	ReasonRejoin           Reason = "rejoin"            // goes over to another cluster
	ReasonIncompatible     Reason = "incompatible"      // the cluster refused this node for good
	ReasonDuplicate        Reason = "twin"              // its cluster was the younger of two of one name
)
