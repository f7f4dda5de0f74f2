// Machine: the stepped value: what look-ups and probes say goes in, what is to be looked up, probed and joined comes
// out.

package formation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/kith-io/kith/peer"
)

// stage is how far this node is.
type stage uint8

const (
	looking    stage = iota // for a cluster, or for nodes to form one with
	joining                 // it was given seeds
	formingNow              // it was ordered to form the cluster
	ordered                 // an operator gave it seeds to join
	inCluster               // it is a member
)

// Join is what the node's membership is to do: join through the seeds, or, with Form, form the cluster. With Form this
// node is the first seed, and the nodes that have promised themselves follow.
type Join struct {
	Seeds  []peer.Addr
	Form   bool
	Voters []peer.ID // with Form: the nodes that have promised themselves, this one included
}

// Effects is what is to be done. Drain fills it; it is valid until the next verb.
type Effects struct {
	LookUp bool        // look up, and call LookedUp once
	Probes []peer.Addr // ask these contact points, and call Probed once for each
	Asks   []AskTo     // send these, and call Answered for those that are answered
	Join   *Join       // nil: nothing new
}

// point is a contact point and what it said.
type point struct {
	addr    peer.Addr
	listed  bool // look-ups show it; else it is that of the node that has this one's promise
	reply   *Reply
	at      time.Duration // of the reply
	err     string        // why the last probe failed; empty: it did not
	probing bool
	next    time.Duration // when to probe it
}

// Machine is one node's search for its cluster. It is not safe for concurrent use. Times are of one clock that does not
// go back.
type Machine struct {
	cfg Config
	rng *rand.Rand
	now time.Duration
	out Effects

	stage     stage
	cluster   uint64
	seeds     []peer.Addr // of members, given by the caller that runs the machine
	given     []peer.Addr // that the membership was given to join through
	decision  Decision
	points    []point // sorted by address
	known     bool
	changedAt time.Duration
	shownAt   time.Duration // when a look-up last succeeded
	lookErr   string
	failures  int
	lookingUp bool
	lookAt    time.Duration
	decideAt  time.Duration
	drained   bool

	promise promise
	claim   claim
}

// New returns the machine of a node; cfg must be valid. It looks up at once, at the first Tick.
func New(cfg Config, rng *rand.Rand) *Machine {
	return &Machine{cfg: cfg.WithDefaults(), rng: rng, drained: true}
}

func (m *Machine) begin(now time.Duration) {
	m.now = max(now, m.now)
	if m.drained {
		m.drained = false
		m.out = Effects{Probes: m.out.Probes[:0], Asks: m.out.Asks[:0]}
	}
}

// Drain hands over what is to be done since the last Drain.
func (m *Machine) Drain(out *Effects) {
	*out, m.drained = m.out, true
	m.out.LookUp, m.out.Join = false, nil
}

// spread returns d and at most a fifth more, by chance.
func (m *Machine) spread(d time.Duration) time.Duration {
	return d + time.Duration(m.rng.Int64N(int64(d)/jitter+1))
}

// LookedUp takes the answer of a look-up: contact points, or, when failed is not empty, why there is none. A failure
// changes nothing of what is known: the last answer stays, and its age grows. More than MaxPoints are a failure.
func (m *Machine) LookedUp(now time.Duration, addrs []peer.Addr, failed string) {
	m.begin(now)
	m.lookingUp = false
	if len(addrs) > MaxPoints {
		failed = fmt.Sprintf("%d contact points, at most %d", len(addrs), MaxPoints)
	}
	if failed != "" {
		m.lookErr = failed
		back := m.cfg.LookInterval << min(m.failures, 10)
		m.failures++
		m.lookAt = m.now + m.spread(min(back, m.cfg.LookBackOff))
		m.settle()
		return
	}
	m.lookErr, m.failures = "", 0
	m.lookAt = m.now + m.spread(m.cfg.LookInterval)
	m.shown(addrs)
	if stable := m.changedAt + m.cfg.Margin; m.now < stable {
		m.lookAt = min(m.lookAt, stable) // one that shows whether the margin has passed
	} else {
		m.decideAt = m.now
	}
	m.settle()
}

