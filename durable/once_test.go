// Tests of messages between durable entities that have their effect once, on real nodes.

package durable_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// wallet is the state of entities that send to one another.
type wallet struct {
	Balance int64
	Had     []string // notes of what came, in order
	Lost    []string // of what did not arrive
}

// order of a wallet.
type move struct {
	Deposit, Credit, Transfer int64
	To, Note                  string
	Times                     int // transfers of that many parts, one by one
	Gone, Panic               bool
	Refuse                    string
}

const wallets = durable.Name[move]("wallet")

type (
	walletType = durable.Type[wallet, move, wallet]
	walletSet  = durable.Entities[move, wallet]
)

func walletHandle(tx *durable.Tx[wallet], m *move) (wallet, error) {
	w := tx.State
	switch {
	case m.Panic:
		panic("on demand")
	case m.Refuse != "" && m.Transfer == 0:
		return *w, errors.New(m.Refuse)
	case m.Transfer > w.Balance:
		return *w, fmt.Errorf("%s has %d", tx.ID(), w.Balance)
	case m.Transfer > 0:
		for i := range max(m.Times, 1) {
			w.Balance -= m.Transfer
			wallets.Send(tx, m.To, &move{Credit: m.Transfer, Note: fmt.Sprint(m.Note, i), Refuse: m.Refuse})
		}
	default:
		w.Balance += m.Deposit + m.Credit
		if m.Note != "" {
			w.Had = append(w.Had, m.Note)
		}
	}
	if m.Gone {
		tx.Delete()
	}
	return *w, nil
}

// refund gives back what certainly did not arrive.
func refund(tx *durable.Tx[wallet], u *durable.Undelivered) {
	m, ok := wallets.Of(u)
	if !ok {
		panic("not a wallet's")
	}
	if !u.MayHaveRun {
		tx.State.Balance += m.Credit
	}
	tx.State.Lost = append(tx.State.Lost, fmt.Sprintf("%s to %s may have run %v: %v", m.Note, u.ID, u.MayHaveRun, u.Err))
}

// registers registers wallets on a node.
func registers(t *testing.T, n *kith.Node, typ walletType) *walletSet {
	t.Helper()
	if typ.Name == "" {
		typ.Name = wallets
	}
	if typ.Handle == nil {
		typ.Handle = walletHandle
	}
	if typ.Undelivered == nil {
		typ.Undelivered = refund
	}
	if typ.Shards == 0 {
		typ.Shards = 4
	}
	e, err := durable.Register(n, typ)
	require.NoError(t, err)
	return e
}

func does(t *testing.T, e *walletSet, id string, m move) wallet {
	t.Helper()
	w, err := e.Ask(within(t), id, &m)
	require.NoError(t, err)
	return w
}

// has waits until a wallet is as it should be.
func has(t *testing.T, e *walletSet, id string, want func(w wallet) bool) (w wallet) {
	t.Helper()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var err error
		w, err = e.Ask(ctx, id, &move{})
		return err == nil && want(w)
	}, 2*time.Minute, 5*time.Millisecond, "%s", id)
	return w
}

// sent waits until no outbox of the type waits for anything.
func sent(t *testing.T, m *store.MemoryStore, typ string, shards int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(unsent(t, m, typ, shards)) == 0 }, 2*time.Minute, 5*time.Millisecond)
}

// unsent returns the entities that have an outbox.
func unsent(t *testing.T, m *store.MemoryStore, typ string, shards int) (ids []string) {
	for n := range shards {
		for id, err := range m.Copy().Unsent(context.Background(), store.Shard{Type: typ, N: route.ShardID(n)}) {
			require.NoError(t, err)
			ids = append(ids, id)
		}
	}
	return ids
}

