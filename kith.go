// Package doc and the names that the root package shares with the rooms below it.

// Package kith embeds a node of a cluster: gossip membership, failure detection, and sharded entities with exactly one
// owner each.
//
//	node, err := kith.Start(ctx, kith.Config{Name: "market", Listen: "127.0.0.1:7355", Seeds: seeds})
//	books, err := node.Register(kith.EntityType{Name: "book", New: newBook})
//	err = node.Ready(ctx)
//	err = books.Tell("EURUSD", payload)
//	reply, err := books.Ask(ctx, "EURUSD", payload)
//
// Membership alone (View, Events) costs nothing of the rest. Messages are delivered at most once and in order from one
// region to one entity; each failure that the sender's side can see is a typed error, each that only the receiver sees
// is reported to Config.Undelivered (tells) or returned (asks).
//
// # What must be equal on all nodes
//
// A cluster refuses a node that differs from it in one of these; the error says in which. Every other field of Config
// may differ from node to node.
//
//	Name, TLS or none, MaxPayload, Window
//	Patience
//	Resolver.Strategy, Resolver.QuorumSize, Resolver.KeepAlone, Resolver.StableAfter, Resolver.UnstableAfter,
//	Resolver.LeaseDelay, Resolver.Role, Resolver.LeaseName
//	Sharding.TakeoverTime, Sharding.ProcessDeathIsProof, Sharding.Session, Sharding.Tenure
//	Membership.Detector, Membership.HeartbeatInterval, Membership.AcceptablePause, Membership.Threshold,
//	Membership.MinStdDeviation, Membership.MaxSamples, Membership.Settings
//
// Of an EntityType these are: Name, Shards, Role and the name of ShardBy. docs/configuration.md says when each is
// compared.
//
// # Names from other packages
//
// Some names here are aliases of types of other packages of this module. `go doc kith.View` lists the fields and
// methods of View, `go doc github.com/kith-io/kith/cluster.View` explains them. These packages are entity (types,
// handlers and their contexts), cluster (views, members), membership (events), peer (addresses), route (fences,
// delivery reasons and errors), sbr (decisions of the split brain resolver), shutdown and stats. Packages sbr/leasetest
// and fd/fdtest test a lease and a failure detector of one's own, sim tests entities in a simulated cluster, latency
// keeps histograms.
package kith

import (
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/shutdown"
)

