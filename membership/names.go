// Names: what package cluster has to say of a cluster, under the names by which the packages above know it.

package membership

import (
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
)

// Intern is the pool of states that the machines of one simulation share; see Config.Intern.
type Intern = members.Intern

// ErrLaw is what Laws returns, wrapped with the law that is broken.
var ErrLaw = members.ErrLaw

// What a view holds.
type (
	// View is an immutable snapshot of the cluster.
	View = cluster.View
	// Member is one member as a View holds it.
	Member = cluster.Member
	// Accusation is one entry of the reachability table.
	Accusation = cluster.Accusation
	// Metadata is one key and its value as a View holds them.
	Metadata = cluster.Metadata
	// Status is where a member stands in its life.
	Status = cluster.Status
	// Cause says why a member was marked Down.
	Cause = cluster.Cause
)

// The states of a member.
const (
	Joining              = cluster.Joining
	WeaklyUp             = cluster.WeaklyUp
	Up                   = cluster.Up
	PreparingForShutdown = cluster.PreparingForShutdown
	ReadyForShutdown     = cluster.ReadyForShutdown
	Leaving              = cluster.Leaving
	Exiting              = cluster.Exiting
	Down                 = cluster.Down
	Removed              = cluster.Removed
)

// The causes of a Down.
const (
	CauseNone       = cluster.CauseNone
	CauseOperator   = cluster.CauseOperator
	CauseReplaced   = cluster.CauseReplaced
	CauseResolver   = cluster.CauseResolver
	CauseUnstable   = cluster.CauseUnstable
	CauseLease      = cluster.CauseLease
	CauseProvenDead = cluster.CauseProvenDead
)

// Bounds of the protocol: what a state may hold at most.
const (
	MaxMembers    = cluster.MaxMembers    // members of one cluster; a join above is refused
	MaxTombstones = cluster.MaxTombstones // removed incarnations remembered; the oldest of a full table go first
	MaxRoles      = cluster.MaxRoles      // roles of one member
	MaxRoleSize   = cluster.MaxRoleSize   // bytes of a role
)