// TestSentWithTheCommit: what a handler sends leaves when its commit is known, and with it, arrives once and in order,
// and leaves the outbox; a handler that fails sends nothing (SHD-12).
func TestSentWithTheCommit(t *testing.T) {
	m := store.Memory()
	n, _ := begin(t, bank{Store: store.Memory()})
	e := registers(t, n, walletType{Store: m, Shards: 1})
	does(t, e, "anna", move{Deposit: 100})
	_, err := e.Ask(within(t), "anna", &move{Transfer: 200, To: "ben"})
	require.ErrorIs(t, err, durable.ErrRejected)
	does(t, e, "ben", move{})
	g := hold(m, "commit")
	ctx := within(t)
	done := make(chan error, 1)
	go func() {
		_, err := e.Ask(ctx, "anna", &move{Transfer: 10, To: "ben", Note: "n", Times: 5})
		done <- err
	}()
	<-g.came
	require.Empty(t, does(t, e, "ben", move{}).Had, "its commit is not known")
	m.Fail(nil)
	close(g.open)
	require.NoError(t, <-done)
	w := has(t, e, "ben", func(w wallet) bool { return len(w.Had) == 5 })
	require.Equal(t, []string{"n0", "n1", "n2", "n3", "n4"}, w.Had)
	require.EqualValues(t, 50, w.Balance)
	sent(t, m, "wallet", 1)
	require.EqualValues(t, 50, does(t, e, "anna", move{}).Balance)
	require.EqualValues(t, 5, e.Stats().Arrived)
	require.Zero(t, e.Stats().Undelivered)
}

// TestToOneself: an entity may send to itself, and to the type from another one.
func TestToOneself(t *testing.T) {
	m := store.Memory()
	n, _ := begin(t, bank{Store: store.Memory()})
	e := registers(t, n, walletType{Store: m})
	does(t, e, "anna", move{Deposit: 100})
	does(t, e, "anna", move{Transfer: 10, To: "anna", Note: "self"})
	w := has(t, e, "anna", func(w wallet) bool { return len(w.Had) == 1 })
	require.EqualValues(t, 100, w.Balance)
	type tick struct{ N int }
	const ticks = durable.Name[tick]("tick")
	k, err := durable.Register(n, durable.Type[int, tick, int]{Name: ticks, Store: m,
		Handle: func(tx *durable.Tx[int], k *tick) (int, error) {
			*tx.State += k.N
			wallets.Send(tx, "anna", &move{Credit: int64(k.N), Note: "tick"})
			return *tx.State, nil
		}})
	require.NoError(t, err)
	_, err = k.Ask(within(t), "x", &tick{7})
	require.NoError(t, err)
	has(t, e, "anna", func(w wallet) bool { return w.Balance == 107 })
}

// TestRefusedIsTold: what the receiver's handler refuses is reported to the sender, in a commit of its own, and was
// certainly not handled; what comes behind it arrives (SHD-12).
func TestRefusedIsTold(t *testing.T) {
	m := store.Memory()
	n, _ := begin(t, bank{Store: store.Memory()})
	e := registers(t, n, walletType{Store: m})
	does(t, e, "anna", move{Deposit: 100})
	does(t, e, "anna", move{Transfer: 10, To: "ben", Note: "no", Refuse: "closed"})
	does(t, e, "anna", move{Transfer: 10, To: "ben", Note: "yes"})
	w := has(t, e, "ben", func(w wallet) bool { return len(w.Had) == 1 })
	require.EqualValues(t, 10, w.Balance)
	w = has(t, e, "anna", func(w wallet) bool { return len(w.Lost) == 1 })
	require.EqualValues(t, 90, w.Balance)
	require.Equal(t, "no0 to ben may have run false: durable: the handler returned an error: closed", w.Lost[0])
	sent(t, m, "wallet", 4)
	require.EqualValues(t, 1, e.Stats().Undelivered)
}

