// Bulk: the sending side of the bulk connection to one peer. One goroutine dials it and writes, a second reads what
// comes back; there is none while nothing is to be sent.

package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/stats"
	"github.com/kith-io/kith/wire"
)

// Bulk sends large messages to one peer. It lives until the peer is forgotten. All methods are safe for concurrent use.
type Bulk struct {
	t      *Transport
	to     peer.ID
	ctx    context.Context
	cancel context.CancelFunc
	kick   chan struct{} // capacity 1: the writer has something to look at

	mu         sync.Mutex
	s          *flow.BulkSender
	dead       error // forgotten or closed, for ever
	running    bool  // the goroutine
	up         bool
	secure     *trust.Conn // of the connection that stands, if it has TLS
	generation uint32
	failures   int

	sock    net.Conn // of the connection that stands
	silence silence
	reviver bool     // a goroutine dials because it is silent
	spare   net.Conn // what that has dialled, in its place
	why     error    // why it was closed
}

// Bulk returns the sending side of large messages to a peer; it dials when something is to be sent. The same identity
// gives the same one until it is forgotten. One that cannot be refuses Send.
func (t *Transport) Bulk(id peer.ID) *Bulk {
	err := ErrNoIncarnation
	if id.Addr == t.self.Addr {
		err = ErrSelf
	} else if id.Inc != 0 {
		var r *remote
		if r, err = t.lockedRemote(id); err == nil {
			defer t.mu.Unlock()
			if r.bulk.Load() == nil {
				r.bulk.Store(newBulk(t, id))
			}
			return r.bulk.Load()
		}
	}
	b := newBulk(t, id)
	b.dead = err
	b.cancel()
	return b
}

func newBulk(t *Transport, to peer.ID) *Bulk {
	b := &Bulk{t: t, to: to, kick: make(chan struct{}, 1), s: flow.NewBulkSender(to, t.cfg.BulkChunk, t.cfg.BulkStall)}
	b.ctx, b.cancel = context.WithCancel(t.ctx)
	return b
}

// Send queues a transfer. From here on its payload is read, under the Bulk's own lock, until BulkOver or Cancel.
// Errors, after which nothing has changed: *flow.BulkFullError, ErrForgotten, ErrClosed, ErrSelf, ErrNoIncarnation,
// ErrBusy.
func (b *Bulk) Send(x *flow.BulkTransfer) error {
	b.mu.Lock()
	if b.dead != nil {
		b.mu.Unlock()
		return b.dead
	}
	if err := b.s.Add(b.t.cfg.Now(), x); err != nil {
		b.mu.Unlock()
		return err
	}
	start := !b.running
	b.running = true
	b.mu.Unlock()
	if start {
		if b.t.spawn(b.run) {
			return nil
		}
		b.mu.Lock()
		b.running = false
		b.s.Cancel(x)
		b.mu.Unlock()
		return ErrClosed
	}
	b.poke()
	return nil
}

// Cancel ends a transfer and reports whether it was under way: then BulkOver is not called for it any more. Its payload
// is not read when Cancel has returned.
func (b *Bulk) Cancel(x *flow.BulkTransfer) bool {
	b.mu.Lock()
	ok := b.s.Cancel(x)
	b.mu.Unlock()
	if ok {
		b.poke()
	}
	return ok
}

func (b *Bulk) poke() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// run dials and writes until nothing is left to be sent for a while.
func (b *Bulk) run() {
	var next net.Conn // that follows one that was made anew
	for b.wanted() {
		nc, generation := next, b.numbered()
		if next = nil; nc == nil {
			var ok bool
			if generation, ok = b.pause(); !ok {
				continue
			}
			var err error
			nc, _, err = b.t.open(b.ctx, opening{to: b.to, lane: wire.LaneBulk, generation: generation,
				speak: b.t.cfg.versions, via: b.takeSpare()})
			if err != nil {
				b.failed(err)
				continue
			}
		}
		b.t.cfg.Logger.Debug("connected", "peer", b.to, "lane", wire.LaneBulk, "generation", generation)
		var err error
		next, err = b.carry(nc, generation)
		b.t.cfg.Logger.Debug("connection lost", "peer", b.to, "lane", wire.LaneBulk, "error", err)
	}
	if next != nil {
		_ = next.Close()
	}
}

