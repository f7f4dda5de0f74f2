// The entity: it notes the numbers of the messages that reach it, and answers asks.

package rolling

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/ledger"
)

// typeName is the name of the entities' type, hostRole that of the members that host it.
const (
	typeName = "rolling"
	hostRole = "host"
)

// tellSize is the size of a numbered message: sender (4 bytes), number (8), little-endian; large ones are longer. An
// ask has no payload, or names the entity to be asked by the one that is (4 bytes).
const (
	tellSize   = 12
	nestedSize = 4
	largeSize  = 16 << 10
	maxPayload = 4 << 10 // kith.Config.MaxPayload where there are large messages
)

var errPayload = errors.New("an entity takes a numbered message of 12 bytes or more, or an ask of none or 4")

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
	case l >= tellSize:
		n.page.Add(binary.LittleEndian.Uint32(payload), binary.LittleEndian.Uint64(payload[4:]))
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

func entityType(l *ledger.Ledger, j *Job) kith.Type {
	return kith.Type{Name: typeName, Shards: j.Shards, Mode: j.Mode, Role: hostRole,
		New: func(id string, _ kith.Fence) kith.Handler { return &noter{l.Page(id), j.Takes} }}
}

func entityID(i int) string { return fmt.Sprintf("entity-%06d", i) }
