// Tests of the refusal frame: golden bytes, truncation, bounds; and of what is gathered for it.

package plane

import (
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

func sampleRefusals() []*Refusal {
	return []*Refusal{
		{RefusalKey{1, 2, 3, 4, route.NotOwner}, 0, 300, []string{"a", "bc"}},
		{RefusalKey{1, 2, 3, 4, route.MailboxFull}, 65536, 1, nil},
	}
}

// unlimited returns sample refusals as peers of wire version 1 get them.
func unlimited() []*Refusal {
	list := sampleRefusals()
	for _, e := range list {
		e.Limit = 0
	}
	return list
}

func TestRefusalsGolden(t *testing.T) {
	for kind, want := range map[wire.Kind]string{
		wire.KindRefused: "02" +
			"01000000" + "02000000" + "03000000" + "04000000" + "0100" + "ac02" + "02" + "0161" + "026263" +
			"01000000" + "02000000" + "03000000" + "04000000" + "0300" + "01" + "00",
		wire.KindRefusals: "02" +
			"01000000" + "02000000" + "03000000" + "04000000" + "0100" + "00" + "ac02" + "02" + "0161" + "026263" +
			"01000000" + "02000000" + "03000000" + "04000000" + "0300" + "808004" + "01" + "00",
	} {
		list := unlimited()
		if kind == wire.KindRefusals {
			list = sampleRefusals()
		}
		body := AppendRefusals(nil, sampleRefusals(), kind == wire.KindRefusals)
		require.Equal(t, want, hex.EncodeToString(body), kind)
		got, err := ParseRefusals(kind, body)
		require.NoError(t, err)
		require.Equal(t, list, got)
		for n := range body {
			_, err := ParseRefusals(kind, body[:n])
			var bad *wire.Error
			require.ErrorAs(t, err, &bad, "%d bytes", n)
			require.Equal(t, kind, bad.Kind)
		}
		_, err = ParseRefusals(kind, append(body, 0))
		require.ErrorIs(t, err, wire.ErrTrailing)
	}
}

// TestRefusalsAreSpoken holds what a peer of wire version 1 gets: reasons that it knows, in order, and no two alike.
func TestRefusalsAreSpoken(t *testing.T) {
	entry := func(shard route.ShardID, reason route.Reason, count uint64, id string) *Refusal {
		return &Refusal{RefusalKey{Type: 1, Shard: shard, Reason: reason}, 9, count, []string{id}}
	}
	list := []*Refusal{entry(1, route.MailboxFull, 1, "a"), entry(1, route.Stopped, 2, "b"),
		entry(1, route.Crashed, 3, "c"), entry(1, route.BudgetFull, 4, "d"),
		entry(1, route.QueueFull, 5, "e"), entry(2, route.TableFull, 6, "f")}
	spoken := SpokenRefusals(list, 1)
	require.Equal(t, []*Refusal{entry(1, route.MailboxFull, 10, "a"), entry(1, route.HandlerPanic, 3, "c"),
		entry(1, route.Stopped, 2, "b"), entry(2, route.MailboxFull, 6, "f")}, spoken)
	require.EqualValues(t, 1, list[0].Count, "the list itself is as it was")
	_, err := ParseRefusals(wire.KindRefused, AppendRefusals(nil, spoken, false))
	require.NoError(t, err)
}

func TestRefusalsJudged(t *testing.T) {
	change := func(f func(l []*Refusal)) error {
		l := sampleRefusals()
		f(l)
		_, err := ParseRefusals(wire.KindRefusals, AppendRefusals(nil, l, true))
		return err
	}
	require.ErrorIs(t, change(func(l []*Refusal) { l[0].Count = 0 }), wire.ErrBadValue)
	require.ErrorIs(t, change(func(l []*Refusal) { l[0].Reason = route.OK }), wire.ErrBadValue)
	require.ErrorIs(t, change(func(l []*Refusal) { l[0].Samples = make([]string, 5) }), wire.ErrBadValue)
	require.ErrorIs(t, change(func(l []*Refusal) { l[0], l[1] = l[1], l[0] }), wire.ErrBadOrder)
	require.ErrorIs(t, change(func(l []*Refusal) { l[1] = l[0] }), wire.ErrBadOrder)
	body := AppendRefusals(nil, sampleRefusals()[1:], true)
	at := len(body) - len("\x80\x80\x04\x01\x00")
	_, err := ParseRefusals(wire.KindRefusals, append(wire.AppendUvarint(body[:at:at], 1<<63), 1, 0))
	require.ErrorIs(t, err, wire.ErrBadValue, "a limit that no int holds")
	_, err = ParseRefusals(wire.KindRefusals, wire.AppendUvarint(nil, MaxRefusals+1))
	require.ErrorIs(t, err, wire.ErrTooLarge)
	_, err = ParseRefusals(wire.KindRefusals, wire.AppendUvarint(nil, MaxRefusals))
	require.ErrorIs(t, err, wire.ErrTruncated, "a count is checked against what is there before anything is made")
}

func FuzzRefusals(f *testing.F) {
	f.Add(AppendRefusals(nil, sampleRefusals(), true), true)
	f.Add(AppendRefusals(nil, sampleRefusals(), false), false)
	f.Add(AppendRefusals(nil, nil, true), true)
	f.Add([]byte{1, 0, 0}, false)
	f.Fuzz(func(t *testing.T, body []byte, limits bool) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(body)) }()
		kind := wire.KindRefused
		if limits {
			kind = wire.KindRefusals
		}
		list, err := ParseRefusals(kind, body)
		if err != nil {
			var bad *wire.Error
			if !errors.As(err, &bad) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if got := AppendRefusals(nil, list, limits); string(got) != string(body) {
			t.Fatalf("%x came back as %x", body, got)
		}
	})
}