// What an embedder declares and implements for a kind of entity (package entity).
type (
	// EntityType declares a kind of entity. It is a struct; of its fields Name and New are enough to begin with:
	//
	//	Name, Shards, Role, ShardBy             must be the same on all nodes
	//	New, Open, Typed                        make the handler of an entity: set one of the three
	//	Mode                                    how the handler is called: Blocking, Worker or Inline
	//	MailboxBytes, MaxState, StateStored                  bounds of one entity
	//	StopMessage                             what it gets as its last message before Stop
	//	IdleAfter, MaxActive                    when an entity is stopped though its shard stays
	//	Restart, RestartBackoff,
	//	MaxRestarts, RestartWindow              what becomes of an entity after its handler panicked
	//	SlowAfter                               which calls are reported as slow
	//	Strategy                                which node gets a shard
	//	Remembered                              entities that live without a message
	//	Hosted                                  a goroutine for each shard, as long as it lives on this node
	//	Around                                  functions around each message, where it is sent and where it is handled
	//	Validate, WithDefaults, ShardOf         methods: all faults joined; with its defaults; the shard of an id
	//
	// What each says: go doc github.com/kith-io/kith/entity.Type
	EntityType = entity.Type
	// Opener makes the handlers of EntityType.Typed and Singleton.Typed; Methods returns one.
	Opener = entity.Opener
	// Handler is one entity: user code that gets one call at a time. It is an interface of two methods:
	//
	//	Receive(c *Context, payload []byte) error    handles one message
	//	Stop(c *Context)                             the last call, before the entity goes
	//
	// What they may do: go doc github.com/kith-io/kith/entity.Handler
	Handler = entity.Handler
	// Stateful is a Handler with a state that moves with its entity from node to node, as long as neither node dies.
	Stateful = entity.Stateful
	// Context is what a handler has besides its payload. It is valid until the call returns.
	//
	//	ID, Fence, Shard                        fields: the entity, the ownership under which it lives, its shard
	//	Type                                    the name of its type
	//	Asked, Reply, Detach                    whether somebody waits for an answer; answer now, or later
	//	Headers                                 what came beside the payload
	//	Tell, Ask, With, SetHeaders             messages to other entities; With: one with headers, SetHeaders: all
	//	After, SetTimer, CancelTimer,
	//	CancelTimers, Timer, Now                messages to itself, later; the time
	//	Watch, Unwatch, Ended                   hear that another entity has ended
	//	Passivate, StopReason                   let this instance go; why it stops
	//	Context, Suspended                      when the handler should end
	//
	// What each does: go doc github.com/kith-io/kith/entity.Context
	Context = entity.Context
	// ReplyToken answers an ask after Receive has returned.
	ReplyToken = entity.ReplyToken
	// Mode is how the handlers of a type are executed.
	Mode = entity.Mode
	// Restart is what becomes of an entity after its handler panicked.
	Restart = entity.Restart
	// StopReason is why Handler.Stop is called (Context.StopReason).
	StopReason = entity.StopReason
	// Ended says that an entity has ended that this one watches (Context.Watch, Context.Ended). Fields:
	//
	//	Type, ID                                which entity
	//	Fence, Instance                         which instance of it, where that is known
	//	Cause, Home                             why; where its shard goes
	Ended = entity.Ended
	// EndCause is why a watched entity has ended, or why its end will not be reported.
	EndCause = entity.EndCause
	// Around is called around each message of a type: Send where it is sent, Receive where it is handled
	// (EntityType.Around).
	Around = entity.Around
	// Sending is a message that is about to be sent, as Around.Send sees it.
	Sending = entity.Sending
	// ShardBy maps entities to shards in the place of the hash of their ids (EntityType.ShardBy).
	ShardBy = entity.ShardBy
	// ShardStrategy decides which node gets a shard and which shards move for balance (EntityType.Strategy); package
	// shard/strategy says how to write one, and package shard/strategytest holds the suite that it has to pass.
	ShardStrategy = strategy.Strategy
	// LeastShards gives every node as many shards: the default.
	LeastShards = strategy.LeastShards
	// LoadAware gives every node as much load, as measured where the shards run.
	LoadAware = strategy.LoadAware
	// ConsistentHash gives each shard the home that follows from its number and from the nodes that host the type.
	ConsistentHash = strategy.ConsistentHash
	// External leaves shards where they were moved by hand, or moves them to the addresses that were set; make one with
	// strategy.NewExternal.
	External = strategy.External
	// Incident is something that operators want to know about a handler: a panic, a slow call (Config.Incident).
	// Fields:
	//
	//	Kind, Type, ID, Shard, Mode, Fence      what happened, to which entity
	//	Took, Running                           how long a call takes, and whether it still runs
	//	Text, Err                               the panic with its stack, or the error
	//	Dropped, Answered                       what waited for an entity that was given up
	//	Missed                                  how many of this kind were counted only
	//	String                                  a method: all of it in a line
	//
	// What each says: go doc github.com/kith-io/kith/entity.Incident
	Incident = entity.Incident
	// IncidentKind says what an Incident is about.
	IncidentKind = entity.IncidentKind
)

// The execution modes of a Type. Only Blocking handlers may block: a Worker handler that blocks (in Region.Ask,
// TellWait, a lock, a system call) holds up every entity of its worker, an Inline handler every connection of its event
// loop.
const (
	Blocking = entity.Blocking // on a goroutine that exists while the entity has messages
	Worker   = entity.Worker   // on the worker that owns the shard
	Inline   = entity.Inline   // on the event loop that read the message, or the goroutine here that waits for its answer
)

// What becomes of an entity after its handler panicked (EntityType.Restart).
const (
	RestartFresh  = entity.RestartFresh  // the next message makes a new instance
	RestartResume = entity.RestartResume // the instance is kept and goes on with the next message
	RestartStop   = entity.RestartStop   // what waits for it is dropped and reported; then as RestartFresh
)

// Why Handler.Stop is called (Context.StopReason). A node that ends without a leave calls no Stop.
const (
	NotStopping    = entity.NotStopping    // Stop is not being called
	StopPassivated = entity.StopPassivated // the handler called Context.Passivate
	StopIdle       = entity.StopIdle       // it had no message for EntityType.IdleAfter
	StopEvicted    = entity.StopEvicted    // it was idle, and the node holds more than EntityType.MaxActive
	StopMoved      = entity.StopMoved      // another node is to host the shard
	StopLeaving    = entity.StopLeaving    // the node leaves the cluster
)

// Why a watched entity has ended (Ended.Cause). docs/watches.md says when each is reported.
const (
	EndedPassivated = entity.EndedPassivated // it let itself go, was idle, or was evicted
	EndedPanicked   = entity.EndedPanicked   // a panic ended the instance
	EndedMoved      = entity.EndedMoved      // its shard goes to another node
	EndedLeft       = entity.EndedLeft       // its node leaves
	EndedLost       = entity.EndedLost       // its node is lost, and may run on until the takeover time is over
	EndedNone       = entity.EndedNone       // no instance lived when the watch came
	EndedFull       = entity.EndedFull       // the watch was not taken: too many watch it, or its node
	EndedOld        = entity.EndedOld        // the watch was not taken: its node's build knows of none
)

