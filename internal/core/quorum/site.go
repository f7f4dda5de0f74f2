// Site: one store of a node: its machine, which disk each other node has, and disks that go for good: others get their
// places first.

package quorum

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// foundAfter is how long a store waits with its founding for members that say nothing of a disk.
const foundAfter = 5 * time.Second

// helloEvery is after how many rounds a site says again which disk it has to nodes that know it.
const helloEvery = 10

// ErrNotFounded is returned by requests as long as a store has not begun: too few empty disks have met, and none that
// holds it.
var ErrNotFounded = errors.New("quorum: the store has not begun: too few of its nodes have met")

// ViewCommand says which nodes are members of the cluster, and which of them this one reaches.
type ViewCommand struct{ Members, Reachable peer.Set }

func (ViewCommand) isCommand() {}

// met is what another node has said.
type met struct {
	disk    peer.ID
	founded bool
	spares  bool // it needs this disk, which leaves, no more
}

// leave is what a site knows of disks that go for good.
type leave struct {
	own    bool     // this one does
	told   bool     // and its disk knows that it holds no group any more: others may hear of it
	others peer.Set // those that have said so
}

// Site is one store of a node. It is not safe for concurrent use. Until its store has begun, or its empty disk has met
// one that holds the store, it has no machine and refuses requests.
type Site struct {
	table
	cfg      Config
	founding int // disks
	name     string
	self     peer.ID // the node
	disk     Engine
	rng      *rand.Rand
	now      time.Duration
	wall     int64
	machine  *Machine
	view     ViewCommand
	nodes    map[peer.ID]met           // by node
	away     map[peer.ID]time.Duration // by disk: since when
	given    MembersCommand            // to the machine
	fresh    bool                      // this disk was empty when it was opened: it adopts the tables of others
	lacks    bool                      // it knows that it was removed
	leave    leave
	metAt    time.Duration // when a node that was not known said something
	roundAt  time.Duration
	round    int
	differs  uint64 // hellos with other settings
	effects  Effects
}

// OpenSite opens a store on a disk, which becomes that of the node self if it is empty. founding is how many empty
// disks have to meet for the store to begin.
func OpenSite(cfg Config, founding int, name string, self peer.ID, disk Engine, wall int64,
	rng *rand.Rand) (*Site, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Site{cfg: cfg.WithDefaults(), founding: max(founding, 1), name: name, self: self, disk: disk, wall: wall,
		rng: rng, nodes: map[peer.ID]met{}, away: map[peer.ID]time.Duration{}}
	known, err := disk.Get([]byte(tableKey))
	if err != nil {
		return nil, fmt.Errorf("quorum: reading the table of the disk: %w", err)
	}
	if known != nil {
		if err := s.read(known); err != nil {
			return nil, fmt.Errorf("%w: its table: %w", ErrDisk, err)
		}
	}
	ident, err := disk.Get([]byte(identKey))
	if err != nil {
		return nil, fmt.Errorf("quorum: reading the id of the disk: %w", err)
	}
	if ident != nil || len(s.founders) > 0 {
		if !s.id.IsZero() && s.id.Addr != self.Addr { // the machine takes the id for its own
			return nil, fmt.Errorf("%w: it is that of %v, not of %v", ErrDisk, s.id, self.Addr)
		}
		return s, s.begin(s.founders.Has(s.id))
	}
	s.fresh = true
	if s.id.Addr != self.Addr { // drawn once for this disk, before any other node hears of it
		s.table = table{id: peer.ID{Addr: self.Addr, Inc: max(rng.Uint64(), 1)}}
		s.disks.Add(s.id)
		if err := disk.Commit([]Change{s.change()}); err != nil {
			return nil, fmt.Errorf("quorum: writing the id of the disk: %w", err)
		}
	}
	return s, nil
}

// begin makes the machine. founding: this disk is one of those with which the store begins.
func (s *Site) begin(founding bool) (err error) {
	cfg := s.cfg
	cfg.Founding = founding
	self := s.id
	if self.IsZero() {
		self = s.self
	}
	if s.machine, err = Open(cfg, s.name, self, s.disk, s.wall, s.rng); err != nil {
		return err
	}
	if was := s.id; was != s.machine.ID() { // of a backup: the disk that it was is gone
		s.id = s.machine.ID()
		s.disks.Remove(was)
		s.disks.Add(s.id)
	}
	s.keep()
	return nil
}

// keep has the table on the disk with the next commit.
func (s *Site) keep() {
	if s.machine != nil {
		s.machine.pending = append(s.machine.pending, s.change())
	}
	s.members()
}

