// Accepting: the listener's loop, the hello of an accepted connection under a deadline, and the order of generations.

package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/base/descriptors"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const (
	finishWait  = 250 * time.Millisecond // for an old connection to be read to its end before it is closed
	finishRetry = 50 * time.Millisecond
	acceptPause = 50 * time.Millisecond // after a failed accept, as when file descriptors have run out
)

// inKey names a connection of a peer; at most one per key is read at a time.
type inKey struct {
	lane   wire.Lane
	number uint16
}

// MaxDataConnections bounds the connections that a peer may dial per lane, and so Config.DataConnections.
const MaxDataConnections = hello.MaxConnections

// acceptLoop takes connections until the listener is closed.
func (t *Transport) acceptLoop() {
	for {
		nc, err := t.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || t.ctx.Err() != nil || t.acceptor().Closing {
				return
			}
			if makeRoom(err, t) {
				continue
			}
			t.faults.warn("accept", "error", err)
			select {
			case <-time.After(acceptPause):
			case <-t.ctx.Done():
			}
			continue
		}
		g := t.admit(nc)
		if g == nil {
			_ = nc.Close()
			continue
		}
		if !t.spawn(func() { t.handshake(g) }) {
			t.dismiss(g)
			_ = nc.Close()
			return
		}
	}
}

// makeRoom frees a descriptor for a connection that comes, after an accept that met err: one of the reserve, of which
// half stays for what this node dials, or else that of the stranger that has proven nothing for the longest time.
func makeRoom(err error, t *Transport) bool {
	if !descriptors.None(err) {
		return false
	}
	if t.reserve.ForComer() {
		return true
	}
	t.mu.Lock()
	goes := t.admission.yield(t.cfg.Now())
	t.mu.Unlock()
	if goes == nil {
		return false
	}
	_ = goes.nc.Close()
	t.count.putOut.Add(1)
	t.fault("a connection without a hello, while no file descriptor is left", &t.count.tooMany, "remote",
		goes.nc.RemoteAddr())
	return true
}

// admit takes nc in among the connections that have not said hello, if need be in the place of another one, which it
// closes; nil: there is no room.
func (t *Transport) admit(nc net.Conn) *pendingConn {
	from, now := visitor(source(nc)), t.cfg.Now()
	var g, goes *pendingConn
	var why pressure
	t.mu.Lock()
	closing, often := t.life.closing, !t.visits.come(now, from)
	if !closing && !often {
		g, goes, why = t.admission.come(now, nc, from)
	}
	t.mu.Unlock()
	whose := nc
	if goes != nil {
		whose = goes.nc
		defer whose.Close()
		t.count.putOut.Add(1)
	}
	switch {
	case closing:
	case often:
		t.fault("too many connections of one address in a short time", &t.count.tooOften, "remote", whose.RemoteAddr())
	case why == tooManyThere:
		t.fault("too many connections of one address without a hello", &t.count.tooManyEach, "remote", whose.RemoteAddr())
	case why == tooMany:
		t.fault("too many connections without a hello", &t.count.tooMany, "remote", whose.RemoteAddr())
	}
	return g
}

