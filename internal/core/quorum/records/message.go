// Messages between replicas and owners, as bytes.

package records

import (
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// kind is what a message is.
type kind uint8

const (
	claim    kind = 1  // promise this ballot
	promised kind = 2  // promised, or there is a higher one; and what is held
	write    kind = 3  // take these entries
	wrote    kind = 4  // so far they are held, or why not
	read     kind = 5  // answer this, unless there is a higher ballot
	answered kind = 6  // that, or no more than what is promised and held
	fetch    kind = 7  // you lack something: get it there
	pull     kind = 8  // give me this part of a copy
	part     kind = 9  // here it is
	founding kind = 10 // what is written down of the store?
	founded  kind = 11
)

// Codes of answers.
const (
	yes     = 0
	no      = 1 // a higher ballot was promised
	lacks   = 2 // of wrote: the history before is not there
	without = 3 // of answered: yes, but it does not hold enough to say more
	full    = 4 // this disk holds as many shards as it may
)

// message is one, decoded. Which fields count depends on its kind.
type message struct {
	kind    kind
	shard   Shard
	number  uint64 // of the request; of pull and part: of the copy
	code    uint8
	want    bool // of read: the answer, not only whether there is a higher ballot
	part    int  // of pull and part
	ballot  Ballot
	promise Ballot
	stamp   Stamp // what is held; of write: what the owner took over
	state   uint64
	decided uint64 // of read
	before  route.Fence
	sets    Sets
	entry   []byte   // the last one
	entries [][]byte // of write: those behind it
	items   []Change // of part
	results []result // of the last entry
	query   Query
	answer  Answer
	from    peer.ID // of fetch: where it is; of part: the owner that asked for it
	found   found
}

// maxItems is the most items of one part, maxEntries the most entries of one write.
const (
	maxItems   = 4096
	maxEntries = 64
)

// append appends m, of the store with that id.
func (m *message) append(b []byte, store uint64) []byte {
	b = wire.AppendU64(append(b, byte(m.kind)), store)
	if m.kind == founding || m.kind == founded {
		return m.found.append(b)
	}
	b = wire.AppendU64(appendShard(b, m.shard), m.number)
	b = append(b, m.code)
	b = appendBallot(b, m.ballot)
	switch m.kind {
	case promised:
		b = m.appendHeld(b)
	case write:
		b = append(appendStamp(b, m.stamp), m.before[:]...)
		b = wire.AppendBytes(b, m.entry)
		b = wire.AppendUvarint(b, uint64(len(m.entries)))
		for _, e := range m.entries {
			b = wire.AppendBytes(b, e)
		}
	case wrote:
		b = appendResults(appendStamp(appendBallot(b, m.promise), m.stamp), m.results)
	case read:
		b = appendQuery(wire.AppendUvarint(wire.AppendBool(b, m.want), m.decided), &m.query)
	case answered:
		b = appendAnswer(m.appendHeld(b), &m.answer)
	case fetch:
		b = peer.AppendID(b, m.from)
	case pull:
		b = peer.AppendID(wire.AppendUvarint(b, uint64(m.part)), m.from)
	case part:
		b = wire.AppendUvarint(b, uint64(m.part))
		b = wire.AppendUvarint(b, uint64(len(m.items)))
		for _, c := range m.items {
			b = wire.AppendBool(wire.AppendBytes(b, c.Key), c.Value != nil)
			b = wire.AppendBytes(b, c.Value)
		}
		b = m.appendHeld(b)
	}
	return b
}

// appendHeld appends what a replica holds.
func (m *message) appendHeld(b []byte) []byte {
	b = append(appendStamp(appendBallot(b, m.promise), m.stamp), m.before[:]...)
	b = wire.AppendU64(appendSets(b, &m.sets), m.state)
	return wire.AppendBytes(b, m.entry)
}

func (m *message) readHeld(r *wire.Reader, c *Config) {
	m.promise, m.stamp = readBallot(r), readStamp(r)
	copy(m.before[:], r.Fixed(route.FenceSize))
	m.sets, m.state, m.entry = readSets(r), r.U64(), readBody(r, c)
}

// readBody reads an entry, nil for none.
func readBody(r *wire.Reader, c *Config) []byte {
	b := r.Bytes(c.MaxEntry + 1<<10)
	if len(b) == 0 {
		return nil
	}
	if _, err := readEntry(b); err != nil && r.Err() == nil {
		r.Fail(wire.ErrBadValue)
	}
	return b
}

// readMessage reads what append wrote, within the bounds of c. Bytes lie in body.
func readMessage(body []byte, c *Config) (m *message, store uint64, err error) {
	r := wire.NewReader(0, body)
	m = &message{kind: kind(r.U8())}
	store = r.U64()
	if m.kind == founding || m.kind == founded {
		m.found = readFound(&r)
		return m, store, r.Done()
	}
	m.shard, m.number, m.code, m.ballot = readShard(&r), r.U64(), r.U8(), readBallot(&r)
	switch m.kind {
	case claim:
	case promised:
		m.readHeld(&r, c)
	case write:
		m.stamp = readStamp(&r)
		copy(m.before[:], r.Fixed(route.FenceSize))
		m.entry = readBody(&r, c)
		for range r.Count(1, maxEntries) {
			if e := readBody(&r, c); e != nil {
				m.entries = append(m.entries, e)
			} else {
				r.Fail(wire.ErrBadValue)
			}
		}
	case wrote:
		m.promise, m.stamp, m.results = readBallot(&r), readStamp(&r), readResults(&r)
	case read:
		m.want, m.decided, m.query = r.Bool(), r.Uvarint(), readQuery(&r)
	case answered:
		m.readHeld(&r, c)
		m.answer = readAnswer(&r)
	case fetch:
		m.from = peer.ReadID(&r)
	case pull:
		m.part, m.from = r.Count(0, 1<<40), peer.ReadID(&r)
	case part:
		m.readPart(&r, c)
	default:
		r.Fail(wire.ErrBadValue)
	}
	if r.Err() == nil && m.code > full {
		r.Fail(wire.ErrBadValue)
	}
	return m, store, r.Done()
}

func (m *message) readPart(r *wire.Reader, c *Config) {
	m.part = r.Count(0, 1<<40)
	for range r.Count(3, maxItems) {
		x := Change{Key: r.Bytes(maxType + maxID + maxFrom + 32)}
		there := r.Bool()
		if x.Value = r.Bytes(2 * maxValue); !there {
			x.Value = nil
		} else if x.Value == nil {
			x.Value = []byte{}
		}
		m.items = append(m.items, x)
	}
	m.readHeld(r, c)
}

// Mail is a message to another replica, or owner, by the id of its disk.
type Mail struct {
	To   peer.ID
	Body []byte
}
