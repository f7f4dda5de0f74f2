// Type, Mode and Handler: how a user declares a kind of entity.

package entity

import (
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/route"
)

// Mode is how the handlers of a type are executed.
type Mode uint8

// The execution modes.
const (
	// Blocking handlers may block: each busy entity has a goroutine, an idle one has none. The default.
	Blocking Mode = 0
	// Worker handlers must not block: they run on the worker that owns their shard's table, without locks.
	Worker Mode = 1
	// Inline handlers must be tiny and must not block: they run on the event loop that received the message.
	Inline Mode = 2
)

// String names the mode.
func (m Mode) String() string {
	switch m {
	case Blocking:
		return "blocking"
	case Worker:
		return "worker"
	case Inline:
		return "inline"
	}
	return fmt.Sprintf("mode-%d", uint8(m))
}

// Restart is what becomes of an entity whose handler panicked.
type Restart uint8

// The restart policies.
const (
	// RestartFresh drops the instance; the next message makes a new one. The default.
	RestartFresh Restart = 0
	// RestartResume keeps the instance and goes on with the next message.
	RestartResume Restart = 1
)

// Defaults and bounds of a Type.
const (
	DefaultShards       = 1000
	DefaultMailboxBytes = 256 << 10
	MinMailboxBytes     = 1 << 10
)

// Handler is one entity: user code that gets one call at a time.
type Handler interface {
	// Receive handles one message. payload, c and c.ID are valid until it returns. An error reaches the asker and
	// leaves the entity alive; a panic follows the type's restart policy.
	Receive(c *Context, payload []byte) error
	// Stop is called once before the entity goes: hand-off, passivation or shutdown. It flushes under c.Fence. It is not
	// called for an instance that a panic ended, nor when the shard is lost already.
	Stop(c *Context)
}

// Type declares a kind of entity. The zero value of every field but Name and New is a good default. Name, Shards and
// Role must agree on all nodes; the others may differ.
type Type struct {
	// Name names the type in the whole cluster: 1 to 255 bytes.
	Name string
	// Shards is how many shards the ids are spread over: 1 to 1,048,576; zero means 1000.
	Shards uint32
	// Role limits the hosting nodes to members with this role; empty means all.
	Role string
	// Mode is how handlers are executed; the zero value is Blocking.
	Mode Mode
	// New makes the entity when its first message comes. id is the type's own copy and may be kept; f is the fence of
	// the ownership under which it lives, to be given to every store that it writes to.
	New func(id string, f route.Fence) Handler
	// MailboxBytes bounds what waits for one Blocking entity, RecordOverhead of each message included; zero means
	// 256 KiB, at least 1 KiB. A single message may exceed it when nothing else waits.
	MailboxBytes int
	// IdleAfter stops an entity that had no message for so long, at most a quarter later; its timers do not keep it
	// alive, their messages do. Zero means never.
	IdleAfter time.Duration
	// Restart is what becomes of an entity whose handler panicked; the zero value drops the instance.
	Restart Restart
}

// WithDefaults returns t with zero fields replaced by their defaults.
func (t Type) WithDefaults() Type {
	if t.Shards == 0 {
		t.Shards = DefaultShards
	}
	if t.MailboxBytes == 0 {
		t.MailboxBytes = DefaultMailboxBytes
	}
	return t
}

// Validate returns all faults of t joined, or nil. It judges t as given, so apply WithDefaults first.
func (t Type) Validate() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("type %q: "+format, append([]any{t.Name}, args...)...))
	}
	if t.Name == "" || len(t.Name) > route.MaxTypeName {
		fault("Name has %d bytes, must have 1 to %d", len(t.Name), route.MaxTypeName)
	}
	if t.Shards < 1 || t.Shards > route.MaxShards {
		fault("Shards is %d, must be 1 to %d", t.Shards, route.MaxShards)
	}
	if t.Mode > Inline {
		fault("Mode is %d, must be Blocking, Worker or Inline", t.Mode)
	}
	if t.New == nil {
		fault("New is nil")
	}
	if t.MailboxBytes < MinMailboxBytes {
		fault("MailboxBytes is %d, must be at least %d", t.MailboxBytes, MinMailboxBytes)
	}
	if t.IdleAfter < 0 {
		fault("IdleAfter is negative")
	}
	if t.Restart > RestartResume {
		fault("Restart is %d, must be RestartFresh or RestartResume", t.Restart)
	}
	return errors.Join(errs...)
}
