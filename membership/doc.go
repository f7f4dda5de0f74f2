// Package membership is the machine of one member: join through seeds, gossip of the members' state, leader duties,
// failure detection and reachability, leaving and removal, events and snapshots. It is pure: see the five verbs in
// ARCHITECTURE.md.
//
// It is no part of what embedders may rely on, but for the types that package kith and its like lead to: the rest may
// change in any version (docs/compatibility.md).
package membership
