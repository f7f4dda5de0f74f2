// Package memlimit reads how much memory the control groups of Linux leave to this process: a container's limit, or
// MemoryMax of systemd. The Go runtime does not look, so it lets its heap double until the kernel kills the process.
package memlimit

import (
	"bytes"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Unlimited is from what on a limit of version 1 is none: the kernel rounds the largest number down to a page.
const Unlimited = 1 << 60

// Of returns the least limit in bytes of the control groups of this process and those above it, by the files below root
// (os.DirFS("/") on a machine). ok is false where there is none, or none that can be read.
func Of(root fs.FS) (limit int64, ok bool) {
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(own) {
		_, rest, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
		controllers, group, known := strings.Cut(rest, ":")
		mount, file := "sys/fs/cgroup", "memory.max"
		switch {
		case !known:
			continue
		case strings.Contains(","+controllers+",", ",memory,"):
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case controllers != "":
			continue
		}
		for dir := path.Clean("/" + group); ; dir = path.Dir(dir) { // in a container the last one may be all there is
			if n, set := read(root, path.Join(mount, dir, file)); set && (!ok || n < limit) {
				limit, ok = n, true
			}
			if dir == "/" {
				break
			}
		}
	}
	return limit, ok
}

// read reads one limit; ok is false for none.
func read(root fs.FS, file string) (limit int64, ok bool) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, false
	}
	limit, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is none
	return limit, err == nil && limit > 0 && limit < Unlimited
}