// Machine returns the machine, nil before the store has begun here.
func (s *Site) Machine() *Machine { return s.machine }

// Disks returns how many disks the table has, and how many nodes with other settings were met.
func (s *Site) Disks() (n int, differs uint64) { return len(s.disks), s.differs }

// ID returns the id of the disk.
func (s *Site) ID() peer.ID { return s.id }

// Founders returns the disks with which the store began, none as long as it has not. They never change.
func (s *Site) Founders() peer.Set { return s.founders }

// Members returns what was last given to the machine: all disks, and those that answer. Sets are replaced, not changed.
func (s *Site) Members() MembersCommand { return s.given }

// Beside makes a message of another machine on this disk one to the node that has a disk. It reports whether there is
// one.
func (s *Site) Beside(to peer.ID, body []byte) (m Mail, ok bool) {
	node := s.nodeOf(to)
	return Mail{node, appendMail([]byte{tagBeside}, s.id, to, body)}, !node.IsZero()
}

// FromBeside returns the message in what Beside made, and the disk that it is from. It reports whether it is one to
// this disk, from that which the node is known to have.
func (s *Site) FromBeside(from peer.ID, b []byte) (disk peer.ID, body []byte, ok bool) {
	if !IsBeside(b) {
		return peer.ID{}, nil, false
	}
	disk, to, body, err := readMail(b[1:])
	return disk, body, err == nil && s.machine != nil && to == s.id && s.view.Members.Has(from) &&
		s.nodes[from].disk == disk
}

// IsBeside reports whether a frame is one that Beside made.
func IsBeside(b []byte) bool { return len(b) > 0 && b[0] == tagBeside }

// Do carries out a GetCommand, a PutCommand, a LookCommand, a ViewCommand, a LeaveCommand or a SpareCommand.
func (s *Site) Do(now time.Duration, cmd Command) error {
	s.now = max(s.now, now)
	switch c := cmd.(type) {
	case ViewCommand:
		s.follow(c)
		return nil
	case LeaveCommand:
		s.leaves(c.On)
		return nil
	case SpareCommand:
		s.spare()
		return nil
	}
	if s.machine == nil {
		return ErrNotFounded
	}
	return s.machine.Do(s.now, cmd)
}

// follow takes a view of the members.
func (s *Site) follow(v ViewCommand) {
	s.view = ViewCommand{v.Members.Clone(), v.Reachable.Clone()}
	for node := range s.nodes { // in any order: they are only dropped
		if !s.view.Members.Has(node) {
			delete(s.nodes, node)
		}
	}
	for _, node := range s.view.Members {
		if _, known := s.nodes[node]; !known {
			s.greet(node, true)
		}
	}
	s.members()
}

// settings is a sum of what all members have to agree on.
func (s *Site) settings() uint64 {
	b := append([]byte(s.name), 0, byte(s.cfg.N), byte(s.cfg.Mode))
	for _, n := range []int{s.cfg.MaxKey, s.cfg.MaxValue, s.cfg.MaxSiblings, int(s.cfg.Grace)} {
		b = wire.AppendU64(b, uint64(n))
	}
	return xxhash.Sum64(b)
}

// greet tells a node which disk this one has.
func (s *Site) greet(node peer.ID, answer bool) {
	if node != s.self {
		h := hello{s.settings(), answer, s.lacks, s.table}
		if s.leave.told {
			h.removed = s.removed.Clone()
			h.remove(s.id)
		}
		s.effects.Sends = append(s.effects.Sends, Mail{node, h.append(nil)})
	}
}

// greetAll tells all members.
func (s *Site) greetAll() {
	for _, node := range s.view.Members {
		s.greet(node, false)
	}
}

// Handle takes a frame of the site of another node. An error means nonsense; nothing has changed then.
func (s *Site) Handle(now time.Duration, from peer.ID, b []byte) error {
	s.now = max(s.now, now)
	if len(b) == 0 || !s.view.Members.Has(from) {
		return nil
	}
	switch b[0] {
	case tagHello:
		h, err := readHello(b[1:])
		if err != nil {
			return fmt.Errorf("%w: a hello: %w", ErrNonsense, err)
		}
		if h.id.Addr != from.Addr {
			return fmt.Errorf("%w: %v has the disk %v", ErrNonsense, from, h.id)
		}
		s.hears(from, &h)
		return nil
	case tagMessage:
		disk, to, body, err := readMail(b[1:])
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNonsense, err)
		}
		if s.machine == nil || to != s.id || s.nodes[from].disk != disk {
			return nil // of a disk that was, or for one
		}
		return s.machine.Handle(s.now, disk, body)
	}
	return fmt.Errorf("%w: it begins with %d", ErrNonsense, b[0])
}

