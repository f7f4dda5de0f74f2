// Record: the row of one entity, read and written under the fence of its shard.

package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/kith-io/kith"
)

// Record is one entity as it is stored.
type Record struct {
	// Version is 0 for one that is not stored, and grows by one with each save.
	Version int64
	// State is the writer's, at most MaxState bytes.
	State []byte
}

// Load reads an entity, the zero Record if it is not stored, and claims the shard before where it is not claimed under
// this fence, or where a commit of it has an outcome that is not known. So the first entity of a shard costs a claim,
// the others one statement. The State is the caller's. ErrFenced, ErrInvalid, or the driver's error.
func (s *Store) Load(ctx context.Context, o Owner, id string) (Record, error) {
	if err := errors.Join(o.validate(), text("an id", id, MaxID)); err != nil {
		return Record{}, err
	}
	claimed := s.doubt(o) == 0
	for again := false; ; again = true {
		if !claimed {
			if err := s.Claim(ctx, o); err != nil {
				return Record{}, err
			}
		}
		is, r, err := s.read(ctx, o, id)
		switch order := is.Compare(o.Fence); {
		case err == nil && order == 0:
			return r, nil
		case err == nil && order > 0:
			err = ErrFenced
		case err == nil && again:
			err = ErrNotClaimed
		}
		if err != nil {
			return Record{}, fmt.Errorf("sqlfence: loading %.64q, %v: %w", id, o, err)
		}
		claimed = false
	}
}

// read reads an entity and the fence of its shard as they are at one moment.
func (s *Store) read(ctx context.Context, o Owner, id string) (is kith.Fence, r Record, err error) {
	var version sql.NullInt64
	err = s.db.QueryRowContext(ctx, s.say.load, id, o.Type, int64(o.Shard)).Scan(&is, &version, &r.State)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	r.Version = version.Int64
	return is, r, err
}

// Save writes an entity of which version was loaded, 0 if it was not stored, and returns its next one. also, if any,
// writes in the same transaction: all is committed, or nothing. Errors as Within; ErrConflict when another version is
// stored; ErrInvalid. After any error load again.
func (s *Store) Save(ctx context.Context, o Owner, id string, version int64, state []byte,
	also ...func(tx *sql.Tx) error,
) (next int64, err error) {
	err = s.Within(ctx, o, func(tx *sql.Tx) error {
		if err := s.write(ctx, tx, o, id, version, state); err != nil {
			return err
		}
		return each(tx, also)
	})
	if err != nil {
		return version, err
	}
	return version + 1, nil
}

// SaveIn is Save in a transaction of your own, to which it calls Hold: what is said there holds here.
func (s *Store) SaveIn(ctx context.Context, tx *sql.Tx, o Owner, id string, version int64, state []byte) error {
	if err := s.Hold(ctx, tx, o); err != nil {
		return err
	}
	return s.write(ctx, tx, o, id, version, state)
}

// Delete takes an entity away of which version was loaded; version 0: nothing is stored, and stays so. also and errors
// as for Save. What is saved after that begins again with version 0.
func (s *Store) Delete(ctx context.Context, o Owner, id string, version int64, also ...func(tx *sql.Tx) error) error {
	return s.Within(ctx, o, func(tx *sql.Tx) error {
		if err := s.erase(ctx, tx, o, id, version); err != nil {
			return err
		}
		return each(tx, also)
	})
}

// DeleteIn is Delete in a transaction of your own, to which it calls Hold: what is said there holds here.
func (s *Store) DeleteIn(ctx context.Context, tx *sql.Tx, o Owner, id string, version int64) error {
	if err := s.Hold(ctx, tx, o); err != nil {
		return err
	}
	return s.erase(ctx, tx, o, id, version)
}

// each calls functions until one fails.
func each(tx *sql.Tx, list []func(tx *sql.Tx) error) error {
	for _, f := range list {
		if err := f(tx); err != nil {
			return err
		}
	}
	return nil
}

// write makes the next version of an entity, in a transaction that holds the shard.
func (s *Store) write(ctx context.Context, tx *sql.Tx, o Owner, id string, version int64, state []byte) error {
	if err := text("an id", id, MaxID); err != nil {
		return err
	}
	if len(state) > MaxState {
		return fmt.Errorf("%w: a state of %d bytes, must have at most %d", ErrInvalid, len(state), MaxState)
	}
	if state == nil {
		state = []byte{} // not null
	}
	if version > 0 {
		return s.one(tx.ExecContext(ctx, s.say.update, state, o.Type, id, version))
	}
	err := s.one(tx.ExecContext(ctx, s.say.insert, o.Type, id, state))
	if err != nil && s.say.dialect == MySQL { // which has no word for "unless it is there" that hides no other fault
		var is int64
		if tx.QueryRowContext(ctx, s.say.any, o.Type, id).Scan(&is) == nil {
			return fmt.Errorf("%w: %w", ErrConflict, err)
		}
	}
	return err
}

// erase takes a version of an entity away, in a transaction that holds the shard.
func (s *Store) erase(ctx context.Context, tx *sql.Tx, o Owner, id string, version int64) error {
	if err := text("an id", id, MaxID); err != nil {
		return err
	}
	if version > 0 {
		return s.one(tx.ExecContext(ctx, s.say.remove, o.Type, id, version))
	}
	var is int64
	err := tx.QueryRowContext(ctx, s.say.any, o.Type, id).Scan(&is)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err == nil:
		err = ErrConflict
	}
	return err
}

// one returns ErrConflict for a statement that has changed no row.
func (s *Store) one(r sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := r.RowsAffected()
	if err == nil && n != 1 {
		err = ErrConflict
	}
	return err
}
