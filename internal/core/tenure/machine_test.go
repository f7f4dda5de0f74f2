// Tests of the machine: what each rule of the model says of it, one script for each.

package tenure

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/base/contract"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

var _ contract.Stepped[Command, Effects] = (*Machine)(nil)

var three = Config{Voters: 3, Grant: 2500 * time.Millisecond}

func id(n int) peer.ID {
	if n < len(ids) {
		return ids[n]
	}
	return newID(n)
}

// ids are made once: storms ask for them all the time.
var ids = func() (ids [17]peer.ID) {
	for n := range ids {
		ids[n] = newID(n)
	}
	return ids
}()

func newID(n int) peer.ID {
	return peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7355", n)), Inc: uint64(n)}
}

// list returns a list of seats: a holder for each number, 0 for none.
func list(number uint32, holders ...int) Seats {
	s := Seats{Number: number, Writer: id(1)}
	for _, h := range holders {
		p := peer.ID{}
		if h != 0 {
			p = id(h)
		}
		s.Holders = append(s.Holders, p)
	}
	return s
}

func people(all ...int) (ids []peer.ID) {
	for _, n := range all {
		ids = append(ids, id(n))
	}
	return peer.SetOf(ids...)
}

// letter is a message that the machine has sent.
type letter struct {
	to peer.ID
	message
}

// rig is one machine; the test answers it.
type rig struct {
	t   *testing.T
	m   *Machine
	now time.Duration

	known, lost peer.Set // of the last view

	mail   []letter
	down   []peer.ID
	proven []peer.ID
	events []Event
}

// newRig returns the machine of node self with a view, in which those up to 4 that are no members were removed.
func newRig(t *testing.T, self int, s Seats, members ...int) *rig {
	r := &rig{t: t, m: New(id(self), three), now: time.Second, known: people(1, 2, 3, 4)}
	r.view(s, members...)
	return r
}

// view shows a view, in which those that were members before and are none any more are Down.
func (r *rig) view(s Seats, members ...int) {
	now := peer.SetOf(people(members...)...)
	for _, id := range r.known {
		if !now.Has(id) {
			r.lost = peer.SetOf(append(r.lost, id)...)
		}
	}
	r.known = now
	r.do(ViewCommand{s, now, r.lost})
}

func (r *rig) do(c Command) {
	require.NoError(r.t, r.m.Do(r.now, c))
	r.drain()
}

func (r *rig) drain() {
	var e Effects
	contract.Drain(r.t, r.m, &e, "out", "drained")
	for _, p := range e.Mail {
		q, err := read(p.Body)
		require.NoError(r.t, err)
		r.mail = append(r.mail, letter{p.To, q})
	}
	r.down, r.proven, r.events = append(r.down, e.Down...), append(r.proven, e.Proven...), append(r.events, e.Events...)
}

// pass lets time pass, with a tick at each deadline.
func (r *rig) pass(d time.Duration) {
	for end, ticks := r.now+d, 0; ; ticks++ {
		at, ok := r.m.Next()
		if !ok || at > end {
			r.now = end
			return
		}
		require.Less(r.t, ticks, 10_000, "it asks for ticks without end")
		r.now = max(r.now, at)
		r.m.Tick(r.now)
		r.drain()
	}
}

// gets has the machine get a message.
func (r *rig) gets(from int, p message) {
	require.NoError(r.t, r.m.Handle(r.now, id(from), p.append(nil)))
	r.drain()
}

// sent returns what the machine has sent of a kind since the last call, and forgets all else.
func (r *rig) sent(v verb) (some []letter) {
	for _, p := range r.mail {
		if p.verb == v {
			some = append(some, p)
		}
	}
	r.mail = nil
	return some
}

// asks returns the number of the newest renewal.
func (r *rig) asks() uint64 {
	all := r.sent(renew)
	require.NotEmpty(r.t, all)
	return all[len(all)-1].seq
}

func (r *rig) grant(from int, seq uint64, s Seats) {
	r.gets(from, message{verb: granted, seq: seq, list: s})
}