// The kinds of Incident.
const (
	Panicked = entity.Panicked // New, Open, Receive or Stop panicked
	Slow     = entity.Slow     // a call took longer than EntityType.SlowAfter
	Overrun  = entity.Overrun  // a Blocking call did not return when the node suspended itself
	GaveUp   = entity.GaveUp   // a panic stopped the entity: under RestartStop, or as one more than EntityType.MaxRestarts
	Stalled  = entity.Stalled  // a worker or event loop stands still for a second
	Silent   = entity.Silent   // what is sent on a connection to another node is not acknowledged

	NewFailed = entity.NewFailed // EntityType.Open returned an error, or no handler came of it or of New

	DaemonFailed = entity.DaemonFailed // a daemon returned an error
	StateLost    = entity.StateLost    // what a Stateful handler was to hand over reaches no next instance: Incident.Err
	RecallFailed = entity.RecallFailed // EntityType.Remembered failed, or named no id of the shard
	StopHangs    = entity.StopHangs    // Stop or HandOver has not returned by its deadline: Incident.Text says which
)

// What names nodes, ownerships and delivery failures (packages peer and route).
type (
	// Addr is a host and a port.
	Addr = peer.Addr
	// ID names one incarnation of a node: its address and a number drawn when it started.
	ID = peer.ID
	// Fence is sixteen bytes that only grow from owner to owner of a shard. A store that keeps the highest one with
	// each record refuses late owners. database/sql takes and gives it as it is. Methods:
	//
	//	Compare, IsZero                         in the order of owners
	//	Birth, Term, Epoch                      its three parts
	//	String, MarshalText, UnmarshalText      as 32 hexadecimal digits, in the same order
	//	Value, Scan                             as a column of a database
	//
	// What each does: go doc github.com/kith-io/kith/route.Fence
	Fence = route.Fence
	// ShardID numbers a shard of a type.
	ShardID = route.ShardID
	// Reason is why a message was not delivered, or an ask not answered.
	Reason = route.Reason
	// Codec turns a message of type M into bytes and back.
	Codec[M any] = route.Codec[M]
)

// NoShard stands for the shard of messages that are counted together: of several shards, or nobody knows which.
const NoShard = route.NoShard

// ParseAddr reads host:port: an IP address (IPv6 in brackets) or a name, and a port that is not zero. Each host has one
// form, so equal addresses compare equal.
func ParseAddr(s string) (Addr, error) { return peer.ParseAddr(s) }

// ParseFence reads a fence from its 32 hexadecimal digits, or from birth.term.epoch.
func ParseFence(s string) (Fence, error) { return route.ParseFence(s) }

// What membership shows (package membership).
type (
	// View is an immutable snapshot of membership (Node.View, Node.Events).
	//
	//	Members, Unreachable, Leader            fields: the members, those that are not heard, the leader
	//	Self, SelfMember                        this node, by itself and as a member
	//	Member, Reachable, CountUp              about one member; how many are Up
	//	Oldest, RoleLeader                      the oldest member, or the leader, of a role
	//	Accusations, Quarantined,
	//	QuarantinedBy                           which member does not hear which
	//	Metadata, MetadataValue                 the application's own keys
	//	Partitions                              paths, how many instances each has, and where they are
	//	Converged, Hash, Seq                    whether all have seen this state; its digest; its number here
	//	ClusterID, Birth                        which cluster
	//
	// What each says: go doc github.com/kith-io/kith/cluster.View
	View = cluster.View
	// Member is one member of a View.
	Member = cluster.Member
	// Status is where a member stands in its life.
	Status = cluster.Status
	// Metadata is one key and its value of the small map that the cluster's state carries.
	Metadata = cluster.Metadata
	// Patience is a preset of Config.Patience.
	Patience = cluster.Patience
	// Cause says why a member was marked Down.
	Cause = cluster.Cause
	// Convergence says whether a node can prove that all members have seen its state, and if not, why.
	Convergence = membership.Convergence
	// Suspicion is how a node judges the silence of one peer (Node.Suspicions).
	Suspicion = fd.Suspicion
	// KnownVersion is what a node knows of the version that a member has (Node.Versions).
	KnownVersion = membership.KnownVersion
	// Blocker is a member that holds up convergence.
	Blocker = membership.Blocker
	// Setting is one value on which all members must agree (MembershipConfig.Settings).
	Setting = membership.Setting
	// Duplicate is another cluster of this one's name.
	Duplicate = membership.Duplicate
	// RoleMinimum is how many members of a role must be there before joining members are let in.
	RoleMinimum = membership.RoleMinimum
	// Waiting says what a node waits for before it is Up: in NotReadyError, Health and the event NotUpYet.
	Waiting = membership.Waiting
	// WaitKind is what it waits for.
	WaitKind = membership.WaitKind
	// NodeState is where a node stands between its start and its end (Node.Health).
	NodeState = membership.NodeState
	// EndKind is why a node's membership is over.
	EndKind = membership.EndKind
)

