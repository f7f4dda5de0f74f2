// Tests of the definitions of the early specification, sentence by sentence, and of each bound.

package quorum

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// bench is a few machines; a test carries their messages by hand.
type bench struct {
	t     *testing.T
	cfg   Config
	now   time.Duration
	disks []*MemoryEngine
	ms    []*Machine
	done  []Outcome
	keep  func(to peer.ID, x *message) bool // false: the message is lost
	full  bool                              // a disk may be full
	posts []*message
}

const wall = 1_800_000_000_000

func newBench(t *testing.T, cfg Config, n int) *bench {
	b := &bench{t: t, cfg: cfg}
	cfg.Founding = true
	for i := range n {
		b.disks = append(b.disks, Memory())
		b.ms = append(b.ms, nil)
		b.start(i, cfg, uint64(i+1))
	}
	b.members()
	return b
}

func (b *bench) start(i int, cfg Config, inc uint64) {
	m, err := Open(cfg, "c/s", id(i, inc), b.disks[i], wall+b.now.Milliseconds(), rand.New(rand.NewPCG(uint64(i), inc)))
	require.NoError(b.t, err)
	b.ms[i] = m
}

func id(i int, inc uint64) peer.ID {
	return peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7000", i+1)), Inc: inc}
}

func (b *bench) members() {
	var all peer.Set
	for _, m := range b.ms {
		all.Add(m.ID())
	}
	for _, m := range b.ms {
		require.NoError(b.t, m.Do(b.now, MembersCommand{All: all, Up: all}))
	}
}

// carry brings messages to and fro until there are none.
func (b *bench) carry() {
	for busy := true; busy; {
		busy = false
		for _, m := range b.ms {
			if err := m.Sync(); !b.full {
				require.NoError(b.t, err)
			}
			var e Effects
			m.Drain(&e)
			b.done = append(b.done, e.Done...)
			for _, x := range e.Sends {
				busy = b.bring(m.ID(), x) || busy
			}
		}
	}
}

func (b *bench) bring(from peer.ID, x Mail) bool {
	m, err := readMessage(x.Body, &b.ms[0].cfg)
	require.NoError(b.t, err)
	b.posts = append(b.posts, m)
	if b.keep != nil && !b.keep(x.To, m) {
		return false
	}
	for _, to := range b.ms {
		if to.ID() == x.To {
			require.NoError(b.t, to.Handle(b.now, from, x.Body))
		}
	}
	return true
}

// pass lets time go by.
func (b *bench) pass(d time.Duration) {
	for end := b.now + d; b.now < end; {
		b.now = min(b.now+time.Second, end)
		for _, m := range b.ms {
			m.Tick(b.now, wall+b.now.Milliseconds())
		}
		b.carry()
	}
}

// outcome carries out a command and returns what comes of it.
func (b *bench) outcome(i int, c Command) Outcome {
	b.t.Helper()
	b.done = nil
	require.NoError(b.t, b.ms[i].Do(b.now, c))
	b.carry()
	if len(b.done) == 0 {
		b.pass(3 * time.Second)
	}
	require.Len(b.t, b.done, 1)
	return b.done[0]
}

var last uint64

func number() uint64 {
	last++
	return last
}

func (b *bench) put(i int, key, data string, c gossip.Clock) Outcome {
	b.t.Helper()
	return b.outcome(i, PutCommand{Number: number(), Key: []byte(key), Data: []byte(data), Context: c})
}

func (b *bench) get(i int, key string) Outcome {
	b.t.Helper()
	return b.outcome(i, GetCommand{Number: number(), Key: []byte(key)})
}

func datas(o Outcome) (list []string) {
	for i := range o.Entry {
		list = append(list, string(o.Entry[i].Data))
	}
	return list
}

// of returns what a replica has of a key.
func (b *bench) of(i int, key string) []string {
	return datas(Outcome{Entry: b.ms[i].entry(&step{}, []byte(key))})
}

