//go:build linux

// Tests of the engine: the suite against a real server, which is killed and started again beneath it.

package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kith-io/kith/internal/lab/queuetest"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/store/storetest"
)

func fence(n int) route.Fence { return route.MakeFence(7, 3, uint32(n)) }

func within2min(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// engine is what suites test: each store with connections of its own, as other processes have them.
func engine(t *testing.T) storetest.Engine {
	s := need(t)
	return storetest.Engine{
		Open: func(t *testing.T) store.Store { return open(t, s) },
		Again: func(t *testing.T) {
			s.crash(t)
		},
	}
}

// TestEngine: the suite.
func TestEngine(t *testing.T) { storetest.Run(t, engine(t)) }

// TestQueues: queues of package delivery keep their promises (SHD-10).
func TestQueues(t *testing.T) { queuetest.Run(t, engine(t)) }

// unknowing is a store that knows nothing of what it read or wrote.
type unknowing struct{ *Store }

func (u unknowing) Commit(ctx context.Context, at store.Shard, f route.Fence, w ...store.Write) error {
	u.known.mu.Lock()
	u.known.young, u.known.old, u.known.weight = nil, nil, 0
	u.known.mu.Unlock()
	return u.Store.Commit(ctx, at, f, w...)
}

// TestWithoutKnowledge: the suite, where each commit reads first.
func TestWithoutKnowledge(t *testing.T) {
	s := need(t)
	storetest.Run(t, storetest.Engine{Open: func(t *testing.T) store.Store { return unknowing{open(t, s)} }})
}

// TestServerComesAndGoes: owners go on writing, and repeat what is not known, while their server is killed and started
// again. Each write takes place once, and what was acknowledged is there.
func TestServerComesAndGoes(t *testing.T) {
	const shards, rounds = 4, 3
	s := need(t)
	st, ctx := open(t, s), within2min(t)
	told := make([]uint64, shards)
	ready := make(chan struct{}, shards) // each has written in this round
	var all sync.WaitGroup
	over, end := context.WithCancel(ctx)
	next := make([]chan struct{}, rounds+1)
	for i := range next {
		next[i] = make(chan struct{})
	}
	for n := range shards {
		at := store.Shard{Type: t.Name(), N: route.ShardID(n)}
		_, err := st.Claim(ctx, at, fence(1))
		require.NoError(t, err)
		all.Go(func() {
			round := 0
			for v := uint64(1); over.Err() == nil; v++ {
				w := storetest.Put("a", v, fmt.Sprint(v))
				w.Outbox, w.Due = []byte("x"), time.UnixMilli(int64(v))
				err := st.Commit(ctx, at, fence(1), w)
				for errors.Is(err, store.ErrUnknown) && ctx.Err() == nil {
					err = st.Commit(ctx, at, fence(1), w)
				}
				if err != nil {
					t.Errorf("version %d: %v", v, err)
					return
				}
				told[n] = v
				select {
				case <-next[round]:
					round = min(round+1, rounds)
					select {
					case ready <- struct{}{}:
					default:
					}
				default:
				}
			}
		})
	}
	for i := range rounds {
		close(next[i])
		for range shards {
			select {
			case <-ready:
			case <-ctx.Done():
				t.Fatal("the owners do not go on")
			}
		}
		s.crash(t)
	}
	end()
	all.Wait()
	for n := range shards {
		at := store.Shard{Type: t.Name(), N: route.ShardID(n)}
		list, err := st.Load(ctx, at, fence(1), "a")
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, told[n], list[0].Version)
		require.Equal(t, fmt.Sprint(told[n]), string(list[0].State))
		var due []store.Alarm
		for a, err := range st.Due(ctx, at, time.UnixMilli(1<<40)) {
			require.NoError(t, err)
			due = append(due, a)
		}
		require.Equal(t, []store.Alarm{{ID: "a", At: list[0].Due}}, due, "no alarm of an earlier version is left")
	}
}

