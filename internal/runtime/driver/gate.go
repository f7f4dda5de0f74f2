// The gate: while the node is suspended no handler is called (package exec), and no local send is taken (MEM-10). And
// the session lease or the tenure, without which it is: the node decides, the calls of its store are made here. Control
// goroutine, unless said otherwise.

package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/base/callback"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/stats"
)

const reportRunningAfter = time.Second // how long handlers have to return before they are reported

// suspend carries out the node's order to stop.
func (d *Driver) suspend(o *node.Suspend) {
	if o == nil {
		return
	}
	c := &d.control
	if !o.On {
		c.reportAt = 0
		return
	}
	d.exec.Gate.Order()
	c.suspendedAt = d.now()
	c.reportAt = c.suspendedAt + reportRunningAfter
}

// reportRunning tells of handlers that were running when the node suspended itself and have not returned.
func (d *Driver) reportRunning() {
	c := &d.control
	took := d.now() - c.suspendedAt
	c.reportAt = 0
	d.exec.ReportRunning(took)
}

// suspended is the error of a local send while the gate is closed.
func (r *Region) suspended() error {
	if why := plane.Closed(r.d.stopping.Load()); why != route.Stopped {
		return why.Err()
	}
	return r.d.ended()
}

const (
	// sessionEnd is the owner of a session that was ended.
	sessionEnd = "ended"
	// sessionCalls is the most calls that have not returned: those that the node makes at once (six), and those that
	// have had their time and do not heed their context.
	sessionCalls = 16
)

var (
	errSessionLate  = errors.New("the store has not answered in time")
	errSessionStuck = fmt.Errorf("%d calls of the store do not return", sessionCalls)
)

// sessions is the part of a driver. shown is for any goroutine.
type sessions struct {
	on    bool
	at    node.SessionStatus // as it was shown last
	shown atomic.Pointer[node.SessionStatus]
	room  chan struct{}   // one for each call that has not returned
	life  context.Context // of all calls; it ends with the node
	end   context.CancelFunc
}

func (s *sessions) init(c node.SessionConfig) {
	if s.on = c.On(); s.on {
		s.room = make(chan struct{}, sessionCalls)
		s.life, s.end = context.WithCancel(context.Background())
	}
}

// gated has the gate follow the session of this node and its order, and makes the calls that the node wants.
func gated(e *node.Effects, d *Driver) {
	defer d.suspend(e.Suspend)
	d.control.tenure.follow(e, d)
	s := &d.control.session
	if !s.on {
		return
	}
	at, until := node.Session(d.control.node.Node)
	d.exec.Gate.Lease(until)
	if at != s.at {
		s.at = at
		now := at
		s.shown.Store(&now)
	}
	for i := range e.Session.Events {
		logSession(&e.Session.Events[i], d)
	}
	for _, op := range e.Session.Ops {
		select {
		case s.room <- struct{}{}:
			go callSession(op, d)
		default:
			sessionAnswer(op, d, false, errSessionStuck)
		}
	}
}

// sessionAnswer brings the answer to a call to the node, which takes the first of each. Any goroutine.
func sessionAnswer(op node.SessionOp, d *Driver, ok bool, err error) {
	r := node.SessionResult{ID: op.ID, OK: ok && err == nil}
	if err != nil {
		r.Err = errText(err)
	}
	d.inbox.post(func() { _ = d.command(r) }) // an answer is never refused; a node that has ended needs none
}

// callSession makes one call, on a goroutine of its own, and brings the answer back. A call that does not heed its
// context is answered all the same: what it does later is as what a store does after its answer was lost.
func callSession(op node.SessionOp, d *Driver) {
	s := &d.control.session
	ctx, cancel := context.WithTimeout(s.life, op.Limit)
	defer cancel()
	late := time.AfterFunc(op.Limit+op.Limit/4, func() { sessionAnswer(op, d, false, errSessionLate) })
	ok, err := false, callback.ErrPanicked
	defer func() { // also when it ends the goroutine
		late.Stop()
		sessionAnswer(op, d, ok, err)
		<-s.room
	}()
	in, owner := d.cfg.Sharding.Session.Service, op.Of.String()
	if op.End {
		in, owner = d.cfg.Sharding.Session.Ends, sessionEnd
	}
	if why := d.count.callbacks.Call("Sharding.Session", func() {
		ok, err = in.Acquire(ctx, d.cfg.Name+"-session-"+op.Of.String(), owner)
	}); why != nil {
		ok, err = false, why
	}
}

// await ends the calls that are under way, and waits until they have returned, or patience is over: when the node has
// ended its user may close what is behind the store.
func (s *sessions) await(patience time.Duration, log *slog.Logger) {
	if !s.on {
		return
	}
	s.end()
	late := time.NewTimer(patience)
	defer late.Stop()
	for mine := range cap(s.room) {
		select {
		case s.room <- struct{}{}:
		case <-late.C:
			log.Warn("calls of the store of sessions do not return", "calls", cap(s.room)-mine)
			return
		}
	}
}

