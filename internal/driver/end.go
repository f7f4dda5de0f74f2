// The end of a node: everything is refused, failed or given up in order, and nothing of it is left running.

package driver

import (
	"time"

	"github.com/kith-io/kith/internal/hello"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
)

// handlerPatience is how long the end waits for handlers that are running.
const handlerPatience = 5 * time.Second

// refusedAsRemoved hands a refusal because this incarnation was removed to the membership, which knows whether to
// believe it. Control goroutine.
func (d *Driver) refusedAsRemoved(err *hello.RefusedError) {
	if d.control.ended != nil {
		return
	}
	c := membership.ToldRemovedCommand{Peer: err.Peer, Leaving: d.leaving.by != 0, Reason: err.Error()}
	c.Up, c.Lowest, c.Counted = err.Standing()
	// A node that has ended meanwhile needs to know nothing.
	_ = d.command(c)
}

// shutdown ends everything. It is the last thing that the control goroutine does.
func (d *Driver) shutdown() {
	why := d.control.ended
	d.log.Info("node ended", "node", d.self, "why", why.Error())
	d.err.Store(why)
	d.exec.Abandon()
	d.stopping.Store(true)
	d.inbox.close()
	for _, r := range d.regions.Load().list {
		for i := range r.slots {
			d.closeForGood(slotRef{r, route.ShardID(i)})
		}
	}
	d.failDropped()
	d.exec.DropAll()
	d.exec.Gate.Release(true)
	d.asks.fail(nil, route.Stopped)
	d.room.ringAll()
	left := d.stopThreads()
	d.heed()
	d.tellRefusals(true) // the transport flushes what it has before it closes
	d.wires.CloseBut(left)
	d.recorder.finish(recordAfter(why, d.control.yielded, d.View(), d.cfg.node().RecordRole()))
	d.large.fail()
	// What loops and workers began after the first time.
	d.asks.fail(nil, route.Stopped)
	d.failed.tell()
	d.exec.TellLater()
	d.events.end()
	close(d.done)
}

// stopThreads ends ticker, workers and the goroutines of entities. Handlers that do not return are left behind. As long
// as one runs this process is not done with what it owns, and others must not take the port that nobody has for proof
// that it is dead (ProcessDeathIsProof): left is closed when the last has returned. Nil: nothing was left behind, or
// nobody takes it for proof.
func (d *Driver) stopThreads() (left <-chan struct{}) {
	close(d.tickerStop)
	d.exec.StopWorkers()
	joined, behind := make(chan struct{}), false
	go func() {
		d.threads.Wait()
		close(joined)
	}()
	patience := time.NewTimer(handlerPatience)
	defer patience.Stop()
	select {
	case <-joined:
	case <-patience.C:
		behind = true
		d.log.Error("a handler does not return: its worker is left behind", "patience", handlerPatience)
	}
	if !d.exec.StopEntities(handlerPatience) {
		behind = true
		d.log.Error("handlers do not return: their goroutines are left behind", "patience", handlerPatience,
			"entities", d.exec.Busy())
	}
	if !behind || !d.cfg.ProcessDeathIsProof {
		return nil
	}
	d.log.Warn("the port stays taken until the last handler has returned", "node", d.self)
	returned := make(chan struct{})
	go func() {
		<-joined
		for d.exec.Busy() > 0 {
			time.Sleep(controlRest)
		}
		close(returned)
	}()
	return returned
}
