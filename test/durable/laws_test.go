// Tests of the laws: each can say no.

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/lab/queuetest"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// Each way in which accounts and callers may differ breaks the law that it is about, and what may be does not.
func TestLawsOfAccounts(t *testing.T) {
	e := func(id uint64, delta int64) entry { return entry{id, delta} }
	for name, c := range map[string]struct {
		orders []order
		at     account
		want   laws
	}{
		"all is well": {[]order{{e(1, 5), "a", "", false, done}, {e(2, -2), "a", "", false, done}}, account{3, []entry{e(1, 5), e(2, -2)}}, laws{}},
		"unknown, and there": {[]order{{e(1, 5), "a", "", false, unknown}}, account{5, []entry{e(1, 5)}},
			laws{UnknownApplied: 1}},
		"unknown, and not there": {[]order{{e(1, 5), "a", "", false, unknown}}, account{}, laws{UnknownNot: 1}},
		"rejected and refused":   {[]order{{e(1, 5), "a", "", false, refused}, {e(2, 5), "a", "", false, rejected}}, account{}, laws{}},
		"lost":                   {[]order{{e(1, 5), "a", "", false, done}}, account{}, laws{Lost: 1, SumError: 5}},
		"twice":                  {[]order{{e(1, 5), "a", "", false, done}}, account{10, []entry{e(1, 5), e(1, 5)}}, laws{AppliedTwice: 1, SumError: 5}},
		"unknown, and twice":     {[]order{{e(1, 5), "a", "", false, unknown}}, account{10, []entry{e(1, 5), e(1, 5)}}, laws{AppliedTwice: 1, SumError: 5, UnknownApplied: 1}},
		"refused, and there":     {[]order{{e(1, 5), "a", "", false, refused}}, account{5, []entry{e(1, 5)}}, laws{RefusedApplied: 1, SumError: 5}},
		"rejected, and there":    {[]order{{e(1, 5), "a", "", false, rejected}}, account{5, []entry{e(1, 5)}}, laws{RefusedApplied: 1, SumError: 5}},
		"of no order":            {nil, account{5, []entry{e(1, 5)}}, laws{Strange: 1, SumError: 5}},
		"another amount":         {[]order{{e(1, 5), "a", "", false, done}}, account{6, []entry{e(1, 6)}}, laws{Lost: 1, Strange: 1, SumError: 1}},
		"another account":        {[]order{{e(1, 5), "b", "", false, done}}, account{5, []entry{e(1, 5)}}, laws{Lost: 1, Strange: 1, SumError: 10}},
		"sent, and there":        {[]order{{e(2, -5), "a", "a", false, done}}, account{0, []entry{e(2, -5), e(3, 5)}}, laws{}},
		"sent, and lost":         {[]order{{e(2, -5), "a", "a", false, done}}, account{-5, []entry{e(2, -5)}}, laws{Lost: 1, SumError: 5}},
		"sent, and twice":        {[]order{{e(2, -5), "a", "a", false, done}}, account{5, []entry{e(2, -5), e(3, 5), e(3, 5)}}, laws{AppliedTwice: 1, SumError: 5}},
		"unknown, and sent": {[]order{{e(2, -5), "a", "a", false, unknown}}, account{0, []entry{e(2, -5), e(3, 5)}},
			laws{UnknownApplied: 1}},
		"unknown, and its message alone": {[]order{{e(2, -5), "a", "a", false, unknown}}, account{5, []entry{e(3, 5)}},
			laws{UnknownNot: 1, RefusedApplied: 1, SumError: 5}},
		"reminded": {[]order{{e(2, 5), "a", "", true, done}}, account{5, []entry{e(2, 5), e(2, 5).reminded()}}, laws{Reminders: 1}},
		"unknown, and reminded": {[]order{{e(2, 5), "a", "", true, unknown}}, account{5, []entry{e(2, 5), e(2, 5).reminded()}},
			laws{Reminders: 1, UnknownApplied: 1}},
		"reminded twice": {[]order{{e(2, 5), "a", "", true, done}}, account{5, []entry{e(2, 5), e(2, 5).reminded(), e(2, 5).reminded()}},
			laws{Reminders: 1, AppliedTwice: 1}},
		"reminded of nothing": {[]order{{e(2, 5), "a", "", true, refused}}, account{0, []entry{e(2, 5).reminded()}}, laws{RefusedApplied: 1}},
		"never reminded":      {[]order{{e(2, 5), "a", "", true, done}}, account{5, []entry{e(2, 5)}}, laws{Reminders: 1, Lost: 1}},
		"reminded early": {[]order{{e(2, 5), "a", "", true, done}}, account{5, []entry{e(2, 5), e(2|remindedBit|earlyBit, 0)}},
			laws{Reminders: 1, Lost: 1, Strange: 1}},
		"refused, and not sent":      {[]order{{e(2, -5), "a", "a", false, refused}}, account{}, laws{}},
		"the balance alone is wrong": {[]order{{e(1, 5), "a", "", false, done}}, account{4, []entry{e(1, 5)}}, laws{SumError: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var got laws
			got.accounts(c.orders, map[string]account{"a": c.at})
			got.said = nil
			require.Equal(t, c.want, got)
			bad := c.want
			bad.UnknownApplied, bad.UnknownNot = 0, 0
			require.Equal(t, bad.AppliedTwice+bad.Lost+bad.RefusedApplied+bad.Strange > 0 || bad.SumError > 0, got.broken())
		})
	}
}

