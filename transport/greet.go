// Greeting: one attempt of an uplink to connect: the dial, the hello in words that the peer understands, its answer.

package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/kith-io/kith/wire"
)

// connect dials, says hello, and enrols the connection into the loop. A peer of version 1 cannot read the hello of later
// versions; its refusal says what it speaks, and it is dialled again in its own words.
func (u *uplink) connect(oc *outConn) error {
	speak := u.t.cfg.versions
	u.mu.Lock()
	known := u.version
	u.mu.Unlock()
	if known == 1 && u.to.Inc != 0 { // an incarnation never changes its version; who is at an address may
		speak = versionOne
	}
	err := u.connectAs(oc, speak)
	if speak != versionOne && u.onlyOne(err) {
		err = u.connectAs(oc, versionOne)
	}
	return err
}

// versionOne is what a node offers to a peer that speaks nothing else.
var versionOne = wire.Versions{Newest: 1, Oldest: 1}

// onlyOne reports whether err is the refusal of a peer that speaks version 1 and no other, in which the connection can
// be had as well.
func (u *uplink) onlyOne(err error) bool {
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Reason != RefusedVersion {
		return false
	}
	theirs, ok := wire.ParseVersions(refused.Theirs)
	return ok && theirs == versionOne && u.t.cfg.versions.Oldest == 1 && u.lane.Since() == 1
}

// connectAs is connect with a hello that offers the versions speak.
func (u *uplink) connectAs(oc *outConn, speak wire.Versions) error {
	dialer := net.Dialer{Timeout: u.t.cfg.DialTimeout}
	nc, err := dialer.DialContext(u.ctx, "tcp", u.to.Addr.String())
	if err != nil {
		return fmt.Errorf("dial %s: %w", u.to, err)
	}
	stop := context.AfterFunc(u.ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = nc.SetDeadline(time.Now().Add(u.t.cfg.HelloTimeout))
	if u.ctx.Err() != nil { // the call above may have undone what stops us
		_ = nc.SetDeadline(time.Unix(1, 0))
	}
	carrier, err := u.t.dialled(nc, u.to.Addr)
	var a ack
	if err == nil {
		a, err = u.greet(carrier, oc.generation, speak)
	}
	if err != nil {
		_ = nc.Close()
		return u.t.tlsFailed(carrier, u.to.Addr, err)
	}
	stop()
	_ = nc.SetDeadline(time.Time{})
	oc.real, oc.version = a.from, a.version
	nc, oc.secure = bare(carrier)
	if _, err := u.loop.client.EnrollContext(nc, socket(oc)); err != nil {
		return fmt.Errorf("enrol connection to %s: %w", u.to, err)
	}
	if !oc.wasOpened.Load() {
		return fmt.Errorf("enrol connection to %s: %w", u.to, net.ErrClosed)
	}
	return nil
}

// greet says hello on nc and reads the answer.
func (u *uplink) greet(nc net.Conn, generation uint32, speak wire.Versions) (ack, error) {
	h := u.t.helloTo(u.to, u.lane, u.number, generation)
	h.versions = speak
	frame, at := wire.BeginFrame(nil, wire.KindHello, 0, 0)
	frame = appendHello(frame, &h)
	wire.EndFrame(frame, at)
	if _, err := nc.Write(frame); err != nil {
		return ack{}, fmt.Errorf("hello to %s: %w", u.to, err)
	}
	kind, body, err := readFrame(nc, maxAnswerFrame)
	if err != nil {
		return ack{}, fmt.Errorf("answer of %s to the hello: %w", u.to, err)
	}
	switch kind {
	case wire.KindHelloAck:
		a, err := parseAck(body, speak)
		if err != nil {
			return ack{}, fmt.Errorf("answer of %s to the hello: %w", u.to, err)
		}
		if u.to.Inc != 0 && a.from.Inc != u.to.Inc {
			return ack{}, &RefusedError{Peer: u.to, Reason: RefusedIncarnation, Key: "incarnation at " + u.to.Addr.String(),
				Ours: hexText(u.to.Inc), Theirs: hexText(a.from.Inc)}
		}
		return a, nil
	case wire.KindHelloRefuse:
		e, err := parseRefusal(body)
		if err != nil {
			return ack{}, fmt.Errorf("refusal by %s: %w", u.to, err)
		}
		e.Peer = u.to
		return ack{}, e
	}
	return ack{}, fmt.Errorf("answer of %s to the hello: %w: frame kind %s", u.to, ErrProtocol, kind)
}
