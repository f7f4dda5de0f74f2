// Codec of the state: identities and roles once each, everything else by position, and the gzip around it (GOS-8).

package membership

import (
	"bytes"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const (
	stateFormat   = 2
	maxDictionary = 4096 // distinct roles, or versions, or deciders of one state
	maxStateSize  = wire.MaxControlFrame
	gzipRatio     = 1032 // the most that deflate can expand
	flagGzip      = 1 << 0
)

// appendCore appends everything but the seen set, and returns where the clock begins:
//
//	u8 format; u64 cluster; u64 birth; varint highest up-number
//	roles:    count, strings, sorted
//	versions: count, strings, sorted
//	deciders: count, ids, sorted
//	members:  count, then each: id, u8 status, varint up-number, count and positions of roles, version;
//	          if Down: u8 cause, decider
//	tombs:    count, then each: id, u8 last status; if Down: u8 cause, decider
//	rows:     count, then each: observer, varint version, count, then each record: subject, varint since, u8 kind
//	meta:     count, then each: key, value, varint count, id of the writer; sorted by key
//	clock:    count, then each: member, varint counter
//
// Observers, subjects and clock entries are positions in the list of members. A version or decider is its position
// in its list plus one, zero for none.
func appendCore(b []byte, s *version) ([]byte, int) { return new(work).appendCore(b, s) }

func (w *work) appendCore(b []byte, s *version) ([]byte, int) {
	at := len(b)
	b = wire.AppendU64(wire.AppendU64(append(b, stateFormat), s.cluster), s.birth)
	b = wire.AppendUvarint(b, uint64(s.highestUp))
	d := &w.words
	d.gather(s)
	b = d.append(b)
	b = wire.AppendUvarint(b, uint64(len(s.members)))
	for i := range s.members {
		m := &s.members[i]
		b = wire.AppendUvarint(append(peer.AppendID(b, m.ID), byte(m.Status)), uint64(m.UpNumber))
		b = wire.AppendUvarint(b, uint64(len(m.Roles)))
		for _, r := range m.Roles {
			at, _ := slices.BinarySearch(d.roles, r)
			b = wire.AppendUvarint(b, uint64(at))
		}
		b = d.appendVersion(b, m.AppVersion)
		b = d.appendVerdict(b, m.Status, m.Cause, m.By)
	}
	b = wire.AppendUvarint(b, uint64(len(s.tombs)))
	for _, t := range s.tombs {
		b = d.appendVerdict(append(peer.AppendID(b, t.id), byte(t.last)), t.last, t.cause, t.by)
	}
	b = wire.AppendUvarint(b, uint64(len(s.reach)))
	for _, r := range s.reach {
		b = wire.AppendUvarint(wire.AppendUvarint(b, uint64(s.index(r.observer))), r.version)
		b = wire.AppendUvarint(b, uint64(len(r.records)))
		for _, c := range r.records {
			b = wire.AppendUvarint(wire.AppendUvarint(b, uint64(s.index(c.subject))), c.since)
			b = append(b, byte(c.kind))
		}
	}
	b = appendMeta(b, s.meta)
	content := len(b) - at
	b = wire.AppendUvarint(b, uint64(len(s.clock)))
	i := 0
	for _, e := range s.clock {
		i = s.indexFrom(i, e.ID)
		b = wire.AppendUvarint(wire.AppendUvarint(b, uint64(i)), e.N)
	}
	return b, content
}

// readState reads a whole state, core and seen set, and seals it. Every invariant of a state is checked.
func readState(kind wire.Kind, b []byte) (*state, error) {
	r := wire.NewReader(kind, b)
	if r.U8() != stateFormat {
		r.Fail(wire.ErrBadWire)
	}
	s := newState(version{cluster: r.U64(), birth: r.U64(), highestUp: readU32(&r)})
	if r.Err() == nil && (s.cluster == 0 || s.birth == 0) {
		r.Fail(wire.ErrBadValue)
	}
	d := readDictionary(&r)
	readMembers(&r, s, d)
	readTombs(&r, s, d)
	readReach(&r, s)
	s.meta = readMeta(&r)
	n := r.Count(2, len(s.members))
	s.clock = make(gossip.Clock, 0, n)
	for range n {
		e := gossip.Entry{ID: readMember(&r, s), N: r.Uvarint()}
		check(&r, e.N > 0, len(s.clock) == 0 || s.clock[len(s.clock)-1].ID.Less(e.ID))
		s.clock = append(s.clock, e)
		if r.Err() != nil {
			break
		}
	}
	if r.Err() == nil {
		s.seen = gossip.ReadSeen(&r, len(s.members))
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return s.seal(), nil
}

// check fails r unless the value is in range and the order holds.
func check(r *wire.Reader, value, order bool) {
	switch {
	case r.Err() != nil:
	case !value:
		r.Fail(wire.ErrBadValue)
	case !order:
		r.Fail(wire.ErrBadOrder)
	}
}

func readU32(r *wire.Reader) uint32 {
	v := r.Uvarint()
	check(r, v <= 1<<32-1, true)
	return uint32(v)
}

func readMembers(r *wire.Reader, s *state, d dictionary) {
	n := r.Count(peer.MinIDSize+4, MaxMembers)
	s.members = make([]Member, 0, n)
	for range n {
		m := Member{ID: peer.ReadID(r), Status: Status(r.U8()), UpNumber: readU32(r)}
		count := r.Count(1, min(MaxRoles, len(d.roles)))
		var roles []string
		if count > 0 {
			roles = make([]string, 0, count)
		}
		last := -1
		for range count {
			i := r.Uvarint()
			check(r, i < uint64(len(d.roles)), int64(i) > int64(last))
			if r.Err() != nil {
				return
			}
			last = int(i)
			roles = append(roles, d.roles[i])
		}
		m.Roles = roles
		m.AppVersion = d.readVersion(r)
		m.Cause, m.By = d.readVerdict(r, m.Status)
		ok := !m.ID.Addr.IsZero() && m.ID.Inc != 0 && m.Status <= lastStatus && m.Status != Removed &&
			m.UpNumber <= s.highestUp
		if ok {
			n := m.Status.numbered()
			ok = (n <= 0 || m.UpNumber > 0) && (n >= 0 || m.UpNumber == 0)
		}
		check(r, ok, len(s.members) == 0 || s.members[len(s.members)-1].ID.Less(m.ID))
		if r.Err() != nil {
			return
		}
		if k := len(s.members); k > 0 && slices.Equal(s.members[k-1].Roles, roles) {
			m.Roles = s.members[k-1].Roles // most members have the roles of their neighbour: share the list
		}
		s.members = append(s.members, m)
	}
}

func readTombs(r *wire.Reader, s *state, d dictionary) {
	n := r.Count(peer.MinIDSize+1, MaxTombstones)
	s.tombs = make([]tombstone, 0, n)
	for range n {
		t := tombstone{id: peer.ReadID(r), last: Status(r.U8())}
		t.cause, t.by = d.readVerdict(r, t.last)
		check(r, !t.id.Addr.IsZero() && (t.last == Exiting || t.last == Down) && !s.has(t.id),
			len(s.tombs) == 0 || s.tombs[len(s.tombs)-1].id.Less(t.id))
		if r.Err() != nil {
			return
		}
		s.tombs = append(s.tombs, t)
	}
}

func readReach(r *wire.Reader, s *state) {
	n := r.Count(3, len(s.members))
	s.reach = make(reachability, 0, n)
	for range n {
		row := row{observer: readMember(r, s), version: r.Uvarint()}
		check(r, row.version > 0, len(s.reach) == 0 || s.reach[len(s.reach)-1].observer.Less(row.observer))
		for range r.Count(3, len(s.members)) {
			c := record{readMember(r, s), r.Uvarint(), recordKind(r.U8())}
			check(r, c.since > 0 && c.since <= row.version && c.subject != row.observer &&
				c.kind <= quarantined,
				len(row.records) == 0 || row.records[len(row.records)-1].subject.Less(c.subject))
			if r.Err() != nil {
				return
			}
			row.records = append(row.records, c)
		}
		if r.Err() != nil {
			return
		}
		s.reach = append(s.reach, row)
	}
}

// readMember reads a position in the list of members.
func readMember(r *wire.Reader, s *state) peer.ID {
	i := r.Uvarint()
	check(r, i < uint64(len(s.members)), true)
	if r.Err() != nil {
		return peer.ID{}
	}
	return s.members[i].ID
}

// coder packs and unpacks states. Its gzip halves are made when first needed and kept.
type coder struct {
	above int
	w     *gzip.Writer
	out   bytes.Buffer
	r     *gzip.Reader
	in    bytes.Reader
	raw   []byte
}

// pack returns flags and bytes of a state's payload: plain, or its length and its gzip form when that is smaller.
// They are valid until the next pack.
func (c *coder) pack(plain []byte) (flags byte, packed []byte) {
	if len(plain) < c.above {
		return 0, plain
	}
	c.out.Reset()
	c.out.Write(wire.AppendUvarint(nil, uint64(len(plain))))
	if c.w == nil {
		c.w, _ = gzip.NewWriterLevel(&c.out, gzip.DefaultCompression) // a known level: cannot fail
	} else {
		c.w.Reset(&c.out)
	}
	// Writing to memory cannot fail.
	_, _ = c.w.Write(plain)
	_ = c.w.Close()
	if c.out.Len() >= len(plain) {
		return 0, plain
	}
	return flagGzip, c.out.Bytes()
}

// unpack returns the plain payload, valid until the next unpack. The announced length is believed only up to what
// these bytes can expand to, and never above the limit of a control frame.
func (c *coder) unpack(kind wire.Kind, flags byte, packed []byte) ([]byte, error) {
	if flags&flagGzip == 0 {
		return packed, nil
	}
	r := wire.NewReader(kind, packed)
	size := r.Uvarint()
	if r.Err() == nil && (size > maxStateSize || size > uint64(r.Len())*gzipRatio) {
		r.Fail(wire.ErrTooLarge)
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	at := r.Offset()
	c.in.Reset(r.Rest())
	var err error
	if c.r == nil {
		c.r, err = gzip.NewReader(&c.in)
	} else {
		err = c.r.Reset(&c.in)
	}
	if err != nil {
		return nil, &wire.Error{Kind: kind, Offset: at, Err: wire.ErrBadValue}
	}
	c.r.Multistream(false)
	c.raw = slices.Grow(c.raw[:0], int(size))[:size]
	if _, err = io.ReadFull(c.r, c.raw); err != nil {
		return nil, &wire.Error{Kind: kind, Offset: at, Err: wire.ErrTruncated}
	}
	var more [1]byte
	if n, err := c.r.Read(more[:]); n != 0 || err != io.EOF || c.in.Len() != 0 {
		return nil, &wire.Error{Kind: kind, Offset: at, Err: wire.ErrTrailing}
	}
	return c.raw, nil
}
