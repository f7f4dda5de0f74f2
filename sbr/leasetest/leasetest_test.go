// Tests of the suite itself: a lease in memory and one in files pass it (MEM-10).

package leasetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

func TestMemory(t *testing.T) {
	store := &Memory{}
	Run(t, func(*testing.T) Lease { return store })
	RunNames(t, func(*testing.T) Lease { return store })
}

// files is a lease in a directory that all owners share: a hard link to a name exists once.
type files struct{ dir string }

func (f files) path(name string) string { return filepath.Join(f.dir, url.QueryEscape(name)) }

func (f files) Acquire(ctx context.Context, name, owner string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	mine, err := os.CreateTemp(f.dir, "claim-*")
	if err != nil {
		return false, err
	}
	defer os.Remove(mine.Name())
	if _, err := mine.WriteString(owner); err != nil {
		return false, errors.Join(err, mine.Close())
	}
	if err := mine.Close(); err != nil {
		return false, err
	}
	if err := os.Link(mine.Name(), f.path(name)); err == nil {
		return true, nil
	} else if !errors.Is(err, os.ErrExist) {
		return false, err
	}
	now, err := os.ReadFile(f.path(name))
	if err != nil {
		return false, fmt.Errorf("taken and given back meanwhile: %w", err)
	}
	return string(now) == owner, nil
}

func (f files) Release(ctx context.Context, name, owner string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now, err := os.ReadFile(f.path(name))
	if errors.Is(err, os.ErrNotExist) || err == nil && string(now) != owner {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(f.path(name))
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	Run(t, func(*testing.T) Lease { return files{dir} })
}
