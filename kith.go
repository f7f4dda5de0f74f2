// Package doc and the names that the root package shares with the rooms below it.

// Package kith embeds a node of a cluster: gossip membership, failure detection, and sharded entities with exactly one
// owner each.
//
//	node, err := kith.Start(ctx, kith.Config{Name: "market", Listen: "127.0.0.1:7355", Seeds: seeds})
//	books, err := node.Register(kith.Type{Name: "book", New: newBook})
//	err = node.Ready(ctx)
//	err = books.Tell("EURUSD", payload)
//	reply, err := books.Ask(ctx, "EURUSD", payload)
//
// Membership alone (View, Events) costs nothing of the rest. Messages are delivered at most once and in order from one
// region to one entity; each failure that the sender's side can see is a typed error, each that only the receiver sees
// is reported to Config.Undelivered (tells) or returned (asks).
//
// Many names here stand for types of the packages below; their fields and methods are documented there: go doc
// github.com/kith-io/kith/entity.Type (also Handler, Context, Incident), driver.Stats, membership.View.
package kith

import (
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/driver"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shutdown"
)

// What an embedder declares and implements for a kind of entity (package entity).
type (
	// Type declares a kind of entity.
	Type = entity.Type
	// Handler is one entity: user code that gets one call at a time.
	Handler = entity.Handler
	// Context is what a handler has besides its payload. It is valid until the call returns.
	Context = entity.Context
	// ReplyToken answers an ask after Receive has returned.
	ReplyToken = entity.ReplyToken
	// Mode is how the handlers of a type are executed.
	Mode = entity.Mode
	// Restart is what becomes of an entity whose handler panicked.
	Restart = entity.Restart
	// Incident is something that operators want to know about a handler: a panic, a slow call.
	Incident = entity.Incident
)

// The execution modes and restart policies of a Type, and the kinds of Incident. Only Blocking handlers may block: a
// Worker handler that blocks (in Region.Ask, TellWait, a lock, a system call) holds up every entity of its worker, an
// Inline handler every connection of its event loop.
const (
	Blocking      = entity.Blocking
	Worker        = entity.Worker
	Inline        = entity.Inline
	RestartFresh  = entity.RestartFresh
	RestartResume = entity.RestartResume
	RestartStop   = entity.RestartStop
	Panicked      = entity.Panicked
	Slow          = entity.Slow
	Overrun       = entity.Overrun
	GaveUp        = entity.GaveUp
	Stalled       = entity.Stalled
	Silent        = entity.Silent
)

// What names nodes, ownerships and delivery failures (packages peer and route).
type (
	// Addr is a host and a port.
	Addr = peer.Addr
	// ID names one incarnation of a node: its address and a number drawn when it started.
	ID = peer.ID
	// Fence is sixteen bytes that only grow from owner to owner of a shard.
	Fence = route.Fence
	// ShardID numbers a shard of a type.
	ShardID = route.ShardID
	// Reason is why a message was not delivered, or an ask not answered.
	Reason = route.Reason
	// Codec turns a message of type M into bytes and back.
	Codec[M any] = route.Codec[M]
)

// ParseAddr reads host:port: an IP address (IPv6 in brackets) or a name, and a port that is not zero. Each host has one
// form, so equal addresses compare equal.
func ParseAddr(s string) (Addr, error) { return peer.ParseAddr(s) }

// What membership shows (package membership).
type (
	// View is an immutable snapshot of membership.
	View = membership.View
	// Member is one member of a View.
	Member = membership.Member
	// Status is where a member stands in its life.
	Status = membership.Status
	// Metadata is one key and its value of the small map that the cluster's state carries.
	Metadata = membership.Metadata
	// Cause says why a member was marked Down.
	Cause = membership.Cause
	// Convergence says whether a node can prove that all members have seen its state, and if not, why.
	Convergence = membership.Convergence
	// KnownVersion is what a node knows of the version that a member has (Node.Versions).
	KnownVersion = membership.KnownVersion
	// Blocker is a member without whom there is no convergence.
	Blocker = membership.Blocker
	// Setting is one value on which all members must agree (Tuning.Settings).
	Setting = membership.Setting
	// Twin is another cluster of this one's name.
	Twin = membership.Twin
	// RoleMinimum is how many members of a role must be there before joining members are let in.
	RoleMinimum = membership.RoleMinimum
	// EndKind is why a node's membership is over.
	EndKind = membership.EndKind
)

// The states of a member.
const (
	Joining = membership.Joining
	Up      = membership.Up
	Leaving = membership.Leaving
	Exiting = membership.Exiting
	Down    = membership.Down
	Removed = membership.Removed

	WeaklyUp             = membership.WeaklyUp
	PreparingForShutdown = membership.PreparingForShutdown
	ReadyForShutdown     = membership.ReadyForShutdown
)

