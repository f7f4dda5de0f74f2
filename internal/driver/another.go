// Another: going over to another cluster, and being told of a second cluster of the same name (MEM-9, JOIN-1).

package driver

import (
	"context"
	"fmt"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/shutdown"
)

// JoinAnother runs the coordinated shutdown of a node that is alone in its cluster, so that its successor may join
// another cluster. It waits until that is done or ctx ends; when ctx ends after the order was taken, the end goes on.
func (d *Driver) JoinAnother(ctx context.Context) error {
	err := d.call(ctx, membership.JoinAnotherCommand{})
	if err == nil {
		err = d.Shutdown(ctx, shutdown.ReasonRejoin, "")
	}
	if err != nil {
		return fmt.Errorf("kith: join another cluster: %w", err)
	}
	if e := d.err.Load(); e != nil && e.Kind != membership.EndRejoin {
		return e
	}
	return nil
}

// Issued returns the birth of this node's cluster when it may have issued fences under it, because a type was
// registered here; else zero.
func (d *Driver) Issued() uint64 {
	if len(d.regions.Load().list) == 0 {
		return 0
	}
	return d.View().Birth
}
