// Where the system has no flock, or no name for each boot, nothing proves a process dead.

//go:build !linux

package life

import "errors"

// Lock is none here.
type Lock struct{}

// Take always fails here.
func Take(string, string, uint64) (*Lock, uint64, error) {
	return nil, 0, errors.New("this system has no such lock")
}

// Release does nothing here.
func (*Lock) Release(bool) {}
