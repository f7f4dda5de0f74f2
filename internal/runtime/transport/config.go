// Config and Upcalls: what the runtime gives to the transport.

package transport

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/kith-io/kith/internal/base/descriptors"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/ringbuf"
	"github.com/kith-io/kith/wire"
)

// Config configures a Transport. Zero values mean the defaults named here.
type Config struct {
	Listen      string       // host:port to bind; port 0 takes a free one; default "127.0.0.1:0"
	Advertise   string       // host or host:port that others dial; default: what was bound; needed with 0.0.0.0 and ::
	Incarnation uint64       // of this process; drawn at random by the runtime; not zero
	Name        string       // cluster name, compared in the hello; 1 to 255 bytes
	ClusterID   uint64       // zero: not known yet; see SetCluster
	Birth       uint64       // zero: not known yet
	Terms       []hello.Term // said and compared in hellos; at most hello.MaxSettings

	DataLoops int // event loops for data; default max(1, GOMAXPROCS/2), at most 64
	// DataConnections is how many data connections this node dials per peer, each with a window and a buffer of its own;
	// default 1, at most MaxDataConnections. The peer's number may differ.
	DataConnections int

	Window        int // bytes sent and not yet consumed per data connection; default 1 MiB, 4 KiB to 1 GiB
	LinkBuffer    int // bytes queued per link beyond that, and one large frame; default 512 KiB
	LinkBudget    int // bytes of the buffers of all links; default 256 MiB, at least four full ones
	MaxFrame      int // largest data frame, bytes; default wire.DefaultMaxFrame
	PartialBudget int // bytes held of partial frames; default 256 MiB, at least four of the largest
	ControlBuffer int // bytes queued per control connection; default wire.MaxControlFrame + 1 MiB
	MaxPeers      int // peers known at a time; default 16384
	MaxPending    int // connections that have not said hello yet; default 256
	// MaxPendingEach is how many of those may come from one IP address (of IPv6: one network of 64 bits); default a
	// quarter, at least 16.
	MaxPendingEach int
	// MaxVisits is how many connections a second one IP address (of IPv6: one network of 64 bits) may open with a hello
	// that does not get through, and twice as many at once; default 512, 1 to 1,000,000.
	MaxVisits int
	// FirstByteTimeout is for the first byte of an accepted connection; default 2 s, or HelloTimeout if that is less.
	FirstByteTimeout time.Duration

	HelloTimeout time.Duration // for the TLS handshake, the hello and its answer together; default 5 s
	// HandshakeBytes bounds what a dialler may send of a TLS handshake; a node that was dialled may send four times as
	// much, as it names the authorities that it believes. Default 16 KiB, 4 KiB to 1 MiB.
	HandshakeBytes int
	// Handshakes bounds the TLS handshakes of strangers that are worked on at a time, which is not while they wait for
	// the other end; default half of GOMAXPROCS, at least 1. Those from where members are do not wait for others.
	Handshakes   int
	DialTimeout  time.Duration // for the TCP connect; default 2 s
	BackoffMin   time.Duration // first pause after a failed dial; default 50 ms; doubles, with jitter
	BackoffMax   time.Duration // longest pause; default 2 s
	CreditEvery  time.Duration // consumed bytes are reported at least this often; default 100 ms
	PollFor      time.Duration // a data loop looks for work for so long before it sleeps; default 0: off; at most 1 ms
	CloseTimeout time.Duration // for flushing what is queued in Close; default 1 s

	// TLS demands mutual TLS 1.3 of every connection; zero value: none.
	TLS trust.TLS

	// Flights takes what is known of data connections that are over; may be nil.
	Flights FlightUpcalls

	// Bulk takes large messages; nil: this node neither sends nor takes any.
	Bulk       BulkUpcalls
	MaxBulk    int           // largest message that is taken, bytes; default 64 MiB, at most wire.MaxBulkSize
	BulkRoom   int           // bytes of such messages held at a time; default 256 MiB, at least MaxBulk
	BulkWindow int           // bytes of one sent ahead of what has arrived; default 1 MiB
	BulkChunk  int           // bytes of one frame; default 16 KiB, at most wire.MaxBulkChunk
	BulkStall  time.Duration // a message for which nothing moves for so long is given up; default 30 s

	// Share names the peer with the share of large messages and of partial frames that a peer uses; default: itself. From
	// any goroutine.
	Share func(from peer.ID) peer.ID

	// For tests; zero: what the words say.
	wall       func() time.Time // by which certificates are judged; time.Now
	filesEvery time.Duration    // how often the files of TLS are looked at, at most; 2 s
	renewWait  time.Duration    // for what is on its way to be consumed, before a renewal is put off; 10 s
	silent     time.Duration    // bytes go unacknowledged for so long until the connection is silent; silentLeast
	// silentGrace is how long a new connection's path has stood until the silent one is given up; the system decides.
	silentGrace time.Duration

	// Now is the monotonic clock of the node, for arrival stamps. Default: time since New.
	Now func() time.Duration
	// StepAge is the age of the node's last control step, which heartbeat answers carry. Default: always zero.
	StepAge func() time.Duration
	Logger  *slog.Logger // default: silent

	// Tests play older and newer builds with these: the versions that are spoken, and in which one a kind came.
	versions wire.Versions
	since    func(wire.Kind) uint16
}