// TestGivenUp: a message that cannot be handled is void in time, and reported as not handled, where its receiver can
// commit that; where it cannot it is reported as one that may have been (SHD-12).
func TestGivenUp(t *testing.T) {
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprint("away ", away), func(t *testing.T) {
			t.Parallel()
			m, other := store.Memory(), store.Memory()
			n, _ := begin(t, bank{Store: store.Memory()})
			e := registers(t, n, walletType{Store: m, SeenFor: 3 * time.Second})
			const sick = durable.Name[move]("sick")
			_, err := durable.Register(n, walletType{Name: sick, Store: other, SeenFor: 3 * time.Second,
				Patience: 20 * time.Millisecond,
				Handle:   func(*durable.Tx[wallet], *move) (wallet, error) { panic("always") }})
			require.NoError(t, err)
			if away {
				other.Fail(func(store.Call) store.Fate { return store.Fate{Lost: true} })
			}
			const via = durable.Name[move]("via")
			v, err := durable.Register(n, walletType{Name: via, Store: m, SeenFor: 3 * time.Second,
				Handle: func(tx *durable.Tx[wallet], _ *move) (wallet, error) {
					tx.State.Balance -= 5
					sick.Send(tx, "x", &move{Credit: 5})
					return *tx.State, nil
				},
				Undelivered: func(tx *durable.Tx[wallet], u *durable.Undelivered) {
					got, ok := sick.Of(u)
					if !ok || !errors.Is(u.Err, durable.ErrExpired) || u.MayHaveRun != away {
						tx.State.Lost = append(tx.State.Lost, "wrong")
					}
					tx.State.Balance += got.Credit
					wallets.Send(tx, "told", &move{Credit: 1})
				}})
			require.NoError(t, err)
			_, err = v.Ask(within(t), "anna", &move{})
			require.NoError(t, err)
			has(t, e, "told", func(w wallet) bool { return w.Balance == 1 })
			sent(t, m, "via", 64)
			require.EqualValues(t, 1, v.Stats().Undelivered)
		})
	}
}

// TestOutboxIsBounded: a sender of more than fits gets an error, and nothing of it is written; a message that is too
// large is no better, nor one to a type that nobody knows (SHD-12).
func TestOutboxIsBounded(t *testing.T) {
	m := store.Memory()
	n, _ := begin(t, bank{Store: store.Memory()})
	e := registers(t, n, walletType{Store: m})
	does(t, e, "anna", move{Deposit: 1 << 40})
	fails := func(want error, m move) {
		err := kith.ErrMailboxFull
		for errors.Is(err, kith.ErrMailboxFull) { // the bytes of the one before count until its handler has returned
			_, err = e.Ask(within(t), "anna", &m)
		}
		require.ErrorIs(t, err, want)
	}
	fails(durable.ErrOutboxFull, move{Transfer: 1, To: "ben", Times: durable.MaxOutbox + 1})
	fails(durable.ErrTooLarge, move{Transfer: 1, To: "ben", Note: strings.Repeat("x", durable.MaxOutboxBytes)})
	fails(durable.ErrOutboxFull, move{Transfer: 1, To: "ben", Note: strings.Repeat("x", 60<<10), Times: 5})
	fails(kith.ErrBadPayload, move{Transfer: 1, To: strings.Repeat("x", 2000)})
	require.EqualValues(t, 1<<40, does(t, e, "anna", move{}).Balance)
	require.Empty(t, unsent(t, m, "wallet", 4))
	does(t, e, "anna", move{Transfer: 1, To: "ben", Times: durable.MaxOutbox})
	has(t, e, "ben", func(w wallet) bool { return w.Balance == durable.MaxOutbox })
	sent(t, m, "wallet", 4)
	for _, name := range []durable.Name[int]{"nobody", "wallet"} {
		k, err := durable.Register(n, durable.Type[int, int, int]{Name: "to" + name, Store: m,
			Handle: func(tx *durable.Tx[int], k *int) (int, error) {
				name.Send(tx, "x", k)
				*tx.State++
				return *tx.State, nil
			}})
		require.NoError(t, err)
		_, err = k.Ask(within(t), "x", new(int))
		require.ErrorIs(t, err, durable.ErrNoType, name)
	}
}