// renewing returns a node without a seat that needs its tenure and has asked for it.
func renewing(t *testing.T) *rig {
	r := newRig(t, 4, list(1, 1, 2, 3), 1, 2, 3, 4)
	r.do(NeedCommand{true})
	return r
}

// TestQuorumOfGrants: two of three seats have to vouch for a node (quorum-of-grants, MEM-10).
func TestQuorumOfGrants(t *testing.T) {
	r := renewing(t)
	seq := r.asks()
	require.Negative(t, r.m.Until())
	require.Contains(t, r.m.Why(), "0 of 3 seats")
	r.grant(1, seq, list(1, 1, 2, 3))
	r.grant(1, seq, list(1, 1, 2, 3))
	require.False(t, r.m.Held())
	r.grant(4, seq, list(1, 1, 2, 3)) // holds no seat
	require.False(t, r.m.Held())
	r.grant(3, seq, list(1, 1, 2, 3))
	require.True(t, r.m.Held())
	require.Equal(t, r.now+three.Grant, r.m.Until())
	require.Equal(t, Began, r.events[len(r.events)-1].Kind)
}

// TestFromTheAsking: a grant counts from when it was asked for, also one that was long under way (from-the-asking).
func TestFromTheAsking(t *testing.T) {
	r := renewing(t)
	seq, asked := r.asks(), r.now
	r.pass(2 * time.Second)
	r.grant(1, seq, list(1, 1, 2, 3))
	r.grant(2, seq, list(1, 1, 2, 3))
	require.Equal(t, asked+three.Grant, r.m.Until())
	r.pass(600 * time.Millisecond)
	require.False(t, r.m.Held())
	r.grant(3, seq, list(1, 1, 2, 3)) // too late to count for anything
	require.False(t, r.m.Held())
	require.EqualValues(t, 1, r.m.Status().RanOut)
	seq = r.asks()
	r.grant(1, seq, list(1, 1, 2, 3))
	r.grant(2, seq, list(1, 1, 2, 3))
	require.True(t, r.m.Held())
	require.Equal(t, Back, r.events[len(r.events)-1].Kind)
}

// TestUntilIsKnownAhead: the end of a tenure stands before it comes, for a look at the clock before each batch
// (looks-each-batch), and a sleep brings it nearer.
func TestUntilIsKnownAhead(t *testing.T) {
	r := renewing(t)
	seq := r.asks()
	r.grant(1, seq, list(1, 1, 2, 3))
	r.grant(2, seq, list(1, 1, 2, 3))
	until := r.m.Until()
	r.do(SleptCommand{time.Second})
	require.Equal(t, until-time.Second, r.m.Until())
	r.do(SleptCommand{2 * time.Second})
	require.Negative(t, r.m.Until())
}

// TestUnknownNumbersGrantNothing: a grant of a question that was never asked, or long ago.
func TestUnknownNumbersGrantNothing(t *testing.T) {
	r := renewing(t)
	first := r.asks()
	for _, seq := range []uint64{0, first + 1, 1 << 60} {
		r.grant(1, seq, list(1, 1, 2, 3))
		r.grant(2, seq, list(1, 1, 2, 3))
		require.False(t, r.m.Held())
	}
	r.pass(kept * three.Renew())
	r.grant(1, first, list(1, 1, 2, 3))
	r.grant(2, first, list(1, 1, 2, 3))
	require.False(t, r.m.Held())
}

// TestPromiseIsLonger: a holder keeps its promise for longer than a grant counts on a clock that differs by two
// thousandths (promise-covers), and says "over" when it has run out (promise-runs-out).
func TestPromiseIsLonger(t *testing.T) {
	require.Greater(t, three.Promise(), three.Grant+three.Grant*2/1000)
	r := newRig(t, 1, list(1, 1, 2, 3), 1, 2, 3, 4)
	r.pass(three.Promise()) // it has just got its seat
	r.gets(4, message{verb: renew, seq: 7})
	require.EqualValues(t, 7, r.sent(granted)[0].seq)
	given := r.now
	r.pass(time.Second)
	r.view(list(1, 1, 2, 3), 1, 2, 3)
	r.gets(2, message{verb: ask, target: id(4), yes: true})
	r.pass(three.Promise() - time.Second - 1)
	require.Empty(t, r.sent(over))
	r.pass(1)
	require.Equal(t, given+three.Promise(), r.now)
	require.Equal(t, id(4), r.sent(over)[0].target)
}

