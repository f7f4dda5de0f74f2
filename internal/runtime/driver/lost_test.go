// Tests of peers that are gone for good: what waited for them is reported, and no route leads to them.

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// nowhere returns a node that is not there: dials to it are refused.
func nowhere(t *testing.T, inc uint64) peer.ID {
	return peer.ID{Addr: peer.MustAddr(port.Keep(t)), Inc: inc}
}

// undelivered sums the reports for a shard by reason.
func (p *pair) undelivered(typ string, sh route.ShardID) (count map[route.Reason]uint64, samples []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	count = map[route.Reason]uint64{}
	for _, u := range p.failed {
		if u.Type == typ && u.Shard == sh {
			count[u.Reason] += u.Count
			samples = append(samples, u.Samples...)
		}
	}
	return count, samples
}

// Tells that wait for a peer are reported when it is removed, with their count and samples of their ids; asks among
// them end at once (SHD-10).
func TestWaitingForALostPeer(t *testing.T) {
	p := newPair(t)
	r := p.at[entity.Worker]
	_, err := r.AskWithin(patience, "a", nil, nil)
	require.NoError(t, err)
	sh := r.Shard("a")
	right := opened(t, r, sh)
	gone := nowhere(t, 5)
	lead := func() {
		onControl(p.a, func() {
			to := p.a.remote(gone, 0)
			e := &routeEntry{remote: to, link: to.link, term: right.term, epoch: right.epoch}
			fence := route.MakeFence(1, right.term, right.epoch)
			p.a.moveRoute(slotRef{r, sh}, e, plane.Home{At: gone, Fence: fence})
		})
	}
	lead()
	for range 100 {
		require.NoError(t, r.Tell("a", []byte("held")))
	}
	answers := make(chan error, 2)
	for range 2 {
		require.NoError(t, r.AskFunc(patience, "a", nil, func(_ []byte, err error) { answers <- err }))
	}
	onControl(p.a, func() { p.a.forget(gone) })
	for range 2 {
		require.ErrorIs(t, <-answers, route.ErrPeerLost)
	}
	eventually(t, func() bool {
		count, _ := p.undelivered(r.typ.Name, sh)
		return count[route.PeerLost] == 100
	})
	count, samples := p.undelivered(r.typ.Name, sh)
	require.Len(t, count, 1)
	require.Contains(t, samples, "a")
	st := r.stats()
	require.EqualValues(t, 102, st.Unsent)
	require.Zero(t, p.a.Stats().Transport.LostBytes, "nothing was in flight")

	// The route still leads to the dead: the first send says so, and has the home asked for again.
	require.ErrorIs(t, r.Tell("a", nil), route.ErrPeerLost)
	eventually(t, func() bool {
		_, err := r.AskWithin(patience, "a", nil, nil)
		return err == nil
	})
	require.Same(t, right.remote, opened(t, r, sh).remote)
	require.Nil(t, p.a.peerTable.get(gone))
}

// What waits for a peer when this node ends is reported as abandoned; what waits for one that was lost a moment ago, as
// lost with it: this node's end changes nothing about it.
func TestWaitingWhenTheNodeEnds(t *testing.T) {
	for name, lost := range map[string]bool{"a member": false, "a lost one": true} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			r := p.at[entity.Inline]
			_, err := r.AskWithin(patience, "a", nil, nil)
			require.NoError(t, err)
			right := opened(t, r, r.Shard("a"))
			gone := nowhere(t, 5)
			onControl(p.a, func() {
				to := p.a.remote(gone, 0)
				e := &routeEntry{remote: to, link: to.link, term: right.term, epoch: right.epoch}
				fence := route.MakeFence(1, right.term, right.epoch)
				p.a.moveRoute(slotRef{r, r.Shard("a")}, e, plane.Home{At: gone, Fence: fence})
			})
			for range 10 {
				require.NoError(t, r.Tell("a", []byte("held")))
			}
			reason := route.Abandoned
			if lost {
				reason = route.PeerLost
				onControl(p.a, func() { p.a.control.removed.Add(p.a.now(), gone, true) })
				require.NoError(t, p.a.Close())
			} else {
				all := &route.AbandonedError{}
				require.ErrorAs(t, p.a.Close(), &all)
				require.Equal(t, []route.AbandonedType{{Type: r.typ.Name, Tells: 10}}, all.Types)
			}
			count, _ := p.undelivered(r.typ.Name, r.Shard("a"))
			require.Equal(t, map[route.Reason]uint64{reason: 10}, count)
		})
	}
}