// TestLevels: "N = replication factor, R = read replica count, W = write replica count, Q = QUORUM = N / 2 + 1,
// W + R > N = full consistency" (DYN-1).
func TestLevels(t *testing.T) {
	for n, q := range []int{1, 1, 2, 2, 3, 3, 4, 4, 5, 5} {
		require.Equal(t, q, Quorum(n), "N %d", n)
		if n > 0 {
			c := Config{N: n}.WithDefaults()
			require.Equal(t, [3]int{n, q, q}, [3]int{c.N, c.R, c.W})
			require.True(t, c.Full(), "two quorums of %d meet", n)
		}
	}
	require.False(t, Config{N: 3, R: 1, W: 2}.Full())
	require.True(t, Config{N: 3, R: 1, W: 3}.Full())
	require.NoError(t, Config{}.Validate())
	err := Config{N: 10, R: -1, W: 11, Mode: 7, MaxKey: -1, Timeout: 1}.Validate()
	for _, field := range []string{"N is 10", "R is -1", "W is 11", "Mode is 7", "MaxKey is -1", "Timeout 1ns"} {
		require.ErrorContains(t, err, field)
	}
	require.ErrorContains(t, Config{Mode: Register, R: 1, W: 1}.Validate(), "must be above N 3 in Register")
	require.ErrorContains(t, Config{Grace: time.Minute}.Validate(), "above HintAge")
}

// TestWrite: "1. Wrap data in a Versioned Message. 2. Send a Versioned Message with the data to a number of nodes
// matching the W-value": it goes to all N, and W of them acknowledge it (DYN-1, DYN-2, DYN-4).
func TestWrite(t *testing.T) {
	b := newBench(t, Config{}, 3)
	o := b.put(0, "k", "v", nil)
	require.NoError(t, o.Err)
	require.Equal(t, gossip.Clock{{ID: b.ms[0].ID(), N: 1}}, o.Context)
	for i := range b.ms {
		e := b.ms[i].entry(&step{}, []byte("k"))
		require.Len(t, e, 1)
		require.Equal(t, "v", string(e[0].Data))
		require.Equal(t, e[0].sum(), e[0].Hash)
		require.Equal(t, o.Context, e[0].Version())
	}
	for lost, want := range []error{nil, nil, ErrTimeout} { // W is 2, and this node is one of the three
		b.keep = func(to peer.ID, m *message) bool {
			return m.kind != write || to != b.ms[1].ID() && lost > 0 && (to != b.ms[2].ID() || lost < 2) || lost == 0
		}
		require.ErrorIs(t, b.put(0, fmt.Sprint(lost), "v", nil).Err, want, "%d lost", lost)
	}
}

// TestRead: "1. Read from as many replicas as you need for the R-value. 2. Do comparison on the versions (using Vector
// Clocks). 3. If the versions differ then do Read Repair to update the inconsistent nodes. 4. Return the latest
// versioned data" (DYN-1, DYN-4).
func TestRead(t *testing.T) {
	b := newBench(t, Config{}, 3)
	first := b.put(0, "k", "old", nil)
	b.keep = func(to peer.ID, m *message) bool { return m.kind != write || to != b.ms[2].ID() }
	second := b.put(0, "k", "new", first.Context)
	require.Equal(t, gossip.After, second.Context.Compare(first.Context))
	require.Equal(t, []string{"old"}, b.of(2, "k"))
	b.keep = nil
	o := b.get(2, "k") // the one with the old version asks
	require.NoError(t, o.Err)
	require.Equal(t, []string{"new"}, datas(o))
	require.Equal(t, second.Context, o.Context)
	require.Equal(t, []string{"new"}, b.of(2, "k"), "read repair")
	require.Equal(t, uint64(1), b.ms[2].Stats().Repairs)

	b.keep = func(to peer.ID, m *message) bool { return m.kind != read }
	require.ErrorIs(t, b.get(0, "k").Err, ErrTimeout, "one answer, its own, and R is 2")
	b.keep = nil
	require.Empty(t, b.get(0, "nothing").Entry)
	require.Empty(t, b.get(0, "nothing").Context)
}

