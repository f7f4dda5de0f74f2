// Engine: the disk of a replica, and one in memory.

package quorum

import (
	"bytes"
	"maps"
	"slices"

	"github.com/kith-io/kith/quorum/disk"
)

// Engine is the disk of one replica. A machine calls it from one goroutine at a time.
type Engine = disk.Engine

// Change sets a key, or deletes it where Value is nil.
type Change = disk.Change

// ErrFull is what an engine returns when its disk is full.
var ErrFull = disk.ErrFull

// MemoryEngine is an Engine in memory. It outlives its machine, as a disk does a process.
type MemoryEngine struct {
	Room  int64 // bytes that it may keep; 0 for no bound
	kept  map[string][]byte
	size  int64
	order []string // the keys; nil when some have come or gone
}

// Memory returns an empty one.
func Memory() *MemoryEngine { return &MemoryEngine{kept: map[string][]byte{}} }

// Copy returns an engine that holds the same, as a backup does.
func (m *MemoryEngine) Copy() *MemoryEngine {
	return &MemoryEngine{Room: m.Room, kept: maps.Clone(m.kept), size: m.size}
}

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
	old, was := m.kept[key]
	if was {
		m.size -= int64(len(key) + len(old))
		delete(m.kept, key)
	}
	if c.Value != nil {
		m.kept[key] = append([]byte{}, c.Value...)
		m.size += int64(len(key) + len(c.Value))
	}
	if was != (c.Value != nil) {
		m.order = nil
	}
}

// Each implements Engine.
func (m *MemoryEngine) Each(prefix, after []byte, f func(key, value []byte) bool) error {
	if m.order == nil {
		m.order = slices.Sorted(maps.Keys(m.kept))
	}
	list := m.order
	at, _ := slices.BinarySearch(list, string(prefix))
	for _, key := range list[at:] {
		k := []byte(key)
		if !bytes.HasPrefix(k, prefix) || bytes.Compare(k, after) > 0 && !f(k, m.kept[key]) {
			break
		}
	}
	return nil
}

// Bytes implements Engine.
func (m *MemoryEngine) Bytes() int64 { return m.size }

// Close implements Engine. What it holds stays.
func (m *MemoryEngine) Close() error { return nil }
