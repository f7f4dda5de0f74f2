// View: the disk of a replica with changes over it that are not on it yet, and the keys of a shard.

package records

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// changes are values by key; nil deletes.
type changes map[string][]byte

// list returns them in order, as an engine takes them.
func (c changes) list() []Change {
	all := make([]Change, 0, len(c))
	for _, key := range slices.Sorted(maps.Keys(c)) {
		all = append(all, Change{Key: []byte(key), Value: c[key]})
	}
	return all
}

// view is a disk with layers over it, the last on top. The first error stays in failed.
type view struct {
	disk   Engine
	layers []changes
	failed error
}

// with returns a view with one more layer.
func (v *view) with(layer changes) *view {
	return &view{v.disk, append(slices.Clip(v.layers), layer), v.failed}
}

// get returns the value of a key, nil for none.
func (v *view) get(key string) []byte {
	for i := len(v.layers) - 1; i >= 0; i-- {
		if value, ok := v.layers[i][key]; ok {
			return value
		}
	}
	value, err := v.disk.Get([]byte(key))
	if err != nil {
		v.failed = err
		return nil
	}
	return bytes.Clone(value)
}

// each calls f with the keys that begin with prefix and are above after, in order, until f returns false.
func (v *view) each(prefix, after string, f func(key string, value []byte) bool) {
	var over []string
	for _, layer := range v.layers {
		for _, key := range slices.Sorted(maps.Keys(layer)) {
			if strings.HasPrefix(key, prefix) && key > after {
				over = append(over, key)
			}
		}
	}
	slices.Sort(over)
	over = slices.Compact(over)
	next, goes := 0, true
	upTo := func(key string, all bool) { // what lies over the disk, below key
		for goes && next < len(over) && (all || over[next] < key) {
			if value := v.get(over[next]); value != nil {
				goes = f(over[next], value)
			}
			next++
		}
	}
	err := v.disk.Each([]byte(prefix), []byte(after), func(k, value []byte) bool {
		key := string(k)
		upTo(key, false)
		if goes && (next == len(over) || over[next] != key) {
			goes = f(key, value)
		}
		return goes
	})
	if err != nil {
		v.failed = err
		return
	}
	upTo("", true)
}

// Keys of a disk.
const (
	keyPrefix = "r" // all of them begin with it
	identKey  = "ri"
	headKey   = "rh" // the head of a shard
	entryKey  = "re" // its last entry, which lies beside the state
	statePart = "rs" // its state, in one of two places
)

// Parts of a state.
const (
	recordPart = "d" // by id
	markPart   = "m" // by id and From
	alarmPart  = "a" // by time and id
	unsentPart = "u" // by id
	oldPart    = "o" // marks by time, id and From
	floorPart  = "f"
)

// key returns the bytes of a shard in keys.
func (s Shard) key() string {
	b := append([]byte{byte(len(s.Type))}, s.Type...)
	return string(binary.BigEndian.AppendUint32(b, s.N))
}

// shardOf is the reverse of key.
func shardOf(key string) (s Shard, ok bool) {
	if len(key) < 5 || len(key) != 5+int(key[0]) {
		return Shard{}, false
	}
	return Shard{key[1 : len(key)-4], binary.BigEndian.Uint32([]byte(key[len(key)-4:]))}, true
}

// stateKey is what all keys of a state begin with. place is 0 or 1.
func (s Shard) stateKey(place uint8) string { return statePart + s.key() + string([]byte{'0' + place}) }

// ordered returns milliseconds as bytes that sort as they do.
func ordered(at int64) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(at)^1<<63))
}

// unordered is the reverse of ordered.
func unordered(s string) int64 { return int64(binary.BigEndian.Uint64([]byte(s)) ^ 1<<63) }

// paired returns an id and what follows it, so that those of one id lie together.
func paired(id, rest string) string {
	return string(binary.BigEndian.AppendUint16(nil, uint16(len(id)))) + id + rest
}

// unpaired is the reverse of paired.
func unpaired(s string) (id, rest string) {
	n := int(binary.BigEndian.Uint16([]byte(s)))
	return s[2 : 2+n], s[2+n:]
}
