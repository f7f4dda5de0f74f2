// Config: everything that can be set about a node, with defaults and one Validate that returns all faults.

package kith

import (
	"log/slog"
	"time"

	"github.com/kith-io/kith/internal/runtime/driver"
)

// Config is the configuration of a node. The zero value is a cluster of one on a free loopback port. What must be equal
// on all nodes is listed in the documentation of the package (go doc kith).
type Config struct {
	// Name is the name of the cluster, 1 to 64 bytes: nodes of another name are refused. Empty means "kith".
	Name string
	// Listen is the address to listen on; empty means "127.0.0.1:0", a free loopback port.
	Listen string
	// Advertise is the address under which others reach this node; empty means the address it listens on. It is needed
	// when Listen names no single host (0.0.0.0, ::) or a port is forwarded.
	Advertise string
	// TLS protects all connections by mutual TLS 1.3 (docs/security.md). It is needed when Listen is not loopback, and
	// must be configured on all nodes or none. Zero means none.
	TLS TLS
	// Insecure allows a listen address that is not loopback without TLS: connections are neither encrypted nor
	// authenticated then, so anybody that reaches the port can be a member. It is logged at each start.
	Insecure bool
	// Seeds are the contact points, host:port, in one order on all nodes. The first of them forms the cluster when no
	// other answers and nobody remembers one. Empty, or only this node: a cluster of one.
	Seeds []string
	// AwaitSeeds makes the node wait for Node.UseSeeds: until then it joins only members that its Directory remembers, and
	// forms no cluster. Package bootstrap sets it.
	AwaitSeeds bool
	// Directory is where this node keeps what outlives its process: a record of the members of its cluster, so that its
	// next process forms no second cluster while they may live, and all find each other again when all have died
	// (docs/membership.md). It is made when it is not there; each node needs one of its own. Empty: none is kept, and a
	// first seed that is restarted while it is cut off forms a second cluster.
	Directory string
	// FlightRecord keeps the last inputs of this node's control plane, so that what it saw and decided can be replayed;
	// its zero value holds the defaults.
	FlightRecord FlightRecord
	// NeverForm makes this node join a cluster, never form one. It needs Seeds.
	NeverForm bool
	// FormNew is an operator's word, for one start, that no cluster lives any more: this node forms one when it finds none
	// within Membership.SeedTimeout, first seed or not, and whatever records say.
	FormNew bool
	// Roles are names that types and programs select members by. One of the form "zone:NAME" says where this node runs (a
	// rack, an availability zone): each member is watched from its own zone and from another one. At most 32 of 128 bytes.
	Roles []string
	// AppVersion is the version of your application that this node runs, shown to all members; empty: none given.
	// CompareVersions orders them. At most 64 bytes and three numbers.
	AppVersion string
	// Logger takes typed records. It is called from one goroutine, in the order of the records, and nobody waits for it:
	// 4,096 records wait for one that is slow, more are dropped, counted (Stats.LogDropped) and reported in a record once
	// it goes on. The end of a node waits for it, a second at most. Nil: slog.Default, as it is when the node starts, gets
	// losses while Undelivered is nil, and incidents while Incident is nil, and nothing else is logged; a logger with
	// slog.DiscardHandler is silent.
	Logger *slog.Logger

	// Patience is a preset of how soon a lost member is given up, and of the stalls that a healthy one may have for it. It
	// sets fields of Membership and of Resolver that are zero (docs/failover.md); zero means PatienceNormal: these fields
	// name its values as their defaults. It must be the same on all nodes.
	Patience Patience
	// Membership paces gossip, failure detection and joining; its zero value holds the defaults.
	Membership MembershipConfig
	// Resolver decides which side of a broken cluster lives. Its zero value is keep-majority with all defaults: when
	// members are lost, the larger side downs them, and the smaller side stops and ends. It must be the same on all nodes.
	Resolver Resolver
	// Sharding says how long shards and messages wait for owners, and when shards move; its zero value holds the defaults.
	Sharding Sharding
	// Lease is the lock outside of the cluster that the strategy LeaseMajority asks for; only it needs one.
	Lease Lease
	// MinBirth is the least birth of a cluster that this node forms. A restored deployment gives it when the births that
	// its fences carry must be exceeded.
	MinBirth uint64
	// JoinTimeout ends the node when it was not admitted in time; zero means never. 40 s is a good value under an
	// orchestrator that restarts it.
	JoinTimeout time.Duration
	// LeaveTimeout is how long a leave may take until it leaves anyway; zero means 30 s. What is hosted moves to other
	// members, and is served while it cannot; what cannot by the last sixth of this time, 5 s at most, is stopped.
	LeaveTimeout time.Duration
	// Phases adds phases to the coordinated shutdown, or changes default ones of the same name; see docs/shutdown.md.
	Phases []Phase

	// MaxPayload is the longest payload in bytes that goes in one piece: 1 KiB to 128 MiB; zero means 1 MiB.
	MaxPayload int
	// MaxMessage is the longest payload of a large message in bytes: one over MaxPayload goes in chunks over a connection
	// of its own. From MaxPayload to 1 GiB; zero means 64 MiB. Nodes may differ: a receiver refuses what is over its own.
	MaxMessage int
	// BulkBudget bounds the bytes of large messages that this node holds: those of others until their handlers are done
	// with them, and as much again of copies of its own until they are sent. Zero means 256 MiB; at least MaxMessage. One
	// other node gets half of it at most, less where several want some.
	BulkBudget int
	// LinkBuffer bounds what waits for one data connection in bytes, beside what is on the way; zero means 512 KiB, at
	// least 64 KiB. One message above 16 KiB may go beyond it. Eight times as much may wait, of what this node sends to
	// entities of its own, for one worker or event loop.
	LinkBuffer int
	// LinkBudget bounds the memory of the buffers of all data connections together, in bytes; zero means 256 MiB. It must
	// be four times what one of them may need. Over it a Tell fails with an error that matches ErrLinkFull and names the
	// budget; a quarter of it is kept for the small buffers of connections that carry little.
	LinkBudget int
	// PartialBudget bounds what this node holds of frames of others that have not come whole, in bytes, beside 64 KiB for
	// each connection; zero means 256 MiB, at least 32 MiB and four of the largest frames. One node has half of it. A
	// connection for which there is no room is closed, and so is one with a frame that takes too long; see
	// docs/security.md.
	PartialBudget int
	// Window bounds what is on the way to one peer and not consumed yet, in bytes; zero means 1 MiB, at least 64 KiB. It
	// must be the same on all nodes: one with a smaller Window refuses the connections of this one.
	Window int
	// MailboxBudget bounds what waits in the mailboxes of all Blocking entities of this node, in bytes; zero means
	// 256 MiB. Messages of TellWait that are under way when it is used up are taken beyond it (docs/execution.md).
	MailboxBudget int
	// DataLoops is how many event loops carry messages; zero means half of GOMAXPROCS, at least one.
	DataLoops int
	// DataConnections is how many data connections this node dials per other node; zero means 1, at most 16. A message's
	// connection is chosen by its shard. Each has a Window and a LinkBuffer of its own. Nodes may differ in it.
	DataConnections int
	// PollFor makes an event loop that has just had work look for more for so long before it sleeps: asks one after the
	// other take a fraction of the time when every node has a core to spare, and CPU is burnt for it. A loop that has
	// polled in vain, as on a shared core, polls ever less, down to once in 256 times. Zero means off, at most 1 ms; 50 us
	// is a good start. See docs/contributing/transport.md.
	PollFor time.Duration
	// Workers is how many workers run Worker entities; zero means GOMAXPROCS.
	Workers int
	// MaxAsks bounds the asks under way on this node; zero means 65,536, at most 1,048,576.
	MaxAsks int
	// AskTimeout bounds an Ask with a context without a deadline; zero means 30 s.
	AskTimeout time.Duration

	// Undelivered gets reports of messages that Tell accepted and that were not delivered: refused by their receiver,
	// parked too long, or never sent because their receiver was removed from the cluster or refuses this node
	// (ErrPeerLost) or because this node ended (ErrStopped). A message that waited here for an entity which was given up
	// after a panic is reported here, where it waited (ErrCrashed). Each message is counted once, in the report of its
	// type, shard, node and reason; when more of these fail at once than are kept apart, in one with NoShard as its Shard.
	// What a node refused reaches this one as long as both are members, however often connections break. What was sent on
	// a connection that broke is reported as ErrLostInFlight without a type, a shard or samples. When the other node says
	// how many it took, the count is exact. When that node is gone for good, or this one ends before it hears, the count
	// is of all messages that credit did not confirm as consumed; some of them may have been handled. Not reported are
	// messages that lay in the mailboxes of Blocking entities of a node that ended suddenly, and messages lost on the way
	// to a node of an older wire version: Stats().Transport.LostBytes counts their bytes. One goroutine calls it, with
	// aggregated reports; while it blocks, reports and incidents wait, and nothing else does.
	Undelivered func(Undelivered)
	// Incident gets handlers that panicked or took too long, entities that were given up, workers and event loops that
	// stand still, and paths to other nodes that are stuck (Silent): of each kind and type sixteen a second, all are
	// counted. It is called from the goroutine that calls Undelivered, a moment later, and may call this node. One that
	// blocks holds up nothing else; 1,024 incidents wait for it, the log has all.
	Incident func(Incident)

	// Latency gets how long handlers and asks took, by type: one in LatencyEvery, at random distances, of each goroutine
	// that runs handlers, and of asks. It is called by several goroutines at once, event loops among them: it must not
	// block. Package kith/latency keeps HDR histograms of it. Nil costs nothing.
	Latency func(what Measure, typ string, took time.Duration)
	// LatencyEvery is of how many messages one is timed, on average; zero means 64, one means all. Two readings of the
	// clock and a call of Latency, about 0.3 microseconds, for each that is timed. So where a goroutine would time
	// handlers less than 50 microseconds apart they are timed more rarely, down to one in 16 * LatencyEvery.
	LatencyEvery int
}