// source is the address that a connection comes from.
func source(nc net.Conn) netip.Addr {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// proved notes that the hello of a pending connection is through, or its certificate is that of a member: it is no
// stranger's visit, and where it comes from a member is.
func (t *Transport) proved(g *pendingConn) {
	now := t.cfg.Now()
	t.mu.Lock()
	t.visits.proved(now, g.from)
	t.admission.proved(g)
	t.admission.remember(now, g.from)
	t.mu.Unlock()
}

// dismiss ends the time of a pending connection.
func (t *Transport) dismiss(g *pendingConn) {
	t.mu.Lock()
	t.admission.leave(g)
	t.mu.Unlock()
}

// Expect tells where the members of now are, by the addresses that they advertise: from there nobody is kept out by
// strangers. Names of hosts are not looked up; a member that comes from elsewhere is known once it has proven itself.
func (t *Transport) Expect(ids []peer.ID) {
	at := make(map[netip.Addr]struct{}, len(ids))
	for _, id := range ids {
		if ip, err := netip.ParseAddr(id.Addr.Host()); err == nil {
			at[visitor(ip.Unmap())] = struct{}{}
		}
	}
	t.mu.Lock()
	t.admission.members = at
	t.mu.Unlock()
}

// handshake reads the hello of an accepted connection, judges it, answers, and enrols the connection.
func (t *Transport) handshake(g *pendingConn) {
	defer t.reserve.Refill()
	defer t.dismiss(g)
	t.limit(g.nc, t.cfg.FirstByteTimeout)
	nc, err := t.accepted(g)
	if err != nil {
		return
	}
	if t.trust != nil {
		t.proved(g)
	}
	from := io.Reader(nc)
	if t.trust == nil {
		from = entry{t, g}
	}
	h, err := readHello(from, t.cfg.versions)
	if err != nil {
		if _, asked := err.(*hello.RefusedError); !asked {
			t.speechless(g, err)
		}
	} else if refusal := t.welcome(nc, g, h); refusal != nil {
		err = refusal
	} else if t.trust == nil {
		t.proved(g)
	}
	var refusal *hello.RefusedError
	if errors.As(err, &refusal) {
		t.refuse(nc, h, refusal)
		if refusal.Reason == hello.RefusedTaken {
			t.inquire(h.From)
		}
	}
	if err != nil {
		_ = nc.Close()
	}
}

// speechless counts a connection that ended without a whole hello, unless that was our doing.
func (t *Transport) speechless(g *pendingConn, err error) {
	switch {
	case t.ctx.Err() != nil || g.out.Load():
	case !g.spoke.Load():
		t.mute(g, err)
	default:
		t.fault("hello", &t.count.faultsHello, "remote", g.nc.RemoteAddr(), "error", err)
	}
}

// mute counts a connection that ended before its first byte. A dialler that gives up what it has just opened breaks no
// rule: one that was dialled beside a silent connection, which then went on, is closed so.
func (t *Transport) mute(g *pendingConn, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.fault("silence", &t.count.saidNothing, "remote", g.nc.RemoteAddr())
		return
	}
	t.count.withdrawn.Add(1)
}

// limit gives nc so much time, or none when closing: Close shortens the time of those that it finds, so a caller of
// limit looks again afterwards.
func (t *Transport) limit(nc net.Conn, d time.Duration) {
	_ = nc.SetDeadline(time.Now().Add(d))
	if t.isClosing() {
		_ = nc.SetDeadline(time.Unix(1, 0))
	}
}

// readHello reads the first frame. A *RefusedError is to be answered; any other error is not worth an answer.
func readHello(nc io.Reader, speaks wire.Versions) (*hello.Hello, error) {
	kind, body, err := readFrame(nc, hello.MaxFrame)
	switch {
	case errors.Is(err, errSpeaksTLS):
		return &hello.Hello{}, &hello.RefusedError{Reason: hello.RefusedTLS, Key: "TLS", Ours: "on", Theirs: "off"}
	case errors.Is(err, errSpeaksHTTP):
		return &hello.Hello{}, spokeHTTP
	case errors.Is(err, ErrProtocol):
		return &hello.Hello{}, &hello.RefusedError{Reason: hello.RefusedMagic}
	case err != nil:
		return &hello.Hello{}, err
	}
	h, refusal := hello.Hear(kind, body, speaks)
	if refusal != nil {
		return &h, refusal
	}
	return &h, nil
}

// readFrame reads exactly one frame, so that nothing behind it is lost.
func readFrame(nc io.Reader, limit int) (wire.Kind, []byte, error) {
	var head [wire.HeaderSize]byte
	if _, err := io.ReadFull(nc, head[:]); err != nil {
		return 0, nil, err
	}
	size, kind := wire.SizeOf(head[:]), wire.KindOf(head[:])
	if head[0] == 0x16 && head[1] == 3 { // a TLS handshake record; no frame is that long and so few bytes
		return 0, nil, errSpeaksTLS
	}
	if isHTTP(head[:]) {
		return 0, nil, errSpeaksHTTP
	}
	if size < wire.HeaderSize || size > limit || !kind.Known() {
		return 0, nil, fmt.Errorf("%w: no frame: % x", ErrProtocol, head)
	}
	body := make([]byte, size-wire.HeaderSize)
	_, err := io.ReadFull(nc, body)
	return kind, body, err
}

