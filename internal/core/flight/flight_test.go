// Tests of records: golden bytes, damage, what does not fit, and replays that go wrong.

package flight

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

func id(t testing.TB, addr string, inc uint64) peer.ID {
	a, err := peer.ParseAddr(addr)
	require.NoError(t, err)
	return peer.ID{Addr: a, Inc: inc}
}

// lone runs a node that is a cluster of its own, for that many ticks, in a ring of that many bytes.
func lone(t testing.TB, bytes, ticks int, edit ...func(*node.Config)) (n *Node, lost *error) {
	lost = new(error)
	cfg := node.Config{Self: id(t, "10.0.0.1:7355", 7), Seed: 1}
	for _, f := range edit {
		f(&cfg)
	}
	n = New(cfg, bytes, func(err error) { *lost = err })
	var e node.Effects
	do := func(cmd any) {
		require.NoError(t, n.Do(1, cmd))
		n.Drain(&e)
	}
	do(membership.JoinCommand{WallMillis: 5})
	do(shard.RegisterCommand{Settings: shard.Settings{Name: "book", Shards: 8}})
	for i := range ticks {
		n.Tick(time.Duration(i+1) * time.Second)
		n.Drain(&e)
	}
	return n, lost
}

// stored returns a record as a file.
func stored(t testing.TB, n *Node) []byte {
	r, err := n.Record()
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, r.Write(&b))
	return b.Bytes()
}

func replay(t testing.TB, file []byte) (verbs int, err error) {
	r, err := Read(bytes.NewReader(file))
	require.NoError(t, err)
	return verbs, r.Replay(func(*Step) error { verbs++; return nil })
}

// The form of entries is frozen: those of a tick, of frames of a new peer and of one that was named, of what was asked
// of the outside, and of a drain.
func TestGoldenEntries(t *testing.T) {
	r := &recorder{limit: 1 << 20, ids: map[peer.ID]uint64{}}
	q := &question{entryMoves, func(peer.ID) bool { return true }, map[peer.ID]speaking{}}
	other := id(t, "10.0.0.2:7355", 9)
	r.verb(entryTick, 3)
	r.frame(5, 4, other, wire.KindHeartbeat, []byte{0xaa, 0xbb})
	require.True(t, r.ask(q, other))
	require.True(t, r.ask(q, other), "within a verb nothing is told twice")
	r.frame(300, 300, other, wire.KindStatus, nil)
	r.cur.entries = append(r.cur.entries, entryDrain, 4, 3, 2, 1)
	require.Equal(t, "0106"+ // tick, 3 ns
		"02040200040a000002bb1c0900000000000000"+"0402aabb"+ // 2 ns later, 1 ns old, a new peer, its kind and body
		"050101"+ // it understands moves
		"02ce0400012600"+ // 295 ns later, the same peer, no body
		"0404030201", hex.EncodeToString(r.cur.entries))

	in := entries{b: r.cur.entries}
	var got []entry
	for len(in.b) > 0 {
		e, err := in.next()
		require.NoError(t, err)
		got = append(got, e)
	}
	require.Equal(t, []entry{{kind: entryTick, now: 3},
		{kind: entryFrame, now: 5, arrived: 4, from: other, frame: wire.KindHeartbeat, body: []byte{0xaa, 0xbb}},
		{kind: entryMoves, from: other, ok: true},
		{kind: entryFrame, now: 300, arrived: 300, from: other, frame: wire.KindStatus, body: []byte{}},
		{kind: entryDrain, sum: 0x01020304}}, got)
	for n := range r.cur.entries {
		in := entries{b: r.cur.entries[:n]}
		var err error
		for len(in.b) > 0 && err == nil {
			_, err = in.next()
		}
		if err != nil {
			require.ErrorIs(t, err, errCut)
		}
	}
}