// What is kept is bounded, and no count is lost: of shards beyond the bound those of one type and reason are one entry,
// and of types beyond the bound those of one reason (SHD-4).
func TestRefusalsAreBounded(t *testing.T) {
	var rs Refusals
	for i := range 10 * MaxRefusals {
		rs.Add(RefusalKey{1, route.ShardID(i), 2, 3, route.NotOwner}, []byte("id"))
	}
	for i := range 10 {
		rs.Add(RefusalKey{1, 7, 2, 3, route.NotOwner}, fmt.Appendf(nil, "x%d", i))
	}
	for i := range 10 * MaxRefusals {
		rs.Add(RefusalKey{route.TypeID(2 + i), 1, 2, 3, route.Reason(1 + i%4)}, []byte("id"))
	}
	list := rs.Take()
	require.Equal(t, 2*MaxRefusals+4, len(list))
	require.EqualValues(t, 20*MaxRefusals+10, Counted(list))
	require.Equal(t, RefusalKey{Shard: route.NoShard, Reason: 1}, list[0].RefusalKey)
	require.EqualValues(t, 11, list[4+7].Count)
	require.Equal(t, []string{"id", "x0", "x1", "x2"}, list[4+7].Samples)
	rest := list[4+MaxRefusals]
	require.Equal(t, RefusalKey{Type: 1, Shard: route.NoShard, Reason: route.NotOwner}, rest.RefusalKey)
	require.EqualValues(t, 9*MaxRefusals, rest.Count)
	require.Less(t, len(AppendRefusals(nil, list[:MaxRefusals], true)), wire.MaxControlFrame)
	require.Empty(t, rs.Take())

	rs.Return(list)
	rs.Return(list)
	again := rs.Take()
	require.LessOrEqual(t, len(again), len(list))
	require.Equal(t, 2*Counted(list), Counted(again))
	require.Len(t, again[4+7].Samples, MaxRefusedSamples)
}

// A peer of an earlier version has no word for an entry without a shard: its count goes to the first one, under no
// fence, so that no route is doubted for it.
func TestRefusalsWithoutAShardAreSpoken(t *testing.T) {
	list := []*Refusal{{RefusalKey{1, 5, 2, 3, route.NotOwner}, 0, 2, nil},
		{RefusalKey{1, route.NoShard, 0, 0, route.NotOwner}, 0, 40, nil}}
	spoken := SpokenRefusals(list, 3)
	require.Equal(t, RefusalKey{Type: 1, Reason: route.NotOwner}, spoken[0].RefusalKey)
	require.EqualValues(t, 42, Counted(spoken))
	require.Equal(t, route.NoShard, list[1].Shard, "the list itself is as it was")
}