// logSession logs what happens to the session of this node, and to those that it ends.
func logSession(e *node.SessionEvent, d *Driver) {
	lasted := e.For.Round(time.Millisecond)
	switch e.Kind {
	case node.SessionBegan:
		d.log.Info("the session lease is held", "after", lasted)
	case node.SessionFailing:
		d.log.Warn("the session lease could not be renewed", "why", e.Why)
	case node.SessionRanOut:
		d.log.Error("the session lease has run out: this node handles nothing until it is held again", "why", e.Why)
	case node.SessionBack:
		d.log.Warn("the session lease is held again, and nobody had ended it: this node goes on", "after", lasted)
	case node.SessionEnded:
		d.log.Error("another member has ended the session lease: this node ends", "after", lasted)
	case node.SessionGaveUp:
		d.log.Error("this node was without a session lease for too long, and ends", "after", lasted, "why", e.Why)
	case node.SessionSwapped:
		d.log.Warn("the session lease of a lost member is ended: its shards are free", "member", e.Of)
	case node.SessionNotYet:
		d.log.Warn("the session lease of a lost member could not be ended yet", "member", e.Of, "why", e.Why)
	}
}

// stats is where the session of this node stands. Any goroutine.
func (s *sessions) stats(start time.Time, now time.Duration) (out stats.Session) {
	at := s.shown.Load()
	if at == nil {
		return out
	}
	out = stats.Session{On: true, Held: at.Held, Since: start.Add(at.Since), Why: at.Why, Renewed: at.Renewed,
		Failed: at.Failed, RanOut: at.RanOut, Ended: at.Swapped}
	if at.Held {
		out.Left = max(at.Until-now, 0)
	}
	return out
}

// tenures is the part of a driver. shown is for any goroutine.
type tenures struct {
	on    bool
	at    node.TenureStatus // as it was shown last
	shown atomic.Pointer[tenureShown]
}

// tenureShown is where the tenure of this node stands.
type tenureShown struct {
	node.TenureStatus
	seats   membership.Seats
	vouched []time.Duration // until when each seat vouches for this node
}

// follow has the gate follow the tenure of this node, before its order is carried out, and shows where it stands.
func (t *tenures) follow(e *node.Effects, d *Driver) {
	if !t.on {
		return
	}
	n := d.control.node.Node
	at, until := node.Tenure(n)
	d.exec.Gate.Lease(until)
	shown, seats := t.shown.Load(), node.Electorate(n)
	if shown == nil || at != t.at || seats.Number != shown.seats.Number || seats.Writer != shown.seats.Writer {
		t.at = at
		t.shown.Store(&tenureShown{at, seats, node.Vouched(make([]time.Duration, 0, len(seats.Holders)), n)})
	}
	for i := range e.Session.Tenure {
		logTenure(&e.Session.Tenure[i], d)
	}
}

// logTenure logs what happens to the tenure of this node, to its seat, and to those that it vouches for no more.
func logTenure(e *node.TenureEvent, d *Driver) {
	lasted := e.For.Round(time.Millisecond)
	switch e.Kind {
	case node.TenureBegan:
		d.log.Info("the tenure is held: a quorum of the seats vouches for this node", "after", lasted)
	case node.TenureRanOut:
		d.log.Error("the tenure has run out: this node handles nothing until it is held again", "why", e.Why)
	case node.TenureBack:
		d.log.Warn("the tenure is held again, and nobody has proven it over: this node goes on", "after", lasted)
	case node.TenureRevoked:
		d.log.Warn("this node holds a seat and vouches for a member no more", "member", e.Of)
	case node.TenureProven:
		d.log.Warn("the tenure of a lost member is over: its shards are free", "member", e.Of)
	case node.TenureAssumed:
		d.log.Warn("lost members are taken for ended, so that their seats are given to others", "members", len(e.All))
	case node.TenureGotSeat:
		d.log.Info("this node holds a seat: others ask it for their tenures")
	case node.TenureNoSeat:
		d.log.Info("this node holds no seat any more")
	}
}

// stats is where the tenure of this node stands. Any goroutine.
func (t *tenures) stats(start time.Time, now time.Duration) (out stats.Tenure) {
	at := t.shown.Load()
	if at == nil {
		return out
	}
	left := func(until time.Duration) time.Duration { return max(until-now, 0) }
	out = stats.Tenure{On: true, Held: at.Held, Since: start.Add(at.Since), Why: at.Why, Number: at.seats.Number,
		Granted: at.Granted, Refused: at.Refused, RanOut: at.RanOut, Given: at.Gave, Ended: at.Proven}
	if at.Held {
		out.Left, out.Least = left(at.Until), at.Least
	}
	for i, h := range at.seats.Holders {
		out.Seats = append(out.Seats, stats.Seat{Holder: h, Left: left(at.vouched[i])})
	}
	return out
}
