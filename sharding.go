// Sharding: how long shards and messages wait for owners, and when shards move: the part of a node's configuration
// that is about homes.

package kith

import "time"

// Sharding is how homes of shards are found, kept and moved (Config.Sharding). The zero value of every field means its
// default, so the zero Sharding is ready. docs/sharding.md says what moves are.
type Sharding struct {
	// TakeoverTime is how long a shard waits after its owner was lost without having confirmed that it stopped. Zero means
	// that it follows from the failure detector, the resolver and the number of members: 17 s up to 5 members by default,
	// 60 s above 100, and 20 s without a resolver. A fixed time that is too short for five members is refused, unless the
	// resolver is off; when the cluster outgrows it, a warning is logged.
	TakeoverTime time.Duration
	// ProcessDeathIsProof gives the shards of a process that died to others at once, without the takeover time, and what
	// it coordinated to the next oldest: when its connection is reset and its host then refuses another one, or a new
	// process answers there. Leave it off where anything between the nodes could do so for a process that lives: a proxy,
	// a firewall, a load balancer. A node that ends while a handler does not return keeps its port until that one has.
	// Set it on all nodes or none.
	ProcessDeathIsProof bool
	// NoLockProof switches off what is on by default: a process that starts at the address of the one before it, on the
	// same machine, and gets the lock that this one held until its last handler returned, proves it dead, and its shards
	// live again at once. The lock is a file in Directory or, without one and where Listen names a port, among the
	// temporary files of the user; only Linux and file systems of the machine itself have it. This node then neither holds
	// nor believes it: set it on all nodes.
	NoLockProof bool
	// ParkBytes bounds, per type, what waits for the homes of shards to become known; zero means 16 MiB.
	ParkBytes int
	// ParkTime is how long a message may wait so. Zero means that it follows from the takeover time of the present number
	// of members, with ten seconds more, and at least 30 s: so what is sent to an entity on a lost node reaches it at its
	// next one. The log warns of a fixed time below the takeover time. It begins anew when a shard has moved. For a large
	// message it bounds how long nothing may move; zero means 30 s there.
	ParkTime time.Duration

	// RebalanceInterval is how often this node, where it coordinates a type with even shards, asks the type's strategy
	// what to move for balance: by default from regions that have more shards to those that have fewer. It is asked a
	// second behind a change of those that may be given shards, too, and while it has moves to make, rounds of them follow
	// one another: so a member that joins has its share within seconds. At least 10 ms; zero means 10 s; negative: never.
	// Nothing moves while members come, go or are unreachable, or run different versions of the application.
	RebalanceInterval time.Duration
	// MaxMoves bounds the shards of one type that move at once, as the coordinator of the type has it: 1 to 16,384; zero
	// means 64. Messages to a shard that moves wait at their senders, so it also bounds how much of a type waits.
	MaxMoves int
	// MarkTime is how long the owner of a shard that moves waits for all senders to have said that nothing of theirs is on
	// the way to it any more. A move for which that takes longer is given up, and the shard stays: a sender that stands
	// still holds up no other one for longer. Zero means 3 s.
	MarkTime time.Duration
	// DrainTime is how long the owner of a shard that moves works off what waits for its entities. Then it calls no
	// handler any more, waits for those that run (their asks fail with ErrShardStopping), calls Stop of each entity, and
	// hands what was not handled to the next owner, which handles it first: in order, asks with their callers. Zero means
	// 2 s.
	DrainTime time.Duration
	// MaxHandOver bounds, in bytes, what one shard hands over so, and four times as much what waits on this node for
	// shards to come. What is larger stays, and its shard with it. Up to 1 GiB; zero means 16 MiB.
	MaxHandOver int
}
