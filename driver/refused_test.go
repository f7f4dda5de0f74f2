// Tests of the refusal frame: golden bytes, truncation, bounds; and of what is gathered for it.

package driver

import (
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/spent"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

func sampleRefusals() []*refusal {
	return []*refusal{
		{typ: 1, shard: 2, term: 3, epoch: 4, reason: route.NotOwner, count: 300, samples: []string{"a", "bc"}},
		{typ: 1, shard: 2, term: 3, epoch: 4, reason: route.MailboxFull, limit: 65536, count: 1},
	}
}

// unlimited returns sample refusals as peers of wire version 1 are told.
func unlimited() []*refusal {
	list := sampleRefusals()
	for _, e := range list {
		e.limit = 0
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
		body := appendRefusals(nil, sampleRefusals(), kind == wire.KindRefusals)
		require.Equal(t, want, hex.EncodeToString(body), kind)
		got, err := parseRefusals(kind, body)
		require.NoError(t, err)
		require.Equal(t, list, got)
		for n := range body {
			_, err := parseRefusals(kind, body[:n])
			var bad *wire.Error
			require.ErrorAs(t, err, &bad, "%d bytes", n)
			require.Equal(t, kind, bad.Kind)
		}
		_, err = parseRefusals(kind, append(body, 0))
		require.ErrorIs(t, err, wire.ErrTrailing)
	}
}

// TestRefusalsAreSpoken holds what a peer of wire version 1 is told: reasons that it knows, in order, and no two alike.
func TestRefusalsAreSpoken(t *testing.T) {
	entry := func(shard route.ShardID, reason route.Reason, count uint64, id string) *refusal {
		return &refusal{typ: 1, shard: shard, reason: reason, limit: 9, count: count, samples: []string{id}}
	}
	list := []*refusal{entry(1, route.MailboxFull, 1, "a"), entry(1, route.Stopped, 2, "b"),
		entry(1, route.Crashed, 3, "c"), entry(1, route.BudgetFull, 4, "d"),
		entry(1, route.QueueFull, 5, "e"), entry(2, route.TableFull, 6, "f")}
	spoken := spokenRefusals(list, 1)
	require.Equal(t, []*refusal{entry(1, route.MailboxFull, 10, "a"), entry(1, route.HandlerPanic, 3, "c"),
		entry(1, route.Stopped, 2, "b"), entry(2, route.MailboxFull, 6, "f")}, spoken)
	require.EqualValues(t, 1, list[0].count, "the list itself is as it was")
	_, err := parseRefusals(wire.KindRefused, appendRefusals(nil, spoken, false))
	require.NoError(t, err)
}

func TestRefusalsJudged(t *testing.T) {
	change := func(f func(l []*refusal)) error {
		l := sampleRefusals()
		f(l)
		_, err := parseRefusals(wire.KindRefusals, appendRefusals(nil, l, true))
		return err
	}
	require.ErrorIs(t, change(func(l []*refusal) { l[0].count = 0 }), wire.ErrBadValue)
	require.ErrorIs(t, change(func(l []*refusal) { l[0].reason = route.OK }), wire.ErrBadValue)
	require.ErrorIs(t, change(func(l []*refusal) { l[0].samples = make([]string, 5) }), wire.ErrBadValue)
	require.ErrorIs(t, change(func(l []*refusal) { l[0], l[1] = l[1], l[0] }), wire.ErrBadOrder)
	require.ErrorIs(t, change(func(l []*refusal) { l[1] = l[0] }), wire.ErrBadOrder)
	body := appendRefusals(nil, sampleRefusals()[1:], true)
	at := len(body) - len("\x80\x80\x04\x01\x00")
	_, err := parseRefusals(wire.KindRefusals, append(wire.AppendUvarint(body[:at:at], 1<<63), 1, 0))
	require.ErrorIs(t, err, wire.ErrBadValue, "a limit that no int holds")
	_, err = parseRefusals(wire.KindRefusals, wire.AppendUvarint(nil, maxRefusals+1))
	require.ErrorIs(t, err, wire.ErrTooLarge)
	_, err = parseRefusals(wire.KindRefusals, wire.AppendUvarint(nil, maxRefusals))
	require.ErrorIs(t, err, wire.ErrTruncated, "a count is checked against what is there before anything is made")
}

func FuzzRefusals(f *testing.F) {
	f.Add(appendRefusals(nil, sampleRefusals(), true), true)
	f.Add(appendRefusals(nil, sampleRefusals(), false), false)
	f.Add(appendRefusals(nil, nil, true), true)
	f.Add([]byte{1, 0, 0}, false)
	f.Fuzz(func(t *testing.T, body []byte, limits bool) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(body)) }()
		kind := wire.KindRefused
		if limits {
			kind = wire.KindRefusals
		}
		list, err := parseRefusals(kind, body)
		if err != nil {
			var bad *wire.Error
			if !errors.As(err, &bad) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if got := appendRefusals(nil, list, limits); string(got) != string(body) {
			t.Fatalf("%x came back as %x", body, got)
		}
	})
}

func TestRefusalsAreBounded(t *testing.T) {
	var rs refusals
	for i := range 10 * maxRefusals {
		rs.add(refusalKey{shard: route.ShardID(i), reason: route.NotOwner}, []byte("id"))
	}
	for i := range 10 {
		require.True(t, rs.add(refusalKey{shard: 7, reason: route.NotOwner}, fmt.Appendf(nil, "x%d", i)))
	}
	list := rs.take()
	require.Len(t, list, maxRefusals)
	require.EqualValues(t, 11, list[7].count)
	require.Equal(t, []string{"id", "x0", "x1", "x2"}, list[7].samples)
	require.Less(t, len(appendRefusals(nil, list, true)), wire.MaxControlFrame)
	require.Empty(t, rs.take())
}

// A node that leaves refuses what still comes to it, and is removed before that is told: it is believed all the same,
// for a moment, while a stranger, to whom nothing was ever sent, is not (SHD-5).
func TestLeaversLastRefusalsAreBelieved(t *testing.T) {
	p := newPair(t)
	r, left := p.at[entity.Blocking], p.b.Self()
	go func() { _ = p.b.Leave(t.Context()) }()
	eventually(t, func() (removed bool) {
		onControl(p.a, func() {
			for i := range p.a.control.removed {
				removed, p.a.control.removed[i].at = true, never // however long the test takes
			}
		})
		return removed
	})
	told := func(from peer.ID) (nonsense uint64) {
		before := p.a.count.nonsense.Load()
		list := []*refusal{{typ: r.id, reason: route.NotOwner, count: 7, samples: []string{"x"}}}
		onControl(p.a, func() {
			p.a.handle(&frame{from: from, kind: wire.KindRefusals, body: appendRefusals(nil, list, true)})
		})
		return p.a.count.nonsense.Load() - before
	}
	_, member := p.a.View().Member(left)
	require.False(t, member)
	require.EqualValues(t, 1, told(peer.ID{Addr: left.Addr, Inc: left.Inc + 1}))
	require.Zero(t, told(left))
	require.EqualValues(t, 7, r.count.refusedThere.Load())
}
