// Tests of the refusal frame: golden bytes, truncation, bounds; and of what is gathered for it.

package driver

import (
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

func sampleRefusals() []*refusal {
	return []*refusal{
		{typ: 1, shard: 2, term: 3, epoch: 4, reason: route.NotOwner, count: 300, samples: []string{"a", "bc"}},
		{typ: 1, shard: 2, term: 3, epoch: 4, reason: route.MailboxFull, count: 1},
	}
}

func TestRefusalsGolden(t *testing.T) {
	body := appendRefusals(nil, sampleRefusals())
	require.Equal(t, "02"+
		"01000000"+"02000000"+"03000000"+"04000000"+"0100"+"ac02"+"02"+"0161"+"026263"+
		"01000000"+"02000000"+"03000000"+"04000000"+"0300"+"01"+"00", hex.EncodeToString(body))
	got, err := parseRefusals(body)
	require.NoError(t, err)
	require.Equal(t, sampleRefusals(), got)
	for n := range body {
		_, err := parseRefusals(body[:n])
		var bad *wire.Error
		require.ErrorAs(t, err, &bad, "%d bytes", n)
	}
	_, err = parseRefusals(append(body, 0))
	require.ErrorIs(t, err, wire.ErrTrailing)
}

func TestRefusalsJudged(t *testing.T) {
	change := func(f func(l []*refusal)) error {
		l := sampleRefusals()
		f(l)
		_, err := parseRefusals(appendRefusals(nil, l))
		return err
	}
	require.ErrorIs(t, change(func(l []*refusal) { l[0].count = 0 }), wire.ErrBadValue)
	require.ErrorIs(t, change(func(l []*refusal) { l[0].reason = route.OK }), wire.ErrBadValue)
	require.ErrorIs(t, change(func(l []*refusal) { l[0].samples = make([]string, 5) }), wire.ErrBadValue)
	require.ErrorIs(t, change(func(l []*refusal) { l[0], l[1] = l[1], l[0] }), wire.ErrBadOrder)
	require.ErrorIs(t, change(func(l []*refusal) { l[1] = l[0] }), wire.ErrBadOrder)
	_, err := parseRefusals(wire.AppendUvarint(nil, maxRefusals+1))
	require.ErrorIs(t, err, wire.ErrTooLarge)
	_, err = parseRefusals(wire.AppendUvarint(nil, maxRefusals))
	require.ErrorIs(t, err, wire.ErrTruncated, "a count is checked against what is there before anything is made")
}

func FuzzRefusals(f *testing.F) {
	f.Add(appendRefusals(nil, sampleRefusals()))
	f.Add(appendRefusals(nil, nil))
	f.Add([]byte{1, 0, 0})
	f.Fuzz(func(t *testing.T, body []byte) {
		list, err := parseRefusals(body)
		if err != nil {
			var bad *wire.Error
			if !errors.As(err, &bad) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if got := appendRefusals(nil, list); string(got) != string(body) {
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
	require.Less(t, len(appendRefusals(nil, list)), wire.MaxControlFrame)
	require.Empty(t, rs.take())
}
