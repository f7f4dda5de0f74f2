// A few nodes with the mail between them, on one clock, for tests of the composition.

package node

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/contract"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// end is one node with what its effects asked for.
type end struct {
	id     peer.ID
	n      *Node
	view   *membership.View
	orders []Suspend
	lease  []LeaseOp
	told   []membership.Event // of the gate
	asleep bool
	queue  []peer.Mail // To is the sender

	onRoute func(shard.RouteChange)
}

// A machine keeps the contract of all machines.
var _ contract.Machine[any, Effects] = (*Node)(nil)

type wires struct {
	t     *testing.T
	now   time.Duration
	nodes []*end

	tap     func(peer.Mail) bool     // false: the mail is refused
	refused func(e *end, to peer.ID) // called for that
}

func seedsOf(w *wires) (list []peer.Addr) {
	for _, e := range w.nodes {
		list = append(list, e.id.Addr)
	}
	return list
}

func up(v *membership.View, n int) bool {
	if v == nil || len(v.Members) != n {
		return false
	}
	for _, m := range v.Members {
		if m.Status != membership.Up {
			return false
		}
	}
	return true
}

// drain carries out the effects of a node's last verb.
func (w *wires) drain(e *end) {
	var out Effects
	contract.Drain(w.t, e.n, &out, "out")
	if out.View != nil {
		e.view = out.View
	}
	if out.Suspend != nil {
		e.orders = append(e.orders, *out.Suspend)
	}
	e.lease = append(e.lease, out.Lease...)
	e.told = append(e.told, ofGate(out.Events)...)
	for _, r := range out.Routes {
		if e.onRoute != nil {
			e.onRoute(r)
		}
	}
	var refused []peer.ID
	for _, m := range out.Mail {
		if w.tap != nil && !w.tap(m) {
			refused = append(refused, m.To)
			continue
		}
		for _, to := range w.nodes {
			if to.id.Addr == m.To.Addr && (m.To.Inc == 0 || to.id == m.To) {
				to.queue = append(to.queue, peer.Mail{To: e.id, Kind: m.Kind, Body: slices.Clone(m.Body)})
			}
		}
	}
	for _, to := range refused {
		w.refused(e, to)
		w.drain(e)
	}
}

// run lets time pass until done, at most limit, a millisecond for each message.
func (w *wires) run(limit time.Duration, done func() bool) {
	w.t.Helper()
	stop := w.now + limit
	for !done() && w.now < stop {
		w.now += time.Millisecond
		for _, e := range w.nodes {
			if !e.asleep {
				w.step(e)
			}
		}
	}
}

func (w *wires) step(e *end) {
	list := e.queue
	e.queue = nil
	for _, m := range list {
		if m.Kind == wire.KindHeartbeat {
			ack, err := wire.AnswerHeartbeat(nil, m.Body, 0)
			require.NoError(w.t, err)
			for _, to := range w.nodes {
				if to.id == m.To {
					to.queue = append(to.queue, peer.Mail{To: e.id, Kind: wire.KindHeartbeatAck, Body: ack})
				}
			}
			continue
		}
		require.NoError(w.t, e.n.Handle(w.now, w.now, m.To, m.Kind, m.Body))
		w.drain(e)
	}
	if at, ok := e.n.Next(); ok && at <= w.now {
		e.n.Tick(w.now)
		w.drain(e)
	}
}
