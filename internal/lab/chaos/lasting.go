// Failover, of what lasts for a time of its own: a process that stands still and goes on, a host that falls silent, a
// store of sessions that is away.

package chaos

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// pause returns for how long the owner stands still; zero: that is not the case.
func (c Case) pause() time.Duration {
	switch c {
	case PauseShort:
		return 3 * time.Second
	case PauseMiddle:
		return 10 * time.Second
	case PauseLong:
		return 30 * time.Second
	}
	return 0
}

// silentFor is how long a host is cut off: until others answer, and longer than a session and a silence last.
const silentFor = 30 * time.Second

// fault returns what comes over these slots, of a cluster of so many nodes.
func (c Case) fault(slots []int, nodes int) struck {
	every := make([]int, nodes)
	for i := range every {
		every[i] = i
	}
	f := Fault{Victims: len(slots), Order: every, First: Owner}
	switch c {
	case PauseShort, PauseMiddle, PauseLong:
		f.Kind, f.For = Pause, c.pause()
	case SilentHost:
		f.Kind, f.For = Cut, silentFor
	case CutStore:
		f.Kind, f.For = StoreCut, 20*time.Second
	case CutStoreAll:
		f.Kind, f.For, f.Victims, slots = StoreCut, 20*time.Second, nodes, every
	case StopStore:
		f.Kind, f.For, f.Victims, slots = StoreStop, time.Minute, nodes, every
	case RestartStore:
		f.Kind, f.Victims, slots = StoreAnew, nodes, every
	default:
		f.Kind, f.Rest = Kill, time.Hour
	}
	return struck{f, slots}
}

// can reports whether the case can be tried where nodes hold such sessions.
func (c Case) can(s Sessions) bool {
	k := c.fault(nil, 1).Kind
	return !k.OfStore() || s.on() && (k != StoreAnew || s.Store.Restarts())
}

// stays reports whether nobody may end for it, so that the owner goes on.
func (c Case) stays() bool { return c == PauseShort || c.fault(nil, 1).Kind.OfStore() }

// back reports whether it counts from when the store is back: until then entities may stand still.
func (c Case) back() bool { return c == CutStore || c == CutStoreAll || c == StopStore }

// boundOthers is how long an entity may not answer that a fault does not touch.
const boundOthers = 3 * time.Second

// sessionMore is what a store, a next attempt, the members that try before this one, a home and an answer may take
// beyond the TTL of a session.
const sessionMore = 3 * time.Second

// boundWith returns how long the slowest entity may take, of what sessions decide.
func (c Case) boundWith(s Sessions) (d time.Duration, some bool) {
	switch {
	case c == PauseShort:
		return c.pause() + boundMore, true
	case c.stays():
		return sessionMore, true
	case s.on() && !c.proof() && (!c.restarts() || c == RestartUnproven):
		return s.TTL + sessionMore, true
	}
	return 0, false
}

// lasts lets what lasts come and end, and waits until everything has answered again.
func lasts(ctx context.Context, h *harness, c Case, f *struck, l *life, o *outage) (err error) {
	switch {
	case f.Kind == Pause:
		l.signal(syscall.SIGSTOP)
		over := h.book.pausedFrom(l.sender, o.at)
		cli.Pause(ctx, f.For)
		over(h.clock.Now())
		l.signal(syscall.SIGCONT)
	case f.Kind == Cut:
		err = cutOff(ctx, h, f, o)
	default:
		breakStore(ctx, h, f)
	}
	h.line.printf("over: %s", c)
	if c.back() {
		o.at = h.clock.Now()
	}
	if !c.stays() {
		if err == nil {
			err = h.answeredSince(ctx, o, o.at)
		}
		o.until = h.clock.Now()
		awaitEnd(ctx, h, l)
		return err
	}
	began := h.clock.Now()
	slots := o.slots
	o.slots = nil // all of them ask, and are to answer
	err = h.answeredSince(ctx, o, began)
	o.slots, o.until = slots, h.clock.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for word, n := range h.found.exits { // a sum: no order
		if word != "signal" {
			o.ended += n
		}
	}
	return err
}

// cutOff cuts a host off from everything, until the others have answered for it, and longer.
func cutOff(ctx context.Context, h *harness, f *struck, o *outage) (err error) {
	store := &struck{Fault{Kind: StoreCut}, f.who}
	if h.leases.is.on() {
		err = h.leases.put(store, true)
	}
	h.inNet(f, true)
	err = errors.Join(err, h.answeredSince(ctx, o, o.at))
	cli.Pause(ctx, f.For-(h.clock.Now()-o.from))
	h.inNet(f, false)
	if h.leases.is.on() {
		err = errors.Join(err, h.leases.put(store, false))
	}
	return err
}

// waited reads how long entities took, and the longest time without an answer from others.
func (b *journalSet) waited(c Case, o *outage) {
	var hit []uint16
	for target := range b.load.targets() {
		hit = append(hit, uint16(target))
	}
	if c.pause() > 0 || c == CutStore {
		all := hit
		hit = b.owned(o.senders, o.from)
		others := slices.DeleteFunc(all, func(t uint16) bool { return slices.Contains(hit, t) })
		for _, d := range b.gapsOf(others, o.from, o.until) { // a maximum: no order
			o.others = max(o.others, d)
		}
	}
	if !c.back() {
		o.took = b.gapsOf(hit, o.from, o.until)
		return
	}
	o.took, o.silent = b.firstSince(hit, o.at)
}

// owned returns the entities that these processes owned at a moment.
func (b *journalSet) owned(processes []uint32, at time.Duration) []uint16 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rule.ownedBy(processes, at)
}

// gapsOf returns for each entity the longest time without an answer to anybody.
func (b *journalSet) gapsOf(targets []uint16, from, until time.Duration) map[uint16]time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[uint16]time.Duration{}
	for _, t := range targets {
		_, all[t] = longest(b.answersOf(t), from, until)
	}
	return all
}

// firstSince returns for each entity how long after a moment somebody had an answer, and those without any.
func (b *journalSet) firstSince(targets []uint16, at time.Duration) (took map[uint16]time.Duration, none []uint16) {
	b.mu.Lock()
	defer b.mu.Unlock()
	took = map[uint16]time.Duration{}
	for _, t := range targets {
		answers := slices.DeleteFunc(b.answersOf(t), func(when time.Duration) bool { return when <= at })
		if len(answers) == 0 {
			none = append(none, t)
			continue
		}
		took[t] = slices.Min(answers) - at
	}
	return took, none
}

// answersOf returns when answers of an entity came, to any node.
func (b *journalSet) answersOf(target uint16) (all []time.Duration) {
	for slot := range b.series {
		all = append(all, b.series[slot][target].at...)
	}
	return all
}
