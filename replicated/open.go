// Open: values of a node by name, how they are read, changed and watched.

package replicated

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/core/replica"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/internal/runtime/replicas"
)

// Bounds of what a node keeps. Each node holds its own updates to them: values that are changed on several nodes at a
// time may come to more together, and are then held by all.
const (
	MaxKeys    = replica.MaxKeys    // names
	MaxName    = replica.MaxName    // bytes of a name
	MaxValue   = replica.MaxValue   // bytes of one value, as it is written
	MaxTotal   = replica.MaxTotal   // bytes of all, which are counted up to a quarter too high
	MaxWriters = replica.MaxWriters // incarnations that have changed one value and are not folded away
	MaxWaiting = replica.MaxWaiting // updates and reads of a node that wait for members
)

// Errors of Open, Update and Read; match them with errors.Is. Nothing has changed then.
var (
	ErrBadName  = replica.ErrBadName  // a name has 1 to MaxName bytes
	ErrKeys     = replica.ErrKeys     // more than MaxKeys
	ErrOpen     = replica.ErrOpen     // the name is open on this node with another kind, or Go type
	ErrTooLarge = replica.ErrTooLarge // over MaxValue, and not smaller than before
	ErrFull     = replica.ErrFull     // over MaxTotal, and not smaller than before
	ErrWriters  = replica.ErrWriters  // over MaxWriters
	ErrWaiting  = replica.ErrWaiting  // over MaxWaiting
	ErrBadValue = replica.ErrBadValue // Append refuses the value, or a map holds values that it must not
)

// Level says how many members an update or a read waits for.
type Level int

// Levels. Members are all but those that are down or exiting, reachable or not, as this node sees them.
const (
	Local    Level = Level(replica.Local)    // none: this node alone
	Majority Level = Level(replica.Majority) // more than half, this node among them
	All      Level = Level(replica.All)      // all
)

// From is n members, this node among them; with fewer in the cluster it waits for more. Below one it is one.
func From(n int) Level { return Level(max(n, 1)) }

// MissingError says that a context ended before enough members had answered. It wraps the context's error. An update is
// not taken back: it is in this node's value, perhaps in others', and spreads to the rest.
type MissingError struct {
	Name       string
	Missing    []kith.ID // members that have not answered, in address order
	Need, Have int       // members, this node among them
	Err        error
}

// Error names the nodes that have not answered, at most eight of them.
func (e *MissingError) Error() string {
	who := fmt.Sprint(e.Missing[:min(len(e.Missing), 8)])
	return fmt.Sprintf("replicated: %q: %d of %d members answered, not %s of %d: %v", e.Name, e.Have, e.Need, who,
		len(e.Missing), e.Err)
}

// Unwrap returns the context's error.
func (e *MissingError) Unwrap() error { return e.Err }

// Handle is a value of a node. All methods are safe for concurrent use.
type Handle[V Value[V]] struct {
	node   *kith.Node
	office *replicas.Office
	cell   *replicas.Cell
	name   string
}

// Open keeps a value under a name on this node from now on, merged with what the others have: at first it is initial,
// which must be empty and the same on every node. Open it on every node, or on none: a node that has not opened it
// holds nothing of it, and is waited for all the same. It does not wait; Handle.Read does. Names are never closed;
// opening one again gives a handle of the same value. Errors: ErrBadName, ErrKeys, ErrOpen, ErrBadValue, and why the
// node has ended.
func Open[V Value[V]](node *kith.Node, name string, initial V) (*Handle[V], error) {
	if m, is := any(initial).(interface{ nests() bool }); is && m.nests() {
		return nil, fmt.Errorf("%w: %q: a map of values that number their additions", ErrBadValue, name)
	}
	o := driver.Replicas(driver.Of(node))
	cell, err := o.Open(name, kindOf(initial))
	if err != nil {
		return nil, over(node, err)
	}
	if v, is := cell.Load().(V); !is {
		return nil, fmt.Errorf("%w: %q holds values of the Go type %T, not %T", ErrOpen, name, cell.Load(), v)
	}
	return &Handle[V]{node, o, cell, name}, nil
}

// kindOf has the machine deal with values of type V.
func kindOf[V Value[V]](initial V) *replica.Kind {
	return &replica.Kind{Name: initial.Kind(), Zero: initial,
		Merge:  func(a, b any) any { return a.(V).Merge(b.(V)) },
		Since:  func(v, old any) any { return v.(V).Since(old.(V)) },
		Append: func(b []byte, v any) ([]byte, error) { return v.(V).Append(b) },
		Parse:  func(b []byte) (any, error) { return initial.Parse(b) },
	}
}

// over says why the node has ended, when that is why something failed.
func over(n *kith.Node, err error) error {
	if errors.Is(err, replicas.ErrOver) && n.Err() != nil {
		return n.Err()
	}
	return err
}

// Name returns the name.
func (h *Handle[V]) Name() string { return h.name }

// Get returns the value on this node: one atomic load. It has what Update returned for on this node, and what others
// have sent so far.
func (h *Handle[V]) Get() V { return h.cell.Load().(V) }

// Update changes the value on this node by change, and waits until as many members hold the change as the level says.
// change is given the value and the identity of this node, runs on the caller's goroutine while no other update or
// merge does, and must be quick; it must not call Update, Read, Watch or Open. The change spreads to all members,
// whatever the level, as long as one that holds it lives. Errors: ErrTooLarge, ErrFull, ErrWriters, ErrWaiting,
// ErrBadValue, why the node has ended, the context's, before anything has changed, and *MissingError, after it has.
func (h *Handle[V]) Update(ctx context.Context, level Level, change func(v V, me kith.ID) V) error {
	me := h.node.ID()
	err := h.office.Update(ctx, h.name, replica.Level(level), func(old any) any { return change(old.(V), me) })
	return h.failed(err)
}

// Read waits until the value on this node has everything that as many members had as the level says when they were
// asked, and returns it. What was updated with Majority, a Read with Majority has. Errors: ErrWaiting, why the node has
// ended, the context's, *MissingError; the value is what this node has then.
func (h *Handle[V]) Read(ctx context.Context, level Level) (V, error) {
	err := h.failed(h.office.Read(ctx, h.name, replica.Level(level)))
	return h.Get(), err
}

func (h *Handle[V]) failed(err error) error {
	var m *replicas.MissingError
	if errors.As(err, &m) {
		return &MissingError{h.name, m.Missing, m.Need, m.Have, m.Err}
	}
	return over(h.node, err)
}

// Watch yields the value, and then each later one, until ctx or the node ends. A reader that is slow is given the
// newest and not those in between, so nothing piles up.
func (h *Handle[V]) Watch(ctx context.Context) iter.Seq[V] {
	return func(yield func(V) bool) {
		news, end := h.office.Watch(h.cell)
		defer end()
		for yield(h.Get()) {
			select {
			case <-news:
			case <-ctx.Done():
				return
			case <-h.node.Done():
				return
			}
		}
	}
}
