// The end of a node: everything is refused, failed or given up in order, and nothing of it is left running.

package driver

import (
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// handlerPatience is how long the end waits for handlers that are running, and again for hooks.
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

// shutdown ends everything. It is the last thing that the control goroutine does. What was accepted here and is not
// over is abandoned: reported to its asker or sender, and counted.
func (d *Driver) shutdown() {
	why := d.control.ended
	d.log.Info("node ended", "node", d.self, "why", why.Error())
	d.err.Store(why)
	d.mark()
	keepFlight(d, why)
	for id, ok := d.control.removed.Lost(); ok; id, ok = d.control.removed.Lost() {
		d.forget(id) // what links hold for it was lost with it, and is not abandoned with this node
	}
	dropHandedOver(d)
	d.exec.Abandon()
	d.stopping.Store(true)
	d.inbox.close()
	for _, r := range d.regions.Load().list {
		for s := range knownShards(r) {
			d.closeForGood(slotRef{r, s})
		}
	}
	d.failDropped()
	d.exec.DropAll()
	d.exec.Gate.Release(true)
	d.asks.fail(nil, route.Stopped)
	d.room.ringAll()
	d.tellRefusals(true) // handlers may take their time; senders need not wait for them
	behind, left, over := d.stopThreads()
	d.control.leases.end(d.cfg.patience/4, behind, d.log)
	d.control.session.await(d.cfg.patience/4, d.log)
	transport.SayTaken(d.wires, d.cfg.patience/4)
	d.heed()
	d.tellRefusals(true) // the transport flushes what it has before it closes
	d.wires.CloseBut(left)
	hearLast(d)
	lostAtEnd(d)
	d.recorder.finish(recordAfter(why, d.control.yielded, d.View(), d.cfg.node().RecordRole()))
	endLife(d, over, why.Kind == membership.EndLeft)
	awaitFlight(d)
	d.large.fail()
	// What loops and workers began after the first time.
	d.asks.fail(nil, route.Stopped)
	if d.abandoned, d.leaving.lost = d.regions.Load().abandonedSince(d.before, behind); d.abandoned != nil {
		d.log.Warn("messages were abandoned with this node", "error", d.abandoned)
	}
	if d.leaving.lost != nil {
		d.log.Error("states were lost with this node", "error", d.leaving.lost)
	}
	d.tellLast()
	d.events.end()
	d.logged.Flush(logs.FlushTime)
	close(d.done)
}

// dropHandedOver tells of what waits in the node's hands for shards to come here, or for their next owners.
func dropHandedOver(d *Driver) {
	_ = d.control.node.Do(d.now(), shard.EndCommand{}) // a node that has ended has reported all
	var e node.Effects
	d.control.node.Drain(&e)
	untaken(d, e.Untaken)
}

// untaken tells of what was handed over and is handled by nobody, and of states that nobody takes up from here. Asks
// that may be handled all the same get no answer from here: they have a time limit.
func untaken(d *Driver, list []shard.Untaken) {
	for i := range list {
		untakenOf(d, &list[i])
	}
}

func untakenOf(d *Driver, u *shard.Untaken) {
	r := d.regions.Load().byID.At(u.Type)
	if r == nil || uint32(u.Shard) >= r.shards {
		return
	}
	list, states := reads(d, slotRef{r, u.Shard}, u.Left)
	for _, st := range states {
		exec.LoseState(r.hosts, u.Shard, st.ID, entity.ErrStateLeftBehind)
	}
	for i := range list {
		e := &list[i].Envelope
		ask := e.Flags&wire.FlagAsk != 0
		switch {
		case !u.Unsure:
			d.abandon(r, u.Shard, d.self, e.ID, ask)
			if ask {
				_ = askerAt(d, list[i].Asker, e.Corr).Reply(e.Corr, route.Abandoned, nil)
			}
		case !ask:
			d.failed.add(r, u.Shard, cause{peer: d.self, reason: route.LostInFlight}, 1, e.ID)
		}
	}
}

// stopThreads ends ticker, workers and the goroutines of entities. Handlers that do not return are left behind, so many
// are returned. As long as one runs, a call of Type.Hosted too, or a list of remembered entities is read, this process
// is not done with what it owns, which over tells: it is closed when the last has returned. And others must not take
// the port that nobody has for proof that it is dead (ProcessDeathIsProof): left is closed likewise. Nil: nothing was
// left behind, or nobody takes it for proof.
func (d *Driver) stopThreads() (behind int, left, over <-chan struct{}) {
	close(d.tickerStop)
	d.exec.StopWorkers()
	joined := make(chan struct{})
	go func() {
		d.threads.Wait()
		close(joined)
	}()
	began := time.Now()
	patience := time.NewTimer(d.cfg.patience)
	defer patience.Stop()
	select {
	case <-joined:
	case <-patience.C:
		d.log.Error("a worker or a hook does not return: it is left behind", "patience", d.cfg.patience)
	}
	if !d.exec.StopEntities(max(0, d.cfg.patience-time.Since(began))) {
		d.log.Error("handlers do not return: their goroutines are left behind", "patience", d.cfg.patience,
			"entities", d.exec.Busy())
	}
	behind, stopped := d.exec.Settle(max(d.cfg.patience/4, d.cfg.patience-time.Since(began)))
	if behind > 0 {
		d.log.Error("handlers do not return: the node ends without them", "handlers", behind)
	}
	returned := make(chan struct{})
	select {
	case <-joined:
		if behind == 0 && d.exec.Busy() == 0 {
			close(returned)
			return behind, nil, returned
		}
	default:
	}
	if d.cfg.Sharding.ProcessDeathIsProof && (behind > 0 || d.exec.Busy() > 0) {
		d.log.Warn("the port stays taken until the last handler has returned", "node", d.self)
		left = returned
	}
	go func() {
		<-joined
		<-stopped
		for d.exec.Busy() > 0 {
			time.Sleep(behindRest)
		}
		close(returned)
	}()
	return behind, left, returned
}

// behindRest is the pause between two looks at handlers that have not returned, at an end that has not waited for them.
const behindRest = 20 * time.Millisecond

// tellLast calls the embedder's hooks for the last time. One that does not return is left behind.
func (d *Driver) tellLast() {
	told := make(chan struct{})
	go func() {
		defer close(told)
		d.failed.tell(d.now(), true)
		d.exec.TellHook()
	}()
	patience := time.NewTimer(d.cfg.patience)
	defer patience.Stop()
	select {
	case <-told:
	case <-patience.C:
		d.log.Error("a hook does not return: the node ends without it", "patience", d.cfg.patience)
	}
}

// abandonedCount is how many messages of a type were abandoned, and states of its entities lost.
type abandonedCount struct{ tells, asks, states uint64 }

// abandoned returns what was abandoned of each type so far.
func (t *regionTable) abandoned() map[*Region]abandonedCount {
	sums := map[*Region]abandonedCount{}
	for _, r := range t.list {
		sums[r] = abandonedCount{r.count.abandonedTells.Load(), r.count.abandonedAsks.Load(), exec.StatesLost(r.hosts)}
	}
	return sums
}

// abandonedSince returns what was abandoned since then, with how many handlers were left behind, and which states were
// lost; nil for nothing.
func (t *regionTable) abandonedSince(before map[*Region]abandonedCount, behind int) (abandoned, lost error) {
	e, l := &route.AbandonedError{Handlers: behind}, &entity.LostStatesError{}
	now := t.abandoned()
	for _, r := range t.list {
		tells, asks := now[r].tells-before[r].tells, now[r].asks-before[r].asks
		if tells+asks > 0 {
			e.Types = append(e.Types, route.AbandonedType{Type: r.typ.Name, Tells: tells, Asks: asks})
		}
		if n := now[r].states - before[r].states; n > 0 {
			l.Types = append(l.Types, entity.LostStates{Type: r.typ.Name, States: n})
		}
	}
	if len(e.Types) > 0 || behind > 0 {
		abandoned = e
	}
	if len(l.Types) > 0 {
		lost = l
	}
	return abandoned, lost
}

// abandon counts a message that waits here and goes unhandled because this node ends, or its shard was lost, and
// reports it unless its asker gets an answer. at is where it would have gone.
func (d *dispatch) abandon(r *Region, shard route.ShardID, at peer.ID, id []byte, ask bool) {
	if r == nil {
		return
	}
	if ask {
		r.count.abandonedAsks.Add(1)
		return
	}
	r.count.abandonedTells.Add(1)
	d.failed.add(r, shard, cause{peer: at, reason: route.Abandoned}, 1, id)
}