// Validate returns all faults of c joined, or nil. Start calls it.
func (c Config) Validate() error { return c.driver().Validate() }

// CheckFiles returns what Start would refuse of the files that c names, joined, or nil: credentials that are missing,
// damaged, expired or for another cluster, a Directory that cannot be used or holds another cluster's record
// (ErrRecord). It writes nothing, makes no directory, and does not mind that a node is running with the same ones. It
// reads files whatever Validate says, which reads none.
func (c Config) CheckFiles() error { return c.driver().CheckFiles() }

// driver is c as the driver takes it.
func (c Config) driver() driver.Config {
	var unheard *slog.Logger
	if c.Logger == nil {
		unheard = slog.Default()
	}
	return driver.Config{
		Name: c.Name, Listen: c.Listen, Advertise: c.Advertise, Insecure: c.Insecure, TLS: c.TLS.driver(), Seeds: c.Seeds,
		Directory: c.Directory, FlightRecord: driver.FlightRecord(c.FlightRecord), NeverForm: c.NeverForm, FormNew: c.FormNew,
		AwaitSeeds: c.AwaitSeeds,
		Roles:      c.Roles, AppVersion: c.AppVersion,
		Logger: c.Logger, Unheard: unheard,
		Patience: c.Patience, Membership: c.Membership.machine(), Resolver: c.Resolver.machine(),
		Lease:    c.Lease,
		MinBirth: c.MinBirth, Sharding: c.Sharding.driver(), JoinTimeout: c.JoinTimeout,
		LeaveTimeout: c.LeaveTimeout, Phases: c.Phases,
		MaxPayload: c.MaxPayload, MaxMessage: c.MaxMessage,
		BulkBudget: c.BulkBudget, LinkBuffer: c.LinkBuffer, LinkBudget: c.LinkBudget, PartialBudget: c.PartialBudget,
		Window: c.Window, MailboxBudget: c.MailboxBudget,
		DataLoops: c.DataLoops, DataConnections: c.DataConnections, PollFor: c.PollFor, Workers: c.Workers,
		MaxAsks: c.MaxAsks, AskTimeout: c.AskTimeout,
		Undelivered: c.Undelivered, Incident: c.Incident, Latency: c.Latency, LatencyEvery: c.LatencyEvery,
	}.WithDefaults()
}