// TestSleepBreaksNoPromise: a sleep that is taken for longer than it was costs this node its own tenure, and nobody
// else's: what it has promised runs by its clock (promise-runs-out).
func TestSleepBreaksNoPromise(t *testing.T) {
	r := newRig(t, 1, list(1, 1, 2, 3), 1, 2, 3, 4)
	r.do(SleptCommand{time.Hour})
	r.gets(4, message{verb: renew, seq: 7})
	require.Equal(t, tooNew, r.sent(refused)[0].why)
	r.pass(three.Promise())
	r.gets(4, message{verb: renew, seq: 8})
	require.Len(t, r.sent(granted), 1)
	r.view(list(1, 1, 2, 3), 1, 2, 3)
	r.gets(2, message{verb: ask, target: id(4), yes: true})
	r.do(SleptCommand{time.Hour})
	r.pass(three.Promise() - 1)
	require.Empty(t, r.sent(over))
	r.pass(1)
	require.Len(t, r.sent(over), 1)
}

// TestMembersOnly: a holder grants to members that are not Down for it, and to nobody else, not even after "over"
// (members-only).
func TestMembersOnly(t *testing.T) {
	r := newRig(t, 1, list(1, 1, 2, 3), 1, 2, 3)
	r.pass(three.Promise())
	r.gets(4, message{verb: renew, seq: 7})
	require.Equal(t, noMember, r.sent(refused)[0].why)
	r.gets(2, message{verb: ask, target: id(4), yes: true})
	require.Len(t, r.sent(over), 1)
	r.gets(4, message{verb: renew, seq: 8})
	require.Equal(t, noMember, r.sent(refused)[0].why)
	require.Zero(t, r.m.Status().Gave)
}

// TestDownFirst: a holder that vouches no more for somebody has it marked Down, and says nothing before its own state
// shows that (down-first).
func TestDownFirst(t *testing.T) {
	r := newRig(t, 1, list(1, 1, 2, 3), 1, 2, 3, 4)
	r.pass(three.Promise())
	r.gets(2, message{verb: ask, target: id(4), yes: true}) // it hears it well
	require.Empty(t, r.down)
	require.False(t, r.sent(missed)[0].yes)
	r.do(MissCommand{people(4)})
	r.gets(2, message{verb: ask, target: id(4), yes: false})
	require.True(t, r.sent(missed)[0].yes)
	require.Empty(t, r.down)
	r.gets(2, message{verb: ask, target: id(4), yes: true})
	require.Equal(t, people(4), r.down)
	require.Equal(t, Revoked, r.events[len(r.events)-1].Kind)
	r.pass(time.Minute)
	require.Empty(t, r.sent(over))
	r.view(list(1, 1, 2, 3), 1, 2, 3)
	require.Equal(t, id(4), r.sent(over)[0].target)
}

// TestKnownDown: of one that it has never heard of a holder says nothing, for it grants to it as soon as it knows it as
// a member (known-down).
func TestKnownDown(t *testing.T) {
	r := newRig(t, 1, list(1, 1, 2, 3), 1, 2, 3)
	r.pass(three.Promise())
	r.do(MissCommand{people(3)})
	for _, firm := range []bool{false, true} {
		r.gets(2, message{verb: ask, target: id(9), yes: firm})
		answers := r.sent(missed)
		require.Len(t, answers, 1)
		require.False(t, answers[0].yes)
	}
	r.pass(time.Minute)
	require.Empty(t, r.sent(over))
	require.Empty(t, r.down)
	r.view(list(1, 1, 2, 3), 1, 2, 3, 9)
	r.gets(9, message{verb: renew, seq: 1})
	require.Len(t, r.sent(granted), 1)
	r.view(list(1, 1, 2, 3), 1, 2, 3)
	r.gets(2, message{verb: ask, target: id(9), yes: true})
	require.Empty(t, r.sent(over), "its promise runs")
	r.pass(three.Promise())
	require.Len(t, r.sent(over), 1)
}

