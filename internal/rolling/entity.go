// The entity: it notes the numbers of the messages that reach it, and answers asks.

package rolling

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/ledger"
)

// typeName is the name of the entities' type, hostRole that of the members that host it.
const (
	typeName = "rolling"
	hostRole = "host"
)

// tellSize is the size of a numbered message: sender (4 bytes), number (8), little-endian. An ask has no payload.
const tellSize = 12

var errPayload = errors.New("an entity takes a numbered message of 12 bytes, or an ask without payload")

type noter struct{ page *ledger.Page }

// Receive notes a numbered message, or answers an ask.
func (n *noter) Receive(ctx *kith.Context, payload []byte) error {
	switch len(payload) {
	case tellSize:
		n.page.Add(binary.LittleEndian.Uint32(payload), binary.LittleEndian.Uint64(payload[4:]))
		return nil
	case 0:
		return ctx.Reply(nil)
	}
	return fmt.Errorf("%w: got %d bytes", errPayload, len(payload))
}

// Stop has nothing to flush: the page belongs to the process.
func (n *noter) Stop(*kith.Context) {}

func entityType(l *ledger.Ledger, shards uint32, mode kith.Mode) kith.Type {
	return kith.Type{Name: typeName, Shards: shards, Mode: mode, Role: hostRole,
		New: func(id string, _ kith.Fence) kith.Handler { return &noter{l.Page(id)} }}
}

func entityID(i int) string { return fmt.Sprintf("entity-%06d", i) }
