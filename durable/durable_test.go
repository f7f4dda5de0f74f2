// Tests of durable entities on real nodes, with a store in memory that answers as real ones do.

package durable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// account is the state of the tests' entities, order a message to one.
type account struct{ Balance int64 }

type order struct {
	Add   int64
	Panic bool
	Fail  string
	Gone  bool
}

// handle adds to the balance, and fails and panics on demand, behind that.
func handle(tx *durable.Tx[account], o *order) (int64, error) {
	tx.State.Balance += o.Add
	switch {
	case o.Panic:
		panic("on demand")
	case o.Fail != "":
		return 0, errors.New(o.Fail)
	case o.Gone:
		tx.Delete()
	}
	return tx.State.Balance, nil
}

type (
	bank  = durable.Type[account, order, int64]
	desks = durable.Entities[order, int64]
)

// begin starts a node that joins others, and registers the type.
func begin(t *testing.T, typ bank, others ...*kith.Node) (*kith.Node, *desks) {
	t.Helper()
	n := start(t, 20*time.Minute, others...)
	if typ.Name == "" {
		typ.Name = "account"
	}
	if typ.Handle == nil {
		typ.Handle = handle
	}
	if typ.Shards == 0 {
		typ.Shards = 1
	}
	e, err := durable.Register(n, typ)
	require.NoError(t, err)
	require.NoError(t, n.Ready(within(t)))
	return n, e
}