// The form of the file is frozen.
func TestGoldenFile(t *testing.T) {
	r := Record{Header: Header{Node: "n", Layout: "l"}, config: []byte{1},
		stretches: []stretch{{state: []byte{2}, now: 3, first: 4, entries: []byte{5}}}}
	var b bytes.Buffer
	require.NoError(t, r.Write(&b))
	text := hex.EncodeToString(b.Bytes())
	require.Equal(t, hex.EncodeToString([]byte("kithflight"))+"01"+"48", text[:24])
	rest := text[24+8+2*int(b.Bytes()[12])+2*256*int(b.Bytes()[13]):]
	require.Equal(t, "073e3ccd386c255d"+ // the hash of the header
		"4301000000"+"01"+"cf0ba5b9815a91f6"+
		"5301000000"+"02"+"b3ce02dc619f9fae"+
		"4511000000"+"0300000000000000"+"0400000000000000"+"05"+"36e22aca992c351f"+"5a00000000"+"7c8684a5298b4507", rest)
}

// A file that is cut anywhere, or has a changed byte, is refused with a reason; so is one of another build, by name.
func TestDamagedFiles(t *testing.T) {
	n, _ := lone(t, MinBytes, 3)
	file := stored(t, n)
	for cut := range file {
		_, err := Read(bytes.NewReader(file[:cut]))
		require.Error(t, err)
		require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrNoRecord), "cut at %d: %v", cut, err)
	}
	for i := range file {
		bad := bytes.Clone(file)
		bad[i] ^= 1
		_, err := Read(bytes.NewReader(bad))
		require.Error(t, err, "byte %d", i)
	}
	next := bytes.Clone(file)
	next[len(Magic)] = Format + 1
	_, err := Read(bytes.NewReader(next))
	require.ErrorIs(t, err, ErrFormat)
	rec, err := n.Record()
	require.NoError(t, err)
	rec.Layout, rec.Build = "other", "kith v9.9.9"
	var b bytes.Buffer
	require.NoError(t, rec.Write(&b))
	rec, err = Read(&b)
	require.ErrorIs(t, err, ErrOtherBuild)
	require.ErrorContains(t, err, "kith v9.9.9")
	require.Equal(t, "kith v9.9.9", rec.Build, "what it says of itself is there")
}

// A ring that is full forgets its beginning, never grows beyond its bound, and what is left replays.
func TestRingIsBounded(t *testing.T) {
	n, lost := lone(t, MinBytes, 20_000)
	require.NoError(t, *lost)
	rec, err := n.Record()
	require.NoError(t, err)
	require.Positive(t, rec.From)
	require.Len(t, rec.stretches, 2)
	require.LessOrEqual(t, rec.Bytes, MinBytes+64)
	require.GreaterOrEqual(t, rec.Bytes, MinBytes/2)
	verbs, err := replay(t, stored(t, n))
	require.NoError(t, err)
	require.Equal(t, int(rec.Verbs), verbs)
}

// The state in front of a stretch counts: the larger it is the fewer inputs there is room for.
func TestStateCountsInTheRing(t *testing.T) {
	n, lost := lone(t, MinBytes, 3)
	var e node.Effects
	many := shard.Settings{Name: "many", Shards: 200}
	for i, cmd := range []any{shard.RegisterCommand{Settings: many}, shard.EagerCommand{Type: many.ID()}} {
		require.NoError(t, n.Do(time.Duration(4+i)*time.Second, cmd))
		n.Drain(&e)
	}
	for i := range 10_000 {
		n.Tick(time.Duration(10+i) * time.Second)
		n.Drain(&e)
	}
	require.NoError(t, *lost)
	rec, err := n.Record()
	require.NoError(t, err)
	require.Len(t, rec.stretches, 2)
	require.Greater(t, len(rec.stretches[1].state), MinBytes/16)
	require.LessOrEqual(t, rec.Bytes, MinBytes+64)
}

