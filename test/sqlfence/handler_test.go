//go:build linux

// Entities that keep their state by it: by themselves, and in a cluster that breaks.

package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/sim"
	"github.com/kith-io/kith/sqlfence"
)

// purse is an entity: "+" and "-" change what is in it, "0" takes it away, and whatever comes it answers what is in it.
type purse struct {
	*sqlfence.State[coins]
	fail func(c *kith.Context) error
}

type coins struct{ N int }

func (p *purse) Receive(c *kith.Context, payload []byte) (err error) {
	switch string(payload) {
	case "+":
		p.Value.N++
		err = p.Save(c, func(*sql.Tx) error { return p.fail(c) })
	case "twice": // a handler that goes on after an error
		p.Value.N++
		err = errors.Join(p.Save(c, func(*sql.Tx) error { return p.fail(c) }), p.Save(c))
	case "0":
		err = p.Delete(c)
	}
	if err != nil || !c.Asked() {
		return err
	}
	return c.Reply([]byte(strconv.Itoa(p.Value.N)))
}

func (*purse) Stop(*kith.Context) {}

func purses(s *sqlfence.Store, fail func(c *kith.Context) error) kith.EntityType {
	return kith.EntityType{Name: "purse", Shards: 20, Open: func(c *kith.Context) (kith.Handler, error) {
		st, err := sqlfence.Load(c, s, kith.JSON[coins]())
		if err != nil {
			return nil, err
		}
		return &purse{st, fail}, nil
	}}
}

var errBroken = errors.New("broken")

// A save that fails leaves nothing in memory: the next message finds what is stored, also when the handler went on.
func TestAFailedSavePassivates(t *testing.T) {
	each(t, func(t *testing.T, e engine, source string) {
		_, s := e.open(t, source)
		var fail error
		p := sim.NewEntity(t, purses(s, func(*kith.Context) error { return fail }), "anna", sim.EntityConfig{})
		ask := func(what, want string) {
			t.Helper()
			got, err := p.Ask([]byte(what))
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		}
		ask("", "0")
		ask("+", "1")
		ask("+", "2")
		for _, what := range []string{"+", "twice"} {
			fail = errBroken
			_, err := p.Ask([]byte(what))
			require.ErrorIs(t, err, kith.ErrHandler)
			require.ErrorContains(t, err, "broken")
			fail = nil
			ask("", "2")
		}
		ask("+", "3")

		later := sqlfence.Owner{Type: "purse", Shard: 0, Fence: p.Fence()}
		for n := range kith.ShardID(20) { // its shard has a later owner, whichever it is
			later.Shard, later.Fence[15] = n, p.Fence()[15]+1
			require.NoError(t, s.Claim(ctx, later))
		}
		_, err := p.Ask([]byte("+"))
		require.ErrorIs(t, err, sqlfence.ErrFenced, "the asker can tell, on whatever node it is")
		_, err = p.Ask(nil)
		require.ErrorIs(t, err, kith.ErrNewFailed)
		require.False(t, kith.MayHaveRun(err))
		for n := range kith.ShardID(20) {
			if later.Shard = n; s.Within(ctx, later, func(*sql.Tx) error { return nil }) == nil {
				if r, err := s.Load(ctx, later, "anna"); err == nil && r.Version > 0 {
					require.Equal(t, sqlfence.Record{Version: 3, State: []byte(`{"N":3}`)}, r)
				}
			}
		}
	})
}

// An entity that is taken away begins again as one that was never there; one that cannot be read is no entity.
func TestAnEntityIsTakenAway(t *testing.T) {
	each(t, func(t *testing.T, e engine, source string) {
		db, s := e.open(t, source)
		p := sim.NewEntity(t, purses(s, func(*kith.Context) error { return nil }), "anna", sim.EntityConfig{})
		for range 2 {
			for _, step := range []struct{ what, want string }{{"+", "1"}, {"+", "2"}, {"0", "0"}, {"", "0"}} {
				got, err := p.Ask([]byte(step.what))
				require.NoError(t, err)
				require.Equal(t, step.want, string(got))
			}
			var n int
			require.NoError(t, db.QueryRow("select count(*) from kith_state").Scan(&n))
			require.Zero(t, n)
		}
		_, err := p.Ask([]byte("+"))
		require.NoError(t, err)
		_, err = db.Exec("update kith_state set version = version + 1, state = " + literal(e.dialect, "00"))
		require.NoError(t, err)
		_, err = p.Ask([]byte("+"))
		require.ErrorIs(t, err, sqlfence.ErrConflict, "somebody has written past it")
		_, err = p.Ask(nil)
		require.ErrorIs(t, err, kith.ErrNewFailed)
		require.ErrorContains(t, err, "anna")
	})
}

