// Tests of reminders on real nodes: fired once, late where they must be, whatever node owns the entity then.

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

// diary is the state of the tests' entities: what they were reminded of. plan is a message to one.
type diary struct{ Fired []string }

type plan struct {
	Name, Body string
	At         time.Time
	Forget     string
	Gone       bool
}

type (
	diaries = durable.Type[diary, plan, []string]
	readers = durable.Entities[plan, []string]
)

func plans(tx *durable.Tx[diary], p *plan) ([]string, error) {
	switch {
	case p.Gone:
		tx.Delete()
	case p.Forget != "" && !tx.Forget(p.Forget):
		return nil, errors.New("nothing to forget")
	case p.Name != "":
		if err := tx.Remind(p.Name, p.At, []byte(p.Body)); err != nil {
			return nil, err
		}
	}
	return tx.State.Fired, nil
}

func fires(tx *durable.Tx[diary], name string, body []byte) error {
	tx.State.Fired = append(tx.State.Fired, name+"="+string(body))
	return nil
}

// reminders registers the type on a node of its own.
func reminders(t *testing.T, typ diaries, others ...*kith.Node) (*kith.Node, *readers) {
	t.Helper()
	n := start(t, time.Second, others...)
	typ.Name, typ.Shards = "diary", max(typ.Shards, 1)
	if typ.Handle == nil {
		typ.Handle = plans
	}
	e, err := durable.Register(n, typ)
	require.NoError(t, err)
	require.NoError(t, n.Ready(within(t)))
	return n, e
}

// closes ends a cluster, so that one that is formed next is a later one: those of one millisecond are in no order.
func closes(t *testing.T, n *kith.Node) {
	t.Helper()
	born := n.View().Birth
	_ = n.Close() // it says what it abandons
	require.Eventually(t, func() bool { return uint64(time.Now().UnixMilli()) > born>>20 }, time.Minute, time.Millisecond)
}

// fired waits until an entity was reminded of that, in this order.
func fired(t *testing.T, e *readers, id string, want ...string) {
	t.Helper()
	var got []string
	var last error
	ctx := within(t)
	require.Eventually(t, func() bool {
		r, err := e.Ask(ctx, id, &plan{})
		got, last = r, err
		return err == nil && len(got) >= len(want)
	}, 2*time.Minute, 5*time.Millisecond, "%v", want)
	require.NoError(t, last)
	require.Equal(t, want, got)
}

func remind(t *testing.T, e *readers, id string, p plan) {
	t.Helper()
	_, err := e.Ask(within(t), id, &p)
	require.NoError(t, err)
}

// TestReminders: one fires in its time, the earlier one first, whenever it was set; one of the same name takes its
// place; one that is forgotten, or of a deleted entity, does not (SHD-11).
func TestReminders(t *testing.T) {
	m := store.Memory()
	_, e := reminders(t, diaries{Store: m, Reminded: fires})
	now := time.Now()
	before := now.Add(-time.Hour)
	remind(t, e, "gone", plan{Name: "x", At: now.Add(150 * time.Millisecond)})
	remind(t, e, "gone", plan{Gone: true})
	remind(t, e, "a", plan{Name: "never", At: now.Add(100 * time.Millisecond)})
	remind(t, e, "a", plan{Name: "later", Body: "3", At: now.Add(time.Hour)})
	remind(t, e, "a", plan{Name: "later", Body: "4", At: now.Add(200 * time.Millisecond)})
	remind(t, e, "a", plan{Name: "soon", Body: "2", At: now.Add(150 * time.Millisecond)})
	remind(t, e, "a", plan{Forget: "never"})
	remind(t, e, "b", plan{Name: "before", Body: "1", At: before})
	fired(t, e, "b", "before=1")
	fired(t, e, "a", "soon=2", "later=4")
	require.False(t, time.Now().Before(now.Add(200*time.Millisecond)), "it is never early")
	_, err := e.Ask(within(t), "a", &plan{Forget: "later"})
	require.ErrorIs(t, err, durable.ErrRejected, "what has fired is gone")
	remind(t, e, "gone", plan{Name: "end", At: before})
	fired(t, e, "gone", "end=")
	require.EqualValues(t, 4, e.Stats().Reminded)
	for a := range m.Due(within(t), store.Shard{Type: "diary"}, now.Add(100*time.Hour)) {
		t.Fatalf("%v is left", a)
	}
}