// MaxPollFor is the longest Config.PollFor.
const MaxPollFor = loop.MaxPollFor

// FlightUpcalls takes what is known of the tells on a data connection that is over, by wire version 4. Calls come
// from event loops and must not block.
type FlightUpcalls interface {
	// Flown says what was sent to a peer, before Upcalls.LinkDown, if there were tells among it.
	Flown(to peer.ID, c flow.Flown)
	// Taken says what was delivered here of a peer's: nothing of that connection will be any more.
	Taken(from peer.ID, c flow.Taken)
}

// Upcalls is how the transport reaches its runtime. Calls come from event loops (which they must not block) unless said
// otherwise, and never after Close has returned. Calls for one connection come in order.
type Upcalls interface {
	// Control delivers one control frame of any kind but hello and credit: on the control loop; body is valid during
	// the call. A heartbeat has been answered already. arrived is the clock at the read.
	Control(from peer.ID, kind wire.Kind, body []byte, arrived time.Duration)
	// Data delivers whole data frames, in order, with headers that have been checked (kind, lane, size): on the data loop
	// c.Loop(); frames is valid during the call. One read pass calls it at most twice: for a frame that an earlier
	// pass began, then for the rest. The runtime owes c.Consumed for every byte.
	Data(c *InConn, frames []byte)
	// PassDone ends a read pass in which Data was called, on that loop, before its dirty links are flushed.
	PassDone(l *loop.Loop)
	// LinkUp says that the connection to a peer stands, LinkDown that it broke: lost is how many bytes of data were
	// sent and not consumed (on the data lane); number tells the connections of a lane apart. Frames that were not sent
	// stay queued for the next connection, unless err matches ErrForgotten or ErrClosed. Connections to contact points
	// (incarnation zero) are not reported.
	LinkUp(id peer.ID, lane wire.Lane, number int)
	LinkDown(id peer.ID, lane wire.Lane, number int, lost uint64, err error)
	// LinkLost says that a peer's process seems gone: its control connection broke, not by our doing, and when its address
	// was dialled again at once, mail or not, the host refused because nobody listens. Once per loss, from a goroutine of
	// its own. When another incarnation answers instead, PeerRefused tells with RefusedIncarnation.
	LinkLost(id peer.ID)
	// LinkSilent says that nothing that was sent to a peer on a connection is acknowledged any more by the peer's system,
	// and since when; zero: that is over, as the connection goes on or has ended, of which LinkDown tells before. It is
	// dialled anew meanwhile. From the loop or a goroutine of its own, no lock held.
	LinkSilent(id peer.ID, lane wire.Lane, number int, since time.Duration)
	// Undelivered returns the frames that a link held and will never send, whole and in order, because of err: the peer
	// was forgotten (ErrForgotten), refused us for good (*RefusedError), or the transport closes (ErrClosed). They are a
	// copy that the runtime may keep, at most LinkBuffer, a frame and a little. Called once per drop, from a goroutine of
	// its own or that of Close, no lock held. What was sent and not consumed is not among them: nobody knows its fate;
	// LinkDown counts it.
	Undelivered(id peer.ID, frames []byte, err error)
	// LinkRoom says that a link has room again after a Reserve failed: on the link's loop, no lock held.
	LinkRoom(l *Link)
	// Unreached tells that an attempt to reach a contact point (incarnation zero) failed, and why: a *hello.RefusedError,
	// a *trust.TLSError, or what the system says. Attempts come at the pace of the back-off. From a goroutine of its own.
	Unreached(addr peer.Addr, err error)
	// OtherVisited tells that a node of another cluster of this name has said hello, and was refused: its address and its
	// cluster, as it says, which proves nothing; birth zero: not said. At most one a second; from a goroutine of its own.
	OtherVisited(from peer.Addr, clusterID, birth uint64)
	// MailboxRoom says that something has room again of which a link's Full said that it has none; zero: all of it, as
	// the connection is over. On the link's loop, no lock held.
	MailboxRoom(l *Link, f wire.Full)
	// PeerRefused reports a refusal for good, once per connection and outage: from a goroutine of its own.
	PeerRefused(err *hello.RefusedError)
}

