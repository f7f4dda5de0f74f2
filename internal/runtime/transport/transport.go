// Transport: making it, sending mail, and closing it.

package transport

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/base/descriptors"
	"github.com/kith-io/kith/internal/base/names"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// thoroughEvery is how many credit sweeps there are to one that also gives back memory.
const thoroughEvery = 20

// halfCloseWait is how long Close waits for peers to read what was flushed, once it is all written.
const halfCloseWait = 200 * time.Millisecond

// Transport is the sockets of one node. Its methods are safe for concurrent use; Close must not be called from an
// upcall or a Task.
type Transport struct {
	cfg      Config
	up       Upcalls
	self     peer.ID
	listener net.Listener
	ctl      *loop.Loop
	loops    []*loop.Loop
	faults   faults
	count    counters
	buffers  *buffers
	cluster  atomic.Pointer[clusterName]
	standing atomic.Pointer[hello.Standing] // for removed nodes that say hello; nil: not known
	trust    *trust.Store                   // nil without TLS
	secret   hello.Secret                   // of tokens
	kick     chan struct{}                  // capacity 1: sweep thoroughly now
	bulk     bulk
	partials partials
	names    names.Here
	reserve  descriptors.Reserve

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu        sync.Mutex // never held while an uplink's lock is taken
	life      life
	admission admission
	visits    visits
	remotes   map[peer.ID]*remote
	nextLoop  int
	gone      departed

	closeOnce sync.Once
}

// life is how far a transport has come.
type life struct {
	started bool
	closing bool // nothing new is taken; what is queued is flushed
	ended   bool // no goroutine is started any more
}

// New binds the listener and starts the event loops. Nothing is accepted before Start; mail and links may be used at
// once. The error lists all faults of cfg, or names the address that could not be bound.
func New(cfg Config, up Upcalls) (*Transport, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	var tr *trust.Store
	if cfg.TLS.On() {
		var err error
		if tr, err = trust.New(cfg.trust()); err != nil {
			return nil, fmt.Errorf("transport: %w", err)
		}
	}
	ln, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("transport: cannot listen on %s: %w", cfg.Listen, err)
	}
	addr, err := advertised(ln.Addr().(*net.TCPAddr), cfg.Advertise)
	if err != nil {
		_ = ln.Close()
		return nil, err
	}
	t := &Transport{
		cfg: cfg, up: up, self: peer.ID{Addr: addr, Inc: cfg.Incarnation}, listener: ln, trust: tr,
		admission: newAdmission(cfg.MaxPending, cfg.MaxPendingEach), kick: make(chan struct{}, 1),
		remotes: map[peer.ID]*remote{}, gone: departed{ids: map[peer.ID]struct{}{}}, faults: faults{log: cfg.Logger},
	}
	_, _ = rand.Read(t.secret[:]) // never fails
	t.bulk.room.Limit, t.visits.rate, t.partials.limit = cfg.BulkRoom, cfg.MaxVisits, cfg.PartialBudget
	t.buffers = newBuffers(cfg.LinkBudget, cfg.bounds(nil).Most())
	t.ctx, t.cancel = context.WithCancel(context.Background())
	cfg.warnOfDescriptors()
	t.reserve.Init(cfg.Logger)
	t.names.Init(names.New(t.ctx, &t.reserve), ln.Addr())
	t.cluster.Store(&clusterName{cfg.ClusterID, cfg.Birth})
	t.ctl = loop.New(loop.Config{Lane: wire.LaneControl, Logger: cfg.Logger})
	for i := range cfg.DataLoops {
		t.loops = append(t.loops, loop.New(loop.Config{Index: i, Lane: wire.LaneData, PollFor: cfg.PollFor, Control: t.ctl,
			PassDone: up.PassDone, Logger: cfg.Logger}))
	}
	for _, l := range append([]*loop.Loop{t.ctl}, t.loops...) {
		if err := l.Start(); err != nil {
			t.Close()
			return nil, err
		}
	}
	if tr != nil {
		tr.CheckKeyFile(cfg.Logger)
	}
	t.spawn(t.sweepLoop)
	return t, nil
}

// advertised returns the address that others dial: what is configured, or what was bound.
func advertised(bound *net.TCPAddr, advertise string) (peer.Addr, error) {
	port := uint16(bound.Port)
	if advertise == "" {
		if bound.IP.IsUnspecified() {
			return peer.Addr{}, fmt.Errorf("transport: listening on %s, so Advertise must say which address others dial; "+
				"this host has %s", bound, strings.Join(candidates(), ", "))
		}
		return peer.MakeAddr(bound.IP.String(), port)
	}
	if host, p, err := net.SplitHostPort(advertise); err == nil {
		if p != "0" {
			return peer.ParseAddr(advertise)
		}
		return peer.MakeAddr(host, port)
	}
	return peer.MakeAddr(strings.Trim(advertise, "[]"), port)
}

