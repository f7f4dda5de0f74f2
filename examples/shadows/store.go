// The store: a file a device, with the highest fence that has claimed it. Claim, then read; write under the fence.

package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"github.com/kith-io/kith"
)

// store is a folder that the processes of one machine share, by locks on its files.
type store string

// Claim raises the fence of a record and returns what it holds, nothing if it is new.
func (s store) Claim(id string, f kith.Fence) (b []byte, err error) {
	err = s.change(id, f, func(old []byte) []byte { b = old; return old })
	return b, err
}

// Save replaces a record.
func (s store) Save(id string, f kith.Fence, b []byte) error {
	return s.change(id, f, func([]byte) []byte { return b })
}

// change rewrites a record, unless it was claimed under a higher fence.
func (s store) change(id string, f kith.Fence, edit func(old []byte) []byte) error {
	path := filepath.Join(string(s), "device-"+url.PathEscape(id))
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // and unlock it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	was, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	var highest kith.Fence
	if n := copy(highest[:], was); f.Compare(highest) < 0 {
		return fmt.Errorf("device %s belongs to %v, not to %v", id, highest, f)
	} else if err := os.WriteFile(path+".new", bytes.Join([][]byte{f[:], edit(was[n:])}, nil), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
