// How files are opened elsewhere: there are no pipes in the way, and directories are not synced.

//go:build !unix

package files

const (
	nonBlock = 0
	noFollow = 0
)

// SyncDirectory does nothing here.
func SyncDirectory(string) error { return nil }

// Usable finds no reason here.
func Usable(string) error { return nil }
