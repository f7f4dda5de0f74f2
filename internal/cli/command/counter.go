// The demo entity: a counter that notes the numbers of the messages that reach it and answers how many came.

package command

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/internal/cli/ledger"
)

// demoType is the name of the demo entities' type.
const demoType = "counter"

var errDemoPayload = errors.New("a counter takes a numbered message of 12 bytes, or an ask without payload")

// counter is one demo entity.
type counter struct {
	page  *ledger.Page
	reply [8]byte
}

// Receive notes a numbered message, or answers an ask with the number of messages that have come.
func (c *counter) Receive(ctx *kith.Context, payload []byte) error {
	switch len(payload) {
	case fleet.TellSize:
		fleet.Note(c.page, payload)
		return nil
	case 0:
		binary.LittleEndian.PutUint64(c.reply[:], c.page.Total())
		return ctx.Reply(c.reply[:])
	}
	return fmt.Errorf("%w: got %d bytes", errDemoPayload, len(payload))
}

// Stop has nothing to flush: the page belongs to the process.
func (c *counter) Stop(*kith.Context) {}

// demo declares the demo entities; their messages are noted in l. Worker mode gives back-pressure to the senders
// instead of refusing messages for a full mailbox.
func demo(l *ledger.Ledger, shards uint32) kith.EntityType {
	return kith.EntityType{Name: demoType, Shards: shards, Mode: kith.Worker,
		New: func(id string, _ kith.Fence) kith.Handler { return &counter{page: l.Page(id)} }}
}

// entityID names the i-th demo entity.
func entityID(i int) string { return fmt.Sprintf("counter-%06d", i) }

// newLedger returns a ledger by the clock that all processes of this machine share.
func newLedger() *ledger.Ledger { return ledger.New(cli.NewClock(0).Now) }
