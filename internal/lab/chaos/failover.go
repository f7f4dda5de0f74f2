// Failover: a fixed list of losses, each in a cluster of its own, measured from the signal until every entity of the
// lost processes has answered.

package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// FailoverConfig says what is measured.
type FailoverConfig struct {
	Trial
	Cases []Case
}

// ErrFailover is returned when two owned an entity, when something is missing that nothing explains, or when a bound
// does not hold.
var ErrFailover = errors.New("failover found something")

// Failover measures the cases, one cluster at a time, until ctx ends. The error wraps ErrFailover when the result says
// what must not be.
func Failover(ctx context.Context, cfg FailoverConfig) (*FailoverResult, error) {
	r := &FailoverResult{Nodes: cfg.Nodes, Rounds: cfg.Rounds, StableAfter: cfg.StableAfter.Seconds(),
		Patience: cfg.Patience, Sessions: cfg.Sessions.Store, SessionTTL: cfg.Sessions.TTL.Seconds(),
		Seats: cfg.Sessions.Tenure.Voters, Grant: cfg.Sessions.Tenure.Grant.Seconds(), Bill: map[Case]*Bill{}}
	began := cli.MachineTime()
	of := func(c Case) Config {
		f := Config{Net: direct, Proof: c.proof(), Unproven: c == RestartUnproven}
		if c == SilentHost {
			f.Net = "auto"
		}
		return f
	}
	err := trials(&cfg.Trial, cfg.Cases, func(c Case, h *harness) (outage, error) { return measure(ctx, h, c) }, of,
		func(c Case, round int, o outage) {
			cfg.Progress.Printf("%s, round %d of %d: half of %d entities answer after %.3f s, all after %.3f s", c,
				round+1, cfg.Rounds, len(o.took), o.bill[stepAnswered].Seconds(), o.longest().Seconds())
			r.add(c, &o)
		})
	if err != nil {
		return nil, err
	}
	r.WallTime = *inSeconds(cli.MachineTime() - began)
	if faults := r.faults(cfg.Cases, cfg.pace(), cfg.Sessions); len(faults) > 0 {
		return r, fmt.Errorf("%w: %w", ErrFailover, faults.Err())
	}
	return r, nil
}

// measure lets one loss come over a cluster, and reads what it left.
func measure(ctx context.Context, h *harness, c Case) (o outage, err error) {
	o.cost, err = costs(ctx, h, func(ctx context.Context) error { return h.lose(ctx, c, &o) })
	if err == nil {
		err = h.account(c, &o)
	}
	return o, h.close(err, o.violations())
}

// account makes the bill.
func (h *harness) account(c Case, o *outage) error {
	if c.stays() || c.pause() > 0 {
		h.book.waited(c, o)
	} else {
		o.took, o.silent = h.book.firstAnswers(o.senders, o.at)
	}
	records, err := survivorsLogs(h.dir, o.slots)
	if err != nil {
		return err
	}
	var addrs []string
	for _, s := range o.slots {
		addrs = append(addrs, h.seeds[s])
	}
	o.bill = makeBill(records, addrs, o.at)
	o.bill[stepAnswered] = median(slices.Collect(maps.Values(o.took))) // sorted there: no order
	return nil
}

// restFor returns how long the cluster is left alone before a loss. The next coordinator, after a proof of death, may
// have missed losses before its time until it has been Up for a takeover time; without a proof the loss itself takes
// longer than that.
func (h *harness) restFor(next bool) time.Duration {
	if next {
		return steadyTime + paceOf(h.cfg.Nodes, h.cfg.Patience, h.cfg.StableAfter).takeover
	}
	return steadyTime
}

const (
	steadyTime = 2 * time.Second
	evenTime   = 30 * time.Second // three rounds of the balance
	// answerBound is how long the entities may take before the measurement is given up.
	answerBound = 90 * time.Second
	// pausedMore is how long an owner is stopped beyond the first answers of others, pausedAfter what it gets to see that
	// it was removed.
	pausedMore  = 2 * time.Second
	pausedAfter = 10 * time.Second
)

