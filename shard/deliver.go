// Delivery: which mail is admitted, which is invalid, which is stale, and which part of the machine takes it.

package shard

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// readMessage decodes the body of a frame. The message shares no memory with it.
func readMessage(k wire.Kind, body []byte) (message, error) {
	r := wire.NewReader(k, body)
	var l message
	switch k {
	case wire.KindRegister:
		l = readRegister(&r)
	case wire.KindReportWanted:
		l = readReportWanted(&r)
	case wire.KindRegisterAck, wire.KindDrainRegion, wire.KindDrainDone:
		l = signal{Kind: k, head: readHead(&r)}
	case wire.KindRegisterNak:
		l = readNak(&r)
	case wire.KindAskHomes:
		l = readAsk(&r)
	case wire.KindHomes, wire.KindHomesSince:
		l = readHomes(k, &r)
	case wire.KindMoveShards, wire.KindMoveAborted, wire.KindShardsMoved:
		l = readPlacement(k, &r)
	case wire.KindMoveShard:
		l = readMoveShard(&r)
	case wire.KindTransfer, wire.KindTransferStates:
		l = readTransfer(k, &r)
	case wire.KindTransferAck:
		l = readTransferAck(&r)
	case wire.KindMoveCost:
		l = readMoveCost(&r)
	case wire.KindHostKept:
		l = readHostKept(&r)
	case wire.KindMoveWanted:
		l = readMoveWanted(&r)
	case wire.KindMoveAnswer:
		l = readMoveAnswer(&r)
	case wire.KindShardLoads, wire.KindShardStrains:
		l = readShardLoads(k, &r)
	case wire.KindHostShards, wire.KindShardsStarted, wire.KindStopShards, wire.KindShardsStopped, wire.KindHomesGone,
		wire.KindHomesGoneAck:
		l = readOwnership(k, &r)
	case wire.KindLeaveNotice, wire.KindLeaveNoticeAck:
		l = readLeaveNotice(k, &r)
	case wire.KindConfirmOwner:
		l = readConfirmOwner(&r)
	case wire.KindConfirmAck:
		l = readOwnerConfirmed(&r)
	default:
		r.Fail(wire.ErrBadKind)
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return l, nil
}

// admits reports whether mail may be looked at: this node is a member, the sender is one (a leave notice is taken from
// a lost one too: it only frees), and both speak of the same cluster.
func (m *Machine) admits(from peer.ID, l message) bool {
	if m.view == nil || m.over || from == m.self {
		return false
	}
	if f, ok := l.(leaveNotice); ok {
		return f.Birth == m.view.Birth && (m.live(from) || m.past.lost(from) != nil)
	}
	return headOf(l).Birth == m.view.Birth && m.live(from)
}

func headOf(l message) head {
	if l, ok := l.(interface{ about() head }); ok {
		return l.about()
	}
	return head{}
}

// fromCoordinator reports whether messages of this kind are sent by coordinators.
func fromCoordinator(k wire.Kind) bool {
	switch k {
	case wire.KindReportWanted, wire.KindRegisterAck, wire.KindHomes, wire.KindHostShards, wire.KindStopShards,
		wire.KindHomesGone, wire.KindDrainDone, wire.KindMoveShards, wire.KindMoveShard, wire.KindHomesSince,
		wire.KindHostKept:
		return true
	}
	return false
}

// check returns ErrNonsense for mail that cannot be true. It changes nothing.
func (m *Machine) check(from peer.ID, l message) error {
	h, k := headOf(l), l.kind()
	switch l := l.(type) {
	case confirmOwner:
		return m.checkConfirmation(from, h, k, last(l))
	case ownerConfirmed:
		return m.checkConfirmation(from, h, k, l.Last)
	}
	if fromCoordinator(k) {
		// An up-number never changes, and none that this node knows contradicts the term.
		if mb, ok := m.view.Member(from); ok && mb.UpNumber != 0 && mb.UpNumber != h.Term {
			return fmt.Errorf("%w: %s from %s with term %d, its up-number is %d", ErrNonsense, k, from, h.Term, mb.UpNumber)
		}
	}
	if n, ok := l.(nak); ok && n.Reason == nakTerm {
		if mb, ok := m.view.Member(n.Coordinator); ok && mb.UpNumber != 0 && mb.UpNumber != h.Term {
			return fmt.Errorf("%w: %s gives %s the term %d, its up-number is %d", ErrNonsense, from, n.Coordinator,
				h.Term, mb.UpNumber)
		}
	}
	t := m.types[h.Type]
	if t == nil {
		return nil
	}
	shards := uint32(0)
	if fromCoordinator(k) && !t.region.idle() {
		shards = t.region.settings.Shards
	} else if !fromCoordinator(k) && t.coord != nil {
		shards = t.coord.settings.Shards
	}
	if s := last(l); shards > 0 && uint32(s) >= shards {
		return fmt.Errorf("%w: %s from %s names shard %d of %d", ErrNonsense, k, from, s, shards)
	}
	for _, e := range hosts(l) {
		if e.Fence.Term() != h.Term {
			return fmt.Errorf("%w: %s from %s of term %d under fence %s", ErrNonsense, k, from, h.Term, e.Fence)
		}
	}
	return nil
}

// hosts lists the shards that a message orders to be hosted.
func hosts(l message) []resumed {
	switch l := l.(type) {
	case hostKept:
		return l.Entries
	case ownership:
		if l.Kind == wire.KindHostShards {
			return fresh(l.Entries)
		}
	}
	return nil
}

// last returns the highest shard that a message names; lists are rising. Reports check theirs against their settings.
func last(l message) route.ShardID {
	switch l := l.(type) {
	case ownership:
		if n := len(l.Entries); n > 0 {
			return l.Entries[n-1].Shard
		}
	case confirmOwner:
		if n := len(l.Entries); n > 0 {
			return l.Entries[n-1].Shard
		}
	case ask:
		if n := len(l.Shards); n > 0 {
			return l.Shards[n-1]
		}
	case homes:
		if n := len(l.Entries); n > 0 {
			return l.Entries[n-1].Shard
		}
	case placement:
		if n := len(l.Entries); n > 0 {
			return l.Entries[n-1].Shard
		}
	case hostKept:
		if n := len(l.Entries); n > 0 {
			return l.Entries[n-1].Shard
		}
	case interface{ shard() route.ShardID }:
		return l.shard()
	}
	return 0
}

// deliver hands a message to the region or the coordinator of its type.
func (m *Machine) deliver(from peer.ID, l message) {
	switch l := l.(type) {
	case leaveNotice:
		m.onLeaveNotice(from, l)
		return
	case confirmOwner:
		m.onConfirmOwner(from, l)
		return
	case ownerConfirmed:
		m.onOwnerConfirmed(from, l)
		return
	}
	h := headOf(l)
	if n, ok := l.(nak); ok {
		m.onNak(n)
		return
	}
	if fromCoordinator(l.kind()) {
		m.toRegion(from, h, l)
		return
	}
	switch l := l.(type) {
	case register:
		m.onRegister(from, l)
		return
	case transfer, transferAck, moveWanted, moveAnswer:
		betweenMembers(m, from, h, l)
		return
	}
	c := m.coordinatorFor(from, h)
	if c == nil {
		return
	}
	switch l := l.(type) {
	case ask:
		c.onAsk(from, l)
	case shardLoads:
		c.client(from).page.Take(l.Entries, l.First, l.Last, m.now-time.Duration(l.Window)*time.Millisecond)
		c.client(from).page.Node = l.Node
	case moveCost:
		c.moves.cost(from, l)
	case signal:
		c.onDrain(from)
	case placement:
		if l.Kind == wire.KindMoveAborted {
			c.moves.aborted(from, l.Entries)
		} else {
			c.moves.moved(from, l)
		}
	case ownership:
		switch l.Kind {
		case wire.KindShardsStarted:
			c.onStarted(from, l.Entries)
		case wire.KindShardsStopped:
			c.onStopped(from, l.Entries)
		case wire.KindHomesGoneAck:
			c.onGoneAck(from, l.Entries)
		}
	}
}

// toRegion takes a coordinator's message if its term is not lower than the promised one.
func (m *Machine) toRegion(from peer.ID, h head, l message) {
	if w, ok := l.(reportWanted); ok {
		if t := m.typ(h.Type); t == nil {
			m.reportNothing(from, w)
		} else if m.hears(t, from, h) {
			m.onReportWanted(t, from, w)
		}
		return
	}
	t := typeOf(m, h.Type)
	if t != nil && !m.hears(t, from, h) {
		return
	}
	if p, ok := l.(placement); ok {
		if t != nil && t.region != nil {
			t.region.hand.park(p) // one that is refused may have sent before
		} else {
			markUnused(p, m)
		}
		return
	}
	if t == nil || t.region.idle() {
		m.answerUnregistered(from, l)
		return
	}
	switch l := l.(type) {
	case signal:
		if l.Kind == wire.KindRegisterAck {
			m.onAck(t, from, h.Term)
		} else if t.region.to == from {
			t.region.drainDone = true
		}
	case homes:
		if h.Term >= t.region.term { // a lower one is that of a coordinator replaced already
			m.onHomes(t, l)
		}
	case moveShard:
		t.region.hand.begin(from, l)
	case hostKept:
		m.onHost(t, from, l.head, l.Entries)
	case ownership:
		switch l.Kind {
		case wire.KindHostShards:
			m.onHost(t, from, l.head, fresh(l.Entries))
		case wire.KindStopShards:
			m.onStop(t, from, l)
		case wire.KindHomesGone:
			m.onGone(t, from, l)
		}
	}
}

// betweenMembers takes what the last owner of a shard and the next one say to each other, moves that a member asks for,
// and the answers to that.
func betweenMembers(m *Machine, from peer.ID, h head, l message) {
	t := typeOf(m, h.Type)
	switch l := l.(type) {
	case transfer:
		if t == nil || t.region.idle() || uint32(l.Shard) >= t.region.slots.Shards() {
			m.post(from, transferAck{head: l.head, held: l.held, Seq: l.Seq, Refused: true})
			return
		}
		t.region.hand.onPart(from, l)
	case moveWanted:
		onMoveWanted(m, from, l)
	case moveAnswer:
		onMoveAnswer(m, from, l)
	case transferAck:
		if t != nil && t.region != nil && uint32(l.Shard) < t.region.slots.Shards() {
			t.region.hand.onAck(from, l)
		}
	}
}

// answerUnregistered answers for a type that is not registered here: nothing of it lives here or is known.
func (m *Machine) answerUnregistered(from peer.ID, l message) {
	switch o := l.(type) {
	case ownership:
		k := wire.KindShardsStopped
		if o.Kind == wire.KindHomesGone {
			k = wire.KindHomesGoneAck
		}
		m.post(from, ownership{Kind: k, head: o.head, Entries: o.Entries})
	case hostKept:
		list := make([]held, len(o.Entries))
		for i, e := range o.Entries {
			list[i] = e.held
		}
		m.post(from, ownership{Kind: wire.KindShardsStopped, head: o.head, Entries: list})
	}
}

// hears reports whether a coordinator's message may be listened to under the promise given; if not it is answered with
// the higher term. Two incarnations never share a term, so the second of an equal one is only counted.
func (m *Machine) hears(t *typ, from peer.ID, h head) bool {
	switch {
	case h.Term < t.promise.term:
		m.refuse(t.id, h.Term, from, 0, route.Fence{})
		m.post(from, m.higher(t))
		return false
	case h.Term == t.promise.term && from != t.promise.to:
		m.refuse(t.id, h.Term, from, 0, route.Fence{})
		return false
	}
	return true
}

// raise gives a promise, or lifts the one given. A coordinator of a lower term on this node ends by it: that is the
// way an old coordinator learns of its successor before its view says so.
func (m *Machine) raise(t *typ, term uint32, to peer.ID, floor uint32) {
	f := route.Fence{}
	if floor > 0 {
		f = route.MakeFence(m.view.Birth, term, floor)
	}
	if term > t.promise.term {
		t.promise = promise{term: term, to: to, floor: f}
		stayAll(t)
	} else if f.Compare(t.promise.floor) > 0 {
		t.promise.floor = f
		stayAll(t)
	}
	if t.coord != nil && t.coord.term < term {
		m.endCoordinator(t)
	}
}

// onNak learns of a higher term, or that this node's settings are not the cluster's.
func (m *Machine) onNak(n nak) {
	t := typeOf(m, n.Type)
	if t == nil {
		return
	}
	if n.Reason == nakTerm {
		if n.Term > t.promise.term {
			m.raise(t, n.Term, n.Coordinator, 0)
			m.retarget(t)
		}
		return
	}
	m.onSettingsNak(t, n)
}

// coordinatorFor returns this node's coordinator of the type if a region's message is meant for its term. A region that
// follows a lower term than this node has promised is sent the higher one.
func (m *Machine) coordinatorFor(from peer.ID, h head) *coordinator {
	t := typeOf(m, h.Type)
	if t == nil {
		return nil
	}
	if t.coord != nil && t.coord.term == h.Term {
		return t.coord
	}
	if h.Term < t.promise.term {
		m.post(from, m.higher(t))
	}
	return nil
}
