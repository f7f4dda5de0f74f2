// Tests of the machine: what each rule of the model says of it, and the rules together under every order that is drawn.

package session

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/contract"
	"github.com/kith-io/kith/peer"
)

var _ contract.Stepped[Command, Effects] = (*Machine)(nil)

var five = Config{TTL: 5 * time.Second, Ends: 2 * time.Minute}

func id(n int) peer.ID {
	return peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7355", n)), Inc: uint64(n)}
}

// rig is one machine; the test answers its calls.
type rig struct {
	t   *testing.T
	m   *Machine
	now time.Duration
	ops []Op

	events []Event
	over   string
	proven []peer.ID
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, m: New(id(1), five), now: time.Second}
	r.do(BeginCommand{})
	return r
}

func (r *rig) do(c Command) {
	require.NoError(r.t, r.m.Do(r.now, c))
	r.drain()
}

func (r *rig) drain() {
	var e Effects
	contract.Drain(r.t, r.m, &e, "out", "drained")
	r.ops, r.events, r.proven = append(r.ops, e.Ops...), append(r.events, e.Events...), append(r.proven, e.Proven...)
	require.True(r.t, e.Over == "" || r.over == "", "it is told once")
	r.over += e.Over
}

// pass lets time pass, with a tick at each deadline.
func (r *rig) pass(d time.Duration) {
	for end, ticks := r.now+d, 0; ; ticks++ {
		at, ok := r.m.Next()
		if !ok || at > end {
			r.now = end
			return
		}
		require.Less(r.t, ticks, 10_000, "a tick ends its deadline")
		r.now = max(at, r.now)
		r.m.Tick(r.now)
		r.drain()
	}
}

// take returns the oldest call that has no answer.
func (r *rig) take() Op {
	require.NotEmpty(r.t, r.ops)
	op := r.ops[0]
	r.ops = r.ops[1:]
	return op
}

func (r *rig) answer(op Op, ok bool) { r.do(Result{ID: op.ID, OK: ok}) }

// event returns the newest event, which is of a kind.
func (r *rig) event(k EventKind) Event {
	require.NotEmpty(r.t, r.events)
	e := r.events[len(r.events)-1]
	require.Equal(r.t, k, e.Kind)
	return e
}

func TestConfig(t *testing.T) {
	require.NoError(t, Config{}.Validate())
	require.False(t, Config{}.On())
	require.NoError(t, five.Validate())
	require.True(t, five.On())
	require.Equal(t, 4500*time.Millisecond, five.Sure())
	require.Equal(t, 1500*time.Millisecond, five.Renew())
	require.Equal(t, 103*time.Second, five.Outage())
	for _, c := range []Config{{TTL: 5 * time.Second}, {Ends: time.Minute}, {TTL: time.Second, Ends: 9 * time.Second},
		{TTL: 999 * time.Millisecond, Ends: time.Hour}, {TTL: 61 * time.Second, Ends: time.Hour},
		{TTL: time.Second, Ends: 25 * time.Hour}, {TTL: -1, Ends: -1}} {
		require.ErrorIs(t, c.Validate(), ErrBadConfig, "%+v", c)
	}
}

// An answer counts from when its call was made, for less than the TTL; the next call comes in time.
func TestAnswerCountsFromItsCall(t *testing.T) {
	r := newRig(t)
	require.False(t, r.m.Held())
	require.Negative(t, r.m.Until())
	op := r.take()
	require.Equal(t, Op{ID: op.ID, Of: id(1), Limit: time.Second}, op)
	made := r.now
	r.now += 900 * time.Millisecond
	r.answer(op, true)
	r.event(Began)
	require.True(t, r.m.Held())
	require.Equal(t, made+five.Sure(), r.m.Until())
	at, ok := r.m.Next()
	require.True(t, ok)
	require.Equal(t, made+five.Renew(), at)
	r.pass(at - r.now)
	second := r.take()
	made = r.now
	r.answer(second, true)
	require.Equal(t, made+five.Sure(), r.m.Until())
	require.Equal(t, uint64(2), r.m.Status().Renewed)
}