// TestRemindersSurvive: passivation, a node that leaves, one that dies, and the end of all of them: what is due then
// fires when a node lives again, without a message, once (SHD-11).
func TestRemindersSurvive(t *testing.T) {
	m := store.Memory()
	typ := diaries{Store: m, Shards: 8, MaxActive: 2, Reminded: fires}
	const ids = 16
	first, e := reminders(t, typ)
	second, e2 := reminders(t, typ, first)
	set := func(e *readers, name string, after time.Duration) {
		t.Helper()
		var all sync.WaitGroup
		at := time.Now().Add(after)
		for i := range ids {
			all.Go(func() { remind(t, e, fmt.Sprint("id", i), plan{Name: name, At: at}) })
		}
		all.Wait()
	}
	want := []string{}
	check := func(e *readers, names ...string) {
		t.Helper()
		for _, n := range names {
			want = append(want, n+"=")
		}
		for i := range ids {
			fired(t, e, fmt.Sprint("id", i), want...)
		}
	}
	set(e, "a", 20*time.Millisecond)
	check(e2, "a")
	set(e, "b", 300*time.Millisecond)
	require.NoError(t, second.Leave(within(t)))
	check(e, "b")
	third, e3 := reminders(t, typ, first)
	require.Eventually(t, func() bool { // it has shards
		for _, s := range third.Stats().Types {
			if s.Name == "diary" && s.Hosted > 0 {
				return true
			}
		}
		return false
	}, 2*time.Minute, time.Millisecond)
	set(e3, "c", 300*time.Millisecond)
	addr := third.Addr().String()
	_ = third.Close()
	require.NoError(t, first.Down(within(t), addr))
	check(e, "c")
	set(e, "d", 300*time.Millisecond)
	closes(t, first)
	_, e4 := reminders(t, typ)
	require.Eventually(t, func() bool { return e4.Stats().Reminded == ids }, 2*time.Minute, time.Millisecond,
		"nobody has sent anything")
	check(e4, "d")
}

// TestRemindersHaveTheirEffectOnce: while commits are lost, or had their effect and were not answered, and a node dies
// between a handler and its commit (SHD-11).
func TestRemindersHaveTheirEffectOnce(t *testing.T) {
	m := store.Memory()
	var calls atomic.Int64
	typ := diaries{Store: m, Shards: 4, ReminderRate: 1000, Reminded: func(tx *durable.Tx[diary], name string,
		body []byte) error {
		calls.Add(1)
		return fires(tx, name, body)
	}}
	n, e := reminders(t, typ)
	m.Fail(func(store.Call) store.Fate {
		n := rand.IntN(4)
		return store.Fate{Lost: n == 0, Blind: n == 1}
	})
	const ids, each = 6, 5
	now := time.Now()
	var want []string
	for i := range each {
		name := fmt.Sprint("r", i)
		want = append(want, name+"=")
		for k := range ids {
			require.Eventually(t, func() bool {
				at := now.Add(time.Duration(i) * time.Millisecond)
				_, err := e.Ask(within(t), fmt.Sprint("id", k), &plan{Name: name, At: at})
				require.True(t, err == nil || errors.Is(err, durable.ErrAway), err)
				return err == nil
			}, 2*time.Minute, time.Millisecond)
		}
	}
	for k := range ids {
		fired(t, e, fmt.Sprint("id", k), want...)
	}
	m.Fail(nil)
	remind(t, e, "dies", plan{Name: "x", At: time.Now().Add(50 * time.Millisecond)})
	was := calls.Load()
	g := hold(m, "commit") // the handler runs, and its commit does not come to the store
	<-g.came
	require.Equal(t, was+1, calls.Load())
	closes(t, n)
	m.Fail(nil)
	_, e = reminders(t, typ)
	fired(t, e, "dies", "x=")
	require.Equal(t, was+2, calls.Load())
}

