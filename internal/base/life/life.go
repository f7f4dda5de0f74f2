// Package life is a lock that a node holds as long as any of its handlers may run, and what the next process at its
// address knows by getting it (AVL-5, SHD-9).
//
// A file names the incarnation that holds its lock, or held it last. A node that gets the lock knows from the kernel
// that the incarnation named there is over: it gave the lock up when its last handler had returned, or its process is
// dead. That is true only of this very file on this very kernel, so the file also names the boot, and itself; a copy, a
// volume that was taken to another machine, and a machine that has booted since prove nothing.
package life

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

const (
	fileName = "life" // in a directory of the node's own
	most     = 512    // bytes of the file that are read
)

// Path returns where the lock of a node at addr in the cluster of that name is: in dir, or, when that is empty, in a
// directory of this user among the temporary files, which it makes; empty, where no file is: somebody has put a link
// there, which would have this user write where it leads.
func Path(dir, addr, cluster string) string {
	if dir != "" {
		return filepath.Join(dir, fileName)
	}
	dir = filepath.Join(os.TempDir(), "kith-"+strconv.Itoa(os.Geteuid()))
	_ = os.Mkdir(dir, 0o700) // it is there, or the file cannot be made
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return filepath.Join(dir, strconv.FormatUint(xxhash.Sum64String(addr+" "+cluster), 16))
}

// textOf is what the file at a place says when an incarnation at addr holds its lock.
func textOf(addr string, inc uint64, place string) string {
	s := addr + " " + strconv.FormatUint(inc, 16) + " " + place
	return s + " " + strconv.FormatUint(xxhash.Sum64String(s), 16) + "\n"
}

// incarnation returns the incarnation at addr that the text of the file at a place names; zero: none.
func incarnation(text, addr, place string) (inc uint64) {
	if f := strings.Fields(text); len(f) > 1 {
		if inc, _ = strconv.ParseUint(f[1], 16, 64); text == textOf(addr, inc, place) {
			return inc
		}
	}
	return 0
}
