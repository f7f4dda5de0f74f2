// Remotes: other nodes as the data plane sees them, and the way of answers back to them.

package driver

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/core/survey"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/internal/runtime/parcels"
	"github.com/kith-io/kith/internal/runtime/replicas"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// errStranger is the fault of what only members may say.
var errStranger = errors.New("driver: from a node that is no member")

// peerNode is another node: its data connections, and what is refused of it until that is reported.
type peerNode struct {
	d        *peerTable
	id       peer.ID
	number   uint32      // of this entry among all that there were, for plane.AskState; zero: they have run out
	conns    []*peerConn // by number of the connection
	refusals refusals
	listed   atomic.Bool  // stands in links.telling
	notices  atomic.Bool  // it speaks a wire version in which refusals travel in segments
	parted   atomic.Bool  // it was removed, having gone in order: its last answers may be on their way
	homes    atomic.Int64 // shards of all types that live there, as far as this node knows
}

// parting reports whether the node goes in order, or has gone so.
func (n *peerNode) parting() bool {
	m, member := n.d.view().Member(n.id)
	return member && node.LeftGracefully(m.Status, m.Cause) || n.parted.Load()
}

// gone fails what was asked of a member that was removed, unless it went in order: then its last answers may be on
// their way, and what is not answered fails when it is forgotten.
func (t *peerTable) gone(e *membership.Event) {
	n := t.get(e.Member.ID)
	if n == nil {
		return
	}
	if node.LeftGracefully(e.Previous, e.Member.Cause) || node.LeftGracefully(e.Last, e.Member.Cause) {
		n.parted.Store(true)
		return
	}
	t.asks.lose(n, route.PeerLost)
}

// peerConn is one data connection to another node. It is the Origin of asks that are best answered over it: their
// frames came on the loop that owns its link.
type peerConn struct {
	*peerNode
	link   *transport.Link
	source exec.Source // of what came over it; its origin is the remote itself
}

// remoteOf returns the connection that a source is, nil for this node.
func remoteOf(s *exec.Source) *peerConn {
	if s == nil {
		return nil
	}
	return s.Origin.(*peerConn)
}

// of returns the connection of a shard: always the same, so that its messages keep their order. Shards of one worker,
// of which there are as many as the number of workers says, are spread over all connections too.
func (n *peerNode) of(shard route.ShardID) *peerConn { return n.conns[int(shard)%len(n.conns)] }

// Reply answers an ask over the link to the asker.
func (r *peerConn) Reply(corr uint64, reason route.Reason, payload []byte) error {
	if err := r.d.bounds.checkReply(payload); err != nil {
		return err
	}
	if len(payload) > r.d.cfg.MaxPayload {
		return r.replyLarge(corr, payload)
	}
	return r.answer(corr, reason, payload)
}

// answer is Reply for a payload that fits a frame.
func (r *peerConn) answer(corr uint64, reason route.Reason, payload []byte) error {
	l := r.link
	l.Lock()
	if reason != route.OK {
		reason, payload = reason.SpokenWith(l.Version(), payload)
	}
	b, err := l.Reserve(wire.ReplySize + len(payload))
	if err != nil {
		l.Unlock()
		r.d.counts.repliesLost.Add(1)
		return err
	}
	wire.PutReply(b, uint16(reason), corr, payload)
	l.Hurry()
	wake := l.Commit()
	l.Unlock()
	if wake {
		// On the link's own loop this costs no system call: a busy loop looks at its tasks when the pass ends.
		l.Wake(nil)
	}
	return nil
}

// refuse notes a tell of this peer that was refused, to be reported to it.
func (n *peerNode) refuse(k plane.RefusalKey, id []byte) {
	n.refusals.add(k, id)
	n.list()
}

// list queues the node for the next refusal report.
func (n *peerNode) list() {
	if n.listed.CompareAndSwap(false, true) {
		t := n.d
		t.mu.Lock()
		t.telling = append(t.telling, n)
		t.mu.Unlock()
	}
}

// moveWaiters are the callers that wait for the answers to their moves, by nonce.
type moveWaiters struct {
	mu    sync.Mutex
	nonce uint64
	chans map[uint64]chan<- error
}

func (w *moveWaiters) add(answer chan<- error) (nonce uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nonce++; w.chans == nil {
		w.chans = map[uint64]chan<- error{}
	}
	w.chans[w.nonce] = answer
	return w.nonce
}

func (w *moveWaiters) take(nonce uint64) chan<- error {
	w.mu.Lock()
	defer w.mu.Unlock()
	answer := w.chans[nonce]
	delete(w.chans, nonce)
	return answer
}

