// Machine: broker and replica of one node, and its verbs.

package quorum

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
)

// Open makes the machine of a disk. name is that of cluster and store. An empty disk becomes that of self; its Inc
// has to be drawn anew for each empty disk; one that is not empty keeps the id that it has. wall is the time of day in
// milliseconds.
func Open(cfg Config, name string, self peer.ID, disk Engine, wall int64, rng *rand.Rand) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if name == "" || len(name) > maxName || self.Addr.IsZero() {
		return nil, fmt.Errorf("%w: no name, or no address", ErrDisk)
	}
	m := &Machine{shelf: shelf{cfg: cfg.WithDefaults(), disk: disk, wall: wall}, rng: rng}
	m.salt = rng.Uint64()
	b, err := disk.Get([]byte(identKey))
	if err != nil {
		return nil, fmt.Errorf("quorum: reading the id of the disk: %w", err)
	}
	switch {
	case b == nil:
		m.ident = identity{name: name, id: self, alive: wall}
		if cfg.Founding {
			m.ident.in = everyone
		}
	case m.ident.read(b) != nil, m.ident.name != name, m.ident.id.Addr != self.Addr:
		return nil, fmt.Errorf("%w: it is that of %v in %q, not of %v in %q", ErrDisk, m.ident.id, m.ident.name,
			self.Addr, name)
	case wall-m.ident.alive > m.cfg.Grace.Milliseconds():
		return nil, fmt.Errorf("%w: since %d ms", ErrOld, wall-m.ident.alive)
	}
	m.seq = m.ident.reserved
	m.ident.reserved += reserve
	if err := disk.Commit([]Change{m.ident.change()}); err != nil {
		return nil, fmt.Errorf("quorum: writing the id of the disk: %w", err)
	}
	return m, m.load()
}

// load reads trees and hints from the disk.
func (d *shelf) load() error {
	s := &step{}
	d.each(s, []byte{'v'}, nil, func(key []byte, e Entry) bool {
		d.count(key, nil, e)
		return true
	})
	return errors.Join(s.failed, d.loadHints())
}

// Renew makes the disk of a backup that of a new replica, self: it keeps its values, and reads from the others what it
// lacks before it counts. One that is older than Grace is refused: deletions may be forgotten that it does not know.
func Renew(cfg Config, self peer.ID, disk Engine, wall int64) error {
	return renew(cfg, disk, wall, func(peer.ID) peer.ID { return self })
}

// RenewSite is Renew of the disk of a site, at the address that it has: inc is drawn anew.
func RenewSite(cfg Config, disk Engine, wall int64, inc uint64) error {
	return renew(cfg, disk, wall, func(was peer.ID) peer.ID { return peer.ID{Addr: was.Addr, Inc: inc} })
}

func renew(cfg Config, disk Engine, wall int64, next func(was peer.ID) peer.ID) error {
	var was identity
	b, err := disk.Get([]byte(identKey))
	if err != nil || b == nil {
		return fmt.Errorf("%w: no id: %w", ErrDisk, err)
	}
	if err := was.read(b); err != nil {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	if wall-was.alive > cfg.WithDefaults().Grace.Milliseconds() {
		return ErrOld
	}
	is := identity{name: was.name, id: next(was.id), alive: wall}
	return disk.Commit([]Change{is.change()})
}

// Stats returns the counts.
func (m *Machine) Stats() Stats {
	s := m.stats
	s.Requests, s.Hints = len(m.requests), len(m.hints)
	for _, h := range m.hints {
		s.HintBytes += h.size
	}
	for g := range m.groups {
		if m.ident.lacking>>g&1 == 1 {
			s.Lacking++
		}
		for _, n := range m.counts[g] {
			s.Keys += n
		}
	}
	return s
}

// Do carries out a command. With an error nothing has changed.
func (m *Machine) Do(now time.Duration, cmd Command) error {
	m.now = max(m.now, now)
	switch c := cmd.(type) {
	case MembersCommand:
		m.view(c)
		return nil
	case GetCommand:
		return m.get(c)
	case PutCommand:
		return m.put(c)
	case LookCommand:
		return m.look(c)
	}
	return fmt.Errorf("%w: %T", ErrNonsense, cmd)
}

// Handle takes a message of another replica. An error means nonsense; nothing has changed then.
func (m *Machine) Handle(now time.Duration, from peer.ID, body []byte) error {
	m.now = max(m.now, now)
	x, err := readMessage(body, &m.cfg)
	if err != nil {
		m.stats.Refused++
		return fmt.Errorf("%w: %w", ErrNonsense, err)
	}
	if m.old || !m.members.Has(from) {
		return nil
	}
	m.heard = m.now
	m.take(from, x)
	return nil
}

// Tick handles every deadline that has passed. wall is the time of day in milliseconds.
func (m *Machine) Tick(now time.Duration, wall int64) {
	m.now, m.wall = max(m.now, now), wall
	m.expire()
	if m.now < m.roundAt {
		return
	}
	m.roundAt = m.now + m.cfg.Round
	m.lives()
	if m.old || len(m.members) == 0 {
		return
	}
	m.deliver()
	m.catchUp()
	m.compare()
	m.sweep()
}

// lives notes that this replica is one among others, or finds that it has not been for too long.
func (m *Machine) lives() {
	grace := m.cfg.Grace.Milliseconds()
	switch since := m.wall - m.ident.alive; {
	case since > grace:
		m.old = true
	case since > grace/16 && (len(m.members) == 1 || m.heard > 0 && m.now-m.heard < 2*m.cfg.Round):
		m.ident.alive = m.wall
		m.pending = append(m.pending, m.ident.change())
	}
}

// Next returns when to be ticked again.
func (m *Machine) Next() (deadline time.Duration, ok bool) {
	deadline = m.roundAt
	for _, r := range m.requests {
		deadline = min(deadline, r.deadline)
		if at, ok := r.asksAgainAt(m.cfg.Timeout); ok {
			deadline = min(deadline, at)
		}
	}
	return deadline, true
}

// Drain hands over what the verbs since the last Drain want done. It is valid until the next verb.
func (m *Machine) Drain(out *Effects) {
	*out = m.effects
	m.effects = Effects{}
}

// view takes another set of members. A group that is new to this replica is read from the others before it counts.
func (m *Machine) view(c MembersCommand) {
	if !slices.Equal(c.All, m.members) || !slices.Equal(c.Leaving, m.leaving) {
		m.settled = m.now + 2*m.cfg.Timeout
	}
	in := m.assign(c, m.cfg.N, m.ident.id)
	fresh := in &^ m.ident.in
	for g := range m.groups {
		if fresh>>g&1 == 1 {
			m.catching[g] = catching{}
		}
	}
	if lacking := m.ident.lacking&in | fresh; in != m.ident.in || lacking != m.ident.lacking {
		m.ident.in, m.ident.lacking = in, lacking
		m.pending = append(m.pending, m.ident.change())
	}
}
