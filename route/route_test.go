// Tests of ids, fences and reasons: vectors fixed by the protocol, order laws, complete tables.

package route

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/wire"
)

// TestHashIsXXH64 cross-checks the hash against the published vectors of xxhash64 with seed zero: the placement of
// every entity of every running cluster depends on it.
func TestHashIsXXH64(t *testing.T) {
	for text, want := range map[string]uint64{
		"":     0xef46db3751d8e999,
		"a":    0xd24ec4f1a98c6e5b,
		"as":   0x1c330fb2d66be179,
		"asd":  0x631c37ce72a97393,
		"asdf": 0x415872f599cea71e,
		"Call me Ishmael. Some years ago--never mind how long precisely-": 0x02a2e85470d6fd96,
	} {
		require.Equal(t, want, xxhash.Sum64String(text), text)
	}
}

// TestShardOfFrozen holds the vectors: the high half of the hash times n, shifted down by 32.
func TestShardOfFrozen(t *testing.T) {
	for _, c := range []struct {
		id   string
		n    uint32
		want ShardID
	}{
		// 0xd24ec4f1 = 0.82151..., of the published hash of "a".
		{"a", 1, 0}, {"a", 2, 1}, {"a", 10, 8}, {"a", 100, 82}, {"a", 1000, 821}, {"a", MaxShards, 861420},
		// 0x1c330fb2 = 0.11015..., of "as"; 0x631c37ce = 0.38714..., of "asd"; 0x415872f5 = 0.25525..., of "asdf".
		{"as", 10, 1}, {"as", 1000, 110}, {"asd", 10, 3}, {"asd", 1000, 387}, {"asdf", 10, 2}, {"asdf", 1000, 255},
	} {
		require.Equal(t, c.want, ShardOf(c.id, c.n), "%s of %d", c.id, c.n)
		require.Equal(t, c.want, ShardOfBytes([]byte(c.id), c.n), "%s of %d", c.id, c.n)
	}
}

// TestShardOfLaws holds that every id has one shard in range, the same for text and bytes, and that doubling the shards
// splits each in two (SHD-1).
func TestShardOfLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "id")
		n := rapid.Uint32Range(1, MaxShards).Draw(t, "n")
		s := ShardOfBytes(id, n)
		require.Less(t, uint32(s), n)
		require.Equal(t, s, ShardOf(string(id), n))
		require.Equal(t, s, ShardOfBytes(id, 2*n)/2)
	})
}

// TestShardOfSpreads holds that names as people choose them spread over the shards: chi-squared of 100,000 over 100
// shards stays below 180, which a fair spread exceeds less than once in a million.
func TestShardOfSpreads(t *testing.T) {
	const ids, shards = 100_000, 100
	for _, form := range []string{"%d", "entity-%d", "user/%08d/cart", "%x@example.com"} {
		var counts [shards]int
		for i := range ids {
			counts[ShardOf(fmt.Sprintf(form, i), shards)]++
		}
		sum := 0
		for _, n := range counts {
			sum += (n - ids/shards) * (n - ids/shards)
		}
		require.Less(t, sum/(ids/shards), 180, form)
	}
}

// TestTypeOfFrozen holds that a type's id is the low half of the hash.
func TestTypeOfFrozen(t *testing.T) {
	require.Equal(t, TypeID(0xa98c6e5b), TypeOf("a"))
	require.Equal(t, TypeID(0x99cea71e), TypeOf("asdf"))
	require.Equal(t, TypeID(0x51d8e999), TypeOf(""))
}

// TestCheckID holds the bounds of an entity's id.
func TestCheckID(t *testing.T) {
	for n, ok := range map[int]bool{0: false, 1: true, wire.MaxIDSize: true, wire.MaxIDSize + 1: false, 1 << 20: false} {
		err := CheckID(strings.Repeat("x", n))
		if ok {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrBadID)
		require.Equal(t, BadID, ReasonOf(err))
		require.Contains(t, err.Error(), fmt.Sprintf("%d bytes", n))
	}
}

// genFence draws parts near each other and near the ends, so that every position decides sometimes.
func genFence(t *rapid.T, name string) (birth uint64, term, epoch uint32) {
	small := rapid.Uint64Range(0, 2)
	birth = rapid.OneOf(small, rapid.Uint64()).Draw(t, name+" birth")
	term = uint32(rapid.OneOf(small, rapid.Uint64Range(0, 1<<32-1)).Draw(t, name+" term"))
	epoch = uint32(rapid.OneOf(small, rapid.Uint64Range(0, 1<<32-1)).Draw(t, name+" epoch"))
	return birth, term, epoch
}

// TestFenceOrder is the law that stores rely on: comparing bytes compares birth, then term, then epoch (SHD-9).
func TestFenceOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ab, at, ae := genFence(t, "a")
		bb, bt, be := genFence(t, "b")
		a, b := MakeFence(ab, at, ae), MakeFence(bb, bt, be)
		require.Equal(t, []any{ab, at, ae}, []any{a.Birth(), a.Term(), a.Epoch()})
		less := ab < bb || ab == bb && (at < bt || at == bt && ae < be)
		require.Equal(t, less, a.Compare(b) < 0)
		require.Equal(t, less, bytes.Compare(a[:], b[:]) < 0)
		require.Equal(t, less, string(a[:]) < string(b[:]))
		require.Equal(t, -a.Compare(b), b.Compare(a))
		require.Equal(t, a == b, a.Compare(b) == 0)
		require.Equal(t, a == Fence{}, a.IsZero())
		require.False(t, !a.IsZero() && Fence{}.Compare(a) >= 0, "no ownership is below every ownership")
	})
}