// candidates lists the addresses of this host that others might reach.
func candidates() []string {
	var out []string
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
			out = append(out, n.IP.String())
		}
	}
	return out
}

// Start begins to accept connections.
func (t *Transport) Start() {
	t.mu.Lock()
	again := t.life.started
	t.life.started = true
	t.mu.Unlock()
	if !again {
		t.spawn(t.acceptLoop)
	}
}

// Self returns this node's identity: the advertised address and the incarnation.
func (t *Transport) Self() peer.ID { return t.self }

// Addr returns the advertised address.
func (t *Transport) Addr() peer.Addr { return t.self.Addr }

// Loops returns the data loops; the slice must not be changed.
func (t *Transport) Loops() []*loop.Loop { return t.loops }

// TLSConfigs returns what protects connections beside those of the members; nil without TLS.
func (t *Transport) TLSConfigs() (server *tls.Config, client func(host string) *tls.Config) {
	if t.trust == nil {
		return nil, nil
	}
	return t.trust.Configs()
}

// SetCluster tells later hellos which cluster this node belongs to, and lets peers that were refused be dialled again.
func (t *Transport) SetCluster(id, birth uint64) {
	t.cluster.Store(&clusterName{id, birth})
	remotes, _ := t.snapshot(nil)
	if id != 0 {
		t.dropStrangers(remotes, id)
	}
	for _, r := range remotes {
		for _, l := range r.made() {
			l.pardon()
		}
		if c := r.ctl.Load(); c != nil {
			c.pardon()
		}
	}
}

// SetStanding makes refusals of removed peers say how many working members this node's cluster has, and the address of
// the lowest of them: where two sides removed each other, only one is to end.
func (t *Transport) SetStanding(up uint32, lowest peer.Addr) {
	if now := (hello.Standing{Up: up, Lowest: lowest}); t.side() != now {
		t.standing.Store(&now)
	}
}

// side returns what SetStanding got last.
func (t *Transport) side() (s hello.Standing) {
	if last := t.standing.Load(); last != nil {
		s = *last
	}
	return s
}

// dropStrangers closes what nodes of another cluster had opened before this node knew its own: they dial anew, and
// learn it from the refusal.
func (t *Transport) dropStrangers(remotes []*remote, id uint64) {
	t.mu.Lock()
	var strangers []*InConn
	for _, r := range remotes {
		for _, c := range r.in {
			if c.clusterID != 0 && c.clusterID != id {
				strangers = append(strangers, c)
			}
		}
	}
	t.mu.Unlock()
	for _, c := range strangers {
		c.loop.Post(c)
	}
}

// Send queues control mail: the body is copied. The connection is made on first use; mail that waits for a connection
// which cannot be made is lost. To.Inc zero reaches any node at the address. Errors: ErrControlFull, ErrFrameSize,
// ErrSelf, ErrForgotten, ErrClosed, ErrBusy, ErrProtocol for a kind that is no control mail, *VersionError for a kind
// that the peer's wire version does not have, *RefusedError for a few seconds after a refusal for good.
func (t *Transport) Send(m peer.Mail) error {
	switch {
	case !m.Kind.Known() || m.Kind.Lane() != wire.LaneControl, m.Kind == wire.KindHello, m.Kind == wire.KindHelloAck,
		m.Kind == wire.KindHelloRefuse, m.Kind == wire.KindHeartbeatAck, m.Kind == wire.KindCredit, m.Kind == wire.KindFull,
		m.Kind == wire.KindRoom:
		return fmt.Errorf("%w: %s is no control mail", ErrProtocol, m.Kind)
	case len(m.Body)+wire.HeaderSize > min(wire.MaxControlFrame, t.cfg.ControlBuffer):
		return fmt.Errorf("%w: %s of %d bytes to %s", ErrFrameSize, m.Kind, len(m.Body), m.To)
	}
	r, err := t.remote(m.To)
	if err != nil {
		return fmt.Errorf("%s to %s: %w", m.Kind, m.To, err)
	}
	return r.control().send(m.Kind, m.Body)
}

