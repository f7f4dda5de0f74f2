// Types and peers: the families with a label for each type, and for each peer, within their bounds.

package metrics

import (
	"slices"
	"sort"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kith-io/kith"
)

// typeFamily is one metric of a type.
type typeFamily struct {
	name, help string
	kind       prometheus.ValueType
	read       func(*kith.TypeStats) float64
}

// ofType are the families with a type label.
var ofType = []typeFamily{
	{"kith_shards", "Shards of the type that live here.", gauge,
		func(t *kith.TypeStats) float64 { return float64(t.Hosted) }},
	{"kith_shards_stopping", "Of them, those that are being stopped.", gauge,
		func(t *kith.TypeStats) float64 { return float64(t.Stopping) }},
	{"kith_entities", "Entities that live here, idle ones included.", gauge,
		func(t *kith.TypeStats) float64 { return float64(t.Entities) }},
	{"kith_type_mailbox_bytes", "Bytes that wait for entities here.", gauge,
		func(t *kith.TypeStats) float64 { return float64(t.MailboxBytes) }},
	{"kith_parked_bytes", "Bytes that wait here for the homes of shards.", gauge,
		func(t *kith.TypeStats) float64 { return float64(t.ParkedBytes) }},
	{"kith_parked_lost_total", "Parked messages that failed.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.ParkedLost) }},
	{"kith_handled_total", "Messages given to handlers here.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Handled) }},
	{"kith_failed_total", "Of them, those for which Receive returned an error.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Failed) }},
	{"kith_no_reply_total", "Asks that were left without a reply.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.NoReply) }},
	{"kith_expired_total", "Asks for whose answer nobody waited any more when their turn came.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Expired) }},
	{"kith_abandoned_total", "Accepted messages dropped because a node ended or a shard was lost.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Abandoned) }},
	{"kith_refused_elsewhere_total", "Tells of this node that their receivers refused.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.RefusedRemote) }},
	{"kith_unsent_total", "Messages that waited for a node when it was removed.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Unsent) }},
	{"kith_instances_total", "Instances that New made.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Made) }},
	{"kith_passivated_total", "Instances that were let go because they were idle or asked for it.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Passivated) }},
	{"kith_panics_total", "Calls into handlers that panicked.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Panics) }},
	{"kith_slow_calls_total", "Calls into handlers that took too long.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Slow) }},
	{"kith_stops_hung_total", "Calls of Stop, HandOver and daemons that had not returned by their deadline.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.StopsHung) }},
	{"kith_cancels_told_total", "Asks given up before their time was over, of which their receiver was told.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Cancels.Told) }},
	{"kith_cancels_untold_total", "Asks given up of which their receiver could not be told.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Cancels.Untold) }},
	{"kith_cancelled_total", "Contexts of handlers that ended because their askers had given up.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Cancels.Ended) }},
	{"kith_recalls_waiting", "Shards here whose list of remembered entities was not read yet.", gauge,
		func(t *kith.TypeStats) float64 { return float64(t.Recalls.Waiting) }},
	{"kith_recalls_failed_total", "Lists of remembered entities that could not be read, and bad ids in them.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Recalls.Failed) }},
	{"kith_given_up_total", "Entities given up after a panic.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.GivenUp) }},
	{"kith_timers", "Timers that run here.", gauge, func(t *kith.TypeStats) float64 { return float64(t.Timers) }},
	{"kith_timers_fired_total", "Timers that fired.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.TimersFired) }},
	{"kith_room_waits_total", "Calls of senders here that found no room and waited.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Pressure.Waits) }},
	{"kith_lease_held", "Whether the lease of the singleton is held here.", gauge,
		func(t *kith.TypeStats) float64 { return yes(t.Lease.Held) }},
	{"kith_lease_waits", "Whether the singleton waits here for its lease.", gauge,
		func(t *kith.TypeStats) float64 { return yes(t.Lease.Waits) }},
	{"kith_lease_lost_total", "Times that the lease of the singleton was lost while it was held.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Lease.Lost) }},
	{"kith_lease_failed_total", "Calls of the singleton's lease that failed, or had no answer in time.", counter,
		func(t *kith.TypeStats) float64 { return float64(t.Lease.Failed) }},
	{"kith_mailboxes_full", "Mailboxes here for whose room somebody waits now.", gauge,
		func(t *kith.TypeStats) float64 { return float64(t.Pressure.Full) }},
}

// peerFamily is one metric of a peer. Of peers that share a label the values are added up, or the largest is shown.
type peerFamily struct {
	name, help string
	kind       prometheus.ValueType
	largest    bool
	read       func(*kith.PeerStats) float64
}

// links adds up a figure of all data connections to a peer.
func links(read func(*kith.LinkStats) float64) func(*kith.PeerStats) float64 {
	return func(p *kith.PeerStats) (sum float64) {
		for i := range p.Data {
			sum += read(&p.Data[i])
		}
		return sum
	}
}

// ofPeer are the families with a peer label.
var ofPeer = []peerFamily{
	{"kith_peer_round_trip_seconds", "How long the last heartbeat took to be answered.", gauge, true,
		func(p *kith.PeerStats) float64 { return p.Control.RoundTrip.Last.Seconds() }},
	{"kith_peer_reconnects_total", "Times that a data connection to the peer came to stand again.", counter, false,
		links(func(l *kith.LinkStats) float64 { return float64(max(l.Connects, 1) - 1) })},
	{"kith_peer_in_flight_bytes", "Bytes written and not consumed by the peer yet.", gauge, false,
		links(func(l *kith.LinkStats) float64 { return float64(l.InFlight) })},
	{"kith_peer_queued_bytes", "Bytes that wait to be written.", gauge, false,
		links(func(l *kith.LinkStats) float64 { return float64(l.Queued) })},
	{"kith_peer_sent_bytes_total", "Bytes written on data connections.", counter, false,
		links(func(l *kith.LinkStats) float64 { return float64(l.Sent) })},
	{"kith_peer_full_total", "Times that a link to the peer was full.", counter, false,
		links(func(l *kith.LinkStats) float64 { return float64(l.Full.Times) })},
	{"kith_peer_stalled_seconds_total", "How long something waited for the peer's credit.", counter, false,
		links(func(l *kith.LinkStats) float64 { return l.Stalled.Total.Seconds() })},
}

// show takes one sample, with the values of its labels.
type show func(name, help string, kind prometheus.ValueType, labels []string, v float64, values ...string)

// perType shows the types, and what they refused by reason.
func (m *Metrics) perType(s *snapshot, out show) {
	byLabel := map[string][]*kith.TypeStats{}
	for i := range s.stats.Types {
		t := &s.stats.Types[i]
		l := m.types.label(t.Name)
		byLabel[l] = append(byLabel[l], t)
	}
	for label, list := range byLabel {
		for _, f := range ofType {
			sum := 0.0
			for _, t := range list {
				sum += f.read(t)
			}
			out(f.name, f.help, f.kind, []string{"type"}, sum, label)
		}
		refused := map[string]uint64{}
		for _, t := range list {
			for reason, n := range t.Refused {
				refused[reason] += n
			}
		}
		for reason, n := range refused {
			out("kith_refused_total", "Messages to entities here that were refused, by reason.", counter,
				[]string{"type", "reason"}, float64(n), label, reason)
		}
	}
}

// perPeer shows the peers.
func (m *Metrics) perPeer(s *snapshot, out show) {
	peers := slices.Clone(s.stats.Transport.Links)
	sort.Slice(peers, func(i, k int) bool { return peers[i].Peer.Compare(peers[k].Peer) < 0 })
	byLabel := map[string][]*kith.PeerStats{}
	for i := range peers {
		p, label := &peers[i], peers[i].Peer.Addr.String()
		if _, is := byLabel[label]; !is && len(byLabel) >= m.cfg.Peers {
			label = Other
		}
		byLabel[label] = append(byLabel[label], p) // two incarnations at one address are one peer to a graph
	}
	for label, list := range byLabel {
		for _, f := range ofPeer {
			v := 0.0
			for _, p := range list {
				if n := f.read(p); f.largest {
					v = max(v, n)
				} else {
					v += n
				}
			}
			out(f.name, f.help, f.kind, []string{"peer"}, v, label)
		}
	}
}
