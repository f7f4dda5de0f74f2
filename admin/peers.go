// Peers: how this node judges the silence of each, and what its links to them hold.

package admin

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kith-io/kith"
)

// maxPeers bounds the peers of one answer: those in trouble come first.
const maxPeers = 256

// peers is the answer of GET /v1/peers.
type peers struct {
	Total int        `json:"total"`
	Peers []peerInfo `json:"peers"` // the first of them, those in trouble before the others
}

// peerInfo is one peer as this node sees it. Times are in seconds, round trips in milliseconds, queues in bytes.
type peerInfo struct {
	Peer      string  `json:"peer"`
	Watched   bool    `json:"watched"`              // the failure detector here watches it
	Available bool    `json:"available"`            // and takes it for alive
	Phi       float64 `json:"phi"`                  // on the detector's own scale
	Silence   float64 `json:"silence_s"`            // since its last sign of life
	Left      float64 `json:"left_s"`               // until it is unavailable
	RoundTrip float64 `json:"round_trip_ms"`        // of the last heartbeat; zero before the first
	Control   bool    `json:"control"`              // the control connection to it stands
	Links     int     `json:"links"`                // data connections to it
	Up        int     `json:"links_up"`             // of them, those that stand
	Queued    int64   `json:"queued"`               // bytes that wait to be written on them
	InFlight  int64   `json:"in_flight"`            // bytes written and not consumed yet
	Full      int     `json:"links_full,omitempty"` // links that refuse sends now
	Stalled   int     `json:"links_stalled,omitempty"`
	Refused   uint64  `json:"refused"` // sends refused for a full link, since the start
}

func (p *peerInfo) troubled() bool {
	return p.Watched && !p.Available || p.Full > 0 || p.Stalled > 0 || p.Up < p.Links || !p.Control
}

// peersOf joins what the failure detector and the links say.
func peersOf(links []kith.PeerStats, list []kith.Suspicion) peers {
	all := map[string]*peerInfo{}
	for i := range links {
		l := &links[i]
		if l.Peer.Inc == 0 { // a contact point: nobody yet
			continue
		}
		p := &peerInfo{Peer: l.Peer.String(), Control: l.Control.Up, Links: len(l.Data), Available: true,
			Queued:    int64(l.Control.Queued),
			RoundTrip: float64(l.Control.RoundTrip.Last) / float64(time.Millisecond)}
		for j := range l.Data {
			d := &l.Data[j]
			p.Queued, p.InFlight, p.Refused = p.Queued+int64(d.Queued), p.InFlight+d.InFlight, p.Refused+d.Refused
			p.Up, p.Full, p.Stalled = p.Up+one(d.Up), p.Full+one(d.Full.Now), p.Stalled+one(d.Stalled.Now)
		}
		all[p.Peer] = p
	}
	for i := range list {
		s := &list[i]
		p := all[s.Peer.String()]
		if p == nil {
			p = &peerInfo{Peer: s.Peer.String()}
			all[p.Peer] = p
		}
		p.Watched, p.Available, p.Phi = true, s.Available, s.Phi
		p.Silence, p.Left = s.Silence.Seconds(), s.Left.Seconds()
	}
	out := peers{Total: len(all), Peers: make([]peerInfo, 0, min(len(all), maxPeers))}
	sorted := slices.SortedFunc(maps.Values(all), func(x, y *peerInfo) int {
		return cmp.Or(one(y.troubled())-one(x.troubled()), cmp.Compare(x.Peer, y.Peer))
	})
	for _, p := range sorted[:min(len(sorted), maxPeers)] {
		out.Peers = append(out.Peers, *p)
	}
	return out
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// suspicions are those of a node, none of one that does not answer: it has ended, or stands still.
func suspicions(ctx context.Context, n *kith.Node) []kith.Suspicion {
	list, _ := n.Suspicions(ctx)
	return list
}