// TestDeletedSenderIsMadeAnew: its numbers go on, so that what it sends then is not taken for what it has sent; what
// was in its outbox when it was deleted arrives, and the record goes when it has (SHD-12).
func TestDeletedSenderIsMadeAnew(t *testing.T) {
	m := store.Memory()
	n, _ := begin(t, bank{Store: store.Memory()})
	e := registers(t, n, walletType{Store: m, Shards: 1})
	for i := range 4 {
		does(t, e, "anna", move{Deposit: 10})
		does(t, e, "anna", move{Transfer: 10, To: "ben", Note: fmt.Sprint("round", i, "."), Gone: i%2 == 0})
		if i%2 == 1 {
			has(t, e, "ben", func(w wallet) bool { return len(w.Had) == i+1 })
			sent(t, m, "wallet", 1)
			does(t, e, "anna", move{Gone: true})
			_ = n.Close() // what comes next has nothing in memory
			n, _ = begin(t, bank{Store: store.Memory()})
			e = registers(t, n, walletType{Store: m, Shards: 1})
		}
		require.Zero(t, does(t, e, "anna", move{}).Balance)
	}
	w := has(t, e, "ben", func(w wallet) bool { return w.Balance == 40 })
	require.Equal(t, []string{"round0.0", "round1.0", "round2.0", "round3.0"}, w.Had)
	sent(t, m, "wallet", 1)
	_, version := storedAt(t, m, "wallet", "anna")
	require.Zero(t, version)
}

// storedAt is stored for any type of one shard.
func storedAt(t *testing.T, m *store.MemoryStore, typ, id string) (state string, version uint64) {
	c := m.Copy()
	s, f := store.Shard{Type: typ}, route.MakeFence(1<<64-1, 1, 1)
	_, err := c.Claim(context.Background(), s, f)
	require.NoError(t, err)
	list, err := c.Load(context.Background(), s, f, id)
	require.NoError(t, err)
	if len(list) == 0 {
		return "", 0
	}
	return string(list[0].State), list[0].Version
}

// TestOwnerEndsBehindItsCommit: a node ends when its commit has taken place and it does not know it yet, as sender, so
// that it has sent nothing, and as receiver, so that it has acknowledged nothing: the next owner sends, and the next
// one knows what it has had. Each message has its effect once (SHD-12).
func TestOwnerEndsBehindItsCommit(t *testing.T) {
	for _, of := range []string{"anna", "ben"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			m := store.Memory()
			n, _ := begin(t, bank{Store: store.Memory()})
			e := registers(t, n, walletType{Store: m, Shards: 1})
			does(t, e, "anna", move{Deposit: 100})
			came, never := make(chan bool, 100), make(chan struct{})
			m.Fail(func(c store.Call) store.Fate {
				if c.Do != "commit" || c.Writes[0].ID != of {
					return store.Fate{}
				}
				came <- true
				return store.Fate{After: never}
			})
			ctx := within(t)
			done := make(chan error, 1)
			go func() {
				_, err := e.Ask(ctx, "anna", &move{Transfer: 10, To: "ben", Note: "n"})
				done <- err
			}()
			<-came
			require.Eventually(t, func() bool {
				_, v := storedAt(t, m, "wallet", of)
				return v > 0
			}, time.Minute, time.Millisecond)
			_ = n.Close()
			<-done
			m.Fail(nil)
			next, _ := begin(t, bank{Store: store.Memory()})
			e = registers(t, next, walletType{Store: m, Shards: 1})
			w := has(t, e, "ben", func(w wallet) bool { return len(w.Had) > 0 })
			require.EqualValues(t, 10, w.Balance)
			sent(t, m, "wallet", 1)
			require.EqualValues(t, 90, does(t, e, "anna", move{}).Balance)
			require.EqualValues(t, 10, does(t, e, "ben", move{}).Balance)
		})
	}
}

