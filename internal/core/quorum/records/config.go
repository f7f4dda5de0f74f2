// What a store of fenced records is asked for: its bounds and times, and what it answers.

// Package records keeps the records of shards on the disks of N members, under fences: Paxos for many decisions, with
// fences as ballots and the owner of a shard as the proposer. It is a machine that is stepped: the replica on its disk
// and the owners of its node are one Machine. It holds no socket and no clock; its disk is an Engine. The protocol is
// that of docs/contributing/quorum.md, and internal/sim/model/quorum has tried it in every order of events.
package records

import (
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/core/quorum"
	"github.com/kith-io/kith/wire"
)

// Engine is the disk of one replica, which may hold other things beside: all keys of this package begin with an r.
type Engine = quorum.Engine

// Change sets a key of an Engine, or deletes it where Value is nil.
type Change = quorum.Change

// Config is one store. The zero value of a field stands for its default; all members have to be given the same.
type Config struct {
	MaxEntry    int           // bytes of what is decided at once; 2 MiB, which has room for any one commit
	MaxWindow   int           // bytes of entries that an owner keeps for replicas that are behind; 4 MiB
	MaxRequests int           // under way at this node; 4,096
	MaxBytes    int           // of commits that wait at this node; 64 MiB
	MaxShards   int           // that this disk holds, and owners at this node; 65,536
	MaxCopies   int           // of shards from or to this node at a time; 8
	Page        int           // bytes of one part of a copy, and of one answer to a read; 256 KiB
	Timeout     time.Duration // of a request; 2 s
	// ReplaceAfter is how long a member of a set may be no member of MembersCommand.All before the owner of a shard puts
	// another one into its place, where there is one; 10 min.
	ReplaceAfter time.Duration
	Again        time.Duration // after which what was not answered is sent again, later by and by; 50 ms
}

// MaxReplicas is the most members of a set.
const MaxReplicas = 9

// Bounds of what a record may be, as package store has them.
const (
	maxType   = 255
	maxID     = wire.MaxIDSize
	maxFrom   = maxType + 1 + maxID
	maxWrites = 100
	maxMarks  = 64
	maxValue  = 1 << 20
	maxGroups = 256
	maxName   = 255
	maxForget = 10_000
)

// orDefault sets an empty field.
func orDefault[T comparable](field *T, to T) {
	var none T
	if *field == none {
		*field = to
	}
}

// WithDefaults returns c with defaults for what is zero.
func (c Config) WithDefaults() Config {
	orDefault(&c.MaxEntry, 2<<20)
	orDefault(&c.MaxWindow, 4<<20)
	orDefault(&c.MaxRequests, 4096)
	orDefault(&c.MaxBytes, 64<<20)
	orDefault(&c.MaxShards, 1<<16)
	orDefault(&c.MaxCopies, 8)
	orDefault(&c.Page, 256<<10)
	orDefault(&c.Timeout, 2*time.Second)
	orDefault(&c.Again, 50*time.Millisecond)
	orDefault(&c.ReplaceAfter, 10*time.Minute)
	return c
}

// Validate returns all that is wrong with c, or nil.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var faults []error
	in := func(name string, v, least, most int) {
		if v < least || v > most {
			faults = append(faults, fmt.Errorf("records: %s is %d, must be %d to %d", name, v, least, most))
		}
	}
	in("MaxEntry", c.MaxEntry, 2<<20, 16<<20)
	in("MaxWindow", c.MaxWindow, 0, 64<<20)
	in("MaxRequests", c.MaxRequests, 1, 1<<20)
	in("MaxBytes", c.MaxBytes, 2<<20, 1<<30)
	in("MaxShards", c.MaxShards, 1, 1<<20)
	in("MaxCopies", c.MaxCopies, 1, 256)
	in("Page", c.Page, 64, 1<<20)
	if c.Again < time.Millisecond || c.Again > c.Timeout || c.ReplaceAfter < c.Again {
		faults = append(faults, fmt.Errorf("records: Again %v must be 1ms or more, Timeout %v and ReplaceAfter %v not "+
			"below it", c.Again, c.Timeout, c.ReplaceAfter))
	}
	return errors.Join(faults...)
}

// Errors of requests.
var (
	ErrBusy      = errors.New("records: too much under way at this node")            // nothing was sent
	ErrTooLarge  = errors.New("records: out of bounds")                              // nothing was sent
	ErrUnfounded = fmt.Errorf("records: %w", quorum.ErrNotFounded)                   // nothing was sent
	ErrFenced    = errors.New("records: the shard was claimed under a higher fence") // nothing was written
	ErrUnclaimed = errors.New("records: the shard was not claimed under this fence") // nothing was written
	ErrVersion   = errors.New("records: a record is of another version")             // nothing was written
	ErrTimeout   = errors.New("records: too few replicas answered")                  // what was asked may take place
	ErrDisk      = errors.New("records: the disk is not that of this replica")
	ErrFounded   = errors.New("records: the store is founded already")
	ErrNonsense  = errors.New("records: a message that no replica sends")
)