// start starts a node that joins others. takeover is how long the shards of a lost member wait.
func start(t *testing.T, takeover time.Duration, others ...*kith.Node) *kith.Node {
	t.Helper()
	cfg := kith.Config{Name: "durable", Resolver: kith.Resolver{Strategy: kith.ResolverOff},
		Sharding: kith.Sharding{TakeoverTime: takeover, ProcessDeathIsProof: true,
			RebalanceInterval: 50 * time.Millisecond},
		Membership: kith.MembershipConfig{GossipInterval: 100 * time.Millisecond, LeaderInterval: 50 * time.Millisecond,
			ProbeInterval: 100 * time.Millisecond, SeedTimeout: 2 * time.Second}}
	for _, o := range others {
		cfg.Seeds = append(cfg.Seeds, o.Addr().String())
	}
	n, err := kith.Start(within(t), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// gate holds the calls of a store of one kind until it is opened.
type gate struct {
	came chan store.Call
	open chan struct{}
}

func hold(m *store.MemoryStore, do string) *gate {
	g := &gate{make(chan store.Call, 100), make(chan struct{})}
	m.Fail(func(c store.Call) store.Fate {
		if c.Do != do {
			return store.Fate{}
		}
		g.came <- c
		return store.Fate{Before: g.open}
	})
	return g
}

// answer is what an ask got.
type answer struct {
	r   int64
	err error
}

// asks asks in the background.
func asks(t *testing.T, e *desks, id string, o order) <-chan answer {
	ch := make(chan answer, 1)
	ctx := within(t)
	go func() {
		r, err := e.Ask(ctx, id, &o)
		ch <- answer{r, err}
	}()
	return ch
}

// stored returns a balance as the store has it, -1 for no record.
func stored(t *testing.T, m *store.MemoryStore, id string) (balance string, version uint64) {
	c := m.Copy()
	s, f := store.Shard{Type: "account"}, route.MakeFence(1<<64-1, 1, 1)
	_, err := c.Claim(context.Background(), s, f)
	require.NoError(t, err)
	list, err := c.Load(context.Background(), s, f, id)
	require.NoError(t, err)
	if len(list) == 0 {
		return "", 0
	}
	return string(list[0].State), list[0].Version
}

// TestReplyComesAfterItsCommit: no ask is answered before its commit is known; what comes meanwhile runs on what the
// messages before have left, and shares the next commit; reads and refusals wait for what they have seen, and are not
// written (SHD-11).
func TestReplyComesAfterItsCommit(t *testing.T) {
	m, ran := store.Memory(), make(chan int64, 100)
	_, e := begin(t, bank{Store: m, Handle: func(tx *durable.Tx[account], o *order) (int64, error) {
		defer func() { ran <- tx.State.Balance }()
		return handle(tx, o)
	}})
	g := hold(m, "commit")
	first := asks(t, e, "anna", order{Add: 5})
	require.EqualValues(t, 5, <-ran)
	require.Len(t, (<-g.came).Writes, 1)
	var behind []<-chan answer
	for i, o := range []order{{Add: 1}, {Add: 10}, {}, {Add: 100, Fail: "no"}} {
		behind = append(behind, asks(t, e, "anna", o))
		require.EqualValues(t, []int64{6, 16, 16, 116}[i], <-ran)
	}
	other := asks(t, e, "ben", order{Add: 7})
	require.EqualValues(t, 7, <-ran)
	for _, ch := range append(behind, first, other) {
		require.Empty(t, ch)
	}
	state, _ := stored(t, m, "anna")
	require.Empty(t, state)
	close(g.open)
	require.Equal(t, answer{5, nil}, <-first)
	for i, want := range []int64{6, 16, 16} {
		require.Equal(t, answer{want, nil}, <-behind[i])
	}
	failed := <-behind[3]
	require.ErrorIs(t, failed.err, durable.ErrRejected)
	require.ErrorContains(t, failed.err, "no")
	require.Equal(t, answer{7, nil}, <-other)
	second := <-g.came
	require.Len(t, second.Writes, 2, "one of each entity")
	state, version := stored(t, m, "anna")
	require.Equal(t, `{"Balance":16}`, state)
	require.EqualValues(t, 2, version)
	require.EqualValues(t, 2, e.Stats().Commits)

	r, err := e.Ask(within(t), "nobody", &order{})
	require.NoError(t, err)
	require.Zero(t, r)
	_, version = stored(t, m, "nobody")
	require.Zero(t, version, "a read makes no record")
	require.EqualValues(t, 2, e.Stats().Commits)
}

// TestFencedOwnerRepliesNoSuccess: an owner, after another one claimed its shard, answers all waiting askers that their
// message had no effect, or may have had it where its commit was unknown before, and serves no other (SHD-11).
func TestFencedOwnerRepliesNoSuccess(t *testing.T) {
	for _, blind := range []bool{false, true} {
		t.Run(fmt.Sprint("unknown before ", blind), func(t *testing.T) {
			m := store.Memory()
			_, e := begin(t, bank{Store: m})
			_, err := e.Ask(within(t), "anna", &order{Add: 1})
			require.NoError(t, err)
			came, on := make(chan store.Call), make(chan store.Fate)
			m.Fail(func(c store.Call) store.Fate {
				if c.Do != "commit" {
					return store.Fate{}
				}
				came <- c
				return <-on
			})
			sent := asks(t, e, "anna", order{Add: 10})
			<-came
			gathered, other := asks(t, e, "anna", order{Add: 100}), asks(t, e, "ben", order{Add: 100})
			if blind {
				on <- store.Fate{Blind: true}
				<-came
			}
			_, err = m.Claim(within(t), store.Shard{Type: "account"}, route.MakeFence(1<<64-1, 1, 1))
			require.NoError(t, err)
			on <- store.Fate{}
			got := <-sent
			require.ErrorIs(t, got.err, durable.ErrLost)
			require.Equal(t, blind, kith.MayHaveRun(got.err))
			m.Fail(nil)
			for _, ch := range []<-chan answer{gathered, other, asks(t, e, "anna", order{}), asks(t, e, "new", order{})} {
				got := <-ch
				require.ErrorIs(t, got.err, durable.ErrLost)
				require.False(t, kith.MayHaveRun(got.err))
			}
			want := map[bool]string{false: `{"Balance":1}`, true: `{"Balance":11}`}
			state, _ := stored(t, m, "anna")
			require.Equal(t, want[blind], state)
			require.EqualValues(t, 1, e.Stats().Fenced)
			require.NoError(t, e.Err())
		})
	}
}

// TestReadThatEndsBehindTheLoss: what a handler has read of a state with a commit refused meanwhile reaches nobody,
// neither as a reply nor as a refusal (SHD-11).
func TestReadThatEndsBehindTheLoss(t *testing.T) {
	for _, o := range []order{{}, {Fail: "no"}} {
		t.Run(o.Fail, func(t *testing.T) {
			m, reads, on := store.Memory(), make(chan int64), make(chan bool)
			_, e := begin(t, bank{Store: m, Handle: func(tx *durable.Tx[account], o *order) (int64, error) {
				if o.Add == 0 {
					reads <- tx.State.Balance
					<-on
				}
				return handle(tx, o)
			}})
			g := hold(m, "commit")
			sent := asks(t, e, "anna", order{Add: 5})
			<-g.came
			read := asks(t, e, "anna", o)
			require.EqualValues(t, 5, <-reads)
			_, err := m.Claim(within(t), store.Shard{Type: "account"}, route.MakeFence(1<<64-1, 1, 1))
			require.NoError(t, err)
			close(g.open)
			require.ErrorIs(t, (<-sent).err, durable.ErrLost)
			close(on)
			got := <-read
			require.ErrorIs(t, got.err, durable.ErrLost)
			require.False(t, kith.MayHaveRun(got.err))
		})
	}
}

// TestClaimThatIsRefused: a shard that was claimed under a higher fence before this owner has said a word, as by a
// cluster with a clock that was ahead, is lost and counted, once (SHD-11).
func TestClaimThatIsRefused(t *testing.T) {
	m := store.Memory()
	_, err := m.Claim(within(t), store.Shard{Type: "account"}, route.MakeFence(1<<64-1, 1, 1))
	require.NoError(t, err)
	_, e := begin(t, bank{Store: m})
	for range 2 {
		_, err := e.Ask(within(t), "anna", &order{Add: 1})
		require.ErrorIs(t, err, durable.ErrLost)
		require.False(t, kith.MayHaveRun(err))
		require.EqualValues(t, 1, e.Stats().Fenced)
	}
}

// TestPanicCommitsNothing: a handler that panics or fails between two changes leaves nothing, what stood before it is
// committed, and what comes behind begins from there (SHD-11).
func TestPanicCommitsNothing(t *testing.T) {
	m := store.Memory()
	_, e := begin(t, bank{Store: m})
	g := hold(m, "commit")
	before := asks(t, e, "anna", order{Add: 5})
	<-g.came
	_, err := e.Ask(within(t), "anna", &order{Add: 1000, Panic: true})
	require.ErrorIs(t, err, kith.ErrPanic)
	behind := asks(t, e, "anna", order{Add: 1})
	close(g.open)
	require.Equal(t, answer{5, nil}, <-before)
	require.Equal(t, answer{6, nil}, <-behind)
	_, err = e.Ask(within(t), "anna", &order{Add: 1000, Fail: "no"})
	require.ErrorIs(t, err, durable.ErrRejected)
	_, err = e.Ask(within(t), "anna", &order{Add: 1000, Gone: true, Fail: "no"})
	require.ErrorIs(t, err, durable.ErrRejected)
	state, _ := stored(t, m, "anna")
	require.Equal(t, `{"Balance":6}`, state)
}

// TestUnknownIsRepeated: calls with lost answers, before or behind their effect, are made again until they are known:
// each message has its effect once (SHD-11).
func TestUnknownIsRepeated(t *testing.T) {
	m := store.Memory()
	_, e := begin(t, bank{Store: m, Shards: 4})
	m.Fail(func(store.Call) store.Fate {
		n := rand.IntN(4)
		return store.Fate{Lost: n == 0, Blind: n == 1}
	})
	const ids, times = 8, 10
	var all sync.WaitGroup
	ctx := within(t)
	for i := range ids {
		all.Go(func() {
			id := fmt.Sprint("id", i)
			for n := int64(1); n <= times; {
				r, err := e.Ask(ctx, id, &order{Add: 1})
				switch {
				case errors.Is(err, durable.ErrAway) && !kith.MayHaveRun(err): // it could not be loaded
				case err != nil || r != n:
					t.Errorf("%s: %d, %v; want %d", id, r, err, n)
					return
				default:
					n++
				}
			}
		})
	}
	all.Wait()
	require.Positive(t, e.Stats().Unknown)
	require.EqualValues(t, ids*times, e.Stats().Messages)
}

// inPlace is a codec with the bytes that it was given as its value.
type inPlace struct{}

func (inPlace) Append(dst []byte, s *[]byte) ([]byte, error) { return append(dst, *s...), nil }
func (inPlace) ParseInto(b []byte, s *[]byte) error          { *s = b; return nil }

// TestStateThatIsChangedInPlace: a codec may leave what it was given in its value: a handler that changes it there has
// changed the state, and one that fails has not (SHD-11).
func TestStateThatIsChangedInPlace(t *testing.T) {
	m := store.Memory()
	n, _ := begin(t, bank{Store: m})
	e, err := durable.Register(n, durable.Type[[]byte, order, int]{Name: "bytes", Store: m, State: inPlace{},
		Handle: func(tx *durable.Tx[[]byte], o *order) (int, error) {
			if len(*tx.State) == 0 {
				*tx.State = []byte{0}
			}
			(*tx.State)[0] += byte(o.Add)
			if o.Fail != "" {
				return 0, errors.New(o.Fail)
			}
			return int((*tx.State)[0]), nil
		}})
	require.NoError(t, err)
	for i, want := range []uint64{1, 2, 3} {
		r, err := e.Ask(within(t), "anna", &order{Add: 1})
		require.NoError(t, err)
		require.Equal(t, i+1, r)
		require.Equal(t, want, e.Stats().Commits)
		_, err = e.Ask(within(t), "anna", &order{Add: 100, Fail: "no"}) // the next message decodes anew
		require.ErrorIs(t, err, durable.ErrRejected)
	}
}

// TestDeletedIsMadeAnew: what is taken away is gone, at once for the next message, and made anew (SHD-11).
func TestDeletedIsMadeAnew(t *testing.T) {
	m, ran := store.Memory(), make(chan bool, 100)
	_, e := begin(t, bank{Store: m, Handle: func(tx *durable.Tx[account], o *order) (int64, error) {
		defer func() { ran <- true }()
		return handle(tx, o)
	}})
	g := hold(m, "commit")
	var got []<-chan answer
	for _, o := range []order{{Add: 5}, {Gone: true}, {Add: 3}, {Gone: true}, {Gone: true}, {Add: 4}} {
		got = append(got, asks(t, e, "anna", o))
		if len(got) == 1 {
			<-g.came
		}
		<-ran
	}
	close(g.open)
	for i, want := range []int64{5, 5, 3, 3, 0, 4} {
		require.Equal(t, answer{want, nil}, <-got[i], i)
	}
	state, version := stored(t, m, "anna")
	require.Equal(t, `{"Balance":4}`, state)
	require.Positive(t, version)
	_, err := e.Ask(within(t), "anna", &order{Gone: true})
	require.NoError(t, err)
	_, version = stored(t, m, "anna")
	require.Zero(t, version)
}

// failed returns how many messages of a type ended with an error of their handler.
func failed(n *kith.Node, typ string) uint64 {
	for _, t := range n.Stats().Types {
		if t.Name == typ {
			return t.Failed
		}
	}
	return 0
}

// TestStoreThatIsAway: entities cannot begin, and say so; messages that wait for a commit are bounded, what comes
// behind them waits for its asker's time, and was not handled; another type is not disturbed; when the store is back
// all goes on (SHD-11).
func TestStoreThatIsAway(t *testing.T) {
	m, other := store.Memory(), store.Memory()
	var lines bytes.Buffer
	queue := logs.New(slog.NewTextHandler(&lines, nil))
	n, e := begin(t, bank{Store: m, MaxWaiting: 2, Patience: 20 * time.Millisecond, Logger: queue.Logger()})
	ben, err := durable.Register(n, bank{Name: "other", Store: other, Handle: handle})
	require.NoError(t, err)
	_, err = e.Ask(within(t), "anna", &order{Add: 1})
	require.NoError(t, err)
	g := hold(m, "commit")
	waits := []<-chan answer{asks(t, e, "anna", order{Add: 1}), asks(t, e, "anna", order{Add: 1})}
	<-g.came
	require.Eventually(t, func() bool { return e.Stats().Unknown > 1 }, time.Minute, time.Millisecond)
	s := e.Stats()
	require.Equal(t, 2, s.Waiting)
	require.Positive(t, s.WaitingBytes)
	require.Equal(t, 1, s.Failing)
	require.ErrorIs(t, s.StoreError, context.DeadlineExceeded)
	require.NoError(t, e.Err(), "it is to go on")
	short, cancel := context.WithTimeout(within(t), 200*time.Millisecond)
	defer cancel()
	_, err = e.Ask(short, "anna", &order{Add: 100})
	require.Error(t, err)
	require.Eventually(t, func() bool { // its handler learns it a little later than it
		return failed(n, "account") == 1
	}, time.Minute, time.Millisecond)
	m.Fail(func(store.Call) store.Fate { return store.Fate{Lost: true} })
	_, err = e.Ask(within(t), "clara", &order{Add: 1})
	require.ErrorIs(t, err, durable.ErrAway)
	require.False(t, kith.MayHaveRun(err))
	_, err = ben.Ask(within(t), "ben", &order{Add: 1})
	require.NoError(t, err)
	m.Fail(nil)
	close(g.open)
	require.NoError(t, (<-waits[0]).err)
	require.NoError(t, (<-waits[1]).err)
	r, err := e.Ask(within(t), "anna", &order{})
	require.NoError(t, err)
	require.EqualValues(t, 3, r, "what was given up has not been handled")
	_, err = e.Ask(within(t), "clara", &order{Add: 1})
	require.NoError(t, err)
	s = e.Stats()
	require.Zero(t, [3]int64{int64(s.Waiting), s.WaitingBytes, int64(s.Failing)})
	require.NoError(t, s.StoreError)
	require.True(t, queue.Flush(2*time.Minute))
	require.Equal(t, 2, strings.Count(lines.String(), "\n"), lines.String())
}

// TestStoreThatWentBack: a store that has lost a claim, or what was written, stops its type and no other, and that is
// reported by name (SHD-11).
func TestStoreThatWentBack(t *testing.T) {
	for _, what := range []string{"claim", "commit"} {
		t.Run(what, func(t *testing.T) {
			m := store.Memory()
			_, e := begin(t, bank{Store: m})
			was := m.Copy()
			_, err := e.Ask(within(t), "anna", &order{Add: 1})
			require.NoError(t, err)
			if what == "commit" {
				was = m.Copy()
				_, err = e.Ask(within(t), "anna", &order{Add: 1})
				require.NoError(t, err)
			}
			m.Become(was)
			for range 2 {
				_, err = e.Ask(within(t), "anna", &order{Add: 1})
				require.ErrorIs(t, err, store.ErrStoreWentBack)
				require.False(t, kith.MayHaveRun(err))
			}
			require.ErrorIs(t, e.Err(), store.ErrStoreWentBack)
		})
	}
}

// TestRecordsThatCannotBeRead: of a newer schema, or no state at all: the entity says so, and others live; an older one
// is upgraded, and written as such (SHD-11).
func TestRecordsThatCannotBeRead(t *testing.T) {
	m, s, f := store.Memory(), store.Shard{Type: "account"}, route.MakeFence(1, 1, 1)
	_, err := m.Claim(within(t), s, f)
	require.NoError(t, err)
	w := func(id string, schema uint32, state string) store.Write {
		return store.Write{Record: store.Record{ID: id, Version: 1, Schema: schema, State: []byte(state), Nonce: [16]byte{1}}}
	}
	require.NoError(t, m.Commit(within(t), s, f, w("newer", 3, "{}"), w("broken", 2, "no"), w("old", 1, "7")))
	_, e := begin(t, bank{Store: m, Schema: 2, Upgrade: func(schema uint32, state []byte) ([]byte, error) {
		return fmt.Appendf(nil, `{"Balance":%s}`, state), nil
	}})
	for _, id := range []string{"newer", "broken"} {
		_, err := e.Ask(within(t), id, &order{Add: 1})
		require.ErrorIs(t, err, durable.ErrRecord)
		require.False(t, kith.MayHaveRun(err))
	}
	r, err := e.Ask(within(t), "old", &order{Add: 1})
	require.NoError(t, err)
	require.EqualValues(t, 8, r)
	state, _ := stored(t, m, "old")
	require.Equal(t, `{"Balance":8}`, state)
}

// TestBytesThatWaitAreBounded: while the store is away, no message is handled once those that wait hold as many bytes,
// but the first of each shard, which always may; what was not handled says so (SHD-11).
func TestBytesThatWaitAreBounded(t *testing.T) {
	m := store.Memory()
	n, _ := begin(t, bank{Store: m})
	e, err := durable.Register(n, durable.Type[text, int, int]{Name: "text", Store: m, Shards: 2, MaxWaitingBytes: 1000,
		ShardBy: kith.ShardBy{Name: "first letter", Of: func(id string) kith.ShardID { return kith.ShardID(id[0]) % 2 }},
		Handle: func(tx *durable.Tx[text], n *int) (int, error) {
			tx.State.S += string(make([]byte, *n))
			return len(tx.State.S), nil
		}})
	require.NoError(t, err)
	g := hold(m, "commit")
	size, got := 200, make(chan error, 2)
	for _, id := range []string{"a", "b"} { // each in a shard of its own: 200 zero bytes are 1,200 of JSON
		go func() {
			_, err := e.Ask(within(t), id, &size)
			got <- err
		}()
		<-g.came
	}
	short, cancel := context.WithTimeout(within(t), 100*time.Millisecond)
	defer cancel()
	_, err = e.Ask(short, "c", &size)
	require.Error(t, err)
	require.Eventually(t, func() bool { return failed(n, "text") == 1 }, time.Minute, time.Millisecond)
	require.Equal(t, 2, e.Stats().Waiting)
	require.Greater(t, e.Stats().WaitingBytes, int64(2000))
	close(g.open)
	require.NoError(t, <-got)
	require.NoError(t, <-got)
	r, err := e.Ask(within(t), "c", &size)
	require.NoError(t, err)
	require.Equal(t, 200, r, "what was given up has not been handled")
	require.Zero(t, e.Stats().WaitingBytes)
}

// text is a state that may be large.
type text struct{ S string }

// TestStatesThatAreTooLarge: one leaves nothing, and the entity lives; the largest one is written and handed over.
func TestStatesThatAreTooLarge(t *testing.T) {
	m := store.Memory()
	n, _ := begin(t, bank{Store: m})
	e, err := durable.Register(n, durable.Type[text, int, int]{Name: "text", Store: m,
		Handle: func(tx *durable.Tx[text], n *int) (int, error) {
			if *n > 0 {
				tx.State.S = string(make([]byte, *n/6)) // each is six bytes of JSON
			}
			return len(tx.State.S), nil
		}})
	require.NoError(t, err)
	for _, c := range []struct{ n, want int }{
		{600, 100}, {durable.MaxState + 100, 100}, {durable.MaxState - 60, (durable.MaxState - 60) / 6},
	} {
		_, err := e.Ask(within(t), "a", &c.n)
		if c.n > durable.MaxState {
			require.ErrorIs(t, err, durable.ErrTooLarge)
		} else {
			require.NoError(t, err)
		}
		r, err := e.Ask(within(t), "a", new(int))
		require.NoError(t, err)
		require.Equal(t, c.want, r)
	}
}

// TestHandOver: a node leaves while its entities are asked: the next owner goes on from what is committed, which it is
// given and does not read, and each message has its effect once (SHD-11).
func TestHandOver(t *testing.T) {
	m := store.Memory()
	var loads atomic.Int64
	typ := bank{Store: m, Shards: 8}
	first, at := begin(t, typ)
	_, other := begin(t, typ, first)
	const ids = 24
	sum := func(e *desks, add int64) (sum int64) {
		for i := range ids {
			r, err := e.Ask(within(t), fmt.Sprint("id", i), &order{Add: add})
			require.NoError(t, err)
			sum += r
		}
		return sum
	}
	require.EqualValues(t, ids, sum(at, 1))
	m.Fail(func(c store.Call) store.Fate {
		if c.Do == "load" {
			loads.Add(1)
		}
		return store.Fate{}
	})
	require.NoError(t, first.Leave(within(t)))
	require.EqualValues(t, 2*ids, sum(other, 1))
	require.Zero(t, loads.Load(), "all of them were handed over")
}

// TestHandOverToAnOlderBuild: what a newer build has upgraded and not written is not taken by an older one, which reads
// what is stored (SHD-11).
func TestHandOverToAnOlderBuild(t *testing.T) {
	m := store.Memory()
	first, _ := begin(t, bank{Store: m})
	_, err := m.Claim(within(t), store.Shard{Type: "other"}, route.MakeFence(1, 1, 1))
	require.NoError(t, err)
	w := store.Write{Record: store.Record{ID: "anna", Version: 1, State: []byte(`{"Balance":7}`), Nonce: [16]byte{1}}}
	require.NoError(t, m.Commit(within(t), store.Shard{Type: "other"}, route.MakeFence(1, 1, 1), w))
	typ := bank{Name: "other", Store: m, Shards: 1, Handle: handle}
	older, newer := typ, typ
	newer.Schema = 1
	at, err := durable.Register(first, newer)
	require.NoError(t, err)
	r, err := at.Ask(within(t), "anna", &order{})
	require.NoError(t, err)
	require.EqualValues(t, 7, r)
	_, other := begin(t, older, first)
	require.NoError(t, first.Leave(within(t)))
	r, err = other.Ask(within(t), "anna", &order{Add: 1})
	require.NoError(t, err)
	require.EqualValues(t, 8, r)
}

// TestNodeThatDies: a node ends without a word while its entities are asked: the other one goes on from what is stored;
// what was acknowledged as stored is there, and what certainly had no effect is not (SHD-11).
func TestNodeThatDies(t *testing.T) {
	m := store.Memory()
	typ := bank{Store: m, Shards: 8}
	first, e := begin(t, typ)
	second, e2 := begin(t, typ, first)
	const ids = 8
	var done, maybe [ids]atomic.Int64
	var all sync.WaitGroup
	stop := make(chan struct{})
	for i := range ids {
		_, err := e2.Ask(within(t), fmt.Sprint("id", i), &order{})
		require.NoError(t, err)
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				_, err := e.Ask(ctx, fmt.Sprint("id", i), &order{Add: 1})
				cancel()
				switch {
				case err == nil:
					done[i].Add(1)
				case kith.MayHaveRun(err):
					maybe[i].Add(1)
				}
			}
		})
	}
	busy := func(more int64) {
		var was [ids]int64
		for i := range ids {
			was[i] = done[i].Load()
		}
		require.Eventually(t, func() bool {
			for i := range ids {
				if done[i].Load() < was[i]+more {
					return false
				}
			}
			return true
		}, 2*time.Minute, time.Millisecond)
	}
	busy(20)
	_ = second.Close() // it says what it abandons
	busy(20)
	close(stop)
	all.Wait()
	for i := range ids {
		r, err := e.Ask(within(t), fmt.Sprint("id", i), &order{})
		require.NoError(t, err)
		require.GreaterOrEqual(t, r, done[i].Load())
		require.LessOrEqual(t, r, done[i].Load()+maybe[i].Load())
	}
}

