// Package quorum keeps values on the disks of N members, as Dynamo does: any node reads and writes any key, W of the N
// replicas of the key have a write on disk before it returns, and R of them answer a read. Writes that know nothing of
// one another are both kept, and handed to the reader; or, of a Register, the newest is.
//
// docs/values.md says when W + R > N is consistency, and when it is not.
package quorum

import (
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/enum"
	core "github.com/kith-io/kith/internal/core/quorum"
	"github.com/kith-io/kith/internal/core/quorum/records"
	"github.com/kith-io/kith/internal/runtime/fenced"
	"github.com/kith-io/kith/quorum/disk"
	"github.com/kith-io/kith/stats"
)

// Mode says how two versions of a key compare.
type Mode uint8

const (
	// Siblings keep what was written without knowledge of one another, and hand all of it to each reader, whose next write
	// replaces it. What was acknowledged by W replicas a read of R has, if W + R > N.
	Siblings Mode = 0
	// Register keeps the newest value. A write reads first; a read sees that W replicas have what it returns before it
	// answers: reads never go back, and writes and reads are linearizable while the members stay. It demands W + R > N.
	Register Mode = 1
)

var modeNames = []string{Siblings: "siblings", Register: "register"}

// String names the mode.
func (m Mode) String() string { return enum.Name(modeNames, m, "mode") }

// MarshalText gives the name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText takes a name, as String gives it; an error leaves m as it was.
func (m *Mode) UnmarshalText(text []byte) error { return enum.Parse(m, text) }

// Store says what a store is. All nodes have to be given the same, but for Engine, R, W, HandOn, and times other than
// Grace.
// The zero value of a field stands for its default.
type Store struct {
	Name string // 1 to 200 bytes; no default
	N    int    // replicas of a key, at most 9; 3
	R    int    // answers that a read waits for; a majority of N
	W    int    // acknowledgements that a write waits for; a majority of N
	Mode Mode   // Siblings

	// Resolve makes one value of several, for Get: the caller's next Put replaces them. It is called with the key and the
	// values, which are its own, on the goroutine of Get. An error, or a panic, leaves the values as they are.
	Resolve func(key []byte, values [][]byte) ([]byte, error)

	// Engine is the disk of this node, which belongs to the store from Open on, and is closed with it; no default. Memory
	// returns one without a disk: a node that restarts on it is a new replica.
	Engine disk.Engine

	// Founders is how many nodes with empty disks have to meet for the store to begin; N. Until then every request fails
	// with ErrNotFounded. An empty disk that meets the store is a new replica, whatever this says.
	Founders int
	// HandOn: each leave of this node is for good. Its disk hands on what it has before the node leaves, for two thirds of
	// kith.Config.LeaveTimeout at most, which fenced records want to be a minute or more; else a leave keeps its places
	// for ReplaceAfter. A drain has it hand on either way.
	HandOn bool
	// Short serves a store of fewer than N nodes too, still with R answers and W acknowledgements.
	Short bool

	MaxKey      int // bytes of a key; 1 KiB, at most 4 KiB
	MaxValue    int // bytes of a value; 256 KiB, at most 1 MiB
	MaxSiblings int // values of one key; 16, at most 64
	MaxRequests int // under way at this node; 1,024
	MaxHints    int // bytes of writes that wait here for replicas that do not answer; 64 MiB

	HintAge      time.Duration // after which those are dropped; 1 h
	Timeout      time.Duration // of a request; 2 s
	Round        time.Duration // from one comparison with another replica to the next; 1 s
	ReplaceAfter time.Duration // how long a disk may be away until others get its place; 10 min
	Grace        time.Duration // how long a deletion is remembered, and a disk may be away; 24 h
}

// Majority returns how many of n are a majority: n/2 + 1.
func Majority(n int) int { return core.Quorum(n) }

// Memory returns an engine without a disk.
func Memory() disk.Engine { return core.Memory() }

