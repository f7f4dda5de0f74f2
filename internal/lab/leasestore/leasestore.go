// The store, as faults see it.

// Package leasestore keeps the session leases of real nodes in a store that a run can break: it is cut off from some
// nodes or from all, stands still, or is killed and started again. There are files of this machine, and a real etcd
// behind a proxy for each node.
package leasestore

import (
	"errors"
	"fmt"
	"net"
)

// Kind is where the leases are.
type Kind string

// The kinds.
const (
	Files Kind = "file" // a directory; a cut is a directory that is none
	Etcd  Kind = "etcd" // a server of this run's own; a cut is a proxy that passes nothing on
)

// Kinds are all kinds.
var Kinds = []Kind{Files, Etcd}

// Store is a store of leases. Methods are called one at a time.
type Store interface {
	// Address is where the node of a slot finds the leases, for lease.Open.
	Address(slot int) string
	// Cut keeps the nodes of exactly these slots from the store, from now on.
	Cut(slots []int) error
	// Stop has it answer nothing, or go on.
	Stop(on bool) error
	// Restart kills it and starts it again with its data. Errors match ErrNoRestart where nothing runs.
	Restart() error
	// Close ends it.
	Close() error
}

// ErrNoRestart is returned for a store that is no process.
var ErrNoRestart = errors.New("leasestore: no process that could be started again")

// Config says where a store is.
type Config struct {
	Kind  Kind
	Dir   string // of its files, absolute
	Nodes int
	// Listen makes a listener that the node of a slot reaches, and nobody else needs to; nil: on loopback.
	Listen func(slot int) (net.Listener, error)
}

// Open makes a store. Close it.
func Open(c Config) (Store, error) {
	if c.Listen == nil {
		c.Listen = func(int) (net.Listener, error) { return net.Listen("tcp4", "127.0.0.1:0") }
	}
	switch c.Kind {
	case Files:
		return newFiles(c)
	case Etcd:
		return newEtcd(c)
	}
	return nil, fmt.Errorf("leasestore: no kind %q, there are %v", c.Kind, Kinds)
}

// Restarts reports whether a store of this kind can be started again.
func (k Kind) Restarts() bool { return k == Etcd }