// hears takes a hello.
func (s *Site) hears(from peer.ID, h *hello) {
	if h.settings != s.settings() {
		s.differs++
		return
	}
	was, known := s.nodes[from]
	is := met{h.id, len(h.founders) > 0, s.leave.told && h.removed.Has(s.id)}
	for node := range s.nodes { // in any order: they are only dropped
		if node.Addr == from.Addr {
			delete(s.nodes, node) // an earlier process
		}
	}
	s.nodes[from] = is
	if !known || was.disk != is.disk {
		s.metAt = s.now
	}
	changed := false
	if h.removed.Has(s.id) && !s.lacks && s.machine != nil && !s.leave.own {
		s.lacks = true // what others wrote meanwhile it has to read from them
		s.machine.lackAll()
		s.greet(from, true)
	} else if h.disks.Has(s.id) {
		s.lacks = false
	}
	changed = s.hearsLeave(h)
	if !s.removed.Has(h.id) || h.lacks {
		changed = s.put(h.id) || changed
	}
	if s.fresh && is.founded && len(s.founders) == 0 {
		for _, id := range h.disks {
			changed = s.put(id) || changed
		}
		s.founders = h.founders.Clone()
		if err := s.begin(h.founders.Has(s.id)); err != nil {
			s.founders = nil // tried again when the next hello comes
			return
		}
		s.greetAll()
	}
	if changed {
		s.keep()
	}
	s.members()
	if h.answer || s.removed.Has(h.id) {
		s.greet(from, !known)
	}
}

// nodeOf returns the node that has a disk, zero for none.
func (s *Site) nodeOf(disk peer.ID) peer.ID {
	for node, m := range s.nodes { // in any order: an address is that of one node at a time
		if m.disk == disk {
			return node
		}
	}
	return peer.ID{}
}

// members gives the machine the disks, and those that answer.
func (s *Site) members() {
	if s.machine == nil {
		return
	}
	up := peer.SetOf(s.id)
	for node, m := range s.nodes { // in any order: a set sorts
		if s.view.Reachable.Has(node) && s.disks.Has(m.disk) {
			up.Add(m.disk)
		}
	}
	leaving := s.going()
	if up.Equal(s.given.Up) && s.disks.Equal(s.given.All) && leaving.Equal(s.given.Leaving) {
		return
	}
	s.given = MembersCommand{s.disks.Clone(), up, leaving}
	_ = s.machine.Do(s.now, s.given) // never refused
}

// Tick handles every deadline that has passed. wall is the time of day in milliseconds.
func (s *Site) Tick(now time.Duration, wall int64) {
	s.now, s.wall = max(s.now, now), wall
	if s.machine != nil {
		s.machine.Tick(s.now, wall)
	}
	if s.now < s.roundAt {
		return
	}
	s.roundAt = s.now + s.cfg.Round
	s.round++
	for _, node := range s.view.Members {
		if _, known := s.nodes[node]; !known || s.round%helloEvery == 0 {
			s.greet(node, !known)
		}
	}
	s.found()
	s.replace()
	s.tells()
}

// found begins the store when enough empty disks have met: the node with the lowest address does, for all that it has
// met, and the others hear of it.
func (s *Site) found() {
	if s.machine != nil || len(s.view.Members) == 0 {
		return
	}
	all, unknown := peer.SetOf(s.id), false
	for _, node := range s.view.Members {
		m, known := s.nodes[node]
		switch {
		case node == s.self:
		case !known:
			unknown = true
		case m.founded:
			return // the next hello of it brings the founders
		default:
			all.Add(m.disk)
		}
	}
	if len(all) < s.founding || unknown && s.now-s.metAt < foundAfter || all[0] != s.id {
		return
	}
	s.founders, s.disks = all, all.Clone()
	if err := s.disk.Commit([]Change{s.change()}); err == nil {
		err = s.begin(true)
	}
	if s.machine == nil {
		s.founders = nil
		return
	}
	s.greetAll()
}

