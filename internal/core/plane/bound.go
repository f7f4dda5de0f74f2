// Bounds: which of a node's own a refusal is due to, and the words in which an ask is answered that met one.

package plane

import (
	"strconv"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Bounds are those of one node by which it refuses messages; each is in bytes, but Entities, which counts them.
type Bounds struct {
	Mailbox  int // of one entity of the type that a message is for; zero when that is not known here
	Budget   int // of all mailboxes
	Entities int // of a shard
	Queue    int // of its own for one worker or loop
	Large    int // of large messages
	Payload  int
	Kept     int // while its gate is closed
}

// Limit returns the bound that a refusal is due to, zero when there is none.
func (b *Bounds) Limit(why route.Reason) int {
	switch why {
	case route.MailboxFull:
		return b.Mailbox
	case route.BudgetFull:
		return b.Budget
	case route.TableFull:
		return b.Entities
	case route.QueueFull:
		return b.Queue
	case route.LinkFull:
		return b.Large
	case route.TooLarge:
		return b.Payload
	case route.Suspended:
		return b.Kept
	}
	return 0
}

// AppendLimit appends the text of an answer that refuses an ask: the limit and what it counts. Nothing without one.
func AppendLimit(b []byte, limit int, why route.Reason) []byte {
	if limit == 0 {
		return b
	}
	b = strconv.AppendUint(b, uint64(limit), 10)
	return append(append(b, ' '), why.Unit()...)
}

// ParseLimit reads the limit that such a text begins with, zero when it has none. The text may be anything: it is a
// peer's, and often a handler's.
func ParseLimit(text []byte) int {
	digits := 0
	for digits < len(text) && digits < 18 && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	if digits == 0 || digits == len(text) || text[digits] != ' ' {
		return 0
	}
	limit := 0
	for _, c := range text[:digits] {
		limit = limit*10 + int(c-'0')
	}
	return limit
}

// Blame says what the error of an ask names that was answered with a reason other than success.
type Blame uint8

// The blames.
const (
	BlameText Blame = iota // the reason and the text: a handler's, or of an ask that has gone to no other node
	BlameHere              // a bound of this node
	BlamePeer              // the node that was asked
	BlameThat              // a bound of the node that was asked, which has said the limit
)

// BlameFor returns what the error of an ask names. there says whether it went to another node. The limit is that of the
// bound when it is BlameThat; it may be zero where a node of wire version 1 said none.
func BlameFor(why route.Reason, there bool, text []byte) (blame Blame, limit int) {
	bound := why.Unit() != ""
	if bound {
		limit = ParseLimit(text)
	}
	switch {
	case limit == 0 && len(text) > 0: // a handler's error, or a bound that its answer met
		return BlameText, 0
	case !there && bound:
		return BlameHere, 0
	case !there:
		return BlameText, 0
	case bound:
		return BlameThat, limit
	}
	return BlamePeer, 0
}

// Ran returns err, the error of an ask that was answered with a reason and a text, so that route.MayHaveRun knows what
// the node does: nothing was handled of an ask that went nowhere; and where the text is not that of a refusal, the
// handler's answer met the bound, unless there was no handler or its codec refused the message. went says whether it
// went to a shard, here or on another node.
func Ran(why route.Reason, went bool, text []byte, err error) error {
	switch {
	case !went:
		return route.NotRun(err)
	case why == route.HandlerNamed: // it says so itself
	case why != route.NewFailed && why != route.BadPayload && len(text) > 0 && ParseLimit(text) == 0:
		return route.Ran(err)
	}
	return err
}

// NotifyTarget is the one to notify that a message is not delivered.
type NotifyTarget uint8

// The targets.
const (
	NotifyEmbedder NotifyTarget = iota // nobody waits: it is counted, and reported to the embedder of its sender
	NotifyAsker                        // the asker, by the answer, which is all that is said of it
	NotifyTransfer                     // the large message's own transfer, which notifies its sender
)

// NotifyTargetOf returns the target by the flags of the message's envelope.
func NotifyTargetOf(flags uint8) NotifyTarget {
	switch {
	case flags&wire.FlagBulk != 0:
		return NotifyTransfer
	case flags&wire.FlagAsk != 0:
		return NotifyAsker
	}
	return NotifyEmbedder
}