// clusterName is the cluster that this node is in.
type clusterName struct{ id, birth uint64 }

// def and defd give a default to what is zero.
func def(v *int, d int) {
	if *v == 0 {
		*v = d
	}
}

func defd(v *time.Duration, d time.Duration) {
	if *v == 0 {
		*v = d
	}
}

// doorDefaults are those for connections that have not said hello.
func (c *Config) doorDefaults() {
	def(&c.MaxPending, 256)
	def(&c.MaxPendingEach, min(c.MaxPending, max(c.MaxPending/4, 16)))
	def(&c.MaxVisits, 512)
	def(&c.HandshakeBytes, 16<<10)
	def(&c.Handshakes, max(1, runtime.GOMAXPROCS(0)/2))
	defd(&c.HelloTimeout, 5*time.Second)
	defd(&c.FirstByteTimeout, min(2*time.Second, c.HelloTimeout))
}

func (c Config) withDefaults() Config {
	c.doorDefaults()
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	def(&c.DataLoops, max(1, runtime.GOMAXPROCS(0)/2))
	def(&c.DataConnections, 1)
	def(&c.Window, 1<<20)
	def(&c.MaxFrame, wire.DefaultMaxFrame)
	def(&c.LinkBuffer, flow.DefaultLinkBuffer)
	def(&c.LinkBudget, max(256<<20, 4*c.bounds(nil).Most()))
	def(&c.PartialBudget, max(256<<20, 4*c.DataConnections*c.largestFrame()))
	def(&c.ControlBuffer, wire.MaxControlFrame+1<<20)
	def(&c.MaxPeers, 16384)
	defd(&c.DialTimeout, 2*time.Second)
	defd(&c.BackoffMin, 50*time.Millisecond)
	defd(&c.BackoffMax, 2*time.Second)
	defd(&c.CreditEvery, 100*time.Millisecond)
	defd(&c.CloseTimeout, time.Second)
	def(&c.MaxBulk, 64<<20)
	def(&c.BulkRoom, max(flow.DefaultBulkRoom, c.MaxBulk))
	def(&c.BulkWindow, flow.DefaultBulkWindow)
	def(&c.BulkChunk, flow.DefaultBulkChunk)
	defd(&c.BulkStall, flow.DefaultBulkStall)
	defd(&c.filesEvery, 2*time.Second)
	defd(&c.renewWait, 10*time.Second)
	c.patience()
	if c.wall == nil {
		c.wall = time.Now
	}
	c.defaultFuncs()
	return c
}

