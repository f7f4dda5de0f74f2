// Limits: what a state may hold at most.

package cluster

// Bounds of the protocol: what a state may hold at most.
const (
	MaxMembers    = 10_000 // members of one cluster; a join above is refused
	MaxTombstones = 40_000 // removed incarnations remembered; the oldest of a full table go first
	MaxRoles      = 32     // roles of one member
	MaxRoleSize   = 128    // bytes of a role
)
