//go:build linux

// The laws, against each database.

package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sqlfence"
)

var ctx = context.Background()

func owner(birth uint64, epoch uint32) sqlfence.Owner {
	return sqlfence.Owner{Type: "cart", Shard: 7, Fence: route.MakeFence(birth, 1, epoch)}
}

// Claims: the same one again is fine, a lower one is not; each database sorts fences as they are.
func TestClaimsOnlyGrow(t *testing.T) {
	each(t, func(t *testing.T, e engine, source string) {
		_, s := e.open(t, source)
		fences := []kith.Fence{route.MakeFence(1, 0, 0xff), route.MakeFence(1, 0, 0x100), route.MakeFence(1, 0x5c, 0),
			route.MakeFence(1, 0xff000000, 0), route.MakeFence(0x8000_0000_0000_0000, 0, 0), route.MakeFence(^uint64(0), 0, 1)}
		require.True(t, slices.IsSortedFunc(fences, kith.Fence.Compare))
		for i, f := range fences {
			o := sqlfence.Owner{Type: "t", Shard: 1 << 19, Fence: f}
			require.NoError(t, s.Claim(ctx, o))
			require.NoError(t, s.Claim(ctx, o), "again")
			_, err := s.Save(ctx, o, "a", int64(i), []byte{byte(i)})
			require.NoError(t, err)
			for _, lower := range fences[:i] {
				l := sqlfence.Owner{Type: "t", Shard: 1 << 19, Fence: lower}
				require.ErrorIs(t, s.Claim(ctx, l), sqlfence.ErrFenced)
				_, err = s.Load(ctx, l, "a")
				require.ErrorIs(t, err, sqlfence.ErrFenced)
				_, err = s.Save(ctx, l, "a", int64(i)+1, []byte("late"))
				require.ErrorIs(t, err, sqlfence.ErrFenced)
				require.ErrorIs(t, s.Delete(ctx, l, "a", int64(i)+1), sqlfence.ErrFenced)
			}
			for _, higher := range fences[i+1:] {
				_, err = s.Save(ctx, sqlfence.Owner{Type: "t", Shard: 1 << 19, Fence: higher}, "a", int64(i)+1, []byte("early"))
				require.ErrorIs(t, err, sqlfence.ErrNotClaimed)
			}
			r, err := s.Load(ctx, o, "a")
			require.NoError(t, err)
			require.Equal(t, sqlfence.Record{Version: int64(i) + 1, State: []byte{byte(i)}}, r)
		}
	})
}

// Whatever owners do in whatever order, the database has what a list of it would have.
func TestOwnersAgainstAModel(t *testing.T) {
	each(t, func(t *testing.T, e engine, source string) {
		db, s := e.open(t, source)
		rapid.Check(t, func(t *rapid.T) {
			for _, table := range []string{"kith_fence", "kith_state"} {
				_, err := db.Exec("delete from " + table)
				require.NoError(t, err)
			}
			m := &model{fences: map[kith.ShardID]kith.Fence{}, records: map[string]sqlfence.Record{}}
			small := rapid.IntRange(0, 2)
			for i := range rapid.IntRange(1, 25).Draw(t, "steps") {
				o := sqlfence.Owner{Type: "cart", Shard: kith.ShardID(small.Draw(t, "shard")),
					Fence: route.MakeFence(uint64(1+small.Draw(t, "birth")), 1, uint32(small.Draw(t, "epoch")))}
				id := fmt.Sprint(o.Shard, "/", small.Draw(t, "id"))
				version, state := m.records[id].Version-int64(small.Draw(t, "behind")/2), []byte(fmt.Sprint("state ", i))
				switch small.Draw(t, "what") {
				case 0:
					require.ErrorIs(t, s.Claim(ctx, o), m.claim(o))
				case 1:
					_, err := s.Save(ctx, o, id, max(version, 0), state)
					require.ErrorIs(t, err, m.save(o, id, max(version, 0), state))
				case 2:
					require.ErrorIs(t, s.Delete(ctx, o, id, max(version, 0)), m.save(o, id, max(version, 0), nil))
				}
				r, err := s.Load(ctx, o, id)
				require.ErrorIs(t, err, m.claim(o))
				if err == nil {
					require.Equal(t, m.records[id], r)
				}
			}
		})
	})
}

// model is what a store is to be.
type model struct {
	birth   uint64
	fences  map[kith.ShardID]kith.Fence
	records map[string]sqlfence.Record
}

