// Package entity is what runs a user's entities: Type, Handler and Context, which the root package aliases, and the
// host of one shard as a stepped value with mailboxes and the three execution modes.
//
// Nothing here starts a goroutine or takes a lock. A runtime (the driver on real sockets, the simulator on virtual
// time) puts workers, loops and locks around a Shard, and is reached through the small interfaces Runtime and Origin.
//
// It is no part of what embedders may rely on, but for the types that package kith and its like lead to: the rest may
// change in any version (docs/compatibility.md).
package entity
