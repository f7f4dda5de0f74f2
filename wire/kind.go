// The one table of frame kinds: number, name, lane and largest body. Numbers are never reused.

package wire

import (
	"fmt"

	"github.com/kith-io/kith/internal/base/enum"
)

// Kind names what a frame carries. Its number stands on the wire and in recorded traces.
type Kind uint8

// The frame kinds, in ranges by the room that owns their meaning.
const (
	// Connection (transport).
	KindHello        Kind = 1  // first frame of every connection, both lanes
	KindHelloAck     Kind = 2  // the acceptor's answer: accepted
	KindHelloRefuse  Kind = 3  // the acceptor's answer: refused, with reason and both values
	KindHeartbeat    Kind = 4  // probe; answered by the receiver's loop on the same connection
	KindHeartbeatAck Kind = 5  // answer, with the age of the answering node's last control step
	KindCredit       Kind = 6  // running total of bytes consumed on one data connection
	KindRefused      Kind = 7  // envelopes refused, aggregated: type, shard, fence, reason, count, sample ids
	KindRefusals     Kind = 8  // the same with the limit of the bound that is reached; since version 2
	KindFull         Kind = 9  // back on a data connection: an entity that its sender waits for is full; since version 4
	KindRoom         Kind = 10 // back on it: there is room again; since version 4

	// Data plane (driver, flow, entity).
	KindEnvelope Kind = 16 // one message to one entity
	KindReply    Kind = 17 // the answer to an ask, or the reason why there is none (aux = status)
	KindMarker   Kind = 18 // behind the last envelope of a shard before a move; sent since version 5

	// Large messages, on the bulk connection. The last three go back on it.
	KindBulkBegin Kind = 19 // a large message: number, size, receiver
	KindBulkChunk Kind = 20 // the next part of its payload
	KindBulkAbort Kind = 21 // its sender gives it up
	KindBulkGrant Kind = 22 // how much of it may be sent
	KindBulkWhole Kind = 23 // all of it is there
	KindBulkOver  Kind = 24 // it was taken, or why not

	KindCancel Kind = 26 // behind an ask: the asker has given up; since version 10

	KindTaken Kind = 25 // how many tells were taken of data connections that are over; since version 4, in segments

	// Membership.
	KindJoinProbe    Kind = 32 // asks a contact whether it is in a cluster (InitJoin)
	KindJoinProbeAck Kind = 33 // it is: cluster id, birth
	KindJoinProbeNak Kind = 34 // it is not in a cluster (yet)
	KindJoin         Kind = 35 // asks to be admitted, with a nonce
	KindWelcome      Kind = 36 // admitted: nonce echoed, then as gossip
	KindJoinRefused  Kind = 37 // refused, with the reason
	KindStatus       Kind = 38 // 32 bytes: the receiver, cluster, digests of version and seen set
	KindVersion      Kind = 39 // its clock, when versions differ; or asks for the state, naming its own
	KindSeen         Kind = 40 // which members have seen this version, as bits, when only that differs
	KindGossip       Kind = 41 // a whole version: digest, seen set, columns packed and gzipped once
	KindExitDone     Kind = 42 // an exiting member has finished what it had to do
	KindRemovedNote  Kind = 43 // you were removed: by which node, when, evidence
	KindDelta        Kind = 44 // what turns one version, named, into another, instead of all of it
	KindFormAsk      Kind = 46 // asks one that is in no cluster what it remembers, and for its pledge; since version 3
	KindFormAnswer   Kind = 47 // what it remembers, and which node it has pledged itself to; since version 3

	// Sharding.
	KindRegister       Kind = 64 // region to coordinator: type settings, owned shards with fences (its report)
	KindRegisterAck    Kind = 65 // coordinator to region: term accepted, known homes
	KindRegisterNak    Kind = 66 // refused: a higher term is known, or settings differ (both values)
	KindAskHomes       Kind = 67 // region to coordinator: homes wanted of these shards
	KindHomes          Kind = 68 // coordinator to region: homes with fences
	KindHostShards     Kind = 69 // coordinator to owner: host these shards under these fences
	KindShardsStarted  Kind = 70 // owner to coordinator: they live here
	KindDrainRegion    Kind = 71 // region to coordinator: I leave, take my shards back
	KindStopShards     Kind = 72 // coordinator to owner: stop these shards
	KindShardsStopped  Kind = 73 // owner to coordinator: these shards and all their entities have stopped
	KindHomesGone      Kind = 74 // coordinator to regions that know them: these homes no longer hold
	KindHomesGoneAck   Kind = 75 // region to coordinator: forgotten
	KindReportWanted   Kind = 76 // new coordinator to role members: report what you own under this type
	KindDrainDone      Kind = 77 // coordinator to region: nothing of yours is left
	KindLeaveNotice    Kind = 78 // leaver to all: I host nothing of any type and never will again
	KindLeaveNoticeAck Kind = 79 // heard
	KindConfirmOwner   Kind = 80 // suspended node to coordinators and members: am I a member still, and owner of these
	KindConfirmAck     Kind = 81 // you are a member, and own these shards but for some
	KindMoveShards     Kind = 82 // coordinator to their regions: these shards move, park and mark; since version 5
	KindMoveShard      Kind = 83 // coordinator to owner: this shard moves, and which nodes mark; since version 5
	KindMoveAborted    Kind = 84 // owner to coordinator: these moves are given up; since version 5
	KindShardsMoved    Kind = 85 // owner to coordinator: stopped, and the node that has what is left; since version 5
	KindHomesSince     Kind = 86 // homes, and the newest move that they take account of; since version 5
	KindTransfer       Kind = 87 // owner to the next one: a part of what was not worked off; since version 5
	KindTransferAck    Kind = 88 // how much of it is there, or that it is not taken; since version 5
	KindHostKept       Kind = 89 // host-shards, with the fences of the rest to be taken up; since version 5
	KindMoveWanted     Kind = 90 // member to coordinator: move this shard; since version 5
	KindMoveAnswer     Kind = 91 // it has begun, or why not; since version 5
	KindShardLoads     Kind = 92 // region to coordinator: what its shards cost, of types that ask for it; since version 5
	KindTransferStates Kind = 93 // transfer of what has states of entities in it; since version 6
	KindMoveCost       Kind = 94 // owner to coordinator: what a move handed over, and how long that took; since version 7
	KindShardStrains   Kind = 95 // shard-loads, with mailboxes, and how strained the node is; since version 12

	// Courier: reliable delivery of control messages between two incarnations.
	KindSegment    Kind = 96 // one numbered message, with an acknowledgement
	KindSegmentAck Kind = 97 // an acknowledgement alone

	KindSurvey       Kind = 112 // asks a member what it has of a type; since version 5
	KindSurveyAnswer Kind = 113 // its shards, entities and moves under way; since version 5

	// Replicated values.
	KindReplicaDigest Kind = 128 // a digest of all that its sender holds; since version 8
	KindReplicaSums   Kind = 129 // another one was there: digests of 256 parts; since version 8
	KindReplicaHeld   Kind = 130 // which updates of some values its sender holds, and what it wants; since version 8
	KindReplicaDeltas Kind = 131 // what updates changed; since version 8
	KindReplicaPiece  Kind = 132 // a part of a whole value; since version 8
	KindReplicaNext   Kind = 133 // asks for the next part; since version 8

	// Watches.
	KindWatchHello Kind = 144 // asks whether its receiver knows of watches, or says that its sender does; since version 9
	KindWatches    Kind = 145 // watches that begin and end, what became of others; since version 9, in segments

	// Parcels.
	KindParcel Kind = 160 // a piece of a message to a service of the receiver, not to an entity; since version 11

	// Tenure: between owners, holders of seats and seekers.
	KindTenure Kind = 176 // a question, a grant or a word; since version 12
)