// TestFenceGolden holds bytes and text.
func TestFenceGolden(t *testing.T) {
	f := MakeFence(0x0102030405060708, 0x090a0b0c, 0x0d0e0f10)
	require.Equal(t, "0102030405060708090a0b0c0d0e0f10", hex.EncodeToString(f[:]))
	require.Equal(t, "0102030405060708090a0b0c0d0e0f10", f.String(), "as MarshalText and a column of text have it (OPS-1)")
	short, err := ParseFence("102030405060708.151653132.219025168")
	require.NoError(t, err)
	require.Equal(t, f, short)
}

// frozenReasons is what peers of other versions rely on. A row may be added, never changed.
var frozenReasons = []string{
	"ok", "not-owner", "not-registered", "mailbox-full", "handler-failed", "handler-panic", "timed-out", "peer-lost",
	"link-full", "park-full", "stopped", "too-large", "bad-id", "no-reply", "suspended", "bad-payload",
	"shard-stopping", "asks-full", "crashed", "budget-full", "table-full", "queue-full",
	"expired", "no-host", "abandoned", "lost-in-flight", "new-failed", "handler-named",
}

// TestReasonsFrozen holds numbers and names, and that every reason but OK has an error of its own which leads back.
func TestReasonsFrozen(t *testing.T) {
	require.GreaterOrEqual(t, int(reasonCount), len(frozenReasons))
	var errs []error
	var names []string
	for r := Reason(0); r < reasonCount; r++ {
		if int(r) < len(frozenReasons) {
			require.Equal(t, frozenReasons[r], r.String())
		}
		require.True(t, r.Known())
		require.NotEmpty(t, r.String())
		require.False(t, slices.Contains(names, r.String()), "two reasons named %s", r)
		names = append(names, r.String())
		if r == OK {
			require.NoError(t, r.Err())
			continue
		}
		require.Error(t, r.Err(), r)
		require.False(t, slices.Contains(errs, r.Err()), "two reasons with the error of %s", r)
		errs = append(errs, r.Err())
		require.Equal(t, r, ReasonOf(r.Err()))
		require.Equal(t, r, ReasonOf(fmt.Errorf("sending to 10.0.0.1:80: %w", r.Err())))
	}
	for r := range Reason(reasonCount) {
		require.Equal(t, r, r.Spoken(9))
		require.Equal(t, r != HandlerNamed, r.Spoken(8) == r)
		require.Equal(t, r.Spoken(8), r.Spoken(4))
		require.Equal(t, r.Spoken(3), r.Spoken(2))
		require.Less(t, int(r.Spoken(3)), 22, "version 3 knew 22 reasons")
		require.Equal(t, r < Expired, r.Spoken(3) == r, r)
		old := r.Spoken(1)
		require.Less(t, int(old), 18, "version 1 knew 18 reasons")
		require.Equal(t, r == OK, old == OK)
		require.Equal(t, r, r.Spoken(0), "not known yet")
	}
	require.False(t, Reason(reasonCount).Known())
	require.Equal(t, "reason-999", Reason(999).String())
	require.EqualError(t, Reason(999).Err(), "kith: unknown delivery reason 999")
}

// TestReplyError holds what an asker gets.
func TestReplyError(t *testing.T) {
	require.NoError(t, ReplyError(OK, nil))
	require.NoError(t, ReplyError(OK, []byte("an answer")))
	require.Equal(t, ErrTimeout, ReplyError(TimedOut, nil))
	err := ReplyError(HandlerFailed, []byte("out of stock"))
	require.ErrorIs(t, err, ErrHandler)
	require.EqualError(t, err, "kith: handler returned an error: out of stock")
	require.Equal(t, OK, ReasonOf(nil))
	require.Equal(t, HandlerFailed, ReasonOf(errors.New("the user's own")))
	require.Error(t, ReplyError(999, []byte("from the future")))
}

// TestNoAllocation holds that resolving a shard allocates nothing (SHD-5).
func TestNoAllocation(t *testing.T) {
	id, raw := "entity-012345678", []byte("entity-012345678")
	var sum ShardID
	require.Zero(t, testing.AllocsPerRun(100, func() {
		sum += ShardOf(id, 1000) + ShardOfBytes(raw, 1000)
		if CheckID(id) != nil {
			t.Fatal("bad id")
		}
	}))
	require.NotZero(t, sum)
}

// BenchmarkShardOf hashes an id of 16 bytes.
func BenchmarkShardOf(b *testing.B) {
	id := "entity-012345678"
	var sum ShardID
	b.ReportAllocs()
	for b.Loop() {
		sum += ShardOf(id, 1000)
	}
	if sum == 0 {
		b.Fatal("all in shard zero")
	}
}