// offices are what runs beside the control goroutine.
type offices struct {
	surveys  *survey.Office   // questions to all, and theirs
	replicas *replicas.Office // replicated values
	parcels  *parcels.Office  // messages of services to those of other nodes
}

// errNoParcels is why a node is sent none.
var errNoParcels = errors.New("driver: the node speaks an older wire version, or is not known yet")

// sendParcel has the first data connection to a node take a frame of a service, unless half of what it holds waits
// there: the rest is that of messages to entities.
func (t *peerTable) sendParcel(to peer.ID, frame []byte) (again bool, err error) {
	if transport.VersionOf(t.wires, to) < wire.KindParcel.Since() {
		return false, errNoParcels
	}
	l := t.peerNode(to).conns[0].link
	l.Lock()
	if _, all := l.Backlog(); all > t.cfg.LinkBuffer/2 {
		l.Unlock()
		return true, nil
	}
	b, err := l.Reserve(len(frame))
	if err != nil {
		l.Unlock()
		return errors.Is(err, route.ErrLinkFull), err
	}
	copy(b, frame)
	l.Hurry()
	wake := l.Commit()
	l.Unlock()
	if wake {
		l.Wake(nil)
	}
	return false, nil
}

// peerNodes are the entries of a peerTable, under its lock.
type peerNodes struct {
	byID  map[peer.ID]*peerNode
	given uint32 // the last number that one got
}

// peerTable holds the other nodes by identity, and takes what the transport tells of connections to them. There are as
// many as members, and those removed a moment ago. Methods are safe for concurrent use.
type peerTable struct {
	mu sync.Mutex
	peerNodes
	telling []*peerNode  // those with refusals to report
	last    lastWords    // of peers, when this node ends
	ending  *atomic.Bool // it does
	offices
	wanted moveWaiters // for moves that this node has asked for

	log     *slog.Logger
	cfg     *Config
	wires   *transport.Transport
	exec    *exec.Exec
	inbox   *inbox
	asks    *askTable
	large   *largeTable
	routes  *dispatch
	room    *waitLine
	failed  *undeliveredTable
	bounds  *bounds
	counts  *counters
	regions *atomic.Pointer[regionTable]
	strange func(peer.ID, wire.Kind, error) // counts a frame that makes no sense
	view    func() *membership.View
	command func(any) error           // has the node carry out a wish; control goroutine
	removed func(*hello.RefusedError) // takes being refused as removed; control goroutine
}

func (t *peerTable) init(d *Driver) {
	t.log, t.cfg, t.exec, t.inbox, t.asks = d.log, &d.cfg, &d.exec, d.inbox, d.asks
	t.large, t.routes = &d.large, &d.dispatch
	t.room, t.failed, t.bounds, t.counts, t.regions = &d.room, &d.failed, &d.bounds, &d.count, &d.regions
	t.ending = &d.stopping
	t.view, t.command, t.removed, t.strange = d.View, d.command, d.refusedAsRemoved, d.nonsense.note
}

// get returns the node id, nil when it has no entry.
func (t *peerTable) get(id peer.ID) *peerNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// peerNode returns the node id and makes its entry if there is none. One that is forgotten gets dead links, and no
// place in the table: nothing would take it out again.
func (t *peerTable) peerNode(id peer.ID) *peerNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.byID[id]; n != nil {
		return n
	}
	n := &peerNode{d: t, id: id}
	if t.given < plane.MaxAskNode {
		t.given++
		n.number = t.given
	}
	for _, l := range t.wires.Links(id) {
		r := &peerConn{peerNode: n, link: l}
		r.source = exec.Source{ID: id, Origin: r}
		n.conns = append(n.conns, r)
	}
	if n.conns[0].link.Err() == nil {
		if t.byID == nil {
			t.byID = map[peer.ID]*peerNode{}
		}
		t.byID[id] = n
	}
	return n
}

// remote returns the connection to the node id over which messages of a shard go.
func (t *peerTable) remote(id peer.ID, shard route.ShardID) *peerConn {
	return t.peerNode(id).of(shard)
}

// all returns the nodes that have an entry, in any order.
func (t *peerTable) all() []*peerNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.byID))
}

func (t *peerTable) drop(id peer.ID) *peerNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byID[id]
	delete(t.byID, id)
	return n
}

