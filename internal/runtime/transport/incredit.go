// Credit of an accepted data connection: what its reader gives back, and the way that it takes to the sender.

package transport

import (
	"fmt"

	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/wire"
)

// creditBack is the wire version since which credit comes back on the data connection itself, written by the loop that
// reads it. Before, it came on the receiver's own control connection, which wakes two loops more at each end.
const creditBack = 2

// Consumed gives back credit for n bytes of frames that Data delivered. It never blocks.
func (c *InConn) Consumed(n int) {
	if c.consume(n) {
		c.tell()
	}
}

// Stored is Consumed for frames that wait in this node to be worked off by others: it goes on the control connection,
// which takes longer. To hurry the sender would only fill mailboxes, and take the processor from the goroutines that
// empty them.
func (c *InConn) Stored(n int) {
	if !c.consume(n) {
		return
	}
	if c.presses() {
		c.tell() // behind what is said of full mailboxes
		return
	}
	c.from.control().owe(c)
}

// consume counts n bytes and reports whether the caller is to send the total.
func (c *InConn) consume(n int) (tell bool) {
	c.mu.Lock()
	total, due := c.meter.Consume(n)
	within := n >= 0 && total <= c.received
	tell = due && !c.telling
	c.telling = c.telling || due
	c.mu.Unlock()
	invariant.Check(within, "transport: more bytes consumed than were delivered")
	return tell
}

// told returns the running total that is being written to the peer now.
func (c *InConn) told() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tellingNow()
}

// toldElsewhere is told for the control connection. While something is full that its sender waits for, the total that
// was sent before is all that may go there: the rest comes behind that on the connection itself.
func (c *InConn) toldElsewhere() uint64 {
	c.mu.Lock()
	pressing, total := c.pressing.Any(), c.backTalk.told
	if !pressing {
		total = c.tellingNow()
	}
	c.telling = pressing
	c.mu.Unlock()
	if pressing {
		c.loop.Post((*back)(c))
	}
	return total
}

// tellingNow is told. The lock is held.
func (c *InConn) tellingNow() uint64 {
	total, _ := c.meter.Flush()
	c.telling, c.said, c.backTalk.told = false, true, total
	return total
}

func (c *InConn) consumedAny() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.meter.Total() > 0
}

// flushCredit sends the credit of what was consumed a while ago.
func (c *InConn) flushCredit() {
	c.mu.Lock()
	_, due := c.meter.Flush()
	tell := due && !c.telling
	c.telling = c.telling || due
	c.mu.Unlock()
	if tell {
		c.tell()
	}
}

// tell sends the total, on the connection itself if its sender looks for it there.
func (c *InConn) tell() {
	if c.version < creditBack || c.mute.Load() && !c.presses() {
		c.from.control().owe(c)
		return
	}
	c.loop.Post((*back)(c))
}

// back is the task that tells the credit of a connection on it.
type back InConn

// Run tells it, on the loop. A sender that does not read what comes back gets it on the control connection.
func (b *back) Run(*loop.Loop) {
	c := (*InConn)(b)
	switch {
	case c.c == nil:
		return
	case c.writer != nil && c.presses():
		return // goOn says it
	case c.writer != nil:
		c.mu.Lock()
		c.telling = false
		c.mu.Unlock()
		c.from.control().owe(c)
		return
	}
	c.answers = c.appendBack(c.answers)
	_ = c.answer() // which refuses nothing while no writer is blocked
}

// appendBack appends what is said on the connection itself: what is full, and behind it the credit.
func (c *InConn) appendBack(dst []byte) []byte {
	c.mu.Lock()
	c.speaking = false
	dst = c.pressing.Append(dst)
	c.mu.Unlock()
	return appendCredit(dst, c, c.told())
}

// appendCredit appends the frame that tells the credit of c.
func appendCredit(dst []byte, c *InConn, total uint64) []byte {
	dst, at := wire.BeginFrame(dst, wire.KindCredit, 0, 0)
	dst = wire.AppendCredit(dst, wire.Credit{Lane: c.number, Generation: c.generation, Consumed: total})
	wire.EndFrame(dst, at)
	return dst
}

// withinWindow checks that the sender keeps to its credit, so that what this node holds for it is bounded.
func (c *InConn) withinWindow(n, tells int) error {
	c.mu.Lock()
	c.received += uint64(n)
	c.tells += uint64(tells)
	open := c.received - c.meter.Total()
	c.mu.Unlock()
	if open > uint64(c.window)+uint64(c.t.cfg.MaxFrame) {
		return fmt.Errorf("%w: %d bytes not consumed, the window is %d", ErrProtocol, open, c.window)
	}
	return nil
}

// tellTaken says how many tells came on a data connection that is over, or on which no more is taken, if its sender
// wants to know.
func (c *InConn) tellTaken() {
	if c.lane != wire.LaneData || c.version < flow.TakenSince || c.from.id.Inc == 0 || c.t.cfg.Flights == nil {
		return
	}
	c.mu.Lock()
	taken := flow.Taken{Number: c.number, Generation: c.generation, Tells: c.tells}
	c.mu.Unlock()
	c.t.cfg.Flights.Taken(c.from.id, taken)
}

// Leave says that this node will not work off so many tells that Data delivered on c, and has given no credit back for
// them. It reports whether their sender will know them as lost in flight. If not, the connection is over and its sender
// knows them as taken: they have to be refused.
func (c *InConn) Leave(tells int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stands {
		return false
	}
	invariant.Check(uint64(tells) <= c.tells, "transport: more tells left than were delivered")
	c.tells -= uint64(tells)
	return true
}
