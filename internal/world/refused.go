// Refusals: what a process does not take is told to its senders, and what others say of its own is believed. It rides
// package plane.

package world

import (
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/plane"
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
}

// refuse counts a message that is not delivered and lets its sender know: an ask is answered, a tell is reported.
func (p *Process) refuse(from peer.ID, e *wire.Envelope, why route.Reason) {
	hearer := plane.HearerOf(e.Flags)
	if hearer == plane.HearsTransfer {
		p.refuseLarge(from, e, why)
		return
	}
	if why == route.Expired {
		p.World.expires(p, e.Payload)
	}
	p.dropped[why]++
	p.World.Fate(e.Payload, FateRefused, why, why.String())
	p.World.place(e.Payload, p)
	p.World.Watcher.Refuses(from, e)
	switch {
	case hearer == plane.HearsAnswer && from == p.ID:
		p.answered(e.Corr, why, nil)
	case hearer == plane.HearsAnswer:
		limit := p.LimitOf(route.TypeID(e.Type), why)
		_ = (origin{p, from}).Reply(e.Corr, why, plane.AppendLimit(nil, limit, why))
	case from == p.ID:
		p.World.Book.undeliveredTell(p, e, why)
	default:
		p.gather(from, plane.KeyOf(e, why), e.ID)
	}
}

func (p *Process) gather(from peer.ID, k plane.RefusalKey, id []byte) {
	i := slices.IndexFunc(p.reports, func(r *refusedOf) bool { return r.to == from })
	if i < 0 {
		p.reports = append(p.reports, &refusedOf{to: from})
		i = len(p.reports) - 1
	}
	p.reports[i].list.Add(k, id)
	if len(p.reports) == 1 && !p.reporting {
		p.reporting = true
		p.Later(reportFlush, p.report)
	}
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
		if p.World.Config.Data.OldCredit {
			p.mail(r.to, wire.KindRefused, plane.AppendRefusals(nil, plane.SpokenRefusals(refused, 1), false))
			continue
		}
		p.mail(r.to, wire.KindRefusals, plane.AppendRefusals(nil, refused, true))
	}
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
		p.World.Watcher.Told(p, e.Count)
		if e.Reason.Known() {
			p.told[e.Reason] += e.Count
		}
		r := p.Region(e.Type)
		if r == nil || int(e.Shard) >= len(r.Slots) {
			continue
		}
		p.World.Book.undelivered(p, e.Type, e.Shard, e.Reason, e.Count)
		if s := &r.Slots[e.Shard]; plane.Doubts(s, from, &e.RefusalKey) {
			p.World.Plane.Doubted++
			r.nextHome(e.Shard, from, e.Term, e.Epoch)
		}
	}
}

// forgetHome has the node ask for the home of a shard again.
func (p *Process) forgetHome(typ route.TypeID, n route.ShardID, f route.Fence) {
	p.Do(shard.RefusedCommand{Type: typ, Shard: n, Term: f.Term(), Epoch: f.Epoch()})
}
