// Package fileid tells a file from its copies: a name of the file itself, which stays when the file is renamed or its
// file system is mounted elsewhere, and which no copy has.
package fileid

import "os"

// Of returns the name of an open file; empty where the system knows none that is worth anything.
func Of(f *os.File) string { return name(f) }