// The answers of the store to processes are held against each other and against what is stored.
func TestLawsOfCommits(t *testing.T) {
	low, high := route.MakeFence(1, 1, 1), route.MakeFence(1, 1, 2)
	const ms = time.Millisecond
	claim := func(f route.Fence, from, to time.Duration) note {
		return note{From: from, To: to, Op: noteClaim, Type: bankType, Fence: f}
	}
	commit := func(f route.Fence, from time.Duration, n uint64, nonce byte) note {
		return note{From: from, To: from + ms, Op: noteCommit, Type: bankType, Fence: f,
			Writes: []noted{{"a", n, [16]byte{nonce}}}}
	}
	is := func(n uint64, nonce byte) []stored {
		return []stored{{Record: store.Record{ID: "a", Version: n, Nonce: [16]byte{nonce}}, Type: bankType}}
	}
	for name, c := range map[string]struct {
		notes []note
		at    []stored
		want  laws
	}{
		"all is well": {[]note{claim(low, 0, ms), commit(low, 2*ms, 1, 1), claim(high, 3*ms, 4*ms), commit(high, 5*ms, 2, 2)},
			is(2, 2), laws{}},
		"a later one that nobody was told of": {[]note{claim(low, 0, ms), commit(low, 2*ms, 1, 1)}, is(2, 2), laws{}},
		"a commit that was on its way": {[]note{commit(low, 3*ms, 1, 1), claim(high, 2*ms, 4*ms), commit(high, 5*ms, 2, 2)},
			is(2, 2), laws{}},
		"the same one told twice": {[]note{commit(low, 2*ms, 1, 1), commit(low, 4*ms, 1, 1)}, is(1, 1), laws{}},
		"refused":                 {[]note{{Op: noteFenced, Type: bankType, Fence: low}}, nil, laws{Fenced: 1}},
		"behind the claim": {[]note{claim(low, 0, ms), claim(high, 3*ms, 4*ms), commit(low, 5*ms, 1, 1)}, is(1, 1),
			laws{Stale: 1}},
		"over the next owner's": {[]note{commit(high, 5*ms, 1, 1), commit(low, 5*ms, 2, 2)}, is(2, 2), laws{Stale: 1}},
		"one version twice":     {[]note{commit(low, 2*ms, 1, 1), commit(low, 4*ms, 1, 2)}, is(1, 2), laws{Stale: 1}},
		"it is gone":            {[]note{commit(low, 2*ms, 1, 1)}, nil, laws{LostCommits: 1}},
		"an older one is there": {[]note{commit(low, 2*ms, 1, 1), commit(low, 4*ms, 2, 2)}, is(1, 1), laws{LostCommits: 1}},
		"another one is there":  {[]note{commit(low, 2*ms, 1, 1)}, is(1, 3), laws{LostCommits: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var got laws
			got.commits(c.notes, c.at)
			got.said = nil
			require.Equal(t, c.want, got)
			require.Equal(t, c.want.Stale+c.want.LostCommits > 0, got.broken())
		})
	}
}

