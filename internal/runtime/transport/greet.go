// Greeting: one attempt of an uplink to connect: the dial, the hello in words that the peer understands, its answer.

package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/kith-io/kith/internal/base/names"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// connect dials, says hello, and enrols the connection into the loop. A peer of version 1 cannot read the hello of
// later versions; its refusal says what it speaks, and it is dialled again in its own words.
func (u *uplink) connect(oc *outConn) error {
	speak := u.t.cfg.versions
	u.mu.Lock()
	known := u.version
	u.mu.Unlock()
	if known == 1 && u.to.Inc != 0 { // an incarnation never changes its version; the node at an address may
		speak = hello.VersionOne
	}
	err := u.connectAs(oc, speak)
	if speak != hello.VersionOne && hello.OnlyOne(err, u.t.cfg.versions, u.lane) {
		err = u.connectAs(oc, hello.VersionOne)
	}
	return err
}

// connectAs is connect with a hello that offers the versions speak.
func (u *uplink) connectAs(oc *outConn, speak wire.Versions) error {
	carrier, a, err := u.t.open(u.ctx, opening{to: u.to, lane: u.lane, number: u.number, generation: oc.generation,
		speak: speak, grace: u.grace})
	if err != nil {
		return err
	}
	return u.adopt(oc, carrier, a)
}

// adopt hands a connection to its loop when its hello was answered.
func (u *uplink) adopt(oc *outConn, carrier net.Conn, a hello.Ack) error {
	oc.real, oc.version = a.From, a.Version
	if err := u.clear(errSilent); err != nil {
		return err
	}
	nc, secure := trust.Bare(carrier)
	oc.secure = secure
	if err := u.t.reserve.Lend(func() error { return u.loop.Enrol(nc, oc) }); err != nil {
		return fmt.Errorf("enrol connection to %s: %w", u.to, err)
	}
	if !oc.wasOpened.Load() {
		return fmt.Errorf("enrol connection to %s: %w", u.to, net.ErrClosed)
	}
	return nil
}

// opening is the peer that a connection is opened to, which of the pair's connections it is, and what the dialler
// speaks.
type opening struct {
	to         peer.ID
	lane       wire.Lane
	number     uint16
	generation uint32
	speak      wire.Versions
	renews     uint32       // generation of the connection that stands and that this one is to follow; zero: none
	grace      func() error // the path stands: an error ends the attempt; nil: go on
	via        net.Conn     // has been dialled already; nil: it is to be
}

// open dials, makes the connection secure if it is to be, and says hello. The connection that it returns is a blocking
// one without a deadline; a TLS one ends that part of its life with bare.
func (t *Transport) open(ctx context.Context, u opening) (net.Conn, hello.Ack, error) {
	nc, carrier, err := t.reach(ctx, &u)
	if nc == nil {
		return nil, hello.Ack{}, err
	}
	stop := context.AfterFunc(ctx, func() { expire(nc) })
	defer stop()
	var a hello.Ack
	if err == nil {
		a, err = t.agree(carrier, &u)
	}
	if err != nil {
		_ = nc.Close()
		t.reserve.Refill()
		return nil, hello.Ack{}, t.tlsFailed(carrier, u.to.Addr, err)
	}
	stop()
	_ = nc.SetDeadline(time.Time{})
	return carrier, a, nil
}

// secondDial is how long after a dial that is not answered another one begins beside it. The system repeats its first
// packet after a second: with two dials one leaves every half second, and so soon is a peer found if its path is well.
const secondDial = 500 * time.Millisecond

// dialTwice dials, and once more beside that when nothing is heard for a while; the first that stands is taken.
func dialTwice(ctx context.Context, t *Transport, to peer.Addr, lane wire.Lane) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.DialTimeout)
	defer cancel()
	type result struct {
		nc  net.Conn
		err error
	}
	results := make(chan result, 2)
	dial := func() {
		d := net.Dialer{Control: smallPackets(lane)}
		nc, err := t.names.DialBy(ctx, t.reserve.Dial(d.DialContext), to.String())
		results <- result{nc, err}
	}
	go dial()
	under := 1
	timer := time.NewTimer(secondDial)
	defer timer.Stop()
	var first result
	select {
	case first = <-results:
	case <-timer.C:
		go dial()
		under = 2
		first = <-results
	}
	if under == 2 {
		cancel()
		if other := <-results; other.nc != nil && first.nc == nil {
			first = other
		} else if other.nc != nil {
			_ = other.nc.Close()
		}
	}
	return first.nc, first.err
}

