// Versions of the protocol: which ones this build speaks, which one two nodes choose, since when a kind or lane exists.

package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// A node speaks its own version and those before, so that a cluster can be upgraded node by node. What changed from
// one version to the next stands in docs/contributing/wire.md.
const (
	Version       = 12 // of this build
	OldestVersion = 1  // that this build still speaks
)

// Versions is a range of versions that a node speaks. The zero value is none.
type Versions struct{ Newest, Oldest uint16 }

// Spoken returns the versions that this build speaks.
func Spoken() Versions { return Versions{Newest: Version, Oldest: OldestVersion} }

// Valid reports whether the range names at least one version; version zero does not exist.
func (v Versions) Valid() bool { return v.Oldest > 0 && v.Oldest <= v.Newest }

// Common returns the newest version that both ranges hold, false when there is none.
func (v Versions) Common(other Versions) (version uint16, ok bool) {
	version = min(v.Newest, other.Newest)
	return version, version >= max(v.Oldest, other.Oldest)
}

// String prints the range as refusals carry it: "2", or "1-2".
func (v Versions) String() string {
	if v.Oldest == v.Newest {
		return strconv.Itoa(int(v.Newest))
	}
	return fmt.Sprintf("%d-%d", v.Oldest, v.Newest)
}

// ParseVersions reads what String printed; a range that is not Valid is refused.
func ParseVersions(s string) (v Versions, ok bool) {
	oldest, newest, isRange := strings.Cut(s, "-")
	if !isRange {
		newest = oldest
	}
	lo, err := strconv.ParseUint(oldest, 10, 16)
	if err != nil {
		return Versions{}, false
	}
	hi, err := strconv.ParseUint(newest, 10, 16)
	if err != nil {
		return Versions{}, false
	}
	v = Versions{Newest: uint16(hi), Oldest: uint16(lo)}
	return v, v.Valid()
}

// kindSince holds the kinds that came after version 1. A peer that speaks an older version is never sent them.
var kindSince = [256]uint8{
	KindBulkBegin: 2, KindBulkChunk: 2, KindBulkAbort: 2, KindBulkGrant: 2, KindBulkWhole: 2, KindBulkOver: 2,
	KindSegment: 2, KindSegmentAck: 2, KindRefusals: 2,
	KindFormAsk: 3, KindFormAnswer: 3,
	KindFull: 4, KindRoom: 4,
	KindTaken:      4,
	KindMoveShards: 5, KindMoveShard: 5, KindMoveAborted: 5, KindShardsMoved: 5, KindHomesSince: 5, KindTransfer: 5,
	KindTransferAck: 5,
	KindHostKept:    5, KindMoveWanted: 5, KindMoveAnswer: 5, KindShardLoads: 5,
	KindSurvey: 5, KindSurveyAnswer: 5,
	KindTransferStates: 6,
	KindMoveCost:       7,
	KindReplicaDigest:  8, KindReplicaSums: 8, KindReplicaHeld: 8, KindReplicaDeltas: 8, KindReplicaPiece: 8,
	KindReplicaNext: 8,
	KindWatchHello:  9, KindWatches: 9,
	KindCancel: 10,
	KindParcel: 11,
	KindTenure: 12, KindShardStrains: 12,
}

// Since returns the version in which k came, zero when k is not known.
func (k Kind) Since() uint16 {
	if !k.Known() {
		return 0
	}
	return max(1, uint16(kindSince[k]))
}

// Since returns the version in which the lane came.
func (l Lane) Since() uint16 {
	if l <= LaneData {
		return 1
	}
	return 2
}