// TestNothingIsDueWithoutASeat: what a node may not say or ask any more is no deadline: it would tick for ever.
func TestNothingIsDueWithoutASeat(t *testing.T) {
	r := newRig(t, 1, list(1, 1, 2, 3), 1, 2, 3, 4)
	r.gets(4, message{verb: renew, seq: 1})
	r.do(MissCommand{people(4)})
	r.pass(three.Promise() - time.Millisecond)
	r.gets(2, message{verb: ask, target: id(4), yes: true})
	r.view(list(2, 0, 2, 3), 1, 2, 3)
	r.pass(time.Minute)
	r.do(SeekCommand{people(4), 0})
	r.view(list(2, 0, 2, 3), 2, 3)
	r.pass(time.Minute)
	_, ok := r.m.Next()
	require.False(t, ok)
}

// TestHeardIsNotMissed: a holder that an owner has just asked for its tenure does not miss it, whatever others say;
// when its grant has all but run out it does.
func TestHeardIsNotMissed(t *testing.T) {
	require.GreaterOrEqual(t, three.Heard(), three.Grant*9/10, "one that pauses has nearly a grant")
	require.LessOrEqual(t, three.Heard()+three.Retry(), three.Promise(), "a question more before the promise is over")
	r := newRig(t, 1, list(1, 1, 2, 3), 1, 2, 3, 4)
	r.pass(three.Promise())
	r.gets(4, message{verb: renew, seq: 1})
	r.do(MissCommand{people(4)})
	r.pass(three.Heard() - 1)
	r.gets(2, message{verb: ask, target: id(4), yes: true})
	require.False(t, r.sent(missed)[0].yes)
	require.Empty(t, r.down)
	r.pass(1)
	r.gets(2, message{verb: ask, target: id(4), yes: false})
	require.True(t, r.sent(missed)[0].yes)
	r.gets(2, message{verb: ask, target: id(4), yes: true})
	require.Equal(t, people(4), r.down)
}

// TestFirstIsWaitedFor: for four grants it is no wonder that a node has no tenure yet.
func TestFirstIsWaitedFor(t *testing.T) {
	r := newRig(t, 4, list(1, 1, 2, 3), 1, 2, 3, 4)
	_, ok := r.m.First()
	require.False(t, ok, "it needs none")
	r.do(NeedCommand{true})
	until, ok := r.m.First()
	require.True(t, ok)
	require.Equal(t, r.now+4*three.Grant, until)
	r.pass(4 * three.Grant)
	_, ok = r.m.First()
	require.False(t, ok)
}

// TestNewHolderWaits: a node that gets a seat says nothing and grants nothing until a promise of the one before has run
// out (new-holder-waits, new-holder-grants-late).
func TestNewHolderWaits(t *testing.T) {
	r := newRig(t, 4, list(2, 1, 2, 0), 1, 2, 4)
	r.gets(5, message{verb: renew, seq: 1})
	require.Equal(t, noHolder, r.sent(refused)[0].why)
	r.gets(2, message{verb: ask, target: id(3), yes: true})
	require.Empty(t, r.mail)
	r.view(list(3, 1, 2, 4), 1, 2, 4, 5)
	r.gets(2, message{verb: ask, target: id(3), yes: true})
	r.gets(5, message{verb: renew, seq: 2})
	require.Equal(t, tooNew, r.sent(refused)[0].why)
	r.pass(three.Promise() - 1)
	require.Empty(t, r.sent(over))
	r.pass(1)
	require.Len(t, r.sent(over), 1)
	r.gets(5, message{verb: renew, seq: 3})
	require.Len(t, r.sent(granted), 1)
	r.view(list(4, 1, 2, 0), 1, 2, 4, 5)
	require.Equal(t, NoSeat, r.events[len(r.events)-1].Kind)
	r.gets(5, message{verb: renew, seq: 4})
	require.Equal(t, noHolder, r.sent(refused)[0].why)
}