// TestLateAnswerIsRepaired: a replica is repaired too if its answer comes behind the outcome (DYN-4).
func TestLateAnswerIsRepaired(t *testing.T) {
	b := newBench(t, Config{}, 3)
	b.keep = func(to peer.ID, m *message) bool { return m.kind != write || to != b.ms[2].ID() }
	b.put(0, "k", "v", nil)
	var late []byte
	b.keep = nil
	require.NoError(t, b.ms[0].Do(b.now, GetCommand{Number: number(), Key: []byte("k")}))
	require.NoError(t, b.ms[0].Sync())
	var e Effects
	b.ms[0].Drain(&e)
	for _, x := range e.Sends {
		if x.To == b.ms[2].ID() {
			late = x.Body
			continue
		}
		b.bring(b.ms[0].ID(), x)
	}
	b.carry()
	require.Empty(t, b.of(2, "k"))
	b.bring(b.ms[0].ID(), Mail{b.ms[2].ID(), late})
	b.carry()
	require.Equal(t, []string{"v"}, b.of(2, "k"))
}

// TestConflict: writes that know nothing of one another are both handed to the caller; a write on top of both replaces
// them; a function may make one of them, and one that fails leaves them as they are (DYN-4).
func TestConflict(t *testing.T) {
	b := newBench(t, Config{}, 3)
	b.put(0, "k", "a", nil)
	b.put(1, "k", "b", nil)
	b.put(1, "k", "c", nil) // also at one broker: it had not read b
	o := b.get(2, "k")
	require.Equal(t, []string{"a", "b", "c"}, datas(o))
	require.Equal(t, uint64(1), b.ms[2].Stats().Conflicted)
	_, _, err := Resolve(o, func([][]byte) ([]byte, error) { return nil, errors.New("no") })
	require.ErrorContains(t, err, "no")
	require.Len(t, b.get(0, "k").Entry, 3)
	data, context, err := Resolve(o, func(values [][]byte) ([]byte, error) {
		return append(append(values[0], values[1]...), values[2]...), nil
	})
	require.NoError(t, err)
	b.put(0, "k", string(data), context)
	require.Equal(t, []string{"abc"}, datas(b.get(1, "k")))
}

// TestRegister: a read has W replicas hold what it returns before it answers, so that no later read goes back
// behind it, which W + R > N alone does not give (DYN-1).
func TestRegister(t *testing.T) {
	for mode, want := range map[Mode][]string{Siblings: nil, Register: {"v"}} {
		b := newBench(t, Config{Mode: mode}, 3)
		asks := func(m *message) bool { return m.kind == read || m.kind == held }
		b.keep = func(to peer.ID, m *message) bool { return asks(m) }
		require.ErrorIs(t, b.put(0, "k", "v", nil).Err, ErrTimeout) // it has reached one replica
		b.keep = func(to peer.ID, m *message) bool {
			return to != b.ms[2].ID() && (asks(m) || mode == Register && (m.kind == write || m.kind == wrote))
		}
		require.Equal(t, []string{"v"}, datas(b.get(0, "k")), "%v: from 0 and 1", mode)
		b.keep = func(to peer.ID, m *message) bool { return to != b.ms[0].ID() }
		require.Equal(t, want, datas(b.get(2, "k")), "%v: from 1 and 2", mode)
	}
	b := newBench(t, Config{Mode: Register}, 3)
	for i, v := range []string{"a", "b", "c"} {
		require.NoError(t, b.put(i, "k", v, nil).Err)
		o := b.get((i+1)%3, "k")
		require.Equal(t, []string{v}, datas(o))
		require.Equal(t, uint64(i+1), o.Entry[0].Counter)
	}
	require.NoError(t, b.outcome(0, PutCommand{Number: number(), Key: []byte("k"), Delete: true}).Err)
	require.Empty(t, b.get(1, "k").Entry)
}