// lose lets the loss of a case come and waits until everything has answered again.
func (h *harness) lose(ctx context.Context, c Case, o *outage) error {
	if cli.Pause(ctx, h.restFor(c.coordinator() && (c.proof() || c.restarts() ||
		h.cfg.Sessions.on() || h.cfg.Sessions.tenures()))); ctx.Err() != nil {
		return ctx.Err()
	}
	if _, ok := h.watcher.await(ctx, evenTime, func() (string, bool) {
		o.slots = h.watcher.losers(c)
		return "", len(o.slots) > 0
	}); !ok {
		return errUneven
	}
	var lives []*life
	for _, s := range o.slots {
		h.slots[s].setRest(time.Hour) // nobody starts it again
		if c.restarts() {
			h.slots[s].setRest(time.Millisecond)
		}
		l := h.slots[s].current()
		if l == nil {
			return fmt.Errorf("%s does not run", name(s))
		}
		lives, o.senders = append(lives, l), append(o.senders, l.sender)
	}
	f := c.fault(o.slots, h.cfg.Nodes)
	h.line.printf("loss: %s: %s", c, names(o.slots))
	o.from = h.clock.Now()
	o.at = o.from
	h.mu.Lock()
	h.rounds = append(h.rounds, past{Round: Round{Number: 1, Faults: []Fault{f.Fault}}, faults: []struck{f}, from: o.at})
	h.mu.Unlock()
	switch {
	case c == PauseOwner:
		return h.stopAndGoOn(ctx, lives[0], o)
	case f.Kind != Kill:
		return lasts(ctx, h, c, &f, lives[0], o)
	}
	for _, l := range lives {
		l.signal(syscall.SIGKILL)
	}
	return h.answeredSince(ctx, o, o.at)
}

// answeredSince waits until all others have had an answer from everything to what they asked since a moment.
func (h *harness) answeredSince(ctx context.Context, o *outage, at time.Duration) error {
	var askers []int
	for i := range h.slots {
		if !slices.Contains(o.slots, i) {
			askers = append(askers, i)
		}
	}
	why, ok := h.watcher.await(ctx, answerBound, func() (string, bool) { return h.book.answered(askers, at) })
	if !ok {
		return fmt.Errorf("not everything answers within %v: %s", answerBound, why)
	}
	h.line.printf("everything answers again %.1f s after the loss", (h.clock.Now() - o.at).Seconds())
	return nil
}

// stopAndGoOn stops a process for longer than its takeover time, which is over when others answer for it.
func (h *harness) stopAndGoOn(ctx context.Context, l *life, o *outage) error {
	over := h.book.pausedFrom(l.sender, o.at)
	l.signal(syscall.SIGSTOP)
	err := h.answeredSince(ctx, o, o.at)
	cli.Pause(ctx, pausedMore)
	over(h.clock.Now())
	l.signal(syscall.SIGCONT)
	h.line.printf("%s goes on", name(l.slot))
	awaitEnd(ctx, h, l)
	return err
}

// awaitEnd gives a process that was removed time to see it.
func awaitEnd(ctx context.Context, h *harness, l *life) {
	limited, cancel := context.WithTimeout(ctx, pausedAfter)
	defer cancel()
	select {
	case <-l.child.Done():
	case <-limited.Done():
		h.line.printf("%s has not ended", name(l.slot))
	}
}

// losers returns the slots that a case hits, by what the nodes tell now; none when one of them owns nothing.
func (w *watcher) losers(c Case) []int {
	hosted := map[int]int{}
	w.each(func(i int, _ *life, st *status) { hosted[i] = st.Hosted })
	oldest := w.victims(Fault{Victims: 1, First: Coordinator})
	if len(oldest) == 0 {
		return nil
	}
	return pickLosers(c, oldest[0], hosted)
}
