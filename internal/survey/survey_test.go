// Tests of surveys: the codec, and who is asked how often for what.

package survey

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

func id(n int) peer.ID {
	return peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7000", n)), Inc: uint64(n)}
}

var full = Answer{Question: Question{Nonce: 0x0102030405060708, Type: 0x11121314, From: 300}, Known: true, Shards: 1000,
	Hosted: 2, Entities: 130, List: []Shard{{300, false, 128}, {999, true, 2}}, Term: 7,
	Moves: []shard.MoveState{{Shard: 999, From: id(1), To: id(2), Number: shard.Number{Term: 7, Seq: 3},
		Phase: shard.MoveHolds, Age: 1500 * time.Millisecond}}}

// TestGolden holds the bytes that peers of this version send.
func TestGolden(t *testing.T) {
	for _, tc := range []struct{ want, got string }{
		{"080706050403020114131211ac02", hex.EncodeToString(AppendQuestion(nil, full.Question))},
		{"080706050403020114131211ac0201e8030000020000008201020000" + "8001ba0501020007000000" + "01" + "e707" +
			hex.EncodeToString(peer.AppendID(peer.AppendID(nil, id(1)), id(2))) + "070000000300000001dc0b",
			hex.EncodeToString(AppendAnswer(nil, &full))},
	} {
		require.Equal(t, tc.want, tc.got)
	}
}

// TestParse: what was appended is read back, and nothing else is read.
func TestParse(t *testing.T) {
	for _, a := range []Answer{full, {Question: Question{Nonce: 1}}, {Known: true, List: []Shard{{ID: 5}}, More: true}} {
		body := AppendAnswer(nil, &a)
		got, err := ParseAnswer(body)
		require.NoError(t, err)
		require.Equal(t, &a, got)
		for n := range body {
			_, err := ParseAnswer(body[:n])
			require.Error(t, err)
		}
		_, err = ParseAnswer(append(body, 0))
		require.Error(t, err)
	}
	for name, a := range map[string]Answer{
		"a shard out of range":            {Known: true, List: []Shard{{ID: route.MaxShards}}},
		"shards of a type that is none":   {List: []Shard{{ID: 1}}},
		"more behind nothing":             {Known: true, More: true},
		"more shards than one may name":   {Known: true, List: slices.Repeat([]Shard{{}}, MaxShards+1)},
		"shards that do not rise":         {Known: true, List: []Shard{{ID: 5}, {ID: 5}}},
		"more moves than an answer holds": {Moves: slices.Repeat(full.Moves, MaxMoves+1)},
	} {
		_, err := ParseAnswer(AppendAnswer(nil, &a))
		require.Error(t, err, name)
	}
	_, err := ParseQuestion(AppendQuestion(nil, Question{From: route.MaxShards}))
	require.Error(t, err)
}

// FuzzAnswer: no bytes break the reader, and what it takes is what the writer makes.
func FuzzAnswer(f *testing.F) {
	f.Add(AppendAnswer(nil, &full))
	f.Fuzz(func(t *testing.T, body []byte) {
		if a, err := ParseAnswer(body); err == nil {
			require.Equal(t, body, AppendAnswer(nil, a))
		}
	})
}

// member answers questions about that many shards, at most MaxShards at a time.
func member(q Question, shards int) *Answer {
	a := &Answer{Question: q, Known: true, Shards: uint32(shards), Hosted: uint32(shards)}
	for s := int(q.From); s < shards; s++ {
		if len(a.List) == MaxShards {
			a.More = true
			break
		}
		a.List = append(a.List, Shard{ID: route.ShardID(s)})
	}
	return a
}

// TestAsk: a member with many shards is asked for the next ones until it has told all, a lost question is put again, an
// answer that nobody waits for changes nothing, and who does not answer is named.
func TestAsk(t *testing.T) {
	var d Desk
	ctx, cancel := context.WithCancel(t.Context())
	asks := map[peer.ID]int{}
	r := d.Ask(ctx, 9, []peer.ID{id(1), id(2), id(3), id(4)}, func(to peer.ID, body []byte) {
		q, err := ParseQuestion(body)
		require.NoError(t, err)
		require.EqualValues(t, 9, q.Type)
		asks[to]++
		switch {
		case to == id(1):
			d.Take(to, member(q, 10_000))
			d.Take(to, member(q, 10_000)) // doubled
			d.Take(id(9), member(q, 5))   // of one that was not asked
			d.Take(id(2), member(Question{Nonce: q.Nonce + 1}, 5))
		case to == id(2) && asks[to] > 1: // the first is lost
			d.Take(to, member(q, 0))
		case to == id(3) && asks[to] > 2:
			cancel()
		}
	})
	require.Len(t, r.Answers, 2)
	list := r.Answers[id(1)].List
	require.Len(t, list, 10_000)
	for i, s := range list {
		require.EqualValues(t, i, s.ID)
	}
	require.Equal(t, map[peer.ID]int{id(1): 3, id(2): 2, id(3): 3, id(4): 3}, asks, "nobody is asked for nothing")
	require.Empty(t, r.Answers[id(2)].List)
	require.Equal(t, peer.SetOf(id(3), id(4)), r.Missing)
	require.Empty(t, d.open)
	d.Take(id(3), member(Question{Nonce: 1}, 1)) // too late
}
