// Machine: the replica and the owners of one node, and its verbs.

package records

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/peer"
)

// Machine is the replica of one disk and the owners of its node. It is not safe for concurrent use.
type Machine struct {
	core
	replica
	desk
	carer carer
	askAt time.Duration
}

// Open makes the machine of a disk. name is that of cluster and store. An empty disk becomes that of self; its Inc
// has to be drawn anew for each empty disk, and for each that comes back from a backup. A disk that is not empty keeps
// the id that it has.
func Open(cfg Config, name string, self peer.ID, disk Engine, rng *rand.Rand) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if name == "" || len(name) > maxName || self.Addr.IsZero() {
		return nil, fmt.Errorf("%w: no name, or no address", ErrDisk)
	}
	m := &Machine{core: core{cfg: cfg.WithDefaults(), rng: rng, due: never, ident: identity{name, self}}}
	m.replica = replica{core: &m.core, disk: disk, heads: map[Shard]*head{}}
	m.desk = desk{core: &m.core, own: &m.replica, gone: map[peer.ID]time.Duration{}}
	m.carer = carer{desk: &m.desk, queued: map[Shard]struct{}{}, sweepAt: never, clean: map[Shard]struct{}{},
		unused: map[Shard]struct{}{}}
	b, err := disk.Get([]byte(identKey))
	if err != nil {
		return nil, fmt.Errorf("records: reading the id of the disk: %w", err)
	}
	if b == nil {
		return m, m.write(&found{})
	}
	is, f, err := readIdent(append([]byte(nil), b...))
	if err != nil || is.name != name || is.id.Addr != self.Addr {
		return nil, fmt.Errorf("%w: it is that of %v in %q, not of %v in %q", ErrDisk, is.id, is.name, self.Addr, name)
	}
	m.ident, m.found = is, f
	// All is read once: a disk that has lost something says so now, and not when a shard needs it.
	return m, disk.Each([]byte(keyPrefix), nil, func(key, _ []byte) bool {
		if bytes.HasPrefix(key, []byte(headKey)) {
			m.shards++
		}
		return true
	})
}

// ID returns the id of the disk.
func (m *Machine) ID() peer.ID { return m.ident.id }

// Founded reports whether the store is founded, as far as this disk knows.
func (m *Machine) Founded() bool { return m.found.store != 0 }

// Stats returns the counts.
func (m *Machine) Stats() Stats {
	s := m.stats
	s.Shards, s.Owners, s.Requests, s.Bytes = m.shards, len(m.owners), m.pending, m.bytes
	s.Copies = len(m.ins) + len(m.outs)
	return s
}

// Do carries out a command. With an error nothing has changed, and there is no Outcome.
func (m *Machine) Do(now time.Duration, cmd Command) error {
	m.now = max(m.now, now)
	switch c := cmd.(type) {
	case MembersCommand:
		was := m.members
		m.members, m.up = c.All.Clone(), c.Up.Clone()
		m.carer.begins(was)
		m.wake(m.now)
		m.asks()
		return nil
	case FoundCommand:
		return m.foundBy(c)
	case ClaimCommand:
		return m.request(c.Shard, &request{number: c.Number, fence: c.Fence, kind: claiming})
	case CommitCommand:
		if len(c.Writes) == 0 || len(c.Writes) > maxWrites {
			return fmt.Errorf("%w: %d writes", ErrTooLarge, len(c.Writes))
		}
		return m.request(c.Shard, &request{number: c.Number, fence: c.Fence, kind: committing,
			body: appendCommit(nil, c.Writes)})
	case ForgetCommand:
		if c.Most < 1 || c.Most > maxForget {
			return fmt.Errorf("%w: %d marks", ErrTooLarge, c.Most)
		}
		return m.request(c.Shard, &request{number: c.Number, fence: c.Fence, kind: committing,
			body: appendForget(nil, c.By, c.Most)})
	case ReadCommand:
		if c.Query.Most > maxMost || len(c.Query.IDs) > maxWrites || c.Query.Ask == 0 || c.Query.Ask > AskUnsent {
			return fmt.Errorf("%w: a query", ErrTooLarge)
		}
		return m.request(c.Shard, &request{number: c.Number, fence: c.Fence, kind: reading, query: c.Query})
	case ChangeCommand:
		if err := checkSet(c.Set); err != nil {
			return err
		}
		return m.request(c.Shard, &request{number: c.Number, fence: c.Fence, kind: changing, set: c.Set.Clone()})
	}
	return fmt.Errorf("%w: %T", ErrNonsense, cmd)
}

