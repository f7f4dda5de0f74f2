// Promise: of two nodes that want to form the cluster at most one gets enough promises. A node promises itself to one
// attempt at a time, also to its own, and lets go only by the word of the one that it promised itself to: that it has
// given the attempt up, or that another process runs at its address; or when that one has not been heard for long.

package formation

import (
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
)

// Ask asks a node to promise itself to an attempt to form the cluster, or says that the attempt is over.
type Ask struct {
	Cluster string
	From    peer.ID
	Point   peer.Addr // the contact point of From
	Attempt uint64    // from 1
	Wants   bool      // false: it is given up
}

// Answer is what the node says to an Ask. A promise stands until it is released.
type Answer struct {
	Reply   Reply
	Granted bool
	Attempt uint64 // which is granted
	Holder  peer.ID
}

// AskTo is an Ask and the contact point that it goes to.
type AskTo struct {
	Point peer.Addr
	Ask   Ask
}

// promise is the node that has this one's promise, this one included.
type promise struct {
	to      peer.ID
	point   peer.Addr
	attempt uint64
	heard   time.Duration // when the one promised to was heard last
}

// claim is this node's own attempt.
type claim struct {
	attempt uint64 // the latest, from 1
	ended   uint64 // the latest that was given up
	begun   time.Duration
	voters  []voter
	retry   time.Duration // not before
}

// voter is a node that is asked for its promise.
type voter struct {
	id      peer.ID
	point   peer.Addr
	granted bool
}

func (c *claim) on() bool { return c.attempt > c.ended }

// Asked takes an Ask of another node and returns the answer.
func (m *Machine) Asked(now time.Duration, a Ask) Answer {
	m.begin(now)
	if a.Cluster == m.cfg.Cluster && a.From != m.cfg.Self && a.Attempt > 0 {
		m.asked(a)
	}
	m.settle()
	out := Answer{Reply: m.Reply(), Holder: m.promise.to}
	if m.promise.to == a.From && a.Wants && m.promise.attempt == a.Attempt {
		out.Granted, out.Attempt = true, a.Attempt
	}
	return out
}

func (m *Machine) asked(a Ask) {
	m.heardHolder(a.From)
	if !a.Wants {
		if m.promise.to == a.From && m.promise.attempt <= a.Attempt {
			m.release()
		}
		return
	}
	if m.stage != looking {
		return // it joins, forms or is in a cluster, as the answer says
	}
	if m.claim.on() && a.From.Less(m.cfg.Self) {
		m.giveUp() // the lower address goes first
	}
	if m.promise.to.IsZero() || m.promise.to == a.From && m.promise.attempt <= a.Attempt {
		m.promise = promise{to: a.From, point: a.Point, attempt: a.Attempt, heard: m.now}
	}
}

// heardHolder notes a sign of life of the one that this node has promised itself to, or that another process runs at
// its address: that one is dead, and its attempt with it.
func (m *Machine) heardHolder(id peer.ID) {
	switch p := &m.promise; {
	case p.to == id:
		p.heard = m.now
	case !p.to.IsZero() && p.to.Addr == id.Addr:
		m.release()
	}
}

func (m *Machine) release() { m.promise = promise{} }

// holderSaid takes a reply of the one that this node has promised itself to: an attempt that it says is over is.
func (m *Machine) holderSaid(r *Reply) {
	m.heardHolder(r.Node)
	if m.promise.to == r.Node && r.Node != m.cfg.Self && r.ClusterID == 0 && r.Ended >= m.promise.attempt {
		m.release()
	}
}

// begins starts an attempt to form the cluster with all nodes that have confirmed that they are in none.
func (m *Machine) begins(info *Info) {
	if m.now < m.claim.retry || !m.promise.to.IsZero() {
		return
	}
	m.claim.attempt++
	m.claim.begun, m.claim.voters = m.now, m.claim.voters[:0]
	m.promise = promise{to: m.cfg.Self, attempt: m.claim.attempt, heard: m.now}
	for i := range info.Points {
		o := &info.Points[i]
		if !o.Answered || !slices.Contains(confirmed(info), o.Reply.Node) ||
			slices.ContainsFunc(m.claim.voters, func(v voter) bool { return v.id == o.Reply.Node }) {
			continue
		}
		self := o.Reply.Node == m.cfg.Self
		m.claim.voters = append(m.claim.voters, voter{o.Reply.Node, o.Point, self})
		if !self {
			m.ask(o.Point, true)
		}
	}
	m.tryForming()
}

func (m *Machine) ask(point peer.Addr, wants bool) {
	m.out.Asks = append(m.out.Asks, AskTo{point, Ask{Cluster: m.cfg.Cluster, From: m.cfg.Self, Point: m.cfg.Point,
		Attempt: m.claim.attempt, Wants: wants}})
}

// Answered takes what a contact point answered to an Ask of this node.
func (m *Machine) Answered(now time.Duration, point peer.Addr, a Answer) {
	m.begin(now)
	m.took(point, &a.Reply)
	if m.claim.on() && a.Granted && a.Attempt == m.claim.attempt && m.stage == looking {
		for i := range m.claim.voters {
			if v := &m.claim.voters[i]; v.id == a.Reply.Node {
				v.granted = true
			}
		}
		m.tryForming()
	}
	m.settle()
}

// tryForming forms the cluster when all have promised themselves, and those are enough.
func (m *Machine) tryForming() {
	all := !slices.ContainsFunc(m.claim.voters, func(v voter) bool { return !v.granted })
	if !all || len(m.claim.voters) < m.cfg.Required {
		return
	}
	m.stage = formingNow
	j := &Join{Seeds: []peer.Addr{m.cfg.Self.Addr}, Form: true}
	for i := range m.claim.voters {
		id := m.claim.voters[i].id
		j.Voters = append(j.Voters, id)
		if !slices.Contains(j.Seeds, id.Addr) {
			j.Seeds = append(j.Seeds, id.Addr)
		}
	}
	m.out.Join = j
}

// giveUp ends the attempt and notifies the nodes that may have promised themselves to it.
func (m *Machine) giveUp() {
	for i := range m.claim.voters {
		if v := &m.claim.voters[i]; v.id != m.cfg.Self {
			m.ask(v.point, false)
		}
	}
	m.claim.ended = m.claim.attempt
	m.claim.retry = m.now + time.Duration(m.rng.Int64N(int64(m.cfg.ProbeInterval)))
	if m.promise.to == m.cfg.Self {
		m.release()
	}
}
