// Transfers: whole states, in pieces when they are long. The receiver asks for each next piece, so that at most one is
// on its way and a heartbeat waits behind no more than that.

package replica

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// transfer is one state on its way.
type transfer struct {
	peer  peer.ID
	id    uint64
	nonce uint64
	e     *entry
	run   []byte // all of it, or what has come
	total int
	at    time.Duration // of the last step
}

func transferOf(list []*transfer, with peer.ID) *transfer {
	if i := slices.IndexFunc(list, func(t *transfer) bool { return t.peer == with }); i >= 0 {
		return list[i]
	}
	return nil
}

// sendState sends a whole state, or its first piece. One that finds others under way is sent in a later round.
func (m *Machine) sendState(o *offer, e *entry, nonce uint64) {
	run, err := e.kind.Append(appendHeld(nil, e.held), e.value)
	if err != nil || len(run) > maxState {
		m.stats.Refused++ // it was written once, and is too long for anybody
		return
	}
	m.lastOut++
	t := &transfer{peer: o.to, id: m.lastOut, nonce: nonce, e: e, run: run, total: len(run), at: m.now}
	if t.total > maxBody {
		if transferOf(m.out, o.to) != nil || len(m.out) >= maxMoves {
			return
		}
		m.out = append(m.out, t)
	}
	o.sent += min(t.total, maxBody)
	m.sendPiece(t, 0)
}

func (m *Machine) sendPiece(t *transfer, offset int) {
	t.at = m.now
	m.send(t.peer, wire.KindReplicaPiece, appendPiece(nil, &piece{nonce: t.nonce, transfer: t.id, name: t.e.name,
		kind: t.e.kind.Name, total: t.total, offset: offset, bytes: t.run[offset:min(offset+maxBody, t.total)]}))
}

// nextPiece sends what a member asks for. That it asks for the end ends the transfer, and there may be more to say.
func (m *Machine) nextPiece(to peer.ID, id uint64, offset int) {
	t := transferOf(m.out, to)
	switch {
	case t == nil || t.id != id || offset > t.total:
	case offset == t.total:
		m.out = slices.DeleteFunc(m.out, func(x *transfer) bool { return x == t })
		m.soon(to)
	default:
		m.sendPiece(t, offset)
	}
}

// piece takes one, and merges the state when it is whole.
func (m *Machine) piece(from peer.ID, p *piece) error {
	e := m.keys[p.name]
	switch {
	case e == nil:
		return nil
	case e.kind.Name != p.kind:
		m.stats.Refused++
		return nil
	case p.offset == 0 && len(p.bytes) == p.total:
		return m.whole(from, e, p.nonce, p.bytes)
	}
	t := transferOf(m.in, from)
	if p.offset == 0 {
		m.in = slices.DeleteFunc(m.in, func(x *transfer) bool { return x == t })
		if len(m.in) >= maxMoves {
			return nil
		}
		t = &transfer{peer: from, id: p.transfer, e: e, total: p.total}
		m.in = append(m.in, t)
	}
	if t == nil || t.id != p.transfer || t.e != e || t.total != p.total || len(t.run) != p.offset {
		return nil // it was given up, or this came twice
	}
	t.run, t.at = append(t.run, p.bytes...), m.now
	m.send(from, wire.KindReplicaNext, appendNext(nil, t.id, len(t.run)))
	if len(t.run) < t.total {
		return nil
	}
	m.in = slices.DeleteFunc(m.in, func(x *transfer) bool { return x == t })
	return m.whole(from, e, p.nonce, t.run)
}

// whole merges a state.
func (m *Machine) whole(from peer.ID, e *entry, nonce uint64, run []byte) error {
	h, text, err := parseState(run)
	var v any
	if err == nil {
		v, err = e.kind.Parse(text)
	}
	if err == nil && h.of(m.self) > e.held.of(m.self) {
		err = errMine
	}
	if err == nil {
		err = m.admits(e, peer.ID{}, 0)
	}
	if err != nil {
		m.stats.Refused++
		return fmt.Errorf("replicated: state of %q: %w", e.name, err)
	}
	if !e.held.covers(h) {
		m.put(e, e.kind.Merge(e.value, v), e.size+len(text))
		for _, k := range h {
			e.held.raise(k.id, k.n)
		}
		m.changed(e)
		m.settle(e)
	}
	if nonce != 0 {
		m.sendHeld(from, &heldFrame{nonce: nonce, mode: wantMissing | isAnswer, list: []keyHeld{{e.name, e.held}}})
	}
	return nil
}
