// Store: claims of shards, and transactions that only the owner of a shard can commit.

// Package sqlfence keeps what entities store in a SQL database from owners that come late, for users who write SQL
// themselves. An entity loads its state when its first message comes and saves it as it goes; a node that has lost the
// entity's shard, and does not know it yet, writes nothing once the next owner has claimed the shard. It needs
// database/sql and a driver of yours, and no module but kith's own.
//
// Load makes the State of an entity, which has all of that. Users with tables of their own call Store.Claim and
// Store.Do. docs/sql.md leads from nothing to a working entity. Package durable is the other way: it gathers writes,
// answers only what is stored, and its engines hide their SQL.
package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/kith-io/kith"
)

// The bounds of what is stored.
const (
	MaxType  = 255      // bytes of a type's name
	MaxID    = 1024     // bytes of an id
	MaxState = 16 << 20 // bytes of an entity's state; a database may have lower ones, as MySQL's max_allowed_packet
)

// What a Store says beside the driver's own errors. They keep their identity on the way to an asker on another node.
var (
	// ErrFenced: the shard has a later owner, or a younger cluster has the type. This call wrote nothing.
	ErrFenced error = kith.NewError("sqlfence.fenced", kith.KindUnavailable, "sqlfence: the shard has a later owner")
	// ErrNotClaimed: the shard is not claimed under this fence, but under a lower one or none: Claim was not called, or
	// the database has lost it, as one that failed over to a replica that was behind. This call wrote nothing.
	ErrNotClaimed error = kith.NewError("sqlfence.not-claimed", kith.KindUnavailable,
		"sqlfence: the shard is not claimed under this fence")
	// ErrConflict: the entity is stored in another version than the one that was loaded. This call wrote nothing.
	ErrConflict error = kith.NewError("sqlfence.conflict", kith.KindUnavailable,
		"sqlfence: the entity is stored in another version")
	// ErrUnknown: the database did not say whether it committed. The next claim or Load finds what it did.
	ErrUnknown error = kith.NewError("sqlfence.unknown", kith.KindUnavailable,
		"sqlfence: it is not known whether the transaction was committed")
	// ErrSpoiled: a save of this instance failed before, so what it holds is not what is stored.
	ErrSpoiled error = kith.NewError("sqlfence.spoiled", kith.KindUnavailable,
		"sqlfence: a save failed before, the next message reads what is stored")
	// ErrInvalid: a name or a value is out of its bounds. This call wrote nothing.
	ErrInvalid error = kith.NewError("sqlfence.invalid", kith.KindInvalid, "sqlfence: out of bounds")
)

// Owner is one ownership of one shard. Of makes that of a handler.
type Owner struct {
	Type  string // 1 to MaxType bytes of UTF-8, none of them zero
	Shard kith.ShardID
	Fence kith.Fence // not zero
}

// Of returns the ownership under which an entity lives. c is valid as in every call of a handler.
func Of(c *kith.Context) Owner { return Owner{c.Type(), c.Shard, c.Fence} }

// String says which ownership it is, for errors.
func (o Owner) String() string {
	return fmt.Sprintf("shard %d of %q, fence %v", o.Shard, o.Type, o.Fence)
}

// validate returns what is wrong, all of it.
func (o Owner) validate() error {
	var zero error
	if o.Fence.IsZero() {
		zero = fmt.Errorf("%w: a fence of zero", ErrInvalid)
	}
	return errors.Join(text("a type", o.Type, MaxType), zero)
}

// text returns an error for what every database would not give back as it is.
func text(what, s string, most int) error {
	if s == "" || len(s) > most {
		return fmt.Errorf("%w: %s of %d bytes, must have 1 to %d", ErrInvalid, what, len(s), most)
	}
	if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		return fmt.Errorf("%w: %s must be UTF-8 without zero bytes", ErrInvalid, what)
	}
	return nil
}

// shard is one that a database has.
type shard struct {
	typ string
	n   kith.ShardID
}

// Store is the two tables of Schema in a database, or the one of fences alone. Its methods are safe for concurrent use,
// also by many processes.
type Store struct {
	db  *sql.DB
	say *statements

	mu     sync.Mutex
	doubts map[shard]uint64 // shards with a commit with an unknown outcome, each with a number of its own: to be
	// claimed again before anything is read
	last uint64 // such number
}

// New returns a Store over tables that are there (Schema). db stays the caller's.
func New(db *sql.DB, d Dialect) (*Store, error) {
	if err := d.validate(); err != nil {
		return nil, err
	}
	return &Store{db: db, say: words(d), doubts: map[shard]uint64{}}, nil
}

// Open is New, and makes the tables where they are not there yet.
func Open(ctx context.Context, db *sql.DB, d Dialect) (*Store, error) {
	s, err := New(db, d)
	if err != nil {
		return nil, err
	}
	for _, statement := range Schema(d) {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, fmt.Errorf("sqlfence: making the tables: %w", err)
		}
	}
	return s, nil
}

// ofType is the shard in kith_fence with the row about a whole type.
const ofType = -1

// Claim makes o the owner of its shard. When it has returned nil, no transaction of an earlier owner is committed any
// more; those that were under way have ended, so what is read then is the last. It may be called again: under the same
// fence it succeeds, also when the answer of an earlier call was lost. ErrFenced when there is a later owner. Any other
// error is the driver's, and the call may be repeated.
//
// The first claim of a cluster that is younger than the last one (kith.Fence has its birth) ends the ownership of the
// earlier cluster in all shards of the type, so that the number of shards may differ between the two.
func (s *Store) Claim(ctx context.Context, o Owner) error {
	if err := o.validate(); err != nil {
		return err
	}
	before := s.doubt(o)
	younger, err := s.claim(ctx, o)
	if err == nil && younger {
		if err = s.raise(ctx, o); err == nil {
			_, err = s.claim(ctx, o)
		}
	}
	if err != nil {
		return fmt.Errorf("sqlfence: claiming %v: %w", o, err)
	}
	s.settle(o, before)
	return nil
}

