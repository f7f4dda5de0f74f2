// Machine: the membership of one node as a stepped value; its five verbs and what happens after each.

package membership

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Machine is the membership of one node: a core that all of it shares, and one part for each thing that it does. It is
// not safe for concurrent use.
type Machine struct {
	core
	joining   joining
	forming   forming
	admission admission
	exchange  exchange
	watch     watch
	beliefs   beliefs
	leading   leading
	leaving   leaving
	others    others
	blocking  blocking

	view    *cluster.View // that was handed over last
	shown   *cluster.View // the next one, nil while nothing has changed
	events  []Event       // that lead from view to shown, so many as diffs says, and then those of tell
	diffs   int
	drained bool
}

// New returns a machine that has not joined anything yet. cfg is taken with its defaults; all randomness comes from
// rng, which the machine owns from now on.
func New(self peer.ID, cfg Config, rng *rand.Rand) *Machine {
	cfg = cfg.WithDefaults()
	m := &Machine{core: core{self: self, cfg: cfg, rng: rng, store: members.NewStore(cfg.CompressAbove, cfg.Intern)}}
	m.joining = joining{core: &m.core, forming: &m.forming, admission: &m.admission, beliefs: &m.beliefs,
		leading: &m.leading, leaving: &m.leaving, others: &m.others}
	m.forming = forming{core: &m.core, joining: &m.joining, admission: &m.admission}
	m.admission = admission{core: &m.core, forming: &m.forming, joining: &m.joining, leaving: &m.leaving}
	m.exchange = exchange{core: &m.core, beliefs: &m.beliefs, others: &m.others}
	m.watch = watch{core: &m.core, beliefs: &m.beliefs, monitor: newMonitor(self, cfg)}
	m.beliefs = beliefs{core: &m.core, joining: &m.joining}
	m.leading = leading{core: &m.core, beliefs: &m.beliefs, blocking: &m.blocking}
	m.leaving = leaving{core: &m.core, joining: &m.joining, leading: &m.leading}
	m.others = others{core: &m.core, forming: &m.forming, joining: &m.joining}
	m.blocking = blocking{core: &m.core}
	return m
}

// Phi returns how suspicious the silence of id is at the last step, for display; 0 for one that is not watched here.
func (m *Machine) Phi(id peer.ID) float64 { return m.watch.monitor.Phi(id, m.now) }

// Suspicion is how a node judges the silence of one peer.
type Suspicion = fd.Suspicion

// Suspicions appends how the silence of each peer that this node watches is judged at its last step, sorted, to into;
// for display.
func (m *Machine) Suspicions(into []Suspicion) []Suspicion {
	return m.watch.monitor.Suspicions(m.now, into)
}

// Convergence explains the convergence of this node as of its last step. Before it is a member it is the zero value.
func (m *Machine) Convergence() Convergence { return m.blocking.convergence() }

func (m *Machine) begin(now time.Duration, source peer.ID) {
	invariant.Check(now >= m.now, "membership: time goes back")
	m.watch.noticePause(now)
	m.now, m.source = now, source
	if m.drained {
		m.drained = false
		m.arena.Reset()
		m.mail = m.mail[:0]
		m.over, m.died = nil, m.died[:0]
		if m.shown != nil {
			m.view, m.shown, m.watch.whys = m.shown, nil, m.watch.whys[:0]
		}
		m.told, m.diffs = m.told[:0], 0
		if m.events = m.events[:0]; cap(m.events) > keptEvents {
			m.events = nil
		}
	}
}

// Tick handles every deadline that has passed.
func (m *Machine) Tick(now time.Duration) {
	m.begin(now, m.self)
	if m.beliefs.isolated() {
		m.show()
		return
	}
	m.watch.monitor.Tick(now)
	for i := range m.timers {
		if t := &m.timers[i]; t.on && t.at <= now {
			t.on = false
			m.fire(i)
		}
	}
	if at, ok := m.watch.nextVerdict(); ok && at <= now {
		m.watch.judge()
	}
	m.settle()
}