// TestLargestCommit: what the bounds of package store allow at most is one transaction, within the bounds that a server
// has by default, also where every index changes.
func TestLargestCommit(t *testing.T) {
	s := need(t)
	ctx, at := within2min(t), store.Shard{Type: strings.Repeat("t", 255), N: 1<<20 - 1}
	st := open(t, s)
	require.Len(t, st.prefix, MaxPrefix)
	_, err := st.Claim(ctx, at, fence(1))
	require.NoError(t, err)
	largest := func(version uint64, due time.Time, outbox string, marks, from int) (w []store.Write) {
		left := store.MaxBytes
		for i := range store.MaxWrites {
			id := fmt.Sprintf("%0*d", route.MaxIDSize, i)
			put := storetest.Put(id, version, "")
			put.Due, put.Outbox = due, []byte(outbox)
			for m := range marks {
				who := fmt.Sprintf("%0*d", from, m)
				put.Marks = append(put.Marks, store.Mark{From: who, Number: version, At: time.UnixMilli(int64(version) << 30)})
			}
			w = append(w, put)
			left -= put.Size()
		}
		require.GreaterOrEqual(t, left, 0)
		for i := range w {
			n := left / (len(w) - i)
			w[i].State = make([]byte, n)
			left -= n
		}
		return w
	}
	for i, c := range []struct{ marks, from int }{{store.MaxMarks, 2}, {store.MaxMarks, 25}, {6, store.MaxFrom}, {0, 1}} {
		version := uint64(2*i + 1)
		require.NoError(t, st.Commit(ctx, at, fence(1), largest(version, time.UnixMilli(1), "x", c.marks, c.from)...))
		w := largest(version+1, time.UnixMilli(2), "", c.marks, c.from)
		require.NoError(t, st.Commit(ctx, at, fence(1), w...))
		require.NoError(t, st.Commit(ctx, at, fence(1), w...), "a repeat")
		w[99].Nonce[0]++
		require.ErrorIs(t, st.Commit(ctx, at, fence(1), w...), store.ErrVersion)
	}
	for range st.Unsent(ctx, at) {
		t.Fatal("an outbox is left")
	}
}

// TestOperationsAreSplit: so that the longest lists of all levels, summed, are within what servers allow.
func TestOperationsAreSplit(t *testing.T) {
	for _, n := range []int{1, across, across + 1, 1200, store.MaxWrites*(store.MaxMarks+6) + 1} {
		ops := make([]clientv3.Op, n)
		for i := range ops {
			ops[i] = clientv3.OpPut(fmt.Sprint(i), "")
		}
		top := packed(ops)
		leaves, deep := weigh(top)
		require.Equal(t, n, leaves)
		require.LessOrEqual(t, deep-len(top)+max(len(top), store.MaxWrites+3), maxOps)
	}
}

// weigh returns how many operations there are in all, and the longest lists of all levels, summed.
func weigh(ops []clientv3.Op) (leaves, deep int) {
	for _, op := range ops {
		if !op.IsTxn() {
			leaves++
			continue
		}
		_, then, _ := op.Txn()
		l, d := weigh(then)
		leaves, deep = leaves+l, max(deep, d)
	}
	return leaves, deep + len(ops)
}

// TestKnowledgeIsAGuess: two stores write the same records in turn: neither is misled by what it remembers, of records,
// floors, alarms and marks; nor where it reads the record, or the mark, before.
func TestKnowledgeIsAGuess(t *testing.T) {
	t.Run("Writes", func(t *testing.T) { inTurn(t, func(*Store, context.Context, store.Shard) error { return nil }) })
	t.Run("Loads", func(t *testing.T) {
		inTurn(t, func(st *Store, ctx context.Context, at store.Shard) error {
			_, err := st.Load(ctx, at, fence(1), "a")
			return err
		})
	})
	t.Run("Marks", func(t *testing.T) {
		inTurn(t, func(st *Store, ctx context.Context, at store.Shard) error {
			_, err := st.Marks(ctx, at, fence(1), "a", "x")
			return err
		})
	})
}

func inTurn(t *testing.T, before func(*Store, context.Context, store.Shard) error) {
	s := need(t)
	ctx, at := within2min(t), store.Shard{Type: t.Name()}
	both, reader := []*Store{open(t, s), open(t, s)}, open(t, s)
	_, err := both[0].Claim(ctx, at, fence(1))
	require.NoError(t, err)
	for i, c := range []struct {
		w      store.Write
		number uint64 // of the mark that comes with it
		want   error
		is     uint64 // the mark then
	}{
		{storetest.Put("a", 1, "1"), 5, nil, 5},
		{storetest.Put("a", 2, "2"), 7, nil, 7},
		{storetest.Put("a", 3, "3"), 6, nil, 7},
		{storetest.Put("a", 3, "no"), 9, store.ErrVersion, 7},
		{store.Write{Record: storetest.Put("a", 4, "").Record, Delete: true}, 8, nil, 8},
		{store.Write{Record: storetest.Put("a", 4, "").Record, New: true}, 9, store.ErrVersion, 8},
		{store.Write{Record: storetest.Put("a", 5, "").Record, New: true}, 3, nil, 8},
		{store.Write{Record: storetest.Put("a", 6, "").Record, Delete: true}, 1, nil, 8},
		{store.Write{Record: storetest.Put("a", 9, "").Record, Delete: true}, 10, nil, 10},
		{store.Write{Record: storetest.Put("a", 9, "").Record, New: true}, 11, store.ErrVersion, 10},
		{store.Write{Record: storetest.Put("a", 10, "").Record, New: true}, 9, nil, 10},
	} {
		c.w.Marks = []store.Mark{{From: "x", Number: c.number, At: time.UnixMilli(1)}}
		c.w.Due = time.UnixMilli(int64(i + 1))
		require.NoError(t, before(both[i%2], ctx, at))
		if err := both[i%2].Commit(ctx, at, fence(1), c.w); !errors.Is(err, c.want) {
			t.Fatalf("step %d: %v, want %v", i, err, c.want)
		}
		list, err := reader.Marks(ctx, at, fence(1), "a", "x")
		require.NoError(t, err)
		require.Equal(t, c.is, list[0].Number, "step %d", i)
	}
	var due []store.Alarm
	for a, err := range both[1].Due(ctx, at, time.UnixMilli(1<<40)) {
		require.NoError(t, err)
		due = append(due, a)
	}
	require.Equal(t, []store.Alarm{{ID: "a", At: time.UnixMilli(11)}}, due)
}

