// File: leases of one machine, in files of a directory that its processes share.

package lease

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// File keeps leases in files of a directory. All owners are processes of one machine and one user, and the directory is
// on a file system of that machine: it does for tests, and for several nodes of one machine. The time is that of the
// kernel since its start, which nobody sets; a machine that starts again has no owners left, and so no leases. Linux
// only.
type File struct {
	dir string
	ttl time.Duration
}

// OpenFile returns the leases in a directory, which the first call makes if it is not there, with mode 0700. ttl zero
// means DefaultTTL. Errors match ErrBadConfig.
func OpenFile(dir string, ttl time.Duration) (*File, error) {
	ttl, err := CheckTTL(ttl)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("%w: the directory %q is no absolute path", ErrBadConfig, dir)
	}
	return &File{dir: dir, ttl: ttl}, nil
}

// openFile is OpenFile by an address: file:///directory.
func openFile(_ context.Context, a Address, ttl time.Duration) (Service, error) {
	if err := a.Rest(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadConfig, err)
	}
	if a.Host != "" {
		return nil, fmt.Errorf("%w: the directory of a file lease stands behind three slashes, as file:///run/leases",
			ErrBadConfig)
	}
	f, err := OpenFile(a.Path, ttl)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// TTL implements Service.
func (f *File) TTL() time.Duration { return f.ttl }

// Close implements Service.
func (f *File) Close() error { return nil }

// record is the content of the file of a lease.
type record struct {
	Name, Owner []byte
	Boot        string        // of the machine: another one's owners are dead
	Until       time.Duration // of the time since its start
}

// maxRecord bounds a file that is read: names and owners in base64, and the rest.
const maxRecord = 4 * MaxName

// path is where a lease lies.
func (f *File) path(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(f.dir, hex.EncodeToString(sum[:16])+".lease")
}

// read returns what lies there of a lease; nil: nothing, or of a machine that has started again.
func (f *File) read(name, boot string) (*record, error) {
	text, err := readSmall(f.path(name), maxRecord)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil || string(r.Name) != name || r.Boot == "" || len(r.Owner) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrForeign, f.path(name))
	}
	if r.Boot != boot {
		return nil, nil
	}
	return &r, nil
}

// write puts a record in its place at once: a process that is killed meanwhile leaves the one before. A machine that
// goes down takes all owners along, so nothing is synced.
func (f *File) write(r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	path := f.path(string(r.Name))
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Acquire implements Service.
func (f *File) Acquire(ctx context.Context, name, owner string) (ok bool, err error) {
	err = f.locked(ctx, name, owner, func(boot string, now time.Duration) error {
		r, err := f.read(name, boot)
		if err != nil || r != nil && string(r.Owner) != owner && now < r.Until {
			return err
		}
		ok = true
		return f.write(record{[]byte(name), []byte(owner), boot, now + f.ttl})
	})
	return ok && err == nil, err
}

// Release implements Service.
func (f *File) Release(ctx context.Context, name, owner string) error {
	return f.locked(ctx, name, owner, func(boot string, _ time.Duration) error {
		if r, err := f.read(name, boot); err != nil || r == nil || string(r.Owner) != owner {
			return err
		}
		return os.Remove(f.path(name))
	})
}

// look is how often a lock that somebody else holds is tried again. Its holder reads and writes one small file.
const look = 5 * time.Millisecond

// locked runs what under the lock of the directory, with the name of the machine's start and the time since.
func (f *File) locked(ctx context.Context, name, owner string, what func(boot string, now time.Duration) error) error {
	if err := CheckName(name, owner); err != nil {
		return err
	}
	ctx, cancel := Bound(ctx)
	defer cancel()
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("lease: the lock of %s: %w", f.dir, err)
		}
		free, err := lockDir(f.dir)
		if errors.Is(err, os.ErrNotExist) {
			if err = os.MkdirAll(f.dir, 0o700); err == nil {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("lease: %w", err)
		}
		if free != nil {
			defer free()
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(look):
		}
	}
	boot, now, err := sinceBoot()
	if err == nil {
		err = what(boot, now)
	}
	if err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	return nil
}
