// The gate: while the node is suspended no handler is called (package exec), and no local send is taken (MEM-10).
// Control goroutine.

package driver

import (
	"time"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/route"
)

const reportRunningAfter = time.Second // how long handlers have to return before they are reported

// suspend carries out the node's order to stop.
func (d *Driver) suspend(o *node.Suspend) {
	if o == nil {
		return
	}
	c := &d.control
	if !o.On {
		c.reportAt = 0
		return
	}
	d.exec.Gate.Order()
	c.suspendedAt = d.now()
	c.reportAt = c.suspendedAt + reportRunningAfter
}

// reportRunning tells of handlers that were running when the node suspended itself and have not returned.
func (d *Driver) reportRunning() {
	c := &d.control
	took := d.now() - c.suspendedAt
	c.reportAt = 0
	d.exec.ReportRunning(took)
}

// suspended is the error of a local send while the gate is closed.
func (r *Region) suspended() error {
	if why := plane.Closed(r.d.stopping.Load()); why != route.Stopped {
		return why.Err()
	}
	return r.d.ended()
}