// An answer that comes when it counts for nothing any more is a failure.
func TestLateAnswerIsNone(t *testing.T) {
	r := newRig(t)
	op := r.take()
	r.now += five.Sure()
	r.answer(op, true)
	require.False(t, r.m.Held())
	require.Contains(t, r.event(Failing).Why, "an answer after 4.5s")
	require.Equal(t, uint64(1), r.m.Status().Failed)
}

// From the deadline on nothing is handled; an owner that nobody has ended goes on.
func TestRunsOutAndGoesOn(t *testing.T) {
	r := newRig(t)
	r.answer(r.take(), true)
	until := r.m.Until()
	for r.now < until-1 {
		r.pass(min(five.Retry(), until-1-r.now))
		for len(r.ops) > 0 {
			r.do(Result{ID: r.take().ID, Err: "connection refused"})
		}
	}
	require.True(t, r.m.Held())
	r.pass(1)
	require.Equal(t, "connection refused", r.event(RanOut).Why)
	require.False(t, r.m.Held())
	require.Negative(t, r.m.Until())
	require.Equal(t, until, r.m.Status().Since)
	for range 60 {
		r.pass(time.Second)
		for len(r.ops) > 0 {
			r.do(Result{ID: r.take().ID, Err: "connection refused"})
		}
	}
	require.Empty(t, r.over)
	r.pass(five.Retry())
	r.answer(r.take(), true)
	e := r.event(Back)
	require.Greater(t, e.For, 55*time.Second)
	require.True(t, r.m.Held())
	require.Equal(t, uint64(1), r.m.Status().RanOut)
}

// An owner ends when its session was ended, and asks no more.
func TestEndedStaysEnded(t *testing.T) {
	r := newRig(t)
	r.answer(r.take(), true)
	r.pass(five.Renew())
	r.pass(five.Renew())
	one, two := r.take(), r.take()
	r.answer(one, false)
	require.Contains(t, r.over, "ended its session")
	r.event(Ended)
	r.answer(two, true)
	require.False(t, r.m.Held())
	_, ok := r.m.Next()
	require.False(t, ok)
	r.pass(time.Hour)
	require.Empty(t, r.ops)
}

// A node that was without a session for as long as it may ask ends, however the time has passed: also one that never
// had one, one that stood still and whose first word is an answer, and one whose clock has not shown a sleep.
func TestGivesUp(t *testing.T) {
	fresh := newRig(t)
	fresh.pass(five.Outage() - 1)
	require.Empty(t, fresh.over)
	fresh.pass(1)
	require.Contains(t, fresh.over, "without a session lease for 1m43s")

	still := newRig(t)
	still.answer(still.take(), true)
	still.pass(five.Renew())
	op := still.take()
	still.now = still.m.Until() + five.Outage()
	still.answer(op, true)
	require.NotEmpty(t, still.over)
	require.False(t, still.m.Held())

	asleep := newRig(t)
	asleep.answer(asleep.take(), true)
	asleep.do(SleptCommand{For: five.Sure() - 1})
	require.True(t, asleep.m.Held())
	require.Equal(t, asleep.now+1, asleep.m.Until())
	asleep.do(SleptCommand{For: five.Outage()})
	require.False(t, asleep.m.Held())
	require.Empty(t, asleep.over)
	asleep.do(SleptCommand{For: 1})
	require.NotEmpty(t, asleep.over)
}

// A store that answers nothing gets two calls at most.
func TestCallsAreBounded(t *testing.T) {
	r := newRig(t)
	r.pass(time.Minute)
	require.Len(t, r.ops, ownCalls)
	r.do(Result{ID: 99, OK: true})
	require.False(t, r.m.Held(), "an answer to no call means nothing")
}

// lose has the machine seek members.
func (r *rig) lose(rank int, of ...int) {
	var ids []peer.ID
	for _, n := range of {
		ids = append(ids, id(n))
	}
	r.do(LostCommand{IDs: ids, Rank: rank})
}

