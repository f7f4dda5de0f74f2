// Refusals: what a process does not take is reported to its senders, and what others say of its own is believed. It
// drives package plane.

package world

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// reportFlush is how long refusals are gathered.
const reportFlush = 50 * time.Millisecond

// refusedOf gathers what is refused of one sender.
type refusedOf struct {
	to   peer.ID
	list plane.Refusals

	words flow.ConsumedCounts // of its connections that are over
}

// refuse counts a message that is not delivered and lets its sender know: an ask is answered, a tell is reported.
func (p *Process) refuse(from peer.ID, e *wire.Envelope, why route.Reason) {
	hearer := plane.NotifyTargetOf(e.Flags)
	if hearer == plane.NotifyTransfer {
		p.refuseLarge(from, e, why)
		return
	}
	if why == route.Expired {
		p.World.expires(p, e.Payload)
	}
	p.overPressure(e, why)
	p.dropped[why]++
	p.World.Fate(e.Payload, FateRefused, why, why.String())
	p.World.place(e.Payload, p)
	p.World.Watcher.Refuses(p, from, e)
	switch {
	case hearer == plane.NotifyAsker && from == p.ID:
		p.answered(e.Corr, why, nil)
	case hearer == plane.NotifyAsker:
		limit := p.LimitOf(route.TypeID(e.Type), why)
		_ = (origin{p, from}).Reply(e.Corr, why, plane.AppendLimit(nil, limit, why))
	case from == p.ID:
		p.World.Book.undeliveredTell(p, e, why)
	default:
		p.gather(from, plane.KeyOf(e, why), e.ID)
	}
}

func (p *Process) gather(from peer.ID, k plane.RefusalKey, id []byte) {
	p.gathered(from).list.Add(k, id)
}

// gathered returns what is gathered for a sender, for a report soon.
func (p *Process) gathered(from peer.ID) *refusedOf {
	i := slices.IndexFunc(p.reports, func(r *refusedOf) bool { return r.to == from })
	if i < 0 {
		p.reports = append(p.reports, &refusedOf{to: from})
		i = len(p.reports) - 1
	}
	if !p.reporting {
		p.reporting = true
		p.Later(reportFlush, p.report)
	}
	return p.reports[i]
}

// report tells senders what was refused since the last report; one of wire version 1 in its words.
func (p *Process) report() {
	list := p.reports
	p.reports, p.reporting = nil, false
	for _, r := range list {
		refused := r.list.Take()
		for _, e := range refused {
			e.Limit = p.LimitOf(e.Type, e.Reason)
		}
		for part := range slices.Chunk(refused, plane.MaxRefusals) {
			if p.World.Config.Data.OldCredit {
				p.mail(r.to, wire.KindRefused, plane.AppendRefusals(nil, plane.SpokenRefusals(part, 1), false))
				continue
			}
			p.tellSurely(r.to, part)
		}
		if words := r.words.Take(); len(words) > 0 {
			if again, _ := p.notice(r.to, wire.KindTaken, flow.AppendTaken(nil, words)); again {
				p.gathered(r.to).words.Add(words...)
			}
		}
	}
}

// lastReport tells what is left when the process ends: once, for nothing of it can be sent again.
func (p *Process) lastReport() {
	list := p.reports
	p.reports = nil
	for _, r := range list {
		for part := range slices.Chunk(r.list.Take(), plane.MaxRefusals) {
			p.mail(r.to, wire.KindRefusals, plane.AppendRefusals(nil, part, true))
		}
		if words := r.words.Take(); len(words) > 0 { // else it takes what is refused for lost as well
			p.mail(r.to, wire.KindTaken, flow.AppendTaken(nil, words))
		}
	}
}

// tellSurely hands what was refused of a process to the courier. What finds no room there stays gathered, as does what
// is for one that is no member yet.
func (p *Process) tellSurely(to peer.ID, list []*plane.Refusal) {
	again, err := p.notice(to, wire.KindRefusals, plane.AppendRefusals(nil, list, true))
	switch {
	case again:
		p.gathered(to).list.Return(list)
	case err != nil:
		p.untold(to, list)
	}
}

// notice posts a notice to a process. again says that what was in it is to be kept.
func (p *Process) notice(to peer.ID, kind wire.Kind, body []byte) (again bool, err error) {
	err = node.ErrNoRoom
	if !p.Stuck() {
		p.step(func(now time.Duration) error {
			err = p.Node.Do(now, node.NoticeCommand{Mail: peer.Mail{To: to, Kind: kind, Body: body}})
			return nil
		})
	}
	if err == nil || !p.Alive {
		return false, nil
	}
	_, member := p.View.Member(to)
	return node.NoticeAgain(err, member, !p.forgotten[to]), err
}

// heed takes what others sent the process, behind the step in which it came: it may call for another. What it is to do
// with watches it does at once.
func (p *Process) heed(e *node.Effects) {
	carryWatches(p, e)
	for _, n := range e.Notices {
		body := slices.Clone(n.Body)
		p.Later(0, func() {
			if n.Kind == wire.KindTaken {
				p.took(n.From, body)
			} else {
				p.refusedThere(n.From, n.Kind, body)
			}
		})
	}
	for i := range e.Untold {
		p.noticeLost(&e.Untold[i])
	}
}