// TestOutboxOutlivesItsSender: a sender that was let go while its outbox waits for a receiver with its store away is
// sent for all the same, without being asked for anything, on the node where it was and on the next one (SHD-12).
func TestOutboxOutlivesItsSender(t *testing.T) {
	m, other := store.Memory(), store.Memory()
	const slow = durable.Name[move]("slow")
	typ := walletType{Store: m, MaxActive: 1, Shards: 1,
		Handle: func(tx *durable.Tx[wallet], o *move) (wallet, error) {
			tx.State.Balance++
			slow.Send(tx, "x", &move{Credit: 1, Note: tx.ID()})
			if o.Gone {
				tx.Delete()
			}
			return *tx.State, nil
		}}
	n, _ := begin(t, bank{Store: store.Memory()})
	slows := registers(t, n, walletType{Name: slow, Store: other, Patience: 20 * time.Millisecond})
	e := registers(t, n, typ)
	other.Fail(func(store.Call) store.Fate { return store.Fate{Lost: true} })
	const ids = 10
	for i := range ids {
		does(t, e, fmt.Sprint("id", i), move{})
	}
	other.Fail(nil)
	has(t, slows, "x", func(w wallet) bool { return w.Balance == ids })
	sent(t, m, "wallet", 1)
	other.Fail(func(store.Call) store.Fate { return store.Fate{Lost: true} })
	for i := range ids {
		does(t, e, fmt.Sprint("id", i), move{Gone: i%2 == 0})
	}
	_ = n.Close()
	other.Fail(nil)
	next, _ := begin(t, bank{Store: store.Memory()})
	slows = registers(t, next, walletType{Name: slow, Store: other})
	registers(t, next, typ)
	has(t, slows, "x", func(w wallet) bool { return w.Balance == 2*ids })
	sent(t, m, "wallet", 1)
}

// TestAskOnce: asks with one key have their effect once and get one reply, by whatever owner, when the record was
// deleted meanwhile too; another message with the key is refused, and one that the handler refuses leaves no key
// (SHD-12).
func TestAskOnce(t *testing.T) {
	m := store.Memory()
	n, _ := begin(t, bank{Store: store.Memory()})
	e := registers(t, n, walletType{Store: m, Shards: 1})
	once := func(key string, o move) (wallet, error) { return e.AskOnce(within(t), key, "anna", &o) }
	first, err := once("k", move{Deposit: 5, Note: "a"})
	require.NoError(t, err)
	require.EqualValues(t, 5, first.Balance)
	does(t, e, "anna", move{Deposit: 1})
	same := func() {
		t.Helper()
		w, err := once("k", move{Deposit: 5, Note: "a"})
		require.NoError(t, err)
		require.Equal(t, first, w)
		_, err = once("k", move{Deposit: 6, Note: "a"})
		require.ErrorIs(t, err, durable.ErrKeyUsed)
		require.False(t, kith.MayHaveRun(err))
	}
	same()
	_, err = once("later", move{Transfer: 100, To: "ben"})
	require.ErrorIs(t, err, durable.ErrRejected)
	does(t, e, "anna", move{Deposit: 100})
	w, err := once("later", move{Transfer: 100, To: "ben", Note: "x"})
	require.NoError(t, err)
	require.EqualValues(t, 6, w.Balance)
	has(t, e, "ben", func(w wallet) bool { return w.Balance == 100 })
	read, err := once("read", move{})
	require.NoError(t, err)
	does(t, e, "anna", move{Gone: true})
	same()
	_ = n.Close()
	next, _ := begin(t, bank{Store: store.Memory()})
	e = registers(t, next, walletType{Store: m, Shards: 1})
	same()
	w, err = once("read", move{})
	require.NoError(t, err)
	require.Equal(t, read, w)
	require.Zero(t, does(t, e, "anna", move{}).Balance)
	for _, key := range []string{"", strings.Repeat("k", durable.MaxKey+1)} {
		_, err = once(key, move{})
		require.ErrorIs(t, err, durable.ErrBadKey)
		require.False(t, kith.MayHaveRun(err))
	}
	_, err = once(strings.Repeat("k", durable.MaxKey), move{Deposit: 1})
	require.NoError(t, err)
	does(t, e, "large", move{Note: strings.Repeat("x", durable.MaxKeptReply)})
	_, err = e.AskOnce(within(t), "k", "large", &move{Deposit: 1})
	require.ErrorIs(t, err, durable.ErrTooLarge)
	require.Zero(t, does(t, e, "large", move{}).Balance)
}

