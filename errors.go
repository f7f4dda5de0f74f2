// Errors: what a caller may match, as values and as types that name a bound or a node.

package kith

import (
	"errors"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/quorum/disk"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shutdown"
)

// One error for each reason why a message is not delivered, or an ask not answered; match with errors.Is. What is
// returned wraps them, mostly with the peer, the bound or the id.
var (
	ErrNotOwner      = route.ErrNotOwner      // the receiver does not own the shard any more
	ErrNotRegistered = route.ErrNotRegistered // the receiver has not registered the type
	ErrMailboxFull   = route.ErrMailboxFull   // the entity's mailbox is full (EntityType.MailboxBytes)
	ErrHandler       = route.ErrHandler       // Receive returned an error; its text is wrapped; see Error
	ErrHandlerNamed  = route.ErrHandlerNamed  // that error has an identity; matches ErrHandler too
	ErrPanic         = route.ErrPanic         // Receive panicked
	ErrTimeout       = route.ErrTimeout       // no answer in time
	ErrPeerLost      = route.ErrPeerLost      // the connection or the node was lost before an answer came
	ErrLinkFull      = route.ErrLinkFull      // too much waits to be sent to the owner
	ErrParkFull      = route.ErrParkFull      // too much waits for the home of the shard to become known
	ErrStopped       = route.ErrStopped       // this node is stopping or has stopped
	ErrTooLarge      = route.ErrTooLarge      // the payload is over a limit
	ErrBadShard      = route.ErrBadShard      // ShardBy gave a shard that the type does not have, or panicked
	ErrBadID         = route.ErrBadID         // the entity id is empty, longer than 1,024 bytes, or a daemon's
	ErrNoReply       = route.ErrNoReply       // Receive returned without a reply or a ReplyToken
	ErrBadPayload    = route.ErrBadPayload    // a codec refused the payload
	ErrShardStopping = route.ErrShardStopping // the shard is being stopped at its owner
	ErrAsksFull      = route.ErrAsksFull      // too many asks are under way (Config.MaxAsks)
	ErrCrashed       = route.ErrCrashed       // a panic ended the entity, or its lease is lost: not made again yet
	ErrSuspended     = route.ErrSuspended     // the node is cut off and has suspended itself
	ErrBudgetFull    = route.ErrBudgetFull    // the node's mailboxes are full together; matches ErrMailboxFull too
	ErrTableFull     = route.ErrTableFull     // the shard holds as many entities as it may; matches ErrMailboxFull too
	ErrQueueFull     = route.ErrQueueFull     // too much waits for one worker or loop; matches ErrMailboxFull too
	ErrExpired       = route.ErrExpired       // the ask's time was over before it was handled; matches ErrTimeout too
	ErrNewFailed     = route.ErrNewFailed     // EntityType.New or Open made no handler: nothing was handled
	ErrNoHost        = route.ErrNoHost        // no member of the cluster hosts the type
	ErrAbandoned     = route.ErrAbandoned     // it waited on a node that ended, or lost the shard; matches ErrStopped
	ErrLostInFlight  = route.ErrLostInFlight  // lost on the way or with its owner, handled or not; matches ErrPeerLost
)

// MayHaveRun reports whether a handler may have been called for a message, by the error that a form of sending
// returned: false means that none was and none will be, so that the message can be sent again without being handled
// twice. It is true for nil and for every error that it knows nothing of. docs/errors.md says it of each error. An
// error must not be joined to that of another message; wrapping it is fine.
func MayHaveRun(err error) bool {
	return route.MayHaveRun(err) && !errors.Is(err, ErrWouldBlock) && !errors.Is(err, ErrSettingsDiffer)
}

// Error is an error with an identity that reaches an asker on another node. Declare it once, where both sides see it:
//
//	var ErrClosed = kith.NewError("account-closed", kith.KindConflict, "the account is closed")
//
// The handler returns it, or an error that wraps it; at the asker errors.Is(err, ErrClosed) holds, and errors.As gives
// an *Error with the code, the kind and the text of what was returned. To a node of a wire version before 9 only the
// text goes.
//
// A handler that returns the error of an ask of its own hands that on too: its asker matches it, and MayHaveRun says of
// it what it said to the handler.
type Error = route.Error

// ErrorKind says what an asker can do about an Error, whatever its code.
type ErrorKind = route.ErrorKind

