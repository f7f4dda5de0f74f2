// Resolver: what a process does with the orders of its split brain resolver, and the lease in the simulated world.

package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// resolverOff is for worlds in which an operator downs who is lost.
var resolverOff = node.Resolver{Strategy: node.ResolverOff}

// leaseDelay is how long the simulated lease takes to answer.
const leaseDelay = 5 * time.Millisecond

// leaseKeeper is a lease that all processes reach, whatever the network between them does, but those in away.
type leaseKeeper struct {
	owner peer.ID
	away  []int // hosts that it does not answer
	taken int   // how often it was acquired
}

// leaseOp carries out what the resolver of p wants of its lease.
func (p *proc) leaseOp(op node.LeaseOp) {
	k := &p.w.lease
	if slices.Contains(k.away, p.idx) {
		return
	}
	p.w.after(leaseDelay, func() {
		ok := k.owner.IsZero() || k.owner == p.id
		switch {
		case ok && op.Release:
			k.owner = peer.ID{}
		case ok:
			if k.owner.IsZero() {
				k.taken++
			}
			k.owner = p.id
		}
		p.later(leaseDelay, func() { p.do(node.LeaseResult{Op: op.Op, OK: ok}) })
	})
}

// resolved carries out what the resolver ordered, before the mail of the same step leaves.
func (p *proc) resolved(e *node.Effects) {
	w := p.w
	for i := range e.Decisions {
		d := &e.Decisions[i]
		w.check.decided(p, d)
		text := w.named(d.String())
		w.trace.note(w.now, p.idx, opNote, text)
		if d.Leader || !d.Lives {
			w.tellOnly(p, text)
		}
	}
	for i := range e.ResolverEvents {
		text := "resolver: " + w.named(e.ResolverEvents[i].Text)
		w.trace.note(w.now, p.idx, opNote, text)
		w.tellOnly(p, text)
	}
	for _, op := range e.Lease {
		w.trace.note(w.now, p.idx, opNote, fmt.Sprintf("lease op %d release %t", op.Op, op.Release))
		p.leaseOp(op)
	}
}

// resolves reports whether the nodes of this world have a resolver that leaves one side at most.
func (w *world) resolves() bool {
	return w.cfg.Resolver.Strategy != node.ResolverOff && !w.splits()
}

// tellOnly tells the listener of a script what the trace has already.
func (w *world) tellOnly(p *proc, line string) {
	if w.onEvent != nil {
		w.onEvent(p, line)
	}
}

// named replaces addresses by the names of scripts, and long numbers of incarnations by nothing.
func (w *world) named(text string) string {
	for i := len(w.hosts) - 1; i >= 0; i-- {
		addr := w.hosts[i].addr.String()
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

// splits reports whether the configured strategy promises nothing: unsafe-auto-down lets all sides live.
func (w *world) splits() bool { return w.cfg.Resolver.Strategy == node.ResolverUnsafeAutoDown }

// survivors returns the processes that live, are members in their own view and were not stopped by their resolver.
func (w *world) survivors() []*proc {
	var list []*proc
	for _, p := range w.running() {
		if self, ok := p.view.SelfMember(); ok && self.Status != membership.Down && !p.gate.suspended {
			list = append(list, p)
		}
	}
	return list
}