// attend tells the system how long to be patient with a connection.
func attend(nc net.Conn, lane wire.Lane) {
	boundRTO(nc)
	switch lane {
	case wire.LaneControl:
		boundUnsent(nc, controlUnsent)
		boundSilence(nc, controlTimeout)
	case wire.LaneBulk:
		boundSilence(nc, bulkTimeout)
	default:
		boundSilence(nc, dataTimeout)
	}
}

// reach dials, and makes the connection secure if it is to be, within the time of a hello, which goes on. After an
// error nc, if there is one, is still to be closed.
func (t *Transport) reach(ctx context.Context, u *opening) (nc, carrier net.Conn, err error) {
	if nc = u.via; nc == nil {
		nc, err = dialTwice(ctx, t, u.to.Addr, u.lane)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("dial %s: %w", u.to, err)
	}
	if u.grace != nil {
		if err = u.grace(); err != nil {
			return nc, nil, err
		}
	}
	attend(nc, u.lane)
	stop := context.AfterFunc(ctx, func() { expire(nc) })
	defer stop()
	_ = nc.SetDeadline(time.Now().Add(t.cfg.HelloTimeout))
	if ctx.Err() != nil { // the call above may have undone what stops us
		expire(nc)
	}
	carrier, err = t.dialled(nc, u.to.Addr)
	return nc, carrier, err
}

// astray takes note of a dial that came back to this node, and reports whether it is worth another one: a contact point
// that is not this node's own address, spelled otherwise, leads to several nodes in turn.
func astray(t *Transport, to peer.ID, err error) bool {
	var refused *hello.RefusedError
	if !errors.As(err, &refused) || refused.Reason != hello.RefusedSelf || refused.Key != "" {
		return false
	}
	t.names.Note(to.Addr.String())
	if to.Inc != 0 { // it is notified when it comes again
		for _, c := range t.inFrom(nil, to, wire.LaneControl) {
			c.loop.Post(c)
		}
	}
	return to.Inc == 0 && !t.names.Own(to.Addr.String())
}

// Unasked reports whether an attempt asked nobody, since the name of the address could not be looked up. That there is
// no such name is an answer.
func Unasked(err error) bool { return names.Unasked(err) }

// Own reports whether addr is this node's own address, spelled otherwise: a dial has come back, and it can lead nowhere
// else.
func Own(t *Transport, addr peer.Addr) bool { return t.names.Own(addr.String()) }

// expire ends whatever is going on on a connection; nil is none.
func expire(nc net.Conn) {
	if nc != nil {
		_ = nc.SetDeadline(time.Unix(1, 0))
	}
}

// agree says hello, reads the answer, and judges the node that gave it.
func (t *Transport) agree(carrier net.Conn, u *opening) (hello.Ack, error) {
	a, err := t.greet(carrier, u)
	if err == nil {
		err = t.confirm(u.to, trust.NameOf(carrier))
	}
	return a, err
}

// greet says hello on nc and reads the answer.
func (t *Transport) greet(nc net.Conn, u *opening) (hello.Ack, error) {
	h := t.helloTo(u.to, u.lane, u.number, u.generation, u.speak)
	h.Renews = u.renews
	frame, at := wire.BeginFrame(nil, wire.KindHello, 0, 0)
	frame = hello.Append(frame, &h)
	wire.EndFrame(frame, at)
	if _, err := nc.Write(frame); err != nil {
		return hello.Ack{}, fmt.Errorf("hello to %s: %w", u.to, err)
	}
	kind, body, err := readFrame(nc, hello.MaxAnswer)
	if err != nil {
		return hello.Ack{}, fmt.Errorf("answer of %s to the hello: %w", u.to, err)
	}
	a, err := h.Answer(kind, body)
	if errors.Is(err, hello.ErrNoAnswer) {
		err = fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return a, err
}
