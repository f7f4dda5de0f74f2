// Package gossip holds the mechanism of spreading one versioned state, without knowing what the state says: vector
// clock, seen set, digests, the biased choice of a target and the verdict on what a peer holds. It is pure.
package gossip