// Lane is the connection a frame travels on.
type Lane uint8

// The lanes of a peer.
const (
	LaneControl Lane = 0 // membership, sharding, heartbeats, credit
	LaneData    Lane = 1 // envelopes, replies, markers
	LaneBulk    Lane = 2 // large messages in chunks, and the answers to them
)

var laneNames = []string{LaneControl: "control", LaneData: "data", LaneBulk: "bulk"}

// String names the lane.
func (l Lane) String() string { return enum.Name(laneNames, l, "lane") }

// MarshalText gives the name.
func (l Lane) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (l *Lane) UnmarshalText(text []byte) error { return enum.Parse(l, text) }

// Largest bodies in bytes, for kinds with a size that does not depend on the cluster.
const (
	maxHello = 64 << 10      // what an unauthenticated peer may make us hold
	maxAny   = MaxFrameLimit // bounded by the connection's own limit

	maxReplica = 13 << 10 // a part of a value, with its names
	maxTenure  = 1 << 10  // two identities, numbers
)

// kindInfo is one row of the table. most is the largest body in bytes, at least one, so that a row that is not there
// shows by its zero.
type kindInfo struct {
	name string
	lane Lane
	most uint32
}

var kinds = [256]kindInfo{
	KindHello:          {"hello", LaneControl, maxHello},
	KindHelloAck:       {"hello-ack", LaneControl, maxHello},
	KindHelloRefuse:    {"hello-refuse", LaneControl, maxHello},
	KindHeartbeat:      {"heartbeat", LaneControl, 16},
	KindHeartbeatAck:   {"heartbeat-ack", LaneControl, 24},
	KindCredit:         {"credit", LaneControl, 14},
	KindRefused:        {"refused", LaneControl, maxAny},
	KindRefusals:       {"refusals", LaneControl, maxAny},
	KindFull:           {"mailbox-full", LaneControl, 26},
	KindRoom:           {"has-room", LaneControl, 18},
	KindEnvelope:       {"envelope", LaneData, maxAny},
	KindReply:          {"reply", LaneData, maxAny},
	KindMarker:         {"marker", LaneData, 16},
	KindCancel:         {"cancel", LaneData, 8},
	KindBulkBegin:      {"bulk-begin", LaneBulk, 33},
	KindBulkChunk:      {"bulk-chunk", LaneBulk, 4 + MaxBulkChunk},
	KindBulkAbort:      {"bulk-abort", LaneBulk, 4},
	KindBulkGrant:      {"bulk-grant", LaneBulk, 8},
	KindBulkWhole:      {"bulk-whole", LaneBulk, 4},
	KindBulkOver:       {"bulk-over", LaneBulk, 14},
	KindTaken:          {"taken", LaneControl, maxAny},
	KindJoinProbe:      {"join-probe", LaneControl, maxAny},
	KindJoinProbeAck:   {"join-probe-ack", LaneControl, maxAny},
	KindJoinProbeNak:   {"join-probe-nak", LaneControl, maxAny},
	KindJoin:           {"join", LaneControl, maxAny},
	KindWelcome:        {"welcome", LaneControl, maxAny},
	KindJoinRefused:    {"join-refused", LaneControl, maxAny},
	KindStatus:         {"status", LaneControl, maxAny},
	KindVersion:        {"version", LaneControl, maxAny},
	KindSeen:           {"seen", LaneControl, maxAny},
	KindGossip:         {"gossip", LaneControl, maxAny},
	KindExitDone:       {"exit-done", LaneControl, maxAny},
	KindRemovedNote:    {"removed-note", LaneControl, maxAny},
	KindDelta:          {"delta", LaneControl, maxAny},
	KindFormAsk:        {"form-ask", LaneControl, 17},
	KindFormAnswer:     {"form-answer", LaneControl, maxAny},
	KindRegister:       {"register", LaneControl, maxAny},
	KindRegisterAck:    {"register-ack", LaneControl, maxAny},
	KindRegisterNak:    {"register-nak", LaneControl, maxAny},
	KindAskHomes:       {"ask-homes", LaneControl, maxAny},
	KindHomes:          {"homes", LaneControl, maxAny},
	KindHostShards:     {"host-shards", LaneControl, maxAny},
	KindShardsStarted:  {"shards-started", LaneControl, maxAny},
	KindDrainRegion:    {"drain-region", LaneControl, maxAny},
	KindStopShards:     {"stop-shards", LaneControl, maxAny},
	KindShardsStopped:  {"shards-stopped", LaneControl, maxAny},
	KindHomesGone:      {"homes-gone", LaneControl, maxAny},
	KindHomesGoneAck:   {"homes-gone-ack", LaneControl, maxAny},
	KindReportWanted:   {"report-wanted", LaneControl, maxAny},
	KindDrainDone:      {"drain-done", LaneControl, maxAny},
	KindLeaveNotice:    {"leave-notice", LaneControl, maxAny},
	KindLeaveNoticeAck: {"leave-notice-ack", LaneControl, maxAny},
	KindConfirmOwner:   {"confirm-owner", LaneControl, maxAny},
	KindConfirmAck:     {"owner-confirmed", LaneControl, maxAny},
	KindMoveShards:     {"move-shards", LaneControl, maxAny},
	KindMoveShard:      {"move-shard", LaneControl, maxAny},
	KindMoveAborted:    {"move-aborted", LaneControl, maxAny},
	KindShardsMoved:    {"shards-moved", LaneControl, maxAny},
	KindHomesSince:     {"homes-since", LaneControl, maxAny},
	KindTransfer:       {"transfer", LaneControl, maxAny},
	KindTransferStates: {"transfer-states", LaneControl, maxAny},
	KindTransferAck:    {"transfer-ack", LaneControl, maxAny},
	KindMoveCost:       {"move-cost", LaneControl, maxAny},
	KindHostKept:       {"host-kept", LaneControl, maxAny},
	KindMoveWanted:     {"move-wanted", LaneControl, maxAny},
	KindMoveAnswer:     {"move-answer", LaneControl, maxAny},
	KindShardLoads:     {"shard-loads", LaneControl, maxAny},
	KindShardStrains:   {"shard-strains", LaneControl, maxAny},
	KindSegment:        {"segment", LaneControl, maxAny},
	KindSegmentAck:     {"segment-ack", LaneControl, 25},
	KindSurvey:         {"survey", LaneControl, 22},
	KindSurveyAnswer:   {"survey-answer", LaneControl, maxAny},
	KindReplicaDigest:  {"replica-digest", LaneControl, 8},
	KindReplicaSums:    {"replica-sums", LaneControl, 2048},
	KindReplicaHeld:    {"replica-held", LaneControl, maxAny},
	KindReplicaDeltas:  {"replica-deltas", LaneControl, maxAny},
	KindReplicaPiece:   {"replica-piece", LaneControl, maxReplica},
	KindReplicaNext:    {"replica-next", LaneControl, 18},
	KindWatchHello:     {"watch-hello", LaneControl, 1},
	KindWatches:        {"watches", LaneControl, maxAny},
	KindParcel:         {"parcel", LaneData, parcelHead + MaxParcelPiece},
	KindTenure:         {"tenure", LaneControl, maxTenure},
}

