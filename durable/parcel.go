// Parcels: messages between durable entities, as they stand in an outbox and as they travel.

package durable

import (
	"bytes"
	"fmt"
	"time"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/wire"
)

// Bounds of messages that have their effect once.
const (
	// MaxOutbox is the most parcels of one entity that wait for an acknowledgement.
	MaxOutbox = 1000
	// MaxOutboxBytes is the most bytes of them, with what is beside the messages. They count against the record, too.
	MaxOutboxBytes = 256 << 10
	// MaxKey is the most bytes of a key of AskOnce.
	MaxKey = 255
	// MaxKeys is the most keys that an entity remembers.
	MaxKeys = 10_000
	// MaxKeptReply is the most bytes of a reply that is kept with its key.
	MaxKeptReply = 64 << 10
	// DefaultSeenFor is how long an entity remembers what it has handled.
	DefaultSeenFor = 7 * 24 * time.Hour
	leastSeenFor   = time.Second
	mostSeenFor    = 365 * 24 * time.Hour
)

// voidAfter is the age from which a sender asks that a parcel be void; giveUpAfter that at which it is given up, and at
// which no receiver takes it any more. The rest of the time that marks are kept is for clocks that differ.
func voidAfter(seen time.Duration) time.Duration   { return seen / 2 }
func giveUpAfter(seen time.Duration) time.Duration { return seen / 3 * 2 }

// parcel is one message in an outbox. Its fields do not change any more when it is there.
type parcel struct {
	number uint64
	typ    string // of the receiver
	id     string
	made   int64 // by its sender's clock, in milliseconds since 1970
	body   []byte
}

// size is how many bytes it takes in an outbox, at most.
func (p *parcel) size() int { return len(p.typ) + len(p.id) + len(p.body) + 40 }

// outboxForm is the form of an encoded outbox.
const outboxForm = 1

// appendOutbox encodes parcels, in order. gone says that the record is there for them alone: its entity was deleted.
func appendOutbox(dst []byte, gone bool, list []*parcel) []byte {
	if len(list) == 0 {
		return dst
	}
	dst = wire.AppendUvarint(wire.AppendBool(wire.AppendU8(dst, outboxForm), gone), uint64(len(list)))
	for _, p := range list {
		dst = wire.AppendUvarint(dst, p.number)
		dst = wire.AppendString(wire.AppendString(dst, p.typ), p.id)
		dst = wire.AppendBytes(wire.AppendU64(dst, uint64(p.made)), p.body)
	}
	return dst
}

// parseOutbox is the inverse. It copies what it returns.
func parseOutbox(b []byte) (gone bool, list []*parcel, err error) {
	if len(b) == 0 {
		return false, nil, nil
	}
	r := wire.NewReader(0, b)
	if form := r.U8(); form != outboxForm {
		return false, nil, fmt.Errorf("an outbox of form %d, this build knows %d", form, outboxForm)
	}
	gone = r.Bool()
	last := uint64(0)
	for range r.Count(1+1+1+8+1, MaxOutbox) {
		p := &parcel{number: r.Uvarint(), typ: r.String(maxTypeName), id: r.String(route.MaxIDSize), made: int64(r.U64()),
			body: bytes.Clone(r.Bytes(store.MaxBytes))}
		if r.Err() == nil && p.number <= last {
			return false, nil, fmt.Errorf("an outbox in which %d comes behind %d", p.number, last)
		}
		last = p.number
		list = append(list, p)
	}
	if err := r.Done(); err != nil {
		return false, nil, fmt.Errorf("an outbox: %w", err)
	}
	return gone, list, nil
}

// maxTypeName is the most bytes of the name of a type.
const maxTypeName = 255

// kind says what a message is that goes with a note.
type kind byte

// The kinds. They are spoken between nodes: numbers stay.
const (
	kindParcel kind = 1
	kindVoid   kind = 2 // the wish that a parcel be void
	kindSettle kind = 3 // to oneself: something is known of parcels of one's outbox
	kindWake   kind = 4 // to oneself: there is an outbox
	kindKey    kind = 5 // an ask of a caller that may come again
)

// noteMark begins the headers of messages that are none of the application's own.
const noteMark = "\x00kith once\x01"

// note goes beside a message, in its headers.
type note struct {
	kind kind
	from string // of a parcel: its sender; of an ask: its key
	// Of a parcel: its number, that of the one before it that is still in the outbox (0: none is), and when it was made.
	number, before uint64
	made           int64
}

// append encodes a note.
func (n *note) append(dst []byte) []byte {
	dst = wire.AppendU8(append(dst, noteMark...), byte(n.kind))
	switch n.kind {
	case kindParcel, kindVoid:
		dst = wire.AppendUvarint(wire.AppendUvarint(wire.AppendString(dst, n.from), n.number), n.before)
		return wire.AppendU64(dst, uint64(n.made))
	case kindKey:
		return wire.AppendString(dst, n.from)
	}
	return dst
}

// parseNote is the inverse; false for headers that are no note.
func parseNote(b []byte) (n note, is bool, err error) {
	rest, is := bytes.CutPrefix(b, []byte(noteMark))
	if !is {
		return note{}, false, nil
	}
	r := wire.NewReader(0, rest)
	switch n.kind = kind(r.U8()); n.kind {
	case kindParcel, kindVoid:
		n.from, n.number, n.before, n.made = r.String(store.MaxFrom), r.Uvarint(), r.Uvarint(), int64(r.U64())
		if r.Err() == nil && (n.from == "" || n.from[0] == 0 || n.number-1 >= 1<<63-1 || n.before >= n.number) {
			return note{}, true, fmt.Errorf("a parcel of %.64q with number %d behind %d", n.from, n.number, n.before)
		}
	case kindKey:
		if n.from = r.String(MaxKey); r.Err() == nil && n.from == "" {
			return note{}, true, fmt.Errorf("an ask with an empty key")
		}
	case kindSettle, kindWake:
	default:
		return note{}, true, fmt.Errorf("a note of kind %d", n.kind)
	}
	return n, true, r.Done()
}

// senderName is how a receiver knows a sender.
func senderName(typ, id string) string { return typ + "\x00" + id }

// outcome is what became of a parcel.
type outcome byte

// The outcomes; those of answers are spoken between nodes: numbers stay.
const (
	outcomeHandled outcome = 1
	outcomeVoid    outcome = 2 // it was not handled and never will be; a text may follow
	outcomeGap     outcome = 3 // one before it is not there yet
	outcomeOld     outcome = 4 // it is too old to be taken: it may have been handled
	outcomeRetry   outcome = 5 // it has to be sent again
)

// refused begins the text of a void that the receiver's handler has said.
const refused = "!"

// tells is the answer to a parcel.
func (o outcome) tells(text []byte) []byte { return append([]byte{byte(codeOK), byte(o)}, text...) }

// outcomeOf is the inverse.
func outcomeOf(answer []byte, err error) (o outcome, text string) {
	if err == nil {
		answer, err = answered(answer)
	}
	if err != nil || len(answer) == 0 || answer[0] == 0 || outcome(answer[0]) > outcomeOld {
		return outcomeRetry, ""
	}
	return outcome(answer[0]), string(answer[1:])
}