// TestRemindersThatFail: a handler that fails or panics leaves nothing of itself, comes again, and delays no other
// reminder of its entity (SHD-11).
func TestRemindersThatFail(t *testing.T) {
	m := store.Memory()
	var failures atomic.Int64
	_, e := reminders(t, diaries{Store: m, Reminded: func(tx *durable.Tx[diary], name string, body []byte) error {
		if err := fires(tx, name, body); err != nil || name != "fails" && name != "panics" {
			return err
		}
		body[0] = 'x' // which is its own
		tx.Forget("good")
		if failures.Add(1) <= 2 {
			if name == "panics" {
				panic("on demand")
			}
			return errors.New("on demand")
		}
		return nil
	}})
	now := time.Now()
	for i, name := range []string{"fails", "panics", "good"} {
		remind(t, e, "a", plan{Name: name, Body: "b", At: now.Add(time.Duration(100+i) * time.Millisecond)})
	}
	fired(t, e, "a", "good=b", "fails=b", "panics=b")
	require.EqualValues(t, 2, e.Stats().RemindersFailed)
	require.EqualValues(t, 3, e.Stats().Reminded)
}

// TestReminderSetsItself: a handler may set its own reminder again, and others (SHD-11).
func TestReminderSetsItself(t *testing.T) {
	_, e := reminders(t, diaries{Store: store.Memory(), Reminded: func(tx *durable.Tx[diary], name string,
		body []byte) error {
		if _, there := tx.Reminder(name); there {
			return errors.New("it is still there")
		}
		if n := len(tx.State.Fired); n < 5 {
			if err := tx.Remind(name, tx.Now(), fmt.Append(nil, n)); err != nil {
				return err
			}
		}
		return fires(tx, name, body)
	}})
	remind(t, e, "a", plan{Name: "x", Body: "first", At: time.Now()})
	fired(t, e, "a", "x=first", "x=0", "x=1", "x=2", "x=3", "x=4")
}

// TestBoundsOfReminders: each is a typed error, after which nothing has changed; what just reaches it is set.
func TestBoundsOfReminders(t *testing.T) {
	m := store.Memory()
	var errs []error
	handler := func(tx *durable.Tx[diary], _ *plan) ([]string, error) {
		later := tx.Now().Add(time.Hour)
		long, large := strings.Repeat("n", durable.MaxReminderName), make([]byte, durable.MaxReminderBody)
		errs = nil
		try := func(name string, at time.Time, body []byte) { errs = append(errs, tx.Remind(name, at, body)) }
		try("", later, nil)
		try(long+"n", later, nil)
		try("x", later, append(large, 0))
		try("x", time.Time{}, nil)
		try("x", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), nil)
		try(long, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), large)
		for i := range durable.MaxReminders {
			try(fmt.Sprint(i), later, nil)
		}
		try("0", later, nil)
		tx.Forget("0")
		try("y", later, nil)
		return nil, nil
	}
	_, e := reminders(t, diaries{Store: m, Handle: handler, Reminded: fires})
	remind(t, e, "a", plan{})
	for i, err := range errs {
		switch {
		case i < 5:
			require.ErrorIs(t, err, durable.ErrBadReminder)
		case i == 5+durable.MaxReminders:
			require.ErrorIs(t, err, durable.ErrRemindersFull)
		default:
			require.NoError(t, err, i)
		}
	}
	record := recordOf(t, m, "a")
	require.False(t, record.Due.IsZero())
	_, e = reminders(t, diaries{Store: store.Memory(), Handle: handler})
	remind(t, e, "a", plan{})
	for _, err := range errs {
		require.ErrorIs(t, err, durable.ErrBadReminder, "the type has no Reminded")
	}
}

