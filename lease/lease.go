// Package lease has locks outside of the cluster, for the resolver's strategy lease-majority and for singletons: files
// of one machine and the API of Kubernetes. Beside it, as modules of their own, are lease/etcd and lease/postgres, and
// lease/kith, the node binary with all of them. docs/leases.md compares them.
//
// All keep one rule: a lease has at most one owner at any time, by the clock of the service alone. It ends by itself
// when its owner has not asked for it for its TTL, and never earlier.
package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Service keeps leases: kith.Lease, and how long they last. All methods are safe for concurrent use.
type Service interface {
	// Acquire returns true when owner has the lease for TTL from the moment of the call, at least, or had it already;
	// false when another one has it. An error means that nothing is known: what was asked may have been done.
	Acquire(ctx context.Context, name, owner string) (bool, error)
	// Release gives it up; it returns nil also when owner does not have it. An Acquire of this owner at this Service
	// with an unknown end has no effect afterwards.
	Release(ctx context.Context, name, owner string) error
	// TTL is how long a lease lasts after the last Acquire of its owner.
	TTL() time.Duration
	// Close ends the connections. It gives nothing back.
	Close() error
}

// Bounds of a lease.
const (
	DefaultTTL = 2 * time.Minute // three times as long as a resolver holds it after the last removal
	MinTTL     = time.Second
	MaxTTL     = 24 * time.Hour
	MaxName    = 1 << 10 // bytes of a name, and of an owner
)

// CallTime bounds a call with a context without a deadline.
const CallTime = 10 * time.Second

// Errors of this package and of the modules beside it.
var (
	// ErrBadConfig is matched by what a lease cannot be opened with, whatever the service says.
	ErrBadConfig = errors.New("lease: bad configuration")
	// ErrBadName is matched by the refusal of a name or an owner that is empty or too long.
	ErrBadName = errors.New("lease: bad name")
	// ErrForeign is matched where something lies in the place of a lease that none of these wrote.
	ErrForeign = errors.New("lease: what lies there is no lease of kith")
)

// CheckTTL returns ttl, DefaultTTL for zero, or an error that matches ErrBadConfig.
func CheckTTL(ttl time.Duration) (time.Duration, error) {
	if ttl == 0 {
		ttl = DefaultTTL
	}
	if ttl < MinTTL || ttl > MaxTTL {
		return 0, fmt.Errorf("%w: the TTL is %v, must be %v to %v", ErrBadConfig, ttl, MinTTL, MaxTTL)
	}
	return ttl, nil
}

// CheckName returns an error that matches ErrBadName unless a name and an owner have 1 to MaxName bytes. They may be
// any.
func CheckName(name, owner string) error {
	for what, s := range map[string]string{"name": name, "owner": owner} {
		if s == "" || len(s) > MaxName {
			return fmt.Errorf("%w: the %s has %d bytes, must have 1 to %d", ErrBadName, what, len(s), MaxName)
		}
	}
	return nil
}

// Bound returns ctx with the deadline that every call has: its own, or CallTime from now.
func Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, CallTime)
}
