// Entries: the keys of the metadata in a state; the later write of each wins (MEM-12).

package members

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

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
	case len(d) >= cluster.MaxMetadata:
		return d, fmt.Errorf("%w: %d keys", cluster.ErrMetadataFull, len(d))
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
	for (len(d) > 0 || len(o) > 0) && len(out) < cluster.MaxMetadata {
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

// WithMetadata returns the next version, in which by has set one key, or nil when that changes nothing. ErrMetadataFull
// for a new key when there is no place for it.
func (s *State) WithMetadata(key, value string, by peer.ID) (*State, error) {
	next, err := s.meta.with(key, value, by)
	if err != nil || len(next) == len(s.meta) && slices.Equal(next, s.meta) {
		return nil, err
	}
	d := s.Draft()
	d.meta = next
	return d.Commit(by), nil
}

// compare orders two writes of one key. Values differ under one count and writer only if that writer is faulty; then
// all still agree.
func (e metaEntry) compare(o metaEntry) int {
	return cmp.Or(cmp.Compare(e.count, o.count), e.writer.Compare(o.writer), strings.Compare(e.value, o.value))
}

// live returns what a View shows.
func (d metadata) live() []cluster.Metadata {
	var out []cluster.Metadata
	for _, e := range d {
		if e.value != "" {
			out = append(out, cluster.Metadata{Key: e.key, Value: []byte(e.value)})
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
	n := r.Count(4+peer.MinIDSize, cluster.MaxMetadata)
	if n == 0 {
		return nil
	}
	out := make(metadata, 0, n)
	for range n {
		e := metaEntry{r.String(cluster.MaxMetadataKey), r.String(cluster.MaxMetadataValue), readChanges(r), peer.ReadID(r)}
		check(r, e.key != "" && !e.writer.Addr.IsZero(), len(out) == 0 || out[len(out)-1].key < e.key)
		if r.Err() != nil {
			return nil
		}
		out = append(out, e)
	}
	return out
}
