// Tests of Type: defaults, all faults at once, names.

package entity

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

func validType() Type {
	return Type{Name: "book", New: func(string, route.Fence) Handler { return nil }}.WithDefaults()
}

func firstShard(string) route.ShardID { return 0 }

// Seed 001: "two application specific functions to extract the entity identifier and the shard identifier from incoming
// messages". Without a function of the application it is the hash (SHD-1).
func TestShardBy(t *testing.T) {
	typ := validType()
	n, err := typ.ShardOf("a")
	require.NoError(t, err)
	require.Equal(t, route.ShardOf("a", 1000), n)
	typ.ShardBy = ShardBy{"length", func(id string) route.ShardID {
		if id == "panic" {
			panic("at the function")
		}
		return route.ShardID(len(id))
	}}
	require.NoError(t, typ.Validate())
	typ.Shards = 4
	for id, want := range map[string]string{"": "", "abc": "", "abcd": "length says 4, of 4 shards",
		"panic": "length panicked: at the function"} {
		n, err := typ.ShardOf(id)
		if want == "" {
			require.NoError(t, err)
			require.EqualValues(t, len(id), n)
			continue
		}
		require.ErrorIs(t, err, route.ErrBadShard)
		require.ErrorContains(t, err, want)
		require.False(t, route.MayHaveRun(err))
		require.Equal(t, route.NoShard, n)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = typ.ShardOf("abc") }))
}

func TestTypeDefaults(t *testing.T) {
	typ := validType()
	require.NoError(t, typ.Validate())
	require.Equal(t, []any{uint32(1000), 256 << 10, Blocking, RestartFresh},
		[]any{typ.Shards, typ.MailboxBytes, typ.Mode, typ.Restart})
	typ.Shards, typ.MailboxBytes = 3, 4096
	again := typ.WithDefaults()
	require.Equal(t, []any{uint32(3), 4096}, []any{again.Shards, again.MailboxBytes})
}

func TestTypeFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Type)
		says   string
	}{
		"no name":                 {func(t *Type) { t.Name = "" }, "Name has 0 bytes"},
		"long name":               {func(t *Type) { t.Name = strings.Repeat("n", 256) }, "Name has 256 bytes"},
		"no shards":               {func(t *Type) { t.Shards = 0 }, "Shards is 0"},
		"too many shards":         {func(t *Type) { t.Shards = route.MaxShards + 1 }, "Shards is 1048577"},
		"mode":                    {func(t *Type) { t.Mode = 3 }, "Mode is 3"},
		"function without a name": {func(t *Type) { t.ShardBy.Of = firstShard }, "must have both or none"},
		"name without a function": {func(t *Type) { t.ShardBy.Name = "x" }, "must have both or none"},
		"long name of a function": {func(t *Type) { t.ShardBy = ShardBy{strings.Repeat("f", 65), firstShard} },
			"Name of ShardBy has 65 bytes"},
		"zero byte in the name of a function": {func(t *Type) { t.ShardBy = ShardBy{"a\x00", firstShard} }, "zero byte"},
		"long role with a function": {func(t *Type) {
			t.Role, t.ShardBy = strings.Repeat("r", 200), ShardBy{strings.Repeat("f", 55), firstShard}
		}, "255 bytes together"},
		"threshold": {func(t *Type) { t.Strategy = strategy.LeastShards{Threshold: -1} },
			"Threshold of LeastShards is -1"},
		"new": {func(t *Type) { t.New = nil }, "New is nil"},
		"new and open": {func(t *Type) { t.Open = func(*Context) (Handler, error) { return nil, nil } },
			"New and Open are both set"},
		"mailbox":  {func(t *Type) { t.MailboxBytes = MinMailboxBytes - 1 }, "MailboxBytes is 1023"},
		"restart":  {func(t *Type) { t.Restart = 3 }, "Restart is 3"},
		"active":   {func(t *Type) { t.MaxActive = -1 }, "MaxActive is negative"},
		"window":   {func(t *Type) { t.RestartWindow = 25 * time.Hour }, "RestartWindow is 25h0m0s"},
		"back-off": {func(t *Type) { t.RestartBackoff = 2 * time.Minute }, "RestartBackoff is 2m0s"},
		"restarts": {func(t *Type) { t.MaxRestarts = -1 }, "MaxRestarts is -1"},
		"resume":   {func(t *Type) { t.Restart, t.RestartBackoff = RestartResume, 1 }, "need a Restart"},
		"stop":     {func(t *Type) { t.Restart, t.MaxRestarts = RestartStop, 1 }, "need a Restart"},
	} {
		t.Run(name, func(t *testing.T) {
			typ := validType()
			c.change(&typ)
			require.ErrorContains(t, typ.Validate(), c.says)
		})
	}
	err := Type{Mode: 9}.Validate()
	for _, says := range []string{"Name", "Shards", "Mode", "New", "MailboxBytes"} {
		require.ErrorContains(t, err, says, "all faults at once")
	}
}

func TestSlowAfterByMode(t *testing.T) {
	for _, c := range []struct {
		typ     Type
		limit   time.Duration
		watched bool
	}{
		{Type{Mode: Worker}, SlowAfter, false},
		{Type{Mode: Inline}, SlowAfter, false},
		{Type{Mode: Blocking}, math.MaxInt64, false},
		{Type{Mode: Worker, SlowAfter: -1}, math.MaxInt64, false},
		{Type{Mode: Blocking, SlowAfter: time.Second}, time.Second, true},
		{Type{Mode: Inline, SlowAfter: 1}, 1, true},
	} {
		limit, watched := c.typ.slowAfter()
		require.Equal(t, c.limit, limit)
		require.Equal(t, c.watched, watched != 0)
	}
}

func TestModeNames(t *testing.T) {
	require.Equal(t, []string{"blocking", "worker", "inline", "mode-9"},
		[]string{Blocking.String(), Worker.String(), Inline.String(), Mode(9).String()})
	require.Equal(t, []string{"panicked", "slow", "overrun", "gave-up", "stalled", "incident-10"},
		[]string{Panicked.String(),
			Slow.String(), Overrun.String(), GaveUp.String(), Stalled.String(), IncidentKind(10).String()})
}