// keep passes time in which the machine's own session is renewed, and returns the other calls.
func (r *rig) keep(d time.Duration) (seeks []Op) {
	for end, ticks := r.now+d, 0; ; ticks++ {
		require.Less(r.t, ticks, 10_000, "a tick ends its deadline")
		for len(r.ops) > 0 {
			if op := r.take(); op.End {
				seeks = append(seeks, op)
			} else {
				r.do(Result{ID: op.ID, OK: true})
			}
		}
		at, ok := r.m.Next()
		if !ok || at > end {
			r.now = end
			return seeks
		}
		r.pass(at - r.now)
	}
}

// Only a swap that was answered with yes proves anything; until then it is tried again and again.
func TestProofIsTheSwap(t *testing.T) {
	r := newRig(t)
	r.lose(0, 1, 2, 3)
	require.Len(t, r.keep(time.Minute), 2, "of two, itself left out, one attempt each at a time")
	r = newRig(t)
	r.lose(0, 2)
	op := r.keep(0)[0]
	require.Equal(t, Op{ID: op.ID, Of: id(2), End: true, Limit: time.Second}, op)
	r.answer(op, false)
	require.Empty(t, r.proven)
	op = r.keep(five.Retry())[0]
	r.do(Result{ID: op.ID, Err: "away"})
	require.Equal(t, Event{Kind: NotYet, Of: id(2), Why: "away"}, r.event(NotYet))
	op = r.keep(five.Retry())[0]
	r.answer(op, true)
	require.Equal(t, []peer.ID{id(2)}, r.proven)
	r.event(Swapped)
	require.Empty(t, r.keep(time.Minute))
	require.False(t, r.m.Seeks())
}

// A swap that has come to pass is proof, though the member is heard again.
func TestSwapCountsThoughNobodySeeks(t *testing.T) {
	r := newRig(t)
	r.lose(0, 2)
	op := r.keep(0)[0]
	r.lose(0)
	r.lose(0, 2)
	require.Empty(t, r.keep(time.Minute), "the first attempt is under way")
	r.lose(0)
	r.answer(op, true)
	require.Equal(t, []peer.ID{id(2)}, r.proven)
}

// A node without a session ends none, others wait for those before them, and all of it is bounded.
func TestSeekersWait(t *testing.T) {
	r := newRig(t)
	r.lose(0, 2)
	r.pass(20 * time.Second)
	for _, op := range r.ops {
		require.False(t, op.End)
	}
	r = newRig(t)
	r.keep(0)
	r.lose(3, 2)
	require.Empty(t, r.keep(3*five.Limit()-1))
	op := r.keep(1)[0]
	r.answer(op, false)
	require.Empty(t, r.keep(4*five.Retry()-1))
	require.Len(t, r.keep(1), 1)
	r = newRig(t)
	r.keep(0)
	var all []int
	for n := 2; n < 200; n++ {
		all = append(all, n)
	}
	r.lose(0, all...)
	require.Len(t, r.m.targets, len(all))
	require.Len(t, r.keep(time.Minute), seekCalls)
	for n := 200; n < maxTargets+100; n++ {
		all = append(all, n)
	}
	r.lose(0, all...)
	require.Len(t, r.m.targets, maxTargets)
}

// Of more sessions than are tried at a time each has its turn, though the first are held for good in a slow store.
func TestEachTargetHasItsTurn(t *testing.T) {
	r := newRig(t)
	r.keep(0)
	r.lose(0, 2, 3, 4, 5, 6, 7, 8)
	tried := map[peer.ID]int{}
	for range 30 {
		seeks := r.keep(five.Limit())
		for _, op := range seeks {
			tried[op.Of]++
			r.answer(op, false)
		}
	}
	for n := 2; n <= 8; n++ {
		require.Greater(t, tried[id(n)], 5, "the session of %s", id(n))
	}
}