// TestNumbersOfAnotherRevision: marks that were read before a commit, by a call that ends behind it, say nothing of what
// the commit has left.
func TestNumbersOfAnotherRevision(t *testing.T) {
	var k known
	k.put("a", seen{rev: 2, numbers: map[string]uint64{"x": 7}})
	for rev, want := range []uint64{7, 7, 9} { // 0: there was no record
		k.add("a", int64(rev), map[string]uint64{"x": 9})
		is, ok := k.get("a")
		require.True(t, ok)
		require.Equal(t, want, is.numbers["x"], "revision %d", rev)
	}
	k.read("a", seen{rev: 3})
	is, _ := k.get("a")
	require.Empty(t, is.numbers)
}

// TestKnowledgeIsBounded: by records and by marks.
func TestKnowledgeIsBounded(t *testing.T) {
	var k known
	numbers := map[string]uint64{}
	for i := range mostNumbers {
		numbers[fmt.Sprint(i)] = 1
	}
	for i := range 3 * mostKnown {
		key := fmt.Sprint(i % (2 * mostKnown))
		k.put(key, seen{rev: 1})
		if i%100 == 0 {
			k.add(key, 1, numbers)
			k.add(key, 1, map[string]uint64{"more": 2})
		}
		if i%7 == 0 {
			k.drop(key)
		}
	}
	for _, of := range []map[string]seen{k.young, k.old} {
		weight := 0
		for _, s := range of {
			weight += 1 + len(s.numbers)
			require.LessOrEqual(t, len(s.numbers), mostNumbers)
		}
		require.LessOrEqual(t, weight, mostKnown)
	}
	numbers["one more"] = 1
	require.Nil(t, merged(nil, numbers))
}

