// Whose a file is, where the system is a Unix.

//go:build unix

package trust

import (
	"os"
	"syscall"
)

// ofAnother reports whether a file belongs to another user than this process runs as.
func ofAnother(info os.FileInfo) bool {
	owner, known := info.Sys().(*syscall.Stat_t)
	return known && int(owner.Uid) != os.Geteuid()
}