// TestReplicasByConsistentHashing: every broker finds the same N replicas of a key; one that comes or goes moves no
// replica between others, and a new disk has the place of the one that was lost (DYN-3).
func TestReplicasByConsistentHashing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var members peer.Set
		for i := range rapid.IntRange(1, 20).Draw(t, "members") {
			members.Add(id(i, 1))
		}
		n, group := rapid.IntRange(1, 5).Draw(t, "n"), rapid.Uint8Max(Groups-1).Draw(t, "group")
		before := replicasOf(group, members, n)
		require.Len(t, before, min(n, len(members)))
		gone := rapid.SampledFrom(members).Draw(t, "gone")
		fewer := members.Clone()
		fewer.Remove(gone)
		var stay []peer.ID
		for _, r := range before {
			if r != gone {
				stay = append(stay, r)
			}
		}
		require.Subset(t, replicasOf(group, fewer, n), stay)
		fewer.Add(peer.ID{Addr: gone.Addr, Inc: 99})
		for i, r := range replicasOf(group, fewer, n) {
			require.Equal(t, before[i].Addr, r.Addr)
		}
	})
	shares := map[peer.ID]int{}
	var members peer.Set
	for i := range 8 {
		members.Add(id(i, 1))
	}
	for g := range Groups {
		for _, r := range replicasOf(uint8(g), members, 3) {
			shares[r]++
		}
	}
	for _, m := range members {
		require.InDelta(t, Groups*3/8, shares[m], 16)
	}
}

// TestVersions: entries keep what replaces nothing else, in any order of arrival (DYN-2). A reader that has got a value
// has got the earlier ones of the same replica too, which TestHistoriesOfSiblings sees to.
func TestVersions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom([]Mode{Siblings, Register}).Draw(t, "mode")
		var all []Versioned
		seqs := map[int]uint64{}
		for k := range rapid.IntRange(1, 8).Draw(t, "n") {
			by := rapid.IntRange(0, 2).Draw(t, "by")
			seqs[by]++
			v := Versioned{By: id(by, 1), Seq: seqs[by], Data: []byte{byte(k)},
				Counter: uint64(rapid.IntRange(1, 3).Draw(t, "c"))}
			for i := range all { // what its writer had read
				if m != Siblings || !rapid.Bool().Draw(t, "knows") {
					continue
				}
				for j := range all[:i+1] {
					if all[j].By == all[i].By {
						v.Past = v.Past.Merge(all[j].Version())
					}
				}
			}
			v.seal()
			all = append(all, v)
		}
		var one, other, twice Entry
		for i := range all {
			one, _ = one.Merge(Entry{all[i]}, m)
		}
		for _, i := range rapid.Permutation(seqOf(len(all))).Draw(t, "order") {
			other, _ = other.Merge(Entry{all[i]}, m)
		}
		require.Equal(t, one, other)
		twice, changed := one.Merge(other, m)
		require.False(t, changed)
		require.Equal(t, one, twice)
		require.False(t, one.lacks(other, m))
		require.Equal(t, one.digest([]byte("k")), other.digest([]byte("k")))
		for i := range all { // nothing is dropped but what another one replaces
			_, changed := one.Merge(Entry{all[i]}, m)
			require.False(t, changed)
		}
		for i := range one {
			for j := range one {
				if i != j {
					require.Equal(t, gossip.Concurrent, one[i].Compare(&one[j], m))
				}
			}
		}
		r := wire.NewReader(0, AppendEntry(nil, one))
		require.Equal(t, one, ReadEntry(&r, 8, 10))
		require.NoError(t, r.Done())
	})
}

