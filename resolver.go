// Resolver: the split brain resolver's settings, its lease, and the decisions that it explains.

package kith

import (
	"context"
	"time"

	"github.com/kith-io/kith/sbr"
)

// Resolver holds the settings of the split brain resolver (Config.Resolver). The zero value is keep-majority with all
// defaults, which parentheses give. It must be the same on all nodes. docs/split-brain.md says how to choose.
type Resolver struct {
	// Strategy chooses the side that lives (keep-majority).
	Strategy Strategy
	// Role restricts to members with this role what counts, and which member is lowest or oldest; empty means all. All
	// members of a losing side go, with the role or without.
	Role string
	// QuorumSize is the least number of members, with the role, of a side that lives under static-quorum. There must
	// never be more than 2*QuorumSize-1 such members.
	QuorumSize int
	// KeepAlone lets the oldest member live under keep-oldest also when it is the only one on its side and the others
	// are at least two. The default is that the others live then, so that the crash of the oldest ends only itself.
	KeepAlone bool
	// StableAfter is how long the picture must stand still before a decision. Zero means by the number of Up members at
	// the last converged version: 5.5 s up to 5, 10 s up to 10, 13 s up to 20, 17 s up to 50, 20 s up to 100, then 30 s.
	StableAfter time.Duration
	// UnstableAfter is how much longer than StableAfter the picture may go on changing before all nodes are downed. Zero
	// means three quarters of StableAfter; negative means never.
	UnstableAfter time.Duration
	// LeaseName names the lease of lease-majority; empty means the cluster's name followed by "-resolver".
	LeaseName string
	// LeaseDelay is how much later the side with fewer members asks for the lease (2 s).
	LeaseDelay time.Duration
	// LeaseTimeout is how long an answer about the lease may take; none counts as refused (2 s).
	LeaseTimeout time.Duration
	// LeaseHold is how long the lease is kept after the last downed member was removed (40 s).
	LeaseHold time.Duration
}

// Validate returns all faults of r joined, defaults applied, or nil. Config.Validate calls it.
func (r Resolver) Validate() error { return r.machine().Validate() }

// machine is r as the resolver takes it. How long a silence may be follows from the failure detector.
func (r Resolver) machine() sbr.Config {
	return sbr.Config{
		Strategy: r.Strategy, Role: r.Role, QuorumSize: r.QuorumSize, KeepAlone: r.KeepAlone,
		StableAfter: r.StableAfter, UnstableAfter: r.UnstableAfter,
		LeaseName: r.LeaseName, LeaseDelay: r.LeaseDelay, LeaseTimeout: r.LeaseTimeout, LeaseHold: r.LeaseHold,
	}
}

// Strategy is the rule by which one side of a broken cluster is chosen to live.
type Strategy = sbr.Strategy

// The strategies of a Resolver. UnsafeAutoDown lets every side of a partition live on: it is unsafe, as its name says.
const (
	KeepMajority   = sbr.KeepMajority   // the side with more members; on a tie the side of the lowest address
	StaticQuorum   = sbr.StaticQuorum   // a side of at least QuorumSize members
	KeepOldest     = sbr.KeepOldest     // the side of the oldest member, unless that member is alone
	DownAll        = sbr.DownAll        // nobody, as soon as one is lost
	LeaseMajority  = sbr.LeaseMajority  // the side that acquires the lease; the one with fewer members asks later
	UnsafeAutoDown = sbr.UnsafeAutoDown // each node downs the members that it cannot reach
	ResolverOff    = sbr.Off            // nothing is decided: an operator downs lost members
)

// Lease is a lock outside of the cluster, of the resolver or a singleton, in a store that both sides of a partition
// reach: at most one owner has it at any time. Calls come one at a time from one goroutine per call, and must return
// when ctx ends. Package sbr/leasetest is the suite that an implementation has to pass.
type Lease interface {
	// Acquire returns true when owner has the lease from now on, or had it already; false when another one has it. An
	// error, or no answer before ctx ends, counts as refused, and is followed by Release, or by Acquire again where the
	// lease is wanted still. A lease may end by itself after a time much longer than a resolver holds it
	// (Resolver.LeaseHold), or a singleton without an answer (SingletonLease.Hold), so that a crashed owner does not keep
	// it for ever.
	Acquire(ctx context.Context, name, owner string) (bool, error)
	// Release gives it up; it returns nil also when owner does not have it, and must never take it from another owner. It
	// is repeated until it succeeds.
	Release(ctx context.Context, name, owner string) error
}

// Decision is one explained decision of the resolver, with the time of day at which it was made. String explains it in
// a sentence.
type Decision struct {
	sbr.Decision
	Time time.Time
}

// Decisions returns the newest decisions of the split brain resolver on this node, oldest first, at most 64: each with
// its inputs, its rule and its outcome. The slice is the caller's.
func (n *Node) Decisions() []Decision {
	var list []Decision
	for _, d := range n.d.Decisions() {
		list = append(list, Decision(d))
	}
	return list
}
