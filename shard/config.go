// Config: the timing and bounds of the sharding machine, and the errors its commands return.

package shard

import (
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Defaults of Config.
const (
	DefaultRetryInterval = 250 * time.Millisecond
	DefaultRetryMax      = 2 * time.Second
	DefaultTakeoverTime  = 20 * time.Second
	DefaultBatchDelay    = 2 * time.Millisecond
	DefaultDrainPatience = 5 * time.Second
	DefaultMaxTypes      = 4096
)

// Config is the configuration of a Machine. The zero value means the defaults. TakeoverTime and what TakeoverFor
// returns must be the same on all nodes: it is how long a cut-off owner may still believe that it owns.
type Config struct {
	RetryInterval time.Duration // first repetition of unanswered mail; it doubles up to RetryMax
	RetryMax      time.Duration // longest pause between repetitions
	TakeoverTime  time.Duration // a lost owner's shards are given away no earlier than this after it was seen lost
	// TakeoverFor, when it is set, is used instead of TakeoverTime: it returns the takeover time for that many members, at
	// least one. It must not fall when the number grows.
	TakeoverFor   func(members int) time.Duration
	BatchDelay    time.Duration // homes wanted within this time of the last question go into one mail
	DrainPatience time.Duration // a leaving region that its coordinator leaves alone so long stops its shards itself
	// UnderWay, when it is set, reports whether mail that was sent to a peer at since or earlier has not arrived yet. What
	// is under way is not repeated: whoever carries it does that.
	UnderWay func(to peer.ID, since time.Duration) bool
	// Late, when it is set, reports whether somebody whom this node watches is late with a sign of life: then its word
	// does not wake a suspended node.
	Late func() bool
	// MaxTypes bounds the types that this node keeps a promise for, registered here or not: every member is asked about
	// every type of the cluster, so it is the cluster's bound, and Register returns ErrTooManyTypes above it.
	MaxTypes int
}

// Errors that commands return; match with errors.Is.
var (
	ErrTypeExists     = errors.New("shard: type registered already")
	ErrHashCollision  = errors.New("shard: another type's name has the same hash")
	ErrSettingsDiffer = errors.New("shard: settings differ from those of the cluster")
	ErrBadSettings    = errors.New("shard: bad settings")
	ErrUnknownType    = errors.New("shard: type not registered")
	ErrTooManyTypes   = errors.New("shard: too many types")
	ErrBadCommand     = errors.New("shard: unknown command")
)

// Validate returns all faults of c joined, or nil. Zero fields are valid.
func (c Config) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"RetryInterval", c.RetryInterval}, {"RetryMax", c.RetryMax}, {"TakeoverTime", c.TakeoverTime},
		{"BatchDelay", c.BatchDelay}, {"DrainPatience", c.DrainPatience}} {
		if f.d < 0 {
			errs = append(errs, fmt.Errorf("shard: %s is negative: %v", f.name, f.d))
		}
	}
	if full := c.withDefaults(); full.RetryMax < full.RetryInterval {
		errs = append(errs, fmt.Errorf("shard: RetryMax %v is below RetryInterval %v", full.RetryMax, full.RetryInterval))
	}
	if c.MaxTypes < 0 {
		errs = append(errs, fmt.Errorf("shard: MaxTypes is negative: %d", c.MaxTypes))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.RetryInterval, DefaultRetryInterval)
	set(&c.RetryMax, max(DefaultRetryMax, c.RetryInterval))
	set(&c.TakeoverTime, DefaultTakeoverTime)
	set(&c.BatchDelay, DefaultBatchDelay)
	set(&c.DrainPatience, DefaultDrainPatience)
	if c.MaxTypes == 0 {
		c.MaxTypes = DefaultMaxTypes
	}
	return c
}

// Validate returns ErrBadSettings with the reason, or nil: a name of 1 to route.MaxTypeName bytes, 1 to
// route.MaxShards shards, a role of at most MaxRole bytes.
func (s Settings) Validate() error {
	switch {
	case s.Name == "" || len(s.Name) > route.MaxTypeName:
		return fmt.Errorf("%w: name of %d bytes, must be 1 to %d", ErrBadSettings, len(s.Name), route.MaxTypeName)
	case s.Shards == 0 || s.Shards > route.MaxShards:
		return fmt.Errorf("%w: %d shards of %q, must be 1 to %d", ErrBadSettings, s.Shards, s.Name, route.MaxShards)
	case len(s.Role) > MaxRole:
		return fmt.Errorf("%w: role of %d bytes, must be at most %d", ErrBadSettings, len(s.Role), MaxRole)
	}
	return nil
}

// MaxRole is the longest role name, in bytes.
const MaxRole = 255
