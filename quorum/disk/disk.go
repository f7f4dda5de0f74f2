// Package disk is what package quorum needs of a disk. It imports nothing, so that an engine is a module of its own.
package disk

import "errors"

// Engine is the disk of one replica: keys and values in the order of their bytes. It is called from one goroutine at a
// time, but for Close, which nothing follows.
type Engine interface {
	// Get returns the value of a key, nil for none. The bytes are valid until the next call.
	Get(key []byte) ([]byte, error)
	// Commit makes all changes or none. When it returns nil they are on disk, also after a loss of power. ErrFull, wrapped
	// or not, says that there is no room.
	Commit(batch []Change) error
	// Each calls f with the keys that begin with prefix and are above after, in order, until f returns false. f calls no
	// method; the bytes are valid until it returns.
	Each(prefix, after []byte, f func(key, value []byte) bool) error
	// Bytes returns about how much is kept.
	Bytes() int64
	// Close gives the disk back. Nothing may be called after it.
	Close() error
}

// Change sets a key, or deletes it where Value is nil.
type Change struct{ Key, Value []byte }

// ErrFull is what an engine returns when its disk is full.
var ErrFull = errors.New("quorum: the disk is full")