// doubt returns the number of the doubt about a shard, zero: there is none.
func (s *Store) doubt(o Owner) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubts[shard{o.Type, o.Shard}]
}

// settle ends a doubt that was there before a claim: of one that came during the claim that says nothing.
func (s *Store) settle(o Owner, before uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := (shard{o.Type, o.Shard}); s.doubts[at] == before {
		delete(s.doubts, at)
	}
}

// raiseDoubt has a shard claimed again before anything is read.
func (s *Store) raiseDoubt(o Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.doubts[shard{o.Type, o.Shard}] = s.last
}

// claim claims a shard, unless no shard of the type was claimed by a cluster as young (younger).
func (s *Store) claim(ctx context.Context, o Owner) (younger bool, err error) {
	for _, n := range []int64{ofType, int64(o.Shard)} {
		if err := s.prepare(ctx, o.Type, n); err != nil {
			return false, err
		}
	}
	return younger, s.transact(ctx, func(tx *sql.Tx) error {
		last, err := s.lock(ctx, tx, s.say.share, o.Type, ofType)
		switch {
		case err != nil:
			return err
		case last.Birth() > o.Fence.Birth():
			return ErrFenced
		case last.Birth() < o.Fence.Birth():
			younger = true
			return nil
		}
		last, err = s.lock(ctx, tx, s.say.own, o.Type, int64(o.Shard))
		switch {
		case err != nil:
			return err
		case last.Compare(o.Fence) > 0:
			return ErrFenced
		case last.Compare(o.Fence) < 0:
			_, err = tx.ExecContext(ctx, s.say.set, o.Fence, o.Type, int64(o.Shard))
		}
		return err
	})
}

// raise ends all ownership of a type by clusters that are older than o's.
func (s *Store) raise(ctx context.Context, o Owner) error {
	var born kith.Fence // the lowest of its cluster
	copy(born[:8], o.Fence[:8])
	return s.transact(ctx, func(tx *sql.Tx) error {
		last, err := s.lock(ctx, tx, s.say.own, o.Type, ofType) // first: claims take it before those of shards, too
		if err == nil && last.Compare(born) < 0 {
			_, err = tx.ExecContext(ctx, s.say.raise, born, o.Type, born)
		}
		return err
	})
}

// prepare makes the row of a shard that has none, by itself: so what transactions lock is there, and they lock no gaps.
func (s *Store) prepare(ctx context.Context, typ string, n int64) error {
	var f kith.Fence
	err := s.db.QueryRowContext(ctx, s.say.plain, typ, n).Scan(&f)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = s.db.ExecContext(ctx, s.say.make, typ, n, kith.Fence{})
	}
	return err
}

// lock reads the fence of a row and keeps others from changing it until tx ends. That of a row that is not there is
// zero.
func (s *Store) lock(ctx context.Context, tx *sql.Tx, how, typ string, n int64) (f kith.Fence, err error) {
	if s.say.touch != "" {
		if _, err := tx.ExecContext(ctx, s.say.touch, typ, n); err != nil {
			return f, err
		}
	}
	err = tx.QueryRowContext(ctx, how, typ, n).Scan(&f)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return f, err
}

// transact runs f in a transaction and ends that. ErrUnknown when the commit has failed.
func (s *Store) transact(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing, and the error of f says more
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return nil
}

// Hold is for a transaction of your own: nil says that o owns its shard, and nobody else comes to own it until tx has
// ended. Call it before anything else in tx, and do not use tx when it has failed. ErrFenced, ErrNotClaimed, or the
// driver's error. When the Commit of such a transaction fails its outcome is not known: call Claim before you read
// again. Within does all of this.
func (s *Store) Hold(ctx context.Context, tx *sql.Tx, o Owner) error {
	if err := o.validate(); err != nil {
		return err
	}
	is, err := s.lock(ctx, tx, s.say.share, o.Type, int64(o.Shard))
	switch {
	case err == nil && is.Compare(o.Fence) > 0:
		err = ErrFenced
	case err == nil && is.Compare(o.Fence) < 0:
		err = ErrNotClaimed
	}
	if err != nil {
		return fmt.Errorf("sqlfence: %v: %w", o, err)
	}
	return nil
}

// Within runs f in a transaction that only the owner of a shard can commit, and commits it. f must not end tx, and may
// refer to no other connection that waits for it. An error of f, or a panic, rolls all back. ErrFenced, ErrNotClaimed:
// f was not called. ErrUnknown: the commit has failed; whether all or nothing was written is known to a reader
// after Load or Claim.
func (s *Store) Within(ctx context.Context, o Owner, f func(tx *sql.Tx) error) error {
	err := s.transact(ctx, func(tx *sql.Tx) error {
		if err := s.Hold(ctx, tx, o); err != nil {
			return err
		}
		return f(tx)
	})
	if errors.Is(err, ErrUnknown) {
		s.raiseDoubt(o)
	}
	return err
}

// Do is Within for a handler: under its own fence, within the time that the asker waits, and if it fails for whatever
// reason the entity is passivated, so that the next message makes an instance anew, which claims and reads. Its Open
// calls Claim before it reads. The move of the shard does not end what was begun, so f calls tx.Exec, without
// c.Context.
func (s *Store) Do(c *kith.Context, f func(tx *sql.Tx) error) error {
	ctx, end := steady(c)
	defer end()
	err := s.Within(ctx, Of(c), f)
	if err != nil {
		c.Passivate()
	}
	return err
}
