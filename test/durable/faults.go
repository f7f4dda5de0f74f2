// Faults: a seed draws them; one comes, or two at once, and then the cluster gets whole again.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// The kinds of faults.
const (
	faultKill    = "kill"    // kill -9 of a node, which is started again
	faultStop    = "stop"    // SIGSTOP until another node has taken over, then SIGCONT
	faultRolling = "rolling" // all nodes leave and are started again, in turn
	faultLock    = "lock"    // all commits wait: somebody holds SQLite's file or PostgreSQL's tables, or etcd stands still;
	// quorum: a node is killed, and its disk is locked
	faultServer = "server" // PostgreSQL and etcd: the server is killed and started again
	faultFull   = "full"   // the store's disk is full; quorum: that of one node
	faultCut    = "cut"    // quorum: one node or two are cut off from the others
	faultEmpty  = "empty"  // quorum: kill -9 of a node, which comes back with an empty disk
	faultLeave  = "leave"  // quorum: all disks leave for good, one by one; each has a node with an empty disk after it
	faultNone   = "none"   // nothing happens for a while
)

// kindsOf returns the kinds that an engine has, in the order in which they are drawn from, or those of them that are
// wanted.
func kindsOf(engine string, only []string) ([]string, error) {
	all := []string{faultKill, faultStop, faultRolling, faultLock, faultFull}
	if served(engine) {
		all = append(all, faultServer)
	}
	if engine == quorumEngine {
		all = append(all, faultEmpty, faultCut, faultLeave)
	}
	if len(only) == 0 {
		return all, nil
	}
	all = append(all, faultNone)
	for _, k := range only {
		if !slices.Contains(all, k) {
			return nil, fmt.Errorf("--only: %q is none of %s", k, strings.Join(all, ", "))
		}
	}
	return only, nil
}

// fault is one round.
type fault struct {
	kind   string
	victim int
	order  []int         // of nodes, where several are hit
	last   time.Duration // how long it lasts; of a kill the rest before the next start
	rest   time.Duration // of calm before it
	beside string        // what hits the store, or a node, meanwhile: a kind or nothing
	other  int           // the process that it hits
}

// String says what it is.
func (f fault) String() string {
	s := fmt.Sprintf("%s of n%d, %.1f s", f.kind, f.victim+1, f.last.Seconds())
	if f.beside != "" {
		s += fmt.Sprintf(", %s of n%d meanwhile", f.beside, f.other+1)
	}
	return s
}

// draws draws faults: of a deck of all kinds, shuffled anew when it is used up.
type draws struct {
	rng   *rand.Rand
	nodes int
	kinds []string
	deck  []string
	store string // what hits the store of this engine
}

// newDraws returns the draws of a seed.
func newDraws(seed uint64, nodes int, engine string, kinds []string) *draws {
	d := &draws{rng: rand.New(rand.NewPCG(seed, 0)), nodes: nodes, kinds: kinds, store: faultLock}
	switch {
	case served(engine):
		d.store = faultServer
	case engine == quorumEngine:
		d.store = faultKill
	}
	return d
}

func (d *draws) between(low, high int) time.Duration {
	return time.Duration(low+d.rng.IntN(high-low+1)) * time.Millisecond
}

// next returns the next fault.
func (d *draws) next() fault {
	if len(d.deck) == 0 {
		d.deck = slices.Clone(d.kinds)
		d.rng.Shuffle(len(d.deck), func(i, k int) { d.deck[i], d.deck[k] = d.deck[k], d.deck[i] })
	}
	f := fault{kind: d.deck[0], order: d.rng.Perm(d.nodes), rest: d.between(2500, 5000)}
	d.deck = d.deck[1:]
	f.victim, f.other = f.order[0], f.order[1]
	dice := d.rng.IntN(2)
	switch f.kind {
	case faultKill:
		f.last = d.between(200, 3000)
		switch {
		case dice == 0 && d.store == faultKill: // a second one: of five disks two are away
			f.beside = faultKill
		case dice == 0 && slices.Contains(d.kinds, d.store): // while its commits wait for the store
			f.beside = d.store
		}
	case faultStop:
		f.last = d.between(500, 2500) // more than until all is taken over
		f.beside = []string{d.store, faultKill, ""}[d.rng.IntN(3)]
		if !slices.Contains(d.kinds, f.beside) {
			f.beside = ""
		}
	case faultLock: // up to more than a commit waits for it
		f.last = d.between(1000, 13_000)
	case faultServer:
		f.last = d.between(0, 8000)
	case faultFull:
		f.last = d.between(2000, 9000)
	case faultEmpty:
		f.last = d.between(200, 3000)
	case faultCut: // up to more than until the smaller side has ended
		f.last = d.between(1000, 15_000)
		if dice == 0 {
			f.beside = faultCut // of a second node
		}
	}
	if slices.Contains([]string{faultLock, faultServer, faultFull}, f.kind) && dice == 0 &&
		slices.Contains(d.kinds, faultKill) {
		f.beside = faultKill
	}
	return f
}

// faults has them come.
type faults struct {
	h       *harness
	c       *callers
	draws   *draws
	came    map[string]int
	skipped map[string]string
}

func newFaults(h *harness, c *callers) (*faults, error) {
	kinds, err := kindsOf(h.cfg.Engine, h.cfg.Only)
	if err != nil {
		return nil, err
	}
	f := &faults{h: h, c: c, came: map[string]int{}, skipped: map[string]string{}}
	if why := h.back.cannotFill(); why != nil && slices.Contains(kinds, faultFull) {
		f.skipped[faultFull] = why.Error()
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k == faultFull })
	}
	if len(kinds) == 0 {
		kinds = []string{faultNone}
	}
	f.draws = newDraws(h.cfg.Seed, h.cfg.Nodes, h.cfg.Engine, kinds)
	return f, nil
}

