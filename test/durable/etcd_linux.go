// etcd: a server of the run's own.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/kith-io/kith/internal/lab/etcdserver"
)

// etcdBackend is a server.
type etcdBackend struct {
	*place
	server *etcdserver.Server
	log    *os.File
}

// newEtcd starts a server. Its log lies beside those of the nodes.
func newEtcd(h *harness) (backend, error) {
	log, err := os.Create(filepath.Join(h.dir, "etcd.log"))
	if err != nil {
		return nil, err
	}
	b := &etcdBackend{log: log}
	b.server, err = etcdserver.New(log, "--auto-compaction-mode=revision", "--auto-compaction-retention=1000",
		"--snapshot-count=5000", "--max-wals=1", "--max-snapshots=1")
	if err != nil {
		return nil, fmt.Errorf("%w: etcd: %w (Debian: apt-get install etcd-server)", errNoServer,
			errors.Join(err, log.Close()))
	}
	if b.place, err = newPlace(h, b.server.Disk()); err == nil {
		err = b.server.Start()
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *etcdBackend) source() string { return b.server.URL() }

// hit kills the server, has it stand still, or has its disk be full.
func (b *etcdBackend) hit(_ context.Context, kind string) (func() error, error) {
	switch kind {
	case faultServer:
		b.server.Stop(syscall.SIGKILL)
		return b.server.Start, nil
	case faultLock:
		return func() error { return b.server.Signal(syscall.SIGCONT) }, b.server.Signal(syscall.SIGSTOP)
	case faultFull:
		over, err := b.fill()
		if err != nil {
			return nil, err
		}
		return func() error { // it ends where it cannot write its log
			return errors.Join(over(), b.server.Start())
		}, nil
	}
	return nil, fmt.Errorf("etcd has no fault %q", kind)
}

// close ends the server, and removes all that it has.
func (b *etcdBackend) close() (err error) {
	b.server.Stop(syscall.SIGKILL)
	if b.place != nil {
		err = b.unmount()
	}
	return errors.Join(err, b.server.Remove(), b.log.Close())
}
