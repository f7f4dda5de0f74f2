// The contract: what a store of durable entities takes, gives and refuses.

// Package store is what durable entities need of a store: records of one shard, written together under the fence of the
// shard's owner. Memory is one for tests; the modules store/sqlite, store/postgres and store/etcd are for what must
// survive. The suite store/storetest tells whether an engine of one's own keeps the contract: docs/durable.md.
package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kith-io/kith/route"
)

// The bounds of one call; Check holds writes against them.
const (
	MaxWrites  = 100     // writes of one Commit, and ids of one Load
	MaxBytes   = 1 << 20 // of all writes of one Commit: Record.Size summed
	Overhead   = 64      // bytes that Record.Size counts beside what is in the record
	maxType    = 255     // bytes of Shard.Type
	maxShard   = 1 << 20 // shards of a type
	maxSchema  = 1<<31 - 1
	maxVersion = 1 << 62
)

// What a store says. Test with errors.Is: engines add words.
var (
	// ErrFenced: the shard was claimed under a higher fence. This call wrote nothing and read nothing.
	ErrFenced = errors.New("store: the shard was claimed under a higher fence")
	// ErrVersion: a record is not of the version that a write follows. This call wrote nothing.
	ErrVersion = errors.New("store: a record is of another version")
	// ErrUnknown: whether the commit took place is not known. Call it again, with the same writes, until it is known.
	ErrUnknown = errors.New("store: the outcome of a commit is not known")
	// ErrStoreWentBack: the shard is not claimed under this fence, but under a lower one or none. If a Claim had returned
	// nil, the store has lost it, as one that failed over to a replica that was behind: do not go on.
	ErrStoreWentBack = errors.New("store: the shard's fence is lower than that of its owner: the store went back")
	// ErrTooLarge: a bound of the call, or of the store, is exceeded, or a field has a value that cannot be. Nothing was
	// written, and the same call will not succeed later.
	ErrTooLarge = errors.New("store: out of bounds")
)

// Shard names one shard of a type.
type Shard struct {
	Type string // 1 to 255 bytes of UTF-8, none of them zero
	N    route.ShardID
}

// Record is one entity as it is stored. What a store returns belongs to the caller.
type Record struct {
	// ID is the entity's id: 1 to route.MaxIDSize bytes.
	ID string
	// Version grows with each write, by one, also where a record is deleted and made anew: the first one of a record is
	// above the shard's floor.
	Version uint64
	// Schema says in which form State is, as its writer sees it: 0 to 2,147,483,647.
	Schema uint32
	// State, Outbox and Reminders are the writer's; nil and empty are the same.
	State, Outbox, Reminders []byte
	// Due is when the first of the reminders is due, to the millisecond; zero: none is.
	Due time.Time
	// Nonce is that of the write that made this version: drawn anew for each write, but not for its repeats.
	Nonce [16]byte
}

// Size returns for how many bytes a record counts against MaxBytes.
func (r *Record) Size() int {
	return Overhead + len(r.ID) + len(r.State) + len(r.Outbox) + len(r.Reminders)
}

// Write is one record as it is to be. Its Version is that which it makes: it is written if what is stored has the
// version before; and it is taken as written if what is stored has this version and this Nonce.
type Write struct {
	Record
	// New makes a record: it is written if there is none, and Version is above the floor of the shard as it is before the
	// commit. A write of Version 1 is one, whatever New says.
	New bool
	// Delete takes the record away in the place of writing it; that there is none already is as good. Schema, State,
	// Outbox, Reminders, Due and New are not looked at. It raises the floor of the shard to Version, or to Floor if that
	// is higher: no copy of an earlier commit that comes late finds a record of a version that it could follow.
	Delete bool
	// Floor is looked at if Delete is set alone: 0 to 2^62.
	Floor uint64
	// Marks are written with the record, or with its deletion, which leaves marks where they are: at most MaxMarks, no two
	// of one From. One replaces that of its From which has a lower Number; one that has not is left as it is.
	Marks []Mark
}

// Makes reports whether the write makes a record.
func (w *Write) Makes() bool { return !w.Delete && (w.New || w.Version == 1) }

// Raises returns what a write that deletes raises the floor of the shard to, if that is lower.
func (w *Write) Raises() uint64 { return max(w.Version, w.Floor) }

// Claimed is what a claim tells.
type Claimed struct {
	// Last is the fence under which the shard was claimed before, zero for none: no other owner has written since.
	Last route.Fence
	// Floor is the highest version of the shard's deletions, and of their Write.Floor; 0 if there was none. It never goes
	// down. Records are made above it.
	Floor uint64
}

