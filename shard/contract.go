// The shapes that others see of the sharding machine: settings, commands that go in, effects that come out.

// Package shard is the machine of sharding on one node: for every type a region, which knows where shards live, and on
// the oldest member of the type's role the coordinator, which decides it. Owners hold the truth: see coordinator.go.
// It is pure: see the five verbs in ARCHITECTURE.md.
//
// It is no part of what embedders may rely on, but for the types that package kith and its like lead to: the rest may
// change in any version (docs/compatibility.md).
package shard

import (
	"cmp"
	"time"

	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// Settings is what all nodes must agree on about a type.
type Settings struct {
	Name    string
	Shards  uint32
	Role    string
	ShardBy string // name of the function that maps an id to its shard; empty: the hash of the id does
}

// ID returns the type's hash.
func (s Settings) ID() route.TypeID { return route.TypeOf(s.Name) }

// Command is an input from the node itself: one of ViewCommand, RegisterCommand, WantCommand, StoppedCommand,
// EagerCommand, RefusedCommand, LeaveCommand, DrainCommand, SuspendCommand, LapseCommand, DeathCommand, MoveCommand,
// AskMoveCommand, ReadyCommand, LingerCommand, WishesCommand, LoadsCommand, MarkedCommand, MarkAgainCommand,
// HandOverCommand, EndCommand.
type Command interface{ command() }

// ViewCommand brings a new membership snapshot. The composition sends it whenever membership published one. It says of
// the members in Dead what a DeathCommand does; they may be in this view or have gone in the same step. Lost are those
// that were removed before, without proof of their end: with Config.ProofOnly a node without an up-number remembers
// them as losses, since no time frees what they owned, though it never had them in a view.
type ViewCommand struct {
	View *membership.View
	Dead []peer.ID
	Lost []peer.ID
}

// RegisterCommand makes a type known on this node: it hosts shards when this member has the type's role, and routes in
// any case. One that was refused may be registered again. Errors: ErrTypeExists, ErrHashCollision, ErrSettingsDiffer.
type RegisterCommand struct {
	Settings Settings
	// Strategy decides which region gets a shard, and what moves for balance, while this node coordinates the type; nil is
	// strategy.LeastShards. It is asked under guard (strategy.Check) and belongs to the machine. Nodes may differ in it.
	Strategy strategy.Strategy
}

// PauseKey is the key of the cluster's metadata that pauses rebalancing of all types while it has a value.
const PauseKey = "kith.rebalancing-paused"

// WantCommand asks for the homes of shards without a known route here. Repeating it is harmless.
type WantCommand struct {
	Type   route.TypeID
	Shards []route.ShardID
}

// EagerCommand asks for the homes of all shards of a type from now on, again whenever one is unknown here, though
// nobody sends: each gets a home as soon as a member may host it.
type EagerCommand struct{ Type route.TypeID }

// StoppedCommand says that no handler of a shard runs here any more, as a HostOrder asked.
type StoppedCommand struct {
	Type  route.TypeID
	Shard route.ShardID
	Fence route.Fence
}

// RefusedCommand says that a receiver refused an envelope sent under this fence as not its owner: if the route still
// stands under it, it is forgotten and asked for again.
type RefusedCommand struct {
	Type  route.TypeID
	Shard route.ShardID
	Term  uint32
	Epoch uint32
}

// LeaveCommand gives back everything hosted here: no new shards come, each moves to another member, and stays and is
// served while it cannot. Effects.Drained tells when nothing is left and each member that may coordinate has heard so,
// or had Config.RetryMax to. Repeating it does nothing, but with Now.
type LeaveCommand struct {
	// Within is how long what lives here may wait for its move. Then it is stopped, and what its entities would have
	// handed over is lost. Zero: Config.DrainPatience.
	Within time.Duration
	Now    bool // that time is over
}

// DrainCommand has everything move away from this node, which stays a member and is given no shards until it is taken
// back (On false). Draining tells when nothing is left. Repeating it changes nothing. Nothing changes either when it
// returns an error: ErrNobodyTakes, or ErrLeaving.
type DrainCommand struct{ On bool }

// LingerCommand says of a type whether its shards stay, and are served, when this node drains: by them something comes
// here that has to go first. On is said once, and holds for all drains that begin behind it. With On false those of the
// drain under way go; they go by themselves when it is Config.DrainPatience old, and when the node leaves. Meanwhile it
// is given no others. Errors: ErrUnknownType.
type LingerCommand struct {
	Type route.TypeID
	On   bool
}

// SuspendCommand says that this node has suspended itself, or (On false) goes on. While it is suspended nothing new
// starts here, nothing is allocated, and other members are asked whether this node still owns what lives here, until
// Effects.Confirmed. Repeating it with On starts the question anew.
type SuspendCommand struct{ On bool }

// LapseCommand says that this node handles nothing for want of a session lease or a tenure, or (On false) has one
// again. Meanwhile it begins no moves for balance: its own shards do not stop, and the others may stand still like it.
type LapseCommand struct{ On bool }

// DeathCommand says that the process of ID is gone for certain: whatever it owned is free at once, as after a leave
// notice, without the takeover time, and it no longer coordinates anything, whatever the view says of it. The caller
// vouches for that.
type DeathCommand struct{ ID peer.ID }

// Number is that of a move: the term of the coordinator that began it, and which of its moves it is. Zero is none.
type Number struct{ Term, Seq uint32 }

// Compare orders numbers as the moves began.
func (n Number) Compare(o Number) int {
	return cmp.Or(cmp.Compare(n.Term, o.Term), cmp.Compare(n.Seq, o.Seq))
}

// MoveCommand moves a shard to another member, given to the coordinator of its type. What it loses is nothing: see
// docs/sharding.md. It returns when the move has begun. Errors: ErrNotCoordinator, ErrUnknownType, ErrBadCommand,
// ErrNoHome, ErrMoveInProgress, ErrUnknownNode, ErrAtHome, ErrIneligible, ErrTooManyMoves, ErrUnstable, ErrOldPeer.
type MoveCommand struct {
	Type  route.TypeID
	Shard route.ShardID
	To    peer.ID
}

// AskMoveCommand moves a shard to another member, given to any node that has registered the type: its coordinator is
// asked. Effects.Answers tells what came of it, if no error was returned: when the move has begun, or why it has not.
// Errors, either way: those of MoveCommand, and ErrUnknownShard. Nonce names the answer, and is not zero. At most
// Config.MaxMoves of a type wait for theirs.
type AskMoveCommand struct {
	Type  route.TypeID
	Shard route.ShardID
	To    peer.ID
	Nonce uint64
}

// MoveAnswer is what came of an AskMoveCommand: the move has begun, or why not.
type MoveAnswer struct {
	Type  route.TypeID
	Nonce uint64
	Err   error
}

// ReadyCommand says whether this node may be given shards of a type, as its application declares; it may until a
// command says otherwise. What lives here stays. Errors: ErrUnknownType.
type ReadyCommand struct {
	Type  route.TypeID
	Ready bool
}

// WishesCommand updates the wishes of a type that goes by strategy.External on this node. Errors: ErrUnknownType,
// ErrNotExternal, those of External.Update.
type WishesCommand struct {
	Type    route.TypeID
	Version uint64
	Wishes  []strategy.Wish
}

// LoadsCommand tells what was read of the shards of a type that live here, as Effects.Measure asked. The readings
// belong to the machine. Errors: ErrUnknownType.
type LoadsCommand struct {
	Type     route.TypeID
	Readings []strategy.Reading
	Node     strategy.NodeLoad
}

// MarkedCommand says that the marker of a move has come from a member, and that all has been worked into mailboxes that
// came before it on its connection.
type MarkedCommand struct {
	Type   route.TypeID
	Shard  route.ShardID
	Number Number
	From   peer.ID
}

// MarkAgainCommand says that a data connection to a member broke: markers that were written to it may be lost.
type MarkAgainCommand struct{ To peer.ID }

// HandOverCommand is the StoppedCommand of a shard that moves, with what was not worked off and states of its entities,
// in whatever form the runtime of the next owner reads it. Left belongs to the machine from here on.
type HandOverCommand struct {
	StoppedCommand
	Left   []byte
	States bool // some are in Left
}

// EndCommand says that this node ends: what waits here for shards to come, and what was not handed over of those that
// leave, is Effects.Untaken. The machine takes no command afterwards.
type EndCommand struct{}

func (EndCommand) command()       {}
func (ViewCommand) command()      {}
func (MoveCommand) command()      {}
func (AskMoveCommand) command()   {}
func (ReadyCommand) command()     {}
func (LingerCommand) command()    {}
func (WishesCommand) command()    {}
func (LoadsCommand) command()     {}
func (MarkedCommand) command()    {}
func (MarkAgainCommand) command() {}
func (RegisterCommand) command()  {}
func (WantCommand) command()      {}
func (EagerCommand) command()     {}
func (StoppedCommand) command()   {}
func (RefusedCommand) command()   {}
func (LeaveCommand) command()     {}
func (DrainCommand) command()     {}
func (DeathCommand) command()     {}
func (SuspendCommand) command()   {}
func (LapseCommand) command()     {}

// RouteState is what a region knows of a shard's home.
type RouteState uint8

// The states of a route.
const (
	RouteUnknown RouteState = 0 // park, and ask for the home
	RouteLocal   RouteState = 1 // lives here under Fence
	RouteRemote  RouteState = 2 // lives at Home under Fence
	RouteMoving  RouteState = 3 // leaves Home, where it lives under Fence: park
)

var routeNames = []string{RouteUnknown: "unknown", RouteLocal: "local", RouteRemote: "remote",
	RouteMoving: "moving"}

// String names the state.
func (s RouteState) String() string { return enum.Name(routeNames, s, "route") }

// MarshalText gives the name.
func (s RouteState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (s *RouteState) UnmarshalText(text []byte) error { return enum.Parse(s, text) }

// RouteChange informs the data plane that a shard's route is now this.
type RouteChange struct {
	Type  route.TypeID
	Shard route.ShardID
	State RouteState
	Home  peer.ID
	Fence route.Fence
	Next  peer.ID // with RouteMoving: the target of the move; what was sent under Fence may be answered from there
}

// HostOrder orders the runtime to make a shard live here under Fence, or (Stop) to stop its entities and answer with
// StoppedCommand. Abandon, with Stop, means that the shard is lost already (this node was downed, or others own it): no
// handler is called any more. It is answered too, when the handlers that were running have returned.
type HostOrder struct {
	Type    route.TypeID
	Shard   route.ShardID
	Fence   route.Fence
	Stop    bool
	Abandon bool
	Leaving bool // with Stop: because this node leaves; else another node is to host the shard; what its entities would
	// have handed over is lost by name unless Moves is set

	// Moves, with Stop: nobody sends to the shard under this fence any more. Its mailboxes are worked off first, within
	// Within, which is Config.DrainTime, and the answer is a HandOverCommand if something is left then.
	Moves  bool
	Within time.Duration
	// Room, with Moves, bounds what is handed over, in bytes, states of entities included: what does not fit beside the
	// messages is lost, by name. Zero: the next owner knows nothing of states.
	Room int
	// Left, without Stop, is what the last owner handed over, as it was given there; it comes before everything else. It
	// belongs to the runtime.
	Left []byte
}

// Mark asks for the marker of a move on the data connection that a shard uses to a member, behind everything that was
// sent there. Its route was closed before.
type Mark struct {
	Type   route.TypeID
	Shard  route.ShardID
	Number Number
	To     peer.ID
}

// Untaken is what an owner handed over to this node, or this node to none, and what no instance will handle any more:
// another owner began without it, or this node may not own the shard any more. Unsure: the other one of the two owners
// may have it all the same, nobody knows. Left belongs to the runtime.
type Untaken struct {
	Type   route.TypeID
	Shard  route.ShardID
	Left   []byte
	Unsure bool
}

// Effects is what one or more verbs ask the runtime to do. The runtime carries out Hosts, then Routes, then Marks, each
// in order, and only then sends Mail: a ShardsStarted in Mail speaks of shards that Hosts has started. Slices and
// bodies are valid until the next verb.
type Effects struct {
	Hosts   []HostOrder
	Routes  []RouteChange
	Marks   []Mark
	Untaken []Untaken
	Mail    []peer.Mail
	Refused []TypeRefused  // registrations that the coordinator refused
	Answers []MoveAnswer   // to AskMoveCommands, in any order
	Measure []route.TypeID // a LoadsCommand is wanted: their strategies read loads
	Drained bool           // LeaveCommand is done; set once
	// Confirmed: others have confirmed that this suspended node owns what lives here; once for each SuspendCommand.
	Confirmed bool
	Vacuous   bool // nobody has: there is nobody left, or all others are Down
	Member    bool // members have said that it is one of them; what lives here may be open still
	Events    []Event
}

// TypeRefused says that a type cannot be used on this node: another node registered it with other settings.
type TypeRefused struct {
	Type route.TypeID
	Err  error
}

// EventKind says what happened in sharding.
type EventKind uint8

// The kinds of sharding event.
const (
	CoordinatorStarted EventKind = 1 // this node collects reports for Type under Term
	CoordinatorReady   EventKind = 2 // all reports are in: it allocates
	CoordinatorStopped EventKind = 3 // another node coordinates now
	ShardAllocated     EventKind = 4 // Shard was given to Home under Fence
	ShardReleased      EventKind = 5 // Shard has no home
	StaleRefused       EventKind = 6 // an order or report of a lower term or fence was refused
	ShardsWait         EventKind = 7 // Shards of Home, which was lost, or whatever it had, live nowhere before Until

	// Of moves: by the coordinator, but MoveMarked, MoveHandedOver and MoveUntaken, which its owner tells. Home is the
	// owner that Shard leaves, To the one that it is to get, Number that of the move.
	MoveBegan      EventKind = 8
	MoveMarked     EventKind = 9  // nobody sends to the owner any more: it works off what it has, and stops
	MoveHandedOver EventKind = 10 // To has what was not worked off
	MoveDone       EventKind = 11 // it lives at To
	MoveAborted    EventKind = 12 // it stays at Home: a sender did not mark in time

	// StrategyFault: the type's strategy failed, panicked or answered what cannot be, Shards times since the last such
	// event, and Err says what the last one was. Shards got their homes by LeastShards then; of a round nothing moved.
	StrategyFault EventKind = 13

	// Of moves, too. MoveUntaken: the rest of Shard is not taken by To: it comes back to Home; Err says why. MoveReturned:
	// it lives at Home again, under the next fence: nobody took what was left, or To could not be given it.
	MoveUntaken  EventKind = 14
	MoveReturned EventKind = 15
)

var eventNames = []string{CoordinatorStarted: "coordinator-started", CoordinatorReady: "coordinator-ready",
	CoordinatorStopped: "coordinator-stopped", ShardAllocated: "shard-allocated", ShardReleased: "shard-released",
	StaleRefused: "stale-refused", ShardsWait: "shards-wait", MoveBegan: "move-began", MoveMarked: "move-marked",
	MoveHandedOver: "move-handed-over", MoveDone: "move-done", MoveAborted: "move-aborted",
	StrategyFault: "strategy-fault", MoveUntaken: "move-untaken", MoveReturned: "move-returned"}

// String names the kind.
func (k EventKind) String() string { return enum.Name(eventNames, k, "event") }

// MarshalText gives the name.
func (k EventKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (k *EventKind) UnmarshalText(text []byte) error { return enum.Parse(k, text) }

// Event is one fact about sharding, for logs, checkers and people.
type Event struct {
	Kind  EventKind
	Type  route.TypeID
	Shard route.ShardID
	Term  uint32
	Home  peer.ID
	Fence route.Fence

	// Of ShardsWait: how many shards the lost member has, zero when this coordinator term has not heard that from it, so
	// that no shard without a home gets one before; and when its takeover time is over, on this node's clock. It must have
	// been removed by then, too.
	Shards int
	Until  time.Duration

	// Of moves.
	To     peer.ID
	Number Number

	Err error // of StrategyFault: a *strategy.FaultError; of MoveUntaken: it matches ErrNotTaken
}

// MoveCounters are the moves of shards between members that live, as this node leads them where it coordinates a type.
// A move that outlives its coordinator is counted as begun by it, and not as done by the next one.
type MoveCounters struct {
	Begun   uint64
	Done    uint64 // the shard lives at its next owner
	Aborted uint64 // given up, and the shard stayed: a sender did not mark in time
	// Returned: the shard had stopped, and lives at the owner that it was to leave: nobody took what was left of it.
	Returned uint64
	// How long the phases of the done ones took: from the begin until the owner had stopped (senders have marked,
	// mailboxes are worked off, entities have stopped), and from then until the next owner had begun. Those of returned
	// ones would say nothing about either: the way to the next owner and back is no phase of a move that comes about.
	Held, Started Took
}

// Took is how long something took that came to pass Count times.
type Took struct {
	Count    uint64
	Sum, Max time.Duration
}

// add counts one.
func (t *Took) add(d time.Duration) {
	t.Count++
	t.Sum += d
	t.Max = max(t.Max, d)
}

// Mean returns how long it took on average; zero when it never came to pass.
func (t Took) Mean() time.Duration { return t.Sum / time.Duration(max(t.Count, 1)) }
