// Tests of what records look like.

package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

func TestRecordsHoldNames(t *testing.T) {
	var buf bytes.Buffer
	id := peer.ID{Addr: peer.MustAddr("127.0.0.1:7355"), Inc: 0xab}
	l, q := logs.Behind(slog.New(slog.NewJSONHandler(&buf, nil)))
	l = l.With("node", id).WithGroup("g")
	l.Warn("text", "peer", id, "lane", wire.LaneData, "status", membership.Up, "error", errors.New("why"), "count", 3)
	require.True(t, q.Flush(time.Minute))
	var m map[string]any
	require.NoError(t, json.Unmarshal(buf.Bytes(), &m))
	require.Equal(t, "127.0.0.1:7355#ab", m["node"])
	require.Equal(t, map[string]any{"peer": "127.0.0.1:7355#ab", "lane": "data", "status": membership.Up.String(),
		"error": "why", "count": 3.0}, m["g"])
}

// kept is a slog handler that keeps records.
type kept struct {
	slog.Handler
	list []slog.Record
}

func (k *kept) Enabled(context.Context, slog.Level) bool { return true }
func (k *kept) Handle(_ context.Context, r slog.Record) error {
	k.list = append(k.list, r)
	return nil
}

// only returns the one record that a function logs, with its attributes as text.
func only(t *testing.T, do func(*slog.Logger)) (level slog.Level, message string, attrs map[string]string) {
	k := &kept{}
	l, q := logs.Behind(slog.New(k))
	do(l)
	require.True(t, q.Flush(time.Minute))
	require.Len(t, k.list, 1)
	attrs = map[string]string{}
	k.list[0].Attrs(func(a slog.Attr) bool { attrs[a.Key] = a.Value.String(); return true })
	return k.list[0].Level, k.list[0].Message, attrs
}

// A member that was none before has no earlier status in its record; one that was has it (MEM-3).
func TestLogOfAMember(t *testing.T) {
	v := &membership.View{Seq: 7}
	for previous, want := range map[membership.Status]string{membership.Removed: "", membership.Joining: "joining"} {
		e := membership.Event{Kind: membership.MemberUp, Previous: previous}
		_, message, attrs := only(t, func(l *slog.Logger) { logEvent(l, &e, v) })
		require.Equal(t, "member changed", message)
		require.Equal(t, want, attrs["was"])
	}
}

// A shard that comes back since nobody takes what is left of it is a warning with the reason; that the move is over is
// logged as of any (SHD-12).
func TestLogOfAMoveThatIsNotTaken(t *testing.T) {
	e := shard.Event{Kind: shard.MoveUntaken, Type: 7, Shard: 3, Number: shard.Number{Term: 2, Seq: 9},
		Err: shard.ErrNotTaken}
	for kind, want := range map[shard.EventKind][]string{
		shard.MoveUntaken: {"WARN", "a shard that was to move stays: what is left of it is not taken", "2.9",
			shard.ErrNotTaken.Error()},
		shard.MoveReturned: {"DEBUG", "move returned", "9", ""},
	} {
		e.Kind = kind
		level, message, attrs := only(t, func(l *slog.Logger) { logShard(l, time.Time{}, &regionTable{}, &e) })
		require.Equal(t, want, []string{level.String(), message, attrs["move"], attrs["error"]})
	}
}

// Ids of clusters have one notation in all records, and the record of a twin says what stores make of the two (JOIN-1).
func TestLogOfOtherClusters(t *testing.T) {
	at := peer.MustAddr("127.0.0.1:7355")
	v := &membership.View{ClusterID: 0xab, Birth: 9}
	twin := membership.Event{Kind: membership.DuplicateCluster,
		Duplicate: &membership.Duplicate{ClusterID: 0xcd, Birth: 8, Via: at}, Detail: "stores"}
	level, _, attrs := only(t, func(l *slog.Logger) { logEvent(l, &twin, v) })
	require.Equal(t, slog.LevelError, level)
	require.Equal(t, []string{"00000000000000cd", "00000000000000ab", "stores"},
		[]string{attrs["cluster"], attrs["ours"], attrs["why"]})
	split := membership.Event{Kind: membership.SplitCluster, Duplicate: twin.Duplicate}
	_, _, attrs = only(t, func(l *slog.Logger) { logEvent(l, &split, v) })
	require.Equal(t, "00000000000000cd", attrs["cluster"])
	refused := &hello.RefusedError{Reason: hello.RefusedCluster, Key: "cluster id", Ours: "ab", Theirs: "cd/8"}
	level, _, attrs = only(t, func(l *slog.Logger) { logRefusal(l, refused) })
	require.Equal(t, slog.LevelError, level)
	require.Equal(t, []string{"00000000000000ab", "00000000000000cd", "8"},
		[]string{attrs["ours"], attrs["theirs"], attrs["their_birth"]})
}

// Another incarnation at the address of a member is no error; settings that differ are (CARD-3).
func TestLogOfRefusals(t *testing.T) {
	for reason, want := range map[hello.Refusal]slog.Level{hello.RefusedIncarnation: slog.LevelInfo,
		hello.RefusedSetting: slog.LevelError} {
		level, _, _ := only(t, func(l *slog.Logger) { logRefusal(l, &hello.RefusedError{Reason: reason}) })
		require.Equal(t, want, level)
	}
}

// What waits for the takeover time of a lost member is said, with until when (SHD-4).
func TestLogOfShardsThatWait(t *testing.T) {
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for shards, want := range map[int]string{0: "unknown", 3: "3"} {
		e := shard.Event{Kind: shard.ShardsWait, Type: route.TypeOf("x"), Shards: shards, Until: time.Minute}
		level, message, attrs := only(t, func(l *slog.Logger) { logShard(l, start, &regionTable{}, &e) })
		require.Equal(t, slog.LevelWarn, level)
		require.Equal(t, "shards of a lost member wait", message)
		require.Equal(t, want, attrs["shards"])
		require.Equal(t, start.Add(time.Minute).String(), attrs["until"])
		require.NotEmpty(t, attrs["why"])
	}
}

// A process that left and starts again at its address may join before all have seen it go: nobody has downed anybody,
// so a rolling restart warns of nothing.
func TestReplacedMembersWarnOfNothing(t *testing.T) {
	old := peer.ID{Addr: peer.MustAddr("127.0.0.1:7355"), Inc: 1}
	for cause, level := range map[membership.Cause]slog.Level{membership.CauseReplaced: slog.LevelInfo,
		membership.CauseOperator: slog.LevelWarn, membership.CauseResolver: slog.LevelWarn} {
		e := &membership.Event{Kind: membership.MemberDowned, Previous: membership.Exiting,
			Member: membership.Member{ID: old, Status: membership.Down, Cause: cause, By: peer.ID{Addr: old.Addr, Inc: 2}}}
		l, message, attrs := only(t, func(l *slog.Logger) { logEvent(l, e, &membership.View{}) })
		require.Equal(t, level, l, cause)
		require.Equal(t, "member downed", message)
		require.Equal(t, "exiting", attrs["was"])
		require.Equal(t, e.Reason(), attrs["why"])
	}
}
