// Backends: where the store of a run lies, and what can hit it.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// backend is the store of a run.
type backend interface {
	source() string    // what processes open
	disk() string      // plain or tmpfs
	cannotFill() error // why its disk cannot be full, or nil
	// hit causes a kind of fault, and returns what ends it.
	hit(ctx context.Context, kind string) (over func() error, err error)
	close() error
}

// errNoServer is wrapped where the engine's server cannot be started.
var errNoServer = errors.New("no server can be started")

// newBackend makes the store of a run.
func newBackend(h *harness) (backend, error) {
	switch h.cfg.Engine {
	case postgresEngine:
		return newPostgres(h)
	case etcdEngine:
		return newEtcd(h)
	case quorumEngine:
		return newDisks(h)
	}
	dir := filepath.Join(h.dir, "store")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	p, err := newPlace(h, dir)
	if err != nil {
		return nil, err
	}
	return &sqliteBackend{place: p, file: filepath.Join(dir, "bank.db"), kept: dir + "-kept"}, nil
}

// place is a folder for the store: a file system of its own, which is small, where that is permitted and wanted.
type place struct {
	dir     string
	mounted bool
	why     error // why it is none
}

// diskBytes is the size of the small file system.
const diskBytes = 256 << 20

// disk says what it is.
func (p *place) disk() string {
	if p.mounted {
		return "tmpfs"
	}
	return "plain"
}

// cannotFill says why it cannot be full.
func (p *place) cannotFill() error { return p.why }

// fill fills it to the last byte, and returns what makes room again.
func (p *place) fill() (over func() error, err error) {
	name := filepath.Join(p.dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	block := make([]byte, 1<<20)
	for len(block) > 0 {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	return func() error { return errors.Join(f.Close(), os.Remove(name)) }, nil
}

// sqliteBackend is a file.
type sqliteBackend struct {
	*place
	file string
	kept string // folder of what is left of a store on a file system that has gone
}

func (b *sqliteBackend) source() string { return b.file }

// hit holds the write lock, or fills the disk.
func (b *sqliteBackend) hit(ctx context.Context, kind string) (func() error, error) {
	switch kind {
	case faultFull:
		return b.fill()
	case faultLock:
		return b.lock(ctx)
	}
	return nil, fmt.Errorf("SQLite has no fault %q", kind)
}

// lock takes the write lock.
func (b *sqliteBackend) lock(ctx context.Context) (func() error, error) {
	return held(ctx, sqliteEngine, b.file, "begin immediate")
}

// held has statements hold something until it is over.
func held(ctx context.Context, engine, source string, statements ...string) (over func() error, err error) {
	db, err := openTables(engine, source)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	for i := 0; i < len(statements) && err == nil; i++ {
		_, err = conn.ExecContext(ctx, statements[i])
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return func() error {
		_, err := conn.ExecContext(context.Background(), "rollback")
		return errors.Join(err, conn.Close(), db.Close())
	}, nil
}

// close keeps what is stored where it lies on a file system that goes.
func (b *sqliteBackend) close() error {
	if !b.mounted {
		return nil
	}
	err := os.MkdirAll(b.kept, 0o755)
	if err == nil {
		err = copyTo(b.kept, b.dir)
	}
	return errors.Join(err, b.unmount())
}

// copyTo copies the files of a folder.
func copyTo(to, from string) error {
	list, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range list {
		if !e.Type().IsRegular() {
			continue
		}
		if err := copyFile(filepath.Join(to, e.Name()), filepath.Join(from, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
