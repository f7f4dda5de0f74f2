// Config: the timing and bounds of the sharding machine, and the errors its commands return.

package shard

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Defaults of Config.
const (
	DefaultRetryInterval = 250 * time.Millisecond
	DefaultRetryMax      = 2 * time.Second
	DefaultTakeoverTime  = 20 * time.Second
	DefaultBatchDelay    = 2 * time.Millisecond
	DefaultDrainPatience = 5 * time.Second
	DefaultMaxTypes      = 4096
	DefaultMarkTime      = 3 * time.Second
	DefaultDrainTime     = 2 * time.Second
	DefaultMaxMoves      = 64
	// DefaultRebalanceInterval is how often the balance is looked at while it is even.
	DefaultRebalanceInterval = 10 * time.Second
	// MaxMaxMoves is the highest MaxMoves: as many shards go into one message.
	MaxMaxMoves        = maxEntries
	DefaultMaxHandOver = 16 << 20
)

// MaxMaxHandOver is the largest Config.MaxHandOver.
const MaxMaxHandOver = maxTransfer

// Config is the configuration of a Machine. The zero value means the defaults. TakeoverTime and what TakeoverFor
// returns must be the same on all nodes: it is how long a cut-off owner may still believe that it owns.
type Config struct {
	RetryInterval time.Duration // first repetition of unanswered mail; it doubles up to RetryMax
	RetryMax      time.Duration // longest pause between repetitions
	TakeoverTime  time.Duration // a lost owner's shards are given away no earlier than this after it was seen lost
	// TakeoverFor, when it is set, is used instead of TakeoverTime: it returns the takeover time for that many members, at
	// least one. It must not fall when the number grows.
	TakeoverFor func(members int) time.Duration
	// ProofOnly has the shards of a lost owner wait for proof of its end (DeathCommand, a leave notice), however long that
	// takes: no time frees them. It must be the same on all nodes.
	ProofOnly  bool
	BatchDelay time.Duration // homes wanted within this time of the last question go into one mail
	// DrainPatience is how long a leaver's shards wait for a member that has not registered the type yet, or has an
	// unknown version. It is how long they wait in all where LeaveCommand.Within is zero.
	DrainPatience time.Duration
	// UnderWay, when it is set, reports whether mail that was sent to a peer at since or earlier has not arrived yet.
	// The machine does not repeat what is under way: the courier does that. lost means that the courier had no room for
	// something that was sent at since or later.
	UnderWay func(to peer.ID, since time.Duration) (is, lost bool)
	// Late, when it is set, reports whether a member that this node watches is late with a sign of life: then this node's
	// word does not wake a suspended node.
	Late      func() bool
	MarkTime  time.Duration // a move is given up when a sender has not marked by then
	DrainTime time.Duration // how long the mailboxes of a shard that moves are worked off; the rest is handed over
	MaxMoves  int           // of one type, under way at once
	// RebalanceInterval is how often the balance is looked at while it is even, and the longest pause between rounds while
	// it is not: shards move from regions with many to regions with few, by the limits of strategy.LeastShards for each
	// round, while moves may begin. Negative: never.
	RebalanceInterval time.Duration
	// MaxHandOver bounds, in bytes, what one shard hands over, and four times as much what waits here for shards to come.
	// What is larger stays, and the shard with it.
	MaxHandOver int
	// Moves reports whether a peer is known to understand moves; nil: none is. While one member does not, none begins.
	Moves func(peer.ID) bool
	// NoStates reports whether a peer is known to know nothing of states of entities; nil: none is. None is handed over to
	// such a peer. With a peer of unknown version it is tried.
	NoStates func(peer.ID) bool
	// Costs reports whether a peer is known to understand what a move cost (wire.KindMoveCost), and that a transfer may
	// have to wait for room; nil: none is.
	Costs func(peer.ID) bool
	// Strains reports whether a peer is known to understand loads with what waits in mailboxes, and with the load of a
	// node (wire.KindShardStrains); nil: none is.
	Strains func(peer.ID) bool
	// MaxTypes bounds the types that this node keeps a promise for, registered here or not: every member is asked about
	// every type of the cluster, so it is the cluster's bound, and Register returns ErrTooManyTypes above it.
	MaxTypes int
}

// Errors that commands return; match with errors.Is.
var (
	ErrTypeExists     = errors.New("shard: type registered already")
	ErrHashCollision  = errors.New("shard: another type's name has the same hash")
	ErrSettingsDiffer = errors.New("shard: settings differ from those of the cluster")
	ErrBadSettings    = errors.New("shard: bad settings")
	ErrUnknownType    = errors.New("shard: type not registered")
	ErrTooManyTypes   = errors.New("shard: too many types")
	ErrBadCommand     = errors.New("shard: unknown command")

	// Of DrainCommand.
	ErrNobodyTakes = errors.New("shard: no other member could take the shards")
	ErrLeaving     = errors.New("shard: this node leaves, or has ended")

	// Of MoveCommand and AskMoveCommand.
	ErrNotCoordinator = errors.New("shard: this node does not coordinate the type, or is not ready to")
	ErrNoHome         = errors.New("shard: it lives nowhere, or its home is not settled")
	ErrMoveInProgress = errors.New("shard: it moves already")
	ErrUnknownNode    = errors.New("shard: no such member")
	ErrAtHome         = errors.New("shard: it lives there")
	ErrIneligible     = errors.New("shard: this member may not be given shards")
	ErrTooManyMoves   = errors.New("shard: too many moves under way")
	ErrUnstable       = errors.New("shard: a member is down, unreachable or in a full shutdown, or this node suspended")
	ErrOldPeer        = errors.New("shard: a member speaks a version without moves")
	ErrUnknownShard   = errors.New("shard: the type has no such shard") // of AskMoveCommand

	ErrNotTaken    = errors.New("shard: the next owner does not take what is left") // of MoveUntaken
	ErrNotExternal = errors.New("shard: the type's strategy takes no wishes")       // of WishesCommand
)

