// The wheel of ask time limits: coarse ticks, one list per slot, no allocation.

package driver

import "time"

const (
	wheelTick  = 10 * time.Millisecond
	wheelSlots = 512 // a power of two; later deadlines stay in their slot for more turns
)

// wheelTicks returns after how many ticks a limit of d is certainly over.
func wheelTicks(d time.Duration) int64 {
	if d <= 0 {
		return 1
	}
	return int64((d-1)/wheelTick) + 2
}

// askWheel holds the waiters of one stripe by deadline. Its stripe's lock guards it.
type askWheel struct {
	slots [wheelSlots]*askWaiter
	done  int64 // last tick handled
}

func (h *askWheel) add(w *askWaiter) {
	w.due = max(w.due, h.done+1)
	head := &h.slots[w.due%wheelSlots]
	w.prev, w.next, w.inWheel = nil, *head, true
	if *head != nil {
		(*head).prev = w
	}
	*head = w
}

func (h *askWheel) remove(w *askWaiter) {
	if !w.inWheel {
		return
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		h.slots[w.due%wheelSlots] = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.inWheel = nil, nil, false
}

// advance takes out the waiters that are due at tick or before and appends their correlations to over.
func (h *askWheel) advance(tick int64, over []uint64) []uint64 {
	from := max(h.done+1, tick-wheelSlots+1)
	for t := from; t <= tick; t++ {
		for w := h.slots[t%wheelSlots]; w != nil; {
			next := w.next
			if w.due <= tick {
				h.remove(w)
				over = append(over, w.state.Load()>>askPhaseBits<<32|uint64(w.index)+1)
			}
			w = next
		}
	}
	h.done = max(h.done, tick)
	return over
}
