// Package shard is the machine of sharding on one node: for every type a region, which knows where shards live, and on
// the oldest member of the type's role the coordinator, which decides it. Owners hold the truth: see coordinator.go.
// It is pure: see the five verbs in ARCHITECTURE.md.
package shard