// TestTwoOwners: two clusters that know nothing of each other own the same entities of one store, as both sides of a
// partition that nobody has decided do. From the moment the younger one has claimed, the older one has no success, and
// the sum is that of all successes (SHD-11).
func TestTwoOwners(t *testing.T) {
	m := store.Memory()
	_, old := begin(t, bank{Store: m})
	var sum atomic.Int64
	lost := make(chan error, 1)
	ctx := within(t)
	go func() {
		for {
			if _, err := old.Ask(ctx, "anna", &order{Add: 1}); err != nil {
				lost <- err
				return
			}
			sum.Add(1)
		}
	}()
	require.Eventually(t, func() bool { return sum.Load() > 10 }, time.Minute, time.Millisecond)
	_, young := begin(t, bank{Store: m})
	for range 20 {
		_, err := young.Ask(ctx, "anna", &order{Add: 1})
		require.NoError(t, err)
		sum.Add(1)
	}
	err := <-lost
	require.ErrorIs(t, err, durable.ErrLost)
	require.False(t, kith.MayHaveRun(err))
	r, err := young.Ask(ctx, "anna", &order{})
	require.NoError(t, err)
	require.Equal(t, sum.Load(), r)
}

// TestIdleEntitiesBeginAgain: an entity that was passivated goes on from the store.
func TestIdleEntitiesBeginAgain(t *testing.T) {
	m := store.Memory()
	_, e := begin(t, bank{Store: m, MaxActive: 1})
	for n := range int64(3) {
		for i := range 20 {
			r, err := e.Ask(within(t), fmt.Sprint("id", i), &order{Add: 1})
			require.NoError(t, err)
			require.Equal(t, n+1, r)
		}
	}
}

