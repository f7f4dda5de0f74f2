// What a store is asked for: N, R and W, the order of its versions, and its bounds.

// Package quorum keeps values on N replicas as a machine that is stepped: writes go to N replicas of a key and are
// acknowledged by W of them, reads ask for R answers, versions tell which value replaces which, and what replicas lack
// is found and repaired. A machine is both the broker of its node's requests and the replica on its disk. It holds no
// socket and no clock; its disk is an Engine.
package quorum

import (
	"errors"
	"fmt"
	"time"
)

// Mode says how two versions of a key compare.
type Mode uint8

const (
	// Siblings keep what was written without knowledge of one another, and hand all of it to each reader.
	Siblings Mode = 0
	// Register keeps the newest by counter and writer. A read sees that W replicas have what it returns before it
	// answers, and a write reads first: with R + W > N, and no change of members under way, reads never go back.
	Register Mode = 1
)

// Config is one store. The zero value of a field stands for its default; all members have to be given the same.
type Config struct {
	N int // replicas of a key, at most MaxReplicas; 3
	R int // answers that a read waits for; Quorum(N)
	W int // acknowledgements that a write waits for; Quorum(N)

	Mode Mode
	// Short serves a store of fewer than N members too, still with R answers and W acknowledgements. Else it refuses.
	Short bool
	// Founding begins an empty disk as one of a store that never held anything. Without it, an empty disk is one that
	// was lost: it first reads what the others hold.
	Founding bool

	MaxKey      int           // bytes of a key; 1 KiB
	MaxValue    int           // bytes of a value; 256 KiB
	MaxSiblings int           // of one key; 16
	MaxRequests int           // under way at this node; 1,024
	MaxHints    int           // bytes that wait for replicas that do not answer; 64 MiB
	HintAge     time.Duration // after which they are dropped; 1 h
	Timeout     time.Duration // of a request; 2 s
	Round       time.Duration // from one comparison with another replica to the next; 1 s
	// ReplaceAfter is how long a disk may be away until others get its place; 10 min.
	ReplaceAfter time.Duration
	Grace        time.Duration // how long a deletion is remembered, and a disk may be away; 24 h
}

// MaxReplicas is the most replicas of a key.
const MaxReplicas = 9

// Quorum returns how many of n are a majority: n/2 + 1.
func Quorum(n int) int { return n/2 + 1 }

// Full reports whether each read shares a replica with each write: W + R > N.
func (c Config) Full() bool { return c.W+c.R > c.N }

// orDefault sets an empty field.
func orDefault[T comparable](field *T, to T) {
	var none T
	if *field == none {
		*field = to
	}
}

// WithDefaults returns c with defaults for what is zero.
func (c Config) WithDefaults() Config {
	orDefault(&c.N, 3)
	orDefault(&c.R, Quorum(c.N))
	orDefault(&c.W, Quorum(c.N))
	orDefault(&c.MaxKey, 1<<10)
	orDefault(&c.MaxValue, 256<<10)
	orDefault(&c.MaxSiblings, 16)
	orDefault(&c.MaxRequests, 1024)
	orDefault(&c.MaxHints, 64<<20)
	orDefault(&c.HintAge, time.Hour)
	orDefault(&c.Timeout, 2*time.Second)
	orDefault(&c.Round, time.Second)
	orDefault(&c.Grace, 24*time.Hour)
	orDefault(&c.ReplaceAfter, 10*time.Minute)
	return c
}

// Validate returns all that is wrong with c, or nil.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var faults []error
	in := func(name string, v, least, most int) {
		if v < least || v > most {
			faults = append(faults, fmt.Errorf("quorum: %s is %d, must be %d to %d", name, v, least, most))
		}
	}
	in("N", c.N, 1, MaxReplicas)
	in("R", c.R, 1, max(c.N, 1))
	in("W", c.W, 1, max(c.N, 1))
	in("Mode", int(c.Mode), 0, 1)
	in("MaxKey", c.MaxKey, 1, 4<<10)
	in("MaxValue", c.MaxValue, 1, 1<<20)
	in("MaxSiblings", c.MaxSiblings, 1, 64)
	in("MaxRequests", c.MaxRequests, 1, 1<<16)
	in("MaxHints", c.MaxHints, 1, 1<<30)
	if c.Mode == Register && !c.Full() {
		faults = append(faults, fmt.Errorf("quorum: R %d + W %d must be above N %d in Register", c.R, c.W, c.N))
	}
	if c.Timeout < time.Millisecond || c.Round < time.Millisecond || c.HintAge < c.Round || c.ReplaceAfter < c.Round ||
		c.Grace <= c.HintAge {
		faults = append(faults, fmt.Errorf("quorum: Timeout %v and Round %v must be 1ms or more, HintAge %v and "+
			"ReplaceAfter %v not below Round, Grace %v above HintAge", c.Timeout, c.Round, c.HintAge, c.ReplaceAfter, c.Grace))
	}
	return errors.Join(faults...)
}

// Errors of requests.
var (
	ErrBusy     = errors.New("quorum: too many requests under way")                       // nothing was sent
	ErrTooLarge = errors.New("quorum: key or value exceeds its bound")                    // nothing was sent
	ErrMembers  = errors.New("quorum: fewer members than asked for")                      // nothing was sent
	ErrContext  = errors.New("quorum: the context names changes that were never made")    // nothing was sent
	ErrUnable   = errors.New("quorum: no replica of the key can make the change")         // nothing was done
	ErrTimeout  = errors.New("quorum: too few replicas answered; a write may be kept")    // it may be seen later
	ErrSiblings = errors.New("quorum: the key has as many siblings as it may; read them") // a write may be kept
	ErrDisk     = errors.New("quorum: the disk is not that of this replica")
	ErrOld      = errors.New("quorum: the disk was away for longer than deletions are remembered")
	ErrNonsense = errors.New("quorum: a message that no replica sends")
)
