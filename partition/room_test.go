// Tests of the hidden types of paths, for hand-offs that buffer.

package partition

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/route"
)

// TestNamesOfLongPaths: the types of two paths never have one name, also where a path is too long to be in it (PRT-1).
func TestNamesOfLongPaths(t *testing.T) {
	long := strings.Repeat("a", cluster.MaxPartitionPath-1)
	names := map[string]string{}
	for _, path := range []string{"a", "a/b", long, long + "b", long + "c", "b" + long,
		long[:route.MaxTypeName-len(roomType)], long[:route.MaxTypeName-len(roomType)+1]} {
		name := nameOf(path)
		require.LessOrEqual(t, len(name), route.MaxTypeName)
		require.Equal(t, name, nameOf(path))
		require.Empty(t, names[name], "%q has the name of another path", path)
		names[name] = path
	}
}
