// Asks of a process: package plane's table of waiters, ridden bare.

package world

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/lifetime"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// asks are the questions of a process.
type asks struct {
	table plane.Asks
	all   []*ask          // by index
	by    *lifetime.Shard // with a handler that begins the next one; nil: none

	cancels lifetime.Cancels // of asks with handlers at work here
	early   plane.EarlyAnswers
}

// ask is one question under way. The process uses it again, under another generation, when it is over.
type ask struct {
	plane.Ask
	state   plane.AskState
	r       *Region
	shard   route.ShardID
	to      peer.ID         // zero while it is parked
	fence   route.Fence     // of the route that it took
	over    time.Duration   // when its time is over
	limit   uint32          // from when on its envelope says that nobody waits; limited
	limited bool            // else its time is so long that its envelope says nothing
	by      *lifetime.Shard // of the handler that asks
	id      string          // of the entity
	done    func(reply []byte, err error)
}

// find returns the waiter of a correlation, which may have been used again since, or nil.
func (t *asks) find(corr uint64) *ask {
	if n := plane.AskIndex(corr); int64(n) < int64(len(t.all)) {
		return t.all[n]
	}
	return nil
}

// begin takes a waiter, and makes one when none is free and there are not as many as may be.
func (t *asks) begin(due int64, most int) *ask {
	if t.table.Full() {
		if len(t.all) == most {
			return nil
		}
		a := &ask{}
		t.table.Add(&a.Ask, uint32(len(t.all)))
		t.all = append(t.all, a)
	}
	a := t.all[t.table.Begin(due).Index()]
	a.state = plane.Waiting(a.Corr())
	return a
}

// end gives a waiter back.
func (t *asks) end(a *ask) {
	t.table.End(&a.Ask)
	a.state, a.r, a.id, a.to, a.fence, a.done, a.by = 0, nil, "", peer.ID{}, route.Fence{}, nil, nil
}

// judge says what the answer of a process to an ask is.
func (t *asks) judge(corr uint64, from peer.ID) plane.Verdict {
	a := t.find(corr)
	if a == nil {
		return plane.Late
	}
	return a.state.Judge(corr, a.to == from || a.r != nil &&
		(a.r.heirs[a.shard].May(from, a.fence) || plane.IsNextHome(a.r.Slot(a.shard), from, a.fence)))
}

// due takes out the answers that were kept and count by now.
func (t *asks) due() []plane.EarlyAnswer {
	return t.early.Look(func(a *plane.EarlyAnswer) plane.Verdict {
		if now := t.find(a.Corr); now != nil {
			return a.Judge(t.judge(a.Corr, a.From), now.fence)
		}
		return plane.Late
	})
}

// waiting counts the asks that wait.
func (t *asks) waiting() (n int) {
	for _, a := range t.all {
		if a.state.Waits() {
			n++
		}
	}
	return n
}

func (p *Process) wheelTick() int64 { return int64(p.clock() / plane.WheelTick) }

// ask is AskWith without what is around it.
func (r *Region) ask(headers []byte, d time.Duration, id string, payload []byte,
	done func([]byte, error)) (a *ask, err error) {
	p := r.Process
	n, err := r.Type.ShardOf(id)
	if err != nil {
		return nil, err
	}
	most := p.World.Config.Data.MaxAsks
	a = p.asks.begin(p.wheelTick()+plane.WheelTicks(d), most)
	if a == nil {
		p.World.Plane.AsksFull++
		return nil, fmt.Errorf("%w: %d on this node", route.ErrAsksFull, most)
	}
	a.by = p.asks.by
	a.r, a.shard, a.id, a.over, a.done = r, n, id, p.clock()+d, done
	a.limit, a.limited = plane.LimitOf(a.Due(), d)
	corr := a.Corr()
	p.World.asked(p, payload, corr, d)
	if _, err := r.SendWith(headers, id, payload, corr); err != nil && a.state == plane.Waiting(corr) {
		p.asks.end(a)
		return nil, err
	}
	p.Later(d+2*plane.WheelTick, func() { p.overdue(a, corr) })
	return a, nil
}

// overdue moves the wheel when the time of an ask is over: it has to be among those that the wheel tells.
func (p *Process) overdue(a *ask, corr uint64) {
	for _, c := range p.asks.table.Advance(p.wheelTick(), nil) {
		if o := p.asks.find(c); o.state == plane.Waiting(c) && o.over > p.clock() {
			p.World.Watcher.Violate(p, "asks", "an ask is over %v before its time", o.over-p.clock())
		}
		p.answered(c, plane.Unanswered(p.asks.find(c).to != peer.ID{}), nil)
	}
	if a.state != plane.Waiting(corr) {
		return
	}
	if late := p.clock() - a.over; late > 2*plane.WheelTick {
		p.World.Watcher.Violate(p, "asks", "an ask still waits %v after its time", late)
		return
	}
	p.Later(plane.WheelTick, func() { p.overdue(a, corr) }) // its clock goes slower than the world's
}