func (m *model) claim(o sqlfence.Owner) error {
	if _, known := m.fences[o.Shard]; !known { // also a claim that is refused makes the row, which younger clusters raise
		m.fences[o.Shard] = kith.Fence{}
	}
	if o.Fence.Birth() < m.birth || o.Fence.Compare(m.fences[o.Shard]) < 0 {
		return sqlfence.ErrFenced
	}
	if o.Fence.Birth() > m.birth {
		m.birth = o.Fence.Birth()
		for n := range m.fences {
			m.fences[n] = route.MakeFence(m.birth, 0, 0)
		}
	}
	m.fences[o.Shard] = o.Fence
	return nil
}

func (m *model) save(o sqlfence.Owner, id string, version int64, state []byte) error {
	switch m.fences[o.Shard].Compare(o.Fence) {
	case 1:
		return sqlfence.ErrFenced
	case -1:
		return sqlfence.ErrNotClaimed
	}
	if m.records[id].Version != version {
		return sqlfence.ErrConflict
	}
	if delete(m.records, id); state != nil {
		m.records[id] = sqlfence.Record{Version: version + 1, State: state}
	}
	return nil
}

// A claim beside a commit that is held open waits for it, so what is read behind the claim is the last.
func TestAClaimWaitsForACommit(t *testing.T) {
	each(t, func(t *testing.T, e engine, source string) {
		db, s := e.open(t, source)
		_, other := e.open(t, source) // the next owner's process
		first, second := owner(1, 1), owner(1, 2)
		require.NoError(t, s.Claim(ctx, first))
		claimed := make(chan error, 1)
		_, err := s.Save(ctx, first, "anna", 0, []byte("last"), func(*sql.Tx) error {
			go func() { claimed <- other.Claim(ctx, second) }()
			e.awaitWaiter(t, db, claimed)
			return nil
		})
		if err != nil { // SQLite: the claim came before the save had the file
			require.ErrorIs(t, err, sqlfence.ErrFenced)
		}
		require.NoError(t, <-claimed)
		r, load := other.Load(ctx, second, "anna")
		require.NoError(t, load)
		require.Equal(t, err == nil, r.Version == 1, "committed, then read")
		_, err = s.Save(ctx, first, "anna", r.Version, []byte("late"))
		require.ErrorIs(t, err, sqlfence.ErrFenced)
	})
}

// What others do with other shards disturbs no transaction that has begun: in SQLite they wait, or get the error that
// it is busy.
func TestOtherShardsDoNotDisturb(t *testing.T) {
	each(t, func(t *testing.T, e engine, source string) {
		_, s := e.open(t, source)
		_, other := e.open(t, strings.Replace(source, "busy_timeout%2860000%29", "busy_timeout%280%29", 1))
		first := owner(1, 1)
		second := first
		second.Shard++
		require.NoError(t, s.Claim(ctx, first))
		require.NoError(t, s.Within(ctx, first, func(tx *sql.Tx) error {
			if err := other.Claim(ctx, second); e.dialect != sqlfence.SQLite {
				require.NoError(t, err)
			}
			_, err := tx.Exec("delete from kith_state")
			return err
		}))
		require.NoError(t, other.Claim(ctx, second))
	})
}

// A save beside a claim that is held open waits for it, and then is refused.
func TestASaveWaitsForAClaim(t *testing.T) {
	each(t, func(t *testing.T, e engine, source string) {
		db, s := e.open(t, source)
		first, second := owner(1, 1), owner(1, 2)
		require.NoError(t, s.Claim(ctx, first))
		open, err := db.Begin()
		require.NoError(t, err)
		digits, err := second.Fence.MarshalText()
		require.NoError(t, err)
		_, err = open.Exec("update kith_fence set fence = " + literal(e.dialect, string(digits)) +
			" where type = 'cart' and shard = 7")
		require.NoError(t, err)
		saved := make(chan error, 1)
		go func() {
			_, err := s.Save(ctx, first, "anna", 0, []byte("late"))
			saved <- err
		}()
		e.awaitWaiter(t, db, saved)
		require.NoError(t, open.Commit())
		require.ErrorIs(t, <-saved, sqlfence.ErrFenced)
		r, err := s.Load(ctx, second, "anna")
		require.NoError(t, err)
		require.Zero(t, r)
	})
}

func literal(d sqlfence.Dialect, digits string) string {
	if d == sqlfence.PostgreSQL {
		return `'\x` + digits + `'`
	}
	return "x'" + digits + "'"
}

