//go:build !linux

// Elsewhere no small file system is mounted.

package main

import (
	"errors"
	"os"
	"path/filepath"
)

// newDisk makes the folder of the store.
func newDisk(h *harness) (*place, error) {
	p := &place{dir: filepath.Join(h.dir, "store"), why: errors.New("only Linux mounts a small file system here")}
	return p, os.MkdirAll(p.dir, 0o755)
}

// close has nothing to do.
func (p *place) close() error { return nil }
