// Sharding: how long shards and messages wait for owners, and when shards move: the part of a node's configuration
// that is about homes.

package kith

import (
	"context"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/runtime/driver"
)

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
	// Session has this node hold a session lease: it handles messages only while it holds one, and a lost node's shards
	// live elsewhere as soon as its lease has run out. Set it on all nodes or none; docs/failover.md.
	Session Session
	// Tenure has this node handle messages only while a quorum of other members vouches for it, and a lost node's shards
	// live elsewhere as soon as such a quorum vouches for it no more, without any store. The same on all nodes, and not
	// together with Session; docs/failover.md.
	Tenure Tenure
	// ParkBytes bounds, per type, what waits for the homes of shards to become known; zero means 16 MiB. What a move takes
	// back from a link comes on top of it, at most Config.LinkBuffer of each link.
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

// Session is where session leases are kept (Sharding.Session): the zero value, or both fields, of one store. Leases of
// package lease and of the modules beside it will do. The caller closes them, when the node has ended.
//
// A node that has no session suspends itself and goes on when it has one again, unless another member has ended it
// meanwhile: then it ends. While the store is away all nodes stand still (there is no fallback to the takeover time),
// and a node ends that was without a session for nine tenths of the TTL of Ends, less that of Service. No time frees a
// lost node's shards: another member ends its session first.
type Session struct {
	// Service keeps the sessions. Its TTL is that of a session: 1 s to 1 min, 5 s is good. It is renewed three times in
	// it, each call may take a fifth of it, and a node that stood still for that long is taken for lost.
	Service SessionService
	// Ends keeps that a session was ended. Its TTL is ten times that of Service at least, and at most 24 h; the store may
	// be away for about so long before nodes end.
	Ends SessionService
}

// SessionService is a store of leases that a node and all others reach. Methods are safe for concurrent use.
type SessionService interface {
	// Acquire returns true when owner has the lease for TTL from the moment of the call, at least; false when another one
	// has it. An error means that nothing is known: what was asked may have been done, or be done later. A panic is an
	// error, and so is a call that does not heed the end of ctx; with 16 of those no other call is made until one returns.
	Acquire(ctx context.Context, name, owner string) (bool, error)
	// TTL is how long a lease lasts after the last Acquire of its owner. It never changes.
	TTL() time.Duration
}

// Tenure is the electorate that vouches for owners (Sharding.Tenure), and for how long its word counts. The zero value:
// there is none. It must be the same on all nodes.
//
// The leader gives numbered seats to members. Each node asks their holders five times in a Grant, and handles messages
// while more than half of the seats have granted; without them it suspends itself, and goes on when they grant again.
// Each holder keeps its word for a little longer than a Grant. When more than half of them say that they vouch for a
// member no more, and that their word has run out, that member handles nothing: its shards are free. No time frees them
// without that. The resolver counts the seats: where a quorum of the holders is lost at once the other members end, as
// they cannot tell that from a cut.
type Tenure struct {
	// Voters is how many seats there are: 3, 5 or 7. With 5 any two holders may be lost. Zero: no tenure.
	Voters int
	// Grant is for how long a grant counts, from when it was asked for: 500 ms to 1 min; zero means 2.5 s. A lost node's
	// shards wait for a little longer. A node that stands still for longer than that handles nothing until it is vouched
	// for again, and is ended where others have missed it meanwhile.
	Grant time.Duration
	// Role is that of the members that may hold a seat; empty: any member may.
	Role string
	// Refound says how it is known that lost holders have ended, where members that live hold half of the seats or fewer
	// and the others are known to be gone for good: their seats go to other members only then. The zero value is
	// RefoundByOperator.
	Refound Refound
}

// Refound is how it is known that lost holders of seats have ended (Tenure.Refound).
type Refound = cluster.Refound

// The ways. No word is needed for one that was proven dead.
const (
	// RefoundByOperator: a person says so, by Node.Refound. Safe if that is true.
	RefoundByOperator = cluster.RefoundByOperator
	// RefoundByTakeover: it is assumed a takeover time after the last of them was seen Down. Two nodes may own an entity
	// if a resolver was wrong about one that lives.
	RefoundByTakeover = cluster.RefoundByTakeover
)

// driver is s as the driver takes it.
func (s Sharding) driver() driver.Sharding {
	return driver.Sharding{TakeoverTime: s.TakeoverTime, ProcessDeathIsProof: s.ProcessDeathIsProof,
		NoLockProof: s.NoLockProof, Session: driver.Session{Service: s.Session.Service, Ends: s.Session.Ends},
		Tenure: driver.Tenure(s.Tenure), ParkBytes: s.ParkBytes, ParkTime: s.ParkTime,
		RebalanceInterval: s.RebalanceInterval, MaxMoves: s.MaxMoves, MarkTime: s.MarkTime, DrainTime: s.DrainTime,
		MaxHandOver: s.MaxHandOver}
}