// A save that is under way when its shard begins to move is stored and answered: a planned move fails nobody.
func TestASaveOutlivesTheMoveOfItsShard(t *testing.T) {
	_, s := engines[0].open(t, engines[0].source(t))
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	began, cause := make(chan struct{}), make(chan error, 1)
	typ := purses(s, func(c *kith.Context) error {
		call := c.Context()
		close(began)
		<-call.Done()
		cause <- context.Cause(call)
		return nil
	})
	one, err := kith.Start(ctx, kith.Config{})
	require.NoError(t, err)
	defer func() { _ = one.Close() }()
	region, err := one.Register(typ)
	require.NoError(t, err)
	require.NoError(t, one.Ready(ctx))
	answer := make(chan error, 1)
	go func() {
		b, err := region.Ask(ctx, "anna", []byte("+"))
		if err == nil && string(b) != "1" {
			err = fmt.Errorf("it has %s", b)
		}
		answer <- err
	}()
	<-began
	two, err := kith.Start(ctx, kith.Config{Seeds: []string{one.Addr().String()}})
	require.NoError(t, err)
	defer func() { _ = two.Close() }()
	next, err := two.Register(typ)
	require.NoError(t, err)
	require.NoError(t, two.Ready(ctx))
	left := make(chan error, 1)
	go func() { left <- one.Leave(ctx) }()
	require.ErrorIs(t, <-cause, kith.ErrShardStopping)
	require.NoError(t, <-answer)
	require.NoError(t, <-left)
	b, err := next.Ask(ctx, "anna", nil)
	require.NoError(t, err)
	require.Equal(t, "1", string(b))
}

// Five nodes, two of them cut off, an owner that is stopped and comes back late, commits with lost answers: every
// acknowledged coin is there, and none is there twice.
func TestPursesSurvive(t *testing.T) {
	each(t, func(t *testing.T, e engine, source string) {
		f, db, err := e.faulty(source)
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		s, err := sqlfence.Open(ctx, db, e.dialect)
		require.NoError(t, err)
		c := sim.New(t, 5, 7)
		c.Register(purses(s, func(*kith.Context) error { return nil }))
		c.AwaitUp()
		acknowledged, asked := map[string]int{}, map[string]int{}
		turn := func(n int) {
			for d := range 6 {
				id := fmt.Sprint("purse", d)
				if asked[id]++; d == n%6 {
					f.next.Store(int32([]fate{told, done, undone}[n%3]))
				}
				if _, err := c.AskWithin(2*time.Second, n, "purse", id, []byte("+")); err == nil {
					acknowledged[id]++
				}
				f.next.Store(int32(told))
			}
		}
		turn(0)
		owner := c.Owner("purse", "purse1")
		c.Pause(owner, 90*time.Second) // stopped, not dead
		require.NoError(t, c.Down((owner+1)%5, owner))
		for n := range 5 {
			if n != owner {
				turn(n)
			}
		}
		c.Advance(2 * time.Minute)
		for n := range 5 {
			if !c.Running(n) {
				c.Restart(n)
			}
		}
		c.AwaitUp()
		c.Partition([]int{0, 1}, []int{2, 3, 4})
		for n := range 5 {
			turn(n)
		}
		c.Advance(time.Minute)
		c.AtMostOne("purse")
		c.Heal()
		for n := range 5 {
			if !c.Running(n) {
				c.Restart(n)
			}
		}
		c.AwaitUp()
		turn(3)
		for id, least := range acknowledged {
			got, err := c.Ask(1, "purse", id, nil)
			require.NoError(t, err)
			n, err := strconv.Atoi(string(got))
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, least, "%s: an acknowledged coin is lost", id)
			require.LessOrEqual(t, n, asked[id], "%s: a coin is there twice", id)
			require.Positive(t, least)
		}
	})
}
