// The small file system, where it may be mounted.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// newDisk makes the folder of the store.
func newDisk(h *harness) (*place, error) {
	p := &place{dir: filepath.Join(h.dir, "store")}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, err
	}
	if kinds, err := kindsOf(h.cfg.Engine, h.cfg.Only); err != nil || !slices.Contains(kinds, faultFull) {
		return p, err
	}
	if err := syscall.Mount("kith-durable", p.dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", diskBytes)); err != nil {
		p.why = fmt.Errorf("no small file system can be mounted: %w", err)
		return p, nil
	}
	p.mounted = true
	return p, nil
}

// close keeps what is there beside the mount, which goes.
func (p *place) close() error {
	if !p.mounted {
		return nil
	}
	kept := p.dir + "-kept"
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return err
	}
	err := copyTo(kept, p.dir)
	if x := syscall.Unmount(p.dir, syscall.MNT_DETACH); err == nil {
		err = x
	}
	return err
}