// wanted reports whether there is something to be sent; if not, the goroutine ends.
func (b *Bulk) wanted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dead == nil && b.ctx.Err() == nil && !b.s.Idle() {
		return true
	}
	b.running = false
	if b.spare != nil {
		_ = b.spare.Close()
		b.spare = nil
	}
	return false
}

// pause waits out the back-off and numbers the next connection; false when it was cut short.
func (b *Bulk) pause() (generation uint32, ok bool) {
	b.mu.Lock()
	wait := b.t.cfg.backoff(b.failures)
	if b.spare != nil {
		wait = 0
	}
	b.mu.Unlock()
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-b.ctx.Done():
			return 0, false
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.generation++
	return b.generation, true
}

// failed notes an attempt that failed. A refusal for good fails what waits.
func (b *Bulk) failed(err error) {
	b.t.count.dialsFailed.Add(1)
	b.t.cfg.Logger.Debug("dial failed", "peer", b.to, "lane", wire.LaneBulk, "error", err)
	var refused *hello.RefusedError
	var over []*flow.BulkTransfer
	b.mu.Lock()
	b.failures++
	if errors.As(err, &refused) && refused.Reason.ForGood() {
		over = b.s.FailAll(nil)
	}
	b.mu.Unlock()
	reason := route.PeerLost
	if refused != nil && refused.Reason == hello.RefusedVersion {
		reason = route.TooLarge // the peer's version takes none
	}
	b.tell(over, reason, err)
}

func (b *Bulk) tell(over []*flow.BulkTransfer, reason route.Reason, err error) {
	for _, x := range over {
		b.t.cfg.Bulk.BulkOver(x, flow.BulkEnd{Reason: reason}, err)
	}
}

// carry serves one connection until it breaks or has had nothing to do for bulkIdle. next is one that follows it.
func (b *Bulk) carry(nc net.Conn, generation uint32) (next net.Conn, err error) {
	trust.Unbound(nc)
	stop := context.AfterFunc(b.ctx, func() { _ = nc.Close() })
	defer stop()
	renewal := bulkRenewal{t: b.t}
	renewal.secure, _ = nc.(*trust.Conn)
	if renewal.secure != nil {
		renewal.secure.SetAnew(true)
	}
	b.mu.Lock()
	dead := b.dead
	if dead == nil {
		b.s.Connected(b.t.cfg.Now(), generation)
		b.up, b.secure, b.sock, b.silence, b.why = true, renewal.secure, nc, silence{}, nil
		b.failures++ // until something is heard
	}
	b.mu.Unlock()
	if dead != nil {
		_ = nc.Close()
		return nil, dead
	}
	over := make(chan error, 1)
	go func() { over <- b.read(nc) }()
	err = b.write(nc, &renewal, over)
	_ = nc.Close()
	if why := <-over; err == nil {
		err = why
	}
	b.mu.Lock()
	b.up, b.secure, b.sock = false, nil, nil
	if b.why != nil {
		err = b.why
	}
	lost := b.s.Broken(nil)
	b.mu.Unlock()
	b.tell(lost, route.PeerLost, fmt.Errorf("bulk connection to %s: %w", b.to, err))
	return renewal.next, err
}

