// Hub: the partitions of one node: what the table wants of them, and which goroutine does it.

package partition

import (
	"context"
	"time"

	table "github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/internal/runtime/footing"
)

// run does what there is to do until the node ends.
func (h *hub) run(ctx context.Context) {
	for {
		wait := time.Duration(lookIdle)
		rows := table.Table(h.door.Table())
		for _, p := range h.list() {
			wait = min(wait, p.step(ctx, rows))
		}
		h.strangers(ctx, rows)
		if !h.lingers {
			h.lingers = h.pool.Linger(ctx, true) == nil
			wait = min(wait, lookBusy)
		}
		if h.node.Draining() {
			h.evacuate(ctx)
			h.letGo(ctx)
			wait = min(wait, lookBusy)
		}
		if h.node.Wait(ctx, wait, h.wake); ctx.Err() != nil || h.node.Err() != nil {
			return
		}
	}
}

// strangers completes what is handed over from here of partitions that this node has not opened: there is nothing.
func (h *hub) strangers(ctx context.Context, rows table.Table) {
	for i := range rows {
		for _, c := range rows[i].Changes {
			if c.From == h.self && !c.Complete && h.find(c.Path) == nil {
				_ = h.door.Complete(ctx, c) // it is tried again
			}
		}
	}
}

// spawn runs f beside its caller, which may hold locks.
func spawn(on footing.Node, f func()) { on.Begin(f) }
