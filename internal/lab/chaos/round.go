// A round: its faults come, each in its time, and then everything has to be well again.

package chaos

import (
	"context"
	"math"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// round lets the faults of a round come and waits until all is well.
func (h *harness) round(ctx context.Context, r Round) error {
	h.line.printf("round %d: %s", r.Number, r)
	h.mu.Lock()
	h.rounds = append(h.rounds, past{Round: r, from: h.clock.Now()})
	h.mu.Unlock()
	var busy sync.WaitGroup
	for _, f := range r.Faults {
		if !canCome(h.net, h.cfg.Sessions, f.Kind) {
			h.line.printf("round %d: %s is left out: this carrier cannot do it", r.Number, f.Kind)
			continue
		}
		busy.Go(func() { h.strike(ctx, f) })
	}
	busy.Wait()
	ended := h.clock.Now()
	why, ok := h.well(ctx, ended, wellBound)
	now := h.clock.Now()
	h.mu.Lock()
	p := &h.rounds[len(h.rounds)-1]
	askers := unhit(p.faults, h.cfg.Nodes)
	from := p.from
	h.mu.Unlock()
	gap := h.silence(askers, from, now)
	h.mu.Lock()
	p.until, p.gap, p.healed, p.measured = now, gap, now-ended, ok && p.came == len(r.Faults)
	h.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil
	case ok:
		h.line.printf("round %d: well again %.1f s after the last fault, longest time without an answer %.1f s",
			r.Number, p.healed.Seconds(), gap.Seconds())
		return nil
	}
	h.line.printf("round %d: NOT WELL within %v: %s", r.Number, wellBound, why)
	return h.anew(ctx, p)
}

// silenceTold is how long a time without answers is at least to be worth a line.
const silenceTold = 2 * time.Second

// silence returns the longest time without an answer that one of these nodes had, and notes those of all nodes.
func (h *harness) silence(askers []int, from, until time.Duration) (gap time.Duration) {
	for _, s := range h.book.silences(from, until) {
		if slices.Contains(askers, s.slot) {
			gap = max(gap, s.gap)
		}
		if s.gap >= silenceTold {
			h.line.notef("%s had no answer from %s for %.1f s, from %.3f on", name(s.slot), h.cfg.Load.nameOf(s.target),
				s.gap.Seconds(), s.began.Seconds())
		}
	}
	return gap
}

// unhit returns the nodes with asks that count for the time without answers: those that no fault hit itself, or all if
// there is none.
func unhit(faults []struck, nodes int) (all []int) {
	for slot := range nodes {
		if !slices.ContainsFunc(faults, func(f struck) bool { return f.touched(slot) }) {
			all = append(all, slot)
		}
	}
	if len(all) > 0 {
		return all
	}
	for slot := range nodes {
		all = append(all, slot)
	}
	return all
}

// anew kills everything, so that the next round begins with a cluster that is well.
func (h *harness) anew(ctx context.Context, p *past) error {
	h.mu.Lock()
	h.found.unwell++
	p.unwell, p.whole = true, true
	h.mu.Unlock()
	for _, s := range h.slots {
		if l := s.current(); l != nil {
			l.signal(syscall.SIGKILL)
		}
	}
	began := h.clock.Now()
	_, ok := h.well(ctx, began, wellBound)
	h.mu.Lock()
	p.until = h.clock.Now()
	h.mu.Unlock()
	if !ok && ctx.Err() == nil {
		return errNeverWell
	}
	return nil
}

