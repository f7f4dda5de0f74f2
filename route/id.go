// Entity, shard and type ids: how a name becomes a number, fixed by the protocol.

package route

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/wire"
)

// MaxShards is the largest number of shards of one type.
const MaxShards = 1 << 20

// MaxTypeName is the longest name of a type, in bytes.
const MaxTypeName = 255

// TypeID is the 32-bit hash of a type's name, as envelopes carry it. Two names with one hash cannot both be registered.
type TypeID uint32

// TypeOf returns the id of a type name: the low 32 bits of its xxhash64 with seed zero.
func TypeOf(name string) TypeID { return TypeID(xxhash.Sum64String(name)) }

// ShardID numbers a shard of a type, from 0 to its number of shards less one.
type ShardID uint32

// NoShard stands for the shard of what is counted without one: it comes from several shards, or nobody knows which.
const NoShard ShardID = 1<<32 - 1

// ShardOf returns the shard of an entity id among n shards (1 to MaxShards): the high half of xxhash64(id) with seed
// zero, times n, shifted down, so that no division is needed and every shard gets the same part of the hash's range.
func ShardOf(id string, n uint32) ShardID { return shardOfHash(xxhash.Sum64String(id), n) }

// ShardOfBytes is ShardOf for an id held as bytes.
func ShardOfBytes(id []byte, n uint32) ShardID { return shardOfHash(xxhash.Sum64(id), n) }

func shardOfHash(h uint64, n uint32) ShardID {
	// The high 32 bits of the hash times n, as Lemire's fast range does: exact for n below 2^32.
	return ShardID((h >> 32) * uint64(n) >> 32)
}

// MaxIDSize is the longest entity id, in bytes.
const MaxIDSize = wire.MaxIDSize

// CheckID returns ErrBadID when an entity id is empty or longer than MaxIDSize.
func CheckID(id string) error {
	if uint(len(id)-1) >= MaxIDSize {
		return badID(len(id))
	}
	return nil
}

func badID(n int) error {
	return fmt.Errorf("%w: %d bytes, must be 1 to %d", ErrBadID, n, MaxIDSize)
}
