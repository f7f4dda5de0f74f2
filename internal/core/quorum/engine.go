// Engine: what a disk has to do, and one in memory.

package quorum

import (
	"bytes"
	"errors"
	"maps"
	"slices"
)

// Engine is the disk of one replica. A machine calls it from one goroutine at a time.
type Engine interface {
	// Get returns the value of a key, nil for none. The bytes are valid until the next call.
	Get(key []byte) ([]byte, error)
	// Commit makes all changes or none. When it returns nil they are on disk, also after a loss of power.
	Commit(batch []Change) error
	// Each calls f with the keys that begin with prefix and are above after, in order, until f returns false.
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

// MemoryEngine is an Engine in memory, for simulations and tests. It outlives its machine, as a disk does a process.
type MemoryEngine struct {
	Room int64 // bytes that it may keep; 0 for no bound
	kept map[string][]byte
	size int64
}

// Memory returns an empty one.
func Memory() *MemoryEngine { return &MemoryEngine{kept: map[string][]byte{}} }

// Copy returns an engine that holds the same, as a backup does.
func (m *MemoryEngine) Copy() *MemoryEngine { return &MemoryEngine{m.Room, maps.Clone(m.kept), m.size} }

// Get implements Engine.
func (m *MemoryEngine) Get(key []byte) ([]byte, error) { return m.kept[string(key)], nil }

// Commit implements Engine.
func (m *MemoryEngine) Commit(batch []Change) error {
	more := int64(0)
	for _, c := range batch {
		more += int64(len(c.Value)) + int64(len(c.Key))
	}
	if m.Room > 0 && m.size+more > m.Room {
		return ErrFull
	}
	for _, c := range batch {
		m.set(c)
	}
	return nil
}

func (m *MemoryEngine) set(c Change) {
	key := string(c.Key)
	if old, ok := m.kept[key]; ok {
		m.size -= int64(len(key) + len(old))
		delete(m.kept, key)
	}
	if c.Value != nil {
		m.kept[key] = bytes.Clone(c.Value)
		m.size += int64(len(key) + len(c.Value))
	}
}

// Each implements Engine.
func (m *MemoryEngine) Each(prefix, after []byte, f func(key, value []byte) bool) error {
	for _, key := range slices.Sorted(maps.Keys(m.kept)) {
		if k := []byte(key); bytes.HasPrefix(k, prefix) && bytes.Compare(k, after) > 0 && !f(k, m.kept[key]) {
			break
		}
	}
	return nil
}

// Bytes implements Engine.
func (m *MemoryEngine) Bytes() int64 { return m.size }

// Close implements Engine.
func (m *MemoryEngine) Close() error { return nil }
