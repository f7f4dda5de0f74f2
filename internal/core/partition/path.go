// Path: the name of a partition, "a/b/c", which is below "a/b" and "a" (PRT-1).

package partition

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/wire"
)

// CheckPath refuses with cluster.ErrBadPath and the reason what is no path: one to MaxPartitionSegments segments with a
// slash between them, none empty, of printable characters, at most MaxPartitionPath bytes in all.
func CheckPath(path string) error {
	switch {
	case path == "":
		return fmt.Errorf("%w: it is empty", cluster.ErrBadPath)
	case len(path) > cluster.MaxPartitionPath:
		return fmt.Errorf("%w: %d bytes, at most %d", cluster.ErrBadPath, len(path), cluster.MaxPartitionPath)
	case strings.Count(path, "/") >= cluster.MaxPartitionSegments:
		return fmt.Errorf("%w: %q has more than %d segments", cluster.ErrBadPath, path, cluster.MaxPartitionSegments)
	case path[0] == '/' || path[len(path)-1] == '/' || strings.Contains(path, "//"):
		return fmt.Errorf("%w: %q has an empty segment", cluster.ErrBadPath, path)
	}
	for i := 0; i < len(path); {
		r, n := utf8.DecodeRuneInString(path[i:])
		if !wire.IsPrintable(r, n) {
			return fmt.Errorf("%w: %q has a character that cannot be printed at byte %d", cluster.ErrBadPath, path, i)
		}
		i += n
	}
	return nil
}

// Above returns the path of the partition point above, empty for one at the top.
func Above(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }
