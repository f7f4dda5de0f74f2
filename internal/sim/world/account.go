// Accounts: how each accepted message was sent, how it ended and why, and what was reported to its sender. Checkers
// hold the two against each other.

package world

import (
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Account is what is known of one numbered message.
type Account struct {
	Sender *Process
	At     *Process // the process that has it, or had it last: the refuser, when it was refused
	Type   route.TypeID
	Shard  route.ShardID
	Fate   Fate
	Why    route.Reason // of what was refused or failed, or lost in flight by the word of its sender
	Ask    bool
	Large  bool
	Told   bool // an ask with its end reported to the asker, or a tell with its end reported to the embedder of At
	Hosted bool // a host of At had taken it
	Maybe  bool // its loss was reported to its sender, without knowing whether its receiver had it
}

// Report is what a process reports to its embedder in one count, as Config.Undelivered would.
type Report struct {
	Sender *Process
	Type   route.TypeID
	Shard  route.ShardID
	Why    route.Reason
}

// Accounts calls do for every message that was accepted, in the order of sending.
func (l *Ledger) Accounts(do func(a *Account)) {
	for i := range l.entries {
		if l.entries[i].fate != FateRejected {
			do(l.account(&l.entries[i]))
		}
	}
}

func (l *Ledger) account(e *entry) *Account {
	return &Account{Sender: e.sender, At: e.where, Type: e.typ, Shard: e.shard, Fate: e.fate, Why: e.why, Ask: e.ask,
		Large: e.large, Told: e.told, Hosted: e.hosted, Maybe: e.unsure}
}

// Reports returns how many messages each process has reported to its embedder. The map belongs to the ledger.
func (l *Ledger) Reports() map[Report]uint64 { return l.reports }

// LateReports returns how many messages of types that come late (EntityType.Late), which have no entries, were reported
// for a reason.
func (l *Ledger) LateReports(why route.Reason) uint64 { return l.late[why] }

// Answered notes that the end of a message was reported to its asker.
func (l *Ledger) Answered(nth int) { l.entries[nth].told = true }

// toldHere notes that the end of a tell was reported to the embedder of the process that has it.
func (l *Ledger) toldHere(payload []byte) {
	if e, ok := l.find(payload); ok {
		e.told = true
	}
}

// sends notes how a message is sent.
func (l *Ledger) sends(payload []byte, n route.ShardID, ask, large bool) {
	if e, ok := l.find(payload); ok {
		e.shard, e.ask, e.large = n, ask, large
	}
}

// undelivered reports messages to the embedder of a process that were accepted there and not delivered.
func (l *Ledger) undelivered(p *Process, typ route.TypeID, n route.ShardID, why route.Reason, count uint64) {
	if t := p.World.TypeOf(typ); t != nil && t.Late {
		if l.late == nil {
			l.late = map[route.Reason]uint64{}
		}
		l.late[why] += count
		return
	}
	if l.reports == nil {
		l.reports = map[Report]uint64{}
	}
	l.reports[Report{p, typ, n, why}] += count
}

// unsure reports tells to the embedder of a process that may or may not have been handled: their receiver is gone.
func (l *Ledger) unsure(p *Process, count uint64) {
	if l.unknown == nil {
		l.unknown = map[*Process]uint64{}
	}
	l.unknown[p] += count
}

// Unknown returns how many such messages were reported to each process. The map belongs to the ledger.
func (l *Ledger) Unknown() map[*Process]uint64 { return l.unknown }

// undeliveredTell is undelivered for one tell.
func (l *Ledger) undeliveredTell(p *Process, e *wire.Envelope, why route.Reason) {
	l.undelivered(p, route.TypeID(e.Type), route.ShardID(e.Shard), why, 1)
}
