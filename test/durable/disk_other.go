//go:build !linux

// Elsewhere no small file system is mounted, and no server is started.

package main

import "errors"

// newPlace makes a folder the store's.
func newPlace(_ *harness, dir string) (*place, error) {
	return &place{dir: dir, why: errors.New("a small file system is mounted on Linux alone")}, nil
}

// unmount has nothing to do.
func (*place) unmount() error { return nil }

// newPostgres fails.
func newPostgres(*harness) (backend, error) {
	return nil, errNoServer
}

// newEtcd fails.
func newEtcd(*harness) (backend, error) {
	return nil, errNoServer
}