// A commit with a lost answer: the next Load finds what it did, also when it takes place after that was asked.
func TestLostAnswers(t *testing.T) {
	each(t, func(t *testing.T, e engine, source string) {
		watch, _ := e.open(t, source)
		f, db, err := e.faulty(source)
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		s, err := sqlfence.New(db, e.dialect)
		require.NoError(t, err)
		o := owner(1, 1)
		f.next.Store(int32(done))
		if err := s.Claim(ctx, o); err != nil { // the one that raises the birth, or this one
			require.ErrorIs(t, err, errAnswer)
			require.ErrorIs(t, err, sqlfence.ErrUnknown)
		}
		f.next.Store(int32(undone))
		require.ErrorIs(t, s.Claim(ctx, o), sqlfence.ErrUnknown)
		require.NoError(t, s.Claim(ctx, o))
		version := int64(0)
		for _, c := range []struct {
			fate fate
			adds int64
		}{{done, 1}, {undone, 0}, {late, 1}, {undone, 0}, {late, 1}} {
			f.next.Store(int32(c.fate))
			_, err := s.Save(ctx, o, "anna", version, []byte("lost"))
			require.ErrorIs(t, err, sqlfence.ErrUnknown)
			require.ErrorIs(t, err, errAnswer)
			loaded := make(chan error, 1)
			var r sqlfence.Record
			go func() {
				var err error
				r, err = s.Load(ctx, o, "anna")
				loaded <- err
			}()
			if c.fate == late {
				e.awaitWaiter(t, watch, loaded)
				require.NoError(t, f.finish())
			}
			require.NoError(t, <-loaded)
			version += c.adds
			require.Equal(t, version, r.Version, "fate %d", c.fate)
			if version, err = s.Save(ctx, o, "anna", r.Version, []byte("known")); err != nil {
				require.NoError(t, err)
			}
		}
	})
}

// Owners that race count what they have saved: no success is lost, in whatever order they come.
func TestOwnersRace(t *testing.T) {
	each(t, func(t *testing.T, e engine, source string) {
		var epoch, acknowledged atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			_, s := e.open(t, source)
			all.Go(func() {
				for range 8 {
					o := owner(1, uint32(epoch.Add(1)))
					for range 6 {
						if count(s, o) {
							acknowledged.Add(1)
						}
					}
				}
			})
		}
		all.Wait()
		_, s := e.open(t, source)
		r, err := s.Load(ctx, owner(1, 1000), "anna")
		require.NoError(t, err)
		require.Equal(t, strconv.FormatInt(acknowledged.Load(), 10), string(r.State))
		require.Positive(t, acknowledged.Load())
	})
}

// count adds one to an entity, and reports whether it did.
func count(s *sqlfence.Store, o sqlfence.Owner) bool {
	r, err := s.Load(ctx, o, "anna")
	if err != nil {
		return false
	}
	n, _ := strconv.Atoi(string(r.State))
	_, err = s.Save(ctx, o, "anna", r.Version, []byte(strconv.Itoa(n+1)))
	return err == nil
}

// A younger cluster may have other numbers of shards: its first claim ends what the earlier one has, also the shards
// that nobody had claimed.
func TestAYoungerClusterWithOtherShards(t *testing.T) {
	each(t, func(t *testing.T, e engine, source string) {
		_, s := e.open(t, source)
		at := func(birth uint64, n kith.ShardID) sqlfence.Owner {
			return sqlfence.Owner{Type: "cart", Shard: n, Fence: route.MakeFence(birth, 9, 9)}
		}
		require.NoError(t, s.Claim(ctx, at(5, 3)))
		_, err := s.Save(ctx, at(5, 3), "anna", 0, []byte("old"))
		require.NoError(t, err)
		r, err := s.Load(ctx, at(6, 40), "anna") // it lives in shard 40 now
		require.NoError(t, err)
		require.Equal(t, "old", string(r.State))
		_, err = s.Save(ctx, at(5, 3), "anna", 1, []byte("late"))
		require.ErrorIs(t, err, sqlfence.ErrFenced)
		require.ErrorIs(t, s.Claim(ctx, at(5, 3)), sqlfence.ErrFenced)
		require.ErrorIs(t, s.Claim(ctx, at(5, 4)), sqlfence.ErrFenced)
		other := at(5, 3)
		other.Type = "another"
		require.NoError(t, s.Claim(ctx, other))
		require.NoError(t, s.Claim(ctx, at(6, 3)))
	})
}

