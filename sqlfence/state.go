// State: what an entity holds in memory of what is stored of it.

package sqlfence

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/kith-io/kith"
)

// State is the state of one entity, an S that is stored. It belongs to its handler, which embeds it or holds it, and is
// used in the handler's calls alone. A handler changes Value, calls Save, and answers after that.
type State[S any] struct {
	// Value is what the handler reads and changes; the zero S of an entity that is not stored.
	Value S

	store   *Store
	codec   kith.Codec[S]
	version int64
	spoiled bool // a save has failed
}

// Load reads the state of the entity that c is about: EntityType.Open calls it, of a Blocking type. It claims the
// entity's shard before it reads, as Store.Load says, within the time that the asker waits. An error ends the message
// that wanted the entity, and the next one tries again.
func Load[S any](c *kith.Context, s *Store, codec kith.Codec[S]) (*State[S], error) {
	ctx, end := steady(c)
	defer end()
	r, err := s.Load(ctx, Of(c), c.ID)
	if err != nil {
		return nil, err
	}
	st := &State[S]{store: s, codec: codec, version: r.Version}
	if r.Version > 0 {
		if err := codec.ParseInto(r.State, &st.Value); err != nil {
			return nil, fmt.Errorf("sqlfence: the state of %.64q, version %d: %w: %w", c.ID, r.Version, kith.ErrBadPayload, err)
		}
	}
	return st, nil
}

// Version returns how often the entity was saved since it was made, 0 if it is not stored.
func (st *State[S]) Version() int64 { return st.version }

// Save stores Value, within the time that the asker waits; the move of the shard does not end what it has begun. also,
// if any, writes to tables of your own in the same transaction, by tx.Exec: all is committed, or nothing.
// nil says that it is stored. After any error what the handler holds is not what is stored: the entity is passivated,
// the next message loads it anew, and until then Save returns ErrSpoiled. So return the error, and answer no success.
// Errors are those of Store.Save, of the codec (kith.ErrBadPayload) and of also.
func (st *State[S]) Save(c *kith.Context, also ...func(tx *sql.Tx) error) error {
	return st.try(c, func(ctx context.Context) error {
		b, err := st.codec.Append([]byte{}, &st.Value)
		if err != nil {
			return fmt.Errorf("sqlfence: the state of %.64q: %w: %w", c.ID, kith.ErrBadPayload, err)
		}
		st.version, err = st.store.Save(ctx, Of(c), c.ID, st.version, b, also...)
		return err
	})
}

// Delete takes the entity's row away and makes Value the zero S. also and errors as for Save.
func (st *State[S]) Delete(c *kith.Context, also ...func(tx *sql.Tx) error) error {
	return st.try(c, func(ctx context.Context) error {
		err := st.store.Delete(ctx, Of(c), c.ID, st.version, also...)
		if err == nil {
			var none S
			st.Value, st.version = none, 0
		}
		return err
	})
}

// try runs f, unless one has failed before. It counts as failed until f has returned, so also when it panics.
func (st *State[S]) try(c *kith.Context, f func(ctx context.Context) error) error {
	if st.spoiled {
		c.Passivate()
		return ErrSpoiled
	}
	st.spoiled = true
	ctx, end := steady(c)
	defer end()
	if err := f(ctx); err != nil {
		c.Passivate()
		return err
	}
	st.spoiled = false
	return nil
}
