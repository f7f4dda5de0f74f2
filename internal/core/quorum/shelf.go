// Shelf: what a replica has on its disk, and what it knows of that.

package quorum

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Stats counts.
type Stats struct {
	Requests   int    // under way
	Hints      int    // that wait
	HintBytes  int    // of these
	Lacking    int    // groups of which this replica has yet to read what the others hold
	Keys       int    // on the disk, deletions among them
	Repairs    uint64 // entries sent to replicas that answered a read without them
	Exchanged  uint64 // entries taken from comparisons and catching up
	HintsGone  uint64 // dropped: too many, too old, or for one that is no member any more
	Refused    uint64 // messages that were no messages, or from the future
	Failed     uint64 // commits that the disk refused
	Damaged    uint64 // entries on this disk that were found to be damaged
	Purged     uint64 // deletions forgotten after Grace
	Conflicted uint64 // reads that found several values
}

// identity is the record by which a disk is known.
type identity struct {
	name     string
	id       peer.ID
	alive    int64  // when it last was a replica among others, by the wall clock in milliseconds
	reserved uint64 // numbers of changes below were given out
	in       uint64 // groups that it holds, a bit each
	lacking  uint64 // of these, those that it has yet to read from others
}

const (
	reserve  = 1 << 16
	identKey = "i"
	maxName  = 255
	everyone = ^uint64(0)
	future   = int64(time.Hour / time.Millisecond) // a deletion may be ahead of this replica's clock
)

func (i *identity) change() Change {
	b := wire.AppendU64(peer.AppendID(wire.AppendString(nil, i.name), i.id), uint64(i.alive))
	return Change{Key: []byte(identKey),
		Value: wire.AppendU64(wire.AppendU64(wire.AppendU64(b, i.reserved), i.in), i.lacking)}
}

func (i *identity) read(b []byte) error {
	r := wire.NewReader(0, b)
	*i = identity{r.String(maxName), peer.ReadID(&r), int64(r.U64()), r.U64(), r.U64(), r.U64()}
	return r.Done()
}

// letter is a message that waits for Sync.
type letter struct {
	from peer.ID
	x    *message
}

// step is what one Sync does to the disk.
type step struct {
	keys    []string // that change, in order
	caught  bool     // a group has been read
	before  map[string]Entry
	after   map[string]Entry
	answers []letter // the receiver, and what to send, once it is on disk
	made    []*made  // changes that this replica makes
	failed  error
}

// made is a change of one step.
type made struct {
	from    peer.ID // the node that asked for it
	number  uint64  // its tag there
	request *request
}

// answer sends a message once this step is on disk.
func (s *step) answer(to peer.ID, x *message) { s.answers = append(s.answers, letter{to, x}) }

// bytesOf returns an entry as the disk has it: nil, for none, deletes it.
func bytesOf(e Entry) []byte {
	if len(e) == 0 {
		return nil
	}
	return AppendEntry(nil, e)
}

// catching is how far this replica is in reading a group that it lacks.
type catching struct {
	from  peer.ID // the replica that it asks; zero for none
	after []byte
	asked time.Duration
	gave  []peer.ID // the disks that it has all from
	whole []peer.ID // of these, the replicas that lack nothing
}

// hint is a write that waits for one replica. It never counts for W.
type hint struct {
	number uint64
	to     peer.ID
	at     int64
	key    []byte
	entry  Entry
	size   int
	asked  time.Duration // when it was sent last; 0 for never
}

// shelf is the disk of a replica.
type shelf struct {
	cfg      Config
	disk     Engine
	wall     int64
	ident    identity
	seq      uint64
	old      bool
	trees    [Groups][leaves]uint64
	counts   [Groups][leaves]int // of keys
	catching [Groups]catching
	pending  []Change // that the next commit makes too
	hints    []*hint
	hinted   uint64 // the last number of a hint
	cursor   []byte // of the sweep
	stats    Stats
}

// ID returns the id of the disk.
func (d *shelf) ID() peer.ID { return d.ident.id }

// Old reports that this replica was alone for longer than deletions are remembered. It answers no more: its disk has to
// be emptied.
func (d *shelf) Old() bool { return d.old }

// stamp returns the value of a write under a number that this replica never uses again.
func (d *shelf) stamp(c *PutCommand) (Versioned, error) {
	if d.seq+1 >= d.ident.reserved {
		next := d.ident
		next.reserved += reserve
		if err := d.disk.Commit([]Change{next.change()}); err != nil {
			d.stats.Failed++
			return Versioned{}, fmt.Errorf("quorum: reserving numbers of changes: %w", err)
		}
		d.ident = next
	}
	d.seq++
	v := Versioned{By: d.ident.id, Seq: d.seq, Data: c.Data}
	if c.Delete {
		v.Deleted, v.At, v.Data = true, d.wall, nil
	}
	return v, nil
}

// holds reports whether this replica has read all that others hold of a group that is its own.
func (d *shelf) holds(group uint8) bool {
	return d.ident.in>>group&1 == 1 && d.ident.lacking>>group&1 == 0
}

// count keeps the trees.
func (d *shelf) count(key []byte, before, after Entry) {
	group, leaf := place(key)
	d.trees[group][leaf] ^= before.digest(key) ^ after.digest(key)
	if len(before) > 0 {
		d.counts[group][leaf]--
	}
	if len(after) > 0 {
		d.counts[group][leaf]++
	}
}