// Handle takes one control message that was read from the connection at arrived. An error means that the peer sent
// nonsense (a *wire.Error, or ErrBadKind); nothing has changed.
func (m *Machine) Handle(now, arrived time.Duration, from peer.ID, kind wire.Kind, body []byte) error {
	m.begin(now, from)
	if m.phase == ended || from == m.self || m.beliefs.isolated() {
		m.show()
		return nil
	}
	if m.phase == member && !m.st.Has(from) {
		m.stats.NonMembers++
	}
	if m.phase == probing {
		m.forming.heard(from.Addr)
	}
	var err error
	switch kind {
	case wire.KindHeartbeat:
		err = m.watch.onHeartbeat(arrived, from, body)
	case wire.KindHeartbeatAck:
		err = m.watch.onHeartbeatAck(arrived, from, body)
	case wire.KindJoinProbe:
		err = m.admission.onProbe(from, body)
	case wire.KindJoinProbeAck:
		err = m.joining.onProbeAck(from, body)
	case wire.KindJoinProbeNak:
		err = m.joining.onProbeNak(from, body)
	case wire.KindJoin:
		err = m.admission.onJoin(from, body)
	case wire.KindWelcome:
		err = m.joining.onWelcome(from, body)
	case wire.KindJoinRefused:
		err = m.joining.onRefused(from, body)
	case wire.KindStatus:
		err = m.exchange.onStatus(arrived, from, body)
	case wire.KindVersion:
		err = m.exchange.onVersion(arrived, from, body)
	case wire.KindSeen:
		err = m.exchange.onSeen(arrived, from, body)
	case wire.KindGossip:
		err = m.exchange.onGossip(arrived, from, body)
	case wire.KindDelta:
		err = m.exchange.onDelta(arrived, from, body)
	case wire.KindExitDone:
		err = m.leading.onExitDone(from, body)
	case wire.KindFormAsk:
		err = m.forming.onFormAsk(from, body)
	case wire.KindFormAnswer:
		err = m.forming.onFormAnswer(from, body)
	case wire.KindRemovedNote:
		err = m.beliefs.onNote(from, body)
	default:
		err = fmt.Errorf("%w: %s", ErrBadKind, kind)
	}
	if err == nil && m.phase == member && m.st.Has(from) {
		m.contact = now
		if kind != wire.KindHeartbeat && kind != wire.KindHeartbeatAck {
			m.watch.monitor.Sign(from, arrived) // FD-5
		}
	}
	m.settle()
	return err
}

// Do carries out a local wish. Errors: ErrJoining, ErrTooManySeeds, ErrUnknownMember, ErrNotMember, ErrEnded,
// ErrBadCommand; with any of them nothing has changed.
func (m *Machine) Do(now time.Duration, cmd Command) error {
	m.begin(now, m.self)
	if m.phase == ended || m.beliefs.isolated() {
		m.show()
		return ErrEnded
	}
	var err error
	switch c := cmd.(type) {
	case JoinCommand:
		err = m.joining.startJoin(c)
	case LeaveCommand:
		m.leaving.leave()
	case IsolatedCommand:
		m.end(EndIsolated, m.self, c.Why)
	case DownCommand:
		err = m.down(c.ID, c.Cause)
	case OtherClusterCommand:
		m.others.otherCluster(c.Addr, c.ClusterID, c.Birth, true)
	case OwnAddressCommand:
		m.joining.ownAddress(c.Addr)
	case AskedCommand:
		m.others.askedBy(c)
	case JoinAnotherCommand:
		err = m.leaving.joinAnother()
	case ToldRemovedCommand:
		m.beliefs.toldRemoved(c)
	case PrepareShutdownCommand:
		err = m.prepareShutdown()
	case DownAllCommand:
		err = m.downAll(c.IDs, c.Cause)
	case ProveCommand:
		err = m.prove(c.IDs)
	case RefoundCommand:
		err = m.refound()
	case SetMetadataCommand:
		err = m.setMetadata(c)
	case DefineCommand, UndefineCommand, MoveInstanceCommand, CompleteCommand:
		err = m.changeTable(cmd)
	case DrainsCommand:
		m.leading.drains, m.dirty = c.On, true
	case OldWireCommand:
		m.noteOlder(c.ID)
	case LinkLostCommand:
		m.watch.linkLost(c)
	case QuarantineCommand:
		err = m.watch.quarantine(c)
	case RecordedCommand:
		m.leading.onRecorded(c.Record)
	case ReconfirmCommand:
		err = m.reconfirm()
	case SeedsCommand:
		err = m.joining.useSeeds(c)
	case UnreachedCommand:
		m.forming.noteUnreached(c)
	default:
		err = fmt.Errorf("%w: %T", ErrBadCommand, cmd)
	}
	m.settle()
	return err
}

