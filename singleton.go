// Singletons: entities of which the cluster has one, on the oldest member of a role.

package kith

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/leases"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/shard/strategy"
)

// Bounds of Singleton and Daemons.
const (
	DefaultMinBackoff = time.Second
	DefaultMaxBackoff = time.Minute
	MaxDaemons        = 10_000 // of one Daemons
)

// Singleton declares an entity of which the cluster has one, on the oldest member of a role: docs/singletons.md. Name
// and Role must agree on all nodes. It needs Name, and New, Open or Typed.
type Singleton struct {
	// Name names it in the whole cluster, among types and daemons: 1 to 255 bytes. It is the entity's id too, so a handler
	// reaches it by Context.Tell(name, name, payload).
	Name string
	// Role limits it to members with this role; empty means all.
	Role string
	// Mode is how its handler is executed; the zero value is Blocking.
	Mode Mode
	// New makes it when it begins on a node, without a message: on each under a higher fence, which is to be given to
	// every store that it writes to.
	New func(f Fence) Handler
	// Open takes the place of New for one that may fail to be made; see EntityType.Open. It is tried again after a rest.
	Open func(c *Context) (Handler, error)
	// Typed takes the place of both, for messages that are values; see EntityType.Typed.
	Typed Opener
	// MailboxBytes bounds what waits for it where it lives; see EntityType.MailboxBytes.
	MailboxBytes int
	// MinBackoff is how long it rests after a panic, or when it could not be made, before it is made again; that doubles
	// with each failure that follows within MaxBackoff, up to MaxBackoff. Zero means 1 s and 1 min; at most a day.
	MinBackoff, MaxBackoff time.Duration
	// Lease is the lock without which it does not live; the zero value is none.
	Lease SingletonLease
}

// SingletonLease is a lock outside of the cluster that a singleton holds as long as it lives, so that there is one of
// it also where the sides of a broken cluster both live on. The owner is the node and the fence of its ownership. All
// nodes are to give the same. No call disturbs anything but the singleton, whether it hangs, errs or panics: then it
// waits, and Health, Stats and the log say why.
type SingletonLease struct {
	// Service keeps the lock; nil: the singleton needs none. Package sbr/leasetest is the suite that it has to pass. One
	// call is made at a time. It must give the lock to nobody else for longer than Hold, and as long as a handler may take
	// to return, after the last call that acquired it; and must not give it for ever to an owner that has crashed.
	Service Lease
	// Name names the lock; empty means Config.Name, "-singleton-" and the singleton's name.
	Name string
	// Timeout is how long one call may take; none counts as an error (2 s).
	Timeout time.Duration
	// Renew is how often the lock is asked for again while it is held, and the longest rest between two attempts while it
	// is not (5 s); the first rest is Singleton.MinBackoff, and each is twice the one before.
	Renew time.Duration
	// Hold is how long the singleton lives on after the last call that acquired the lock was made, when none succeeds any
	// more (20 s): then it is stopped, without a call of Stop, and begins again when the lock is held. An answer that
	// another has the lock stops it at once.
	Hold time.Duration
}

// Defaults and bounds of a SingletonLease.
const (
	DefaultLeaseTimeout = 2 * time.Second
	DefaultLeaseRenew   = 5 * time.Second
	DefaultLeaseHold    = 20 * time.Second
	MaxLeaseHold        = time.Hour
	MaxLeaseName        = 1 << 10 // bytes of SingletonLease.Name
)

// keep is what the driver needs to know of the lease of a singleton in a cluster, and what is wrong with it.
func (s Singleton) keep(cluster string, rest time.Duration, of *entity.Keep) (*driver.Keep, error) {
	l := s.Lease
	k := &driver.Keep{Keep: *of, Lease: l.Service, Name: l.Name}
	for _, d := range []struct {
		set *time.Duration
		to  time.Duration
	}{{&l.Timeout, DefaultLeaseTimeout}, {&l.Renew, DefaultLeaseRenew}, {&l.Hold, DefaultLeaseHold}} {
		if *d.set == 0 {
			*d.set = d.to
		}
	}
	if k.Name == "" {
		k.Name = cluster + "-singleton-" + s.Name
	}
	k.Use = leases.Config{Timeout: l.Timeout, Renew: l.Renew, Hold: l.Hold, Backoff: min(rest, l.Renew)}
	var errs []error
	if l.Service == nil && (s.Lease != SingletonLease{}) {
		errs = append(errs, errors.New("Lease.Service is nil, and other fields of Lease are set"))
	}
	if l.Timeout < time.Millisecond || l.Renew < time.Millisecond || l.Hold > MaxLeaseHold ||
		l.Timeout+l.Renew >= l.Hold {
		errs = append(errs, fmt.Errorf("Lease.Timeout is %v, Renew %v and Hold %v: must be at least 1ms, at most %v, and "+
			"the first two together less than the last", l.Timeout, l.Renew, l.Hold, MaxLeaseHold))
	}
	if len(l.Name) > MaxLeaseName {
		errs = append(errs, fmt.Errorf("Lease.Name has %d bytes, must have at most %d", len(l.Name), MaxLeaseName))
	}
	return k, errors.Join(errs...)
}

