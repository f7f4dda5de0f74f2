// Tests of loans: payloads that a Blocking entity gets without a copy, given back once whatever becomes of them.

package entity

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

// TestLoanIsGivenBackOnce: when its handler is done with it, between copied ones and in order; it counts against
// neither mailbox nor budget.
func TestLoanIsGivenBackOnce(t *testing.T) {
	r := newRig(t, Blocking, func(typ *Type) { typ.MailboxBytes = MinMailboxBytes })
	released := 0
	large := make([]byte, 1<<20)
	copy(large, "large")
	lend := func() route.Reason {
		m := Message{ID: []byte("a"), Payload: large, Loan: &Loan{Release: func() { released++ }}}
		return r.Deliver(r.f.now, &m)
	}
	require.Equal(t, route.OK, r.deliver("a", "before", nil, 0))
	require.Equal(t, route.OK, lend())
	require.Equal(t, route.OK, r.deliver("a", "behind", nil, 0))
	require.Equal(t, route.OK, lend(), "never refused for a full mailbox")
	require.Less(t, r.Stats().QueuedBytes, MinMailboxBytes)
	require.Zero(t, released)
	r.runAll()
	require.Equal(t, 2, released)
	require.Zero(t, r.Stats().QueuedBytes)
	require.Equal(t, uint64(4), r.Stats().Delivered)
}

// TestLoanOfAnAbandonedShard is given back, and one that is refused is not the host's.
func TestLoanOfAnAbandonedShard(t *testing.T) {
	r := newRig(t, Blocking)
	released := 0
	m := Message{ID: []byte("a"), Payload: make([]byte, 1<<20), Loan: &Loan{Release: func() { released++ }}}
	require.Equal(t, route.OK, r.Deliver(r.f.now, &m))
	r.Abandon()
	require.Equal(t, 1, released)
	require.Equal(t, route.Stopped, r.Deliver(r.f.now, &m))
	require.Equal(t, 1, released)
}