func seqOf(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// someMessage has every field.
func someMessage() *message {
	v := Versioned{By: id(1, 7), Seq: 9, Past: gossip.Clock{{ID: id(0, 3), N: 4}}, Counter: 2, Data: []byte("data")}
	d := Versioned{By: id(2, 7), Seq: 1, Deleted: true, At: wall}
	v.seal()
	d.seal()
	return &message{kind: fix, number: 5, group: 3, leaf: 2, lacking: true, more: true, key: []byte("key"),
		last:  []byte("z"),
		entry: Entry{v}, items: []item{{key: []byte("a"), digest: 1, entry: Entry{v, d}}}, sums: []uint64{1, 2}}
}

// TestMessages: what is written is read; each cut, each bit of an entry, and each number out of bounds is refused.
func TestMessages(t *testing.T) {
	cfg := Config{}.WithDefaults()
	body := someMessage().append(nil)
	got, err := readMessage(body, &cfg)
	require.NoError(t, err)
	require.Equal(t, someMessage(), got)
	for n := range body {
		_, err := readMessage(body[:n], &cfg)
		require.Error(t, err, "%d bytes", n)
	}
	_, err = readMessage(append(body, 0), &cfg)
	require.Error(t, err)
	for _, change := range []func(*message){
		func(m *message) { m.kind = 0 }, func(m *message) { m.kind = led + 1 }, func(m *message) { m.group = Groups },
		func(m *message) { m.leaf = leaves }, func(m *message) { m.reason = late + 1 },
		func(m *message) { m.key = make([]byte, cfg.MaxKey+1) }, func(m *message) { m.items = make([]item, maxItems+1) },
		func(m *message) { m.sums = make([]uint64, Groups+1) },
		func(m *message) { m.entry[0].Seq = 0; m.entry[0].seal() },
		func(m *message) { m.entry[0].Data = []byte("other") },
		func(m *message) { m.entry[0].Past = m.entry[0].Version() },
		func(m *message) { m.entry = append(m.entry, m.entry[0]) },
		func(m *message) { m.items[0].entry[1].Data = []byte("x"); m.items[0].entry[1].seal() },
		func(m *message) { m.entry[0].Data = make([]byte, cfg.MaxValue+1); m.entry[0].seal() },
	} {
		m := someMessage()
		change(m)
		_, err := readMessage(m.append(nil), &cfg)
		require.Error(t, err)
	}
	b := newBench(t, Config{}, 2)
	require.ErrorIs(t, b.ms[0].Handle(0, b.ms[1].ID(), []byte("nonsense")), ErrNonsense)
	require.Equal(t, uint64(1), b.ms[0].Stats().Refused)
	require.NoError(t, b.ms[0].Handle(0, id(9, 9), body), "of no member: dropped")
	require.Empty(t, b.ms[0].inbox)
}

// FuzzMessage: no bytes of a peer do harm, and what is understood is written as it was read.
func FuzzMessage(f *testing.F) {
	f.Add(someMessage().append(nil))
	f.Add((&message{kind: read, number: 1, key: []byte("k")}).append(nil))
	cfg := Config{}.WithDefaults()
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := readMessage(body, &cfg)
		if err != nil {
			return
		}
		again, err := readMessage(m.append(nil), &cfg)
		require.NoError(t, err)
		require.Equal(t, m.append(nil), again.append(nil))
		b := newBench(&testing.T{}, Config{}, 2)
		if b.ms[0].Handle(0, b.ms[1].ID(), body) == nil {
			require.NoError(t, b.ms[0].Sync())
		}
	})
}