// SingletonRef sends to a singleton, wherever it lives. What is sent while it moves, or lives nowhere, waits within
// Config.Sharding.ParkBytes and Config.Sharding.ParkTime. All methods are safe for concurrent use; messages from one
// goroutine keep their order.
type SingletonRef struct {
	region *Region
	name   string
}

// Singleton makes a singleton known on this node: members with its role may host it, every node that declared it can
// send to it. It is made without a message. Errors: ErrBadConfig with all faults of s; those of Register.
func (n *Node) Singleton(s Singleton) (*SingletonRef, error) {
	t, k, err := s.Kept()
	keep, bad := s.keep(n.d.Config().Name, t.RestartBackoff, k)
	if bad != nil {
		err = errors.Join(err, faults("singleton", t, bad))
	}
	if err != nil {
		return nil, err
	}
	r, err := driver.RegisterKept(n.d, t, keep)
	if err != nil {
		return nil, err
	}
	return &SingletonRef{&Region{r: r}, s.Name}, nil
}

// Kept returns the type that a singleton is, of one shard with one entity, and how that is kept alive: what package sim
// takes. It says nothing of Lease. The error has all faults.
func (s Singleton) Kept() (EntityType, *entity.Keep, error) {
	t := EntityType{Name: s.Name, Role: s.Role, Shards: 1, Mode: s.Mode, MailboxBytes: s.MailboxBytes,
		Strategy: strategy.Oldest{}}
	err := errors.Join(backoff(&t, s.MinBackoff, s.MaxBackoff),
		entity.CheckMakers(s.Name, s.New != nil, s.Open != nil, s.Typed))
	t.Open = func(c *Context) (Handler, error) {
		switch {
		case c.ID != s.Name:
			return nil, fmt.Errorf("%w: the only id of singleton %q is its name", ErrBadID, s.Name)
		case s.New != nil:
			return s.New(c.Fence), nil
		case s.Open != nil:
			return s.Open(c)
		}
		return s.Typed.Open(c)
	}
	return t, &entity.Keep{ID: func(ShardID) string { return s.Name }}, faults("singleton", t, err)
}

// backoff sets the restart policy of an entity that is kept alive.
func backoff(t *EntityType, least, most time.Duration) (err error) {
	if least < 0 || most < 0 || most > entity.MaxRestartWindow || most > 0 && least > most {
		return fmt.Errorf("MinBackoff is %v and MaxBackoff %v, must be rising and at most %v", least, most,
			entity.MaxRestartWindow)
	}
	t.RestartBackoff, t.RestartWindow = least, most
	if least == 0 {
		t.RestartBackoff = DefaultMinBackoff
		if most > 0 {
			t.RestartBackoff = min(DefaultMinBackoff, most)
		}
	}
	if most == 0 {
		t.RestartWindow = max(DefaultMaxBackoff, least)
	}
	return nil
}

// faults returns what is wrong with a declaration: err, and what the type finds that it comes to.
func faults(what string, t EntityType, err error) error {
	if err = errors.Join(err, t.WithDefaults().Validate()); err != nil {
		return fmt.Errorf("%w: %s %q: %w", ErrBadConfig, what, t.Name, err)
	}
	return nil
}

// Tell sends payload, which it copies; see Region.Tell.
func (r *SingletonRef) Tell(payload []byte) error { return r.region.Tell(r.name, payload) }

// TellWait is Tell that waits for room until ctx ends; see Region.TellWait.
func (r *SingletonRef) TellWait(ctx context.Context, payload []byte) error {
	return r.region.TellWait(ctx, r.name, payload)
}

// Ask sends payload and waits for the reply, which belongs to the caller; see Region.Ask.
func (r *SingletonRef) Ask(ctx context.Context, payload []byte) ([]byte, error) {
	return r.region.Ask(ctx, r.name, payload)
}

// Region returns the region of the singleton, for other forms of sending: the id is its Name, no other has a handler.
func (r *SingletonRef) Region() *Region { return r.region }

// Home returns the node on which the singleton lives, as far as this one knows, and whether it knows: not while it
// moves or lives nowhere.
func (r *SingletonRef) Home() (ID, bool) { return r.region.r.Home(0) }
