// Letters: messages as they stand in the store, what goes beside them to their receivers, and what owners are asked.

package delivery

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/wire"
)

// MaxPayload is the most bytes of a message: 4 KiB below what one commit of a store takes.
const MaxPayload = store.MaxBytes - 4<<10

// letterForm is the form of an encoded letter.
const letterForm = 1

// letter is one message as it is stored.
type letter struct {
	to   string
	made int64 // by its owner's clock, in milliseconds since 1970
	body []byte
	// Of a dead one: how often it was refused, whether it may have been handled all the same, and why it is dead.
	tries  int
	may    bool
	reason string
}

// encode returns the letter as it is stored.
func (l *letter) encode() []byte {
	b := make([]byte, 0, 32+len(l.to)+len(l.reason)+len(l.body))
	b = wire.AppendString(wire.AppendU8(b, letterForm), l.to)
	b = wire.AppendUvarint(wire.AppendU64(b, uint64(l.made)), uint64(l.tries))
	b = wire.AppendString(wire.AppendBool(b, l.may), l.reason)
	return append(b, l.body...)
}

// parseLetter is the inverse. What it returns shares its body with b.
func parseLetter(b []byte) (letter, error) {
	r := wire.NewReader(0, b)
	if form := r.U8(); form != letterForm {
		return letter{}, fmt.Errorf("a letter of form %d, this build knows %d", form, letterForm)
	}
	l := letter{to: r.String(route.MaxIDSize), made: int64(r.U64()), tries: int(r.Uvarint()), may: r.Bool(),
		reason: r.String(maxText)}
	l.body = r.Rest()
	if err := r.Err(); err != nil {
		return letter{}, fmt.Errorf("a letter: %w", err)
	}
	if err := route.CheckID(l.to); err != nil {
		return letter{}, fmt.Errorf("a letter: %w", err)
	}
	return l, nil
}

// idOf is the id of a message's record: its number, so that records are listed in the order in which they came.
func idOf(number uint64) string { return fmt.Sprintf("%016x", number) }

// numberOf is the inverse; false for an id that is none.
func numberOf(id string) (uint64, bool) {
	n, err := strconv.ParseUint(id, 16, 64)
	return n, err == nil && idOf(n) == id
}

// mark begins what is spoken between queues and consumers: headers of messages, and answers to them.
const mark = "\x00kith delivery\x01"

// note goes beside a message, in its headers.
type note struct {
	queue  string
	shard  route.ShardID // of the queue
	fence  kith.Fence    // of its owner
	number uint64
	before uint64 // the number of the nearest earlier one to the receiver that is not acknowledged yet; 0: none is
	try    int
	again  bool // it may have been handled
}

// append encodes a note.
func (n *note) append(dst []byte) []byte {
	dst = wire.AppendU32(wire.AppendString(append(dst, mark...), n.queue), uint32(n.shard))
	dst = append(dst, n.fence[:]...)
	dst = wire.AppendUvarint(wire.AppendUvarint(dst, n.number), n.before)
	return wire.AppendBool(wire.AppendUvarint(dst, uint64(n.try)), n.again)
}

// parseNote is the inverse; false for headers that are no note.
func parseNote(b []byte) (n note, is bool, err error) {
	rest, is := bytes.CutPrefix(b, []byte(mark))
	if !is {
		return note{}, false, nil
	}
	r := wire.NewReader(0, rest)
	n.queue, n.shard = r.String(maxName), route.ShardID(r.U32())
	if f := r.Fixed(route.FenceSize); r.Err() == nil {
		n.fence = kith.Fence(f)
	}
	n.number, n.before, n.try, n.again = r.Uvarint(), r.Uvarint(), int(r.Uvarint()), r.Bool()
	if err := r.Done(); err != nil {
		return note{}, true, err
	}
	if n.queue == "" || n.number == 0 || n.before >= n.number || n.try < 0 {
		return note{}, true, fmt.Errorf("number %d behind %d of queue %.64q", n.number, n.before, n.queue)
	}
	return n, true, nil
}

// outcome is what a consumer says of a message.
type outcome byte

// The outcomes. They are spoken between nodes: numbers stay.
const (
	outcomeHandled outcome = 1
	outcomeHad     outcome = 2 // it was handled before
	outcomeGap     outcome = 3 // one before it was not
	outcomeStale   outcome = 4 // a later owner of the queue has sent already
)

