// Package pebble is the disk of package quorum on an LSM tree with a write-ahead log, CockroachDB's Pebble: a commit is
// one append and one sync, whatever keys it changes. It is a module of its own, for it brings many others.
package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kith-io/kith/quorum/disk"
)

// Options are the settings of an engine. The zero value of a field stands for its default.
type Options struct {
	Cache    int64  // bytes in memory for blocks that were read; 32 MiB
	MemTable int    // bytes in memory that are not in a sorted file yet; 16 MiB
	FS       vfs.FS // where the files lie; that of the system
}

// engine implements disk.Engine.
type engine struct {
	db *pebble.DB
}

// Open opens the engine in a directory, which it makes if it is not there. A directory is that of one process at a
// time. A torn end of the write-ahead log, as a loss of power leaves it, is cut: nothing of it was acknowledged.
func Open(dir string, o Options) (disk.Engine, error) {
	if o.Cache == 0 {
		o.Cache = 32 << 20
	}
	if o.MemTable == 0 {
		o.MemTable = 16 << 20
	}
	if o.Cache < 0 || o.MemTable < 64<<10 {
		return nil, fmt.Errorf("quorum/pebble: Cache %d must not be negative, MemTable %d not below 64 KiB", o.Cache,
			o.MemTable)
	}
	cache := pebble.NewCache(o.Cache)
	defer cache.Unref()
	// Of this format on, a log tells bits that flipped in what was synced from its torn end; and tables have sums over
	// all of them.
	opts := &pebble.Options{Cache: cache, MemTableSize: uint64(o.MemTable), Logger: silent{}, FS: o.FS,
		FormatMajorVersion: pebble.FormatTableFormatV6}
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return nil, fmt.Errorf("quorum/pebble: opening %s: %w", dir, err)
	}
	return &engine{db: db}, nil
}

// silent takes what Pebble logs. What it cannot go on after comes as a panic of the call: the process ends, and starts
// again with what is on disk.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}

func (silent) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf("quorum/pebble: "+format, args...))
}

// Get implements disk.Engine.
func (e *engine) Get(key []byte) ([]byte, error) {
	v, closer, err := e.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v = append([]byte{}, v...)
	return v, closer.Close()
}

// Commit implements disk.Engine.
func (e *engine) Commit(batch []disk.Change) error {
	b := e.db.NewBatch()
	defer b.Close()
	for _, c := range batch {
		var err error
		if c.Value == nil {
			err = b.Delete(c.Key, nil)
		} else {
			err = b.Set(c.Key, c.Value, nil)
		}
		if err != nil {
			return err
		}
	}
	err := b.Commit(pebble.Sync)
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: %w", disk.ErrFull, err)
	}
	return err
}

// Each implements disk.Engine.
func (e *engine) Each(prefix, after []byte, f func(key, value []byte) bool) (err error) {
	from := prefix
	if bytes.Compare(after, from) > 0 {
		from = after
	}
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: above(prefix)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if len(after) > 0 && bytes.Equal(it.Key(), after) {
			continue
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if v == nil {
			v = []byte{}
		}
		if !f(it.Key(), v) {
			break
		}
	}
	return it.Error()
}

// above is the first key behind all that begin with prefix; nil: there is none.
func above(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// Bytes implements disk.Engine.
func (e *engine) Bytes() int64 { return int64(e.db.Metrics().DiskSpaceUsage()) }

// Close implements disk.Engine.
func (e *engine) Close() error { return e.db.Close() }