// Errors of requests; match them with errors.Is. With those of the first group nothing was done.
var (
	ErrTooLarge   = core.ErrTooLarge   // a key or value exceeds its bound, or the key is empty
	ErrBusy       = core.ErrBusy       // MaxRequests are under way
	ErrMembers    = core.ErrMembers    // the store has fewer nodes than asked for, or its disk was alone for too long
	ErrNotFounded = core.ErrNotFounded // the store has not begun
	ErrVersion    = core.ErrContext    // the Version is none of this store, or names changes that were never made
	ErrUnable     = core.ErrUnable     // no replica of the key can make the change: all lack what others hold, or are full
	ErrClosed     = fenced.ErrClosed   // the store is closed, or its node has ended

	ErrTooFew   = core.ErrTimeout  // wrapped by *TooFewError; a write may be kept all the same
	ErrSiblings = core.ErrSiblings // the key has MaxSiblings values at too many replicas: read them; a write may be kept
)

// Errors of Open; match them with errors.Is.
var (
	ErrDisk = core.ErrDisk // the disk is that of another store, cluster or address
	ErrOld  = core.ErrOld  // the disk was away for longer than Grace: deletions may be forgotten that it does not know
	ErrName = errors.New("quorum: a name has 1 to 200 bytes, and is open once on a node")
)

// TooFewError says that fewer replicas than asked for have answered in time. A write may be kept all the same, and be
// seen later. It wraps ErrTooFew.
type TooFewError struct {
	Have, Need int // replicas, as far as this node knows
}

// Error names both numbers.
func (e *TooFewError) Error() string { return fmt.Sprintf("%v: %d of %d", ErrTooFew, e.Have, e.Need) }

// Unwrap returns ErrTooFew.
func (e *TooFewError) Unwrap() error { return ErrTooFew }

// config is s as the machine has it.
func (s *Store) config() core.Config {
	return core.Config{N: s.N, R: s.R, W: s.W, Mode: core.Mode(s.Mode), Short: s.Short, MaxKey: s.MaxKey,
		MaxValue: s.MaxValue, MaxSiblings: s.MaxSiblings, MaxRequests: s.MaxRequests, MaxHints: s.MaxHints,
		HintAge: s.HintAge, Timeout: s.Timeout, Round: s.Round, ReplaceAfter: s.ReplaceAfter, Grace: s.Grace}
}

// records is s as the machine of fenced records has it. The values know for ReplaceAfter that a disk is away, before it
// loses its place; an empty disk in its place is known at once. A moment is for what else the nodes hear meanwhile.
func (s *Store) records() records.Config {
	c := s.config().WithDefaults()
	return records.Config{Timeout: c.Timeout, ReplaceAfter: min(c.ReplaceAfter, 5*c.Round)}
}

// Validate returns all that is wrong with s, or nil.
func (s Store) Validate() error {
	var faults []error
	if len(s.Name) < 1 || len(s.Name) > 200 {
		faults = append(faults, fmt.Errorf("%w: this one has %d", ErrName, len(s.Name)))
	}
	if s.Engine == nil {
		faults = append(faults, errors.New("quorum: Engine is missing: quorum/pebble has one on disk, Memory none"))
	}
	if s.Founders < 0 || s.Founders > core.MaxDisks {
		faults = append(faults, fmt.Errorf("quorum: Founders is %d, must be 0 to %d", s.Founders, core.MaxDisks))
	}
	if n := s.config().WithDefaults().N; s.Founders > 0 && s.Founders < n && !s.Short {
		faults = append(faults, fmt.Errorf("quorum: Founders is %d, which is Short of N, %d", s.Founders, n))
	}
	return errors.Join(append(faults, s.config().Validate())...)
}

// Version is what a Reading has read: a write on top of it replaces that and nothing else. Its bytes may be kept and
// handed to another node of the cluster; they mean nothing else. Nil has read nothing.
type Version []byte

// Reading is what a key has. Its bytes are the caller's.
type Reading struct {
	Values  [][]byte // that none replaces: none if there is no value, several only of Siblings
	Version Version
}

// Stats are the counts of a store on one node.
type Stats = kith.ValuesStats

// HandOn is what others need a disk for that leaves.
type HandOn = stats.HandOn