// Known reports whether k stands in the table.
func (k Kind) Known() bool { return kinds[k].name != "" }

// Lane returns the lane on which frames of kind k travel. An unknown kind travels on none; the caller checks Known.
func (k Kind) Lane() Lane { return kinds[k].lane }

// Owner names the part of a node that gives a kind its meaning.
type Owner uint8

// The owners of kinds.
const (
	OwnerNone       Owner = iota // nobody: the kind is not known
	OwnerConnection              // the transport: hello, heartbeats, credit
	OwnerData                    // messages of users and what is said about them
	OwnerMembership
	OwnerShard
	OwnerCourier // reliable delivery of control messages
	OwnerSurvey
	OwnerReplica
	OwnerWatch
	OwnerParcel
	OwnerTenure // what holders of seats say of owners
)

var ownerNames = []string{OwnerNone: "none", OwnerConnection: "connection", OwnerData: "data",
	OwnerMembership: "membership", OwnerShard: "shard", OwnerCourier: "courier", OwnerSurvey: "survey",
	OwnerReplica: "replica", OwnerWatch: "watch", OwnerParcel: "parcel",
	OwnerTenure: "tenure"}

// String names the owner, such as membership.
func (o Owner) String() string { return enum.Name(ownerNames, o, "owner") }

// MarshalText gives the name.
func (o Owner) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText gives.
func (o *Owner) UnmarshalText(text []byte) error { return enum.Parse(o, text) }

// Owner returns the part of the node that gives k its meaning, by the block of numbers that k lies in; OwnerNone when k
// is not known.
func (k Kind) Owner() Owner {
	switch {
	case !k.Known():
		return OwnerNone
	case k < 16:
		return OwnerConnection
	case k < 32:
		return OwnerData
	case k < 64:
		return OwnerMembership
	case k < 96:
		return OwnerShard
	case k < 112:
		return OwnerCourier
	case k < 128:
		return OwnerSurvey
	case k < 144:
		return OwnerReplica
	case k < 160:
		return OwnerWatch
	case k < 176:
		return OwnerParcel
	}
	return OwnerTenure
}

// MaxBody returns the largest body of a frame of kind k in bytes, 0 when k is not known; the limit of its connection
// may be lower.
func (k Kind) MaxBody() int { return int(kinds[k].most) }

// String names the kind as traces print it.
func (k Kind) String() string {
	if s := kinds[k].name; s != "" {
		return s
	}
	return fmt.Sprintf("kind-%d", uint8(k))
}

// MarshalText gives the name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (k *Kind) UnmarshalText(text []byte) error { return enum.Parse(k, text) }