// helloTo makes the hello of an uplink, which offers these versions.
func (t *Transport) helloTo(to peer.ID, lane wire.Lane, number uint16, generation uint32,
	speak wire.Versions) hello.Hello {
	cluster := t.cluster.Load()
	h := hello.Hello{
		Versions: speak, Lane: lane, Number: number, Generation: generation, ClusterID: cluster.id,
		Birth: cluster.birth, Name: t.cfg.Name, From: t.self, To: to.Addr, ToInc: to.Inc,
		Settings: hello.Said(t.cfg.Terms, speak), Token: t.secret.TokenFor(to),
	}
	if lane == wire.LaneData {
		h.Window = uint32(t.cfg.Window)
	}
	return h
}

// acceptor returns what hellos are judged by now.
func (t *Transport) acceptor() hello.Acceptor {
	cluster := t.cluster.Load()
	return hello.Acceptor{Self: t.self, Name: t.cfg.Name, ClusterID: cluster.id, Birth: cluster.birth,
		Speaks: t.cfg.versions, Terms: t.cfg.Terms, Window: t.cfg.Window, Closing: t.isClosing()}
}

// isClosing reports whether Close has begun. An uplink's lock may be held.
func (t *Transport) isClosing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.life.closing
}

// spawn runs f in a goroutine that Close waits for; false when it no longer can.
func (t *Transport) spawn(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life.ended {
		return false
	}
	t.tasks.Add(1)
	go func() {
		defer t.tasks.Done()
		f()
	}()
	return true
}

// fault counts and logs what a peer did wrong.
func (t *Transport) fault(reason string, count *atomic.Uint64, args ...any) {
	count.Add(1)
	t.faults.warn(reason, args...)
}

// killAll makes every uplink refuse what would be queued from now on.
func (t *Transport) killAll() {
	remotes, _ := t.snapshot(nil)
	for _, r := range remotes {
		for _, l := range r.made() {
			l.kill(ErrClosed)
		}
		if c := r.ctl.Load(); c != nil {
			c.kill(ErrClosed)
		}
		if b := r.bulk.Load(); b != nil {
			b.kill(ErrClosed)
		}
	}
}

// flushAll waits until every uplink that is connected, or being connected for the first time, has written what it can,
// then closes the writing halves and waits a little for the peers to have read it all: closing outright could destroy
// what is still in flight.
func (t *Transport) flushAll(deadline time.Time) {
	t.untilQuiet(deadline, func(u *uplink) bool {
		if u.conn == nil {
			return !u.dialing || u.failures > 0
		}
		return !u.q.waiting() && u.conn.writer == nil
	})
	half := time.Now().Add(halfCloseWait)
	if deadline.Before(half) {
		half = deadline
	}
	t.untilQuiet(half, func(u *uplink) bool {
		if u.conn == nil {
			return true
		}
		if !u.conn.halfClosed { // the uplink's, as a loop that was held up may answer while others are asked again
			u.conn.halfClosed = true
			_ = syscall.Shutdown(loop.Handle(u.conn.c.Fd()), syscall.SHUT_WR)
		}
		return false // until the peer closes its half and the uplink has no connection
	})
}

// untilQuiet asks quiet of every uplink, on its loop and under its lock, until all say yes or time is up.
func (t *Transport) untilQuiet(deadline time.Time, quiet func(u *uplink) bool) {
	remotes, _ := t.snapshot(nil)
	for {
		busy := false
		for _, l := range append([]*loop.Loop{t.ctl}, t.loops...) {
			busy = askLoop(l, remotes, quiet) || busy
		}
		if !busy || !time.Now().Before(deadline) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// question is a Task that asks about the uplinks of one loop.
type question struct {
	remotes []*remote
	quiet   func(u *uplink) bool
	busy    chan bool
}

// Run answers it.
func (q *question) Run(on *loop.Loop) {
	busy := false
	for _, r := range q.remotes {
		var ups []*uplink
		if c := r.ctl.Load(); c != nil {
			ups = append(ups, &c.uplink)
		}
		for _, l := range r.made() {
			ups = append(ups, &l.uplink)
		}
		for _, u := range ups {
			if u.loop != on {
				continue
			}
			u.mu.Lock()
			if !q.quiet(u) {
				busy = true
			}
			u.mu.Unlock()
		}
	}
	q.busy <- busy
}

func askLoop(l *loop.Loop, remotes []*remote, quiet func(u *uplink) bool) (busy bool) {
	q := &question{remotes, quiet, make(chan bool, 1)}
	if !l.Running() || l.Execute(q) != nil {
		return false
	}
	select {
	case busy = <-q.busy:
	case <-time.After(time.Second): // a handler holds the loop; what is left is lost
	}
	return busy
}
