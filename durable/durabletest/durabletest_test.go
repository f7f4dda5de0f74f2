// Scenarios of durable entities in a simulated cluster, over a store that breaks. Each runs twice, with the same bytes.

package durabletest_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/durable/durabletest"
	"github.com/kith-io/kith/sim"
	"github.com/kith-io/kith/store"
)

// account is the state of entities that send to one another; order what they are asked.
type (
	account struct{ Balance, Rung int64 }
	order   struct {
		Deposit, Credit, Transfer int64
		To                        string
		Remind                    time.Duration
	}
)

const accounts = durable.Name[order]("account")

func handle(tx *durable.Tx[account], o *order) (account, error) {
	a := tx.State
	switch {
	case o.Transfer > a.Balance:
		return *a, fmt.Errorf("%s has %d", tx.ID(), a.Balance)
	case o.Transfer > 0:
		a.Balance -= o.Transfer
		accounts.Send(tx, o.To, &order{Credit: o.Transfer})
	case o.Remind > 0:
		return *a, tx.Remind("ring", tx.Now().Add(o.Remind), nil)
	default:
		a.Balance += o.Deposit + o.Credit
	}
	return *a, nil
}

func reminded(tx *durable.Tx[account], _ string, _ []byte) error {
	tx.State.Rung++
	return nil
}

// bank is a cluster with accounts.
type bank struct {
	t   *testing.T
	c   *sim.Cluster
	kit *durabletest.Kit
	set *durabletest.Set[order, account]
}

func opens(t *testing.T, seed uint64, of durable.Type[account, order, account]) *bank {
	t.Helper()
	c := sim.New(t, 4, seed)
	b := &bank{t: t, c: c, kit: durabletest.New(c, seed)}
	of.Name, of.Handle, of.Shards = accounts, handle, 6
	var err error
	b.set, err = durabletest.Register(b.kit, of)
	require.NoError(t, err)
	c.AwaitUp()
	return b
}

// once asks from any node that runs until there is an answer, by one key.
func (b *bank) once(key, id string, o order) (a account) {
	b.t.Helper()
	var err error
	for try := range 200 {
		if n := try % 4; b.c.Running(n) {
			if a, err = b.set.On(n).AskOnce(b.kit.Within(5*time.Second), key, id, &o); err == nil {
				return a
			}
		}
		b.c.Advance(100 * time.Millisecond)
	}
	b.t.Fatalf("%s of %s: %v", key, id, err)
	return a
}

// total waits until nothing is on its way any more, and returns what the accounts have.
func (b *bank) total(ids []string) (sum int64) {
	b.t.Helper()
	require.True(b.t, b.c.Until(5*time.Minute, func() bool { return len(b.unsent()) == 0 }), "%v", b.unsent())
	for i, id := range ids {
		sum += b.once(fmt.Sprint("look", i), id, order{}).Balance
	}
	return sum
}

// unsent returns the entities that have an outbox.
func (b *bank) unsent() (ids []string) {
	for n := range kith.ShardID(6) {
		for id, err := range b.kit.Store().Copy().Unsent(context.Background(), store.Shard{Type: "account", N: n}) {
			require.NoError(b.t, err)
			ids = append(ids, id)
		}
	}
	return ids
}

// text is all that a run leaves: the cluster's trace, and what is stored.
func (b *bank) text(ids []string) string {
	out := bytes.NewBufferString(b.c.World().(interface{ Text() string }).Text())
	held := b.kit.Store().Copy()
	for n := range kith.ShardID(6) {
		at := store.Shard{Type: "account", N: n}
		list, err := held.Load(context.Background(), at, b.fence(held, at), ids...)
		require.NoError(b.t, err)
		for _, r := range list {
			fmt.Fprintln(out, r.ID, r.Version, hex.EncodeToString(r.Nonce[:]), string(r.State), r.Outbox, r.Reminders)
		}
	}
	fmt.Fprintln(out, b.kit.Store().Counts())
	return out.String()
}

// fence returns one that is above that of any owner, under which a copy of the store is read.
func (b *bank) fence(held *store.MemoryStore, at store.Shard) kith.Fence {
	f := kith.Fence(bytes.Repeat([]byte{0xff}, len(kith.Fence{})))
	_, err := held.Claim(context.Background(), at, f)
	require.NoError(b.t, err)
	return f
}

// twice runs a scenario twice with each seed.
func twice(t *testing.T, run func(t *testing.T, seed uint64) string) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			require.True(t, run(t, seed) == run(t, seed), "the second run is another one")
		})
	}
}