// defaultFuncs fills in what is a function.
func (c *Config) defaultFuncs() {
	if c.Now == nil {
		start := time.Now()
		c.Now = func() time.Duration { return time.Since(start) }
	}
	if c.Share == nil {
		c.Share = func(from peer.ID) peer.ID { return from }
	}
	if c.StepAge == nil {
		c.StepAge = func() time.Duration { return 0 }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if !c.versions.Valid() {
		c.versions = wire.Spoken()
	}
	if c.since == nil {
		c.since = wire.Kind.Since
	}
}

// largestFrame is the most bytes that an accepted connection may hold of a frame that is not whole.
func (c Config) largestFrame() int { return max(c.MaxFrame, wire.MaxControlFrame) }

// trust is what the credentials are kept by.
func (c Config) trust() trust.Config {
	return trust.Config{TLS: c.TLS, Cluster: c.Name, Now: c.wall, Every: c.filesEvery, HandshakeBytes: c.HandshakeBytes,
		Handshakes: c.Handshakes}
}

// What a node may have use for, in descriptors, beside its reserve and those of strangers.
const (
	descriptorsAdmin = 640 // two servers of package admin: 64 streams and 256 other connections each
	descriptorsLoop  = 8   // of each event loop
	descriptorsOther = 32  // files of the node, the log, the port
	descriptorsPeers = 100 // peers that are counted on: most clusters have fewer
)

// descriptors is how many this node may have use for. A peer has a control, a bulk and its data connections each way,
// and each of them one descriptor more once its socket was full; the bulk ones have not.
func (c Config) descriptors() uint64 {
	each := 2*2*(1+c.DataConnections) + 2
	return uint64(c.MaxPending + descriptors.Most + descriptorsAdmin + descriptorsLoop*(c.DataLoops+1) +
		descriptorsOther + each*min(c.MaxPeers, descriptorsPeers))
}

// warnOfDescriptors says that the process may have fewer descriptors than this node may have use for.
func (c Config) warnOfDescriptors() {
	if limit, needs := descriptors.Limit(), c.descriptors(); limit > 0 && limit < needs {
		c.Logger.Warn("the limit of file descriptors is low", "limit", limit, "needs", needs)
	}
}

// bounds are those of every link.
func (c Config) bounds(memory ringbuf.Source) flow.Bounds {
	return flow.Bounds{Buffer: c.LinkBuffer, Window: c.Window, Frame: c.MaxFrame, Memory: memory}
}

// validate returns all faults joined. It expects defaults to be filled in.
func (c Config) validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("transport: "+format, args...))
		}
	}
	fault(c.Incarnation == 0, "Incarnation is zero")
	fault(c.Name == "" || len(c.Name) > hello.MaxNameSize, "Name has %d bytes, must have 1 to %d", len(c.Name),
		hello.MaxNameSize)
	fault(len(c.Terms) > hello.MaxSettings, "%d Terms, at most %d", len(c.Terms), hello.MaxSettings)
	for _, s := range c.Terms {
		fault(s.Key == "" || len(s.Key) > hello.MaxSettingSize || len(s.Value) > hello.MaxSettingSize,
			"setting %q: key must have 1 to %d bytes, value at most that", s.Key, hello.MaxSettingSize)
	}
	between := func(name string, v, lo, hi int) {
		fault(v < lo || v > hi, "%s is %d, must be %d to %d", name, v, lo, hi)
	}
	between("DataLoops", c.DataLoops, 1, 64)
	between("DataConnections", c.DataConnections, 1, MaxDataConnections)
	between("Window", c.Window, 4096, 1<<30)
	between("MaxFrame", c.MaxFrame, wire.MinFrameLimit, wire.MaxFrameLimit)
	between("LinkBuffer", c.LinkBuffer, flow.OrdinaryFrame, 1<<30)
	between("LinkBudget", c.LinkBudget, 4*c.bounds(nil).Most(), 1<<40)
	between("MaxBulk", c.MaxBulk, 1, wire.MaxBulkSize)
	between("BulkRoom", c.BulkRoom, c.MaxBulk, 1<<40)
	between("BulkWindow", c.BulkWindow, 4096, wire.MaxBulkSize)
	between("BulkChunk", c.BulkChunk, 1024, wire.MaxBulkChunk)
	between("PartialBudget", c.PartialBudget, 4*c.largestFrame(), 1<<40)
	between("ControlBuffer", c.ControlBuffer, wire.MinFrameLimit, 1<<30)
	between("MaxPeers", c.MaxPeers, 1, 1<<20)
	between("MaxPending", c.MaxPending, 1, 1<<16)
	between("MaxVisits", c.MaxVisits, 1, 1_000_000)
	between("HandshakeBytes", c.HandshakeBytes, 4<<10, 1<<20)
	between("Handshakes", c.Handshakes, 1, 1<<16)
	between("MaxPendingEach", c.MaxPendingEach, 1, c.MaxPending)
	if err := c.TLS.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("transport: %w", err))
	}
	for _, d := range []struct {
		name string
		v    time.Duration
	}{
		{"HelloTimeout", c.HelloTimeout}, {"FirstByteTimeout", c.FirstByteTimeout}, {"DialTimeout", c.DialTimeout},
		{"BackoffMin", c.BackoffMin},
		{"BackoffMax", c.BackoffMax}, {"CreditEvery", c.CreditEvery}, {"CloseTimeout", c.CloseTimeout},
		{"BulkStall", c.BulkStall},
	} {
		fault(d.v < 0, "%s is negative", d.name)
	}
	fault(c.PollFor < 0 || c.PollFor > MaxPollFor, "PollFor is %v, must be 0 to %v", c.PollFor, MaxPollFor)
	fault(c.BackoffMin > c.BackoffMax, "BackoffMin %v is over BackoffMax %v", c.BackoffMin, c.BackoffMax)
	return errors.Join(faults...)
}