// tellRefusals reports refusals to their senders. The ticker; at the end of the node, over is set, and the control
// goroutine, when nothing can be sent twice any more.
func (t *peerTable) tellRefusals(over bool) {
	t.mu.Lock()
	telling := t.telling
	t.telling = nil
	if over { // also those with a job of the control goroutine that never runs
		telling = slices.AppendSeq(telling, maps.Values(t.byID))
	}
	t.mu.Unlock()
	slices.SortFunc(telling, func(a, b *peerNode) int { return a.id.Compare(b.id) })
	for _, n := range telling {
		if n.notices.Load() && !over && t.inbox.post(func() { t.tellSurely(n) }) {
			continue
		}
		n.listed.Store(false)
		for list := range slices.Chunk(t.takeRefusals(n), plane.MaxRefusals) {
			if err := t.sendRefusals(n, list); err != nil {
				t.untold(n.id, list, err)
			}
		}
		if !over {
			continue
		}
		if words := n.refusals.takeConsumed(); len(words) > 0 { // else it takes what is refused for lost as well
			_ = t.wires.Send(peer.Mail{To: n.id, Kind: wire.KindTaken, Body: flow.AppendTaken(nil, words)})
		}
	}
}

// tellSurely hands what was refused of a node to the courier, which sends it until it has arrived. What finds no room
// there stays gathered, as does what is for one that is no member yet. Control goroutine.
func (t *peerTable) tellSurely(n *peerNode) {
	n.listed.Store(false)
	for list := range slices.Chunk(t.takeRefusals(n), plane.MaxRefusals) {
		again, err := t.notice(n, wire.KindRefusals, plane.AppendRefusals(nil, list, true))
		switch {
		case again:
			n.refusals.giveBack(list)
		case err != nil:
			t.untold(n.id, list, err)
		}
	}
	if words := n.refusals.takeConsumed(); len(words) > 0 {
		if again, _ := t.notice(n, wire.KindTaken, flow.AppendTaken(nil, words)); again {
			n.refusals.say(words...)
		}
	}
}

// notice posts a notice to a node, or lists the node again: what was in it is to be kept then.
func (t *peerTable) notice(n *peerNode, kind wire.Kind, body []byte) (again bool, err error) {
	err = t.command(node.NoticeCommand{Mail: peer.Mail{To: n.id, Kind: kind, Body: body}})
	_, member := t.view().Member(n.id)
	if again = node.NoticeAgain(err, member, t.get(n.id) == n); again {
		n.list()
	}
	return again, err
}

// takeRefusals returns what was refused of a node, with the bounds of this one.
func (t *peerTable) takeRefusals(n *peerNode) []*plane.Refusal {
	list, regions := n.refusals.take(), t.regions.Load()
	for _, e := range list {
		e.Limit = t.bounds.limitOf(regions.byID.At(e.Type), e.Reason)
	}
	return list
}

// untold counts refused messages if their sender does not learn of it, or may not.
func (t *peerTable) untold(to peer.ID, list []*plane.Refusal, why error) {
	n := plane.Counted(list)
	t.counts.refusalsUntold.Add(n)
	t.log.Debug("refusals not told", "peer", to, "messages", n, "error", why)
}

// noticeLost counts what was in a notice that may not have arrived. Control goroutine.
func (t *peerTable) noticeLost(m *peer.Mail) {
	if list, err := plane.ParseRefusals(m.Kind, m.Body); err == nil { // else it is not ours
		t.untold(m.To, list, node.ErrNoPeer)
	}
}

// sendRefusals tells a peer what was refused of it, once: one of an early wire version in its words, and without limits
// one of version 1.
func (t *peerTable) sendRefusals(n *peerNode, list []*plane.Refusal) error {
	if !n.notices.Load() {
		list = plane.SpokenRefusals(list, node.NoticeSince-1)
	}
	err := t.wires.Send(peer.Mail{To: n.id, Kind: wire.KindRefusals, Body: plane.AppendRefusals(nil, list, true)})
	if old := (*transport.VersionError)(nil); errors.As(err, &old) {
		list = plane.SpokenRefusals(list, old.Speaks)
		err = t.wires.Send(peer.Mail{To: n.id, Kind: wire.KindRefused, Body: plane.AppendRefusals(nil, list, false)})
	}
	return err
}

// selfOrigin is the Origin of asks of this node to entities of its own.
type selfOrigin struct{ d *Driver }

// Reply settles the ask. That nobody waits any more is no error, as it is none for an answer over a link.
func (o *selfOrigin) Reply(corr uint64, reason route.Reason, payload []byte) error {
	if err := o.d.bounds.checkReply(payload); err != nil {
		return err
	}
	o.d.asks.conclude(corr, reason, payload)
	return nil
}

// checkReply judges a reply before it goes to the asker.
func (b *bounds) checkReply(payload []byte) error {
	if len(payload) > b.cfg.MaxMessage {
		return b.tooLarge(nil, len(payload))
	}
	return nil
}