// The causes of a Down (Member.Cause).
const (
	CauseNone       = membership.CauseNone
	CauseOperator   = membership.CauseOperator
	CauseReplaced   = membership.CauseReplaced
	CauseResolver   = membership.CauseResolver
	CauseUnstable   = membership.CauseUnstable
	CauseLease      = membership.CauseLease
	CauseQuarantine = membership.CauseQuarantine
)

// CompareVersions orders two application versions (Member.AppVersion), negative when a is the older one.
func CompareVersions(a, b string) int { return cluster.CompareVersions(a, b) }

// The ways a membership ends.
const (
	EndLeft        = membership.EndLeft
	EndDowned      = membership.EndDowned
	EndRemoved     = membership.EndRemoved
	EndJoinRefused = membership.EndJoinRefused
	EndJoinTimeout = membership.EndJoinTimeout
	EndIsolated    = membership.EndIsolated
	EndRejoin      = membership.EndRejoin
	EndTwin        = membership.EndTwin
	EndClosed      = shutdown.EndClosed
)

// What the driver shows (package driver).
type (
	// EndedError tells why a node ended.
	EndedError = shutdown.EndedError
	// Undelivered reports messages that were accepted here and refused by their receiver, or that waited too long.
	Undelivered = route.Undelivered
	// LinkFullError names the peer and the bound of what waits for it; it matches ErrLinkFull.
	LinkFullError = route.LinkFullError
	// LinkBudgetError names the peer and Config.LinkBudget; it matches ErrLinkFull.
	LinkBudgetError = route.LinkBudgetError
	// ParkFullError names the bound of what waits for the home of a shard; it matches ErrParkFull.
	ParkFullError = route.ParkFullError
	// RefusedError names the node whose bound a message met, this one or another, and the bound; it matches the error of
	// its reason: ErrMailboxFull and those that refine it, ErrTooLarge, ErrSuspended, ErrLinkFull.
	RefusedError = route.RefusedError
	// PeerError names the node at which a message or an ask failed for a reason that comes from no bound; it matches the
	// error of that reason: ErrPeerLost, ErrTimeout and others.
	PeerError = route.PeerError
	// BulkFullError names the bound of large messages that wait, and the peer if it is one of a single peer; it matches
	// ErrLinkFull.
	BulkFullError = route.BulkFullError
	// AsksFullError names the bound of asks under way; it matches ErrAsksFull.
	AsksFullError = route.AsksFullError
)

// One error per delivery reason; match with errors.Is.
var (
	ErrNotOwner      = route.ErrNotOwner
	ErrNotRegistered = route.ErrNotRegistered
	ErrMailboxFull   = route.ErrMailboxFull
	ErrHandler       = route.ErrHandler
	ErrPanic         = route.ErrPanic
	ErrTimeout       = route.ErrTimeout
	ErrPeerLost      = route.ErrPeerLost
	ErrLinkFull      = route.ErrLinkFull
	ErrParkFull      = route.ErrParkFull
	ErrStopped       = route.ErrStopped
	ErrTooLarge      = route.ErrTooLarge
	ErrBadID         = route.ErrBadID
	ErrNoReply       = route.ErrNoReply
	ErrBadPayload    = route.ErrBadPayload
	ErrShardStopping = route.ErrShardStopping
	ErrAsksFull      = route.ErrAsksFull
	ErrCrashed       = route.ErrCrashed
	ErrSuspended     = route.ErrSuspended
	ErrBudgetFull    = route.ErrBudgetFull // matches ErrMailboxFull too, as do the next two
	ErrTableFull     = route.ErrTableFull
	ErrQueueFull     = route.ErrQueueFull
)

// Errors that a Context returns beside those of delivery.
var (
	ErrWouldBlock = entity.ErrWouldBlock
	ErrNoAsk      = entity.ErrNoAsk
	ErrReplied    = entity.ErrReplied
	ErrTimersFull = entity.ErrTimersFull
)

// Errors of Register, Start and JoinCluster. ErrSettingsDiffer is what the methods of a Region return when other nodes
// have its type with other settings.
var (
	ErrNotAlone       = membership.ErrNotAlone
	ErrTypeExists     = driver.ErrTypeExists
	ErrSettingsDiffer = shard.ErrSettingsDiffer
	ErrTooManyTypes   = shard.ErrTooManyTypes
	// ErrRecord is wrapped by errors of Start about Config.Directory.
	ErrRecord = driver.ErrRecord

	ErrBadConfig = driver.ErrBadConfig
)