// replace takes disks out of the table that are away for longer than ReplaceAfter, where more than half are there.
func (s *Site) replace() {
	if s.machine == nil {
		return
	}
	var late []peer.ID
	here := 1
	for _, id := range s.disks {
		if id == s.id {
			continue
		}
		if !s.nodeOf(id).IsZero() {
			delete(s.away, id)
			here++
			continue
		}
		if since, is := s.away[id]; s.leave.others.Has(id) || s.removed.Has(id) {
			late = append(late, id) // others have its places
		} else if !is {
			s.away[id] = s.now
		} else if s.now-since >= s.cfg.ReplaceAfter {
			late = append(late, id)
		}
	}
	for _, id := range s.leave.others.Clone() {
		if !s.disks.Has(id) {
			s.leave.others.Remove(id) // another disk has its place
		}
	}
	if len(late) == 0 || here < Quorum(len(s.disks)) {
		return
	}
	for _, id := range late {
		delete(s.away, id)
		s.leave.others.Remove(id)
		s.drop(id)
	}
	s.keep()
}

// Next returns when to be ticked again.
func (s *Site) Next() (deadline time.Duration, ok bool) {
	deadline = s.roundAt
	if s.machine != nil {
		at, _ := s.machine.Next()
		deadline = min(deadline, at)
	}
	return deadline, true
}

// Sync does what was asked of the disk since the last one, in one commit.
func (s *Site) Sync() error {
	if s.machine == nil {
		return nil
	}
	return s.machine.Sync()
}

// Drain hands over what the verbs since the last Drain want done; messages go to nodes. It is valid until the next
// verb.
func (s *Site) Drain(out *Effects) {
	*out = s.effects
	s.effects = Effects{}
	if s.machine == nil {
		return
	}
	var e Effects
	s.machine.Drain(&e)
	out.Done = append(out.Done, e.Done...)
	for _, m := range e.Sends {
		if node := s.nodeOf(m.To); !node.IsZero() {
			out.Sends = append(out.Sends, Mail{node, appendMail([]byte{tagMessage}, s.id, m.To, m.Body)})
		}
	}
}

// lackAll has this replica read all of its groups from others before it counts, once no request is under way that knew
// the members without it.
func (m *Machine) lackAll() {
	m.settled = m.now + 2*m.cfg.Timeout
	m.ident.lacking, m.catching = m.ident.in, [Groups]catching{}
	m.pending = append(m.pending, m.ident.change())
}

// leaves has this disk go, or stay.
func (s *Site) leaves(on bool) {
	if s.leave.own == on || s.machine == nil {
		return
	}
	s.leave.own, s.leave.told = on, false
	for node, m := range s.nodes { // in any order: each is changed alone
		m.spares = false
		s.nodes[node] = m
	}
	s.members()
	if !on {
		s.greetAll()
	}
}

// tells has all others hear that this disk leaves, each round: from then on none counts it any more.
func (s *Site) tells() {
	if s.leave.own && (s.leave.told || len(s.machine.pending) == 0) {
		s.leave.told = true
		s.greetAll()
	}
}

// hearsLeave takes what a hello says of that, and reports whether the table has changed. One that stays after all, and
// that others took for gone, reads anew before it counts.
func (s *Site) hearsLeave(h *hello) (changed bool) {
	if h.leaves() {
		s.leave.others.Add(h.id)
		return false
	}
	s.leave.others.Remove(h.id)
	if h.lacks && s.removed.Has(h.id) && s.disks.Has(h.id) {
		s.removed.Remove(h.id)
		return true
	}
	return false
}

// going returns the disks that leave, as far as N others stay.
func (s *Site) going() (ids peer.Set) {
	all := s.leave.others.Clone()
	if s.leave.own {
		all.Add(s.id)
	}
	stay := len(s.disks)
	for _, id := range all {
		if s.disks.Has(id) && stay > s.cfg.N {
			ids, stay = append(ids, id), stay-1
		}
	}
	return ids
}

// spare lets those go that leave, when this disk has read all that it holds now.
func (s *Site) spare() {
	if s.machine == nil || s.machine.ident.lacking != 0 {
		return
	}
	changed := false
	for _, id := range s.given.Leaving {
		if id != s.id && !s.removed.Has(id) {
			s.remove(id)
			changed = true
			if node := s.nodeOf(id); !node.IsZero() {
				s.greet(node, false)
			}
		}
	}
	if changed {
		s.keep()
	}
}

// Needed returns how many disks need this one, which leaves: they have not read yet what they hold in its place, or are
// away. hopeless: no N others stay, so none can take its place. A disk that stays has none.
func (s *Site) Needed() (disks int, hopeless bool) {
	if !s.leave.own {
		return 0, false
	}
	spares := map[peer.ID]bool{}
	for _, m := range s.nodes { // a map in, a map out: no order
		spares[m.disk] = m.spares
	}
	for _, id := range s.disks {
		if id != s.id && !s.leave.others.Has(id) && !spares[id] {
			disks++
		}
	}
	return disks, !s.going().Has(s.id)
}