// TestTransfersOverABadStore: calls and answers of the store get lost, commits come twice and late, nodes crash, leave,
// stand still and are cut off: deposits by a key, and transfers, have their effect once (DUR-1).
func TestTransfersOverABadStore(t *testing.T) {
	twice(t, func(t *testing.T, seed uint64) string {
		b := opens(t, seed, durable.Type[account, order, account]{})
		b.kit.Store().Fail(durabletest.Faults{Delay: 40 * time.Millisecond, LostCalls: 0.1, LostAnswers: 0.1, Again: 0.2})
		var ids []string
		for i := range 8 {
			ids = append(ids, fmt.Sprint("a", i))
			b.once("deposit", ids[i], order{Deposit: 100})
		}
		for i := range 60 {
			switch i {
			case 10:
				b.c.Crash(b.c.Owner("account", "a0"))
			case 20:
				b.c.Pause(b.owner("a1"), 9*time.Second)
			case 30:
				b.c.Leave(b.owner("a2"))
			case 40:
				for n := range 4 {
					if !b.c.Running(n) {
						b.c.Restart(n)
					}
				}
			case 50:
				b.c.Partition([]int{b.owner("a3")}, others(b.owner("a3")))
			}
			b.once(fmt.Sprint("transfer", i), ids[i%8], order{Transfer: 1, To: ids[(i*3+1)%8]})
		}
		b.c.Heal()
		require.EqualValues(t, 800, b.total(ids))
		n := b.kit.Store().Counts()
		require.NotZero(t, n.Lost)
		require.NotZero(t, n.Unanswered)
		require.NotZero(t, n.Again)
		return b.text(ids)
	})
}

// owner waits until an account lives somewhere, and returns where.
func (b *bank) owner(id string) int {
	b.t.Helper()
	require.True(b.t, b.c.Until(2*time.Minute, func() bool { return b.c.Owner("account", id) >= 0 }))
	return b.c.Owner("account", id)
}

func others(n int) (list []int) {
	for i := range 4 {
		if i != n {
			list = append(list, i)
		}
	}
	return list
}

// TestRemindersInTheSimulator: each fires once, not before its time, though its owner crashes and the store is away
// when they are due (DUR-1).
func TestRemindersInTheSimulator(t *testing.T) {
	twice(t, func(t *testing.T, seed uint64) string {
		b := opens(t, seed, durable.Type[account, order, account]{Reminded: reminded})
		ids := []string{"x", "y", "z"}
		for _, id := range ids {
			b.once("set", id, order{Remind: time.Minute})
		}
		b.c.Advance(20 * time.Second)
		for _, id := range ids {
			require.Zero(t, b.once("early", id, order{}).Rung)
		}
		b.c.Crash(b.owner("x"))
		b.kit.Store().Fail(durabletest.Faults{Away: true})
		b.c.Advance(time.Minute)
		b.kit.Store().Fail(durabletest.Faults{LostCalls: 0.2, LostAnswers: 0.2, Again: 0.2})
		b.c.Advance(20 * time.Minute) // each failure has the agenda rest longer, up to a minute
		for _, id := range ids {
			require.EqualValues(t, 1, b.once("late", id, order{}).Rung, id)
		}
		return b.text(ids)
	})
}

// TestStoreThatWentBackInTheSimulator: an owner of a store that has lost what it had acknowledged stops the type, and
// says so; the other nodes do not hear of it before they ask (DUR-1).
func TestStoreThatWentBackInTheSimulator(t *testing.T) {
	twice(t, func(t *testing.T, seed uint64) string {
		b := opens(t, seed, durable.Type[account, order, account]{})
		b.once("first", "x", order{Deposit: 1})
		b.kit.Store().Keep()
		b.once("second", "x", order{Deposit: 1})
		b.kit.Store().GoBack()
		owner := b.set.On(b.owner("x"))
		require.NoError(t, owner.Err())
		_, err := b.set.On(0).Ask(b.kit.Within(time.Minute), "x", &order{Deposit: 1})
		require.ErrorIs(t, err, store.ErrStoreWentBack)
		require.ErrorIs(t, owner.Err(), store.ErrStoreWentBack)
		return b.text(nil)
	})
}

// TestStoreIsAwayInTheSimulator: an entity that cannot be read says so, has had no effect, and is asked with success
// when the store is back, without a restart (DUR-1).
func TestStoreIsAwayInTheSimulator(t *testing.T) {
	twice(t, func(t *testing.T, seed uint64) string {
		b := opens(t, seed, durable.Type[account, order, account]{})
		b.kit.Store().Fail(durabletest.Faults{Away: true})
		_, err := b.set.On(1).Ask(b.kit.Within(time.Minute), "x", &order{Deposit: 1})
		require.ErrorIs(t, err, durable.ErrAway)
		require.False(t, kith.MayHaveRun(err))
		b.kit.Store().Fail(durabletest.Faults{})
		a, err := b.set.On(1).Ask(b.kit.Within(time.Minute), "x", &order{Deposit: 1})
		require.NoError(t, err)
		require.EqualValues(t, 1, a.Balance)
		_, err = b.set.On(1).Ask(b.kit.Within(0), "x", &order{Deposit: 1})
		require.True(t, errors.Is(err, context.DeadlineExceeded) && !kith.MayHaveRun(err), "%v", err)
		return b.text([]string{"x"})
	})
}

// TestBadTypeInTheSimulator: what is wrong with a type is reported as durable.Register does.
func TestBadTypeInTheSimulator(t *testing.T) {
	c := sim.New(t, 1, 1)
	_, err := durabletest.Register(durabletest.New(c, 1), durable.Type[account, order, account]{Name: "account"})
	require.ErrorIs(t, err, kith.ErrBadConfig)
	good := durable.Type[account, order, account]{Name: "account", Handle: handle, Store: store.Memory()}
	_, _, err = durable.On(c, good) // no node
	require.ErrorIs(t, err, kith.ErrBadConfig)
}
