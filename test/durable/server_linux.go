// PostgreSQL: a server of the run's own.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/kith-io/kith/internal/lab/pgserver"
)

// postgresBackend is a server.
type postgresBackend struct {
	*place
	server *pgserver.Server
	log    *os.File
}

// newPostgres makes a database and starts its server. Its log lies beside those of the nodes.
func newPostgres(h *harness) (backend, error) {
	log, err := os.Create(filepath.Join(h.dir, "postgres.log"))
	if err != nil {
		return nil, err
	}
	b := &postgresBackend{log: log}
	b.server, err = pgserver.New(log, "max_wal_size=64MB", "min_wal_size=32MB")
	if err != nil {
		return nil, fmt.Errorf("%w: PostgreSQL: %w (Debian: apt-get install postgresql)", errNoServer, errors.Join(err, log.Close()))
	}
	if b.place, err = newPlace(h, b.server.Disk()); err == nil {
		err = b.server.Init()
	}
	if err == nil {
		err = b.server.Start()
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *postgresBackend) source() string { return b.server.URL() }

// hit kills the server, holds its tables, or fills its disk.
func (b *postgresBackend) hit(ctx context.Context, kind string) (func() error, error) {
	switch kind {
	case faultServer:
		b.server.Stop(syscall.SIGKILL)
		return b.server.Start, nil
	case faultLock:
		return held(ctx, postgresEngine, b.source(), "begin", "lock table kith_shard, kith_entity in exclusive mode")
	case faultFull:
		over, err := b.fill()
		if err != nil {
			return nil, err
		}
		return func() error { // without room for its log it may have ended
			return errors.Join(over(), b.server.Start())
		}, nil
	}
	return nil, fmt.Errorf("PostgreSQL has no fault %q", kind)
}

// close ends the server, and removes all that it has.
func (b *postgresBackend) close() (err error) {
	b.server.Stop(syscall.SIGINT)
	if b.place != nil {
		err = b.unmount()
	}
	return errors.Join(err, b.server.Remove(), b.log.Close())
}
