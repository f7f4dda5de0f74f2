// Meta: a small bounded map of the application's own that travels with the state (MEM-12).

package membership

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Bounds of the metadata. Every node holds and gossips all of it, so it is for settings, not for data.
const (
	MaxMetadata      = 64   // keys, deleted ones included: they keep their place and can be set again
	MaxMetadataKey   = 64   // bytes of a key
	MaxMetadataValue = 1024 // bytes of a value
)

// Errors of a SetMetadataCommand.
var (
	// ErrBadMetadata is returned for a key or value out of bounds.
	ErrBadMetadata = errors.New("membership: bad metadata")
	// ErrMetadataFull is returned for a new key when MaxMetadata keys are known.
	ErrMetadataFull = errors.New("membership: metadata is full")
)

// SetMetadataCommand sets one key of the metadata that the cluster's state carries; an empty value deletes it. The last
// writer wins: of two at once, one, everywhere the same. Errors: ErrNotMember, ErrBadMetadata, ErrMetadataFull.
type SetMetadataCommand struct {
	Key   string
	Value []byte
}

func (SetMetadataCommand) command() {}

// Metadata is one key and its value as a View holds them. The value must not be changed.
type Metadata struct {
	Key   string
	Value []byte
}

// metaEntry is one key. A later write has a higher count; the writer decides between two of one count. An empty value
// means deleted; the entry stays, so that an older value cannot come back.
type metaEntry struct {
	key    string
	value  string
	count  uint64
	writer peer.ID
}

// metadata is sorted by key and immutable.
type metadata []metaEntry

func (d metadata) find(key string) (int, bool) {
	return slices.BinarySearchFunc(d, key, func(e metaEntry, key string) int { return strings.Compare(e.key, key) })
}

// with returns the map after writer set key. The same value again changes nothing.
func (d metadata) with(key, value string, writer peer.ID) (metadata, error) {
	i, ok := d.find(key)
	switch {
	case ok && d[i].value == value, !ok && value == "":
		return d, nil
	case ok:
		out := slices.Clone(d)
		out[i] = metaEntry{key, value, d[i].count + 1, writer}
		return out, nil
	case len(d) >= MaxMetadata:
		return d, fmt.Errorf("%w: %d keys", ErrMetadataFull, len(d))
	}
	return slices.Insert(slices.Clone(d), i, metaEntry{key, value, 1, writer}), nil
}

// merge joins two maps key by key. When more than MaxMetadata keys meet, because two sides filled it without each
// other, the first in order stay: every node drops the same ones.
func (d metadata) merge(o metadata) metadata {
	if len(o) == 0 || slices.Equal(d, o) {
		return d
	}
	out := make(metadata, 0, max(len(d), len(o)))
	for (len(d) > 0 || len(o) > 0) && len(out) < MaxMetadata {
		order := -1
		if len(d) == 0 {
			order = 1
		} else if len(o) > 0 {
			order = strings.Compare(d[0].key, o[0].key)
		}
		switch {
		case order < 0:
			out, d = append(out, d[0]), d[1:]
		case order > 0:
			out, o = append(out, o[0]), o[1:]
		default:
			e := d[0]
			if e.compare(o[0]) < 0 {
				e = o[0]
			}
			out, d, o = append(out, e), d[1:], o[1:]
		}
	}
	return out
}

// compare orders two writes of one key. Values differ under one count and writer only if that writer is faulty; then
// all still agree.
func (e metaEntry) compare(o metaEntry) int {
	return cmp.Or(cmp.Compare(e.count, o.count), e.writer.Compare(o.writer), strings.Compare(e.value, o.value))
}

// live returns what a View shows.
func (d metadata) live() []Metadata {
	var out []Metadata
	for _, e := range d {
		if e.value != "" {
			out = append(out, Metadata{e.key, []byte(e.value)})
		}
	}
	return out
}

func appendMeta(b []byte, d metadata) []byte {
	b = wire.AppendUvarint(b, uint64(len(d)))
	for _, e := range d {
		b = wire.AppendString(wire.AppendString(b, e.key), e.value)
		b = peer.AppendID(wire.AppendUvarint(b, e.count), e.writer)
	}
	return b
}

func readMeta(r *wire.Reader) metadata {
	n := r.Count(4+peer.MinIDSize, MaxMetadata)
	if n == 0 {
		return nil
	}
	out := make(metadata, 0, n)
	for range n {
		e := metaEntry{r.String(MaxMetadataKey), r.String(MaxMetadataValue), readChanges(r), peer.ReadID(r)}
		check(r, e.key != "" && !e.writer.Addr.IsZero(), len(out) == 0 || out[len(out)-1].key < e.key)
		if r.Err() != nil {
			return nil
		}
		out = append(out, e)
	}
	return out
}

// setMetadata writes one key into the state.
func (m *Machine) setMetadata(c SetMetadataCommand) error {
	switch {
	case m.phase != member:
		return ErrNotMember
	case c.Key == "" || len(c.Key) > MaxMetadataKey:
		return fmt.Errorf("%w: key of %d bytes, must have 1 to %d", ErrBadMetadata, len(c.Key), MaxMetadataKey)
	case len(c.Value) > MaxMetadataValue:
		return fmt.Errorf("%w: value of %d bytes, at most %d", ErrBadMetadata, len(c.Value), MaxMetadataValue)
	}
	next, err := m.st.meta.with(c.Key, string(c.Value), m.self)
	if err != nil || len(next) == len(m.st.meta) && slices.Equal(next, m.st.meta) {
		return err
	}
	d := m.st.draft()
	d.meta = next
	m.install(d.commit(m.self), true)
	return nil
}