// TestRequestsThatAreRefused: each with its error, and nothing has changed.
func TestRequestsThatAreRefused(t *testing.T) {
	b := newBench(t, Config{MaxKey: 4, MaxValue: 5, MaxRequests: 1, MaxSiblings: 2}, 3)
	m, n := b.ms[0], Effects{}
	put := func(c PutCommand) error { return m.Do(b.now, c) }
	require.ErrorIs(t, put(PutCommand{Number: 1, Key: nil}), ErrTooLarge)
	require.ErrorIs(t, put(PutCommand{Number: 1, Key: []byte("12345")}), ErrTooLarge)
	require.ErrorIs(t, put(PutCommand{Number: 1, Key: []byte("k"), Data: make([]byte, 6)}), ErrTooLarge)
	require.ErrorIs(t, put(PutCommand{Number: 1, Key: []byte("k"), Context: gossip.Clock{{ID: m.ID(), N: 5}}}),
		ErrContext)
	require.ErrorIs(t, m.Do(b.now, nil), ErrNonsense)
	m.Drain(&n)
	require.Empty(t, n)
	require.NoError(t, put(PutCommand{Number: 1, Key: []byte("k")}))
	require.ErrorIs(t, m.Do(b.now, GetCommand{Number: 2, Key: []byte("k")}), ErrBusy)
	b.carry()
	b.put(1, "k", "2", nil)
	require.ErrorIs(t, b.put(2, "k", "3", nil).Err, ErrSiblings)
	require.Len(t, b.get(0, "k").Entry, 2)

	small := newBench(t, Config{}, 2)
	require.ErrorIs(t, small.ms[0].Do(0, GetCommand{Number: 1, Key: []byte("k")}), ErrMembers)
	short := newBench(t, Config{Short: true}, 2)
	require.NoError(t, short.put(0, "k", "v", nil).Err)
	short.keep = func(peer.ID, *message) bool { return false }
	require.ErrorIs(t, short.put(0, "k", "v", nil).Err, ErrTimeout, "never with fewer than W")
	alone := newBench(t, Config{Short: true}, 1)
	require.ErrorIs(t, alone.ms[0].Do(0, GetCommand{Number: 1, Key: []byte("k")}), ErrMembers)
}

// TestDisks: a disk of another store or address is refused, and so is one that was away for longer than deletions are
// remembered; a restart keeps the id, and uses no number twice.
func TestDisks(t *testing.T) {
	b := newBench(t, Config{}, 3)
	b.put(0, "k", "v", nil)
	disk, rng := b.disks[0], rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		name string
		self peer.ID
		wall int64
		want error
	}{
		{"c/other", id(0, 9), wall, ErrDisk}, {"c/s", id(1, 9), wall, ErrDisk}, {"", id(0, 9), wall, ErrDisk},
		{"c/s", id(0, 9), wall + (25 * time.Hour).Milliseconds(), ErrOld},
	} {
		_, err := Open(b.cfg, c.name, c.self, disk, c.wall, rng)
		require.ErrorIs(t, err, c.want)
	}
	_, err := Open(Config{N: 99}, "c/s", id(0, 9), disk, wall, rng)
	require.ErrorContains(t, err, "N is 99")
	before := b.ms[0].seq
	b.start(0, b.cfg, 77)
	require.Equal(t, id(0, 1), b.ms[0].ID())
	require.Greater(t, b.ms[0].seq, before)
	require.Equal(t, 1, b.ms[0].Stats().Keys)
	require.Zero(t, b.ms[0].Stats().Lacking)

	copied := disk.Copy()
	require.ErrorIs(t, Renew(b.cfg, id(0, 5), Memory(), wall), ErrDisk)
	require.ErrorIs(t, Renew(b.cfg, id(0, 5), copied, wall+(25*time.Hour).Milliseconds()), ErrOld)
	require.NoError(t, Renew(b.cfg, id(0, 5), copied, wall))
	m, err := Open(b.cfg, "c/s", id(0, 6), copied, wall, rng)
	require.NoError(t, err)
	require.Equal(t, id(0, 5), m.ID())
}