// TestKeysAreForgotten: behind SeenFor a key is a new one.
func TestKeysAreForgotten(t *testing.T) {
	m := store.Memory()
	n, _ := begin(t, bank{Store: store.Memory()})
	e := registers(t, n, walletType{Store: m, SeenFor: time.Second, Shards: 1})
	_, err := e.AskOnce(within(t), "k", "anna", &move{Deposit: 1})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := e.AskOnce(within(t), "k", "anna", &move{Deposit: 2})
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	require.EqualValues(t, 3, does(t, e, "anna", move{}).Balance)
	require.Eventually(t, func() bool {
		c := m.Copy()
		f := route.MakeFence(1<<64-1, 1, 1)
		_, err := c.Claim(context.Background(), store.Shard{Type: "wallet"}, f)
		require.NoError(t, err)
		n, err := c.CountMarks(context.Background(), store.Shard{Type: "wallet"}, f, "anna", "\x00")
		return err == nil && n == 0
	}, time.Minute, 20*time.Millisecond)
}

// TestTransfersHaveTheirEffectOnce: three nodes, transfers between all accounts by callers that repeat what they do not
// know, over a store that loses answers and calls, while nodes leave, end without a word and begin anew: the sum is
// that of the deposits, and each transfer was applied once (SHD-12).
func TestTransfersHaveTheirEffectOnce(t *testing.T) {
	const ids, each, callers, rounds = 8, 15, 6, 4 // each caller makes so many transfers in a round
	m := store.Memory()
	typ := walletType{Store: m, Shards: 8, Patience: 500 * time.Millisecond}
	type running struct {
		n *kith.Node
		e *walletSet
	}
	var mu sync.Mutex
	var nodes []running
	start := func() {
		mu.Lock()
		var others []*kith.Node
		for _, r := range nodes {
			others = append(others, r.n)
		}
		mu.Unlock()
		n, _ := begin(t, bank{Store: store.Memory()}, others...)
		e := registers(t, n, typ)
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, running{n, e})
	}
	for range 3 {
		start()
	}
	anyOf := func() *walletSet {
		mu.Lock()
		defer mu.Unlock()
		return nodes[rand.IntN(len(nodes))].e
	}
	id := func(i int) string { return fmt.Sprint("id", i) }
	for i := range ids {
		does(t, anyOf(), id(i), move{Deposit: 1000})
	}
	m.Fail(func(store.Call) store.Fate {
		n := rand.IntN(20)
		return store.Fate{Lost: n == 0, Blind: n == 1}
	})
	var all sync.WaitGroup
	var made atomic.Int64
	ctx := within(t)
	var round [rounds]chan struct{}
	for i := range round {
		round[i] = make(chan struct{})
	}
	for c := range callers {
		all.Go(func() {
			for i := range each * rounds {
				if i%each == 0 {
					select {
					case <-round[i/each]:
					case <-ctx.Done():
					}
				}
				key := fmt.Sprint(c, ".", i)
				o := move{Transfer: int64(1 + rand.IntN(5)), To: id(rand.IntN(ids)), Note: key + ":"}
				from := id(rand.IntN(ids))
				for ctx.Err() == nil {
					short, cancel := context.WithTimeout(ctx, 3*time.Second)
					_, err := anyOf().AskOnce(short, key, from, &o)
					cancel()
					if err == nil {
						made.Add(1)
						break
					}
					if errors.Is(err, durable.ErrRejected) || errors.Is(err, durable.ErrKeyUsed) {
						t.Errorf("%s: %v", key, err)
						return
					}
				}
			}
		})
	}
	for i := range round {
		close(round[i])
		require.Eventually(t, func() bool { return made.Load() >= int64(i*each*callers+each) }, 2*time.Minute,
			time.Millisecond)
		if i < rounds-1 {
			start()
		}
		mu.Lock()
		gone := nodes[0].n
		nodes = nodes[1:]
		mu.Unlock()
		if i < rounds-1 {
			require.NoError(t, gone.Leave(within(t)))
		}
		_ = gone.Close() // the last one without a word
	}
	all.Wait()
	require.EqualValues(t, callers*each*rounds, made.Load())
	m.Fail(nil)
	sent(t, m, "wallet", 8)
	sum, had := int64(0), map[string]int{}
	for i := range ids {
		w := does(t, anyOf(), id(i), move{})
		sum += w.Balance
		require.Empty(t, w.Lost)
		for _, note := range w.Had {
			had[note]++
		}
	}
	require.EqualValues(t, ids*1000, sum)
	require.Len(t, had, callers*each*rounds)
	for note, n := range had {
		require.Equal(t, 1, n, note)
	}
}

