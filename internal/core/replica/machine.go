// Machine: the values of one node, and its verbs.

package replica

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Paces. A round tells one random member a digest; a rumour asks one what it holds of keys that changed lately.
const (
	Round    = time.Second
	rumour   = 100 * time.Millisecond
	more     = 20 * time.Millisecond  // until the next round with a member that was not sent everything
	again    = 300 * time.Millisecond // until members that have not answered are asked again
	idle     = 3 * time.Second        // a transfer without a step for so long is given up
	maxMoves = 8                      // states that come in or go out in pieces at a time
)

// Machine keeps the values of one node. It is not safe for concurrent use.
type Machine struct {
	self    peer.ID
	rng     *rand.Rand
	now     time.Duration
	members peer.Set // that hold values: neither down nor exiting, this one among them
	live    []peer.ID
	keys    map[string]*entry
	table   [buckets][]*entry // each by name
	sums    [buckets]uint64
	hot     []*entry // that changed lately, in the order of their changes
	bytes   int
	kept    kept
	waits   []*wait // in the order of their nonces' coming
	in, out []*transfer
	lastOut uint64

	roundAt, rumourAt time.Duration
	next              peer.ID // of the next round; zero: anybody
	effects           Effects
	stats             Stats
}

// New returns a machine without values that knows no member. rng belongs to it from now on.
func New(self peer.ID, rng *rand.Rand) *Machine {
	return &Machine{self: self, rng: rng, keys: map[string]*entry{}}
}

func (m *Machine) begin(now time.Duration) { m.now = max(m.now, now, 1) }

// Do carries out a command. With an error nothing has changed.
func (m *Machine) Do(now time.Duration, cmd Command) error {
	m.begin(now)
	switch c := cmd.(type) {
	case OpenCommand:
		return m.open(c)
	case UpdateCommand:
		return m.update(c)
	case ReadCommand:
		return m.read(c)
	case CancelCommand:
		m.drop(func(w *wait) bool { return w.nonce == c.Nonce })
		return nil
	case ViewCommand:
		m.view(c.View)
		return nil
	}
	return fmt.Errorf("%w: %T", ErrBadCommand, cmd)
}

func (m *Machine) open(c OpenCommand) error {
	e := m.keys[c.Name]
	switch {
	case e != nil && e.kind.Name != c.Kind.Name:
		return fmt.Errorf("%w: %q is %q, not %q", ErrOpen, c.Name, e.kind.Name, c.Kind.Name)
	case e != nil:
		return nil
	case c.Name == "" || len(c.Name) > MaxName:
		return ErrBadName
	case len(m.keys) >= MaxKeys:
		return ErrKeys
	}
	zero, err := c.Kind.Append(nil, c.Kind.Zero)
	if err != nil || c.Kind.Name == "" || len(c.Kind.Name) > maxKind {
		return fmt.Errorf("%w: %q: %w", ErrBadValue, c.Kind.Name, err)
	}
	e = &entry{name: c.Name, kind: c.Kind, value: c.Kind.Zero, zero: zero, size: len(zero), weighed: len(zero),
		bucket: int(xxhash.Sum64String(c.Name) % buckets)}
	m.bytes += e.size
	m.keys[c.Name] = e
	list := m.table[e.bucket]
	i, _ := slices.BinarySearchFunc(list, e.name, func(e *entry, n string) int { return strings.Compare(e.name, n) })
	m.table[e.bucket] = slices.Insert(list, i, e)
	m.roundAt = m.now // others may have it
	return nil
}

func (m *Machine) update(c UpdateCommand) error {
	e := m.keys[c.Name]
	switch {
	case e == nil:
		return fmt.Errorf("%w: %q", ErrNotOpen, c.Name)
	case c.Level != Local && len(m.waits) >= MaxWaiting:
		return ErrWaiting
	case len(e.held) >= MaxWriters && e.held.of(m.self) == 0:
		return ErrWriters
	}
	d := e.kind.Since(c.Change(e.value), e.value)
	body, err := e.kind.Append(nil, d)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadValue, err)
	}
	if !bytes.Equal(body, e.zero) {
		v := e.kind.Merge(e.value, d)
		size, err := m.fits(e, v, len(body))
		if err != nil {
			return err
		}
		n := e.held.of(m.self) + 1
		m.put(e, v, size)
		e.held.raise(m.self, n)
		m.kept.add(e, delta{m.self, n - 1, n, body})
		m.changed(e)
	}
	if c.Level != Local {
		m.await(&wait{nonce: c.Nonce, e: e, level: c.Level, need: slices.Clone(e.held)})
	}
	return nil
}

// fits returns how large a value is at most that has grown by so many bytes, and refuses one that is over a bound and
// not smaller than it was.
func (m *Machine) fits(e *entry, v any, grown int) (int, error) {
	size := e.size + grown
	if size <= MaxValue && m.bytes+grown <= MaxTotal {
		return size, nil
	}
	text, err := e.kind.Append(nil, v)
	was, _ := e.kind.Append(nil, e.value) // it was written once
	switch size = len(text); {
	case err != nil:
		return 0, fmt.Errorf("%w: %w", ErrBadValue, err)
	case size > MaxValue && size > len(was):
		return 0, fmt.Errorf("%w: %q", ErrTooLarge, e.name)
	case m.bytes-e.size+size > MaxTotal && size > len(was):
		return 0, fmt.Errorf("%w: %q", ErrFull, e.name)
	}
	return size, nil
}

