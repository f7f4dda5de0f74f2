// The worker's part in measuring hostile clients: its identity, and the round trips of its heartbeats.

package main

import (
	"context"
	"time"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/cli"
)

// targetReply is what one must know of a node to say a hello that it takes.
type targetReply struct {
	Addr         string
	Inc, Cluster uint64
}

func (w *worker) target(context.Context, cli.None) (targetReply, error) {
	id := w.node.ID()
	return targetReply{id.Addr.String(), id.Inc, w.node.View().ClusterID}, nil
}

// beatsEvery is how often the last round trip is looked at.
const beatsEvery = 2 * time.Millisecond

// beats returns the round trips of heartbeats since the last call, as an encoded histogram; the first call begins.
func (w *worker) beats(context.Context, cli.None) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trips == nil {
		go w.watchBeats()
	}
	taken := w.trips
	w.trips = bench.NewLatency()
	if taken == nil {
		taken = w.trips
	}
	return taken.Encode()
}

// watchBeats looks at the last round trip until the process ends.
func (w *worker) watchBeats() {
	seen := map[string]uint64{}
	for range time.Tick(beatsEvery) {
		for _, l := range w.node.Stats().Transport.Links {
			peer, trip := l.Peer.String(), l.Control.RoundTrip
			if trip.Count > seen[peer] {
				seen[peer] = trip.Count
				w.mu.Lock()
				w.trips.Record(trip.Last)
				w.mu.Unlock()
			}
		}
	}
}