// wholeTime is until all nodes see all others again, at most: with the store away they begin all the same.
const wholeTime = 3 * time.Minute

// run lets fault after fault come until the time is over.
func (f *faults) run(ctx context.Context) error {
	end := f.h.clock.Now() + f.h.cfg.For
	for {
		next := f.draws.next()
		f.c.calm.Store(true)
		if !cli.Pause(ctx, min(next.rest, max(0, end-f.h.clock.Now()))) {
			return context.Cause(ctx)
		}
		f.c.calm.Store(false)
		if f.h.clock.Now() >= end {
			return nil
		}
		f.h.line("fault: %s", next)
		if err := f.one(ctx, next); err != nil {
			return fmt.Errorf("%s: %w", next, err)
		}
		f.came[next.kind]++
		if next.beside != "" {
			f.came[next.beside]++
		}
		if err := f.h.whole(ctx, wholeTime); err != nil {
			return err
		}
		f.h.line("the cluster is whole")
		if !cli.Pause(ctx, 2*time.Second) { // what has piled up is worked off
			return context.Cause(ctx)
		}
	}
}

// one causes a fault, and waits until it is over.
func (f *faults) one(ctx context.Context, x fault) error {
	switch x.kind {
	case faultEmpty:
		return f.empty(ctx, x)
	case faultLeave:
		return f.leave(ctx, x)
	case faultKill:
		if x.beside == faultKill {
			f.kill(x.other, x.last)
			x.beside = ""
		}
		over, err := f.hit(ctx, x.beside, time.Second)
		if err != nil {
			return err
		}
		cli.Pause(ctx, 300*time.Millisecond)
		f.kill(x.victim, x.last)
		return over()
	case faultStop:
		return f.stop(ctx, x)
	case faultRolling:
		return f.rolling(ctx, x)
	case faultCut:
		f.cuts(ctx, x)
	case faultLock, faultServer, faultFull:
		if f.h.cfg.Engine == quorumEngine {
			return f.disk(ctx, x)
		}
		over, err := f.hit(ctx, x.kind, x.last)
		if err != nil {
			return err
		}
		if x.beside == faultKill {
			cli.Pause(ctx, x.last/2)
			f.kill(x.other, time.Second)
		}
		return over()
	}
	return nil
}

// disk hits the disk of one node, and kills another one meanwhile where that is drawn.
func (f *faults) disk(ctx context.Context, x fault) error {
	if x.beside == faultKill {
		f.kill(x.other, time.Second)
	}
	if x.kind == faultFull {
		return f.fills(ctx, x)
	}
	return f.locks(ctx, x)
}

// kill kills a node.
func (f *faults) kill(victim int, rest time.Duration) {
	s := f.h.slots[victim]
	s.mu.Lock()
	l := s.now
	s.rest = rest
	s.mu.Unlock()
	if l != nil {
		l.child.Kill()
	}
}

// hit has something hit the store for a while. over waits until it is over.
func (f *faults) hit(ctx context.Context, kind string, last time.Duration) (over func() error, err error) {
	if kind == "" {
		return func() error { return nil }, nil
	}
	done, err := f.h.back.hit(ctx, kind)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	return func() error {
		cli.Pause(ctx, last-time.Since(began))
		err := done()
		f.h.line("%s is over", kind)
		return err
	}, nil
}

// takeoverMost bounds how long a node is stopped: one that is stopped while it writes to SQLite holds the file's lock,
// and nobody takes anything over before it goes on.
const takeoverMost = 45 * time.Second

// stop stops a node until the others answer for all that it had.
func (f *faults) stop(ctx context.Context, x fault) error {
	over := func() error { return nil }
	if x.beside == f.draws.store && x.beside != faultKill { // it is stopped while its commits wait
		var err error
		if over, err = f.hit(ctx, x.beside, 0); err != nil {
			return err
		}
		cli.Pause(ctx, 300*time.Millisecond)
	}
	l := f.h.slots[x.victim].current()
	if l == nil {
		return errors.Join(errors.New("there is no process to stop"), over())
	}
	_ = l.child.Process().Signal(syscall.SIGSTOP)
	defer func() { _ = l.child.Process().Signal(syscall.SIGCONT) }()
	if err := over(); err != nil {
		return err
	}
	if x.beside == faultKill { // while much waits for what the stopped one has
		cli.Pause(ctx, 2*time.Second)
		f.kill(x.other, time.Second)
	}
	limit, cancel := context.WithTimeout(ctx, takeoverMost)
	defer cancel()
	began := time.Now()
	if n := f.c.answered(limit, x.victim); n > 0 {
		f.h.line("%d accounts did not answer while n%d was stopped", n, x.victim+1)
	} else {
		f.h.line("all answers without n%d after %.1f s", x.victim+1, time.Since(began).Seconds())
	}
	cli.Pause(ctx, x.last)
	f.h.line("n%d goes on", x.victim+1)
	return ctx.Err()
}

// rolling restarts all nodes in turn.
func (f *faults) rolling(ctx context.Context, x fault) error {
	for _, i := range x.order {
		l := f.h.slots[i].current()
		if l == nil {
			return fmt.Errorf("n%d does not run", i+1)
		}
		if err := l.child.CallWithin(ctx, 10*time.Second, "leave", cli.None{}, nil); err != nil {
			return err
		}
		select {
		case <-l.child.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(4 * leaveTime):
			return fmt.Errorf("n%d does not end when it leaves", i+1)
		}
		if err := f.h.whole(ctx, wholeTime); err != nil {
			return err
		}
	}
	return nil
}
