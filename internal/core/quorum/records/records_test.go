// Tests of one machine alone: its bounds, its disk, and what it takes for a message.

package records

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/quorum"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

var (
	self  = peer.ID{Addr: peer.MustAddr("10.0.0.1:7000"), Inc: 1}
	other = peer.ID{Addr: peer.MustAddr("10.0.0.2:7000"), Inc: 2}
	shard = Shard{"t", 1}
	fence = route.MakeFence(1, 1, 1)
)

func opened(t *testing.T, cfg Config, disk Engine) *Machine {
	m, err := Open(cfg, "c/s", self, disk, rand.New(rand.NewPCG(1, 1)))
	require.NoError(t, err)
	return m
}

// alone returns a machine of a store that is founded on its disk alone.
func alone(t *testing.T, cfg Config) (*Machine, *quorum.MemoryEngine) {
	disk := quorum.Memory()
	m := opened(t, cfg, disk)
	require.NoError(t, m.Do(0, FoundCommand{Groups: []peer.Set{{self}}}))
	return m, disk
}

// outcomes steps a machine that needs no other one.
func outcomes(t *testing.T, m *Machine) []Outcome {
	require.NoError(t, m.Sync())
	var e Effects
	m.Drain(&e)
	require.Empty(t, e.Sends)
	return e.Done
}

func put(id string, version uint64) Write {
	return Write{Record: Record{ID: id, Version: version, Nonce: [16]byte{1, byte(version)}}}
}

// TestEntryBehindAChange: the owner has one more entry decided behind a change of set, also where nothing is to be
// written: from then on the set before may be gone (DYN-1).
func TestEntryBehindAChange(t *testing.T) {
	m, _ := alone(t, Config{})
	require.NoError(t, m.Do(0, ClaimCommand{1, shard, fence}))
	require.NoError(t, m.Do(0, ChangeCommand{2, shard, fence, peer.SetOf(self)}))
	for _, o := range outcomes(t, m) {
		require.NoError(t, o.Err)
	}
	h, err := m.loaded(shard)
	require.NoError(t, err)
	require.Equal(t, uint64(1), h.current().At)
	require.Equal(t, uint64(2), h.stamp.Number)
	require.EqualValues(t, 2, m.Stats().Entries)
}

// TestGroupCommit: what waits while an entry is under way goes into the next one, each with its own outcome (DYN-1).
func TestGroupCommit(t *testing.T) {
	m, _ := alone(t, Config{})
	require.NoError(t, m.Do(0, ClaimCommand{1, shard, fence}))
	require.NoError(t, m.Do(0, CommitCommand{2, shard, fence, []Write{put("a", 1)}}))
	require.NoError(t, m.Do(0, CommitCommand{3, shard, fence, []Write{put("a", 3)}}))
	require.NoError(t, m.Do(0, CommitCommand{4, shard, fence, []Write{put("a", 2), put("b", 1)}}))
	done := map[uint64]error{}
	for _, o := range outcomes(t, m) {
		done[o.Number] = o.Err
	}
	require.Len(t, done, 4)
	require.NoError(t, done[1])
	require.NoError(t, done[2])
	require.ErrorIs(t, done[3], ErrVersion)
	require.NoError(t, done[4])
	require.Equal(t, uint64(1), m.Stats().Entries)
	require.Equal(t, uint64(2), m.Stats().Commits)
}

// TestBounds: what exceeds a bound is an error, and nothing changes (DYN-1).
func TestBounds(t *testing.T) {
	m, _ := alone(t, Config{MaxRequests: 2, MaxShards: 1})
	require.ErrorIs(t, m.Do(0, CommitCommand{1, Shard{}, fence, []Write{put("a", 1)}}), ErrTooLarge)
	require.ErrorIs(t, m.Do(0, CommitCommand{1, shard, route.Fence{}, []Write{put("a", 1)}}), ErrTooLarge)
	require.ErrorIs(t, m.Do(0, CommitCommand{1, shard, fence, nil}), ErrTooLarge)
	require.ErrorIs(t, m.Do(0, ForgetCommand{1, shard, fence, 0, 0}), ErrTooLarge)
	require.ErrorIs(t, m.Do(0, ReadCommand{1, shard, fence, Query{}}), ErrTooLarge)
	require.ErrorIs(t, m.Do(0, ChangeCommand{1, shard, fence, nil}), ErrTooLarge)
	large := put("a", 1)
	large.State = make([]byte, 2<<20)
	require.ErrorIs(t, m.Do(0, CommitCommand{1, shard, fence, []Write{large}}), ErrTooLarge)
	require.NoError(t, m.Do(0, ClaimCommand{1, shard, fence}))
	require.ErrorIs(t, m.Do(0, ClaimCommand{2, Shard{"t", 2}, fence}), ErrBusy)
	require.NoError(t, m.Do(0, ClaimCommand{2, shard, fence}))
	require.ErrorIs(t, m.Do(0, ClaimCommand{3, shard, fence}), ErrBusy)
	require.Len(t, outcomes(t, m), 2)
	require.ErrorIs(t, m.Do(0, FoundCommand{Groups: []peer.Set{{self}}}), ErrFounded)
	require.Error(t, Config{MaxEntry: 1, Page: 1, Again: time.Hour}.Validate())
}

