// Marks: what an entity remembers of messages that it has had, in rows of their own beside its record.

package store

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/route"
)

const (
	// MaxFrom is the most bytes of Mark.From.
	MaxFrom = maxType + 1 + route.MaxIDSize
	// MaxMarks is the most marks of one Write.
	MaxMarks = 64
	// mostForgotten is the most marks that one ForgetMarks takes away.
	mostForgotten = 10_000
)

// Mark is what an entity remembers of one sender of messages, or of one key of a caller. What a store returns belongs
// to the caller.
type Mark struct {
	// From names the sender: 1 to MaxFrom bytes, as its writer chooses.
	From string
	// Number is that of the last message, 1 to 2^63-1.
	Number uint64
	// At is when that was, to the millisecond, by the writer's clock.
	At time.Time
	// Value is the writer's; nil and empty are the same.
	Value []byte
}

// Size returns for how many bytes a mark counts against MaxBytes.
func (m *Mark) Size() int { return Overhead + len(m.From) + len(m.Value) }

// Size returns for how many bytes a write counts against MaxBytes: its record and its marks.
func (w *Write) Size() int {
	size := w.Record.Size()
	for i := range w.Marks {
		size += w.Marks[i].Size()
	}
	return size
}

// checkMarks checks the marks of one write.
func checkMarks(w *Write) error {
	if len(w.Marks) > MaxMarks {
		return fmt.Errorf("%w: %d marks of %.64q, must be at most %d", ErrTooLarge, len(w.Marks), w.ID, MaxMarks)
	}
	for i := range w.Marks {
		m := &w.Marks[i]
		if m.From == "" || len(m.From) > MaxFrom {
			return fmt.Errorf("%w: a mark of %.64q with %d bytes of From, must have 1 to %d", ErrTooLarge, w.ID, len(m.From),
				MaxFrom)
		}
		if m.Number == 0 || m.Number >= 1<<63 {
			return fmt.Errorf("%w: Number %d of a mark of %.64q, must be 1 to 2^63-1", ErrTooLarge, m.Number, w.ID)
		}
		for j := range i {
			if w.Marks[j].From == m.From {
				return fmt.Errorf("%w: two marks of %.64q of %.64q", ErrTooLarge, w.ID, m.From)
			}
		}
	}
	return nil
}

// CheckFroms returns an ErrTooLarge that says what is wrong with the arguments of Marks and CountMarks, or nil. Engines
// call it first.
func CheckFroms(id string, from ...string) error {
	if err := CheckIDs([]string{id}); err != nil {
		return err
	}
	if len(from) > MaxWrites {
		return fmt.Errorf("%w: %d marks, must be at most %d", ErrTooLarge, len(from), MaxWrites)
	}
	for _, f := range from {
		if f == "" || len(f) > MaxFrom {
			return fmt.Errorf("%w: %d bytes of From, must be 1 to %d", ErrTooLarge, len(f), MaxFrom)
		}
	}
	return nil
}

// CheckForget returns an ErrTooLarge that says what is wrong with the bound of ForgetMarks, or nil. Engines call it
// first.
func CheckForget(most int) error {
	if most < 1 || most > mostForgotten {
		return fmt.Errorf("%w: %d marks to forget, must be 1 to %d", ErrTooLarge, most, mostForgotten)
	}
	return nil
}