// TestIdleEntitiesGoByDefault: what they hold is stored; negative: they stay.
func TestIdleEntitiesGoByDefault(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{0: durable.DefaultIdleAfter, -1: -1, time.Hour: time.Hour} {
		_, e := begin(t, bank{Store: store.Memory(), IdleAfter: given})
		require.Equal(t, want, e.Region().Type().IdleAfter)
	}
}

// TestFaultsOfATypeAreNamed: all at once.
func TestFaultsOfATypeAreNamed(t *testing.T) {
	n, e := begin(t, bank{Store: store.Memory()})
	_, err := durable.Register(n, bank{Name: "\xff", Schema: 1 << 31, MaxWaiting: -1, MaxWaitingBytes: -1, Patience: -1})
	require.ErrorIs(t, err, kith.ErrBadConfig)
	for _, word := range []string{"Name", "Store", "Handle", "Schema", "MaxWaiting ", "MaxWaitingBytes", "Patience"} {
		require.ErrorContains(t, err, word)
	}
	require.NoError(t, e.Region().Tell("anna", []byte("no JSON")))
	b, err := e.Region().Ask(within(t), "anna", []byte("no JSON"))
	require.NoError(t, err)
	require.NotEmpty(t, b)
	require.NoError(t, e.Tell("anna", &order{Add: 3}))
	r, err := e.Ask(within(t), "anna", &order{})
	require.NoError(t, err)
	require.EqualValues(t, 3, r)
}

// TestLastNodeLosesNothing: the last node that can host a durable type leaves without an error, and none of its states
// counts as lost: the store has them (SHD-11).
func TestLastNodeLosesNothing(t *testing.T) {
	db := store.Memory()
	n, e := begin(t, bank{Store: db})
	left, err := e.Ask(within(t), "anna", &order{Add: 5})
	require.NoError(t, err)
	require.EqualValues(t, 5, left)
	require.NoError(t, n.Leave(within(t)))
	_, e = begin(t, bank{Store: db})
	left, err = e.Ask(within(t), "anna", &order{})
	require.NoError(t, err)
	require.EqualValues(t, 5, left)
}