// recordOf returns a record as it is stored.
func recordOf(t *testing.T, m *store.MemoryStore, id string) store.Record {
	t.Helper()
	c, s, f := m.Copy(), store.Shard{Type: "diary"}, route.MakeFence(1<<64-1, 1, 1)
	_, err := c.Claim(context.Background(), s, f)
	require.NoError(t, err)
	list, err := c.Load(context.Background(), s, f, id)
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0]
}

// TestRemindersOfATypeThatKnowsNone: a type without Reminded keeps what is stored as it changes the state, and fires
// none; one that has it later does. Reminders that cannot be read are reported, and disturb no other entity (SHD-11).
func TestRemindersOfATypeThatKnowsNone(t *testing.T) {
	m, at, early := store.Memory(), time.Now().Add(time.Hour), route.MakeFence(1, 1, 1)
	_, err := m.Claim(within(t), store.Shard{Type: "diary"}, early)
	require.NoError(t, err)
	require.NoError(t, m.Commit(within(t), store.Shard{Type: "diary"}, early, store.Write{Record: store.Record{
		ID: "broken", Version: 1, State: []byte("{}"), Reminders: []byte{9}, Due: at, Nonce: [16]byte{1}}}))
	first, e := reminders(t, diaries{Store: m, Reminded: fires})
	remind(t, e, "a", plan{Name: "x", At: at})
	closes(t, first)
	first, e = reminders(t, diaries{Store: m, Handle: func(tx *durable.Tx[diary], _ *plan) ([]string, error) {
		tx.State.Fired = []string{"changed"}
		return nil, nil
	}})
	remind(t, e, "a", plan{})
	r := recordOf(t, m, "a")
	require.True(t, r.Due.Equal(at.Truncate(time.Millisecond)) || r.Due.After(at))
	closes(t, first)
	_, e = reminders(t, durable.WithClock(diaries{Store: m, Reminded: fires},
		func() time.Time { return time.Now().Add(2 * time.Hour) }))
	fired(t, e, "a", "changed", "x=")
	_, err = e.Ask(within(t), "broken", &plan{})
	require.ErrorIs(t, err, durable.ErrRecord)
}

// TestClockIsSet: a reminder fires by the owner's wall clock: not before its time though the clock was set back, and
// soon when it is set forth (SHD-11).
func TestClockIsSet(t *testing.T) {
	var ahead atomic.Int64
	set := func(d time.Duration) { ahead.Store(int64(d)) }
	_, e := reminders(t, durable.WithClock(diaries{Store: store.Memory(), Reminded: fires},
		func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
	now := time.Now()
	remind(t, e, "a", plan{Name: "hour", At: now.Add(time.Hour)})
	remind(t, e, "a", plan{Name: "day", At: now.Add(24 * time.Hour)})
	set(-48 * time.Hour)
	remind(t, e, "b", plan{Name: "yesterday", At: now.Add(-24 * time.Hour)})
	remind(t, e, "b", plan{Name: "past", At: now.Add(-50 * time.Hour)})
	fired(t, e, "b", "past=")
	set(2 * time.Hour)
	fired(t, e, "b", "past=", "yesterday=")
	fired(t, e, "a", "hour=")
	require.EqualValues(t, 3, e.Stats().Reminded)
}

// TestManyRemindersAtOnce: all that came due while nobody lived fire, each once (SHD-11).
func TestManyRemindersAtOnce(t *testing.T) {
	m := store.Memory()
	const ids = 300
	first, e := reminders(t, diaries{Store: m, Reminded: fires})
	at := time.Now().Add(time.Hour)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			remind(t, e, fmt.Sprint("id", i), plan{Name: "x", At: at.Add(time.Duration(i) * time.Millisecond)})
		})
	}
	all.Wait()
	closes(t, first)
	_, e = reminders(t, durable.WithClock(diaries{Store: m, ReminderRate: 1000, Reminded: fires},
		func() time.Time { return time.Now().Add(2 * time.Hour) }))
	require.Eventually(t, func() bool { return e.Stats().Reminded == ids }, 2*time.Minute, time.Millisecond)
	for i := range ids {
		fired(t, e, fmt.Sprint("id", i), "x=")
	}
}
