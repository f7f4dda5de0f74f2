// Bare links: envelope frames over a transport's link, without a node, a route or an entity at either end.

package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/wire"
)

// LinkCluster is the name of the cluster that certificates of both ends of a bare link must name.
const LinkCluster = "bench"

// linkConfig is the configuration of both ends; the bounds are the defaults, which a node's links have too. Of protect
// it takes certificate, key and authorities, from files.
func linkConfig(protect kith.TLS) transport.Config {
	files := trust.TLS{CertFile: protect.CertFile, KeyFile: protect.KeyFile, CAFile: protect.CAFile}
	return transport.Config{TLS: files, Listen: "127.0.0.1:0", Incarnation: uint64(sharedClock()) | 1, Name: LinkCluster,
		ClusterID: 1,
		Birth:     1}
}

// upcalls answers a transport that nobody asks anything else of.
type upcalls struct {
	frames atomic.Uint64
	room   chan struct{} // capacity 1: a full link has room, and one producer is to try
}

func newUpcalls() *upcalls { return &upcalls{room: make(chan struct{}, 1)} }

// Data counts frames and consumes them.
func (u *upcalls) Data(c *transport.InConn, frames []byte) {
	all, n := len(frames), uint64(0)
	for len(frames) > 0 {
		_, size, err := wire.Split(frames, wire.LaneData, wire.MaxFrameLimit)
		if err != nil || size == 0 {
			break // cannot be: the transport has checked them
		}
		frames = frames[size:]
		n++
	}
	u.frames.Add(n)
	c.Consumed(all)
}

// MailboxRoom wakes none: nothing here waits for mailboxes.
func (u *upcalls) MailboxRoom(*transport.Link, wire.Full) {}

// LinkRoom wakes a producer; one that finds room wakes the next, as callers of a node do.
func (u *upcalls) LinkRoom(*transport.Link) {
	select {
	case u.room <- struct{}{}:
	default:
	}
}

// Control, PassDone, LinkUp, LinkDown, Undelivered and PeerRefused have nothing to do here.
func (u *upcalls) Control(kith.ID, wire.Kind, []byte, time.Duration) {}

// PassDone does nothing.
func (u *upcalls) PassDone(*loop.Loop) {}

// LinkUp does nothing.
func (u *upcalls) LinkUp(kith.ID, wire.Lane, int) {}

// LinkDown does nothing.
func (u *upcalls) LinkDown(kith.ID, wire.Lane, int, uint64, error) {}

// Undelivered does nothing: drain has waited for what can leave.
func (u *upcalls) Undelivered(kith.ID, []byte, error) {}

// LinkLost does nothing.
func (u *upcalls) LinkLost(kith.ID) {}

// LinkSilent does nothing.
func (u *upcalls) LinkSilent(kith.ID, wire.Lane, int, time.Duration) {}

// PeerRefused does nothing: the link then returns the refusal.
func (u *upcalls) PeerRefused(*hello.RefusedError) {}

// Unreached takes failures at contact points; there are none here.
func (u *upcalls) Unreached(addr kith.Addr, err error) {}

// OtherVisited does nothing.
func (u *upcalls) OtherVisited(kith.Addr, uint64, uint64) {}

// LinkSink is the receiving end of a bare link.
type LinkSink struct {
	t  *transport.Transport
	up *upcalls
}

// NewLinkSink listens on a free loopback port, with or without TLS.
func NewLinkSink(protect kith.TLS) (*LinkSink, error) {
	s := &LinkSink{up: newUpcalls()}
	var err error
	if s.t, err = transport.New(linkConfig(protect), s.up); err != nil {
		return nil, fmt.Errorf("link sink: %w", err)
	}
	s.t.Start()
	return s, nil
}

// Addr returns the address and the incarnation that SendLink wants.
func (s *LinkSink) Addr() (addr string, incarnation uint64) {
	id := s.t.Self()
	return id.Addr.String(), id.Inc
}

// Count returns how many frames have come.
func (s *LinkSink) Count() uint64 { return s.up.frames.Load() }

// Close ends the receiving end.
func (s *LinkSink) Close() error {
	s.t.Close()
	return nil
}

// SendLink sends frames of FrameBytes over one link to a LinkSink from so many goroutines for d, and returns how many
// the link accepted once all of them have left this process.
func SendLink(ctx context.Context, addr string, incarnation uint64, producers int, d time.Duration,
	protect kith.TLS) (uint64, error) {
	at, err := kith.ParseAddr(addr)
	if err != nil {
		return 0, fmt.Errorf("link: %w", err)
	}
	up := newUpcalls()
	t, err := transport.New(linkConfig(protect), up)
	if err != nil {
		return 0, fmt.Errorf("link: %w", err)
	}
	t.Start()
	defer t.Close()
	p := &linkRun{link: t.Link(kith.ID{Addr: at, Inc: incarnation}), up: up,
		env: wire.Envelope{Type: 1, Shard: 2, Term: 3, Epoch: 4,
			Payload: make([]byte, PayloadBytes)}}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	context.AfterFunc(ctx, func() { p.stop.Store(true) })
	var wg sync.WaitGroup
	for i := range producers {
		wg.Go(func() { p.produce(ctx, ID(i)) })
	}
	wg.Wait()
	return p.sent.Load(), p.drain()
}

// linkRun is producers on one link.
type linkRun struct {
	link *transport.Link
	up   *upcalls
	env  wire.Envelope
	stop atomic.Bool
	sent atomic.Uint64
}

func (p *linkRun) produce(ctx context.Context, id string) {
	var sent uint64
	defer func() { p.sent.Add(sent) }()
	waited := false
	for !p.stop.Load() {
		p.link.Lock()
		b, err := p.link.Reserve(FrameBytes)
		if err != nil {
			p.link.Unlock()
			select {
			case <-p.up.room: // rung since somebody looked last, so perhaps already: then the next try tells
			case <-ctx.Done():
				return
			}
			waited = true
			continue
		}
		wire.PutPlainEnvelope(b, &p.env, id)
		wake := p.link.Commit()
		p.link.Unlock()
		if wake {
			p.link.Wake(nil)
		}
		sent++
		if waited {
			waited = false
			p.up.LinkRoom(nil)
		}
	}
}

// drainTime bounds how long what was accepted may take to leave.
const drainTime = 5 * time.Second

func (p *linkRun) drain() error {
	for end := time.Now().Add(drainTime); ; time.Sleep(time.Millisecond) {
		p.link.Lock()
		n, _ := p.link.Backlog()
		p.link.Unlock()
		switch {
		case n == 0:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("link: %d bytes did not leave within %v", n, drainTime)
		}
	}
}
