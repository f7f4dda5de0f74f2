// Tests of the refusal frame: golden bytes, truncation, bounds; and of what is gathered for it.

package plane

import (
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/spent"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

func sampleRefusals() []*Refusal {
	return []*Refusal{
		{RefusalKey{1, 2, 3, 4, route.NotOwner}, 0, 300, []string{"a", "bc"}},
		{RefusalKey{1, 2, 3, 4, route.MailboxFull}, 65536, 1, nil},
	}
}

// unlimited returns sample refusals as peers of wire version 1 are told.
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

// TestRefusalsAreSpoken holds what a peer of wire version 1 is told: reasons that it knows, in order, and no two alike.
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

func TestRefusalsAreBounded(t *testing.T) {
	var rs Refusals
	for i := range 10 * MaxRefusals {
		rs.Add(RefusalKey{Shard: route.ShardID(i), Reason: route.NotOwner}, []byte("id"))
	}
	for i := range 10 {
		require.True(t, rs.Add(RefusalKey{Shard: 7, Reason: route.NotOwner}, fmt.Appendf(nil, "x%d", i)))
	}
	list := rs.Take()
	require.Len(t, list, MaxRefusals)
	require.EqualValues(t, 11, list[7].Count)
	require.Equal(t, []string{"id", "x0", "x1", "x2"}, list[7].Samples)
	require.Less(t, len(AppendRefusals(nil, list, true)), wire.MaxControlFrame)
	require.Empty(t, rs.Take())
}
