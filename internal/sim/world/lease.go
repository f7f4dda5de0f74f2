// Leases: the store that all processes reach, slowly at times, what a process does with those of its singletons, and
// the calls for its session.

package world

import (
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/leases"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// LeaseUse is how a type uses a lease, and how the store treats its calls.
type LeaseUse struct {
	leases.Config
	// Keep is how long the store keeps a lease for an owner after it was last acquired.
	Keep time.Duration
	// Fate draws what becomes of a call, nil: all go well.
	Fate func() LeaseFate
}

// LeaseFate is what becomes of one call of the store.
type LeaseFate struct {
	There, Back time.Duration // it takes effect so much later, and its answer comes so much later
	Lost        bool          // it has no effect, and ends with an error
	Blind       bool          // it has its effect, and ends with an error
	Taken       bool          // before it, an operator takes the lease from its owner
}

// leaseOwner is the owner of a lease in the store: a process under a fence.
type leaseOwner struct {
	p     *Process
	fence route.Fence
}

// leaseRow is one lease in the store.
type leaseRow struct {
	owner leaseOwner
	until time.Duration
}

// LeaseStore is the store of all leases of singletons, and of sessions; and what is known of tenures, which need none.
type LeaseStore struct {
	rows     map[route.TypeID]*leaseRow
	Sessions SessionStore
	Tenures  TenureBook

	Acquired, Lost, Refused int // as processes have seen it
}

func (s *LeaseStore) row(id route.TypeID) *leaseRow {
	if s.rows == nil {
		s.rows = map[route.TypeID]*leaseRow{}
	}
	if s.rows[id] == nil {
		s.rows[id] = &leaseRow{}
	}
	return s.rows[id]
}

// Holds reports whether a process has a lease under a fence, as the store knows.
func (s *LeaseStore) Holds(now time.Duration, id route.TypeID, p *Process, f route.Fence) bool {
	r := s.row(id)
	return r.owner == leaseOwner{p, f} && now < r.until
}

// leaseDesk is the lease of one type on one process.
type leaseDesk struct {
	r       *Region
	holder  *leases.Holder
	guard   leases.Guard
	watched bool // overdue is planned
	stopped map[route.Fence]func()
	nth     uint64 // counts plans
}

// leased returns the desk of a type that needs a lease.
func leased(r *Region) *leaseDesk {
	if r.decl.Lease == nil {
		return nil
	}
	return &leaseDesk{r: r, holder: leases.New(r.decl.Lease.Config), stopped: map[route.Fence]func(){}}
}

func (d *leaseDesk) begins(f route.Fence) {
	d.holder.Begin(leaseClock(d.r.Process), f)
	d.carry()
}

func (d *leaseDesk) ends(f route.Fence, tell func()) {
	d.stopped[f] = tell
	d.holder.End(leaseClock(d.r.Process), f)
	d.carry()
}

// carry carries out what the holder wants, and plans its next deadline.
func (d *leaseDesk) carry() {
	p, e := d.r.Process, d.holder.Drain()
	again := d.guard.Follow(d.holder.Valid())
	d.watch()
	if h := d.lives(); h != nil {
		switch {
		case e.Withhold:
			p.World.Leases.Lost++
			h.withhold()
			h.order(h.lookAtLease)
		case e.Permit || again:
			p.World.Leases.Acquired++
			h.permit.allowed = h.permit.withheld
			h.order(h.lookAtLease)
		}
	}
	if e.Op != nil {
		d.call(*e.Op)
	}
	for _, f := range e.Freed {
		tell := d.stopped[f]
		delete(d.stopped, f)
		if tell != nil {
			p.Later(0, tell)
		}
	}
	d.plan()
}

// watch makes the ticker, which goes on while the control loop is stuck, look whether the lease has ended.
func (d *leaseDesk) watch() {
	p, until := d.r.Process, d.guard.Until()
	if until > 0 && !d.watched {
		d.watched = true
		p.Later(max(until-leaseClock(d.r.Process), plane.ClockTick), d.overdue)
	}
}

// overdue is what the ticker does then.
func (d *leaseDesk) overdue() {
	d.watched = false
	d.lapse()
	d.watch()
}

// lapse ends the lease if its time is over.
func (d *leaseDesk) lapse() {
	if !d.guard.Tick(leaseClock(d.r.Process)) {
		return
	}
	if h := d.lives(); h != nil {
		h.withhold()
	}
}

// lives returns the shard, if it lives here.
func (d *leaseDesk) lives() *hosted {
	if h := d.r.shards.Peek(0); h != nil && !h.over && !h.silent {
		return h
	}
	return nil
}

// plan makes the control loop look at the next deadline.
func (d *leaseDesk) plan() {
	at, ok := d.holder.Next()
	if !ok {
		return
	}
	p := d.r.Process
	d.nth++
	nth := d.nth
	p.Later(max(at-leaseClock(d.r.Process), 0), func() {
		if nth == d.nth {
			d.onLoop(func() { d.due() })
		}
	})
}

// onLoop runs on the control loop of the process, when that is not stuck.
func (d *leaseDesk) onLoop(run func()) {
	if p := d.r.Process; p.Stuck() {
		p.Later(leaseDelay, func() { d.onLoop(run) })
		return
	}
	run()
}

// due does what is due.
func (d *leaseDesk) due() {
	if at, ok := d.holder.Next(); ok && at <= leaseClock(d.r.Process) {
		d.holder.Tick(leaseClock(d.r.Process))
		d.carry()
		return
	}
	d.plan()
}

// leasesDue comes before the gate of a process may open: what has lost its lease meanwhile is not called again.
func leasesDue(p *Process) {
	for _, r := range p.Regions {
		if r.lease != nil {
			r.lease.due()
		}
	}
}

// call makes a call of the store.
func (d *leaseDesk) call(op leases.Op) {
	p, use := d.r.Process, d.r.decl.Lease
	w, owner, fate := p.World, leaseOwner{p, op.Fence}, LeaseFate{There: leaseDelay, Back: leaseDelay}
	if use.Fate != nil {
		fate = use.Fate()
	}
	w.After(fate.There, func() { // also when the process is no more
		row, ok := w.Leases.row(d.r.ID), false
		if fate.Taken {
			*row = leaseRow{}
		}
		free := row.owner == leaseOwner{} || w.Now >= row.until || row.owner == owner
		switch {
		case fate.Lost:
		case op.Release:
			if ok = true; row.owner == owner {
				*row = leaseRow{}
			}
		case free:
			*row, ok = leaseRow{owner, w.Now + use.Keep}, true
		default:
			w.Leases.Refused++
		}
		r := leases.Result{ID: op.ID, OK: ok}
		if fate.Lost || fate.Blind {
			r = leases.Result{ID: op.ID, Err: "as the dice fell"}
		}
		p.Later(fate.Back, func() {
			d.onLoop(func() {
				d.holder.Answer(leaseClock(d.r.Process), r)
				d.carry()
			})
		})
	})
}

// permit says whether the entity that is kept alive may live. It is what counts; orders only have the host look at it.
type permit struct{ withheld, count, allowed int }

// withhold makes the entity that is kept alive live no more, from now on.
func (h *hosted) withhold() {
	h.permit.count++
	h.permit.withheld = h.permit.count
	h.life.Withhold()
}

// lookAtLease carries out what was said of the lease.
func (h *hosted) lookAtLease() {
	h.bar()
	if w := h.permit.withheld; w != 0 && w == h.permit.allowed && !h.over && !h.silent {
		h.step(func(now time.Duration) { entity.Permit(h.shard, now) })
		h.permitted()
	}
}

// barred reports whether the entity that is kept alive may not live, by the clock as it is now.
func (h *hosted) barred() bool {
	if h.r.lease != nil {
		h.r.lease.lapse()
	}
	return h.permit.withheld != 0
}

// bar ends it if so.
func (h *hosted) bar() {
	if h.barred() && !h.over && !h.silent && !entity.Withheld(h.shard) {
		h.step(func(now time.Duration) { entity.Withhold(h.shard, now, h.r.decl.Keep) })
	}
}

// permitted notes that it may live, if that was carried out and nobody has said otherwise since.
func (h *hosted) permitted() {
	if h.permit.allowed == h.permit.withheld && !entity.Withheld(h.shard) {
		h.permit.withheld = 0
	}
}

// SessionFate is what becomes of one call of the store.
type SessionFate struct {
	There, Back time.Duration // it takes effect so much later, and its answer comes so much later
	Lost        bool          // it has no effect, and ends with an error
	Blind       bool          // it has its effect, and ends with an error
	Patient     bool          // its process waits for the answer however long that takes
}

// sessionRow is one session in the store.
type sessionRow struct {
	ended bool
	until time.Duration
}

// SessionStore is the store of all sessions.
type SessionStore struct {
	// Fate draws what becomes of a call, nil: all go well.
	Fate func() SessionFate
	// Away lists hosts that it does not answer.
	Away []int

	rows  map[peer.ID]sessionRow
	ended peer.Set // processes with a session that a member has ended

	Renewed, Swaps, RanOut, Backs, GaveUp int // as processes have seen it
}

// Ended reports whether a member has ended the session of a process.
func (s *SessionStore) Ended(id peer.ID) bool { return s.ended.Has(id) }

// carryOut does what an operation says, and reports whether it was done.
func (s *SessionStore) carryOut(now time.Duration, cfg node.SessionConfig, op *node.SessionOp) bool {
	r := s.rows[op.Of]
	if now < r.until && r.ended != op.End {
		return false
	}
	lasts := cfg.TTL
	if op.End {
		lasts = cfg.Ends
		s.ended.Add(op.Of)
	}
	if s.rows == nil {
		s.rows = map[peer.ID]sessionRow{}
	}
	s.rows[op.Of] = sessionRow{op.End, now + lasts}
	return true
}

// leasing carries out what the node of a process wants of its session.
func leasing(e *node.Effects, p *Process) {
	for i := range e.Session.Events {
		noteSession(&e.Session.Events[i], p)
	}
	for _, op := range e.Session.Ops {
		callSession(op, p)
	}
	for i := range e.Session.Tenure {
		p.World.Leases.Tenures.note(&e.Session.Tenure[i], p)
	}
}

// ProvenEnded reports whether a member has ended the session of a process, or proven that its tenure is over.
func (s *LeaseStore) ProvenEnded(id peer.ID) bool { return s.Sessions.Ended(id) || s.Tenures.Over(id) }

// noteSession counts what a node tells.
func noteSession(ev *node.SessionEvent, p *Process) {
	s := &p.World.Leases.Sessions
	switch ev.Kind {
	case node.SessionRanOut:
		s.RanOut++
	case node.SessionBack:
		s.Backs++
	case node.SessionGaveUp:
		s.GaveUp++
	case node.SessionSwapped:
		s.Swaps++
		p.World.tell(p, "ended the session of %s", p.World.Name(ev.Of))
	}
}

// callSession makes one call.
func callSession(op node.SessionOp, p *Process) {
	w, fate := p.World, SessionFate{There: leaseDelay, Back: leaseDelay}
	if w.Leases.Sessions.Fate != nil {
		fate = w.Leases.Sessions.Fate()
	}
	if !fate.Patient {
		p.Later(op.Limit, func() { p.Do(node.SessionResult{ID: op.ID, Err: "no answer in time"}) })
	}
	w.After(fate.There, func() { // also when the process is no more
		r := node.SessionResult{ID: op.ID}
		if fate.Lost || slices.Contains(w.Leases.Sessions.Away, p.Index) {
			r.Err = "the store is away"
		} else {
			r.OK = w.Leases.Sessions.carryOut(w.Now, p.Setup.Session, &op)
			outlivesEnd(&op, r.OK, w)
		}
		if fate.Blind {
			r = node.SessionResult{ID: op.ID, Err: "the answer is lost"}
		}
		if r.OK && !op.End {
			w.Leases.Sessions.Renewed++
		}
		p.Later(fate.Back, func() { p.Do(r) })
	})
}

// unleased reports whether the session lease of a process, or its tenure, counts for nothing by now: also by what its
// clock has not shown, and though its control loop is stuck.
func (g *gate) unleased(p *Process) bool {
	_, until := node.Session(p.Node.Node)
	_, tenure := node.Tenure(p.Node.Node)
	return p.clock()+p.unseen >= min(until, tenure)
}

// outlivesEnd: when a session is ended its owner handles nothing, whatever its control loop does. One that never learnt
// that it was let in has nothing to handle, and no session to go by yet (storm 1142045529).
func outlivesEnd(op *node.SessionOp, ok bool, w *World) {
	p := w.ProcessOf(op.Of)
	if !op.End || !ok || p == nil || !p.Alive {
		return
	}
	if _, until := node.Session(p.Node.Node); until != node.NoLease && !p.Paused() && !p.Held() {
		w.Watcher.Violate(p, "session", "its session lease is ended while it handles messages")
	}
}

// outlives: a process that handles messages has a session that nobody has ended, and a tenure that nobody has proven
// over.
func (g *gate) outlives(p *Process) {
	if p.World.Leases.Tenures.overFor(p.ID, p) && !p.Held() {
		p.World.Watcher.Violate(p, "tenure", "it handles messages, and its tenure is proven over")
	}
	if p.World.Leases.Sessions.Ended(p.ID) && !p.Held() {
		p.World.Watcher.Violate(p, "session", "it handles messages, and a member has ended its session lease")
	}
}

// TenureBook is what processes have reported of tenures.
type TenureBook struct {
	over    peer.Set // processes with an end that a member has proven, or that is taken for one
	where   map[overIn]bool
	revoked peer.Set // processes that the holder of a seat vouches for no more

	RanOut, Backs, Proven, Assumed int // as processes have seen it
}

// overIn is the end of a process in one cluster. A process that was let in and has not heard of it may come to another
// cluster later, and the holders of seats there vouch for it anew (storm 19000004243).
type overIn struct {
	cluster uint64
	id      peer.ID
}

// overFor reports whether a member of the cluster that p is in has said that the tenure of a process is over.
func (b *TenureBook) overFor(id peer.ID, p *Process) bool {
	return p.View != nil && b.where[overIn{p.View.ClusterID, id}]
}

// Over reports whether a member has proven that the tenure of a process is over, or an end of it was said or assumed.
func (b *TenureBook) Over(id peer.ID) bool { return b.over.Has(id) }

// Revoked reports whether the holder of a seat vouches for a process no more.
func (b *TenureBook) Revoked(id peer.ID) bool { return b.revoked.Has(id) }

// Add counts what another world has counted.
func (b *TenureBook) Add(o *TenureBook) {
	b.RanOut, b.Backs, b.Proven, b.Assumed = b.RanOut+o.RanOut, b.Backs+o.Backs, b.Proven+o.Proven, b.Assumed+o.Assumed
}

// note takes what a node reports. When an end is proven its owner handles nothing, whatever its control loop does.
func (b *TenureBook) note(ev *node.TenureEvent, p *Process) {
	switch ev.Kind {
	case node.TenureRanOut:
		b.RanOut++
	case node.TenureBack:
		b.Backs++
	case node.TenureRevoked:
		b.revoked.Add(ev.Of)
	case node.TenureProven:
		b.Proven++
		p.World.tell(p, "proved that the tenure of %s is over", p.World.Name(ev.Of))
		b.ends(ev.Of, "proven over", p)
	case node.TenureAssumed:
		for _, id := range ev.All {
			b.Assumed++
			p.World.tell(p, "takes the tenure of %s for over", p.World.Name(id))
			b.ends(id, "taken for over", p)
		}
	}
}

// ends notes that a process is to handle nothing any more. Nobody says or assumes so of one that may go on: an operator
// looks whether it is dead, and in the takeover time the resolver of a side that has lost has stopped it.
func (b *TenureBook) ends(id peer.ID, how string, by *Process) {
	w := by.World
	b.over.Add(id)
	if b.where == nil {
		b.where = map[overIn]bool{}
	}
	b.where[overIn{by.View.ClusterID, id}] = true
	q := w.ProcessOf(id)
	if q == nil || !q.Alive || !b.overFor(id, q) {
		return
	}
	if _, until := node.Tenure(q.Node.Node); until != node.NoLease && !q.Paused() && !q.Held() {
		w.Watcher.Violate(q, "tenure", "its tenure is %s while it handles messages", how)
	}
}