// strike lets one fault come, last and end.
func (h *harness) strike(ctx context.Context, f Fault) {
	if !cli.Pause(ctx, f.At) {
		return
	}
	if f.Kind == Move {
		h.strikeMove(ctx, f)
		return
	}
	hit := &struck{f, h.watcher.victims(f)}
	h.mu.Lock()
	p := &h.rounds[len(h.rounds)-1]
	p.faults = append(p.faults, *hit)
	p.came++
	h.mu.Unlock()
	h.line.printf("fault: %s: %s", f, names(hit.who))
	switch f.Kind {
	case Kill, KillAll:
		h.kill(ctx, hit)
	case Pause:
		h.pause(ctx, hit)
	case Restart:
		h.restartBeside(ctx, hit)
	case Starve:
		h.starve(ctx, hit)
	case Leave, Rolling, LeaveLate:
		h.leaveInTurn(ctx, hit, "leave", leaveArgs{Slow: hit.Extra})
	case Close:
		h.leaveInTurn(ctx, hit, "close", cli.None{})
	case StuckLog:
		stickLogs(ctx, h, hit)
	case Flap:
		h.flap(ctx, hit)
	case StoreCut, StoreStop, StoreAnew:
		breakStore(ctx, h, hit)
	case DNS:
		h.net.(namer).trouble(f.Trouble)
		cli.Pause(ctx, f.For)
		h.net.(namer).trouble("")
	default:
		h.inNet(hit, true)
		cli.Pause(ctx, f.For)
		h.inNet(hit, false)
	}
	h.line.printf("fault over: %s", f.Kind)
}

func names(slots []int) (all string) {
	if len(slots) == 0 {
		return "all ways"
	}
	for i, s := range slots {
		if i > 0 {
			all += " "
		}
		all += name(s)
	}
	return all
}

// kill ends processes one after another, as kill -9 does. A machine that is lost falls silent before, and its process
// comes back with it.
func (h *harness) kill(ctx context.Context, hit *struck) {
	h.oneByOne(ctx, hit, func(s int, l *life, busy *sync.WaitGroup) {
		h.slots[s].setRest(hit.Rest)
		if hit.away() {
			lost := &struck{hit.Fault, []int{s}}
			h.inNet(lost, true)
			busy.Go(func() {
				cli.Pause(ctx, hit.Rest)
				h.inNet(lost, false)
			})
		}
		l.signal(syscall.SIGKILL)
		h.line.notef("%s killed", name(s))
	})
}

// oneByOne has f hit each victim that runs, and waits for what f has left busy.
func (h *harness) oneByOne(ctx context.Context, hit *struck, f func(s int, l *life, busy *sync.WaitGroup)) {
	var busy sync.WaitGroup
	defer busy.Wait()
	for i, s := range hit.who {
		if i > 0 {
			cli.Pause(ctx, hit.Stagger)
		}
		if l := h.slots[s].current(); l != nil {
			f(s, l, &busy)
		}
	}
}

// setRest says how long the supervisor waits before it starts the next process, and that one alone.
func (s *nodeSlot) setRest(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = d
}

// pause stops processes and lets them go on.
func (h *harness) pause(ctx context.Context, hit *struck) {
	h.oneByOne(ctx, hit, func(s int, l *life, busy *sync.WaitGroup) {
		l.signal(syscall.SIGSTOP)
		over := h.book.pausedFrom(l.sender, h.clock.Now())
		h.line.notef("%s stopped", name(s))
		busy.Go(func() {
			cli.Pause(ctx, hit.For)
			over(h.clock.Now())
			l.signal(syscall.SIGCONT)
			h.line.notef("%s goes on", name(s))
		})
	})
}

// restartBeside stops a process. While it stands another machine loses its power and is back at once: nothing there
// answers between its two processes, so nobody learns that one has ended before the other says so.
func (h *harness) restartBeside(ctx context.Context, hit *struck) {
	var busy sync.WaitGroup
	defer busy.Wait()
	busy.Go(func() { h.pause(ctx, &struck{hit.Fault, hit.who[:1]}) })
	if !cli.Pause(ctx, hit.Stagger) {
		return
	}
	lost := &struck{hit.Fault, hit.who[1:]}
	h.oneByOne(ctx, lost, func(s int, l *life, _ *sync.WaitGroup) {
		h.slots[s].setRest(hit.Rest)
		h.inNet(lost, true)
		l.signal(syscall.SIGKILL)
		h.line.notef("%s killed", name(s))
		h.watcher.await(ctx, restBrief, func() (string, bool) {
			now := h.slots[s].current()
			return "", now != nil && now != l
		})
		h.inNet(lost, false)
	})
}