// count returns how many keys begin with a prefix.
func count(t *testing.T, st *Store, prefix string) int {
	got, err := st.kv.Get(context.Background(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	return int(got.Count)
}

// TestAgesOfMarks: the index of marks has few keys of a sender that is heard of all day, finds all marks that are old,
// the oldest first, over many entities, and has nothing left when no mark is.
func TestAgesOfMarks(t *testing.T) {
	const entities, hours = 70, 30
	s := need(t)
	st, ctx, at := open(t, s), within2min(t), store.Shard{Type: t.Name()}
	k := st.keys(at)
	_, err := st.Claim(ctx, at, fence(1))
	require.NoError(t, err)
	hour := func(h int) time.Time { return time.UnixMilli(1_800_000_000_000).Add(time.Duration(h) * time.Hour) }
	for h := range hours {
		var w []store.Write
		for i := range entities {
			put := storetest.Put(fmt.Sprint(i), uint64(h)+1, "")
			put.Marks = []store.Mark{{From: fmt.Sprint("once", h), Number: 1, At: hour(h)},
				{From: "busy", Number: uint64(h) + 1, At: hour(h).Add(time.Minute)}}
			w = append(w, put)
		}
		require.NoError(t, st.Commit(ctx, at, fence(1), w...))
	}
	require.Equal(t, entities*(hours+1), count(t, st, string(k)+"m"))
	require.LessOrEqual(t, count(t, st, k.ages()), entities*hours)
	n, err := st.ForgetMarks(ctx, at, fence(1), hour(10), 5)
	require.NoError(t, err)
	require.Equal(t, 5, n)
	first, err := st.ForgetMarks(ctx, at, fence(1), hour(1), 10_000)
	require.NoError(t, err)
	require.Equal(t, entities-5, first, "the five were the oldest")
	n, err = st.ForgetMarks(ctx, at, fence(1), hour(10), 10_000)
	require.NoError(t, err)
	require.Equal(t, entities*9, n)
	n, err = st.ForgetMarks(ctx, at, fence(1), hour(10), 10_000)
	require.NoError(t, err)
	require.Zero(t, n)
	for total, by := 0, hour(hours); ; {
		n, err := st.ForgetMarks(ctx, at, fence(1), by, 1000)
		require.NoError(t, err)
		total += n
		if n < 1000 {
			require.Equal(t, entities*(hours-10+1), total)
			break
		}
	}
	require.Zero(t, count(t, st, string(k)+"m"))
	require.Zero(t, count(t, st, k.ages()))
}

// TestStoreThatWentBack: a server that begins again with data of earlier has lost a claim, or a commit: that is
// noticed, by a store that remembers what was lost, too.
func TestStoreThatWentBack(t *testing.T) {
	s := own(t)
	st, ctx := open(t, s), within2min(t)
	claimed, written := store.Shard{Type: "claimed"}, store.Shard{Type: "written"}
	for _, at := range []store.Shard{claimed, written} {
		_, err := st.Claim(ctx, at, fence(1))
		require.NoError(t, err)
		require.NoError(t, st.Commit(ctx, at, fence(1), storetest.Put("a", 1, "1")))
	}
	s.Stop(syscall.SIGTERM)
	require.NoError(t, os.CopyFS(s.Dir+"/earlier", os.DirFS(s.Data())))
	require.NoError(t, s.Start())
	_, err := st.Claim(ctx, claimed, fence(2))
	require.NoError(t, err)
	commit := func(at store.Shard, f route.Fence, w store.Write) error {
		err := st.Commit(ctx, at, f, w)
		for errors.Is(err, store.ErrUnknown) && ctx.Err() == nil { // the connection is that of before
			err = st.Commit(ctx, at, f, w)
		}
		return err
	}
	require.NoError(t, commit(claimed, fence(2), storetest.Put("a", 2, "2")))
	require.NoError(t, commit(written, fence(1), storetest.Put("a", 2, "2")))
	s.Stop(syscall.SIGTERM)
	require.NoError(t, os.RemoveAll(s.Data()))
	require.NoError(t, os.Rename(s.Dir+"/earlier", s.Data()))
	require.NoError(t, s.Start())
	require.ErrorIs(t, commit(claimed, fence(2), storetest.Put("a", 3, "3")), store.ErrStoreWentBack)
	require.ErrorIs(t, commit(written, fence(1), storetest.Put("a", 3, "3")), store.ErrVersion)
}

// TestOpenRefuses: what cannot be, and servers that would refuse commits later.
func TestOpenRefuses(t *testing.T) {
	need(t)
	for want, settings := range map[string]string{
		"--max-txn-ops=128": "--max-txn-ops=100", "--max-request-bytes=1572864": "--max-request-bytes=1048576",
	} {
		s := own(t, settings)
		_, err := Open(within2min(t), s.config(), "")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "store/etcd: ")
		s.Stop(syscall.SIGKILL)
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		_, err = Open(ctx, s.config(), "")
		cancel()
		require.ErrorContains(t, err, "store/etcd: ")
	}
	_, err := Open(context.Background(), clientv3.Config{}, "")
	require.ErrorContains(t, err, "store/etcd: ")
	_, err = Open(context.Background(), shared.config(), strings.Repeat("p", MaxPrefix+1))
	require.ErrorContains(t, err, "17 bytes")
}

// TestForeignValues: a value that this package did not write is an error that says so, and nothing panics.
func TestForeignValues(t *testing.T) {
	whole := store.Record{ID: "a", Version: 3, State: []byte("state"), Outbox: []byte("out"), Reminders: []byte("r"),
		Due: time.UnixMilli(-5), Nonce: [16]byte{1}, Schema: 7}
	value := valueOf(&whole)
	got, rev, err := recordOf("a", []*kv{{Value: []byte(value), ModRevision: 9}})
	require.NoError(t, err)
	require.Equal(t, int64(9), rev)
	require.Equal(t, whole, got)
	for n := range len(value) - 1 { // the last byte is of the reminders, which have no end mark
		_, _, err := recordOf("a", []*kv{{Value: []byte(value[:n])}})
		require.ErrorIs(t, err, errForm, "%d bytes", n)
	}
	mark := valueOfMark(&store.Mark{From: "x", Number: 1, At: time.UnixMilli(1)})
	for n := range len(mark) {
		_, err := markOf("x", []byte(mark[:n]))
		require.ErrorIs(t, err, errForm)
	}
	_, err = rowOf([]*kv{{Value: make([]byte, 31)}})
	require.ErrorContains(t, err, "another form")
	_, err = floorOf([]*kv{{Value: make([]byte, 7)}})
	require.ErrorIs(t, err, errForm)
}