// A transaction of the user's own is the owner's, or nobody's; what is written beside the state is committed with it.
func TestTransactionsOfYourOwn(t *testing.T) {
	each(t, func(t *testing.T, e engine, source string) {
		db, s := e.open(t, source)
		_, err := db.Exec("create table notes (n integer)")
		require.NoError(t, err)
		note := func(tx *sql.Tx) error { _, err := tx.Exec("insert into notes values (1)"); return err }
		notes := func() (n int) {
			require.NoError(t, db.QueryRow("select count(*) from notes").Scan(&n))
			return n
		}
		first, second, broken := owner(1, 1), owner(1, 2), errors.New("broken")
		require.NoError(t, s.Claim(ctx, first))
		_, err = s.Save(ctx, first, "anna", 0, nil, note, func(*sql.Tx) error { return broken })
		require.ErrorIs(t, err, broken)
		require.Zero(t, notes())
		require.Panics(t, func() {
			_ = s.Within(ctx, first, func(tx *sql.Tx) error { _ = note(tx); panic("broken") })
		})
		require.Zero(t, notes(), "and its connection is free again")

		own := func(o sqlfence.Owner, f func(tx *sql.Tx) error) error {
			tx, err := db.Begin()
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			return errors.Join(f(tx), tx.Commit())
		}
		require.NoError(t, own(first, func(tx *sql.Tx) error {
			return errors.Join(s.Hold(ctx, tx, first), note(tx), s.SaveIn(ctx, tx, first, "anna", 0, []byte("a")))
		}))
		require.Equal(t, 1, notes())
		require.NoError(t, s.Claim(ctx, second))
		for _, f := range []func(tx *sql.Tx) error{
			func(tx *sql.Tx) error { return s.Hold(ctx, tx, first) },
			func(tx *sql.Tx) error { return s.SaveIn(ctx, tx, first, "anna", 1, []byte("late")) },
			func(tx *sql.Tx) error { return s.DeleteIn(ctx, tx, first, "anna", 1) },
		} {
			require.ErrorIs(t, own(first, f), sqlfence.ErrFenced)
		}
		require.ErrorIs(t, s.Within(ctx, first, func(*sql.Tx) error { panic("not called") }), sqlfence.ErrFenced)
		require.NoError(t, own(second, func(tx *sql.Tx) error { return s.DeleteIn(ctx, tx, second, "anna", 1) }))
		r, err := s.Load(ctx, second, "anna")
		require.NoError(t, err)
		require.Zero(t, r)
	})
}

// Ids differ byte by byte, and come up to their bounds; what is out of bounds is refused and writes nothing.
func TestNamesAndBounds(t *testing.T) {
	each(t, func(t *testing.T, e engine, source string) {
		db, s := e.open(t, source)
		o := owner(1, 1)
		ids := []string{"a", "A", "a ", " a", "á", "a\x01", "'", `\`, "?", "$1", strings.Repeat("ü", sqlfence.MaxID/2)}
		for _, id := range ids {
			_, err := s.Load(ctx, o, id)
			require.NoError(t, err)
			next, err := s.Save(ctx, o, id, 0, []byte(id))
			require.NoError(t, err)
			require.EqualValues(t, 1, next)
			_, err = s.Save(ctx, o, id, 0, []byte("twice"))
			require.ErrorIs(t, err, sqlfence.ErrConflict)
		}
		for _, id := range ids {
			r, err := s.Load(ctx, o, id)
			require.NoError(t, err)
			require.Equal(t, sqlfence.Record{Version: 1, State: []byte(id)}, r)
		}
		for _, id := range []string{"", "\x00", "a\x00", "\xff", strings.Repeat("a", sqlfence.MaxID+1)} {
			_, err := s.Load(ctx, o, id)
			require.ErrorIs(t, err, sqlfence.ErrInvalid)
			_, err = s.Save(ctx, o, id, 0, nil)
			require.ErrorIs(t, err, sqlfence.ErrInvalid)
			require.ErrorIs(t, s.Delete(ctx, o, id, 0), sqlfence.ErrInvalid)
		}
		for _, o := range []sqlfence.Owner{{}, {Type: "t"}, {Fence: o.Fence}, {Type: "\xff", Fence: o.Fence},
			{Type: strings.Repeat("t", sqlfence.MaxType+1), Fence: o.Fence}} {
			require.ErrorIs(t, s.Claim(ctx, o), sqlfence.ErrInvalid)
			require.ErrorIs(t, s.Within(ctx, o, nil), sqlfence.ErrInvalid)
		}
		_, err := s.Save(ctx, o, "a", 1, make([]byte, sqlfence.MaxState+1))
		require.ErrorIs(t, err, sqlfence.ErrInvalid)
		_, err = s.Save(ctx, o, "a", 1, []byte{})
		require.NoError(t, err)
		r, err := s.Load(ctx, o, "a")
		require.NoError(t, err)
		require.EqualValues(t, 2, r.Version)
		require.Empty(t, r.State)
		var n int
		require.NoError(t, db.QueryRow("select count(*) from kith_state").Scan(&n))
		require.Equal(t, len(ids), n)
		for _, d := range []sqlfence.Dialect{0, 4, 200} {
			_, err := sqlfence.New(db, d)
			require.ErrorIs(t, err, sqlfence.ErrInvalid)
			require.Nil(t, sqlfence.Schema(d))
		}
	})
}
