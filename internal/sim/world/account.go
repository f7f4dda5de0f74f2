// Accounts: how each accepted message was sent, how it ended and why, and what its sender was told of it. Checkers hold
// the two against each other.

package world

import (
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Account is what is known of one numbered message.
type Account struct {
	Sender *Process
	At     *Process // who has it, or had it last: who refused it, when it was refused
	Type   route.TypeID
	Shard  route.ShardID
	Fate   Fate
	Why    route.Reason // of what was refused or failed, or lost in flight by the word of its sender
	Ask    bool
	Large  bool
	Told   bool // an ask whose asker was told its end, or a tell of whose end the embedder of At was told
	Hosted bool // a host of At had taken it
	Maybe  bool // its sender was told of its loss, and did not know whether its receiver had it
}

// Report is what a process tells its embedder of in one count, as Config.Undelivered would.
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

// Reports returns how many messages each process has told its embedder of. The map belongs to the ledger.
func (l *Ledger) Reports() map[Report]uint64 { return l.reports }

// Answered notes that the asker of a message was told its end.
func (l *Ledger) Answered(nth int) { l.entries[nth].told = true }

// toldHere notes that the embedder of the process that has a tell was told its end.
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

// undelivered has the embedder of a process told of messages that were accepted there and not delivered.
func (l *Ledger) undelivered(p *Process, typ route.TypeID, n route.ShardID, why route.Reason, count uint64) {
	if l.reports == nil {
		l.reports = map[Report]uint64{}
	}
	l.reports[Report{p, typ, n, why}] += count
}

// unsure has the embedder of a process told of tells of which nobody knows whether they were handled: their receiver is
// gone.
func (l *Ledger) unsure(p *Process, count uint64) {
	if l.unknown == nil {
		l.unknown = map[*Process]uint64{}
	}
	l.unknown[p] += count
}

// Unknown returns of how many messages each process was told so. The map belongs to the ledger.
func (l *Ledger) Unknown() map[*Process]uint64 { return l.unknown }

// undeliveredTell is undelivered for one tell.
func (l *Ledger) undeliveredTell(p *Process, e *wire.Envelope, why route.Reason) {
	l.undelivered(p, route.TypeID(e.Type), route.ShardID(e.Shard), why, 1)
}
