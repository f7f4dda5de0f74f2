// Package files reads and writes the files that somebody gave a node: regular ones only, of bounded size. A pipe, a
// device or a directory in their place is an error, not a start that hangs or a memory that fills.
package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Errors of what is there in place of a file; match with errors.Is.
var (
	// ErrNotRegular: it is a directory, a pipe, a device or a socket.
	ErrNotRegular = errors.New("no regular file")
	// ErrTooLarge: it has more bytes than are read of it.
	ErrTooLarge = errors.New("too large")
	// ErrLink: it is a symbolic link, where this process writes.
	ErrLink = errors.New("a symbolic link, where none is followed")
)

// Read returns the content of a regular file of at most so many bytes. Links are followed: secrets of Kubernetes are
// links.
func Read(name string, most int64) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return rest(f, most)
}

// ReadOwn is Read of a file that this process also writes: a link in its place is not followed.
func ReadOwn(name string, most int64) ([]byte, error) {
	if err := noLink(name); err != nil {
		return nil, err
	}
	f, err := open(name, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return rest(f, most)
}

// Open opens a regular file for reading, and waits for nobody.
func Open(name string) (*os.File, error) { return open(name, os.O_RDONLY, 0) }

// Lock opens a file of this process that is not read, and makes it when it is not there; no link is followed.
func Lock(name string, mode os.FileMode) (*os.File, error) {
	if err := noLink(name); err != nil {
		return nil, err
	}
	return open(name, os.O_RDWR|os.O_CREATE|noFollow, mode)
}

// Replace puts a file in the place of another one as a whole: a process that dies, or a machine that stops, leaves the
// old one or the new one. It is written beside it under its name with .new behind. Neither that nor the name itself may
// be a link.
func Replace(name string, content []byte, mode os.FileMode) error {
	if err := noLink(name); err != nil {
		return err
	}
	next := name + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) { // of a process that died
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	if err := os.Rename(next, name); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return SyncDirectory(filepath.Dir(name))
}

// Loose returns the mode of what is at name, and whether others than its owner may read it, or, of a directory, may put
// something in it.
func Loose(name string) (mode os.FileMode, loose bool) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, false
	}
	mode = info.Mode()
	if mode.IsDir() {
		return mode, mode.Perm()&0o022 != 0 && mode&os.ModeSticky == 0
	}
	return mode, mode.Perm()&0o077 != 0
}

// rest reads a file to its end.
func rest(f *os.File, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: %w: more than %d bytes", f.Name(), ErrTooLarge, most)
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}

// open opens a regular file. It is looked at before, since to open a device may do something, and again after, since it
// may be another one by then; a pipe that came between is opened without waiting.
func open(name string, flags int, mode os.FileMode) (*os.File, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, notRegular(name, info)
	}
	f, err := os.OpenFile(name, flags|nonBlock, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(name, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func notRegular(name string, info os.FileInfo) error {
	what := "a device or socket"
	switch {
	case info.IsDir():
		what = "a directory"
	case info.Mode()&os.ModeNamedPipe != 0:
		what = "a pipe"
	}
	return fmt.Errorf("%s is %s: %w", name, what, ErrNotRegular)
}

// noLink refuses a link, also one that leads nowhere.
func noLink(name string) error {
	if info, err := os.Lstat(name); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return fmt.Errorf("%s is %w", name, ErrLink)
	}
	return nil
}
