// Families: each metric by name, with what it reads of a snapshot.

package metrics

import (
	"time"

	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/stats"
)

// snapshot is what one scrape reads.
type snapshot struct {
	stats  kith.Stats
	view   *kith.View
	health kith.Health
	id     kith.ID
}

// outageShards is how many shards lived at members that do not answer or were lost.
func (s *snapshot) outageShards() (n int) {
	for i := range s.health.Outages {
		n += s.health.Outages[i].Shards
	}
	return n
}

// outageLeft is how long until the last of them may be served elsewhere.
func (s *snapshot) outageLeft() (left time.Duration) {
	for i := range s.health.Outages {
		if by := s.health.Outages[i].ServedBy; !by.IsZero() {
			left = max(left, time.Until(by))
		}
	}
	return left
}

// twins counts the addresses at which other clusters were met, or other sides of this one.
func (s *snapshot) twins(sides bool) (n int) {
	for i := range s.health.Duplicates {
		if (s.health.Duplicates[i].ClusterID == s.view.ClusterID) == sides {
			n++
		}
	}
	return n
}

// seats counts the seats of a tenure with a holder, or with this node as that.
func (s *snapshot) seats(own bool) (n int) {
	for _, seat := range s.stats.Suspension.Tenure.Seats {
		if seat.Holder == s.id || !own && !seat.Holder.IsZero() {
			n++
		}
	}
	return n
}

// put takes one value with its labels, in the order of the family's.
type put func(v float64, labels ...string)

// family is one metric.
type family struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	read       func(*snapshot, put)
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// one makes a family without labels.
func one(name, help string, kind prometheus.ValueType, read func(*snapshot) float64) family {
	return family{name, help, kind, nil, func(s *snapshot, p put) { p(read(s)) }}
}

// values makes a family with the store of values as its label.
func values(name, help string, kind prometheus.ValueType, read func(*kith.ValuesStats) float64) family {
	return family{name, help, kind, []string{"store"}, func(s *snapshot, p put) {
		for i := range s.stats.Values {
			p(read(&s.stats.Values[i]), s.stats.Values[i].Store)
		}
	}}
}

