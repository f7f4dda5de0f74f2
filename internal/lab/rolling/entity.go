// The entity: it notes the numbers of the messages that reach it, answers asks, and may carry a state.

package rolling

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/internal/cli/ledger"
)

// clusterName is the name of the cluster, typeName that of the entities' type, daemonsName that of daemons beside it,
// hostRole that of the members that host both.
const (
	clusterName = "rolling"
	typeName    = "rolling"
	daemonsName = "kept"
	hostRole    = "host"
)

// An ask has no payload, or names the entity to be asked by the one that is (4 bytes).
const (
	nestedSize = 4
	largeSize  = 16 << 10 // of one tell of Job.Large
	maxPayload = 4 << 10  // kith.Config.MaxPayload where there are large messages
)

var errPayload = errors.New("an entity takes a numbered message of 12 bytes or more, or an ask of none or 4")

var errState = errors.New("not the state of this entity")

type noter struct {
	page *ledger.Page
	work time.Duration
}

// Receive notes a numbered message, or answers an ask.
func (n *noter) Receive(ctx *kith.Context, payload []byte) error {
	if n.work > 0 {
		time.Sleep(n.work)
	}
	switch l := len(payload); {
	case l >= fleet.TellSize:
		fleet.Note(n.page, payload)
		return nil
	case l == nestedSize:
		if _, err := ctx.Ask(askTime, typeName, entityID(int(binary.LittleEndian.Uint32(payload))), nil); err != nil {
			return err
		}
		return ctx.Reply(nil)
	case l == 0:
		return ctx.Reply(nil)
	}
	return fmt.Errorf("%w: got %d bytes", errPayload, len(payload))
}

// Stop has nothing to flush: the page belongs to the process.
func (n *noter) Stop(*kith.Context) {}

// carrier is a noter with a state: the count of its messages since the first instance of its entity, and padding. It
// writes neither anywhere.
type carrier struct {
	noter
	id   string
	pads int
	life *life
}

// Receive counts what comes.
func (c *carrier) Receive(ctx *kith.Context, payload []byte) error {
	c.life.count.Add(1)
	return c.noter.Receive(ctx, payload)
}

// Stop tells that the count grows no more.
func (c *carrier) Stop(*kith.Context) { c.life.over.Store(true) }

// HandOver implements kith.Stateful.
func (c *carrier) HandOver(*kith.Context) ([]byte, error) {
	return stateOf(c.id, c.life.count.Load(), c.pads), nil
}

// TakeUp implements kith.Stateful. The state of another entity, and one that is not whole, is refused.
func (c *carrier) TakeUp(_ *kith.Context, state []byte) error {
	if len(state) < countSize {
		return fmt.Errorf("%w: %d bytes", errState, len(state))
	}
	n := binary.LittleEndian.Uint64(state)
	if !slices.Equal(state, stateOf(c.id, n, c.pads)) {
		return fmt.Errorf("%w: %d bytes, with the count %d", errState, len(state), n)
	}
	c.life.count.Store(n)
	c.life.began.Store(n)
	c.life.taken.Store(true)
	return nil
}

// entityType is the type of the entities: of noters, or, in a job with states, of carriers.
func entityType(l *ledger.Ledger, of *lives, j *Job) kith.EntityType {
	t := kith.EntityType{Name: typeName, Shards: j.Shards, Mode: j.Mode, Role: hostRole, MaxState: countSize + j.State,
		New: func(id string, fence kith.Fence) kith.Handler {
			n := noter{l.Page(id), j.Takes}
			if j.State == 0 {
				return &n
			}
			return &carrier{n, id, j.State, of.begin(id, fence)}
		}}
	if j.Kept > 0 {
		t.Remembered = func(_ context.Context, s kith.ShardID, _ kith.Fence) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) {
				for i := range j.Entities {
					if id := entityID(i); kith.ShardOf(id, j.Shards) == s && !yield(id, nil) {
						return
					}
				}
			}
		}
	}
	return t
}

func entityID(i int) string { return fmt.Sprintf("entity-%06d", i) }
