// Tests of what the transport knows of addresses: this node's own, those of an older cluster, those that nobody could
// ask (JOIN-1, AVL-3, OPS-3).

package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// A seed that is this node itself, spelled otherwise, is asked no more; when it heads the list this node is the first
// seed, as it would be had it been spelled as its address is (JOIN-1).
func TestSeedSpelledOtherwise(t *testing.T) {
	own, other := peer.MustAddr("localhost:7355"), addr(2)
	start := func(c JoinCommand) (*world, *actor) {
		w := newWorld(t, 1)
		a := w.start(1)
		c.WallMillis = 1_750_000_000_000
		w.do(a, c)
		w.run(time.Second)
		require.Equal(t, probing, a.m.phase)
		w.do(a, OwnAddressCommand{own})
		return w, a
	}
	_, a := start(JoinCommand{Seeds: []peer.Addr{own}})
	require.Equal(t, member, a.m.phase, "it is the only seed")
	w, a := start(JoinCommand{Seeds: []peer.Addr{own, other}})
	require.Equal(t, probing, a.m.phase, "the other may be in a cluster")
	require.Equal(t, []peer.Addr{other}, a.m.joining.seeds)
	w.until(10*time.Second, "formed", w.settled)
	w, a = start(JoinCommand{Seeds: []peer.Addr{other, own}})
	w.run(time.Minute)
	require.Equal(t, probing, a.m.phase, "it is not the first seed")
	w, a = start(JoinCommand{Seeds: []peer.Addr{own}, NeverForm: true})
	w.run(time.Minute)
	require.Equal(t, probing, a.m.phase)
}

// A first seed forms no cluster on the silence of a seed that could not be asked; that nobody listens there, and that
// there is no such name, are answers (AVL-3, OPS-3).
func TestNoClusterOnWhatWasNotAsked(t *testing.T) {
	start := func(c JoinCommand) (*world, *actor) {
		w := newWorld(t, 1)
		a := w.start(1)
		c.Seeds, c.WallMillis = addrs(1, 2, 3), 1_750_000_000_000
		w.do(a, c)
		return w, a
	}
	unasked := UnreachedCommand{Addr: addr(2), Kind: WaitSeeds, Why: "look-up of n2 failed", Unasked: true}
	refused := UnreachedCommand{Addr: addr(2), Kind: WaitSeeds, Why: "there is no such name"}
	w, a := start(JoinCommand{})
	w.do(a, unasked)
	w.run(time.Minute)
	require.Equal(t, probing, a.m.phase)
	require.Contains(t, kindsOf(a.events), FormingHeld)
	require.Contains(t, a.m.Waiting().Detail, "could not be asked: 10.0.0.2:7355 (look-up of n2 failed)")
	w.do(a, unasked)
	w.do(a, refused)
	w.run(4 * time.Second)
	require.Equal(t, probing, a.m.phase, "who could not be asked has its time to answer")
	w.until(10*time.Second, "formed", w.settled)
	formed := a.events[len(a.events)-1]
	require.Equal(t, ClusterFormed, formed.Kind)
	require.Contains(t, formed.Detail, "nothing was heard of 10.0.0.2:7355 (there is no such name), 10.0.0.3:7355")

	w, a = start(JoinCommand{})
	w.do(a, refused)
	w.until(10*time.Second, "formed", w.settled)
	w, a = start(JoinCommand{FormNew: true})
	w.do(a, unasked)
	w.until(10*time.Second, "an operator's word", w.settled)
}

// alone makes a node that is a cluster of one.
func alone(t *testing.T) (*world, *actor) {
	w := newWorld(t, 1)
	a := w.start(1)
	w.do(a, JoinCommand{Seeds: addrs(1), WallMillis: 1_750_000_000_000})
	w.until(10*time.Second, "formed", w.settled)
	return w, a
}

// probes counts the probes that were sent to an address.
func probes(a *actor, to peer.Addr) (n int) {
	var out Effects
	a.m.Drain(&out)
	for _, mail := range out.Mail {
		if mail.Kind == wire.KindJoinProbe && mail.To == (peer.ID{Addr: to}) {
			n++
		}
	}
	return n
}

// A node that is alone dials nodes back that come to it from an older cluster, and yields when it meets that cluster
// there, whatever its seeds; nothing that they say of themselves ends it (JOIN-1, AVL-3).
func TestAloneYieldsToWhomItDialsBack(t *testing.T) {
	w, a := alone(t)
	asked := AskedCommand{Addr: addr(9), ClusterID: 77, Birth: a.view.Birth - 1}
	require.NoError(t, a.m.Do(w.now, asked))
	require.Equal(t, 1, probes(a, addr(9)))
	require.NoError(t, a.m.Do(w.now, asked))
	require.Zero(t, probes(a, addr(9)), "one a second")
	require.Nil(t, a.ended)
	w.do(a, OtherClusterCommand{Addr: addr(8), ClusterID: 77, Birth: asked.Birth})
	require.Nil(t, a.ended, "an address that it did not dial back")
	w.do(a, OtherClusterCommand{Addr: addr(9), ClusterID: 77, Birth: asked.Birth})
	require.Equal(t, EndDuplicate, a.ended.Kind)
	require.Equal(t, addrs(9), a.ended.Record.Others)

	for name, c := range map[string]AskedCommand{
		"younger": {addr(9), 77, a.view.Birth + 1}, "of no birth": {addr(9), 77, 0},
	} {
		w, a := alone(t)
		require.NoError(t, a.m.Do(w.now, c))
		require.Zero(t, probes(a, addr(9)), name)
	}
	w, a = alone(t)
	b := w.start(2)
	w.join(b, 1)
	w.until(10*time.Second, "two", w.settled)
	require.NoError(t, a.m.Do(w.now, asked))
	require.Zero(t, probes(a, addr(9)), "not alone")
	w, a = alone(t)
	for n := range 3 * maxAskers {
		require.NoError(t, a.m.Do(w.now, AskedCommand{addr(10 + n), 77, a.view.Birth - 1}))
	}
	require.Len(t, a.m.others.askers, maxAskers)
}

// A record that was kept at another address has that one asked before a cluster is formed (AVL-3).
func TestFormerAddressIsAsked(t *testing.T) {
	w := newWorld(t, 1)
	a := w.start(1)
	w.join(a)
	b := w.start(2)
	rec := Record{ClusterID: a.view.ClusterID, Birth: a.view.Birth, Highest: a.view.Birth, Counts: true}
	w.do(b, JoinCommand{WallMillis: 1_750_000_000_001, Record: rec, Former: addr(1)})
	w.until(10*time.Second, "one cluster", w.settled)
	require.Equal(t, a.view.ClusterID, b.view.ClusterID)

	w = newWorld(t, 1)
	b = w.start(2)
	w.do(b, JoinCommand{WallMillis: 1_750_000_000_001, Record: rec, Former: addr(1)})
	require.Equal(t, probing, b.m.phase)
	w.until(10*time.Second, "nobody is there", w.settled)
}
