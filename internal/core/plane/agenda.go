// Agenda: which slots the runtime comes back to, and when.

package plane

import "time"

const (
	// RetryDrain is the longest pause before a drain that met a full link is tried again.
	RetryDrain = 5 * time.Millisecond
	// ScanParked is how often what waits is looked at for its time limit.
	ScanParked = 250 * time.Millisecond
)

// Agenda holds what the runtime has to do for slots that are not open: ask for their homes at the end of a turn, try
// the drains again that met a full link, and look after time limits. K names a slot. Lists keep the order in which
// slots came, and name none twice, so an agenda is bounded by the slots there are. The zero value is empty.
type Agenda[K comparable] struct {
	wanted           []K
	stalled, waiting agendaList[K]
}

// agendaList is a list without duplicates that is due at a time.
type agendaList[K comparable] struct {
	list []K
	in   map[K]struct{}
	at   time.Duration
}

func (l *agendaList[K]) add(k K, at time.Duration) {
	if _, is := l.in[k]; is {
		return
	}
	if l.in == nil {
		l.in = map[K]struct{}{}
	}
	if len(l.list) == 0 {
		l.at = at
	}
	l.in[k] = struct{}{}
	l.list = append(l.list, k)
}

func (l *agendaList[K]) take(now time.Duration) []K {
	if len(l.list) == 0 || now < l.at {
		return nil
	}
	list := l.list
	l.list = nil
	clear(l.in)
	return list
}

// Want notes a slot that needs its home asked for, and in which something waits.
func (a *Agenda[K]) Want(now time.Duration, k K) {
	a.wanted = append(a.wanted, k)
	a.Watch(now, k)
}

// Wanted hands over the slots that need their homes asked for.
func (a *Agenda[K]) Wanted() []K {
	list := a.wanted
	a.wanted = nil
	return list
}

// Stall notes a slot after its drain met a full link.
func (a *Agenda[K]) Stall(now time.Duration, k K) {
	a.stalled.add(k, now+RetryDrain)
	a.Watch(now, k)
}

// Roomy says that some link has room: drains that met a full one are due at once.
func (a *Agenda[K]) Roomy() { a.stalled.at = 0 }

// Stalled hands over the slots to drain again now, oldest first.
func (a *Agenda[K]) Stalled(now time.Duration) []K { return a.stalled.take(now) }

// Stalls returns how many drains wait for room.
func (a *Agenda[K]) Stalls() int { return len(a.stalled.list) }

// Watch notes a slot in which messages may come to wait too long.
func (a *Agenda[K]) Watch(now time.Duration, k K) { a.waiting.add(k, now+ScanParked) }

// Waiting hands over the slots that are to be looked at now for what has waited too long. Those in which something
// waits on are watched again.
func (a *Agenda[K]) Waiting(now time.Duration) []K { return a.waiting.take(now) }

// Next returns when something is to be done: at once while homes are to be asked for.
func (a *Agenda[K]) Next() (deadline time.Duration, ok bool) {
	if len(a.wanted) > 0 {
		return 0, true
	}
	for _, l := range [2]*agendaList[K]{&a.stalled, &a.waiting} {
		if len(l.list) > 0 && (!ok || l.at < deadline) {
			deadline, ok = l.at, true
		}
	}
	return deadline, ok
}