// noticeLost counts what was in a notice that may not have arrived.
func (p *Process) noticeLost(m *peer.Mail) {
	if list, err := plane.ParseRefusals(m.Kind, m.Body); err == nil {
		p.untold(m.To, list)
	}
}

func (p *Process) untold(to peer.ID, list []*plane.Refusal) {
	n := plane.Counted(list)
	p.World.Plane.Untold += n
	p.World.Watcher.Untold(p, to, n)
}

// LimitOf returns the bound that a refusal is due to, zero when there is none.
func (p *Process) LimitOf(typ route.TypeID, why route.Reason) int {
	d := p.World.Config.Data
	b := plane.Bounds{Budget: d.MailboxBudget, Entities: entity.MaxEntities, Queue: d.LocalBuffer, Large: d.BulkRoom,
		Payload: d.MaxPayload, Kept: d.Keep}
	if r := p.Region(typ); r != nil {
		b.Mailbox = r.Type.MailboxBytes
	}
	return b.Limit(why)
}

// refusedThere takes a peer's word on what it refused of this process's.
func (p *Process) refusedThere(from peer.ID, kind wire.Kind, body []byte) {
	list, err := plane.ParseRefusals(kind, body)
	if err != nil {
		p.World.Watcher.Violate(p, "frame", "%s of %s: %v", kind, p.World.Name(from), err)
		return
	}
	for _, e := range list {
		p.World.Plane.Told += e.Count
		p.World.Watcher.Told(p, from, e.Count)
		if e.Reason.Known() {
			p.told[e.Reason] += e.Count
		}
		r := p.Region(e.Type)
		if r == nil || uint32(e.Shard) >= r.Type.Shards {
			continue
		}
		p.World.Book.undelivered(p, e.Type, e.Shard, e.Reason, e.Count)
		if r.Pooled() && errors.Is(e.Reason.Err(), route.ErrMailboxFull) {
			r.spare(from)
		}
		if s := r.Slot(e.Shard); plane.Doubts(s, from, &e.RefusalKey) {
			p.World.Plane.Doubted++
			r.nextHome(e.Shard, from, e.Term, e.Epoch)
		}
	}
}

// forgetHome makes the node ask for the home of a shard again.
func (p *Process) forgetHome(typ route.TypeID, n route.ShardID, f route.Fence) {
	p.Do(shard.RefusedCommand{Type: typ, Shard: n, Term: f.Term(), Epoch: f.Epoch()})
}

// typeRefused notes that the cluster has a type with other settings. What is parked fails, and all later sends.
func (p *Process) typeRefused(r shard.TypeRefused) {
	if reg := p.Region(r.Type); reg != nil {
		reg.Refused = r.Err
		for i := range reg.slots.All {
			reg.Slot(i).FailAll(func(frame []byte) { p.failed(peer.ID{}, frame, route.NotRegistered, "type refused") })
		}
	}
	p.World.trace.note(p.World.Now, p.Index, opNote, fmt.Sprintf("type refused: %v", r.Err))
	p.World.tell(p, "type refused: %v", r.Err)
}

// origin is where an ask came from, as its receiver answers it.
type origin struct {
	p  *Process // the receiver
	to peer.ID
}

// Reply implements entity.Origin.
func (o origin) Reply(corr uint64, why route.Reason, payload []byte) error {
	p := o.p
	if !p.Alive {
		return route.ErrStopped
	}
	if why == route.Expired {
		p.World.expired(p, o.to, corr)
	}
	if o.to == p.ID {
		b := append([]byte(nil), payload...)
		p.Later(0, func() { p.answered(corr, why, b) })
		return nil
	}
	if p.World.Config.Data.OldCredit {
		why, payload = why.SpokenWith(1, payload)
	}
	l := p.linkOf(o.to, uint32(corr)) // an answer may take any
	room, err := l.flow.Reserve(wire.ReplySize + len(payload))
	if err != nil {
		return err
	}
	wire.PutReply(room, uint16(why), corr, payload)
	l.wake()
	return nil
}

// reads is what was handed over of a shard.
func reads(r *Region, n route.ShardID, left []byte) ([]plane.Unhandled, []plane.HandedState) {
	if len(left) == 0 {
		return nil, nil
	}
	hashed := r.Type.Shards
	if r.Type.ShardBy.Of != nil {
		hashed = 0
	}
	list, states, err := plane.ReadUnhandled(left, r.ID, n, hashed, r.Process.clock())
	if err != nil {
		r.Process.World.Watcher.Violate(r.Process, "hand-over", "what was handed over of %s makes no sense: %v",
			r.Process.World.ShardName(r.ID, n), err)
	}
	return list, states
}

// handedTo notes where the rest of a shard is, when the next owner has acknowledged all of it: it goes with that one.
func handedTo(p *Process, e *shard.Event) {
	r, to := p.Region(e.Type), p.World.ProcessOf(e.To)
	if e.Kind != shard.MoveHandedOver || r == nil || to == nil {
		return
	}
	list, _ := reads(r, e.Shard, r.left[e.Shard])
	for _, m := range list {
		p.World.Book.handed(m.Envelope.Payload, to)
	}
	delete(r.left, e.Shard)
}
