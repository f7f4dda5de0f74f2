// Resolver: what a process does with the orders of its split brain resolver, and the lease in the simulated world.

package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// ResolverOff is for worlds in which an operator downs lost members.
var ResolverOff = node.Resolver{Strategy: node.ResolverOff}

// leaseDelay is how long the simulated lease takes to answer.
const leaseDelay = 5 * time.Millisecond

// LeaseKeeper is a lease that all processes reach, whatever the network between them does, but those in away.
type LeaseKeeper struct {
	Owner peer.ID
	Away  []int // hosts that it does not answer
	Taken int   // how often it was acquired
}

// take gives it to a process, which may have it already.
func (k *LeaseKeeper) take(p peer.ID) {
	if k.Owner != p {
		k.Owner = p
		k.Taken++
	}
}

// leaseOp carries out what the resolver of p wants of its lease.
func (p *Process) leaseOp(op node.LeaseOp) {
	k := &p.World.Lease
	if slices.Contains(k.Away, p.Index) {
		return
	}
	p.World.After(leaseDelay, func() {
		ok := k.Owner.IsZero() || k.Owner == p.ID
		switch {
		case ok && op.Release:
			k.Owner = peer.ID{}
		case ok:
			k.take(p.ID)
		}
		p.Later(leaseDelay, func() { p.Do(node.LeaseResult{Op: op.Op, OK: ok}) })
	})
}

// resolved carries out what the resolver ordered, and what the session wants, before the mail of the same step leaves.
func (p *Process) resolved(e *node.Effects) {
	w := p.World
	for i := range e.Decisions {
		d := &e.Decisions[i]
		w.Watcher.Decided(p, d)
		text := w.named(d.String())
		w.trace.note(w.Now, p.Index, opNote, text)
		if d.Leader || !d.Lives {
			w.tellOnly(p, text)
		}
	}
	for i := range e.ResolverEvents {
		text := "resolver: " + w.named(e.ResolverEvents[i].Text)
		w.trace.note(w.Now, p.Index, opNote, text)
		w.tellOnly(p, text)
	}
	for _, op := range e.Lease {
		w.trace.note(w.Now, p.Index, opNote, fmt.Sprintf("lease op %d release %t", op.Op, op.Release))
		p.leaseOp(op)
	}
	leasing(e, p)
}

// Resolves reports whether the nodes of this world have a resolver that leaves one side at most.
func (w *World) Resolves() bool {
	return w.Config.Resolver.Strategy != node.ResolverOff && !w.Splits()
}

// tellOnly reports to the listener of a script what the trace has already.
func (w *World) tellOnly(p *Process, line string) {
	if w.OnEvent != nil {
		w.OnEvent(p, line)
	}
}

// named replaces addresses by the names of scripts, and long numbers of incarnations by nothing.
func (w *World) named(text string) string {
	for i := len(w.Hosts) - 1; i >= 0; i-- {
		addr := w.Hosts[i].Addr.String()
		for {
			at := strings.Index(text, addr)
			if at < 0 {
				break
			}
			end := at + len(addr)
			if end < len(text) && text[end] == '#' {
				for end++; end < len(text) && strings.IndexByte("0123456789abcdef", text[end]) >= 0; end++ {
				}
			}
			text = text[:at] + fmt.Sprintf("n%d", i+1) + text[end:]
		}
	}
	return text
}

// Splits reports whether the configured strategy promises nothing: unsafe-auto-down lets all sides live.
func (w *World) Splits() bool { return w.Config.Resolver.Strategy == node.ResolverUnsafeAutoDown }

// Survivors returns the processes that live, are members in their own view and were not stopped by their resolver.
func (w *World) Survivors() []*Process {
	var list []*Process
	for _, p := range w.Running() {
		if self, ok := p.View.SelfMember(); ok && self.Status != membership.Down && !p.gate.suspended {
			list = append(list, p)
		}
	}
	return list
}