// TestNamedHoldersOnly: grants of a holder that the own list names no more count for nothing (named-holders-only), and
// grants under a list that is not here yet are dropped (list-before-grant).
func TestNamedHoldersOnly(t *testing.T) {
	r := renewing(t)
	seq := r.asks()
	r.grant(2, seq, list(1, 1, 2, 3))
	r.grant(3, seq, list(1, 1, 2, 3))
	require.True(t, r.m.Held())
	r.view(list(2, 1, 2, 0), 1, 2, 4)
	require.False(t, r.m.Held())
	seq = r.asks()
	r.grant(1, seq, list(3, 1, 2, 4))
	require.False(t, r.m.Held())
	r.grant(3, seq, list(1, 1, 2, 3))
	require.False(t, r.m.Held())
	r.grant(1, seq, list(1, 1, 2, 3)) // it has not heard of the list yet
	require.True(t, r.m.Held())
	other := list(2, 1, 2, 5)
	other.Writer = id(2)
	seq = r.asksAgain()
	until := r.m.Until()
	r.grant(1, seq, other) // a list with the same number, which will lose
	r.grant(2, seq, other)
	require.Equal(t, until, r.m.Until())
}

func (r *rig) asksAgain() uint64 {
	r.pass(three.Renew())
	return r.asks()
}

// TestLowerWriter: of two lists with one number that of the lower writer counts (lower-writer), and none that is older.
func TestLowerWriter(t *testing.T) {
	r := newRig(t, 4, list(2, 1, 2, 0), 1, 2, 4)
	other := list(2, 1, 2, 3)
	other.Writer = id(2)
	r.view(other, 1, 2, 4)
	require.Equal(t, list(2, 1, 2, 0), r.m.Seats())
	r.view(list(1, 1, 2, 3), 1, 2, 4)
	require.Equal(t, list(2, 1, 2, 0), r.m.Seats())
	require.True(t, list(2, 1, 2, 0).Newer(other))
	require.False(t, other.Newer(list(2, 1, 2, 0)))
}

// seeking returns a node without a seat that looks for a proof of the end of node 3.
func seeking(t *testing.T, members ...int) *rig {
	r := newRig(t, 4, list(1, 1, 2, 3), members...)
	r.do(SeekCommand{IDs: people(3)})
	return r
}

func (r *rig) says(from int, s Seats) { r.gets(from, message{verb: over, list: s, target: id(3)}) }

// TestFirmAtOnce: a seeker asks softly until a quorum of the seats misses the target, and firmly in that step: Heard
// leaves little time before the promise runs out.
func TestFirmAtOnce(t *testing.T) {
	r := seeking(t, 1, 2, 3, 4)
	r.sent(ask)
	r.gets(1, message{verb: missed, list: list(1, 1, 2, 3), target: id(3), yes: true})
	require.Empty(t, r.sent(ask))
	r.gets(2, message{verb: missed, list: list(1, 1, 2, 3), target: id(3), yes: true})
	firm := r.sent(ask)
	require.Len(t, firm, 2)
	for _, p := range firm {
		require.True(t, p.yes)
	}
}

