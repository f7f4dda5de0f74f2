// The laws: the answers to callers, and the answers of the store to processes, held against what is stored.

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/kith-io/kith/route"
)

// order is one change of an account as its caller knows it.
type order struct {
	entry
	Account string
	To      string // the account that it sends to; empty: none
	Reminds bool   // the account is to be reminded of it
	Outcome outcome
}

// laws are the laws, each with how often it was broken, and what else the account says.
type laws struct {
	AppliedTwice   int   `json:"applied_twice"`   // changes that stand in their account again
	Lost           int   `json:"lost"`            // changes that were acknowledged and are not there
	RefusedApplied int   `json:"refused_applied"` // that were answered as having no effect, and are there
	Strange        int   `json:"strange"`         // entries of no order, or of another one
	SumError       int64 `json:"sum_error"`       // of all accounts: what is stored beside what the callers know
	Stale          int   `json:"stale_writes_accepted"`
	LostCommits    int   `json:"lost_commits"` // of the store: versions that were acknowledged and are not there

	Reminders      int `json:"reminders"`       // changes that were to be reminded of
	UnknownApplied int `json:"unknown_applied"` // changes of unknown outcome that are there
	UnknownNot     int `json:"unknown_not"`     // and that are not
	Fenced         int `json:"fenced"`          // calls of the store that the fence has refused

	Letters           int `json:"letters"`       // that were acknowledged as stored
	DeadLetters       int `json:"dead_letters"`  // that there are
	LettersAgain      int `json:"letters_again"` // that another life of a reader has handled again
	DeliveredLost     int `json:"delivered_lost"`
	DeliveredOvertook int `json:"delivered_overtook"` // handled first behind a later one of their sender to their reader
	DeliveredInvented int `json:"delivered_invented"` // handled, or dead, though nobody sent them, or their sender was refused
	DeliveredTwice    int `json:"delivered_twice"`    // in one life of a reader, or as dead letters

	said []string
}

// mostSaid bounds what is reported of single cases.
const mostSaid = 40

func (l *laws) say(format string, args ...any) {
	if len(l.said) < mostSaid {
		l.said = append(l.said, fmt.Sprintf(format, args...))
	}
}

// broken reports whether a law is broken.
func (l *laws) broken() bool {
	return l.AppliedTwice+l.Lost+l.RefusedApplied+l.Strange+l.Stale+l.LostCommits > 0 || l.SumError != 0 ||
		l.DeliveredLost+l.DeliveredOvertook+l.DeliveredInvented+l.DeliveredTwice > 0
}

// accounts holds the answers to callers against the accounts.
func (l *laws) accounts(orders []order, at map[string]account) {
	type place struct {
		account string
		entry
	}
	times := map[place]int{}
	for name, a := range at { // sums: the order does not show
		for _, e := range a.Entries {
			times[place{name, e}]++
		}
	}
	wanted := map[string]int64{}
	orders = slices.Clone(orders)
	for i := 0; i < len(orders); i++ {
		o := orders[i]
		p := place{o.Account, o.entry}
		n := times[p]
		delete(times, p)
		follows := refused // what follows from it is there if and only if it is
		if n > 0 {
			follows = done
		}
		if o.To != "" {
			orders = append(orders, order{o.next(), o.To, "", false, follows})
		}
		if o.Reminds {
			orders = append(orders, order{o.reminded(), o.Account, "", false, follows})
			if n > 0 {
				l.Reminders++
			}
		}
		if n > 1 {
			l.AppliedTwice += n - 1
			l.say("%s: change %x stands there %d times, its outcome was %s", o.Account, o.ID, n, o.Outcome)
		}
		switch {
		case o.Outcome == done && n == 0:
			l.Lost++
			l.say("%s: change %x was done and is not there", o.Account, o.ID)
		case (o.Outcome == refused || o.Outcome == rejected) && n > 0:
			l.RefusedApplied++
			l.say("%s: change %x is there, its outcome was %s", o.Account, o.ID, o.Outcome)
		case o.Outcome == unknown && n > 0:
			l.UnknownApplied++
		case o.Outcome == unknown:
			l.UnknownNot++
		}
		if o.Outcome == done || o.Outcome == unknown && n > 0 {
			wanted[o.Account] += o.Delta
		}
	}
	for p, n := range times { // sums: the order shows in what is said alone
		l.Strange += n
		l.say("%s: entry %x of %d is of no order", p.account, p.ID, p.Delta)
	}
	for name := range at {
		wanted[name] += 0
	}
	for name, sum := range wanted { // sums
		if d := at[name].Balance - sum; d != 0 {
			l.SumError += max(d, -d)
			l.say("%s: it has %d, its callers know of %d", name, at[name].Balance, sum)
		}
	}
}

// versions of one record that were acknowledged to processes.
type version struct {
	n     uint64
	nonce [16]byte
	fence route.Fence
}

// recordName names a record. Those of a queue have ids that are unique in their shard alone.
type recordName struct {
	kind  string
	shard route.ShardID
	id    string
}

// commits holds the answers of the store to processes against one another, and against what it has at the end.
func (l *laws) commits(notes []note, at []stored) {
	l.order(notes)
	all := map[recordName][]version{}
	for _, n := range notes {
		for _, w := range n.Writes {
			name := recordName{n.Type, n.Shard, w.ID}
			all[name] = append(all[name], version{w.Version, w.Nonce, n.Fence})
		}
	}
	last := map[recordName]stored{}
	for _, r := range at {
		last[recordName{r.Type, r.Shard, r.ID}] = r
	}
	for name, list := range all { // sums: the order shows in what is said alone
		slices.SortFunc(list, func(a, b version) int {
			return cmp.Or(cmp.Compare(a.n, b.n), a.fence.Compare(b.fence), bytes.Compare(a.nonce[:], b.nonce[:]))
		})
		for i := 1; i < len(list); i++ {
			a, b := list[i-1], list[i]
			switch {
			case a.n == b.n && a.nonce != b.nonce:
				l.Stale++
				l.say("%s %s: version %d was written twice, under %v and %v", name.kind, name.id, a.n, a.fence, b.fence)
			case a.fence.Compare(b.fence) > 0:
				l.Stale++
				l.say("%s %s: version %d under %v comes behind %d under %v", name.kind, name.id, b.n, b.fence, a.n, a.fence)
			}
		}
		top := list[len(list)-1]
		is, there := last[name]
		if !there && name.kind == queueType {
			continue // it was taken away: by the last write, or by one of a process that ended before it was noted
		}
		if is.Version < top.n || is.Version == top.n && is.Nonce != top.nonce {
			l.LostCommits++
			l.say("%s %s: version %d was written, version %d is there", name.kind, name.id, top.n, is.Version)
		}
	}
}

// order demands that no commit succeeds which began when a claim under a higher fence had returned.
func (l *laws) order(notes []note) {
	type shard struct {
		kind string
		n    route.ShardID
	}
	claims := map[shard][]note{}
	for _, n := range notes {
		switch n.Op {
		case noteClaim:
			claims[shard{n.Type, n.Shard}] = append(claims[shard{n.Type, n.Shard}], n)
		case noteFenced:
			l.Fenced++
		}
	}
	for _, n := range notes {
		if n.Op != noteCommit {
			continue
		}
		for _, c := range claims[shard{n.Type, n.Shard}] {
			if c.Fence.Compare(n.Fence) > 0 && c.To < n.From {
				l.Stale++
				l.say("%s, shard %d: a commit under %v succeeded that began %v after the claim of %v", n.Type, n.Shard,
					n.Fence, n.From-c.To, c.Fence)
				break
			}
		}
	}
}
