// Package membership is the machine of one member: join through seeds, gossip of the members' state, leader duties,
// failure detection and reachability, leaving and removal, events and snapshots. It is pure: see the five verbs in
// ARCHITECTURE.md.
package membership
