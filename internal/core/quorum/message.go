// Messages between replicas, as bytes.

package quorum

import (
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// kind is what a message is.
type kind uint8

const (
	write  kind = 1 // take this entry; with a number, say so
	wrote  kind = 2 // it is on disk, or why not
	read   kind = 3 // what has this key?
	held   kind = 4 // this; lacking: there may be more that this replica has yet to learn
	roots  kind = 5 // these are the sums of groups that both of us hold
	branch kind = 6 // that one differs: these are its leaves
	keys   kind = 7 // these are the keys of a leaf that differs
	fix    kind = 8 // these entries you lack, and these keys I want
	pull   kind = 9 // give me all of a group, from there on
	page   kind = 10
	lead   kind = 11 // make this change, of which the version is yours to give, and see it through
	led    kind = 12 // what became of it
)

// Reasons in wrote and led.
const (
	done     = 0
	siblings = 1 // the key has too many
	unable   = 2 // nothing was done: not a replica that holds all of its group, or its disk refuses
	unknown  = 3 // nothing was done: the context names changes of the receiver that it never made
	late     = 4 // too few replicas have acknowledged
)

// maxItems is the most items of one message.
const maxItems = 64

// item is one of several things in a message.
type item struct {
	key    []byte
	digest uint64
	entry  Entry
}

// message is one, decoded. Which fields count depends on its kind.
type message struct {
	kind    kind
	number  uint64 // of the request, 0 for none
	group   uint8
	leaf    uint8
	reason  uint8
	lacking bool
	more    bool
	key     []byte // also the key from which on
	last    []byte // of keys: the end of the range, empty for that of the leaf
	entry   Entry
	items   []item
	sums    []uint64
}

// append appends m.
func (m *message) append(b []byte) []byte {
	b = wire.AppendU64(append(b, byte(m.kind)), m.number)
	b = append(b, m.group, m.leaf, m.reason)
	b = wire.AppendBool(wire.AppendBool(b, m.lacking), m.more)
	b = AppendEntry(wire.AppendBytes(wire.AppendBytes(b, m.key), m.last), m.entry)
	b = wire.AppendUvarint(b, uint64(len(m.items)))
	for i := range m.items {
		x := &m.items[i]
		b = AppendEntry(wire.AppendU64(wire.AppendBytes(b, x.key), x.digest), x.entry)
	}
	b = wire.AppendUvarint(b, uint64(len(m.sums)))
	for _, s := range m.sums {
		b = wire.AppendU64(b, s)
	}
	return b
}

// readMessage reads what append wrote, within the bounds of c. Bytes lie in body.
func readMessage(body []byte, c *Config) (*message, error) {
	r := wire.NewReader(0, body)
	m := &message{kind: kind(r.U8()), number: r.U64(), group: r.U8(), leaf: r.U8(), reason: r.U8()}
	m.lacking, m.more, m.key, m.last = r.Bool(), r.Bool(), r.Bytes(c.MaxKey), r.Bytes(c.MaxKey)
	m.entry = ReadEntry(&r, c.maxEntry(), c.MaxValue)
	for range r.Count(1+8+1, maxItems) {
		x := item{key: r.Bytes(c.MaxKey), digest: r.U64()}
		x.entry = ReadEntry(&r, c.maxEntry(), c.MaxValue)
		m.items = append(m.items, x)
	}
	for range r.Count(8, Groups) {
		m.sums = append(m.sums, r.U64())
	}
	bad := m.kind < write || m.kind > led || m.group >= Groups || m.leaf >= leaves || m.reason > late
	if r.Err() == nil && bad {
		r.Fail(wire.ErrBadValue)
	}
	return m, r.Done()
}

// maxEntry is the most values that an entry may come to when siblings of several replicas meet.
func (c *Config) maxEntry() int { return 4 * c.MaxSiblings }

// Mail is a message to another replica.
type Mail struct {
	To   peer.ID
	Body []byte
}
