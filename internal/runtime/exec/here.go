// Here: the way of this node's own messages to a host, the same for the three modes: lock, compare the route, send.

package exec

import (
	"time"
	"unsafe"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Lock locks what orders the messages of this node to the host. Under it a sender compares the route once more; then it
// calls Send, or Unlock. It returns the time for Send, that of the last tick: a shard that has seen a later one goes by
// that, and its runs look at the clock.
func (h *Host) Lock() (now time.Duration) {
	if h.queue != nil {
		h.queue.mu.Lock()
		return 0
	}
	now = h.x.Clock.Ticked()
	h.mu.Lock()
	return now
}

// Unlock gives the lock up; nothing was sent.
func (h *Host) Unlock() {
	if h.queue != nil {
		h.queue.mu.Unlock()
		return
	}
	h.mu.Unlock()
}

// Tell is Send for a message that is no ask and has no headers, as most are: it is written straight into the queue of a
// worker or loop, and given straight to the shard of a Blocking type. sh is the host's shard: the host, which is cold,
// has it in another line of memory than the rest.
func (h *Host) Tell(now time.Duration, sh route.ShardID, hash uint64, id string, payload []byte) route.Reason {
	if h.queue != nil {
		b := h.queue.reserve(wire.EnvelopeSize + len(id) + len(payload))
		if b == nil {
			h.queue.mu.Unlock()
			return route.QueueFull
		}
		var env wire.Envelope
		env.Type, env.Shard, env.Term, env.Epoch = uint32(h.t.id), uint32(sh), h.term, h.epoch
		env.Payload = payload
		wire.PutPlainEnvelope(b, &env, id) // inlined
		h.queue.unlock()
		return route.OK
	}
	var m entity.Message // field by field: a literal is built elsewhere and copied
	m.Hash, m.ID, m.Payload = hash, bytesOf(id), payload
	reason := h.sh.Deliver(now, &m)
	p := &h.x.pool
	p.run(h)
	p.note(h)
	h.mu.Unlock()
	if reason != route.OK {
		h.t.countRefused(reason)
	}
	return reason
}

// Send takes a message of this node to the entity id, which it copies, and gives the lock up. hash is that of the id,
// zero when it is not known. What it returns is route.OK, route.QueueFull for a worker or loop, or what the shard of a
// Blocking type says, which is counted. What a worker or loop refuses later goes to Needs.Refused.
func (h *Host) Send(now time.Duration, env *wire.Envelope, hash uint64, id string) route.Reason {
	if h.queue != nil {
		if !h.queue.appendHere(env, id) {
			return route.QueueFull
		}
		return route.OK
	}
	env.ID = bytesOf(id)
	return h.take(now, nil, env, hash, tellCaller, nil)
}

// Forward takes a message of this node that waited for the route: f is its whole frame, env what is in it. It is false
// when there is no room just now. A reason other than route.OK is that of the shard of a Blocking type; the caller
// reports it.
func (h *Host) Forward(env *wire.Envelope, f []byte) (reason route.Reason, ok bool) {
	if h.queue != nil {
		return route.OK, h.queue.appendFrame(f)
	}
	now := h.x.Clock.Now()
	h.mu.Lock()
	return h.take(now, nil, env, 0, tellDrain, nil), true
}

// bytesOf views a string as bytes that are only read.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
