// What a simulated cluster is made of.

package setup

import (
	"cmp"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// Config is what a simulated cluster is made of. The zero value of a field takes its default.
type Config struct {
	Network    Network
	Patience   cluster.Patience // sets what is zero in Membership and Resolver
	Membership membership.Config
	Shard      shard.Config
	Data       DataConfig
	// NoLockProof has nobody prove the last process at its address dead, as kith.Sharding's.
	NoLockProof bool
	// ProcessDeathIsProof is node.Config's.
	ProcessDeathIsProof bool
	// SessionTTL is how long the session lease of a process lasts, zero: there are none. SessionEnds is how long the store
	// keeps that one was ended, at least ten times as long.
	SessionTTL, SessionEnds time.Duration
	// TenureVoters is how many seats the electorate of tenures has, 3, 5 or 7; zero: no process has a tenure, or all have
	// sessions. TenureGrant is how long their grants count. Clocks may differ by a thousandth then. TenureRefound is how
	// it is known that lost holders have ended when a quorum of the seats is lost for good.
	TenureVoters  int
	TenureGrant   time.Duration
	TenureRefound cluster.Refound
	Roles         [][]string    // by node index; a node beyond the list has no roles
	Drift         int64         // millionths by which a process's clock runs fast or slow at most; 0 to 100,000
	Resolver      node.Resolver // the zero value is keep-majority, on
	Courier       node.CourierConfig
	FlightBytes   int // bound of each node's flight record; 0: none
	// Records makes every host keep what its process remembers of its cluster, for the next one there: no second cluster
	// is formed then. Without it a first seed that is restarted while it is cut off forms one.
	Records bool
	Text    bool // keep a trace that people can read
	// LeaveTimeout is how long a node gives its shards before it leaves without their confirmation; default 30 s.
	LeaveTimeout time.Duration
}

// RolesOf returns the roles of a host's processes.
func (c *Config) RolesOf(host int) []string {
	if host < len(c.Roles) {
		return c.Roles[host]
	}
	return nil
}

// Network says how good the simulated network is. The zero value of a field takes its default.
type Network struct {
	Delay  time.Duration // one way, at least; default 500 us
	Jitter time.Duration // added at random, up to this; default 1 ms
	// Loss is the chance from 0 to 1 that a packet is lost. A lost packet comes after a retransmission delay (200 ms,
	// doubling), and holds up what is behind it, as TCP does.
	Loss float64
	// Rate is how many bytes a second go from one host to another, over all connections, which share one queue. 0: as
	// many as there are.
	Rate int
	// Break is how long a connection bears silence of the network before it breaks; default 10 s.
	Break time.Duration
	// Raw lets the mail of the machines travel without connections: lost, duplicated and reordered for good.
	Raw RawNetwork
}

// RawNetwork is a network without TCP's repairs, for the mail of the machines (not for credit and user messages, which
// never travel without a connection). The zero value is off.
type RawNetwork struct {
	Loss, Duplicate float64       // chances from 0 to 1
	Spread          time.Duration // extra delay at random, up to this: reorders
}

// On reports whether anything is wrong with it.
func (r RawNetwork) On() bool { return r != RawNetwork{} }

// WithDefaults returns the network with the defaults of what is zero.
func (n Network) WithDefaults() Network {
	if n.Delay == 0 {
		n.Delay = 500 * time.Microsecond
	}
	if n.Jitter == 0 {
		n.Jitter = time.Millisecond
	}
	if n.Break == 0 {
		n.Break = 10 * time.Second
	}
	return n
}

// DataConfig bounds the data plane of every node. The zero value of a field takes the default of its room.
type DataConfig struct {
	ParkRecords   int           // messages parked for one shard
	ParkBytes     int           // bytes parked for one shard
	ParkTotal     int           // bytes parked on a node; default 64 MiB
	ParkWait      time.Duration // longest time parked
	LinkBuffer    int           // bytes that wait for one peer
	Window        int           // bytes on their way to one peer and not consumed
	Connections   int           // data connections to one peer, each with bounds of its own; default 1
	OldCredit     bool          // credit travels on control connections, as nodes of wire version 1 send it
	MailboxBudget int           // bytes in the mailboxes of a node; default 64 MiB
	// MaxPayload is the longest payload that goes in one frame; a longer one is a large message. Default: what fits.
	MaxPayload int
	// AskTogether has homes asked for that are wanted at one moment in one command, as a node does that is busy; else each
	// is asked for by itself.
	AskTogether bool
	BulkRoom    int           // bytes of others' large messages held by a node; default 64 MiB
	BulkChunk   int           // bytes of a large message in one frame; four of them may be on their way
	BulkStall   time.Duration // a large message for which nothing moves for so long is given up
	MaxAsks     int           // asks under way on a node; default 65,536
	Keep        int           // bytes that a suspended node keeps of what others send; default plane.KeepMost
	// LocalBuffer is how many bytes of a node's own wait for one worker or for its loop. Default: eight link buffers.
	LocalBuffer int
	WorkDelay   time.Duration // a worker, or the loop for what comes from its node, begins within this
}

// WithDefaults returns the bounds with the defaults of what is zero, but for those that a room takes by itself.
func (d DataConfig) WithDefaults() DataConfig {
	if d.ParkTotal == 0 {
		d.ParkTotal = 64 << 20
	}
	if d.Connections == 0 {
		d.Connections = 1
	}
	if d.MaxAsks == 0 {
		d.MaxAsks = 1 << 16
	}
	if d.Keep == 0 {
		d.Keep = plane.KeepMost
	}
	if d.LocalBuffer == 0 {
		d.LocalBuffer = 8 * cmp.Or(d.LinkBuffer, flow.DefaultLinkBuffer)
	}
	if d.MailboxBudget == 0 {
		d.MailboxBudget = 64 << 20
	}
	if d.MaxPayload == 0 {
		d.MaxPayload = wire.DefaultMaxFrame - wire.EnvelopeSize - wire.MaxIDSize
	}
	if d.BulkRoom == 0 {
		d.BulkRoom = 64 << 20
	}
	return d
}
