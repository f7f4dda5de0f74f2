// Disk: files whose unsynced end a loss of power takes, and that are full when somebody says so.

package main

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fullMark is the name of a file beside the disk: while it is there, the disk is full.
const fullMark = ".full"

// disk is the file system of one process.
type disk struct {
	vfs.FS
	mark string

	mu    sync.Mutex
	lost  bool // power is lost: nothing is written any more
	files map[*file]struct{}
}

func newDisk(dir string) *disk {
	return &disk{FS: vfs.Default, mark: dir + fullMark, files: map[*file]struct{}{}}
}

// full reports whether there is room.
func (d *disk) full() error {
	if _, err := os.Stat(d.mark); err == nil {
		return syscall.ENOSPC
	}
	return nil
}

// file is one that is written.
type file struct {
	vfs.File
	disk    *disk
	name    string
	written atomic.Int64 // behind what was synced, bytes may be lost
	synced  atomic.Int64
	ended   bool
}

func (d *disk) opened(f vfs.File, name string, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	x := &file{File: f, disk: d, name: name}
	d.files[x] = struct{}{}
	return x, nil
}

// Create implements vfs.FS.
func (d *disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.full(); err != nil {
		return nil, err
	}
	f, err := d.FS.Create(name, c)
	return d.opened(f, name, err)
}

// ReuseForWrite implements vfs.FS. Nothing is reused: what a loss of power leaves of such a file is not known here.
func (d *disk) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.FS.Remove(old); err != nil {
		return nil, err
	}
	return d.Create(name, c)
}

// Rename implements vfs.FS.
func (d *disk) Rename(old, name string) error {
	d.mu.Lock()
	for f := range d.files {
		if f.name == old {
			f.name = name
		}
	}
	d.mu.Unlock()
	return d.FS.Rename(old, name)
}

// Unwrap implements vfs.FS.
func (d *disk) Unwrap() vfs.FS { return d.FS }

// Write implements vfs.File.
func (f *file) Write(p []byte) (int, error) {
	if err := f.disk.full(); err != nil {
		return 0, err
	}
	f.disk.mu.Lock()
	lost := f.disk.lost
	f.disk.mu.Unlock()
	if lost {
		select {} // the process is about to end
	}
	n, err := f.File.Write(p)
	f.written.Add(int64(n))
	return n, err
}

// syncs notes what was written before a sync that has gone well.
func (f *file) syncs(sync func() error) error {
	n := f.written.Load()
	if err := f.disk.full(); err != nil && n > f.synced.Load() {
		return err
	}
	if err := sync(); err != nil {
		return err
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.lost {
		select {}
	}
	f.synced.Store(max(n, f.synced.Load()))
	return nil
}

// Sync implements vfs.File.
func (f *file) Sync() error { return f.syncs(f.File.Sync) }

// SyncData implements vfs.File.
func (f *file) SyncData() error { return f.syncs(f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *file) SyncTo(int64) (bool, error) { return true, f.Sync() }

// Preallocate implements vfs.File: room that is not written would look as if it was.
func (f *file) Preallocate(int64, int64) error { return nil }

// Close implements vfs.File. What was not synced may be lost later too.
func (f *file) Close() error {
	f.disk.mu.Lock()
	f.ended = true
	if f.written.Load() == f.synced.Load() {
		delete(f.disk.files, f)
	}
	f.disk.mu.Unlock()
	return f.File.Close()
}

// lose has the power fail: each file keeps what was synced, and any part of what was written behind.
func (d *disk) lose(rng *rand.Rand) {
	d.mu.Lock()
	d.lost = true // it stays: a sync that is under way returns no more
	for f := range d.files {
		written, synced := f.written.Load(), f.synced.Load()
		if written > synced {
			_ = os.Truncate(f.name, synced+rng.Int64N(written-synced+1))
		}
	}
	d.mu.Unlock()
}

// damage changes one file of a disk that no process has open: it flips a bit, or cuts a file in two. It returns what it
// did; nothing where there is no such file. The end of a log is left alone: nobody can tell that from a loss of power.
func damage(dir string, cut bool, rng *rand.Rand) string {
	var tables []string
	for _, store := range []string{"registers", "siblings"} {
		list, _ := filepath.Glob(filepath.Join(dir, store, "*.sst"))
		tables = append(tables, list...)
	}
	if len(tables) == 0 {
		return ""
	}
	name := tables[rng.IntN(len(tables))]
	info, err := os.Stat(name)
	if err != nil || info.Size() < 2 {
		return ""
	}
	if cut {
		if os.Truncate(name, 1+rng.Int64N(info.Size()-1)) != nil {
			return ""
		}
		return "cut " + name
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	at, b := rng.Int64N(info.Size()), []byte{0}
	if _, err := f.ReadAt(b, at); err != nil && err != io.EOF {
		return ""
	}
	b[0] ^= 1 << rng.IntN(8)
	if _, err := f.WriteAt(b, at); err != nil {
		return ""
	}
	return "flipped a bit of " + name
}