// A replay that goes another way says where: at the verb with other effects, or in front of the stretch with another
// state.
func TestReplayDiverges(t *testing.T) {
	n, _ := lone(t, MinBytes, 20_000)
	rec, err := n.Record()
	require.NoError(t, err)
	old := rec.stretches[0].entries
	rec.stretches[0].entries = bytes.Clone(old)
	rec.stretches[0].entries[len(old)-1] ^= 1 // the digest of the last verb
	err = rec.Replay(func(*Step) error { return nil })
	var diverged *DivergedError
	require.ErrorAs(t, err, &diverged)
	require.Equal(t, rec.stretches[1].first, diverged.Verb)
	rec.stretches[0].entries = old
	state := bytes.Clone(rec.stretches[1].state)
	state[len(state)-1] ^= 1
	rec.stretches[1].state = state
	err = rec.Replay(func(*Step) error { return nil })
	require.ErrorAs(t, err, &diverged)
	require.Contains(t, diverged.What, "state")
	stop := errors.New("enough")
	require.ErrorIs(t, rec.Replay(func(*Step) error { return stop }), stop)
}

// An input that the ring does not bear leaves what comes after it, from the state behind it on.
func TestInputThatDoesNotFit(t *testing.T) {
	n, lost := lone(t, MinBytes, 3)
	before, err := n.Record()
	require.NoError(t, err)
	var e node.Effects
	_ = n.Handle(4*time.Second, 4*time.Second, id(t, "10.0.0.2:7355", 9), wire.KindDelta, make([]byte, MinBytes))
	n.Drain(&e)
	_, err = n.Record()
	require.ErrorIs(t, err, ErrEmpty)
	for i := range 3 {
		n.Tick(time.Duration(5+i) * time.Second)
		n.Drain(&e)
	}
	require.NoError(t, *lost)
	rec, err := n.Record()
	require.NoError(t, err)
	require.Equal(t, before.stretches[0].first+before.Verbs+1, rec.stretches[0].first)
	verbs, err := replay(t, stored(t, n))
	require.NoError(t, err)
	require.Equal(t, 3, verbs)
}

// A node with a state that does not fit reports that once and goes on without a record; what there was stays.
func TestStateThatDoesNotFit(t *testing.T) {
	n, lost := lone(t, 4<<10, 2_000)
	require.ErrorIs(t, *lost, errTooLarge)
	rec, err := n.Record()
	require.NoError(t, err)
	require.Contains(t, rec.Over, "larger than its bound")
	_, err = replay(t, stored(t, n))
	require.NoError(t, err)
}

// A detector of the embedder's own cannot be replayed: nothing is recorded, and a caller that asks hears why.
func TestOwnDetector(t *testing.T) {
	own := func(s fd.Settings) fd.Detector { return fd.Deadline(s) }
	n, lost := lone(t, MinBytes, 3, func(c *node.Config) { c.Membership.Detector = own })
	require.ErrorContains(t, *lost, "detector")
	_, err := n.Record()
	require.ErrorIs(t, err, ErrEmpty)
	require.ErrorContains(t, err, "detector")
	n, lost = lone(t, MinBytes, 30, func(c *node.Config) { c.Membership.Detector = fd.Deadline })
	require.NoError(t, *lost)
	_, err = replay(t, stored(t, n))
	require.NoError(t, err)
	_, err = New(node.Config{Self: id(t, "10.0.0.1:1", 1)}, 0, nil).Record()
	require.ErrorIs(t, err, ErrEmpty)
}

