// Commands, effects and errors: what a runtime says to the machine, and what it hears.

package replica

import (
	"errors"
	"fmt"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/stats"
)

// Bounds of what a node keeps.
const (
	MaxKeys  = 10_000
	MaxValue = 1 << 20  // bytes of one value, as it is written
	MaxTotal = 64 << 20 // bytes of all, which are counted up to a quarter too high
	// MaxWaiting is how many updates and reads may wait for other members at a time.
	MaxWaiting = 4096
)

// Errors of commands.
var (
	ErrBadCommand = errors.New("replicated: unknown command")
	ErrBadName    = errors.New("replicated: a name has 1 to 255 bytes")
	ErrKeys       = fmt.Errorf("replicated: more than %d keys", MaxKeys)
	ErrOpen       = errors.New("replicated: the name is open with another kind")
	ErrNotOpen    = errors.New("replicated: the name is not open")
	ErrTooLarge   = fmt.Errorf("replicated: the value would be larger than %d bytes", MaxValue)
	ErrFull       = fmt.Errorf("replicated: all values would be larger than %d bytes", MaxTotal)
	ErrWriters    = fmt.Errorf("replicated: more than %d incarnations have changed the value", MaxWriters)
	ErrWaiting    = fmt.Errorf("replicated: more than %d updates and reads wait for members", MaxWaiting)
	ErrBadValue   = errors.New("replicated: the value cannot be written")
)

// Level is how many members have to hold an update, or to be read, this node included: From(n) of them; zero is one.
type Level int

// Levels that depend on how many members there are.
const (
	Local    Level = 0
	Majority Level = -1
	All      Level = -2
)

// Of returns how many of so many members that is.
func (l Level) Of(members int) int {
	switch l {
	case Majority:
		return members/2 + 1
	case All:
		return members
	}
	return int(l)
}

// Command is a wish of the runtime.
type Command interface{ command() }

// OpenCommand keeps a value under a name from now on. It may be opened again, with the same kind. Errors: ErrBadName,
// ErrKeys, ErrOpen, ErrBadValue.
type OpenCommand struct {
	Name string
	Kind *Kind
}

// UpdateCommand changes a value. With a level above Local, Done has Nonce when enough members hold what the value is
// then; nonces of updates and reads differ and are not zero. Errors: ErrNotOpen, ErrTooLarge, ErrFull, ErrWriters,
// ErrWaiting, ErrBadValue; nothing has changed then.
type UpdateCommand struct {
	Name   string
	Change func(old any) any
	Level  Level
	Nonce  uint64
}

// ReadCommand makes Done name Nonce when the value here has all that enough members had when it was given. Errors:
// ErrNotOpen, ErrWaiting.
type ReadCommand struct {
	Name  string
	Level Level
	Nonce uint64
}

// CancelCommand ends what waits under a nonce. What was changed stays, and spreads.
type CancelCommand struct{ Nonce uint64 }

// ViewCommand names the members.
type ViewCommand struct{ View *cluster.View }

func (OpenCommand) command()   {}
func (UpdateCommand) command() {}
func (ReadCommand) command()   {}
func (CancelCommand) command() {}
func (ViewCommand) command()   {}

// Change is a value that has changed.
type Change struct {
	Name  string
	Value any
}

// Effects is what verbs want done: Changes first, then Done, then Mail.
type Effects struct {
	Changes []Change
	Done    []uint64 // nonces
	Mail    []peer.Mail
}

// Stats are counters and gauges of one node.
type Stats = stats.Replicated
