// Room: the files of one node's disk: it is full while a mark lies beside it, and others may hold its lock.

package main

import (
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fullMark is the end of the name of a file beside a disk: while it is there, the disk is full.
const fullMark = ".full"

// room is the file system of one process.
type room struct {
	vfs.FS
	mark string
}

func roomOf(dir string) *room { return &room{vfs.Default, dir + fullMark} }

// full returns an error while there is no room.
func (r *room) full() error {
	if _, err := os.Stat(r.mark); err == nil {
		return syscall.ENOSPC
	}
	return nil
}

// Unwrap implements vfs.FS.
func (r *room) Unwrap() vfs.FS { return r.FS }

// Create implements vfs.FS.
func (r *room) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := r.full(); err != nil {
		return nil, err
	}
	f, err := r.FS.Create(name, c)
	if err != nil {
		return nil, err
	}
	return &filling{f, r}, nil
}

// ReuseForWrite implements vfs.FS. Nothing is reused.
func (r *room) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return r.Create(name, c)
}

// filling is a file that is written.
type filling struct {
	vfs.File
	room *room
}

// Write implements vfs.File.
func (f *filling) Write(p []byte) (int, error) {
	if err := f.room.full(); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// Preallocate implements vfs.File: room is taken when it is written.
func (f *filling) Preallocate(int64, int64) error { return nil }

// hold holds the lock of a disk that no process has open.
func hold(dir string) (io.Closer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return vfs.Default.Lock(filepath.Join(dir, "LOCK"))
}