// put makes v the value of a key, of at most size bytes. Sums of what deltas have brought are no more than a quarter
// too high: then the value is weighed.
func (m *Machine) put(e *entry, v any, size int) {
	e.value = v
	if size > e.weighed+e.weighed/4+256 {
		text, err := e.kind.Append(nil, v)
		if err == nil {
			size = len(text)
		}
		e.weighed = size
	}
	m.bytes += size - e.size
	e.size = size
}

// changed notes that a value, and what is held of it, has changed.
func (m *Machine) changed(e *entry) {
	was := e.sum
	e.sum = e.digest()
	m.sums[e.bucket] += e.sum - was
	if e.hot == 0 {
		if len(m.hot) == 0 {
			m.rumourAt = m.now
		}
		m.hot = append(m.hot, e)
	}
	e.hot = 3 + bits.Len(uint(len(m.members)))
	for i := range m.effects.Changes {
		if c := &m.effects.Changes[i]; c.Name == e.name {
			c.Value = e.value
			return
		}
	}
	m.effects.Changes = append(m.effects.Changes, Change{e.name, e.value})
}

func (m *Machine) view(v *cluster.View) {
	m.members, m.live = nil, m.live[:0]
	for i := range v.Members {
		id := v.Members[i].ID
		switch v.Members[i].Status {
		case cluster.Down, cluster.Exiting, cluster.Removed:
			continue
		}
		m.members = append(m.members, id) // those of a view are in order
		if id != m.self && !v.Unreachable.Has(id) {
			m.live = append(m.live, id)
		}
	}
	gone := func(t *transfer) bool { return !m.members.Has(t.peer) }
	m.in, m.out = slices.DeleteFunc(m.in, gone), slices.DeleteFunc(m.out, gone)
	for _, w := range slices.Clone(m.waits) {
		m.settle(w.e)
	}
}

// Handle takes one frame. An error means nonsense; nothing has changed then. Frames of incarnations that are no members
// are counted and dropped.
func (m *Machine) Handle(now, arrived time.Duration, from peer.ID, kind wire.Kind, body []byte) error {
	m.begin(now)
	if !m.members.Has(from) || from == m.self {
		m.stats.Strangers++
		return nil
	}
	switch kind {
	case wire.KindReplicaDigest:
		root, err := parseDigest(body)
		if err == nil && root != m.root() && len(m.keys) > 0 {
			m.send(from, wire.KindReplicaSums, appendSums(nil, &m.sums))
		}
		return err
	case wire.KindReplicaSums:
		sums, err := parseSums(body)
		if err == nil {
			m.compare(from, &sums)
		}
		return err
	case wire.KindReplicaHeld:
		f, err := parseHeldFrame(body)
		if err == nil {
			m.told(from, f)
		}
		return err
	case wire.KindReplicaDeltas:
		nonce, list, err := parseDeltas(body)
		if err == nil {
			err = m.deltas(from, nonce, list)
		}
		return err
	case wire.KindReplicaPiece:
		p, err := parsePiece(body)
		if err == nil {
			err = m.piece(from, p)
		}
		return err
	case wire.KindReplicaNext:
		id, offset, err := parseNext(body)
		if err == nil {
			m.nextPiece(from, id, offset)
		}
		return err
	}
	return fmt.Errorf("replicated: %s is not mine", kind)
}

// Tick handles every deadline that has passed.
func (m *Machine) Tick(now time.Duration) {
	m.begin(now)
	stale := func(t *transfer) bool { return m.now-t.at >= idle }
	m.in, m.out = slices.DeleteFunc(m.in, stale), slices.DeleteFunc(m.out, stale)
	for _, w := range m.waits {
		if w.againAt <= m.now {
			m.ask(w)
		}
	}
	if len(m.hot) > 0 && m.rumourAt <= m.now {
		m.spread()
	}
	if len(m.keys) > 0 && m.roundAt <= m.now {
		m.round()
	}
}

// Next returns the earliest deadline at which Tick has something to do.
func (m *Machine) Next() (deadline time.Duration, ok bool) {
	if len(m.keys) == 0 || len(m.live) == 0 {
		return 0, false
	}
	deadline = m.roundAt
	if len(m.hot) > 0 {
		deadline = min(deadline, m.rumourAt)
	}
	for _, w := range m.waits {
		deadline = min(deadline, w.againAt)
	}
	return deadline, true
}

// Drain hands over what the verbs since the last one want done.
func (m *Machine) Drain(out *Effects) {
	*out, m.effects = m.effects, Effects{Changes: out.Changes[:0], Done: out.Done[:0], Mail: out.Mail[:0]}
}

// Stats returns the counters as of the last verb.
func (m *Machine) Stats() Stats {
	s := m.stats
	s.Keys, s.Bytes, s.Waiting = len(m.keys), int64(m.bytes), len(m.waits)
	return s
}

// Value returns the value under a name, and whether it is open.
func (m *Machine) Value(name string) (any, bool) {
	if e := m.keys[name]; e != nil {
		return e.value, true
	}
	return nil, false
}

func (m *Machine) send(to peer.ID, kind wire.Kind, body []byte) {
	m.stats.Sent += uint64(len(body) + wire.HeaderSize)
	m.effects.Mail = append(m.effects.Mail, peer.Mail{To: to, Kind: kind, Body: body})
}