// share is the part of a period in which a starved process runs.
const share = 20

// starve stops a process and lets it run by turns.
func (h *harness) starve(ctx context.Context, hit *struck) {
	until := h.clock.Now() + hit.For
	for _, s := range hit.who {
		l := h.slots[s].current()
		for l != nil && h.clock.Now() < until && ctx.Err() == nil && l.running() {
			l.signal(syscall.SIGSTOP)
			cli.Pause(ctx, hit.Period-hit.Period/share)
			l.signal(syscall.SIGCONT)
			cli.Pause(ctx, hit.Period/share)
		}
	}
}

// flap lets a cut come and go.
func (h *harness) flap(ctx context.Context, hit *struck) {
	until := h.clock.Now() + hit.For
	for on := true; h.clock.Now() < until && ctx.Err() == nil; on = !on {
		h.inNet(hit, on)
		cli.Pause(ctx, hit.Period)
	}
	h.inNet(hit, false)
}

// inNet puts a fault into the network or takes it out.
func (h *harness) inNet(hit *struck, on bool) {
	h.mu.Lock()
	h.active = slices.DeleteFunc(h.active, func(f *struck) bool { return f == hit })
	if on {
		h.active = append(h.active, hit)
	}
	var faults []struck
	for _, f := range h.active {
		faults = append(faults, *f)
	}
	err := h.net.apply(linksUnder(faults, h.cfg.Nodes))
	h.mu.Unlock()
	if err != nil {
		h.line.printf("the network does not take the fault: %v", err)
	}
}

// tellTwice makes a process leave by SIGTERM, and sends it another one while it does.
func tellTwice(ctx context.Context, h *harness, l *life, hit *struck) error {
	err := l.child.Call(ctx, "slow", slowArgs{hit.Extra, math.MaxInt64 / 2}, nil)
	l.signal(syscall.SIGTERM)
	if cli.Pause(ctx, hit.Again) && l.running() {
		l.signal(syscall.SIGTERM)
		h.line.notef("%s is told again", name(l.slot))
	}
	return err
}

// stickLogs has nobody read what processes log, for a while.
func stickLogs(ctx context.Context, h *harness, hit *struck) {
	h.oneByOne(ctx, hit, func(s int, l *life, busy *sync.WaitGroup) {
		if err := l.child.CallWithin(ctx, orderTime, "stick", stickArgs{hit.For}, nil); err != nil {
			h.line.notef("%s: stick: %v", name(s), err)
			return
		}
		h.line.notef("nobody reads the log of %s", name(s))
		busy.Go(func() { cli.Pause(ctx, hit.For) })
	})
}

// leaveInTurn has processes leave or close by a call, each after the one before has come back.
func (h *harness) leaveInTurn(ctx context.Context, hit *struck, call string, args any) {
	for _, s := range hit.who {
		l := h.slots[s].current()
		if l == nil || ctx.Err() != nil {
			continue
		}
		h.slots[s].setRest(hit.Rest)
		h.line.notef("%s is told to %s", name(s), call)
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		var err error
		if hit.Twice {
			err = tellTwice(limited, h, l, hit)
		} else {
			err = l.child.Call(limited, call, args, nil)
		}
		cancel()
		if err != nil {
			h.line.notef("%s: %s: %v", name(s), call, err)
		}
		limited, cancel = context.WithTimeout(ctx, 2*wellBound)
		select {
		case <-l.child.Done():
		case <-limited.Done():
		}
		cancel()
		if hit.Kind == Rolling {
			left := h.clock.Now()
			h.watcher.await(ctx, wellBound, func() (string, bool) { return h.watcher.agreed(left) })
		}
	}
}