// The kinds of an Error.
const (
	KindUnknown     = route.KindUnknown     // nothing is said
	KindInvalid     = route.KindInvalid     // the message is wrong, and stays wrong
	KindNotFound    = route.KindNotFound    // what it is about does not exist
	KindConflict    = route.KindConflict    // the entity's state forbids it
	KindDenied      = route.KindDenied      // the asker may not
	KindUnavailable = route.KindUnavailable // not now: later it may do
	KindExhausted   = route.KindExhausted   // a bound is reached
	KindInternal    = route.KindInternal    // a fault of the handler
)

// NewError returns an Error. The code has 1 to 64 bytes of text and stands for the error in the whole cluster, so it
// does not change; one that breaks this is cut.
func NewError(code string, kind ErrorKind, text string) *Error {
	return route.NewError(code, kind, text)
}

// Errors that a Context returns beside those of delivery.
var (
	ErrWouldBlock = entity.ErrWouldBlock // the call would block a handler that must not, or the entity would ask itself
	ErrNoAsk      = entity.ErrNoAsk      // a message that is no ask is replied to
	ErrReplied    = entity.ErrReplied    // the ask is answered already
	ErrNextTwice  = entity.ErrNextTwice  // the next of an Around.Receive is called again
	ErrTimersFull = entity.ErrTimersFull // the entity has as many timers running as it may

	ErrWatchesFull = entity.ErrWatchesFull // the entity, or its node, has as many watches as it may

	// the cause of a handler context's end when the asker gave up: the asker's own context ended early
	ErrAskCancelled = route.ErrAskCancelled

	// a Context was used after its call, or on another goroutine than the call's
	ErrContextKept = entity.ErrContextKept
)

// Why the state of a Stateful handler reaches no next instance: Incident.Err of a StateLost.
var (
	ErrStateTooLarge   = entity.ErrStateTooLarge   // more than EntityType.MaxState
	ErrHandOverFull    = entity.ErrHandOverFull    // no room for it in what its shard hands over
	ErrHandOverFailed  = entity.ErrHandOverFailed  // HandOver returned an error, or panicked
	ErrStateRefused    = entity.ErrStateRefused    // TakeUp returned an error or panicked, or there is none
	ErrStateNotSpoken  = entity.ErrStateNotSpoken  // the next owner speaks a wire version without states
	ErrStateLeftBehind = entity.ErrStateLeftBehind // its shard was lost, or went on without it
	ErrStateNotMoved   = entity.ErrStateNotMoved   // its shard was stopped: no other member could be given it in time
)

// ErrStatesLost is matched by the LostStatesError of a Leave or Shutdown.
var ErrStatesLost = entity.ErrStatesLost

// ErrDisksNeeded is matched by the NeededDisksError of a Leave, Shutdown or Drain.
var ErrDisksNeeded = disk.ErrNeeded

// Errors of Register, Start and JoinCluster.
var (
	ErrBadConfig       = driver.ErrBadConfig           // wrapped by faults of Config, Singleton, Daemons
	ErrRecord          = driver.ErrRecord              // wrapped by errors of Start about Config.Directory
	ErrJoined          = membership.ErrJoined          // UseSeeds on a node that is in a cluster
	ErrSeedsOverridden = membership.ErrSeedsOverridden // UseSeeds on a node after JoinCluster replaced its seeds
	ErrNotAlone        = membership.ErrNotAlone        // JoinCluster on a node in a cluster with other members
	ErrJoinPending     = membership.ErrJoinPending     // JoinCluster on a node that has asked a cluster to admit it
	ErrTypeExists      = shard.ErrTypeExists           // a type of that name is registered on this node
	ErrTooManyTypes    = shard.ErrTooManyTypes         // as many types are registered as may be
	ErrHashCollision   = shard.ErrHashCollision        // the names of two types have one hash: name one of them anew
	ErrSettingsDiffer  = shard.ErrSettingsDiffer       // others have the type with other settings; methods of a Region too
)

// Errors of commands to a node: Down, SetMetadata, PrepareForFullShutdown, Refound, Drain.
var (
	ErrNotMember      = membership.ErrNotMember     // this node is no member yet, or no more
	ErrUnknownMember  = membership.ErrUnknownMember // Down of an address at which no member is
	ErrNobodyUp       = membership.ErrNobodyUp      // PrepareForFullShutdown while no member is Up
	ErrNoRefound      = membership.ErrNoRefound     // Refound without a tenure, or while a quorum of the seats is held
	ErrNobodyTakes    = shard.ErrNobodyTakes        // Drain where no other member could take the shards
	ErrDrainCancelled = driver.ErrDrainCancelled    // Drain that Undrain took back
	ErrLeaving        = shard.ErrLeaving            // Drain or Undrain of a node that leaves
	ErrBadMetadata    = membership.ErrBadMetadata   // a key or a value out of bounds
	ErrMetadataFull   = cluster.ErrMetadataFull     // as many keys are known as may be
)

