// bulkConn: an accepted bulk connection. One goroutine reads chunks to where they belong, a second writes the answers.

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
	"github.com/kith-io/kith/wire"
)

// bulkConn is an accepted bulk connection of a peer; each peer has at most one.
type bulkConn struct {
	t          *Transport
	from       *remote
	owner      peer.ID // of the share
	id         uint64
	generation uint32
	nc         net.Conn
	kick       chan struct{} // capacity 1: there may be answers
	gone       chan struct{} // closed when nothing of it is left

	mu sync.Mutex
	r  *flow.BulkReceiver
}

// welcomeBulk takes a bulk connection after its hello was judged: in place of an older one, which ends with what it
// carried.
func (t *Transport) welcomeBulk(nc net.Conn, h *hello.Hello) error {
	if t.cfg.Bulk == nil {
		return &hello.RefusedError{Reason: hello.RefusedSetting, Key: "large messages", Ours: "on", Theirs: "off"}
	}
	owner := t.cfg.Share(h.From)
	r, err := t.lockedRemote(h.From)
	if err != nil {
		return unknownPeer(h, err)
	}
	if refusal := r.bond.Admits(h, trust.NameOf(nc), r.stands(), t.cfg.Now()); refusal != nil {
		t.mu.Unlock()
		return refusal
	}
	old := r.bulkIn
	if old != nil && !h.Succeeds(old.generation) {
		t.mu.Unlock()
		return &hello.RefusedError{Reason: hello.RefusedStale}
	}
	c := &bulkConn{t: t, from: r, owner: owner, generation: h.Generation, nc: nc, kick: make(chan struct{}, 1),
		gone: make(chan struct{})}
	c.id = t.bulk.add(c)
	c.r = flow.NewBulkReceiver(owner, c.id, t.cfg.BulkWindow, t.cfg.MaxBulk, t.cfg.BulkStall, &t.bulk)
	r.bulkIn = c
	r.bond.Bind(h, trust.NameOf(nc), t.trust != nil)
	t.mu.Unlock()
	if old != nil {
		_ = old.nc.Close()
		<-old.gone
	}
	t.limit(nc, t.cfg.HelloTimeout)
	if err = t.letIn(nc, h); err == nil {
		_ = nc.SetDeadline(time.Time{})
		trust.Unbound(nc)
		if t.spawn(c.serve) {
			return nil
		}
		err = ErrClosed
	}
	c.over()
	return err
}

// serve reads the connection until it ends.
func (c *bulkConn) serve() {
	stop := context.AfterFunc(c.t.ctx, func() { _ = c.nc.Close() })
	defer stop()
	written, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		c.write(ended)
	}()
	err := c.read()
	_ = c.nc.Close()
	close(ended)
	<-written
	broken := (*wire.Error)(nil)
	if errors.As(err, &broken) || errors.Is(err, flow.ErrBulkProtocol) || trust.IsForged(err) {
		c.t.fault("protocol", &c.t.count.faultsProtocol, "peer", c.from.id, "lane", wire.LaneBulk, "error", err)
	}
	c.t.cfg.Logger.Debug("peer's connection closed", "peer", c.from.id, "lane", wire.LaneBulk, "error", err)
	c.over()
}

// over drops what the connection carried, and lets a successor begin.
func (c *bulkConn) over() {
	c.mu.Lock()
	c.r.Broken()
	st := c.r.Stats()
	c.mu.Unlock()
	c.t.bulk.remove(c, st)
	c.t.bulk.turns()
	c.t.removeBulk(c)
	close(c.gone)
}

// removeBulk takes a connection that is over out of its peer's entry.
func (t *Transport) removeBulk(c *bulkConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.from.bulkIn == c {
		c.from.bulkIn = nil
		c.from.left()
	}
	if r := c.from; len(r.in) == 0 && r.link(0) == nil && r.ctl.Load() == nil && !r.bulky() && t.remotes[r.id] == r {
		delete(t.remotes, r.id)
	}
}