// refuse answers with a refusal, so far as the peer takes it, and counts it.
func (t *Transport) refuse(nc net.Conn, h *hello.Hello, e *hello.RefusedError) {
	t.fault("refused: "+e.Reason.String(), &t.count.refused[min(e.Reason, hello.RefusalCount-1)],
		"remote", nc.RemoteAddr(), "peer", h.From, "differs", e.Key, "theirs", e.Ours, "ours", e.Theirs)
	if e == spokeHTTP {
		answerHTTP(nc)
		return
	}
	said := e.Told(h.Versions, t.trust != nil, t.side())
	_, _ = nc.Write(wire.AppendFrame(nil, wire.KindHelloRefuse, 0, 0, hello.AppendRefusal(nil, said)))
	visited(t, h, e)
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// welcome takes a connection after its hello parsed: it registers it, lets its predecessor finish, answers and enrols.
// An error that is no refusal has been dealt with; nc is closed by the caller in any case but nil.
func (t *Transport) welcome(nc net.Conn, g *pendingConn, h *hello.Hello) error {
	a := t.acceptor()
	if refusal := a.Judge(h); refusal != nil {
		return refusal
	}
	if refusal := cmp.Or(t.isAt(nc, h), reachable(t, h)); refusal != nil {
		return refusal
	}
	t.mu.Lock()
	t.admission.proved(g) // without TLS that is all that is asked for
	t.mu.Unlock()
	attend(nc, h.Lane)
	if h.Lane == wire.LaneBulk {
		return t.welcomeBulk(nc, h)
	}
	c, old, refusal := t.register(h, g.from, trust.NameOf(nc))
	if refusal != nil {
		return refusal
	}
	// A dialler that makes its connection anew ends the old one once it knows that it has been let in.
	follows := old != nil && h.Renews == old.generation
	if old != nil && !follows && !t.finish(old) {
		t.restore(c, old)
		return &hello.RefusedError{Reason: hello.RefusedBusy}
	}
	t.limit(nc, t.cfg.HelloTimeout)
	err := t.letIn(nc, h)
	if err == nil && follows && !t.finish(old) {
		t.restore(c, old)
		return context.DeadlineExceeded
	}
	if err == nil {
		_ = nc.SetDeadline(time.Time{})
		err = t.enrol(nc, c)
	}
	if err != nil {
		c.over()
	}
	return err
}

// letIn answers a hello that is let in.
func (t *Transport) letIn(nc net.Conn, h *hello.Hello) error {
	by := t.acceptor()
	answer := by.Answer(h)
	_, err := nc.Write(wire.AppendFrame(nil, wire.KindHelloAck, 0, 0, hello.AppendAck(nil, &answer, h.Versions)))
	return err
}

// register puts the connection of h into its peer's table, in place of an older one, which is returned.
func (t *Transport) register(h *hello.Hello, from netip.Addr, name string) (c, old *InConn,
	refusal *hello.RefusedError) {
	r, err := t.lockedRemote(h.From)
	if err != nil {
		return nil, nil, unknownPeer(h, err)
	}
	defer t.mu.Unlock()
	if refusal := r.bond.Admits(h, name, r.stands(), t.cfg.Now()); refusal != nil {
		return nil, nil, refusal
	}
	key := inKey{h.Lane, h.Number}
	old = r.in[key]
	if old != nil && !h.Succeeds(old.generation) {
		return nil, nil, &hello.RefusedError{Reason: hello.RefusedStale}
	}
	version, _ := h.Versions.Common(t.cfg.versions)
	c = &InConn{
		t: t, from: r, version: version, lane: h.Lane, number: h.Number, generation: h.Generation, clusterID: h.ClusterID,
		birth: h.Birth, window: int(h.Window), backTalk: backTalk{meter: flow.MakeMeter(int(h.Window))}, loop: t.ctl,
		gone: make(chan struct{}), in: splitter{lane: h.Lane, limit: wire.MaxControlFrame}, visitor: from,
	}
	c.in.of = c
	if h.Lane == wire.LaneData {
		c.loop, c.in.limit = r.loop(h.Number), t.cfg.MaxFrame
	}
	r.in[key] = c
	r.bond.Bind(h, name, t.trust != nil)
	return c, old, nil
}

// unknownPeer is the refusal of a dialler that has no entry in the table of peers, and gets none because of err.
func unknownPeer(h *hello.Hello, err error) *hello.RefusedError {
	switch {
	case errors.Is(err, ErrForgotten):
		return hello.Removed(h.From)
	case errors.Is(err, ErrClosed):
		return &hello.RefusedError{Reason: hello.RefusedGoingDown}
	}
	return &hello.RefusedError{Reason: hello.RefusedBusy}
}

// finish waits until old has been read to its end, or closes it after a while. It reports whether old is gone.
func (t *Transport) finish(old *InConn) bool {
	deadline := time.Now().Add(t.cfg.HelloTimeout)
	wait := finishWait
	for {
		timer := time.NewTimer(wait)
		select {
		case <-old.gone:
			timer.Stop()
			return true
		case <-t.ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
		if time.Now().After(deadline) {
			return false
		}
		old.loop.Post(old)
		wait = finishRetry
	}
}

// restore puts old back into the table: its successor c could not take its place.
func (t *Transport) restore(c, old *InConn) {
	t.mu.Lock()
	key := inKey{c.lane, c.number}
	if c.from.in[key] == c {
		c.from.in[key] = old
	}
	t.mu.Unlock()
	c.over()
}

// enrol hands the connection to its loop, unless a successor has taken its place meanwhile.
func (t *Transport) enrol(nc net.Conn, c *InConn) error {
	t.mu.Lock()
	current := c.from.in[inKey{c.lane, c.number}] == c && !c.from.forgotten && !t.life.closing
	t.mu.Unlock()
	if !current {
		return context.Canceled
	}
	nc, c.secure = trust.Bare(nc)
	if err := t.reserve.Lend(func() error { return c.loop.Enrol(nc, (*inSocket)(c)) }); err != nil {
		return err
	}
	if !c.wasOpened.Load() {
		return net.ErrClosed
	}
	t.mu.Lock()
	forgotten := c.from.forgotten
	t.mu.Unlock()
	if forgotten {
		c.loop.Post(c)
	}
	return nil
}

// errSpeaksHTTP is what readFrame returns of a request of HTTP.
var errSpeaksHTTP = fmt.Errorf("%w: an HTTP request where a hello was due", ErrProtocol)

// spokeHTTP is the refusal of one. It is answered in HTTP.
var spokeHTTP = &hello.RefusedError{Reason: hello.RefusedMagic, Key: "protocol", Ours: "HTTP", Theirs: "kith"}

const saysNotHTTP = `{"error":"this is the port of a kith node, which speaks no HTTP: ` +
	`the admin interface has an address of its own (kith run --admin)"}` + "\n"

// methods are the beginnings of requests, as long as the shortest of what is looked at.
var methods = []string{"GET /", "POST ", "HEAD ", "PUT /", "DELET", "OPTIO", "PATCH", "CONNE", "PRI *"}

// isHTTP reports whether what a connection said first, five bytes or more, begins a request. No frame and no record of
// TLS does.
func isHTTP(first []byte) bool { return slices.Contains(methods, string(first[:len(methods[0])])) }

// answerHTTP says that this is the wrong port, and closes nc so that the answer arrives.
func answerHTTP(nc net.Conn) {
	_, _ = io.WriteString(nc, fmt.Sprintf("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"+
		"Connection: close\r\nContent-Length: %d\r\n\r\n%s", len(saysNotHTTP), saysNotHTTP))
	linger(nc)
}
