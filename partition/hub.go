// Hub: the partitions of one node: what the table wants of them, and which goroutine does it.

package partition

import (
	"context"
	"time"

	table "github.com/kith-io/kith/internal/core/partition"
)

// follow makes the hub look when members change.
func (h *hub) follow(ctx context.Context) {
	for range h.node.Events(ctx) {
		h.ping()
	}
}

// run does what there is to do until the node ends.
func (h *hub) run(ctx context.Context) {
	for {
		wait := time.Duration(lookIdle)
		rows := table.Table(h.door.Table())
		for _, p := range h.list() {
			wait = min(wait, p.step(ctx, rows))
		}
		h.strangers(ctx, rows)
		if h.node.Health().Draining {
			h.evacuate(ctx)
			wait = min(wait, lookBusy)
		}
		timer := time.NewTimer(wait)
		select {
		case <-h.door.Changed():
		case <-h.wake:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
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