// tells is the answer that says so.
func (o outcome) tells() []byte { return append([]byte(mark), byte(o)) }

// outcomeOf is the inverse. Any other answer is that of a handler which has handled the message.
func outcomeOf(answer []byte) outcome {
	rest, is := bytes.CutPrefix(answer, []byte(mark))
	if !is || len(rest) != 1 {
		return outcomeHandled
	}
	return outcome(rest[0])
}

// verb is what the owner of a shard is asked to do.
type verb byte

// The verbs. They are spoken between nodes: numbers stay.
const (
	verbSend    verb = 1
	verbList    verb = 2
	verbAgain   verb = 3
	verbDiscard verb = 4
)

// request is what the owner of a shard is asked.
type request struct {
	verb   verb
	to     string // verbSend
	body   []byte
	number uint64 // of a dead letter; verbList: of the one before the page
	most   int    // verbList: letters of a page
}

// append encodes a request.
func (q *request) append(dst []byte) []byte {
	dst = wire.AppendU8(dst, byte(q.verb))
	if q.verb == verbSend {
		return append(wire.AppendString(dst, q.to), q.body...)
	}
	return wire.AppendUvarint(wire.AppendUvarint(dst, q.number), uint64(q.most))
}

// parseRequest is the inverse. It copies what it returns.
func parseRequest(b []byte) (q request, err error) {
	r := wire.NewReader(0, b)
	switch q.verb = verb(r.U8()); q.verb {
	case verbSend:
		q.to = r.String(route.MaxIDSize)
		if q.body = bytes.Clone(r.Rest()); len(q.body) > MaxPayload {
			return request{}, fmt.Errorf("a payload of %d bytes, must be at most %d", len(q.body), MaxPayload)
		}
		if err := r.Err(); err != nil {
			return request{}, err
		}
		return q, route.CheckID(q.to)
	case verbList, verbAgain, verbDiscard:
		q.number, q.most = r.Uvarint(), int(r.Uvarint())
		if r.Err() == nil && (q.most < 0 || q.most > MaxPage) {
			return request{}, fmt.Errorf("a page of %d letters, must be at most %d", q.most, MaxPage)
		}
	default:
		return request{}, fmt.Errorf("a request of kind %d", q.verb)
	}
	return q, r.Done()
}

// MaxPage is the most letters of one page of dead letters.
const MaxPage = 100

// Place is where a dead letter lies: in which shard of the queue, under which number. The zero Place is before all.
type Place struct {
	Shard  kith.ShardID
	Number uint64
}

// Letter is a dead letter: a message that its receiver did not acknowledge.
type Letter struct {
	Place
	To      string // the id of the receiver
	Payload []byte
	Made    time.Time // when it was stored, by the clock of the queue's owner then
	Tries   int       // how often the last owner of the queue saw it refused
	Reason  string    // why it is dead, with the text of the last error
	// MayHaveRun is whether it may have been handled all the same: an answer did not come, or the queue had another owner
	// meanwhile.
	MayHaveRun bool
}

// appendPage encodes a page of dead letters.
func appendPage(dst []byte, more bool, numbers []uint64, list [][]byte) []byte {
	dst = wire.AppendUvarint(wire.AppendBool(dst, more), uint64(len(list)))
	for i, b := range list {
		dst = wire.AppendBytes(wire.AppendUvarint(dst, numbers[i]), b)
	}
	return dst
}

// parsePage is the inverse.
func parsePage(b []byte, shard kith.ShardID) (more bool, list []Letter, err error) {
	r := wire.NewReader(0, b)
	more = r.Bool()
	for range r.Count(2, MaxPage) {
		n, enc := r.Uvarint(), bytes.Clone(r.Bytes(store.MaxBytes))
		if r.Err() != nil {
			break
		}
		l, err := parseLetter(enc)
		if err != nil {
			l = letter{reason: "it cannot be read: " + err.Error()}
		}
		list = append(list, Letter{Place: Place{shard, n}, To: l.to, Payload: l.body, Made: time.UnixMilli(l.made),
			Tries: l.tries, Reason: l.reason, MayHaveRun: l.may})
	}
	return more, list, r.Done()
}