// shown takes the contact points of a look-up that succeeded.
func (m *Machine) shown(addrs []peer.Addr) {
	list := slices.Clone(addrs)
	slices.SortFunc(list, peer.Addr.Compare)
	list = slices.Compact(list)
	// A member's port that somebody listed by mistake answers no probe.
	list = slices.DeleteFunc(list, func(a peer.Addr) bool { return a == m.cfg.Self.Addr && a != m.cfg.Point })
	var was []peer.Addr
	for i := range m.points {
		if m.points[i].listed {
			was = append(was, m.points[i].addr)
		}
	}
	m.shownAt = m.now
	if !m.known || !slices.Equal(was, list) {
		m.known, m.changedAt = true, m.now
	}
	m.list(list)
}

// list makes points what look-ups show, and the contact point of the node that has this one's promise.
func (m *Machine) list(shown []peer.Addr) {
	next := make([]point, 0, len(shown)+1)
	add := func(a peer.Addr, listed bool) {
		p := point{addr: a, listed: listed, next: m.now}
		if old := m.point(a); old != nil {
			p = *old
			p.listed = listed
		}
		next = append(next, p)
	}
	for _, a := range shown {
		add(a, true)
	}
	if a := m.promise.point; !a.IsZero() && !slices.Contains(shown, a) {
		add(a, false)
	}
	sort.Slice(next, func(i, k int) bool { return next[i].addr.Compare(next[k].addr) < 0 })
	m.points = next
}

func (m *Machine) point(a peer.Addr) *point {
	i := slices.IndexFunc(m.points, func(p point) bool { return p.addr == a })
	if i < 0 {
		return nil
	}
	return &m.points[i]
}

// Probed takes what a contact point said, or, when failed is not empty, why it said nothing. What an address says that
// is asked no longer does not count.
func (m *Machine) Probed(now time.Duration, at peer.Addr, reply Reply, failed string) {
	m.begin(now)
	if p := m.point(at); p != nil {
		p.probing, p.next = false, m.now+m.spread(m.cfg.ProbeInterval)
		if p.err = failed; failed == "" {
			m.took(at, &reply)
		}
	}
	m.settle()
}

// took notes a reply.
func (m *Machine) took(at peer.Addr, r *Reply) {
	if len(r.Seeds) > MaxSeeds || r.Node.IsZero() {
		return
	}
	if p := m.point(at); p != nil {
		own := *r
		p.reply, p.at, p.err = &own, m.now, ""
		if own.Cluster != m.cfg.Cluster {
			return
		}
		m.holderSaid(&own)
		if len(own.Seeds) > 0 {
			m.decideAt = m.now
		}
	}
}

// Joined says that the node is a member of a cluster, and which members others may join through now. It ends the
// search; the machine goes on to answer.
func (m *Machine) Joined(now time.Duration, cluster uint64, seeds []peer.Addr) {
	m.begin(now)
	m.stage, m.cluster = inCluster, cluster
	m.seeds = append(m.seeds[:0], seeds[:min(len(seeds), MaxSeeds)]...)
	m.decision = Decision{}
	m.release()
	m.settle()
}

// over reports whether there is nothing left to be looked for.
func (m *Machine) over() bool { return m.stage == ordered || m.stage == inCluster }

// Tick does what is due.
func (m *Machine) Tick(now time.Duration) {
	m.begin(now)
	m.settle()
}

// Next returns when Tick has something to do; ok is false when there is nothing: the node is in a cluster, or was given
// seeds to join.
func (m *Machine) Next() (at time.Duration, ok bool) {
	if m.over() {
		return 0, false
	}
	at = m.decideAt
	if !m.lookingUp {
		at = min(at, m.lookAt)
	}
	for i := range m.points {
		if p := &m.points[i]; !p.probing {
			at = min(at, p.next)
		}
	}
	return at, true
}

// settle ends a verb.
func (m *Machine) settle() {
	if m.over() {
		return
	}
	if !m.lookingUp && m.now >= m.lookAt {
		m.lookingUp, m.out.LookUp = true, true
	}
	m.keepHolder()
	for i := range m.points {
		if p := &m.points[i]; !p.probing && m.now >= p.next {
			p.probing = true
			m.out.Probes = append(m.out.Probes, p.addr)
		}
	}
	if m.now >= m.decideAt {
		m.decideAt = m.now + m.cfg.ProbeInterval
		m.decide()
	}
}

// keepHolder asks the node that has this one's promise, whatever look-ups show: it may have formed the cluster. One
// that has not been heard for long is dead.
func (m *Machine) keepHolder() {
	p := &m.promise
	if !p.to.IsZero() && p.to != m.cfg.Self && m.now-p.heard > holderLimit {
		m.release()
	}
	extra := slices.IndexFunc(m.points, func(o point) bool { return !o.listed })
	want := p.point
	if extra >= 0 && m.points[extra].addr != want {
		m.points = slices.Delete(m.points, extra, extra+1)
	}
	if !want.IsZero() && m.point(want) == nil {
		at, _ := slices.BinarySearchFunc(m.points, want, func(p point, a peer.Addr) int { return p.addr.Compare(a) })
		m.points = slices.Insert(m.points, at, point{addr: want, next: m.now})
	}
}

