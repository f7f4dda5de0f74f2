// Tests of the table of kinds: numbers, names and lanes are frozen, every row is whole.

package wire

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// frozenKinds is what peers, traces and flight records of other versions rely on. A row may be added, never changed.
var frozenKinds = map[Kind]string{
	1: "hello", 2: "hello-ack", 3: "hello-refuse", 4: "heartbeat", 5: "heartbeat-ack", 6: "credit", 7: "refused",
	8:  "refusals",
	16: "envelope", 17: "reply", 18: "marker", 25: "taken", 26: "cancel",
	19: "bulk-begin", 20: "bulk-chunk", 21: "bulk-abort", 22: "bulk-grant", 23: "bulk-whole", 24: "bulk-over",
	32: "join-probe", 33: "join-probe-ack", 34: "join-probe-nak", 35: "join", 36: "welcome", 37: "join-refused",
	38: "status", 39: "version", 40: "seen", 41: "gossip", 42: "exit-done", 43: "removed-note",
	44: "delta",
	64: "register", 65: "register-ack", 66: "register-nak", 67: "ask-homes", 68: "homes", 69: "host-shards",
	70: "shards-started", 71: "drain-region", 72: "stop-shards", 73: "shards-stopped", 74: "homes-gone",
	75: "homes-gone-ack", 76: "report-wanted", 77: "drain-done",
	78: "leave-notice", 79: "leave-notice-ack", 80: "confirm-owner", 81: "owner-confirmed",
	96: "segment", 97: "segment-ack",
	128: "replica-digest", 129: "replica-sums", 130: "replica-held", 131: "replica-deltas", 132: "replica-piece",
	133: "replica-next",
	144: "watch-hello", 145: "watches",
	160: "parcel",
}

// TestKindsFrozen holds numbers, names, rooms and lanes.
func TestKindsFrozen(t *testing.T) {
	names := map[string]Kind{}
	for n := range 256 {
		k := Kind(n)
		if frozen, ok := frozenKinds[k]; ok {
			require.Equal(t, frozen, k.String(), "kind %d", n)
		}
		if !k.Known() {
			require.NotContains(t, frozenKinds, k)
			require.Zero(t, k.MaxBody())
			require.Zero(t, k.Owner())
			require.Regexp(t, `^kind-\d+$`, k.String())
			continue
		}
		require.NotContains(t, names, k.String(), "two kinds of one name")
		names[k.String()] = k
		require.Positive(t, k.MaxBody(), k)
		require.LessOrEqual(t, k.MaxBody(), MaxFrameLimit, k)
		want := OwnerSurvey
		switch {
		case k < 16:
			want = OwnerConnection
		case k < 32:
			want = OwnerData
		case k < 64:
			want = OwnerMembership
		case k < 96:
			want = OwnerShard
		case k < 112:
			want = OwnerCourier
		case k >= 176:
			want = OwnerTenure
		case k >= 160:
			want = OwnerParcel
		case k >= 144:
			want = OwnerWatch
		case k >= 128:
			want = OwnerReplica
		}
		require.Equal(t, want, k.Owner())
		require.Equal(t, want == OwnerData && k != KindTaken || want == OwnerParcel, k.Lane() != LaneControl, "lane of %s", k)
		require.Equal(t, k >= KindBulkBegin && k <= KindBulkOver, k.Lane() == LaneBulk, "lane of %s", k)
	}
	require.GreaterOrEqual(t, len(names), len(frozenKinds))
	require.Equal(t, "control data bulk", fmt.Sprint(LaneControl, " ", LaneData, " ", LaneBulk))
}

// TestFixedBodiesMatchTheirBound holds that the bound of a kind of fixed size is that size.
func TestFixedBodiesMatchTheirBound(t *testing.T) {
	for k, body := range map[Kind][]byte{
		KindHeartbeat:    AppendHeartbeat(nil, Heartbeat{}),
		KindHeartbeatAck: AppendHeartbeatAck(nil, HeartbeatAck{}),
		KindCredit:       AppendCredit(nil, Credit{}),
		KindFull:         AppendFull(nil, Full{}, 0),
		KindRoom:         AppendRoom(nil, Full{}),
		KindMarker:       AppendMarker(nil, Marker{}),
		KindCancel:       cancelBody(7),
		KindBulkBegin:    AppendBulkBegin(nil, &BulkBegin{}),
		KindBulkGrant:    AppendBulkGrant(nil, BulkGrant{}),
		KindBulkWhole:    AppendBulkNumber(nil, 0),
		KindBulkAbort:    AppendBulkNumber(nil, 0),
		KindBulkOver:     AppendBulkOver(nil, BulkOver{}),
	} {
		require.Equal(t, len(body), k.MaxBody(), k)
	}
}
