// Files: one directory for all, which each node finds by a link of its own.

package leasestore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// files is the store. Its lock stands still for all nodes while this process has it.
type files struct {
	dir   string
	nodes int
	lock  *os.File // nil: the nodes have it by turns
}

func newFiles(c Config) (Store, error) {
	f := &files{dir: c.Dir, nodes: c.Nodes}
	err := os.MkdirAll(f.leases(), 0o700)
	if err == nil {
		err = os.WriteFile(f.away(), nil, 0o600)
	}
	if err == nil {
		err = f.Cut(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("leasestore: %w", err)
	}
	return f, nil
}

func (f *files) leases() string       { return filepath.Join(f.dir, "leases") }
func (f *files) away() string         { return filepath.Join(f.dir, "no-directory") }
func (f *files) link(slot int) string { return filepath.Join(f.dir, "leases-"+strconv.Itoa(slot)) }

// Address implements Store.
func (f *files) Address(slot int) string { return "file://" + f.link(slot) }

// Cut implements Store: a link leads to a file, which is no directory, so that each call fails at once.
func (f *files) Cut(slots []int) error {
	for slot := range f.nodes {
		to := f.leases()
		if slices.Contains(slots, slot) {
			to = f.away()
		}
		next := f.link(slot) + ".new"
		_ = os.Remove(next) // of a run that was killed
		if err := os.Symlink(to, next); err != nil {
			return err
		}
		if err := os.Rename(next, f.link(slot)); err != nil {
			return err
		}
	}
	return nil
}

// Stop implements Store: nobody gets the lock.
func (f *files) Stop(on bool) (err error) {
	switch {
	case !on && f.lock != nil:
		err, f.lock = f.lock.Close(), nil
	case on && f.lock == nil:
		f.lock, err = os.OpenFile(filepath.Join(f.leases(), "lock"), os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			err = syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX)
		}
	}
	return err
}

// Restart implements Store.
func (f *files) Restart() error { return ErrNoRestart }

// Close implements Store. The files stay.
func (f *files) Close() error { return f.Stop(false) }