// Validate returns all faults of c joined, or nil. Zero fields are valid.
func (c Config) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"RetryInterval", c.RetryInterval}, {"RetryMax", c.RetryMax}, {"TakeoverTime", c.TakeoverTime},
		{"BatchDelay", c.BatchDelay}, {"DrainPatience", c.DrainPatience}, {"MarkTime", c.MarkTime},
		{"DrainTime", c.DrainTime}} {
		if f.d < 0 {
			errs = append(errs, fmt.Errorf("shard: %s is negative: %v", f.name, f.d))
		}
	}
	if full := c.withDefaults(); full.RetryMax < full.RetryInterval {
		errs = append(errs, fmt.Errorf("shard: RetryMax %v is below RetryInterval %v", full.RetryMax, full.RetryInterval))
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"MaxTypes", c.MaxTypes}, {"MaxMoves", c.MaxMoves}, {"MaxHandOver", c.MaxHandOver}} {
		if f.n < 0 {
			errs = append(errs, fmt.Errorf("shard: %s is negative: %d", f.name, f.n))
		}
	}
	if c.MaxMoves > MaxMaxMoves {
		errs = append(errs, fmt.Errorf("shard: MaxMoves is %d, must be at most %d", c.MaxMoves, MaxMaxMoves))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.RetryInterval, DefaultRetryInterval)
	set(&c.RetryMax, max(DefaultRetryMax, c.RetryInterval))
	set(&c.TakeoverTime, DefaultTakeoverTime)
	set(&c.BatchDelay, DefaultBatchDelay)
	set(&c.DrainPatience, DefaultDrainPatience)
	set(&c.MarkTime, DefaultMarkTime)
	set(&c.DrainTime, DefaultDrainTime)
	set(&c.RebalanceInterval, DefaultRebalanceInterval)
	number := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	number(&c.MaxTypes, DefaultMaxTypes)
	number(&c.MaxMoves, DefaultMaxMoves)
	number(&c.MaxHandOver, DefaultMaxHandOver)
	c.MaxHandOver = min(c.MaxHandOver, maxTransfer)
	return c
}

// Validate returns ErrBadSettings with the reason, or nil: a name of 1 to route.MaxTypeName bytes, 1 to
// route.MaxShards shards, a role and the name of a shard function of at most MaxRole bytes together, none of them zero.
func (s Settings) Validate() error {
	switch {
	case s.Name == "" || len(s.Name) > route.MaxTypeName:
		return fmt.Errorf("%w: name of %d bytes, must be 1 to %d", ErrBadSettings, len(s.Name), route.MaxTypeName)
	case s.Shards == 0 || s.Shards > route.MaxShards:
		return fmt.Errorf("%w: %d shards of %q, must be 1 to %d", ErrBadSettings, s.Shards, s.Name, route.MaxShards)
	case len(s.Role) > MaxRole:
		return fmt.Errorf("%w: role of %d bytes, must be at most %d", ErrBadSettings, len(s.Role), MaxRole)
	case len(s.place()) > MaxRole:
		return fmt.Errorf("%w: role and name of the shard function of %d bytes together, must be at most %d",
			ErrBadSettings, len(s.Role)+len(s.ShardBy), MaxRole-1)
	case strings.IndexByte(s.Role, 0) >= 0 || strings.IndexByte(s.ShardBy, 0) >= 0:
		return fmt.Errorf("%w: a zero byte in role %q or shard function %q", ErrBadSettings, s.Role, s.ShardBy)
	}
	return nil
}

// MaxRole is the longest role name, in bytes.
const MaxRole = 255

// place is the role as messages carry it: behind it, after a zero byte, stands the name of the shard function, if there
// is one. To a build that knows of none it is the role of no member: so it refuses the type as one with another role,
// and neither registers it as its own nor coordinates it.
func (s Settings) place() string {
	if s.ShardBy == "" {
		return s.Role
	}
	return s.Role + "\x00" + s.ShardBy
}

// NoHost reports whether no member of a view may host a type of that role: this node is up, and of all members that are
// not Down none has the role, joining ones included. One that joins later may. Before a node is up it knows too little
// to say so.
func NoHost(v *membership.View, role string) bool {
	if role == "" || v == nil {
		return false
	}
	self, ok := v.SelfMember()
	if !ok || self.UpNumber == 0 || !self.Status.Counts() {
		return false
	}
	for i := range v.Members {
		if m := &v.Members[i]; m.Status != membership.Down && m.HasRole(role) {
			return false
		}
	}
	return true
}

// Times of rounds.
const (
	// settleTime is how long nobody else has come when those that are there are enough; it is RebalanceInterval where
	// that is shorter.
	settleTime = time.Second
	// settleMost is how many such times it waits at most for members that come.
	settleMost = 5
	// failPause is how long nothing moves behind a round in which a move came to nothing: twice as long each time when
	// none of a round came about, up to RebalanceInterval.
	failPause = time.Second
)

// settles returns how long this node waits for members that come together.
func (c *Config) settles() time.Duration {
	if every := c.RebalanceInterval; every > 0 {
		return min(settleTime, every)
	}
	return settleTime
}