// Errors of Region.Move and SetHomes, and of the event MoveUntaken.
var (
	ErrNotCoordinator = shard.ErrNotCoordinator // the node that was asked does not coordinate the type, or is not ready to
	ErrNoHome         = shard.ErrNoHome         // the shard lives nowhere, or its home is not settled
	ErrMoveInProgress = shard.ErrMoveInProgress // it moves already
	ErrUnknownNode    = shard.ErrUnknownNode    // there is no such member
	ErrAtHome         = shard.ErrAtHome         // it lives there
	ErrIneligible     = shard.ErrIneligible     // that member may not be given shards, for the reason in the text
	ErrTooManyMoves   = shard.ErrTooManyMoves   // as many moves are under way as may be
	ErrUnstable       = shard.ErrUnstable       // a member is down, unreachable or in a full shutdown
	ErrOldPeer        = shard.ErrOldPeer        // a member speaks a wire version without moves
	ErrUnknownShard   = shard.ErrUnknownShard   // the type has no such shard
	ErrNotTaken       = shard.ErrNotTaken       // what is left of a shard stays, and the shard with it; the text says why
	ErrNotExternal    = shard.ErrNotExternal    // the type does not go by External
)

// Typed errors (packages route and shutdown); match with errors.As. Each matches its plain error with errors.Is too.
type (
	// EndedError tells why a node ended.
	EndedError = shutdown.EndedError
	// NotReadyError tells what a node waits for that was not Up when the context of Ready ended: settings that differ,
	// with both values, seeds that do not answer, certificates, more members and others. It matches the context's error.
	NotReadyError = membership.NotReadyError
	// DrainError says how many shards still live on a node when the context of its Drain has ended. It matches the
	// context's error.
	DrainError = shard.DrainError
	// Undelivered reports messages of Tell that were accepted here and not delivered (Config.Undelivered). Fields, and
	// one method:
	//
	//	Count, Samples                          how many since the last report of this kind; ids of at most four
	//	Type, Shard                             of which entities
	//	Reason, Err                             why: a number, and the error that matches it
	//	Peer, Limit                             which node refused them or was lost; the bound that was reached there
	//
	// What each says: go doc github.com/kith-io/kith/route.Undelivered
	Undelivered = route.Undelivered
	// LinkFullError names the peer and the bound of what waits for it; it matches ErrLinkFull.
	LinkFullError = route.LinkFullError
	// LinkBudgetError names the peer and Config.LinkBudget; it matches ErrLinkFull.
	LinkBudgetError = route.LinkBudgetError
	// ParkFullError names the bound of what waits for the home of a shard; it matches ErrParkFull.
	ParkFullError = route.ParkFullError
	// RefusedError names the node that refused a message, this one or another, and the bound that it met; it matches the
	// error of its reason: ErrMailboxFull and those that refine it, ErrTooLarge, ErrSuspended, ErrLinkFull.
	RefusedError = route.RefusedError
	// AbandonedError is what Leave, Shutdown and Close return when the node ended with messages that it had accepted and
	// nobody will handle: so many tells and asks of each type. It matches ErrAbandoned.
	AbandonedError = route.AbandonedError
	// AbandonedType counts those of one type.
	AbandonedType = route.AbandonedType
	// LostStatesError is what Leave and Shutdown return when states of entities reach no next instance: so many of each
	// type. It matches ErrStatesLost.
	LostStatesError = entity.LostStatesError
	// LostStates counts those of one type.
	LostStates = entity.LostStates
	// NeededDisksError is what Leave, Shutdown and Drain return when disks of this node, of stores of package quorum, are
	// needed still by others: so many of each store. It matches ErrDisksNeeded.
	NeededDisksError = disk.NeededError
	// PeerError names the node at which a message or an ask failed for a reason that comes from no bound; it matches the
	// error of that reason: ErrPeerLost, ErrTimeout and others.
	PeerError = route.PeerError
	// BulkFullError names the bound of large messages that wait, and the peer if it is one of a single peer; it matches
	// ErrLinkFull.
	BulkFullError = route.BulkFullError
	// HeadersError says that a message was given more headers than may be; it matches ErrTooLarge.
	HeadersError = route.HeadersError
	// UnansweredError names the entity that has not answered an ask in time, or is on a lost node, and says when it is
	// served again; it wraps the error of the reason.
	UnansweredError = route.UnansweredError
	// AsksFullError names the bound of asks under way; it matches ErrAsksFull.
	AsksFullError = route.AsksFullError
)