// TestEmptyDiskDoesNotCount: a replica that lost its disk answers no read for R until it has read what the others
// hold, and then it holds all.
func TestEmptyDiskDoesNotCount(t *testing.T) {
	b := newBench(t, Config{}, 3)
	b.keep = func(to peer.ID, m *message) bool { return m.kind != write || to != b.ms[2].ID() }
	for k := range 200 {
		require.NoError(t, b.put(0, fmt.Sprint("k", k), "v", nil).Err)
	}
	b.keep = nil
	b.disks[1] = Memory() // one of the two that have the writes
	b.start(1, b.cfg, 50)
	b.members()
	require.Equal(t, Groups, b.ms[1].Stats().Lacking)
	b.keep = func(to peer.ID, m *message) bool { return to != b.ms[0].ID() && m.kind != pull }
	o := b.get(2, "k7")
	require.ErrorIs(t, o.Err, ErrTimeout, "from 1, which lacks, and 2, which never had it")
	b.keep = nil
	b.pass(20 * time.Second)
	require.Zero(t, b.ms[1].Stats().Lacking)
	for i := range b.ms {
		require.Equal(t, 200, b.ms[i].Stats().Keys, "replica %d", i)
		require.Equal(t, b.ms[0].trees, b.ms[i].trees)
	}
}

// TestHints: a write that a replica missed waits at its broker, on disk, until the replica answers; a hint never counts
// for W, and there are bounds on their bytes and their age.
func TestHints(t *testing.T) {
	cfg := Config{Round: 30 * time.Second, MaxHints: 100}
	b := newBench(t, cfg, 3)
	lost := b.ms[2].ID()
	b.keep = func(to peer.ID, m *message) bool { return to != lost }
	b.put(0, "k", "v", nil)
	b.put(0, "l", "w", nil)
	b.pass(10 * time.Second)
	s := b.ms[0].Stats()
	require.Equal(t, 1, s.Hints, "the bound holds one of them")
	require.LessOrEqual(t, s.HintBytes, 100)
	require.Equal(t, uint64(1), s.HintsGone)
	b.start(0, cfg, 9)
	b.members()
	require.Equal(t, 1, b.ms[0].Stats().Hints)
	b.keep = func(to peer.ID, m *message) bool { return m.kind == write || m.kind == wrote }
	b.pass(time.Minute)
	require.Equal(t, []string{"v"}, b.of(2, "k"))
	require.Zero(t, b.ms[0].Stats().Hints)

	b.keep = func(to peer.ID, m *message) bool { return to != lost }
	b.put(0, "m", "v", nil)
	b.pass(10 * time.Second)
	require.Equal(t, 1, b.ms[0].Stats().Hints)
	b.pass(2 * time.Hour)
	require.Zero(t, b.ms[0].Stats().Hints)
	b.keep = func(to peer.ID, m *message) bool { return to != b.ms[1].ID() && to != lost }
	require.ErrorIs(t, b.put(0, "n", "v", nil).Err, ErrTimeout)
}

// TestDeletions: a deletion is a version; it is forgotten after Grace, and what it deleted does not come back.
func TestDeletions(t *testing.T) {
	b := newBench(t, Config{Round: time.Minute}, 3)
	o := b.put(0, "k", "v", nil)
	away := b.disks[2].Copy()
	del := PutCommand{Number: number(), Key: []byte("k"), Delete: true, Context: o.Context}
	require.NoError(t, b.outcome(1, del).Err)
	got := b.get(0, "k")
	require.Empty(t, got.Entry)
	require.NotEmpty(t, got.Context)
	require.Equal(t, 1, b.ms[0].Stats().Keys)
	for range 25 * 60 {
		b.pass(time.Minute)
	}
	for i := range b.ms {
		require.Zero(t, b.ms[i].Stats().Keys)
		require.Equal(t, uint64(1), b.ms[i].Stats().Purged)
		require.False(t, b.ms[i].Old())
	}
	_, err := Open(b.cfg, "c/s", b.ms[2].ID(), away, wall+b.now.Milliseconds(), rand.New(rand.NewPCG(1, 1)))
	require.ErrorIs(t, err, ErrOld)
	b.keep = func(to peer.ID, m *message) bool { return false }
	for range 25 * 60 {
		b.pass(time.Minute)
	}
	require.True(t, b.ms[2].Old(), "alone for as long as that")
	require.ErrorIs(t, b.ms[2].Do(b.now, GetCommand{Number: number(), Key: []byte("k")}), ErrMembers)
}