// Of very many lost members, most of which are held for good, each has its turn, and the store gets no more calls for
// it (MEM-10).
func TestVeryManyTargets(t *testing.T) {
	var lost []peer.ID
	for n := range 200 {
		lost = append(lost, peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.1.0.%d:7355", n)), Inc: 1})
	}
	slices.SortFunc(lost, peer.ID.Compare)
	r := newRig(t)
	r.answer(r.take(), true)
	tried, calls := map[peer.ID]int{}, 0
	for end := r.now + 20*time.Second; r.now < end; r.pass(10 * time.Millisecond) {
		r.do(LostCommand{IDs: lost})
		for len(r.ops) > 0 {
			op := r.take()
			r.answer(op, !op.End)
			if op.End {
				tried[op.Of]++
				calls++
			}
		}
	}
	require.Len(t, tried, len(lost))
	require.LessOrEqual(t, calls, 20*(atOnce+4)*int(time.Second/five.Retry()))
	require.Greater(t, calls, 20*atOnce)
	r.do(LostCommand{IDs: lost[150:]})
	require.Len(t, r.m.targets, 50)
	require.Equal(t, lost[150], r.m.targets[0].id)
}

// Of two answers the one whose call was made later counts, in whichever order they come.
func TestAnswersOutOfOrder(t *testing.T) {
	r := newRig(t)
	r.answer(r.take(), true)
	r.pass(2 * five.Renew())
	one, two := r.take(), r.take()
	made := r.now
	r.answer(two, true)
	require.Equal(t, made+five.Sure(), r.m.Until())
	r.answer(one, true)
	require.Equal(t, made+five.Sure(), r.m.Until())
}

// A sleep that the clock does not show brings everything nearer, on the clock that does not show it; one that is too
// long for any clock is a long one.
func TestSleepBringsDeadlinesNearer(t *testing.T) {
	r := newRig(t)
	r.answer(r.take(), true)
	at, _ := r.m.Next()
	r.do(SleptCommand{For: time.Second})
	nearer, ok := r.m.Next()
	require.True(t, ok)
	require.Equal(t, at-time.Second, nearer)
	r.pass(at - r.now) // a call is under way, which may be carried out after the sleep
	r.do(SleptCommand{For: 1<<63 - 1})
	require.False(t, r.m.Held())
	require.Negative(t, r.m.Until())
	require.NotEmpty(t, r.over)
	r.do(SleptCommand{For: 1<<63 - 1})
	require.Negative(t, r.m.Until())
}

// A step of the wall clock that would end the node has it ask whether it slept: it handles nothing meanwhile, makes no
// other call, and goes on by a fresh answer alone. What the store held then, it holds for this node (MEM-10).
func TestClockThatWasSetIsNoSleep(t *testing.T) {
	stepped := func() *rig {
		r := newRig(t)
		r.answer(r.take(), true)
		r.pass(time.Second)
		r.do(SleptCommand{For: 50 * 365 * 24 * time.Hour})
		require.False(t, r.m.Held())
		require.Negative(t, r.m.Until())
		require.Contains(t, r.event(RanOut).Why, "the wall clock has stepped by 2m0s or more")
		require.Empty(t, r.over)
		return r
	}
	r := stepped()
	op := r.take()
	require.Equal(t, Op{ID: op.ID, Of: id(1), End: true, Limit: time.Second}, op)
	r.pass(four)
	require.Empty(t, r.ops, "nothing else is asked before the answer")
	r.answer(op, false)
	require.False(t, r.m.Held(), "it may have slept for as long as the answer took")
	fresh := r.take()
	require.False(t, fresh.End)
	r.answer(fresh, true)
	require.Equal(t, four, r.event(Back).For)
	require.Equal(t, r.now+five.Sure(), r.m.Until())
	require.Empty(t, r.over)

	slept := stepped()
	slept.answer(slept.take(), true)
	require.Equal(t, "its session lease had run out while it slept", slept.over)
	slept.event(Ended)

	away := stepped()
	first := away.take()
	away.do(Result{ID: first.ID, Err: "away"})
	require.Empty(t, away.ops)
	away.pass(five.Retry())
	second := away.take()
	require.True(t, second.End)
	away.answer(first, false)
	require.Empty(t, away.ops, "a call is answered once")
	away.pass(five.Outage() - five.Retry())
	require.Contains(t, away.over, "without a session lease for 1m43s")

	again := stepped()
	again.do(SleptCommand{For: time.Hour})
	require.NotEmpty(t, again.over, "a step in the middle of it")

	loose := newRig(t)
	loose.do(Result{ID: loose.take().ID, Err: "late"}) // and may be carried out at any time
	loose.pass(five.Retry())
	loose.answer(loose.take(), true)
	loose.do(SleptCommand{For: time.Hour})
	require.NotEmpty(t, loose.over)
}

const four = 4 * time.Second

// law is owners, a seeker and a store: calls are carried out at any time, their answers come at any time or never,
// while clocks lose up to a twentieth, owners stand still, and the store is away for a while.
type law struct {
	t      *testing.T
	rng    *rand.Rand
	now    time.Duration
	rows   map[peer.ID]row
	nodes  []*owner
	plan   []planned
	away   time.Duration // until when no call is carried out
	taken  map[peer.ID]bool
	sleeps bool // machines sleep, and wall clocks are set
	doubts int
	seen   bool // true while nothing is drawn any more
	events map[EventKind]int
}

type row struct {
	ended bool
	until time.Duration
}

type owner struct {
	m     *Machine
	id    peer.ID
	slow  time.Duration // its clock shows the world's time less a slow-th of it
	still time.Duration // it stands still until then
	slept time.Duration // of which its clock shows nothing
	wakes time.Duration // what it sees of its wall clock, when it goes on
	over  bool
}

type planned struct {
	at time.Duration
	do func()
}

func (o *owner) clock(now time.Duration) time.Duration {
	now -= o.slept
	return now - now/o.slow
}

func (l *law) step(o *owner, verb func(now time.Duration)) {
	if o.over {
		return
	}
	if l.now < o.still {
		l.plan = append(l.plan, planned{o.still, func() { l.step(o, verb) }})
		return
	}
	if by := o.wakes; by > 0 {
		o.wakes = 0
		_ = o.m.Do(o.clock(l.now), SleptCommand{For: by})
		if l.wary(o) {
			l.doubts++
		}
	}
	verb(o.clock(l.now))
	var e Effects
	o.m.Drain(&e)
	for _, op := range e.Ops {
		l.call(o, op)
	}
	for _, ev := range e.Events {
		l.events[ev.Kind]++
	}
	for _, id := range e.Proven {
		l.taken[id] = true
	}
	o.over = o.over || e.Over != ""
}

// call has the store carry out an operation at some time, or never, and the answer come at some time later, or never.
func (l *law) call(o *owner, op Op) {
	there, back := l.delay(), l.delay()
	lost, blind := !l.good() && l.rng.IntN(8) == 0, !l.good() && l.rng.IntN(8) == 0
	l.plan = append(l.plan, planned{l.now + there, func() {
		r := Result{ID: op.ID, Err: "lost"}
		if !lost && l.now >= l.away {
			r = Result{ID: op.ID, OK: l.carryOut(op)}
		}
		if blind {
			r = Result{ID: op.ID, Err: "blind"}
		}
		l.plan = append(l.plan, planned{l.now + back, func() { l.step(o, func(now time.Duration) { _ = o.m.Do(now, r) }) }})
	}})
}

func (l *law) delay() time.Duration {
	if l.good() || l.rng.IntN(4) > 0 {
		return time.Duration(l.rng.IntN(20)) * time.Millisecond
	}
	return time.Duration(l.rng.Int64N(int64(8 * time.Second)))
}

func (l *law) carryOut(op Op) bool {
	r := l.rows[op.Of]
	if l.now < r.until && r.ended != op.End {
		return false
	}
	ttl := five.TTL
	if op.End {
		ttl = five.Ends
	}
	l.rows[op.Of] = row{op.End, l.now + ttl}
	return true
}

// good reports whether all calls are carried out at once: those are the runs in which a node may ask whether it slept.
func (l *law) good() bool { return l.seen || l.sleeps }

// wary reports whether an owner asks that.
func (*law) wary(o *owner) bool { return o.m.doubt }

// check demands that no owner handles when a member has ended its session.
func (l *law) check() {
	for _, o := range l.nodes {
		if l.taken[o.id] && !o.over && l.now >= o.still && o.wakes == 0 {
			require.GreaterOrEqual(l.t, o.clock(l.now), o.m.Until(), "%s handles at %v, and its shards were taken", o.id, l.now)
		}
	}
}

// run lets everything happen until end, ticks at deadlines included.
func (l *law) run(end time.Duration) {
	for l.now < end {
		next := end
		for _, p := range l.plan {
			next = min(next, p.at)
		}
		l.now = max(next, l.now+time.Millisecond)
		due := l.plan[:0:0]
		rest := l.plan[:0:0]
		for _, p := range l.plan {
			if p.at <= l.now {
				due = append(due, p)
			} else {
				rest = append(rest, p)
			}
		}
		l.plan = rest
		for _, p := range due {
			p.do()
			l.check()
		}
	}
}

// ticks keeps an owner ticking, as its runtime does.
func (l *law) ticks(o *owner) {
	l.step(o, o.m.Tick)
	l.plan = append(l.plan, planned{max(l.now+50*time.Millisecond, o.still), func() { l.ticks(o) }})
}

// draws makes trouble.
func (l *law) draws() {
	if !l.seen {
		o := l.nodes[l.rng.IntN(len(l.nodes))]
		switch l.rng.IntN(6) {
		case 0:
			if l.sleeps {
				l.sleep(o)
				break
			}
			o.still = l.now + time.Duration(l.rng.Int64N(int64(12*time.Second)))
		case 1:
			if l.sleeps {
				o.wakes = five.Ends
				break
			}
			l.away = l.now + time.Duration(l.rng.Int64N(int64(20*time.Second)))
		default: // believed lost, rightly or not
			seeker := l.nodes[l.rng.IntN(len(l.nodes))]
			l.step(seeker, func(now time.Duration) { _ = seeker.m.Do(now, LostCommand{IDs: []peer.ID{o.id}}) })
		}
	}
	l.plan = append(l.plan, planned{l.now + time.Duration(l.rng.Int64N(int64(10*time.Second))), l.draws})
}

// sleep has the machine of an owner sleep, which only its wall clock shows, and all that was on its way come later.
func (l *law) sleep(o *owner) {
	d := time.Duration(l.rng.Int64N(int64(2 * five.Ends)))
	if l.now < o.still || o.wakes > 0 {
		return
	}
	o.still, o.wakes, o.slept = l.now+d, d, o.slept+d
}

// TestNobodyHandlesWhoseSessionWasEnded is the law of the model, with the machine in place of its rules (MEM-10,
// AVL-5). When the trouble ends, each owner that lives and was not ended has a session again.
func TestNobodyHandlesWhoseSessionWasEnded(t *testing.T) {
	taken, backs, ends, doubts, held := 0, 0, 0, 0, 0
	for seed := range uint64(80) {
		l := &law{t: t, rng: rand.New(rand.NewPCG(seed, 1)), sleeps: seed >= 60, rows: map[peer.ID]row{},
			taken: map[peer.ID]bool{}, events: map[EventKind]int{}, now: time.Second}
		for n := range 4 {
			o := &owner{m: New(id(n+1), five), id: id(n + 1), slow: time.Duration(20 + l.rng.IntN(1000))}
			l.nodes = append(l.nodes, o)
			l.step(o, func(now time.Duration) { _ = o.m.Do(now, BeginCommand{}) })
			l.ticks(o)
		}
		l.draws()
		l.run(4 * time.Minute)
		l.seen, l.away = true, 0
		l.run(l.now + 30*time.Second)
		for _, o := range l.nodes {
			require.True(t, o.over || o.m.Held() || l.taken[o.id], "seed %d: %s has no way back", seed, o.id)
		}
		if l.sleeps {
			doubts, held = doubts+l.doubts, held+l.events[Back]
		}
		taken, backs, ends = taken+len(l.taken), backs+l.events[Back], ends+l.events[Ended]
	}
	require.Greater(t, taken, 20)
	require.Greater(t, backs, 100)
	require.Greater(t, ends, 10)
	require.Greater(t, doubts, 20)
	require.Greater(t, held, 10)
}
