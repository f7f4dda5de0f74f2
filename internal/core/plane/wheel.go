// The wheel of ask time limits: coarse ticks, one list per slot, no allocation.

package plane

import "time"

// WheelTick is how coarse the time limits of asks are. Runtimes count ticks from the node's start.
const WheelTick = 10 * time.Millisecond

const wheelSlots = 512 // a power of two; later deadlines stay in their slot for more turns

// WheelTicks returns after how many ticks a limit of d is certainly over, at least one.
func WheelTicks(d time.Duration) int64 {
	if d <= 0 {
		return 1
	}
	return int64((d-1)/WheelTick) + 2
}

// askWheel holds waiters by deadline. Nearly all asks are answered long before theirs, so a waiter that is given back
// stays where it is, and one that is there already for an earlier tick is left there: it is looked at then, and goes on
// to its place. So an ask touches no other waiter, and neither its begin nor its end waits for the memory of one.
type askWheel struct {
	slots [wheelSlots]*Ask
	done  int64 // last tick handled
}

func (h *askWheel) add(a *Ask, due int64) {
	a.due, a.waits = max(due, h.done+1), true
	if a.inWheel && a.at <= a.due {
		return
	}
	h.take(a)
	h.put(a)
}

// remove makes the wheel skip a when its time comes.
func (h *askWheel) remove(a *Ask) { a.waits = false }

// put puts a where its deadline says.
func (h *askWheel) put(a *Ask) {
	a.at = a.due
	head := &h.slots[a.at%wheelSlots]
	a.prev, a.next, a.inWheel = nil, *head, true
	if *head != nil {
		(*head).prev = a
	}
	*head = a
}

// take takes a out, if it is there.
func (h *askWheel) take(a *Ask) {
	if !a.inWheel {
		return
	}
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		h.slots[a.at%wheelSlots] = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	}
	a.prev, a.next, a.inWheel = nil, nil, false
}

// advance takes out the waiters that are due at tick or before and appends their correlations to over.
func (h *askWheel) advance(tick int64, over []uint64) []uint64 {
	from := max(h.done+1, tick-wheelSlots+1)
	for t := from; t <= tick; t++ {
		for a := h.slots[t%wheelSlots]; a != nil; {
			next := a.next
			if a.at <= tick {
				h.take(a)
				switch {
				case !a.waits:
				case a.due <= tick:
					over = append(over, a.Corr())
				default:
					h.put(a)
				}
			}
			a = next
		}
	}
	h.done = max(h.done, tick)
	return over
}
