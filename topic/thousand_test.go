// A thousand subscribers on five nodes: what crosses the links, and what one that does not read costs the others.

package topic

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// linkBytes is how much a node has written on its data connections to each other node.
func linkBytes(n *kith.Node) map[kith.ID]uint64 {
	all := map[kith.ID]uint64{}
	for _, p := range n.Stats().Transport.Links {
		for _, l := range p.Data {
			all[p.Peer] += l.Sent
		}
	}
	return all
}

// Each message crosses each link once, not once for each subscriber: the bytes of the links are those of one copy. One
// subscriber of each node does not read and loses by count; all others get all (REP-2).
func TestThousandSubscribers(t *testing.T) {
	const nodes, each, messages, size = 5, 200, 400, 1000
	var all []*kith.Node
	var started []*Topics
	for range nodes {
		n, ts := begin(t, all...)
		all, started = append(all, n), append(started, ts)
	}
	topics := opens(t, "crowd", started...)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	var readers []*reader
	var idle []func(func(Message) bool)
	var reading sync.WaitGroup
	for _, topic := range topics {
		for range each - 1 {
			r, seq := &reader{}, topic.Subscribe(ctx)
			readers = append(readers, r)
			reading.Go(func() {
				for m := range seq {
					r.read(m)
				}
			})
		}
		slow, err := topic.SubscribeWithin(ctx, Bounds{Messages: 10})
		require.NoError(t, err)
		idle = append(idle, slow)
		require.NoError(t, topic.Known(within(t)))
	}
	require.Eventually(t, func() bool { return topics[0].Stats().Nodes == nodes }, time.Minute, time.Millisecond)
	before, strays := linkBytes(all[0]), stray(started)
	for n := range uint32(messages) {
		payload := make([]byte, size)
		copy(payload, numbered(0, n+1))
		require.NoError(t, topics[0].Publish(payload))
	}
	received := func() (n uint64) {
		for _, topic := range topics[1:] {
			n += topic.Stats().Received
		}
		return n + stray(started) - strays
	}
	require.Eventually(t, func() bool { return received() == (nodes-1)*messages }, time.Minute, time.Millisecond)
	require.EqualValues(t, (nodes-1)*messages, topics[0].Stats().Sent, "once to each other node")
	after := linkBytes(all[0])
	for _, n := range all[1:] {
		crossed := after[n.ID()] - before[n.ID()]
		require.GreaterOrEqual(t, crossed, uint64(messages*size), "to %v", n.ID())
		require.Less(t, crossed, uint64(messages*(size+300)), "one copy to %v, and what nodes say beside", n.ID())
	}
	if stray(started) == strays { // no worker moved meanwhile
		require.Eventually(t, func() bool { return allHeard(readers, messages) }, time.Minute, time.Millisecond)
		for _, topic := range topics {
			require.EqualValues(t, messages-10, topic.Stats().Missed, "the one that does not read, and no other")
		}
	}
	cancel()
	reading.Wait()
	for _, seq := range idle {
		got := 0
		for range seq {
			got++
		}
		require.Equal(t, 10, got)
	}
}

// stray sums up what came to nodes that it was not for.
func stray(all []*Topics) (n uint64) {
	for _, ts := range all {
		n += ts.Stray()
	}
	return n
}