// decide asks the decider, and does what it says as far as the rules allow it.
func (m *Machine) decide() {
	info := m.info()
	d := m.cfg.Decider.Decide(info)
	d = m.allowed(&info, d)
	if m.claim.on() && m.stage == looking && (d.Action != FormCluster || m.now-m.claim.begun > attemptTime) {
		m.giveUp()
	}
	if m.stage == looking && d.Action == FormCluster {
		if !m.claim.on() {
			m.begins(&info)
		}
		d = m.claiming(d)
	}
	m.decision = d
	if d.Action == JoinCluster && !slices.Equal(d.Seeds, m.given) {
		m.given = slices.Clone(d.Seeds)
		m.out.Join = &Join{Seeds: m.given}
		if m.stage == looking {
			m.stage = joining
		}
	}
}

// claiming says what an attempt waits for.
func (m *Machine) claiming(d Decision) Decision {
	switch {
	case m.stage == formingNow:
		return d
	case m.claim.on():
		return wait(HoldClaiming, "this node wants to form the cluster and waits for the promises of the others")
	case !m.promise.to.IsZero():
		return wait(HoldPromised, "this node has promised itself to %s, which wants to form the cluster", m.promise.to.Addr)
	}
	return wait(HoldClaiming, "an attempt to form the cluster came to nothing; another one follows")
}

// allowed cuts a decision down to what the rules allow.
func (m *Machine) allowed(info *Info, d Decision) Decision {
	if there, found := existing(info); found && d.Action != KeepLooking && there.Action != d.Action {
		return there // two clusters, one that cannot be joined, or any at all where one is to be formed
	}
	switch d.Action {
	case KeepLooking:
		if d.Hold == HoldNothing || d.Hold >= holds {
			return wait(HoldDecider, "the decider waits: %s", d.Detail)
		}
		return d
	case JoinCluster:
		var named []peer.Addr
		for i := range info.Points {
			if o := &info.Points[i]; o.Answered && !o.Foreign && o.Speaks {
				named = append(named, o.Reply.Seeds...)
			}
		}
		seeds := union(nil, slices.DeleteFunc(slices.Clone(d.Seeds), func(a peer.Addr) bool {
			return !slices.Contains(named, a)
		}), m.cfg.Self.Addr)
		if len(seeds) > 0 {
			return Decision{Action: JoinCluster, Seeds: seeds}
		}
	case FormCluster:
		nodes := confirmed(info)
		if len(nodes) >= m.cfg.Required && slices.Contains(nodes, m.cfg.Self) && !m.cfg.NeverForm {
			return d
		}
	}
	return wait(HoldDecider, "the decider wants what is not allowed: %s", d.Action)
}

// info is what is observed now.
func (m *Machine) info() Info {
	info := Info{Self: m.cfg.Self, Required: m.cfg.Required, Margin: m.cfg.Margin, Known: m.known,
		NeverForm: m.cfg.NeverForm, Silent: m.cfg.SomeMayBeSilent, Remembered: m.cfg.Remembered, Majority: m.cfg.Majority()}
	if m.known {
		info.Stable = m.shownAt - m.changedAt
	}
	for i := range m.points {
		p := &m.points[i]
		o := Observed{Point: p.addr, Failed: p.err}
		if p.reply != nil && m.now-p.at <= m.cfg.FreshFor {
			o.Answered, o.Reply, o.Foreign = true, *p.reply, p.reply.Cluster != m.cfg.Cluster
			_, o.Speaks = m.cfg.Wire.Common(p.reply.Wire)
		}
		if p.listed || o.Answered { // the holder of the promise may be dead, and must not hold up others
			info.Points = append(info.Points, o)
		}
	}
	return info
}

// Reply is what this node's contact point says of it.
func (m *Machine) Reply() Reply {
	r := Reply{Cluster: m.cfg.Cluster, Node: m.cfg.Self, Wire: m.cfg.Wire, Forms: m.stage == formingNow,
		Ended: m.claim.ended, Never: m.cfg.NeverForm}
	if m.stage == inCluster {
		r.ClusterID, r.Seeds = m.cluster, slices.Clone(m.seeds)
	}
	return r
}
