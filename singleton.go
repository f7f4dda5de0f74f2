// Singletons: entities of which the cluster has one, on the oldest member of a role.

package kith

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/driver"
	"github.com/kith-io/kith/shard/strategy"
)

// Bounds of Singleton and Daemons.
const (
	DefaultMinBackoff = time.Second
	DefaultMaxBackoff = time.Minute
	MaxDaemons        = 10_000 // of one Daemons
)

// Singleton declares an entity of which the cluster has one, on the oldest member of a role: docs/singletons.md. Name
// and Role must agree on all nodes. It needs Name, and New or Open.
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
	// Open takes the place of New for one that may fail to be made; see Type.Open. It is tried again after a rest.
	Open func(c *Context) (Handler, error)
	// MailboxBytes bounds what waits for it where it lives; see Type.MailboxBytes.
	MailboxBytes int
	// MinBackoff is how long it rests after a panic, or when it could not be made, before it is made again; that doubles
	// with each failure that follows within MaxBackoff, up to MaxBackoff. Zero means 1 s and 1 min; at most a day.
	MinBackoff, MaxBackoff time.Duration
}

// SingletonRef sends to a singleton, wherever it lives. What is sent while it moves, or lives nowhere, waits within
// Config.ParkBytes and Config.ParkTime. All methods are safe for concurrent use; messages from one goroutine keep their
// order.
type SingletonRef struct {
	region *Region
	name   string
}

// Singleton makes a singleton known on this node: members with its role may host it, every node that declared it can
// send to it. It is made without a message. Errors: ErrBadConfig with all faults of s; those of Register.
func (n *Node) Singleton(s Singleton) (*SingletonRef, error) {
	t, err := s.entityType()
	if err != nil {
		return nil, err
	}
	r, err := driver.RegisterKept(n.d, t, &entity.Keep{ID: func(ShardID) string { return s.Name }})
	if err != nil {
		return nil, err
	}
	return &SingletonRef{&Region{r: r}, s.Name}, nil
}

// entityType is the type that a singleton is: of one shard, with one entity.
func (s Singleton) entityType() (Type, error) {
	t := Type{Name: s.Name, Role: s.Role, Shards: 1, Mode: s.Mode, MailboxBytes: s.MailboxBytes,
		Strategy: strategy.Oldest{}}
	err := backoff(&t, s.MinBackoff, s.MaxBackoff)
	made := s.Open
	switch {
	case s.New == nil && s.Open == nil:
		err = errors.Join(err, errors.New("New is nil, and so is Open"))
	case s.New != nil && s.Open != nil:
		err = errors.Join(err, errors.New("New and Open are both set, must be one of them"))
	case s.New != nil:
		made = func(c *Context) (Handler, error) { return s.New(c.Fence), nil }
	}
	t.Open = func(c *Context) (Handler, error) {
		if c.ID != s.Name {
			return nil, fmt.Errorf("%w: the only id of singleton %q is its name", ErrBadID, s.Name)
		}
		return made(c)
	}
	return t, faults("singleton", t, err)
}

// backoff sets the restart policy of an entity that is kept alive.
func backoff(t *Type, least, most time.Duration) (err error) {
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
func faults(what string, t Type, err error) error {
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
