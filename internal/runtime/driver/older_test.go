// Tests beside a node of wire version 1, played by its bytes: what it refuses is understood, what is refused of it is
// reported in its words.

package driver

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// readWhole reads one frame.
func readWhole(t *testing.T, nc net.Conn) (wire.Kind, []byte) {
	head := make([]byte, wire.HeaderSize)
	_, err := io.ReadFull(nc, head)
	require.NoError(t, err)
	body := make([]byte, binary.LittleEndian.Uint32(head)-wire.HeaderSize)
	_, err = io.ReadFull(nc, body)
	require.NoError(t, err)
	return wire.Kind(head[4]), body
}

// acceptOld takes the next connection to an older node, once it is greeted in the words of version 1.
func acceptOld(t *testing.T, ln net.Listener, old peer.ID) net.Conn {
	for {
		nc, err := ln.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { nc.Close() })
		_, hello := readWhole(t, nc)
		if hello[4] == 1 {
			ack := wire.AppendU64(wire.AppendU64(peer.AppendID(nil, old), 0), 0)
			_, err = nc.Write(wire.AppendFrame(nil, wire.KindHelloAck, 0, 0, ack))
			require.NoError(t, err)
			return nc
		}
		refuseOld(t, nc)
	}
}

// refuseOld refuses a hello as an older node does.
func refuseOld(t *testing.T, nc net.Conn) {
	no := wire.AppendString(wire.AppendU8(nil, 2), "wire version")
	no = wire.AppendString(wire.AppendString(no, "2"), "1")
	_, err := nc.Write(wire.AppendFrame(nil, wire.KindHelloRefuse, 0, 0, no))
	require.NoError(t, err)
	nc.Close()
}

// A node of version 1 takes no large message: its sender learns that, with the node and the most that goes to it in one
// message, which is what fits a frame (CARD-3).
func TestLargeMessageToAnOlderNode(t *testing.T) {
	p := newPair(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	old := peer.ID{Addr: peer.MustAddr(ln.Addr().String()), Inc: 5}
	watch := &largeWatch{done: make(chan error, 1), moved: make(chan struct{}, 1)}
	l := &large{r: p.at[entity.Blocking], id: "a", watch: watch}
	payload := make([]byte, p.a.cfg.MaxPayload+1)
	require.NoError(t, p.a.large.add(l, payload))
	x := &flow.BulkTransfer{Payload: payload, Owner: l}
	l.x, l.by = x, p.a.wires.Bulk(old)
	l.life.Began(old, 1, 1)
	require.NoError(t, l.by.Send(x))
	nc, err := ln.Accept()
	require.NoError(t, err)
	_, _ = readWhole(t, nc)
	refuseOld(t, nc)
	err = <-watch.done
	var told *RefusedError
	require.ErrorAs(t, err, &told)
	require.Equal(t, &RefusedError{Peer: old, Type: l.r.typ.Name, Reason: route.TooLarge,
		Limit: p.a.cfg.MaxPayload}, told)
	require.ErrorContains(t, err, "wire version")
	require.NotErrorIs(t, err, route.ErrPeerLost)
	require.Zero(t, p.a.large.count())
}

// A refusal by a node of version 1 has neither a limit nor the newer reasons: it is a typed error that names the node
// all the same. What is refused of such a node is reported to it in frames and reasons that it knows (CARD-3).
func TestRefusalsOfAnOlderNode(t *testing.T) {
	p := newPair(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	old := peer.ID{Addr: peer.MustAddr(ln.Addr().String()), Inc: 5}
	r := p.at[entity.Blocking]
	want := &RefusedError{Peer: old, Type: r.typ.Name, Reason: route.MailboxFull}

	w, corr, err := begun(p.a.asks.begin(patience, r, 0, nil, nil))
	require.NoError(t, err)
	w.goes(corr, &routeEntry{remote: p.a.remote(old, 0)})
	require.True(t, p.a.asks.conclude(corr, route.MailboxFull, nil))
	<-w.wake
	require.Equal(t, want, w.err)
	require.ErrorIs(t, w.err, route.ErrMailboxFull)
	p.a.asks.free(w)

	full := plane.RefusalKey{Type: r.id, Shard: 1, Reason: route.MailboxFull}
	told := []*plane.Refusal{{RefusalKey: full, Count: 3, Samples: []string{"x"}}}
	onControl(p.a, func() { p.a.refusedThere(old, wire.KindRefused, plane.AppendRefusals(nil, told, false)) })
	eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.failed) > 0
	})
	require.Equal(t, Undelivered{Type: r.typ.Name, Shard: 1, Reason: route.MailboxFull, Peer: old, Count: 3,
		Samples: []string{"x"}}, p.failed[0])
	require.Equal(t, want, p.failed[0].Err())

	require.NoError(t, p.a.wires.Send(peer.Mail{To: old, Kind: wire.KindStatus, Body: []byte("first")}))
	nc := acceptOld(t, ln, old)
	kind, _ := readWhole(t, nc)
	require.Equal(t, wire.KindStatus, kind)
	budget := full
	budget.Reason = route.BudgetFull
	refused := []*plane.Refusal{{RefusalKey: full, Count: 2, Samples: []string{"x"}},
		{RefusalKey: budget, Count: 1, Samples: []string{"y"}}}
	require.NoError(t, p.a.sendRefusals(p.a.peerNode(old), refused))
	for kind != wire.KindRefused {
		var body []byte
		if kind, body = readWhole(t, nc); kind == wire.KindRefused {
			got, err := plane.ParseRefusals(kind, body)
			require.NoError(t, err)
			require.Equal(t, told, got)
		}
	}
}

// TestLimitsInAnswers holds the text of a refused ask, and that no other text is taken for a limit.
func TestLimitsInAnswers(t *testing.T) {
	d := &Driver{cfg: Config{}.WithDefaults()}
	d.bounds.cfg = &d.cfg
	r := newRegion(d, entity.Type{Name: "a", Shards: 1, MailboxBytes: 65536})
	require.Equal(t, "65536 bytes wait for the entity", string(d.bounds.appendLimit(nil, r, route.MailboxFull)))
	require.Empty(t, d.bounds.appendLimit(nil, r, route.NotOwner))
	require.Empty(t, d.bounds.appendLimit(nil, nil, route.MailboxFull), "the type is not known")
	for i := range route.Reasons {
		reason := route.Reason(i)
		text := d.bounds.appendLimit(nil, r, reason)
		require.Equal(t, boundUnit(reason) == "", len(text) == 0, reason)
		require.Equal(t, d.bounds.limitOf(r, reason), plane.ParseLimit(text), reason)
		require.LessOrEqual(t, len(text), 64, "it is made in a room of that size")
	}
	for _, text := range []string{"", "x", " 1", "1", "-1 x", "12345678901234567890 x", "1x"} {
		require.Zero(t, plane.ParseLimit([]byte(text)), text)
	}
}