// entry returns what a key has, also what this step has done to it.
func (d *shelf) entry(s *step, key []byte) Entry {
	if e, ok := s.after[string(key)]; ok {
		return e
	}
	b, err := d.disk.Get(diskKey(key))
	if err != nil {
		s.failed = err
		return nil
	}
	if b == nil {
		return nil
	}
	r := wire.NewReader(0, b)
	e := ReadEntry(&r, d.cfg.maxEntry(), d.cfg.MaxValue)
	if r.Done() != nil {
		d.damaged(diskKey(key))
		return nil
	}
	return e.own()
}

// damaged notes that an entry of this disk is not what was written. What it held is not known, so this replica has to
// read its group from the others before it counts again.
func (d *shelf) damaged(at []byte) {
	d.stats.Damaged++
	if d.recount(at[1], at[2]); d.ident.lacking>>at[1]&1 == 0 {
		d.ident.lacking |= 1 << at[1]
		d.catching[at[1]] = catching{}
		d.pending = append(d.pending, d.ident.change())
	}
}

// recount works out a leaf anew, as the disk has it.
func (d *shelf) recount(group, leaf uint8) {
	d.trees[group][leaf], d.counts[group][leaf] = 0, 0
	_ = d.disk.Each([]byte{'v', group, leaf}, nil, func(k, v []byte) bool {
		r := wire.NewReader(0, v)
		if e := ReadEntry(&r, d.cfg.maxEntry(), d.cfg.MaxValue); r.Done() == nil && len(k) > 3 {
			d.count(k[3:], nil, e)
		}
		return true
	})
}

// crowded reports whether a write would leave a key with too many siblings.
func (d *shelf) crowded(s *step, x *message) bool {
	e := d.entry(s, x.key)
	after, changed := e.Merge(x.entry, d.cfg.Mode)
	return changed && len(after) > d.cfg.MaxSiblings && len(after) > len(e)
}

// ahead reports whether an entry is from the future: a deletion far ahead of this clock, or a change of this replica
// that it has not made.
func (d *shelf) ahead(e Entry) bool {
	return slices.ContainsFunc(e, func(v Versioned) bool {
		return v.Deleted && v.At > d.wall+future || v.By == d.ident.id && v.Seq > d.seq || v.Past.Of(d.ident.id) > d.seq
	})
}

// merge takes an entry into what a key has, and reports whether that has changed it.
func (d *shelf) merge(s *step, key []byte, e Entry) bool {
	if len(key) == 0 || d.ahead(e) {
		d.stats.Refused++
		return false
	}
	before := d.entry(s, key)
	after, changed := before.Merge(e, d.cfg.Mode)
	if len(before) == 0 && d.forgettable(after) {
		return false // it was purged here, and is about to be elsewhere
	}
	if !changed || len(after) > d.cfg.maxEntry() || s.failed != nil {
		return false
	}
	d.set(s, key, before, after.own())
	return true
}

// set makes this step leave a key with an entry.
func (d *shelf) set(s *step, key []byte, before, after Entry) {
	k := string(key)
	if _, ok := s.after[k]; !ok {
		s.keys = append(s.keys, k)
		s.before[k] = before
	}
	s.after[k] = after
}

// forgettable reports whether an entry is deletions alone, all older than Grace.
func (d *shelf) forgettable(e Entry) bool {
	return !slices.ContainsFunc(e, func(v Versioned) bool {
		return !v.Deleted || d.wall-v.At <= d.cfg.Grace.Milliseconds()
	})
}

// each calls f with the entries of a disk under a prefix, after a key.
func (d *shelf) each(s *step, prefix, after []byte, f func(key []byte, e Entry) bool) {
	from := prefix
	if len(after) > 0 {
		from = diskKey(after)
	}
	var harmed [][]byte
	err := d.disk.Each(prefix, from, func(k, v []byte) bool {
		r := wire.NewReader(0, v)
		e := ReadEntry(&r, d.cfg.maxEntry(), d.cfg.MaxValue)
		if r.Done() != nil || len(k) <= 3 {
			harmed = append(harmed, slices.Clone(k))
			return true
		}
		return f(slices.Clone(k[3:]), e.own())
	})
	for _, at := range harmed {
		d.damaged(at)
	}
	if err != nil {
		s.failed = err
	}
}

// root is the sum of a group.
func (d *shelf) root(group int) (sum uint64) {
	for leaf, s := range d.trees[group] {
		sum ^= s * uint64(2*leaf+1)
	}
	return sum
}

// counted keeps the trees in step with what is on disk.
func (d *shelf) counted(s *step) {
	for _, key := range s.keys {
		d.count([]byte(key), s.before[key], s.after[key])
	}
}

// mostSwept is how many keys one round looks at for deletions to forget.
const mostSwept = 256

// sweep forgets deletions that are older than Grace. A replica that was away for longer does not come back (ErrOld), so
// nobody has what was deleted.
func (d *shelf) sweep() {
	s := &step{before: map[string]Entry{}, after: map[string]Entry{}}
	n, after := 0, d.cursor
	_ = d.disk.Each([]byte{'v'}, after, func(k, v []byte) bool {
		r := wire.NewReader(0, v)
		if e := ReadEntry(&r, d.cfg.maxEntry(), d.cfg.MaxValue); r.Done() == nil && len(k) > 3 && d.forgettable(e) {
			d.set(s, slices.Clone(k[3:]), e.own(), nil)
		}
		n++
		d.cursor = slices.Clone(k)
		return n < mostSwept
	})
	if n < mostSwept {
		d.cursor = nil
	}
	if len(s.keys) == 0 {
		return
	}
	batch := make([]Change, 0, len(s.keys))
	for _, key := range s.keys {
		batch = append(batch, Change{Key: diskKey([]byte(key))})
	}
	if err := d.disk.Commit(batch); err != nil {
		d.stats.Failed++
		return
	}
	d.stats.Purged += uint64(len(s.keys))
	d.counted(s)
}
