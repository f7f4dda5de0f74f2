// Tests of what is held of frames that are not whole: a budget of all connections, shares, a least rate (SEC-4).

package transport

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// half opens a control connection to tr in the name of from, and sends so many bytes of a frame of a megabyte.
func half(t *testing.T, tr *Transport, from peer.ID, n int) net.Conn {
	nc, err := net.Dial("tcp", tr.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	h := helloFrom(tr, from, wire.LaneControl, 1)
	_ = nc.SetDeadline(time.Now().Add(patience))
	_, err = nc.Write(wire.AppendFrame(nil, wire.KindHello, 0, 0, hello.Append(nil, &h)))
	require.NoError(t, err)
	kind, _, err := readFrame(nc, hello.MaxAnswer)
	require.NoError(t, err)
	require.Equal(t, wire.KindHelloAck, kind)
	b := make([]byte, n)
	wire.PutHeader(b, wire.Header{Size: 1 << 20, Kind: wire.KindGossip})
	_, _ = nc.Write(b) // the node may have closed it
	return nc
}

func attacker(n int) peer.ID {
	return peer.ID{Addr: peer.MustAddr("127.9.9.9:9"), Inc: uint64(1000 + n)}
}

// A hundred half-sent frames hold at most the budget, beside 64 KiB for each connection; others do not notice.
func TestHalfSentFramesHoldTheBudgetAtMost(t *testing.T) {
	const budget, conns = 32 << 20, 100
	b := newRider()
	tb := start(t, b, func(c *Config) { c.PartialBudget, c.MaxVisits = budget, 1_000_000 })
	good := start(t, newRider(), nil)
	before := heapInUse()
	most := 0
	for n := range conns {
		half(t, tb, attacker(n), 700<<10)
		most = max(most, tb.Stats().PartialBytes)
	}
	until(t, func() bool {
		s := tb.Stats()
		most = max(most, s.PartialBytes)
		return s.PartialsFull >= conns/2
	})
	require.LessOrEqual(t, most, budget)
	require.Greater(t, most, budget/2)
	require.Less(t, heapInUse(), before+budget+conns*keepCarry+16<<20)
	large := make([]byte, 40<<10)
	require.NoError(t, good.Send(peer.Mail{To: tb.Self(), Kind: wire.KindGossip, Body: large}))
	require.Len(t, want(t, b.mails).body, len(large))
	require.Zero(t, tb.Stats().FaultsFrames, "it is counted by itself")
}

func heapInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// All connections of one share have half of the budget together, and a frame of another comes whole beside them; what
// was held of connections that ended comes free.
func TestPartialFramesHaveShares(t *testing.T) {
	const budget = 32 << 20
	b := newRider()
	member := attacker(99)
	tb := start(t, b, func(c *Config) {
		c.PartialBudget, c.MaxVisits = budget, 1_000_000
		c.Share = func(from peer.ID) peer.ID {
			if from == member {
				return from
			}
			return peer.ID{}
		}
	})
	var all []net.Conn
	for n := range 40 {
		all = append(all, half(t, tb, attacker(n), 700<<10))
	}
	until(t, func() bool { return tb.Stats().PartialsFull >= 20 })
	require.LessOrEqual(t, tb.Stats().PartialBytes, budget/2)
	nc := half(t, tb, member, 700<<10)
	_, err := nc.Write(make([]byte, 1<<20-700<<10))
	require.NoError(t, err)
	require.Len(t, want(t, b.mails).body, 1<<20-wire.HeaderSize)
	for _, nc := range all {
		_ = nc.Close()
	}
	until(t, func() bool { return tb.Stats().PartialBytes == 0 })
}

// One that has held its part of a frame for some looks of the sweep makes way when there is no room, the oldest first;
// one with a frame that does not become whole in time is closed, but not because the node stood still or looks often.
func TestPartialFramesMakeWay(t *testing.T) {
	tr := start(t, newRider(), nil)
	conn := func(n int) *InConn { return &InConn{t: tr, from: &remote{id: attacker(n)}, loop: tr.ctl} }
	r := &partials{limit: 100 << 20}
	const mib = 1 << 20
	claim := func(in *InConn, now time.Duration, n int) error { return r.claim(in, in.from.id, now, n) }
	a, b, c := conn(1), conn(2), conn(3)
	require.NoError(t, claim(a, 0, 40*mib))
	require.NoError(t, claim(b, time.Second, 40*mib))
	var full *PartialError
	require.ErrorAs(t, claim(c, 2*time.Second, 30*mib), &full, "nobody has held his for long")
	require.Equal(t, 100*mib, full.Bound)
	require.False(t, full.Share)
	require.ErrorAs(t, claim(b, 2*time.Second, 11*mib), &full)
	require.True(t, full.Share, "half of it, whatever is free")
	require.ErrorContains(t, full, "one peer may hold 52428800 so")
	for range 2 {
		r.look(2 * time.Second)
	}
	require.NoError(t, claim(c, 2*time.Second, 30*mib))
	held, ended, _ := r.figures()
	require.Equal(t, 70*mib, held)
	require.EqualValues(t, 3, ended)
	r.release(a) // its loop closes it: nothing is given back twice
	held, _, _ = r.figures()
	require.Equal(t, 70*mib, held)

	r.release(c)
	for range 1000 {
		r.look(time.Second + partialTime + 40*mib/partialRate*time.Second)
	}
	_, _, slow := r.figures()
	require.Zero(t, slow, "it may take as long as its bytes do")
	r.look(time.Second + partialTime + 40*mib/partialRate*time.Second + 1)
	held, _, slow = r.figures()
	require.EqualValues(t, 1, slow)
	require.Zero(t, held)

	require.NoError(t, claim(a, 0, mib))
	for range partialLooks + mib/partialStep {
		r.look(time.Hour)
	}
	_, _, slow = r.figures()
	require.EqualValues(t, 1, slow, "this node stood still, and has not looked often enough")
	r.look(time.Hour)
	_, _, slow = r.figures()
	require.EqualValues(t, 2, slow)
	require.Empty(t, r.owners)
	require.Empty(t, r.live)
}