// Next returns the earliest deadline at which Tick has something to do; ok is false when there is none.
func (m *Machine) Next() (deadline time.Duration, ok bool) {
	if m.phase == member {
		deadline, ok = m.watch.monitor.Next()
		if at, some := m.watch.nextVerdict(); some && (!ok || at < deadline) {
			deadline, ok = at, true
		}
	}
	for _, t := range m.timers {
		if t.on && (!ok || t.at < deadline) {
			deadline, ok = t.at, true
		}
	}
	return deadline, ok
}

// keptEvents is up to how many events the memory for them is kept; the first view of a large cluster has one a member.
const keptEvents = 256

// Drain hands over the effects of the verbs since the last Drain. They are valid until the next verb.
func (m *Machine) Drain(out *Effects) {
	*out = m.Peek()
	m.drained = true
}

// Peek returns what the next Drain will hand over, for a composition that acts on it within the same step. It is valid
// until the next verb and is not to be changed.
func (m *Machine) Peek() Effects {
	if m.drained {
		return Effects{}
	}
	return Effects{Mail: m.mail, View: m.shown, Events: m.events, Ended: m.over, Died: m.died}
}

// show ends a verb: when something has changed it makes the view that is to follow the last one handed over, and the
// events that lead there.
func (m *Machine) show() {
	if m.stale {
		m.stale, m.shown, m.events = false, m.nextView(), m.events[:0]
		if m.shown != nil {
			m.events = diff(m.events, m.view, m.shown)
			m.explain(m.events)
		}
		m.diffs = len(m.events)
	}
	m.events = append(m.events[:m.diffs], m.told...)
}

// settle ends a verb: it acts on what the verb changed and shows what came of it.
func (m *Machine) settle() {
	m.follow()
	m.show()
}

// follow acts on what a verb changed: what this node's own record asks of it, then leader duties, until nothing
// changes. The bound is never reached: each pass moves some member one step along its chain, and a pass of duties
// without a seen set that is complete does nothing.
func (m *Machine) follow() {
	for range 2 { // once more when a new ring brought a verdict
		for range 8 {
			if m.phase != member || !m.dirty {
				break
			}
			m.dirty = false
			m.leading.forgetExits()
			if m.noticeSelf(); m.phase == member {
				m.leading.complete()
				m.leading.announce()
				m.leading.duties()
			}
		}
		if m.phase != member {
			return
		}
		m.watch.followRing()
	}
	m.exchange.eagerPush()
}

// noticeSelf acts on this node's own record.
func (m *Machine) noticeSelf() {
	switch m.st.Status(m.self) {
	case cluster.Down:
		m.exchange.spread(leaveNoticeFanout, nil)
		own := m.st.Members[m.st.Index(m.self)]
		by := own.By
		if by.IsZero() {
			by = m.source
		}
		m.end(EndDowned, by, why(cluster.Down, own.Cause, own.By))
		m.over.Cause = own.Cause
	case cluster.Exiting:
		m.leaving.startExit()
	case cluster.Removed:
		if _, own := m.st.Tomb(m.self); own { // only its own leader actions put that into its state
			kind, reason := m.leaving.leftAs()
			m.end(kind, m.self, reason)
			return
		}
		m.end(EndRemoved, m.source, "the cluster has forgotten this incarnation")
	}
}

// Laws demands of the states of three machines what every run must keep (MEM-4): the merge is commutative, associative
// and idempotent, takes nobody back and loses nobody but through a tombstone; one clock names one content; only members
// have seen it. Machines without a state, of different clusters, or that have ended, are not compared: the last state
// of an ended one, without itself, is for its last view and is never sent. It reads the machines only, and costs
// several merges: for simulators and tests.
func Laws(a, b, c *Machine) error {
	for _, m := range [...]*Machine{a, b, c} {
		if m.st == nil || m.phase == ended || m.st.Cluster != a.st.Cluster {
			return nil
		}
	}
	return members.Laws(a.st, b.st, c.st)
}
