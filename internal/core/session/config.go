// Settings: how long a session lasts, and what follows from it.

// Package session decides when a node renews its session lease, until when it may handle messages on it, and when it
// ends the session of a member that is lost: a session that was ended proves that its owner handles nothing any more
// (SHD-13, MEM-10). Its rules are those of the model, docs/contributing/session.md. It is stepped: a runtime makes the
// calls of the store.
package session

import (
	"errors"
	"fmt"
	"time"
)

// Config is how long things last in the store. The zero value is: no sessions. It must be the same on all nodes.
type Config struct {
	TTL  time.Duration // of a session, MinTTL to MaxTTL
	Ends time.Duration // for how long the store keeps that a session was ended, LeastEnds times TTL at least
}

// Bounds of a Config.
const (
	MinTTL    = time.Second
	MaxTTL    = time.Minute
	LeastEnds = 10 // an end outlasts a session that many times
	MaxEnds   = 24 * time.Hour
)

// ErrBadConfig is matched by what Validate returns.
var ErrBadConfig = errors.New("session: bad settings")

// lossOf is what a clock may lose in a time, and what is kept for the call that was made just before its end: a tenth.
func lossOf(d time.Duration) time.Duration { return d / 10 }

// Validate returns all faults of c joined, or nil. Each matches ErrBadConfig.
func (c Config) Validate() error {
	if c == (Config{}) {
		return nil
	}
	var errs []error
	if c.TTL < MinTTL || c.TTL > MaxTTL {
		errs = append(errs, fmt.Errorf("%w: a session lasts %v, must be %v to %v", ErrBadConfig, c.TTL, MinTTL, MaxTTL))
	}
	if c.Ends < LeastEnds*c.TTL || c.Ends > MaxEnds {
		errs = append(errs, fmt.Errorf("%w: an end is kept for %v, must be %v (%d times the TTL) to %v", ErrBadConfig, c.Ends,
			LeastEnds*c.TTL, LeastEnds, MaxEnds))
	}
	return errors.Join(errs...)
}

// String returns c as one line, by which nodes compare it.
func (c Config) String() string { return fmt.Sprintf("ttl=%v ends=%v", c.TTL, c.Ends) }

// On reports whether nodes have sessions.
func (c Config) On() bool { return c.TTL > 0 }

// Sure is for how long an answer counts, from when its call was made.
func (c Config) Sure() time.Duration { return c.TTL - lossOf(c.TTL) }

// Renew is how often a node renews its session: three times in Sure.
func (c Config) Renew() time.Duration { return c.TTL * 3 / 10 }

// Limit is how long one call may take.
func (c Config) Limit() time.Duration { return c.TTL / 5 }

// Retry is the rest after a call that failed, and between two attempts to end one session.
func (c Config) Retry() time.Duration { return c.TTL / 10 }

// Outage is how long a node may be without a session before it ends: the store keeps an end for that time, and a TTL
// and what the clock may lose more.
func (c Config) Outage() time.Duration { return c.Ends - lossOf(c.Ends) - c.TTL }