func (c *bulkConn) read() error {
	r := bufio.NewReaderSize(c.nc, 4<<10)
	var head [wire.BulkChunkHead]byte
	var body [64]byte
	for {
		if _, err := io.ReadFull(r, head[:wire.HeaderSize]); err != nil {
			return err
		}
		if _, _, err := wire.Split(head[:wire.HeaderSize], wire.LaneBulk, wire.MaxBulkFrame); err != nil {
			return err
		}
		h := wire.ParseHeader(head[:])
		if h.Kind == wire.KindBulkChunk {
			if h.Size < wire.BulkChunkHead {
				return &wire.Error{Kind: h.Kind, Err: wire.ErrTooSmall}
			}
			if _, err := io.ReadFull(r, head[wire.HeaderSize:]); err != nil {
				return err
			}
			if err := c.chunk(r, head[:]); err != nil {
				return err
			}
			// Ordinary messages first: a goroutine that waits for a processor gets this one between two chunks.
			runtime.Gosched()
			continue
		}
		b := body[:h.Size-wire.HeaderSize]
		if _, err := io.ReadFull(r, b); err != nil {
			return err
		}
		if err := c.frame(h.Kind, b); err != nil {
			return err
		}
	}
}

// frame takes a begin or an abort.
func (c *bulkConn) frame(k wire.Kind, body []byte) error {
	switch k {
	case wire.KindBulkBegin:
		b, err := wire.ParseBulkBegin(body)
		if err != nil {
			return err
		}
		end := c.t.cfg.Bulk.BulkBegin(c.from.id, &b)
		c.mu.Lock()
		err = c.r.Begin(c.t.cfg.Now(), b, end)
		c.mu.Unlock()
		c.poke()
		return err
	case wire.KindBulkAbort:
		n, err := wire.ParseBulkNumber(k, body)
		if err != nil {
			return err
		}
		c.mu.Lock()
		err = c.r.Abort(n)
		c.mu.Unlock()
		c.t.bulk.turns()
		return err
	}
	return fmt.Errorf("%w: %s on an accepted connection", flow.ErrBulkProtocol, k)
}

// chunk reads a part of a payload to where it belongs.
func (c *bulkConn) chunk(r *bufio.Reader, head []byte) error {
	number, n, err := wire.ParseBulkChunk(head)
	if err != nil {
		return err
	}
	c.mu.Lock()
	wants := c.r.Wants(number)
	c.mu.Unlock()
	if wants > 0 {
		buf := make([]byte, wants) // this may take a while: not under the lock
		c.mu.Lock()
		c.r.Provide(number, buf)
		c.mu.Unlock()
	}
	c.mu.Lock()
	dst, err := c.r.Chunk(number, n)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if dst == nil {
		_, err = r.Discard(n)
		return err
	}
	if _, err := io.ReadFull(r, dst); err != nil {
		return err
	}
	c.mu.Lock()
	whole := c.r.Filled(c.t.cfg.Now(), number, n)
	c.mu.Unlock()
	if whole {
		c.reply(number)
	}
	c.poke()
	return nil
}

// reply hands over a message that is whole, if it is a reply; all others wait for their envelope.
func (c *bulkConn) reply(number uint32) {
	c.mu.Lock()
	if !c.r.IsReply(number) {
		c.mu.Unlock()
		return
	}
	b, payload, ok := c.r.Take(number)
	c.mu.Unlock()
	if ok {
		c.t.cfg.Bulk.BulkReply(c.from.id, b.Corr, payload)
		c.end(number, flow.BulkEnd{})
		c.t.bulkFree(c.owner, int(b.Size))
	}
}

// end tells the sender of a message what became of it.
func (c *bulkConn) end(number uint32, end flow.BulkEnd) {
	c.mu.Lock()
	c.r.End(number, end)
	c.mu.Unlock()
	c.t.bulk.turns()
	c.poke()
}

// admitted says that there is room for a message that waited.
func (c *bulkConn) admitted(number uint32, n int) {
	c.mu.Lock()
	c.r.Admitted(c.t.cfg.Now(), number, n)
	c.mu.Unlock()
	c.poke()
}

// tick ends messages of which nothing came for too long.
func (c *bulkConn) tick() {
	c.mu.Lock()
	c.r.Tick(c.t.cfg.Now())
	c.mu.Unlock()
	c.t.bulk.turns()
	c.poke()
}

func (c *bulkConn) poke() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// write writes answers until the reader has ended. When that fails the connection is closed, which ends the reader.
func (c *bulkConn) write(ended <-chan struct{}) {
	var out []byte
	for {
		select {
		case <-c.kick:
		case <-ended:
			return
		}
		c.mu.Lock()
		out = c.r.AppendAnswers(out[:0])
		c.mu.Unlock()
		if len(out) == 0 {
			continue
		}
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.t.cfg.BulkStall))
		if _, err := c.nc.Write(out); err != nil {
			_ = c.nc.Close()
			return
		}
	}
}