// more gives an envelope the limit of the ask that it is, and headers.
func (p *Process) more(e *wire.Envelope, headers []byte) {
	if a := p.asks.find(e.Corr); a != nil && a.Corr() == e.Corr && a.limited {
		e.Flags |= wire.FlagLimit
		e.Limit = a.limit
	}
	if len(headers) > 0 {
		e.Flags |= wire.FlagHeaders
		e.Headers = headers
	}
}

// waitsFor reports whether an ask is still under way.
func (p *Process) waitsFor(corr uint64) bool {
	a := p.asks.find(corr)
	return a != nil && a.Corr() == corr && a.state == plane.Waiting(corr)
}

// goes notes the process that a question goes to, before it is sent there. Nobody waits for a tell.
func (p *Process) goes(corr uint64, to peer.ID, f route.Fence) {
	if a := p.asks.find(corr); a != nil && a.Corr() == corr {
		a.to, a.fence = to, f
	}
}

// replied takes the answer of another process, which must be the one that was asked, or one to which the shard has
// moved since: numbers can be guessed. Here nobody guesses: what comes of others waits for the news of a move.
func (p *Process) replied(from peer.ID, corr uint64, why route.Reason, payload []byte) {
	a := p.asks.find(corr)
	switch p.asks.judge(corr, from) {
	case plane.Due:
		p.World.Watcher.Refusal(p, a.r.ID, from, why, payload)
		p.answered(corr, why, payload)
	case plane.Late:
		p.World.Plane.LateAnswers++
	case plane.Foreign:
		by := p.World.ProcessOf(from).Region(a.r.ID)
		if by == nil || by.lastHosted[a.shard].Compare(a.fence) <= 0 {
			p.World.Watcher.Violate(p, "asks", "%s answers what %s was asked", p.World.Name(from), p.World.Name(a.to))
		}
		p.asks.early.Keep(&plane.EarlyAnswer{Corr: corr, From: from, Asked: a.fence, Reason: why, Payload: payload})
	}
}

// answered ends a question; an answer that comes late finds nothing. One that says that the home was wrong asks for it
// again, unless the route leads elsewhere by now.
func (p *Process) answered(corr uint64, why route.Reason, payload []byte) {
	a := p.asks.find(corr)
	if a == nil || a.state.Judge(corr, true) != plane.Due {
		p.World.Plane.LateAnswers++
		return
	}
	a.state = a.state.Settled()
	told := plane.RefusalKey{Term: a.fence.Term(), Epoch: a.fence.Epoch(), Reason: why}
	s := a.r.Slot(a.shard)
	if s.State() == flow.Remote && told.Doubts(a.to, s.Home(), s.Fence().Term(), s.Fence().Epoch()) {
		p.post(shard.RefusedCommand{Type: a.r.ID, Shard: a.shard, Term: told.Term, Epoch: told.Epoch})
	}
	b := append([]byte(nil), payload...)
	went := a.to != peer.ID{}
	p.Later(0, func() {
		done := a.done
		if a.state != plane.Waiting(corr).Settled() {
			p.World.Watcher.Violate(p, "asks", "an ask is ended twice")
			return
		}
		err := plane.Ran(why, went, b, route.ReplyError(why, b))
		if route.Unanswered(why) {
			err = &route.UnansweredError{Type: a.r.Type.Name, ID: a.id, Owner: a.to, Err: err}
		}
		p.asks.end(a)
		done(b, err)
	})
}

// failAsks ends the questions that pick names.
func (p *Process) failAsks(pick func(*ask) bool, why route.Reason) {
	for _, a := range p.asks.all {
		if a.state.Waits() && pick(a) {
			p.answered(a.Corr(), why, nil)
		}
	}
}

// lostPeer fails what was asked of a peer that is gone.
func (p *Process) lostPeer(id peer.ID) {
	p.failAsks(func(a *ask) bool { return a.to == id && !plane.HasMoved(a.r.Slot(a.shard), a.fence) }, route.PeerLost)
}

// inherits notes the target of a shard's move: it may answer what was asked before.
func (r *Region) inherits(c shard.RouteChange) {
	if r.heirs == nil {
		r.heirs = map[route.ShardID]*plane.Successors{}
	}
	if r.heirs[c.Shard] == nil {
		r.heirs[c.Shard] = &plane.Successors{}
	}
	r.heirs[c.Shard].Add(c.Fence, c.Next)
}