// A message of a queue that is not there was taken away, and may be known by nobody; what is there is not older than
// what was acknowledged. Those of two shards may have one id.
func TestLawsOfCommitsOfLetters(t *testing.T) {
	f := route.MakeFence(1, 1, 1)
	wrote := func(shard route.ShardID, n uint64) note {
		return note{Op: noteCommit, Type: queueType, Shard: shard, Fence: f, Writes: []noted{{"a", n, [16]byte{byte(shard)}}}}
	}
	is := func(shard route.ShardID, n uint64) stored {
		return stored{Record: store.Record{ID: "a", Version: n, Nonce: [16]byte{byte(shard)}}, Type: queueType, Shard: shard}
	}
	for name, c := range map[string]struct {
		notes []note
		at    []stored
		lost  int
	}{
		"taken away":            {[]note{wrote(0, 7)}, nil, 0},
		"in two shards":         {[]note{wrote(0, 7), wrote(1, 7)}, []stored{is(0, 7), is(1, 7)}, 0},
		"an older one is there": {[]note{wrote(0, 7), wrote(0, 8)}, []stored{is(0, 7)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var got laws
			got.commits(c.notes, c.at)
			require.Equal(t, c.lost, got.LostCommits)
			require.Zero(t, got.Stale)
		})
	}
}

// What the judge of letters says breaks a law each.
func TestLawsOfLetters(t *testing.T) {
	sent := []queuetest.Sent{{Sender: "0", To: "a", Text: "m0", Outcome: queuetest.Stored},
		{Sender: "0", To: "a", Text: "m1", Outcome: queuetest.Stored}}
	had := func(texts ...string) (list []queuetest.Handled) {
		for _, m := range texts {
			list = append(list, queuetest.Handled{To: "a", Text: m, Life: "1"})
		}
		return list
	}
	for name, c := range map[string]struct {
		handled []queuetest.Handled
		want    laws
	}{
		"all is well": {had("m0", "m1"), laws{Letters: 2}},
		"lost":        {had("m0"), laws{Letters: 2, DeliveredLost: 1}},
		"overtook":    {had("m1", "m0"), laws{Letters: 2, DeliveredOvertook: 1}},
		"invented":    {had("m0", "m1", "m2"), laws{Letters: 2, DeliveredInvented: 1}},
		"twice":       {had("m0", "m1", "m1"), laws{Letters: 2, DeliveredTwice: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var got laws
			got.letters(&queuetest.History{Sent: sent, Handled: c.handled})
			require.Equal(t, name != "all is well", got.broken())
			require.Equal(t, got.broken(), len(got.said) > 0)
			got.said = nil
			require.Equal(t, c.want, got)
		})
	}
}

// A journal of a process that was killed in the middle of a line is read up to there; a bad line before that is an
// error.
func TestReadNotes(t *testing.T) {
	b, err := json.Marshal(note{Op: noteCommit, Fence: route.MakeFence(1, 2, 3), Writes: []noted{{"a", 1, [16]byte{7}}}})
	require.NoError(t, err)
	line := append(b, '\n')
	file := filepath.Join(t.TempDir(), "x")
	for cut := range line {
		require.NoError(t, os.WriteFile(file, append(append([]byte{}, line...), line[:cut]...), 0o644))
		list, err := readNotes[note](file)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(list), 1)
		require.Equal(t, [16]byte{7}, list[0].Writes[0].Nonce)
		require.Equal(t, route.MakeFence(1, 2, 3), list[0].Fence)
	}
	require.NoError(t, os.WriteFile(file, append([]byte("{\n"), line...), 0o644))
	_, err = readNotes[note](file)
	require.ErrorContains(t, err, file)
}

// The codec of accounts gives back what it was given, and takes nothing that is cut short or goes on.
func TestAccountCodec(t *testing.T) {
	want := account{-7, []entry{{1, -5}, {1 << 63, 1 << 62}}}
	b, err := accountCodec{}.Append(nil, &want)
	require.NoError(t, err)
	var got account
	require.NoError(t, accountCodec{}.ParseInto(b, &got))
	require.Equal(t, want, got)
	for n := range b {
		require.Error(t, accountCodec{}.ParseInto(b[:n], &got))
	}
	require.Error(t, accountCodec{}.ParseInto(append(b, 0), &got))
	require.Error(t, accountCodec{}.ParseInto([]byte{0, 0xff, 0xff, 0xff, 0xff, 0x7f}, &got), "more entries than can be")
}
