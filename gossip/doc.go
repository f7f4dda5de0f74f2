// Package gossip holds the mechanism of spreading one versioned state, without knowing what the state says: vector
// clock, seen set, digests, the biased choice of a target and the verdict on what a peer holds. It is pure.
//
// It is no part of what embedders may rely on, but for the types that package kith and its like lead to: the rest may
// change in any version (docs/compatibility.md).
package gossip