func yes(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// states are all that a node can be in.
var states = []kith.NodeState{kith.StateStarting, kith.StateWaiting, kith.StateReady, kith.StateSuspended,
	kith.StateLeaving, kith.StateEnded}

// statuses are all that a member can have while it is one.
var statuses = []kith.Status{kith.Joining, kith.WeaklyUp, kith.Up, kith.Leaving, kith.Exiting, kith.Down,
	kith.PreparingForShutdown, kith.ReadyForShutdown}

// ofNode are the families that read the whole node.
var ofNode = []family{
	{"kith_state", "1 for the state that the node is in.", gauge, []string{"state"}, func(s *snapshot, p put) {
		for _, st := range states {
			p(yes(s.health.State == st), st.String())
		}
	}},
	one("kith_ready", "1 while the node may be sent work.", gauge,
		func(s *snapshot) float64 { return yes(s.health.Ready()) }),
	one("kith_uptime_seconds", "Since the start of the node.", gauge,
		func(s *snapshot) float64 { return s.stats.Uptime.Seconds() }),
	{"kith_members", "Members as this node sees them, by status.", gauge, []string{"status"}, func(s *snapshot, p put) {
		n := map[kith.Status]int{}
		for i := range s.view.Members {
			n[s.view.Members[i].Status]++
		}
		for _, st := range statuses {
			p(float64(n[st]), st.String())
		}
	}},
	{"kith_info", "1, with the id and birth of the cluster that this node is a member of.", gauge,
		[]string{"cluster_id", "birth"}, func(s *snapshot, p put) {
			if s.view.ClusterID != 0 {
				p(1, fmt.Sprintf("%016x", s.view.ClusterID), strconv.FormatUint(s.view.Birth, 10))
			}
		}},
	one("kith_twins", "Addresses at which another cluster of this one's name was met lately.", gauge,
		func(s *snapshot) float64 { return float64(s.twins(false)) }),
	one("kith_splits", "Addresses where another side of this cluster was met lately, which has removed this one.", gauge,
		func(s *snapshot) float64 { return float64(s.twins(true)) }),
	one("kith_members_unreachable", "Members that some observer holds unreachable.", gauge,
		func(s *snapshot) float64 { return float64(len(s.view.Unreachable)) }),
	one("kith_outages", "Members that do not answer, or were lost, and whose shards wait.", gauge,
		func(s *snapshot) float64 { return float64(len(s.health.Outages)) }),
	one("kith_outage_shards", "Shards that lived there, as far as this node knew.", gauge,
		func(s *snapshot) float64 { return float64(s.outageShards()) }),
	one("kith_outage_seconds", "Until the last of them may be served elsewhere; 0: none, or nobody decides.", gauge,
		func(s *snapshot) float64 { return s.outageLeft().Seconds() }),
	one("kith_converged", "1 while this node can prove that all members have seen its state.", gauge,
		func(s *snapshot) float64 { return yes(s.view.Converged) }),
	one("kith_leader", "1 while this node takes itself for the leader.", gauge,
		func(s *snapshot) float64 { return yes(s.view.Leader == s.id) }),
	one("kith_step_age_seconds", "How long ago the control goroutine last stepped.", gauge,
		func(s *snapshot) float64 { return s.stats.StepAge.Seconds() }),
	one("kith_longest_stall_seconds", "For how long this process stood still at most, in the last minutes.", gauge,
		func(s *snapshot) float64 { return s.stats.LongestStall.Seconds() }),
	one("kith_session_held", "1 while the session lease of this node is held; without one nothing is handled here.", gauge,
		func(s *snapshot) float64 { return yes(s.stats.Suspension.Session.Held) }),
	one("kith_session_left_seconds", "For how long it is held without another answer of the store.", gauge,
		func(s *snapshot) float64 { return s.stats.Suspension.Session.Left.Seconds() }),
	total("kith_session_renewals_total", "Renewals of the session lease that the store confirmed.",
		func(s *kith.Stats) uint64 { return s.Suspension.Session.Renewed }),
	total("kith_session_failures_total", "Renewals that ended with an error, or too late.",
		func(s *kith.Stats) uint64 { return s.Suspension.Session.Failed }),
	total("kith_session_ran_out_total", "Times that the session lease ran out.",
		func(s *kith.Stats) uint64 { return s.Suspension.Session.RanOut }),
	total("kith_sessions_ended_total", "Session leases of lost members that this node has ended.",
		func(s *kith.Stats) uint64 { return s.Suspension.Session.Ended }),
	one("kith_tenure_held", "1 while the tenure of this node is held; without one nothing is handled here.", gauge,
		func(s *snapshot) float64 { return yes(s.stats.Suspension.Tenure.Held) }),
	one("kith_tenure_left_seconds", "For how long it is held without another grant.", gauge,
		func(s *snapshot) float64 { return s.stats.Suspension.Tenure.Left.Seconds() }),
	one("kith_tenure_least_seconds", "The least that was left of it at a renewal, since it was last gained.", gauge,
		func(s *snapshot) float64 { return s.stats.Suspension.Tenure.Least.Seconds() }),
	one("kith_tenure_seats", "Seats with a holder, by the list that this node goes by.", gauge,
		func(s *snapshot) float64 { return float64(s.seats(false)) }),
	one("kith_tenure_seat", "1 while this node holds a seat, and vouches for others.", gauge,
		func(s *snapshot) float64 { return float64(s.seats(true)) }),
	total("kith_tenure_ran_out_total", "Times that the tenure ran out.",
		func(s *kith.Stats) uint64 { return s.Suspension.Tenure.RanOut }),
	total("kith_tenure_refusals_total", "Questions for a grant that a holder answered with no.",
		func(s *kith.Stats) uint64 { return s.Suspension.Tenure.Refused }),
	total("kith_tenures_ended_total", "Tenures of lost members that this node has proven over.",
		func(s *kith.Stats) uint64 { return s.Suspension.Tenure.Ended }),
	total("kith_log_dropped_total", "Log records that found no room in front of a logger that stood still.",
		func(s *kith.Stats) uint64 { return s.LogDropped }),
	one("kith_log_stalled_seconds", "How long the logger has been busy with one record; 0: with none.", gauge,
		func(s *snapshot) float64 { return s.stats.LogStalled.Seconds() }),
	one("kith_suspended", "1 while no message is handled here.", gauge,
		func(s *snapshot) float64 { return yes(s.stats.Suspension.Now) }),
	one("kith_suspensions_total", "Times in which no message was handled here.", counter,
		func(s *snapshot) float64 { return float64(s.stats.Suspension.Count) }),
	one("kith_suspended_seconds_total", "How long no message was handled here.", counter,
		func(s *snapshot) float64 { return s.stats.Suspension.Total.Seconds() }),

	total("kith_messages_total", "Messages that loops and workers took, also to refuse them.",
		func(s *kith.Stats) uint64 { return s.Envelopes }),
	one("kith_asks", "Asks of this node that wait for their answers.", gauge,
		func(s *snapshot) float64 { return float64(s.stats.AsksUnderway) }),
	total("kith_asks_late_total", "Answers that came when nobody waited any more.",
		func(s *kith.Stats) uint64 { return s.AsksLate }),
	total("kith_replies_lost_total", "Answers that found no room on the way to the asker.",
		func(s *kith.Stats) uint64 { return s.RepliesLost }),
	total("kith_callback_panics_total", "Functions of the embedder, no handlers, that panicked.",
		func(s *kith.Stats) uint64 { return s.CallbackPanics }),
	total("kith_unregistered_total", "Messages refused because their type is not registered.",
		func(s *kith.Stats) uint64 { return s.Unregistered }),
	total("kith_unreported_refusals_total", "Refused messages whose sender was not told.",
		func(s *kith.Stats) uint64 { return s.UnreportedRefusals }),
	one("kith_busy_entities", "Blocking entities that have a goroutine.", gauge,
		func(s *snapshot) float64 { return float64(s.stats.BusyEntities) }),
	one("kith_mailbox_bytes", "Bytes that wait for Blocking entities.", gauge,
		func(s *snapshot) float64 { return float64(s.stats.MailboxBytes) }),
	one("kith_large_messages", "Large messages of this node that are not over.", gauge,
		func(s *snapshot) float64 { return float64(s.stats.LargeUnderway) }),
	total("kith_control_dropped_total", "Control frames that found the inbox full.",
		func(s *kith.Stats) uint64 { return s.ControlDropped }),
	total("kith_control_lost_total", "Control frames that could not be queued for their peer.",
		func(s *kith.Stats) uint64 { return s.ControlLost }),
	total("kith_invalid_frames_total", "Frames that peers sent and that made no sense.",
		func(s *kith.Stats) uint64 { return s.InvalidFrames }),

	{"kith_moves_total", "Moves of shards that this node led, by what became of them.", counter, []string{"outcome"},
		func(s *snapshot, p put) {
			m := &s.stats.Sharding.Moves
			p(float64(m.Begun), "begun")
			p(float64(m.Done), "done")
			p(float64(m.Aborted), "aborted")
			p(float64(m.Returned), "returned")
		}},
	{"kith_move_seconds_total", "How long the phases of moves that are done took in all, by phase.", counter,
		[]string{"phase"}, func(s *snapshot, p put) {
			p(s.stats.Sharding.Moves.Held.Sum.Seconds(), "held")
			p(s.stats.Sharding.Moves.Started.Sum.Seconds(), "started")
		}},
	one("kith_stale_orders_total", "Orders and reports of a lower term or fence that were refused.", counter,
		func(s *snapshot) float64 { return float64(s.stats.Sharding.Stale) }),
	one("kith_links_lost_total", "Links to members that broke and were refused when dialled again.", counter,
		func(s *snapshot) float64 { return float64(s.stats.Members.LinksLost) }),
	one("kith_late_steps_total", "Steps of this node that came late: it had stood still.", counter,
		func(s *snapshot) float64 { return float64(s.stats.Members.LateSteps) }),
}

// total makes a counter without labels.
func total(name, help string, read func(*kith.Stats) uint64) family {
	return one(name, help, counter, func(s *snapshot) float64 { return float64(read(&s.stats)) })
}

// lanes reads one figure of both lanes, in and out.
func lanes(read func(*stats.Lane) (in, out float64)) func(*snapshot, put) {
	return func(s *snapshot, p put) {
		t := &s.stats.Transport
		for name, l := range map[string]*stats.Lane{"control": &t.Control, "data": &t.Data} {
			in, out := read(l)
			p(in, name, "in")
			p(out, name, "out")
		}
	}
}

// ofTransport are the families of connections.
var ofTransport = []family{
	{"kith_connections", "Connections that stand, by lane and direction.", gauge, []string{"lane", "direction"},
		lanes(func(l *stats.Lane) (in, out float64) { return float64(l.In), float64(l.Out) })},
	{"kith_transport_bytes_total", "Bytes after the hello, by lane and direction.", counter, []string{"lane", "direction"},
		lanes(func(l *stats.Lane) (in, out float64) { return float64(l.BytesIn), float64(l.BytesOut) })},
	{"kith_transport_syscalls_total", "Reads and writes of sockets, by lane and direction.", counter,
		[]string{"lane", "direction"},
		lanes(func(l *stats.Lane) (in, out float64) { return float64(l.Reads), float64(l.Writes) })},
	one("kith_queued_bytes", "Bytes queued on links and control connections.", gauge,
		func(s *snapshot) float64 { return float64(s.stats.Transport.Queued) }),
	one("kith_link_buffer_bytes", "Memory of the buffers of all links.", gauge,
		func(s *snapshot) float64 { return float64(s.stats.Transport.BufferBytes) }),
	one("kith_link_buffers_full_total", "Buffers that were not to be had because their budget was used up.", counter,
		func(s *snapshot) float64 { return float64(s.stats.Transport.BuffersFull) }),
	total("kith_replaced_connections_total", "Silent connections that gave way to new ones.",
		func(s *kith.Stats) uint64 { return s.Transport.Replaced }),
	one("kith_lost_bytes_total", "Bytes of data sent and not consumed when their connection broke.", counter,
		func(s *snapshot) float64 { return float64(s.stats.Transport.LostBytes) }),
	one("kith_never_sent_bytes_total", "Bytes of data never sent.", counter,
		func(s *snapshot) float64 { return float64(s.stats.Transport.DroppedBytes) }),
	one("kith_dials_failed_total", "Attempts to connect that failed or were refused.", counter,
		func(s *snapshot) float64 { return float64(s.stats.Transport.DialsFailed) }),
	one("kith_silent_connections", "Connections on which nothing that was sent is acknowledged now.", gauge,
		func(s *snapshot) float64 { return float64(s.stats.Transport.Silent) }),
	{"kith_hellos_refused_total", "Hellos refused, by reason.", counter, []string{"reason"}, func(s *snapshot, p put) {
		for reason, n := range s.stats.Transport.Refused {
			p(float64(n), reason)
		}
	}},
	{"kith_certificate_expiry_timestamp_seconds", "When this node's certificate ends.", gauge, nil,
		func(s *snapshot, p put) {
			if at := s.stats.Transport.CertificateExpiry; !at.IsZero() {
				p(float64(at.Unix()))
			}
		}},
	{"kith_tls_certificate_info", "1 for the certificate that this node proves itself with.", gauge,
		[]string{"serial", "fingerprint"}, func(s *snapshot, p put) {
			if c := &s.stats.Transport.Credentials; c.Fingerprint != "" {
				p(1, c.Serial, c.Fingerprint)
			}
		}},
	{"kith_tls_authority_info", "1 for each authority that this node believes.", gauge, []string{"fingerprint"},
		func(s *snapshot, p put) {
			list := s.stats.Transport.Credentials.Authorities
			for _, sum := range list[:min(len(list), maxAuthorities)] {
				p(1, sum)
			}
		}},
	one("kith_tls_reloads_total", "Times that the credentials were loaded, the start included.", counter,
		func(s *snapshot) float64 { return float64(s.stats.Transport.TLSReloads) }),
	one("kith_tls_reloads_failed_total", "Times that they could not be: the old ones stay.", counter,
		func(s *snapshot) float64 { return float64(s.stats.Transport.TLSReloadsBad) }),
	one("kith_courier_outstanding", "Control messages that are not acknowledged yet.", gauge,
		func(s *snapshot) float64 { return float64(s.stats.Courier.Outstanding) }),
	one("kith_watches", "Watches of entities here on others.", gauge,
		func(s *snapshot) float64 { return float64(s.stats.Watches.Standing) }),
	one("kith_watchers", "Watches on entities here.", gauge,
		func(s *snapshot) float64 { return float64(s.stats.Watches.Watchers) }),
	one("kith_watch_bytes", "Bytes of watches.", gauge,
		func(s *snapshot) float64 { return float64(s.stats.Watches.Bytes) }),
	one("kith_watches_refused_total", "Watches that found no room.", counter,
		func(s *snapshot) float64 { return float64(s.stats.Watches.Refused) }),
	{"kith_watches_told_total", "Ends that entities here were to hear of, by cause.", counter, []string{"cause"},
		func(s *snapshot, p put) {
			for c, n := range s.stats.Watches.Told {
				p(float64(n), c)
			}
		}},
	one("kith_replicated_keys", "Replicated values that are open.", gauge,
		func(s *snapshot) float64 { return float64(s.stats.Replicated.Keys) }),
	one("kith_replicated_bytes", "Bytes of replicated values.", gauge,
		func(s *snapshot) float64 { return float64(s.stats.Replicated.Bytes) }),
	one("kith_replicated_waiting", "Updates and reads of replicated values that wait for members.", gauge,
		func(s *snapshot) float64 { return float64(s.stats.Replicated.Waiting) }),
	one("kith_replicated_rounds_total", "Digests of replicated values that were sent.", counter,
		func(s *snapshot) float64 { return float64(s.stats.Replicated.Rounds) }),
	one("kith_replicated_sent_bytes_total", "Bytes of frames about replicated values.", counter,
		func(s *snapshot) float64 { return float64(s.stats.Replicated.Sent) }),
	one("kith_replicated_refused_total", "What others sent of replicated values and was not taken.", counter,
		func(s *snapshot) float64 {
			r := &s.stats.Replicated
			return float64(r.Refused + r.Strangers + r.Dropped)
		}),
	values("kith_values_disks", "Disks of a store of values that this node knows; 0 while it has not begun.", gauge,
		func(v *kith.ValuesStats) float64 { return float64(v.Disks) }),
	values("kith_values_requests", "Reads and writes of values under way.", gauge,
		func(v *kith.ValuesStats) float64 { return float64(v.Requests) }),
	values("kith_values_keys", "Keys on this node's disk, deletions that are remembered among them.", gauge,
		func(v *kith.ValuesStats) float64 { return float64(v.Keys) }),
	values("kith_values_bytes", "Bytes on this node's disk.", gauge,
		func(v *kith.ValuesStats) float64 { return float64(v.Bytes) }),
	values("kith_values_lacking_groups", "Groups of keys of which this node has yet to read what others hold.", gauge,
		func(v *kith.ValuesStats) float64 { return float64(v.Lacking) }),
	values("kith_values_hints", "Writes that wait for other replicas.", gauge,
		func(v *kith.ValuesStats) float64 { return float64(v.Hints) }),
	values("kith_values_repairs_total", "Entries sent to replicas that answered a read without them.", counter,
		func(v *kith.ValuesStats) float64 { return float64(v.Repairs) }),
	values("kith_values_exchanged_total", "Entries taken from comparisons with other replicas.", counter,
		func(v *kith.ValuesStats) float64 { return float64(v.Exchanged) }),
	values("kith_values_conflicts_total", "Reads that found several values.", counter,
		func(v *kith.ValuesStats) float64 { return float64(v.Conflicted) }),
	values("kith_values_hints_dropped_total", "Hints dropped: too many, too old, or for a disk that is gone.", counter,
		func(v *kith.ValuesStats) float64 { return float64(v.HintsGone) }),
	values("kith_values_shards", "Shards of fenced records on this node's disk.", gauge,
		func(v *kith.ValuesStats) float64 { return float64(v.Shards) }),
	values("kith_values_entries_total", "Entries of fenced records that owners on this node have had decided.", counter,
		func(v *kith.ValuesStats) float64 { return float64(v.Entries) }),
	values("kith_values_commits_total", "Commits of fenced records in these entries.", counter,
		func(v *kith.ValuesStats) float64 { return float64(v.Commits) }),
	values("kith_values_copied_total", "Shards of fenced records that this disk has copied whole.", counter,
		func(v *kith.ValuesStats) float64 { return float64(v.Copied) }),
	values("kith_values_cared_total", "Shards of fenced records that nobody owned, claimed here to replace a disk.",
		counter,
		func(v *kith.ValuesStats) float64 { return float64(v.Cared) }),
	values("kith_values_needed", "Disks, and shards of fenced records, that need this disk, which leaves for good.", gauge,
		func(v *kith.ValuesStats) float64 { return float64(v.HandOn.Disks + v.HandOn.Shards) }),
	values("kith_values_failed_commits_total", "Commits that this node's disk refused.", counter,
		func(v *kith.ValuesStats) float64 { return float64(v.Failed) }),
	values("kith_values_damaged_total", "Entries of this node's disk that were found damaged.", counter,
		func(v *kith.ValuesStats) float64 { return float64(v.Damaged) }),
}