// TestQuorumOfWords: a quorum of the seats has to say "over", of one that is Down for all too (quorum-of-words,
// words-of-the-down).
func TestQuorumOfWords(t *testing.T) {
	r := seeking(t, 1, 2, 4)
	for _, p := range r.sent(ask) {
		require.True(t, p.yes, "it is Down here: firm at once")
	}
	r.pass(time.Minute)
	require.Empty(t, r.proven)
	r.says(1, list(1, 1, 2, 3))
	r.says(1, list(1, 1, 2, 3))
	r.says(5, list(1, 1, 2, 3))
	require.Empty(t, r.proven)
	r.says(2, list(1, 1, 2, 3))
	require.Equal(t, people(3), r.proven)
	require.False(t, r.m.Seeks())
	r.says(1, list(1, 1, 2, 3))
	require.Len(t, r.proven, 1)
}

// TestProvesOneThatIsNotDownHere: the words of holders prove the end of one that this node's own view lists as a
// member: it is this node that has it marked, for the holders may die with what they know (seeker-marks).
func TestProvesOneThatIsNotDownHere(t *testing.T) {
	r := seeking(t, 1, 2, 3, 4)
	r.says(1, list(1, 1, 2, 3))
	r.says(2, list(1, 1, 2, 3))
	require.Equal(t, people(3), r.proven)
}

// TestSameList: "over" counts under the seeker's own list alone, and is asked for anew under each (same-list).
func TestSameList(t *testing.T) {
	r := seeking(t, 1, 2, 4)
	r.says(1, list(1, 1, 2, 3))
	r.says(2, list(2, 1, 2, 0))
	require.Empty(t, r.proven)
	r.view(list(2, 1, 2, 0), 1, 2, 4)
	r.says(2, list(2, 1, 2, 0))
	require.Empty(t, r.proven)
	r.says(1, list(1, 1, 2, 3))
	require.Empty(t, r.proven)
	r.says(1, list(2, 1, 2, 0))
	require.Equal(t, people(3), r.proven)
}

// TestWordsOfMembers: the word of a holder that is Down for the seeker counts no more, also one that was said before
// (words-of-members).
func TestWordsOfMembers(t *testing.T) {
	r := seeking(t, 1, 2, 4)
	r.says(1, list(1, 1, 2, 3))
	r.view(list(1, 1, 2, 3), 2, 4)
	r.says(2, list(1, 1, 2, 3))
	r.says(1, list(1, 1, 2, 3))
	require.Empty(t, r.proven)
}

// TestOrdersCarry: a node takes the word of a member that an incarnation has ended into its own state, at once or when
// it has heard of it; of one that is Down for it, it takes nothing (orders-carry).
func TestOrdersCarry(t *testing.T) {
	r := newRig(t, 4, list(1, 1, 2, 3), 1, 2, 3, 4)
	r.gets(1, message{verb: ended, target: id(3)})
	require.Equal(t, people(3), r.proven)
	r.view(list(1, 1, 2, 3), 1, 2, 4)
	r.gets(3, message{verb: ended, target: id(2)})
	r.gets(1, message{verb: ended, target: id(4)})
	require.Equal(t, people(3), r.proven, "not of one that is Down here, and not of itself")
	r = newRig(t, 4, list(1, 1, 2, 3), 1, 2, 4)
	r.gets(1, message{verb: ended, target: id(9)})
	r.proven = nil
	r.view(list(1, 1, 2, 3), 1, 2, 4, 9)
	require.Equal(t, people(9), r.proven, "it had not heard of it")
	for i := range 2 * maxHeard {
		r.gets(1, message{verb: ended, target: id(1000 + i)})
	}
	require.Len(t, r.m.heard, maxHeard)
}

// TestSoftFirst: a member that the seeker alone misses keeps the word of all; one that a quorum misses does not.
func TestSoftFirst(t *testing.T) {
	r := seeking(t, 1, 2, 3, 4)
	soft := r.sent(ask)
	require.Len(t, soft, 2) // the target is not asked about itself
	for _, p := range soft {
		require.False(t, p.yes)
	}
	says := func(from int, yes bool) {
		r.gets(from, message{verb: missed, list: list(1, 1, 2, 3), target: id(3), yes: yes})
	}
	says(1, true)
	says(1, false)
	says(2, true)
	require.Empty(t, r.sent(ask))
	says(1, true)
	r.pass(0)
	for _, p := range r.sent(ask) {
		require.True(t, p.yes)
	}
}