// TestRemindersSend: a reminder sends in its commit; one that fails, and is stored again for later, leaves the outbox
// where it is (SHD-12).
func TestRemindersSend(t *testing.T) {
	m, other := store.Memory(), store.Memory()
	n, _ := begin(t, bank{Store: store.Memory()})
	const slow = durable.Name[move]("slow")
	slows := registers(t, n, walletType{Name: slow, Store: other, Patience: 20 * time.Millisecond})
	other.Fail(func(store.Call) store.Fate { return store.Fate{Lost: true} })
	var fails atomic.Int64
	fails.Store(1)
	e := registers(t, n, walletType{Store: m, Shards: 1,
		Handle: func(tx *durable.Tx[wallet], o *move) (wallet, error) {
			if o.Transfer > 0 {
				tx.State.Balance -= o.Transfer
				slow.Send(tx, "x", &move{Credit: o.Transfer, Note: "at once"})
				return *tx.State, tx.Remind("later", tx.Now(), nil)
			}
			return *tx.State, nil
		},
		Reminded: func(tx *durable.Tx[wallet], _ string, _ []byte) error {
			tx.State.Balance--
			slow.Send(tx, "x", &move{Credit: 1, Note: "reminded"})
			if fails.Add(-1) >= 0 {
				return errors.New("on demand")
			}
			return nil
		}})
	does(t, e, "anna", move{Transfer: 5})
	require.Eventually(t, func() bool { return e.Stats().RemindersFailed > 0 }, time.Minute, time.Millisecond)
	require.Equal(t, []string{"anna"}, unsent(t, m, "wallet", 1))
	has(t, e, "anna", func(w wallet) bool { return w.Balance == -6 })
	other.Fail(nil)
	w := has(t, slows, "x", func(w wallet) bool { return w.Balance == 6 })
	require.Equal(t, []string{"at once", "reminded"}, w.Had)
	sent(t, m, "wallet", 1)
}

// TestUndeliveredMaySend: where all of a full outbox is refused, what Undelivered sends in its place finds room, and
// none waits the longer the more were refused before it (SHD-12).
func TestUndeliveredMaySend(t *testing.T) {
	m := store.Memory()
	n, _ := begin(t, bank{Store: store.Memory()})
	e := registers(t, n, walletType{Store: m, Undelivered: func(tx *durable.Tx[wallet], u *durable.Undelivered) {
		wallets.Send(tx, "told", &move{Credit: 1, Note: u.ID})
	}})
	does(t, e, "anna", move{Deposit: durable.MaxOutbox})
	does(t, e, "anna", move{Transfer: 1, To: "ben", Times: durable.MaxOutbox, Refuse: "closed"})
	has(t, e, "told", func(w wallet) bool { return w.Balance == durable.MaxOutbox })
	sent(t, m, "wallet", 4)
}

// TestRepliesInMemoryAreBounded: an entity that has given many large replies to asks with keys holds few of them in
// memory, and has the others from its store (SHD-12).
func TestRepliesInMemoryAreBounded(t *testing.T) {
	m := store.Memory()
	n, _ := begin(t, bank{Store: store.Memory()})
	e := registers(t, n, walletType{Store: m})
	does(t, e, "anna", move{Note: strings.Repeat("x", 60<<10)})
	var reads atomic.Int64
	m.Fail(func(c store.Call) store.Fate {
		if c.Do == "marks" {
			reads.Add(1)
		}
		return store.Fate{}
	})
	const keys = 40
	for range 2 {
		for i := range keys {
			w, err := e.AskOnce(within(t), fmt.Sprint(i), "anna", &move{Deposit: 1})
			require.NoError(t, err)
			require.EqualValues(t, i+1, w.Balance)
		}
	}
	require.EqualValues(t, 2*keys, reads.Load(), "each was forgotten before it came again")
}
