// Package peer holds what names a node: its address, its identity (address and incarnation), small sorted sets of
// identities, and mail addressed to one. It knows nothing of status, roles or liveness.
package peer
