// The one table of frame kinds: number, name, lane and largest body. Numbers are never reused.

package wire

import "fmt"

// Kind names what a frame carries. Its number stands on the wire and in recorded traces.
type Kind uint8

// The frame kinds, in ranges by the room that owns their meaning.
const (
	// Connection (transport).
	KindHello        Kind = 1 // first frame of every connection, both lanes
	KindHelloAck     Kind = 2 // the acceptor's answer: accepted
	KindHelloRefuse  Kind = 3 // the acceptor's answer: refused, with reason and both values
	KindHeartbeat    Kind = 4 // probe; answered by the receiver's loop on the same connection
	KindHeartbeatAck Kind = 5 // answer, with the age of the answering node's last control step
	KindCredit       Kind = 6 // running total of bytes consumed on one data connection
	KindRefused      Kind = 7 // envelopes refused, aggregated: type, shard, fence, reason, count, sample ids

	// Data plane (driver, flow, entity).
	KindEnvelope Kind = 16 // one message to one entity
	KindReply    Kind = 17 // the answer to an ask, or the reason why there is none (aux = status)
	KindMarker   Kind = 18 // behind the last envelope of a shard before a move; reserved for hand-off

	// Membership.
	KindJoinProbe    Kind = 32 // asks a contact whether it is in a cluster (InitJoin)
	KindJoinProbeAck Kind = 33 // it is: cluster id, birth
	KindJoinProbeNak Kind = 34 // it is not in a cluster (yet)
	KindJoin         Kind = 35 // asks to be admitted, with a nonce
	KindWelcome      Kind = 36 // admitted: nonce echoed, the full state
	KindJoinRefused  Kind = 37 // refused, with the reason
	KindStatus       Kind = 38 // at most 64 bytes: digest of the version, digest of the seen set
	KindVersion      Kind = 39 // the vector clock, when digests differ
	KindSeen         Kind = 40 // seen bitmap, when only the seen sets differ
	KindGossip       Kind = 41 // the full state, gzipped above a size
	KindExitDone     Kind = 42 // an exiting member has finished what it had to do
	KindRemovedNote  Kind = 43 // you were removed: who, when, evidence

	// Sharding.
	KindRegister      Kind = 64 // region to coordinator: type settings, owned shards with fences (its report)
	KindRegisterAck   Kind = 65 // coordinator to region: term accepted, known homes
	KindRegisterNak   Kind = 66 // refused: a higher term is known, or settings differ (both values)
	KindAskHomes      Kind = 67 // region to coordinator: homes wanted of these shards
	KindHomes         Kind = 68 // coordinator to region: homes with fences
	KindHostShards    Kind = 69 // coordinator to owner: host these shards under these fences
	KindShardsStarted Kind = 70 // owner to coordinator: they live here
	KindDrainRegion   Kind = 71 // region to coordinator: I leave, take my shards back
	KindStopShards    Kind = 72 // coordinator to owner: stop these shards
	KindShardsStopped Kind = 73 // owner to coordinator: these shards and all their entities have stopped
	KindHomesGone     Kind = 74 // coordinator to regions told: these homes no longer hold
	KindHomesGoneAck  Kind = 75 // region to coordinator: forgotten
	KindReportWanted  Kind = 76 // new coordinator to role members: report what you own under this type
	KindDrainDone     Kind = 77 // coordinator to region: nothing of yours is left
)

// Lane is the connection a frame travels on.
type Lane uint8

// The lanes of a peer.
const (
	LaneControl Lane = 0 // membership, sharding, heartbeats, credit
	LaneData    Lane = 1 // envelopes, replies, markers
)

// String names the lane.
func (l Lane) String() string {
	if l == LaneData {
		return "data"
	}
	return "control"
}

type kindInfo struct {
	name string
	lane Lane
}

var kinds = [256]kindInfo{
	KindHello: {"hello", LaneControl}, KindHelloAck: {"hello-ack", LaneControl},
	KindHelloRefuse: {"hello-refuse", LaneControl}, KindHeartbeat: {"heartbeat", LaneControl},
	KindHeartbeatAck: {"heartbeat-ack", LaneControl}, KindCredit: {"credit", LaneControl},
	KindRefused:  {"refused", LaneControl},
	KindEnvelope: {"envelope", LaneData}, KindReply: {"reply", LaneData}, KindMarker: {"marker", LaneData},
	KindJoinProbe: {"join-probe", LaneControl}, KindJoinProbeAck: {"join-probe-ack", LaneControl},
	KindJoinProbeNak: {"join-probe-nak", LaneControl}, KindJoin: {"join", LaneControl},
	KindWelcome: {"welcome", LaneControl}, KindJoinRefused: {"join-refused", LaneControl},
	KindStatus: {"status", LaneControl}, KindVersion: {"version", LaneControl}, KindSeen: {"seen", LaneControl},
	KindGossip: {"gossip", LaneControl}, KindExitDone: {"exit-done", LaneControl},
	KindRemovedNote: {"removed-note", LaneControl},
	KindRegister:    {"register", LaneControl}, KindRegisterAck: {"register-ack", LaneControl},
	KindRegisterNak: {"register-nak", LaneControl}, KindAskHomes: {"ask-homes", LaneControl},
	KindHomes: {"homes", LaneControl}, KindHostShards: {"host-shards", LaneControl},
	KindShardsStarted: {"shards-started", LaneControl}, KindDrainRegion: {"drain-region", LaneControl},
	KindStopShards: {"stop-shards", LaneControl}, KindShardsStopped: {"shards-stopped", LaneControl},
	KindHomesGone: {"homes-gone", LaneControl}, KindHomesGoneAck: {"homes-gone-ack", LaneControl},
	KindReportWanted: {"report-wanted", LaneControl}, KindDrainDone: {"drain-done", LaneControl},
}

// Known reports whether k stands in the table.
func (k Kind) Known() bool { return kinds[k].name != "" }

// Lane returns the lane on which frames of kind k travel. An unknown kind travels on none; the caller checks Known.
func (k Kind) Lane() Lane { return kinds[k].lane }

// Room says which room owns the meaning of k: "connection", "data", "membership", "shard" or "".
func (k Kind) Room() string {
	switch {
	case !k.Known():
		return ""
	case k < 16:
		return "connection"
	case k < 32:
		return "data"
	case k < 64:
		return "membership"
	}
	return "shard"
}

// String names the kind as traces print it.
func (k Kind) String() string {
	if s := kinds[k].name; s != "" {
		return s
	}
	return fmt.Sprintf("kind-%d", uint8(k))
}
