// Names: which process may speak for an incarnation. With TLS it is bound to the name in its certificate, which
// survives renewal; and, with TLS or without, to a token that its node says to this one alone.

package transport

import (
	"fmt"
	"net"
	"time"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// stands reports whether somebody speaks for r now. The transport's lock is held.
func (r *remote) stands() bool {
	for key := range r.in {
		if !hello.IsContact(key.lane, key.number) {
			return true
		}
	}
	return r.bulkIn != nil
}

// left notes that a connection of r has ended. The transport's lock is held.
func (r *remote) left() {
	if !r.stands() {
		r.bond.Left(r.t.cfg.Now())
	}
}

// confirm notes the name of the node that answers at a peer's own address as this incarnation. It weighs more than what
// hellos say: connections in another name end. An error says that the node has another name than before.
func (t *Transport) confirm(id peer.ID, name string) error {
	if t.trust == nil || id.Inc == 0 {
		return nil
	}
	t.mu.Lock()
	r := t.remotes[id]
	if r == nil {
		t.mu.Unlock()
		return nil
	}
	before, displaced, refused := r.bond.Confirm(id, name)
	if refused != nil {
		t.mu.Unlock()
		t.count.tlsFailed[trust.TLSName].Add(1)
		return refused
	}
	var strangers []*InConn
	var bulkIn *bulkConn
	if displaced {
		for _, c := range r.in {
			strangers = append(strangers, c)
		}
		bulkIn, r.bulkIn = r.bulkIn, nil
		clear(r.in)
	}
	t.mu.Unlock()
	if len(strangers) > 0 || bulkIn != nil {
		t.fault("connections in another node's name", &t.count.tlsRefused[trust.TLSName], "peer", id, "certificate", before,
			"at its address", name)
	}
	for _, c := range strangers {
		c.loop.Post(c)
	}
	if bulkIn != nil {
		_ = bulkIn.nc.Close()
	}
	return nil
}

// inquire dials the address of a node when two others come in its name, unless it is known which node answers there.
func (t *Transport) inquire(id peer.ID) {
	t.mu.Lock()
	r := t.remotes[id]
	known := r == nil || r.bond.Sure()
	t.mu.Unlock()
	if known {
		return
	}
	c := r.control()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil && !c.dialing {
		c.inquires = true
		c.ensure()
	}
}

// isAt returns a refusal when the certificate of a dialler must name the host that it says it is at, and does not. It
// is asked again as long as the connection stands.
func (t *Transport) isAt(nc net.Conn, h *hello.Hello) *hello.RefusedError {
	s, ok := nc.(*trust.Conn)
	if !ok || !t.trust.VerifiesHosts() {
		return nil
	}
	host := h.From.Addr.Host()
	if err := s.DemandHost(host); err != nil {
		return &hello.RefusedError{Reason: hello.RefusedHost, Key: "host of the certificate", Ours: host,
			Theirs: err.Error()}
	}
	return nil
}

// reachable returns a refusal for a node if its address leads back here: what is meant for it would never arrive.
func reachable(t *Transport, h *hello.Hello) *hello.RefusedError {
	at := h.From.Addr.String()
	if !t.names.Noted(at) {
		return nil
	}
	return &hello.RefusedError{Reason: hello.RefusedSetting, Key: "advertised address", Ours: at,
		Theirs: fmt.Sprintf("it leads from %s to %s itself", t.self.Addr, t.self.Addr)}
}

// visited tells of a hello that was refused to a node of another cluster: for that, or since it meant the process that
// was here before.
func visited(t *Transport, h *hello.Hello, why *hello.RefusedError) {
	if a := t.acceptor(); h.Lane != wire.LaneControl || !a.Elsewhere(h, why) {
		return
	}
	now, last := int64(t.cfg.Now()), t.visits.told.Load()
	if (last == 0 || now-last >= int64(time.Second)) && t.visits.told.CompareAndSwap(last, now) {
		t.up.OtherVisited(h.From.Addr, h.ClusterID, h.Birth)
	}
}