// TestUnfounded: nothing is served before the store is founded, and requests end in time (DYN-1).
func TestUnfounded(t *testing.T) {
	m := opened(t, Config{}, quorum.Memory())
	require.ErrorIs(t, m.Do(0, ClaimCommand{1, shard, fence}), ErrUnfounded)
	require.NoError(t, m.Do(0, FoundCommand{Groups: []peer.Set{peer.SetOf(self, other)}}))
	require.NoError(t, m.Do(0, ClaimCommand{1, shard, fence}))
	require.NoError(t, m.Sync())
	for now, ok := m.Next(); ok; now, ok = m.Next() {
		m.Tick(now)
		require.NoError(t, m.Sync())
	}
	var e Effects
	m.Drain(&e)
	require.Len(t, e.Done, 1)
	require.ErrorIs(t, e.Done[0].Err, ErrTimeout)
	require.Zero(t, m.Stats().Requests)
}

// TestDisks: a disk is that of one replica of one store, and keeps its id (DYN-1).
func TestDisks(t *testing.T) {
	m, disk := alone(t, Config{})
	require.NoError(t, m.Do(0, ClaimCommand{1, shard, fence}))
	require.Len(t, outcomes(t, m), 1)
	_, err := Open(Config{}, "another", self, disk, rand.New(rand.NewPCG(1, 1)))
	require.ErrorIs(t, err, ErrDisk)
	_, err = Open(Config{}, "c/s", other, disk, rand.New(rand.NewPCG(1, 1)))
	require.ErrorIs(t, err, ErrDisk)
	again := opened(t, Config{}, disk)
	require.True(t, again.Founded())
	require.Equal(t, 1, again.Stats().Shards)
	require.NoError(t, again.Do(0, CommitCommand{1, shard, route.MakeFence(1, 1, 2), []Write{put("a", 1)}}))
	require.ErrorIs(t, outcomes(t, again)[0].Err, ErrUnclaimed)
	require.NoError(t, again.Do(0, CommitCommand{2, shard, fence, []Write{put("a", 1)}}))
	require.NoError(t, outcomes(t, again)[0].Err, "it was claimed under this fence")
}

// messages returns one of each kind, all that they may carry in them.
func messages() []*message {
	b := Ballot{fence, 3, 4}
	sets := Sets{peer.SetOf(self, other), peer.SetOf(other), 7}
	w := put("a", 9)
	w.Marks = []Mark{{From: "x", Number: 2, At: 3, Value: []byte{4}}}
	entry := appendBatch(nil, [][]byte{appendCommit(nil, []Write{w}), appendForget(nil, 5, 6)})
	change := appendChange(nil, sets.Now)
	held := message{promise: b, stamp: Stamp{b, 7, 8}, before: fence, sets: sets, state: 9, entry: entry}
	of := func(k kind, m message) *message {
		m.kind, m.shard, m.ballot, m.number = k, shard, b, 5
		return &m
	}
	reads, parts := held, held
	reads.entry = nil
	reads.answer = Answer{Floor: 1, Count: 2, Done: 3, More: true, Records: []Record{w.Record}, Marks: w.Marks,
		Alarms: []Alarm{{"a", 4}}, IDs: []string{"b"}}
	parts.part, parts.items = 2, []Change{{Key: []byte("k"), Value: []byte("v")}, {Key: []byte("gone")}}
	return []*message{
		of(claim, message{}), of(promised, held),
		of(write, message{stamp: held.stamp, before: fence, entry: change, entries: [][]byte{entry}}),
		of(wrote, message{promise: b, stamp: held.stamp, results: []result{{true, 0}, {false, 3}}}),
		of(read, message{want: true, decided: 6, query: Query{Ask: AskDue, ID: "i", From: "f", IDs: []string{"a"}, By: -1,
			After: 2, First: true, Most: 3}}),
		of(answered, reads), of(fetch, message{from: other}), of(pull, message{part: 2, from: other}), of(part, parts),
		{kind: founding}, {kind: founded, found: found{7, []peer.Set{sets.Now, sets.Prior}}},
	}
}

// TestMessages: what is written is read, nothing shorter is, and a decoder takes what it would write (DYN-1).
func TestMessages(t *testing.T) {
	cfg := Config{}.WithDefaults()
	for _, m := range messages() {
		b := m.append(nil, 42)
		got, store, err := readMessage(b, &cfg)
		require.NoError(t, err, "kind %d", m.kind)
		require.Equal(t, uint64(42), store)
		require.Equal(t, b, got.append(nil, 42))
		for n := range b {
			_, _, err := readMessage(b[:n], &cfg)
			require.Error(t, err, "kind %d, %d of %d bytes", m.kind, n, len(b))
		}
	}
}

// FuzzMessage: no message brings a machine down, and one that is refused changes nothing.
func FuzzMessage(f *testing.F) {
	for _, m := range messages() {
		f.Add(m.append(nil, 0))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, disk := alone(t, Config{})
		require.NoError(t, m.Do(0, ClaimCommand{1, shard, fence}))
		require.Len(t, outcomes(t, m), 1)
		if len(body) > 9 {
			body = append(append(bytes.Clone(body[:1]), m.found.append(nil)[:8]...), body[9:]...)
		}
		size := disk.Bytes()
		if m.Handle(0, other, body) != nil {
			require.Empty(t, m.inbox)
		}
		_ = m.Sync()
		if size > disk.Bytes()+1<<16 {
			t.Fatal("the disk has lost something")
		}
	})
}