// A node that panicked is replayed up to there, and panics again.
func TestReplayOfAPanic(t *testing.T) {
	n, _ := lone(t, MinBytes, 3)
	text, err := appendValue(nil, new(any), 0) // no command at all
	require.NoError(t, err)
	n.rec.verb(entryCommand, 9*time.Second)
	n.rec.cur.entries = appendBytes(n.rec.cur.entries, text)
	rec, err := n.Record()
	require.NoError(t, err)
	rec.stretches[0].entries = append(rec.stretches[0].entries, entryDrain, 0, 0, 0, 0)
	var diverged *DivergedError
	require.ErrorAs(t, rec.Replay(func(*Step) error { return nil }), &diverged, "a refused command is an answer too")
	rec.stretches[0].entries = []byte{entryTick, 4, entryDrain, 0, 0, 0, 0, entryTick, 3} // time goes back
	var panicked *PanicError
	err = rec.Replay(func(*Step) error { return nil })
	require.ErrorAs(t, err, &diverged)
	rec.stretches[0].entries = []byte{entryTick, 4, entryTick, 3}
	require.ErrorAs(t, rec.Replay(func(*Step) error { return nil }), &panicked)
	require.EqualValues(t, 2, panicked.Verb)
	require.Contains(t, panicked.What, "time goes back")
}

// FuzzRead: whatever lies in a file, it is replayed or refused.
func FuzzRead(f *testing.F) {
	n, _ := lone(f, MinBytes, 3)
	f.Add(stored(f, n))
	f.Add([]byte(Magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Read(bytes.NewReader(b))
		if err == nil {
			_ = r.Replay(func(*Step) error { return nil })
		}
	})
}

// FuzzReplay: whatever inputs a record with right checksums holds, its replay ends.
func FuzzReplay(f *testing.F) {
	n, _ := lone(f, MinBytes, 3)
	rec, err := n.Record()
	require.NoError(f, err)
	f.Add(rec.stretches[0].entries)
	f.Add([]byte{entryTick, 2, entryDrain, 0, 0, 0, 0, entryMoves, 0, 4, 10, 0, 0, 1, 1, 1, 9, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, entries []byte) {
		r := Record{Header: rec.Header, config: rec.config, stretches: []stretch{{entries: entries}}}
		_ = r.Replay(func(*Step) error { return nil })
	})
}

// FuzzThaw: whatever bytes a state has, they are read or refused, and cost memory in proportion.
func FuzzThaw(f *testing.F) {
	n, _ := lone(f, MinBytes, 3)
	state, err := Freeze(nil, n.Node, 0)
	require.NoError(f, err)
	f.Add(state)
	f.Fuzz(func(t *testing.T, state []byte) {
		_, err := Thaw(n.rec.cfg, state)
		if err != nil {
			require.ErrorIs(t, err, errBroken)
		}
	})
}

// BenchmarkStep is a heartbeat with and without a record.
func BenchmarkStep(b *testing.B) {
	for _, bytes := range []int{0, DefaultBytes} {
		b.Run(fmt.Sprintf("record=%d", bytes), func(b *testing.B) {
			n, _ := lone(b, bytes, 3)
			from, body := id(b, "10.0.0.2:7355", 9), make([]byte, 40)
			var e node.Effects
			b.ReportAllocs()
			for i := range b.N {
				_ = n.Handle(time.Minute+time.Duration(i)*time.Millisecond, time.Minute, from, wire.KindHeartbeat, body)
				n.Drain(&e)
			}
		})
	}
}

// BenchmarkFreeze is the state of a coordinator that owns all shards of a type: what half a ring begins with.
func BenchmarkFreeze(b *testing.B) {
	for _, shards := range []uint32{100, 10_000} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			n, _ := lone(b, 0, 3)
			var e node.Effects
			typ := shard.Settings{Name: "many", Shards: shards}
			for i, cmd := range []any{shard.RegisterCommand{Settings: typ}, shard.EagerCommand{Type: typ.ID()}} {
				require.NoError(b, n.Do(time.Duration(4+i)*time.Second, cmd))
				n.Drain(&e)
			}
			for i := range 100 {
				n.Tick(time.Duration(10+i) * time.Second)
				n.Drain(&e)
			}
			state, err := Freeze(nil, n.Node, 0)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				state, _ = Freeze(state[:0], n.Node, 0)
			}
			b.ReportMetric(float64(len(state)), "bytes/state")
		})
	}
}