// write writes what the sender has to say. over is read again by carry, so what comes by it is put back.
func (b *Bulk) write(nc net.Conn, renewal *bulkRenewal, over chan error) error {
	idle := time.NewTimer(bulkIdle)
	defer idle.Stop()
	var out []byte
	for {
		rests := renewal.rests()
		b.mu.Lock()
		b.s.Rest(rests)
		out = b.s.Append(b.t.cfg.Now(), out[:0])
		quiet, rested := b.s.Idle(), b.s.Rested()
		b.mu.Unlock()
		if len(out) > 0 {
			_ = nc.SetWriteDeadline(time.Now().Add(b.t.cfg.BulkStall))
			if _, err := nc.Write(out); err != nil {
				return err
			}
			// Ordinary messages first: a goroutine that waits for a processor gets this one between two chunks.
			runtime.Gosched()
			continue
		}
		if rested && (quiet || renewal.follows(b)) {
			b.t.count.tlsRenewed.Add(1)
			return errRenewed
		}
		if rested {
			continue // as it is
		}
		if quiet {
			out = nil
		}
		idle.Reset(renewal.patience())
		select {
		case <-b.kick:
		case err := <-over:
			over <- err
			return err
		case <-idle.C:
			if quiet {
				return errIdle
			}
		}
	}
}

// read takes the answers of the receiver.
func (b *Bulk) read(nc net.Conn) error {
	r := bufio.NewReaderSize(nc, 512)
	var buf [wire.HeaderSize + 16]byte
	for {
		head := buf[:wire.HeaderSize]
		if _, err := io.ReadFull(r, head); err != nil {
			if trust.IsForged(err) {
				return b.fault(err)
			}
			return err
		}
		if _, _, err := wire.Split(head, wire.LaneBulk, len(buf)); err != nil {
			return b.fault(err)
		}
		h := wire.ParseHeader(head)
		body := buf[wire.HeaderSize:h.Size]
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		b.mu.Lock()
		x, event, end, err := b.s.Handle(b.t.cfg.Now(), h.Kind, body)
		sent, ref := 0, wire.BulkRef{}
		if x != nil {
			sent, ref = x.Sent(), x.Ref()
			b.failures = 0
		}
		b.mu.Unlock()
		if err != nil {
			return b.fault(err)
		}
		up := b.t.cfg.Bulk
		switch event {
		case flow.BulkMayGo:
			b.poke()
			up.BulkMoved(x, sent)
		case flow.BulkIsWhole:
			up.BulkWhole(x, ref)
		case flow.BulkHasEnded:
			b.poke() // another one may begin
			up.BulkOver(x, end, nil)
		}
	}
}

func (b *Bulk) fault(err error) error {
	b.t.fault("protocol", &b.t.count.faultsProtocol, "peer", b.to, "lane", wire.LaneBulk, "error", err)
	return err
}

// tick ends transfers for which nothing moves.
func (b *Bulk) tick() {
	b.mu.Lock()
	over := b.s.Tick(b.t.cfg.Now(), nil)
	b.mu.Unlock()
	if len(over) > 0 {
		b.poke()
		b.tell(over, route.TimedOut, nil)
	}
}

// giveUp fails what waits for a connection.
func (b *Bulk) giveUp() {
	var over []*flow.BulkTransfer
	b.mu.Lock()
	if b.dead == nil && !b.up {
		over = b.s.FailAll(nil)
	}
	b.mu.Unlock()
	b.poke()
	b.over(over, ErrGone)
}

// over tells of transfers that have failed. The upcalls may take a while: nobody waits for them but Close.
func (b *Bulk) over(list []*flow.BulkTransfer, why error) {
	if len(list) == 0 {
		return
	}
	tell := func() { b.tell(list, route.PeerLost, why) }
	if !b.t.spawn(tell) {
		tell()
	}
}

// kill fails everything for ever.
func (b *Bulk) kill(why error) {
	b.mu.Lock()
	if b.dead != nil {
		b.mu.Unlock()
		return
	}
	b.dead = why
	over := b.s.FailAll(nil)
	b.mu.Unlock()
	b.cancel()
	b.over(over, why)
}

func (b *Bulk) count(s *stats.Bulk) {
	b.mu.Lock()
	defer b.mu.Unlock()
	queued, begun := b.s.Underway()
	s.Queued += queued
	s.Begun += begun
	if b.up {
		s.Out++
	}
	st := b.s.Stats()
	s.Sent.Bytes += st.Bytes
	s.Sent.Taken += st.Taken
	s.Sent.Refused += st.Refused
	s.Sent.Lost += st.Lost
	s.Sent.Cancelled += st.Cancelled
	s.Sent.Stalled += st.Stalled
}