// CompareVersions orders two application versions (Member.AppVersion), negative when a is the older one.
func CompareVersions(a, b string) int { return cluster.CompareVersions(a, b) }

// The states of a member.
const (
	Joining = cluster.Joining // admitted by some member, not yet confirmed by the leader
	Up      = cluster.Up      // confirmed by the leader: it hosts entities
	Leaving = cluster.Leaving // asked to leave
	Exiting = cluster.Exiting // all know that it leaves
	Down    = cluster.Down    // marked as gone, by an operator, a resolver or a new incarnation at its address
	Removed = cluster.Removed // out of the cluster for good; only in events

	WeaklyUp             = cluster.WeaklyUp             // let in without convergence: it counts nowhere, hosts nothing
	PreparingForShutdown = cluster.PreparingForShutdown // was Up when the full shutdown was ordered
	ReadyForShutdown     = cluster.ReadyForShutdown     // all know that it prepares
)

// What a node that is not Up yet may wait for (Waiting.For).
const (
	WaitNothing     = membership.WaitNothing     // it is Up, on its way out, or over
	WaitSeeds       = membership.WaitSeeds       // no seed has answered
	WaitSettings    = membership.WaitSettings    // a seed refuses this node: a setting that must agree differs
	WaitCertificate = membership.WaitCertificate // a certificate is not believed, here or there
	WaitCluster     = membership.WaitCluster     // the nodes that answer are in no cluster, and this one forms none
	WaitAdmission   = membership.WaitAdmission   // a member was asked to admit this node
	WaitMembers     = membership.WaitMembers     // more members are to come (MembershipConfig.MinMembers, MinRoleMembers)
	WaitConvergence = membership.WaitConvergence // the leader lets nobody in before all have seen one state
	WaitLeader      = membership.WaitLeader      // the leader has not let this node in yet
	WaitTypes       = membership.WaitTypes       // it is Up; coordinators have not acknowledged its types yet
	// WaitRefusedTypes: it is Up; the cluster has types with other settings than those registered here.
	WaitRefusedTypes = membership.WaitRefusedTypes
)

// The states of a node (Health.State). Only one that is ready handles messages.
const (
	StateStarting  = membership.StateStarting  // it looks for a cluster, or has asked to be admitted
	StateWaiting   = membership.StateWaiting   // it is a member, and has not been let in yet
	StateReady     = membership.StateReady     // it is Up
	StateSuspended = membership.StateSuspended // it handles no message until others have confirmed it
	StateLeaving   = membership.StateLeaving   // it leaves, or its coordinated shutdown runs
	StateEnded     = membership.StateEnded     // it is over
)

// The causes of a Down (Member.Cause).
const (
	CauseNone       = cluster.CauseNone       // not Down
	CauseOperator   = cluster.CauseOperator   // somebody said that it is gone (Node.Down)
	CauseReplaced   = cluster.CauseReplaced   // a new incarnation was admitted at its address
	CauseResolver   = cluster.CauseResolver   // the resolver found it on the losing side of a partition
	CauseUnstable   = cluster.CauseUnstable   // the resolver downed everybody: the cluster did not become stable
	CauseLease      = cluster.CauseLease      // the resolver could not get or keep the lease
	CauseProvenDead = cluster.CauseProvenDead // a new one at its address got its lock, or its session was ended
)

// The ways a membership ends (EndedError.Kind).
const (
	EndLeft        = membership.EndLeft        // left gracefully and was removed
	EndDowned      = membership.EndDowned      // this incarnation was marked Down
	EndRemoved     = membership.EndRemoved     // learnt that this incarnation was removed
	EndJoinRefused = membership.EndJoinRefused // a member refused the join for good
	EndJoinTimeout = membership.EndJoinTimeout // not admitted within Config.JoinTimeout
	EndIsolated    = membership.EndIsolated    // heard no member for half of TombstoneRetention, or none is left
	EndRejoin      = membership.EndRejoin      // left its cluster of one to join another (Node.JoinCluster)
	EndDuplicate   = membership.EndDuplicate   // yields to an older cluster of this name: EndedError.Seeds
	EndClosed      = shutdown.EndClosed        // Close was called
)