// TestRankWaits: one behind others in the view asks later, and more rarely.
func TestRankWaits(t *testing.T) {
	r := newRig(t, 4, list(1, 1, 2, 3), 1, 2, 4)
	r.do(SeekCommand{IDs: people(3), Rank: 2})
	require.Empty(t, r.sent(ask))
	r.pass(2*three.Retry() - 1)
	require.Empty(t, r.sent(ask))
	r.pass(1)
	require.Len(t, r.sent(ask), 2)
	r.pass(3*three.Retry() - 1)
	require.Empty(t, r.sent(ask))
	r.pass(1)
	require.Len(t, r.sent(ask), 2)
}

// TestNobodyThatIsDownIsAnswered: a seeker that is Down for a holder hears nothing from it.
func TestNobodyThatIsDownIsAnswered(t *testing.T) {
	r := newRig(t, 1, list(1, 1, 2, 3), 1, 2)
	r.pass(three.Promise())
	r.gets(4, message{verb: ask, target: id(3), yes: true})
	require.Empty(t, r.mail)
	r.gets(2, message{verb: ask, target: id(1), yes: true}) // it vouches for itself as its view says
	require.Empty(t, r.mail)
	r.view(list(1, 1, 2, 3), 2) // it is Down itself
	r.gets(2, message{verb: renew, seq: 3})
	require.Equal(t, noHolder, r.sent(refused)[0].why)
}

// TestHolderVouchesForItself: a holder that owns something counts its own seat, and proves ends with its own word.
func TestHolderVouchesForItself(t *testing.T) {
	r := newRig(t, 1, list(1, 1, 2, 3), 1, 2, 3)
	r.do(NeedCommand{true})
	r.grant(2, r.asks(), list(1, 1, 2, 3))
	require.False(t, r.m.Held(), "its own seat is cold")
	r.pass(three.Promise() + three.Renew())
	r.grant(2, r.asks(), list(1, 1, 2, 3))
	require.True(t, r.m.Held())
	r.view(list(1, 1, 2, 3), 1, 2)
	r.do(SeekCommand{IDs: people(3)})
	r.says(2, list(1, 1, 2, 3))
	require.Equal(t, people(3), r.proven)
}

// TestBounds: what peers send finds an end.
func TestBounds(t *testing.T) {
	r := newRig(t, 1, list(1, 1, 2, 3), 1, 2, 3)
	var all []peer.ID
	for n := range maxAsks + 10 {
		dead := id(1)
		dead.Inc = uint64(1000 + n)
		all = append(all, dead)
		r.gets(2, message{verb: ask, target: dead, yes: true})
	}
	require.Empty(t, r.m.held.asks, "it has heard of none of them")
	r.do(ViewCommand{list(1, 1, 2, 3), people(1, 2, 3), all})
	for _, dead := range all {
		r.gets(2, message{verb: ask, target: dead, yes: true})
	}
	require.EqualValues(t, 10, r.m.Status().Full)
	require.Len(t, r.m.held.asks, maxAsks)
	r.do(SeekCommand{IDs: all})
	require.Len(t, r.m.seek.targets, maxTargets)
}

// TestSettings: what is refused, and the line by which nodes compare.
func TestSettings(t *testing.T) {
	require.NoError(t, Config{}.Validate())
	require.NoError(t, three.Validate())
	require.Equal(t, `voters=3 grant=2.5s role=""`, three.String())
	assumed := three
	assumed.Refound = cluster.RefoundByTakeover
	require.Equal(t, `voters=3 grant=2.5s role="" refound=takeover`, assumed.String())
	for _, c := range []Config{{Voters: 3}, {Grant: time.Second}, {Voters: 4, Grant: time.Second},
		{Voters: 9, Grant: time.Second}, {Voters: 3, Grant: 2 * time.Minute}, {Voters: -3, Grant: time.Second},
		{Voters: 3, Grant: time.Second, Refound: 2}} {
		require.ErrorIs(t, c.Validate(), ErrBadConfig)
	}
}

