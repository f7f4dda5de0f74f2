// Tests of what comes back of full mailboxes: before the credit, once, not to a peer that does not know it, over with
// the connection.

package transport

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/wire"
)

// heardKinds returns the kinds of the frames that the peer has heard since it was asked last.
func heardKinds(t *testing.T, c *memConn) (kinds []wire.Kind) {
	for rest := c.hear(); len(rest) > 0; {
		frame, n, err := wire.Split(rest, wire.LaneControl, hello.MaxAnswer)
		require.NoError(t, err)
		require.NotZero(t, n)
		kinds, rest = append(kinds, wire.KindOf(frame)), rest[n:]
	}
	return kinds
}

// What is full is said before the credit of the message that filled it, also when that credit would have gone on the
// control connection; room again behind it; nothing that has changed back before it was written (CARD-3).
func TestFullIsSaidBeforeTheCredit(t *testing.T) {
	p, c, in := acceptData(t, func(*hello.Hello) {})
	defer p.end()
	w := in.Waiting()
	for range 12 {
		c.feed(hundred)
	}
	require.Equal(t, int(in.window)+p.tr.cfg.LinkBuffer+2*p.tr.cfg.MaxFrame, w.Full(1, 2, 3, 9))
	require.Zero(t, w.Full(1, 2, 3, 9), "told")
	in.Stored(1100)
	p.settle()
	require.Equal(t, []wire.Kind{wire.KindFull, wire.KindCredit}, heardKinds(t, c)[:2])
	require.False(t, in.owed, "no credit overtakes it")
	w.Room(1, 2, 3)
	require.NotZero(t, w.Full(1, 2, 3, 9), "news to whoever fills it, and nothing new to its sender")
	p.settle()
	require.NotContains(t, heardKinds(t, c), wire.KindFull)
	w.Room(1, 2, 3)
	require.True(t, w.BudgetFull(9))
	require.False(t, w.BudgetFull(9))
	w.BudgetRoom()
	p.settle()
	require.Equal(t, []wire.Kind{wire.KindRoom, wire.KindCredit}, heardKinds(t, c))
	require.False(t, in.presses())
	require.False(t, w.Gone())
}

// A peer of an earlier version gets nothing.
func TestFullIsNotSaidToAnEarlierVersion(t *testing.T) {
	p, c, in := acceptData(t, func(h *hello.Hello) { h.Versions.Newest = waitSince - 1 })
	defer p.end()
	require.Zero(t, in.Waiting().Full(1, 2, 3, 9))
	require.False(t, in.Waiting().BudgetFull(9))
	p.settle()
	require.Empty(t, heardKinds(t, c))
}

// While something is full the control connection repeats what was sent, and no more.
func TestCreditStaysBehindWhatIsFull(t *testing.T) {
	p, c, in := acceptData(t, func(*hello.Hello) {})
	defer p.end()
	for range 12 {
		c.feed(hundred)
	}
	in.Consumed(1100)
	p.settle()
	heardKinds(t, c)
	require.NotZero(t, in.Waiting().Full(1, 2, 3, 9))
	in.Consumed(100)
	require.EqualValues(t, 1100, in.toldElsewhere())
	p.settle()
	require.Equal(t, []wire.Kind{wire.KindFull, wire.KindCredit}, heardKinds(t, c)[:2])
	require.EqualValues(t, 1200, in.backTalk.told)
}

// A link knows what is full until its connection is over; what its peer may not say closes the connection.
func TestLinkKnowsWhatIsFull(t *testing.T) {
	p := &player{world: newWorld(t, nil)}
	defer p.end()
	p.program = program{[]byte{0, 1, 0, 0}}
	p.dial()
	l := p.tr.Link(memPeer(0))
	say := func(f wire.Full) []byte {
		return wire.AppendFrame(nil, wire.KindFull, 0, 0, wire.AppendFull(nil, f, 9))
	}
	f := flow.FullEntity(1, 2, 3)
	require.GreaterOrEqual(t, l.version, uint16(waitSince))
	p.current.feed(say(f))
	l.Lock()
	got, limit, full := l.Full(f)
	require.True(t, l.Pressed(2) && full)
	l.Unlock()
	require.Equal(t, f, got)
	require.Equal(t, 9, limit)
	p.current.feed(wire.AppendFrame(nil, wire.KindRoom, 0, 0, wire.AppendRoom(nil, f)))
	require.False(t, l.Pressed(2))
	p.current.feed(say(f))
	require.True(t, l.Pressed(2))
	p.current.feed(say(wire.Full{Reason: 77}))
	require.True(t, p.current.broken, "closed and counted")
	p.settle()
	require.False(t, l.Pressed(2), "over with the connection")
}