// TestFuture: a deletion from the future, and a change of its own that a replica never made, are not taken.
func TestFuture(t *testing.T) {
	b := newBench(t, Config{}, 3)
	to := b.ms[0]
	for _, v := range []Versioned{
		{By: id(1, 2), Seq: 1, Deleted: true, At: wall + 2*future},
		{By: to.ID(), Seq: 1 << 40},
		{By: id(1, 2), Seq: 1, Past: gossip.Clock{{ID: to.ID(), N: 1 << 40}}},
	} {
		v.seal()
		m := message{kind: write, number: 1, key: []byte("k"), entry: Entry{v}}
		require.NoError(t, to.Handle(0, id(1, 2), m.append(nil)))
		require.NoError(t, to.Sync())
		var e Effects
		to.Drain(&e)
		require.Empty(t, e)
		require.Empty(t, b.of(0, "k"))
	}
	require.Equal(t, uint64(3), to.Stats().Refused)
}

// TestFullDisk: a write that is not on disk is not acknowledged, and the replica goes on when there is room.
func TestFullDisk(t *testing.T) {
	b := newBench(t, Config{}, 3)
	b.disks[0].Room = b.disks[0].size + 1
	require.NoError(t, b.ms[0].Do(0, PutCommand{Number: number(), Key: []byte("k"), Data: []byte("v")}))
	require.ErrorIs(t, b.ms[0].Sync(), ErrFull)
	require.Equal(t, uint64(1), b.ms[0].Stats().Failed)
	b.done, b.full = nil, true
	b.carry()
	require.Len(t, b.done, 1, "the others are W")
	require.NoError(t, b.done[0].Err)
	require.Empty(t, b.of(0, "k"))
	b.disks[0].Room, b.full = 0, false
	b.pass(10 * time.Second)
	require.Equal(t, []string{"v"}, b.of(0, "k"))
}

// TestDamage: an entry with a bit flipped on its disk is nothing that is answered, and comes back from the others.
func TestDamage(t *testing.T) {
	b := newBench(t, Config{}, 3)
	b.put(0, "k", "v", nil)
	at := string(diskKey([]byte("k")))
	b.disks[1].kept[at][len(b.disks[1].kept[at])-1] ^= 4
	require.Equal(t, []string{"v"}, datas(b.get(1, "k")))
	require.Positive(t, b.ms[1].Stats().Damaged)
	b.pass(30 * time.Second)
	require.Equal(t, []string{"v"}, b.of(1, "k"))
	require.Equal(t, b.ms[0].trees, b.ms[1].trees)
}

// TestNumbersAreReservedOnDisk: no number of a change is used twice, however a process ends; without a disk there is
// none.
func TestNumbersAreReservedOnDisk(t *testing.T) {
	b := newBench(t, Config{}, 3)
	b.ms[0].seq = b.ms[0].ident.reserved - 2
	require.NoError(t, b.put(0, "k", "v", nil).Err)
	b.ms[0].seq = b.ms[0].ident.reserved - 1
	b.disks[0].Room = 1
	_, err := b.ms[0].stamp(&PutCommand{})
	require.ErrorIs(t, err, ErrFull)
	b.disks[0].Room = 0
	top := b.ms[0].ident.reserved
	b.start(0, b.cfg, 9)
	require.GreaterOrEqual(t, b.ms[0].seq, top)
}