// Late news of a home on a member removed long ago opens no route: the home is asked for again, and what is parked goes
// there (SHD-4).
func TestHomeOnAForgottenPeer(t *testing.T) {
	p := newPair(t)
	for mode, r := range p.at {
		t.Run(mode.String(), func(t *testing.T) {
			_, err := r.AskWithin(patience, "a", nil, nil)
			require.NoError(t, err)
			sh := r.Shard("a")
			ref := slotRef{r, sh}
			right := opened(t, r, sh)
			gone := nowhere(t, 9)
			p.a.wires.Forget(gone)
			dead := func() *routeEntry {
				to := p.a.remote(gone, 0)
				return &routeEntry{remote: to, link: to.link, term: right.term, epoch: right.epoch}
			}
			fence := route.MakeFence(1, right.term, right.epoch)
			home := func(what string) {
				reply, err := r.AskWithin(patience, "a", []byte(what), nil)
				require.NoError(t, err, what)
				require.Equal(t, what, string(reply))
				require.Same(t, right.remote, opened(t, r, sh).remote)
			}

			// As the node tells it.
			onControl(p.a, func() {
				p.a.routeChanged(&shard.RouteChange{Type: r.id, Shard: sh, State: shard.RouteRemote, Home: gone, Fence: fence})
				require.Nil(t, ref.slot().route.Load())
			})
			home("told")

			// An open slot with a peer that is forgotten: the ask fails at once, the next one arrives.
			onControl(p.a, func() { p.a.moveRoute(ref, dead(), plane.Home{At: gone, Fence: fence}) })
			_, err = r.AskWithin(patience, "a", nil, nil)
			require.ErrorIs(t, err, route.ErrPeerLost)
			eventually(t, func() bool { e := ref.slot().route.Load(); return e == nil || e.remote == right.remote })
			home("open")

			// A drain that meets the dead link: what is parked stays in order and goes to the right home.
			before := len(p.received())
			onControl(p.a, func() { p.a.closeRoute(ref) })
			for _, text := range []string{"1", "2", "3"} {
				require.NoError(t, r.Tell("a", []byte(text)))
			}
			onControl(p.a, func() {
				p.a.moveRoute(ref, dead(), plane.Home{At: gone, Fence: fence})
				require.Zero(t, p.a.dispatch.control.agenda.Stalls())
			})
			home("drained")
			eventually(t, func() bool { return len(p.received()) == before+3 })
			require.Equal(t, []string{"1", "2", "3"}, p.received()[before:])
			require.Nil(t, p.a.peerTable.get(gone), "nothing is kept of the dead")
			count, _ := p.undelivered(r.typ.Name, sh)
			require.Empty(t, count)
		})
	}
}

func (p *pair) received() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.got...)
}

// A link that gives up the envelope of a large message ends that one, and none to another node for which the same
// reference stands there: that is handled (SHD-10).
func TestUnsentEnvelopeOfALargeMessage(t *testing.T) {
	p := newPair(t)
	r := p.at[entity.Worker]
	ref := wire.BulkRef{Generation: 1, Number: 1}
	begin := func(to peer.ID) *large {
		l := &large{r: r, id: "a", ref: ref, watch: &largeWatch{done: make(chan error, 1), moved: make(chan struct{}, 1)}}
		require.NoError(t, p.a.large.add(l, []byte("large")))
		l.life.Began(to, 1, 1)
		require.True(t, l.life.Arrived())
		l.life.Referred()
		return l
	}
	gone := nowhere(t, 5)
	there, unsent := begin(p.b.self), begin(gone)
	frame := make([]byte, wire.SizeEnvelope(1, wire.BulkRefSize))
	wire.PutEnvelope(frame, &wire.Envelope{Type: uint32(r.id), Flags: wire.FlagBulk,
		Payload: wire.AppendBulkRef(nil, ref)}, "a")
	for range 2 { // the second stands for one that is over
		p.a.peerTable.Undelivered(gone, frame, route.ErrPeerLost)
	}
	require.ErrorIs(t, <-unsent.watch.done, route.ErrPeerLost)
	require.Empty(t, there.watch.done)
	require.Equal(t, 1, p.a.large.count())
	require.True(t, p.a.large.end(there, route.OK, nil, nil))
}