// Store keeps records. Its methods are safe for concurrent use, of many shards and many processes. An error that is
// none of this package's says that the store does not answer: a Commit that returns one must mean by it what ErrUnknown
// does, the other methods may be called again. Contexts that end are such errors.
type Store interface {
	// Claim makes f the fence of a shard. When it has returned nil no Commit under a lower fence takes place any more,
	// also none that is on its way. A repeat returns the same Last, and the Floor as it is then. A fence lower than the
	// shard's is ErrFenced.
	Claim(ctx context.Context, s Shard, f route.Fence) (Claimed, error)
	// Load returns those of the records that exist, in any order, at most MaxWrites ids at a time: what all commits have
	// left that had returned. ErrFenced, ErrStoreWentBack and ErrTooLarge as for Commit.
	Load(ctx context.Context, s Shard, f route.Fence, ids ...string) ([]Record, error)
	// Commit writes all or none, in one round trip and one flush, as the shard's owner under f. When it has returned nil
	// the writes survive what the engine promises to survive. No id stands in it twice. Errors: ErrFenced, ErrVersion,
	// ErrUnknown, ErrStoreWentBack, ErrTooLarge. The store keeps nothing of w after it has returned.
	Commit(ctx context.Context, s Shard, f route.Fence, w ...Write) error
	// Due yields the records that are due by a time, the earliest first, those of one millisecond by id. Unsent yields the
	// ids of those with an Outbox that is not empty, in their order. Both ask for no fence, read a bounded number at once,
	// and hold nothing of the store while they yield: the reader may call it, and stop. An error is the last that they
	// yield. What is written meanwhile may be left out, or come twice.
	Due(ctx context.Context, s Shard, by time.Time) iter.Seq2[Alarm, error]
	Unsent(ctx context.Context, s Shard) iter.Seq2[string, error]
	// Marks returns those of the marks of an entity that exist, in any order, at most MaxWrites at a time: what all
	// commits have left that had returned. CountMarks returns how many it has with a From that begins with prefix, of at
	// least a byte. Errors as for Load.
	Marks(ctx context.Context, s Shard, f route.Fence, id string, from ...string) ([]Mark, error)
	CountMarks(ctx context.Context, s Shard, f route.Fence, id, prefix string) (int, error)
	// ForgetMarks takes marks of a shard away that are older than by, the oldest first, at most most of them, 1 to 10,000.
	// It returns how many. Errors as for Load.
	ForgetMarks(ctx context.Context, s Shard, f route.Fence, by time.Time, most int) (int, error)
}

// Alarm is a record that is due.
type Alarm struct {
	ID string
	At time.Time // its Due
}

// CheckShard returns an ErrTooLarge that says what is wrong with a shard and a fence, or nil. Engines call it first.
func CheckShard(s Shard, f route.Fence) error {
	switch {
	case s.Type == "" || len(s.Type) > maxType:
		return fmt.Errorf("%w: Type of the shard has %d bytes, must have 1 to %d", ErrTooLarge, len(s.Type), maxType)
	case !utf8.ValidString(s.Type) || strings.IndexByte(s.Type, 0) >= 0:
		return fmt.Errorf("%w: Type of the shard is %.64q, must be UTF-8 without a zero byte", ErrTooLarge, s.Type)
	case s.N >= maxShard:
		return fmt.Errorf("%w: shard %d, must be below %d", ErrTooLarge, s.N, maxShard)
	case f.IsZero():
		return fmt.Errorf("%w: the fence is zero", ErrTooLarge)
	}
	return nil
}

// CheckIDs returns an ErrTooLarge that says what is wrong with the ids of a Load, or nil.
func CheckIDs(ids []string) error {
	if len(ids) > MaxWrites {
		return fmt.Errorf("%w: %d ids, must be at most %d", ErrTooLarge, len(ids), MaxWrites)
	}
	for _, id := range ids {
		if err := route.CheckID(id); err != nil {
			return fmt.Errorf("%w: %w", ErrTooLarge, err)
		}
	}
	return nil
}

// Check returns an ErrTooLarge that says what is wrong with the writes of a Commit, or nil. Engines call it first.
func Check(writes []Write) error {
	if len(writes) == 0 || len(writes) > MaxWrites {
		return fmt.Errorf("%w: %d writes, must be 1 to %d", ErrTooLarge, len(writes), MaxWrites)
	}
	size := 0
	seen := make(map[string]struct{}, len(writes))
	for i := range writes {
		w := &writes[i]
		if err := checkOne(w); err != nil {
			return err
		}
		if err := checkMarks(w); err != nil {
			return err
		}
		if _, twice := seen[w.ID]; twice {
			return fmt.Errorf("%w: two writes of %.64q", ErrTooLarge, w.ID)
		}
		seen[w.ID] = struct{}{}
		size += w.Size()
	}
	if size > MaxBytes {
		return fmt.Errorf("%w: %d bytes, must be at most %d", ErrTooLarge, size, MaxBytes)
	}
	return nil
}

// checkOne checks one write.
func checkOne(w *Write) error {
	if err := route.CheckID(w.ID); err != nil {
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	switch {
	case w.Version == 0 || w.Version > maxVersion:
		return fmt.Errorf("%w: Version %d of %.64q, must be 1 to 2^62", ErrTooLarge, w.Version, w.ID)
	case w.Delete && w.Floor > maxVersion:
		return fmt.Errorf("%w: Floor %d of %.64q, must be at most 2^62", ErrTooLarge, w.Floor, w.ID)
	case w.Schema > maxSchema:
		return fmt.Errorf("%w: Schema %d of %.64q, must be at most %d", ErrTooLarge, w.Schema, w.ID, maxSchema)
	case w.Nonce == [16]byte{}:
		return fmt.Errorf("%w: Nonce of %.64q is zero", ErrTooLarge, w.ID)
	}
	return nil
}
