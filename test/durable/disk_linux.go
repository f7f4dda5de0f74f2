// The small file system, where it may be mounted.

package main

import (
	"fmt"
	"slices"
	"syscall"
)

// newPlace makes a folder that exists the store's. What is in it before is hidden.
func newPlace(h *harness, dir string) (*place, error) {
	p := &place{dir: dir}
	if kinds, err := kindsOf(h.cfg.Engine, h.cfg.Only); err != nil || !slices.Contains(kinds, faultFull) {
		return p, err
	}
	if err := syscall.Mount("kith-durable", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", diskBytes)); err != nil {
		p.why = fmt.Errorf("no small file system can be mounted: %w", err)
		return p, nil
	}
	p.mounted = true
	return p, nil
}

// unmount unmounts the small file system.
func (p *place) unmount() error {
	if !p.mounted {
		return nil
	}
	p.mounted = false
	return syscall.Unmount(p.dir, syscall.MNT_DETACH)
}