// TestMessages: what is read is what was written, and nothing that is cut or longer is read.
func TestMessages(t *testing.T) {
	s := Seats{Number: 3, Writer: id(2)}
	for _, m := range []message{
		{verb: renew, seq: 1 << 40}, {verb: granted, seq: 5, list: s}, {verb: refused, seq: 5, why: tooNew},
		{verb: ask, target: id(9), yes: true}, {verb: missed, list: s, target: id(9), yes: true},
		{verb: over, list: s, target: id(9)}, {verb: ended, target: id(9)},
	} {
		body := m.append(nil)
		got, err := read(body)
		require.NoError(t, err)
		require.Equal(t, m, got)
		for n := range body {
			_, err = read(body[:n])
			require.Error(t, err, "%d of %d bytes", n, len(body))
		}
		_, err = read(append(slices.Clone(body), 0))
		require.Error(t, err)
	}
	for _, body := range [][]byte{{0}, {8}, {byte(refused), 1, 9}, {byte(granted), 1, 0}} {
		_, err := read(body)
		require.Error(t, err)
	}
	m := New(id(1), three)
	before := contract.Digest(m)
	require.Error(t, m.Handle(time.Hour, id(2), []byte{8}))
	require.Equal(t, before, contract.Digest(m), "nonsense changes nothing")
}

// TestGoldenBytes: the bytes of every message and of the list of seats. No node sends them yet: until one does they may
// change.
func TestGoldenBytes(t *testing.T) {
	s := Seats{Number: 3, Writer: id(2)}
	for want, m := range map[string]message{
		"01ac02":                               {verb: renew, seq: 300},
		"020503040a000002bb1c0200000000000000": {verb: granted, seq: 5, list: s},
		"030502":                               {verb: refused, seq: 5, why: tooNew},
		"04040a000009bb1c090000000000000001":   {verb: ask, target: id(9), yes: true},
		"0503040a000002bb1c0200000000000000040a000009bb1c090000000000000001": {
			verb: missed, list: s, target: id(9), yes: true,
		},
		"0603040a000002bb1c0200000000000000040a000009bb1c0900000000000000": {verb: over, list: s, target: id(9)},
		"07040a000009bb1c0900000000000000":                                 {verb: ended, target: id(9)},
	} {
		require.Equal(t, want, hex.EncodeToString(m.append(nil)))
	}
	require.Equal(t, "0000", hex.EncodeToString(AppendSeats(nil, Seats{})))
	require.Equal(t, "0303040a000001bb1c0100000000000000040a000001bb1c0100000000000000"+
		"040a000002bb1c0200000000000000000000000000000000", hex.EncodeToString(AppendSeats(nil, list(3, 1, 2, 0))))
}

// TestReadingIsBounded: what a message says of its length is held against what is there before anything is allocated.
func TestReadingIsBounded(t *testing.T) {
	body := append([]byte{1}, bytes.Repeat([]byte{0xff}, 64)...)
	n := testing.AllocsPerRun(100, func() {
		for v := range byte(9) {
			body[0] = v
			_, _ = read(body)
			r := wire.NewReader(0, body)
			_ = ReadSeats(&r)
		}
	})
	require.LessOrEqual(t, n, 32.0, "errors, and nothing that the body asks for")
}

// FuzzMessages: whatever comes, nothing panics, and what is read is written as it came.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{1, 5})
	f.Add((&message{verb: over, list: Seats{Number: 3, Writer: id(2)}, target: id(9)}).append(nil))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := read(body)
		if err != nil {
			return
		}
		again, err := read(m.append(nil))
		require.NoError(t, err)
		require.Equal(t, m, again)
		x := New(id(1), three)
		require.NoError(t, x.Do(0, ViewCommand{Seats: list(1, 1, 2, 3), Members: people(1, 2, 3)}))
		require.NoError(t, x.Handle(time.Second, id(2), body))
	})
}