// Handle takes a message of another node. An error means nonsense, or another store; nothing has changed then. The
// message belongs to the machine.
func (m *Machine) Handle(now time.Duration, from peer.ID, body []byte) error {
	m.now = max(m.now, now)
	x, store, err := readMessage(body, &m.cfg)
	if err != nil {
		m.stats.Refused++
		return fmt.Errorf("%w: %w", ErrNonsense, err)
	}
	switch {
	case x.kind == founding || x.kind == founded:
		m.learn(from, x)
	case m.found.store == 0: // it will be sent again
	case store != m.found.store:
		m.stats.Refused++
		return fmt.Errorf("%w: of another founding of the store", ErrNonsense)
	default:
		m.take(from, x)
	}
	return nil
}

// take gives an answer to the owner or the request that waits for it, and keeps everything else for Sync.
func (m *Machine) take(from peer.ID, x *message) {
	switch x.kind {
	case promised:
		m.promised(from, x)
	case wrote:
		m.wrote(from, x)
	case answered:
		if x.ballot == (Ballot{}) {
			if r, best := m.saidAnybody(from, x); r != nil {
				m.carer.hears(r, best)
			}
		} else {
			m.answered(from, x)
		}
	default:
		m.inbox = append(m.inbox, letter{from, x})
	}
}

// Caring reports whether this machine has to do, or to find out, anything yet for disks that are no members any more,
// this one among them: what it knows of needs none of them, where it has not.
func (m *Machine) Caring() bool { return m.carer.busy() }

// Lent returns how many shards of this disk, which is no member any more, are not known to be elsewhere: a majority of
// a set without it, and all of that that answer, hold what it has. 0 on a disk that is a member.
func (m *Machine) Lent() int {
	if !m.carer.leaves() {
		return 0
	}
	return m.carer.lent
}

// LendAgain has a disk that is no member any more find out anew what it has lent.
func (m *Machine) LendAgain() { m.carer.again() }

// Next returns when to be ticked again.
func (m *Machine) Next() (deadline time.Duration, ok bool) {
	if len(m.later) > 0 {
		return m.now, true
	}
	return m.due, m.due != never
}

// Tick handles every deadline that has passed.
func (m *Machine) Tick(now time.Duration) {
	m.now = max(m.now, now)
	m.inbox, m.later = append(m.inbox, m.later...), nil
	if m.now < m.due {
		return
	}
	m.due = never
	if m.found.store == 0 {
		m.expired(m.askAt)
		m.asks()
	}
	m.tickCopies()
	m.tickOwners()
	m.carer.tick()
}

// Drain hands over what the verbs since the last Drain want done. It is valid until the next verb. It may be called
// before Sync too: what owners ask of other disks need not wait for this one.
func (m *Machine) Drain(out *Effects) {
	*out = m.effects
	m.effects = Effects{}
}

// asks asks the others what the store was founded as.
func (m *Machine) asks() {
	if m.found.store != 0 || m.now < m.askAt {
		return
	}
	m.askAt = m.now + 4*m.cfg.Again
	m.wake(m.askAt)
	for _, id := range m.members {
		if id != m.ident.id {
			m.send(id, &message{kind: founding})
		}
	}
}

// Sync does what was asked of the disk since the last one, in one commit, and sends the answers when that is on
// disk. When the disk refuses, nothing has changed, nobody is answered, and the error says why.
func (m *Machine) Sync() error {
	for len(m.inbox) > 0 {
		s := &step{over: changes{}, heads: map[Shard]*head{}}
		inbox := m.inbox
		m.inbox = nil
		for i := range inbox {
			if s.failed == nil {
				m.handle(s, &inbox[i])
			}
		}
		if s.failed == nil && len(s.over) > 0 {
			s.failed = m.disk.Commit(s.over.list())
		}
		if s.failed != nil {
			m.stats.Failed++
			m.ins, m.outs = nil, nil // what they hold of this step is not on the disk
			return s.failed
		}
		m.committed(s)
		local := m.local
		m.local = nil
		for _, l := range local {
			m.take(l.from, l.x)
		}
	}
	return nil
}
