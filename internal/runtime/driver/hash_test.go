// A message finds its shard by the hash that its sender makes once, as everybody else finds it by the id.

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

func TestShardAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, shards := rapid.String().Draw(t, "id"), rapid.Uint32Range(1, 1<<31).Draw(t, "shards")
		require.Equal(t, route.ShardOf(id, shards), shardAt(entity.HashID([]byte(id)), shards))
	})
}
