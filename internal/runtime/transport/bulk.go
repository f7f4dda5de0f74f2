// Bulk: large messages between nodes. They have connections of their own, which two goroutines each serve: no loop, and
// so no ordinary message, waits for them.

package transport

import (
	"sync"
	"time"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/stats"
	"github.com/kith-io/kith/wire"
)

// bulkIdle is how long a bulk connection stands that carries nothing.
const bulkIdle = 30 * time.Second

// BulkUpcalls is how bulk connections reach the runtime. Calls come from goroutines of the transport, no lock held,
// never after Close has returned. They may take locks for a moment and must not wait.
type BulkUpcalls interface {
	// BulkBegin judges a message or a reply that a peer wants to send: any reason but route.OK refuses it.
	BulkBegin(from peer.ID, b *wire.BulkBegin) flow.BulkEnd
	// BulkReply hands over a whole reply. The payload belongs to the runtime.
	BulkReply(from peer.ID, corr uint64, payload []byte)
	// BulkMoved says how much of a transfer has been sent, each time that its receiver wants more.
	BulkMoved(x *flow.BulkTransfer, sent int)
	// BulkWhole says that the receiver has all of a message: an envelope with this reference may go.
	BulkWhole(x *flow.BulkTransfer, ref wire.BulkRef)
	// BulkOver says once that a transfer is over and its payload not read any more. route.OK: the receiver has taken it.
	// route.PeerLost: its connection broke (err says how), and nobody knows. Any other reason: it was not taken.
	BulkOver(x *flow.BulkTransfer, end flow.BulkEnd, err error)
}

// bulk is what all bulk connections of a node share.
type bulk struct {
	mu    sync.Mutex
	room  flow.BulkRoom
	conns map[uint64]*bulkConn // accepted, by number
	last  uint64
	past  stats.BulkReceived // of those that are gone
}

// Take implements flow.BulkHolder.
func (b *bulk) Take(from peer.ID, k flow.BulkKey, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.room.Take(from, k, n)
}

// Drop implements flow.BulkHolder.
func (b *bulk) Drop(from peer.ID, k flow.BulkKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.room.Drop(from, k)
}

// Give implements flow.BulkHolder. Its caller calls turns when it holds no connection's lock any more.
func (b *bulk) Give(from peer.ID, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.room.Give(from, n)
}

// turns admits the messages that are next. No lock of a connection is held.
func (b *bulk) turns() {
	for {
		b.mu.Lock()
		from, k, n, ok := b.room.Turn()
		c := b.conns[k.Conn]
		if ok && c == nil {
			b.room.Give(from, n)
		}
		b.mu.Unlock()
		if !ok {
			return
		}
		if c != nil {
			c.admitted(k.Number, n)
		}
	}
}

// add numbers an accepted connection.
func (b *bulk) add(c *bulkConn) (number uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	if b.conns == nil {
		b.conns = map[uint64]*bulkConn{}
	}
	b.conns[b.last] = c
	return b.last
}

// remove forgets an accepted connection and keeps what it counted.
func (b *bulk) remove(c *bulkConn, st stats.BulkReceived) {
	b.mu.Lock()
	delete(b.conns, c.id)
	addReceived(&b.past, st)
	b.mu.Unlock()
}

func addReceived(sum *stats.BulkReceived, st stats.BulkReceived) {
	sum.Bytes += st.Bytes
	sum.Taken += st.Taken
	sum.Refused += st.Refused
	sum.Aborted += st.Aborted
	sum.Broken += st.Broken
	sum.Stalled += st.Stalled
	sum.Slow += st.Slow
	sum.Unclaimed += st.Unclaimed
}

// BulkTake hands out the large message that an envelope of a peer stands for, once, when it is there whole. The payload
// belongs to the caller; its bytes count against the peer's share of the node's room until free is called. BulkEnd must
// follow. Nothing is handed out when the message's connection is gone, or it is over.
func (t *Transport) BulkTake(from peer.ID, ref wire.BulkRef) (payload []byte, free func(), ok bool) {
	c := t.bulkFrom(from, ref)
	if c == nil {
		return nil, nil, false
	}
	c.mu.Lock()
	_, payload, ok = c.r.Take(ref.Number)
	c.mu.Unlock()
	return payload, func() { t.bulkFree(c.owner, len(payload)) }, ok
}

// BulkEnd tells the sender of a large message what became of it: route.OK when it was taken, else why not.
func (t *Transport) BulkEnd(from peer.ID, ref wire.BulkRef, end flow.BulkEnd) {
	if c := t.bulkFrom(from, ref); c != nil {
		c.end(ref.Number, end)
	}
}

// bulkFree gives back the room of n bytes that were handed out.
func (t *Transport) bulkFree(owner peer.ID, n int) {
	t.bulk.Give(owner, n)
	t.bulk.turns()
}

// bulkFrom returns the accepted connection that a reference means, nil when it is gone.
func (t *Transport) bulkFrom(from peer.ID, ref wire.BulkRef) *bulkConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.remotes[from]; r != nil && r.bulkIn != nil && r.bulkIn.generation == ref.Generation {
		return r.bulkIn
	}
	return nil
}

// sweepBulk ends what has stalled.
func (t *Transport) sweepBulk(remotes []*remote, now time.Time, late bool) {
	for _, r := range remotes {
		if b := r.bulk.Load(); b != nil {
			b.tick()
			b.heed(now, late)
		}
		t.mu.Lock()
		c := r.bulkIn
		t.mu.Unlock()
		if c != nil {
			c.tick()
		}
	}
}

// bulkStats gathers a snapshot.
func (t *Transport) bulkStats(remotes []*remote) stats.Bulk {
	var s stats.Bulk
	for _, r := range remotes {
		if b := r.bulk.Load(); b != nil {
			b.count(&s)
		}
	}
	t.bulk.mu.Lock()
	s.In, s.Held, s.Waiting, s.Received = len(t.bulk.conns), t.bulk.room.Used(), t.bulk.room.Waiting(), t.bulk.past
	conns := make([]*bulkConn, 0, len(t.bulk.conns))
	for _, c := range t.bulk.conns {
		conns = append(conns, c)
	}
	t.bulk.mu.Unlock()
	for _, c := range conns {
		c.mu.Lock()
		addReceived(&s.Received, c.r.Stats())
		c.mu.Unlock()
	}
	return s
}
