// What is stored: the keys of a shard, and the values behind them.

package etcd

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kith-io/kith/store"
)

// kv is a key as the client returns it.
type kv = mvccpb.KeyValue

// So many bytes of a SHA-256 stand for an id and for a type in keys, so that a commit with long names is small.
const (
	hashSize = 16
	typeSize = 8
)

func hash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return string(sum[:hashSize])
}

// keys begins the keys of a shard: the prefix, the hash of its type, its number.
type keys string

func (s *Store) keys(at store.Shard) keys {
	n := uint32(at.N)
	return keys(s.prefix + hash(at.Type)[:typeSize] + string([]byte{byte(n >> 16), byte(n >> 8), byte(n)}))
}

// One byte behind that says what a key is of.
func (k keys) row() string             { return string(k) + "s" }
func (k keys) floor() string           { return string(k) + "f" }
func (k keys) record(id string) string { return k.hashed(hash(id)) }
func (k keys) hashed(h string) string  { return string(k) + "r" + h }

// dues has records in the order of their alarms, unsents those with an outbox. Their values are empty.
func (k keys) dues() string                    { return string(k) + "d" }
func (k keys) due(ms int64, id string) string  { return k.dues() + ordered(ms) + id }
func (k keys) unsents() string                 { return string(k) + "o" }
func (k keys) unsent(id string) string         { return k.unsents() + id }
func (k keys) marks(h string) string           { return string(k) + "m" + h }
func (k keys) mark(id, from string) string     { return k.marks(hash(id)) + from }
func (k keys) ages() string                    { return string(k) + "a" }
func (k keys) age(span int64, h string) string { return k.ages() + ordered(span) + h }

// ordered is a number as bytes that have the order of numbers.
func ordered(n int64) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(n)^1<<63))
}

// number is what ordered has made.
func number(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ 1<<63) }

// end is the end of a range of all keys that begin with a prefix.
func end(prefix string) clientv3.OpOption {
	return clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix))
}

// form is the first byte of the values of records and marks.
const form = 1

// head is how many bytes of a record's value stand before its id and its three parts: form, version, nonce, schema,
// whether it is due, and when.
const head = 1 + 8 + 16 + 4 + 1 + 8

var errForm = errors.New("store/etcd: a value has another form")

// valueOf is a record's value.
func valueOf(r *store.Record) string {
	b := make([]byte, 0, head+15+len(r.ID)+len(r.State)+len(r.Outbox)+len(r.Reminders))
	b = binary.BigEndian.AppendUint64(append(b, form), r.Version)
	b = binary.BigEndian.AppendUint32(append(b, r.Nonce[:]...), r.Schema)
	if r.Due.IsZero() {
		b = append(b, make([]byte, 9)...)
	} else {
		b = binary.BigEndian.AppendUint64(append(b, 1), uint64(r.Due.UnixMilli()))
	}
	b = append(binary.AppendUvarint(b, uint64(len(r.ID))), r.ID...)
	b = binary.AppendUvarint(b, uint64(len(r.State)))
	b = binary.AppendUvarint(append(b, r.State...), uint64(len(r.Outbox)))
	return string(append(append(b, r.Outbox...), r.Reminders...))
}

// recordOf reads a record from the answer to a get; its revision is 0 if there is none. The record has the answer's
// memory.
func recordOf(id string, kvs []*kv) (r store.Record, rev int64, err error) {
	if len(kvs) == 0 {
		return r, 0, nil
	}
	b := kvs[0].Value
	if len(b) < head || b[0] != form {
		return r, 0, fmt.Errorf("%w: record %.64q", errForm, id)
	}
	r.Version, r.Schema = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint32(b[25:])
	copy(r.Nonce[:], b[9:])
	if b[29] != 0 {
		r.Due = time.UnixMilli(int64(binary.BigEndian.Uint64(b[30:])))
	}
	b = b[head:]
	var is []byte
	for _, part := range []*[]byte{&is, &r.State, &r.Outbox} {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return r, 0, fmt.Errorf("%w: record %.64q", errForm, id)
		}
		*part, b = b[size:size+int(n):size+int(n)], b[size+int(n):]
	}
	if r.ID, r.Reminders = id, b; string(is) != id {
		return r, 0, fmt.Errorf("%w: record %.64q is of %.64q", errForm, id, is)
	}
	return r, kvs[0].ModRevision, nil
}

// markHead is how many bytes of a mark's value stand before the writer's: form, number, time.
const markHead = 1 + 8 + 8

// valueOfMark is a mark's value.
func valueOfMark(m *store.Mark) string {
	b := binary.BigEndian.AppendUint64(append(make([]byte, 0, markHead+len(m.Value)), form), m.Number)
	return string(append(binary.BigEndian.AppendUint64(b, uint64(m.At.UnixMilli())), m.Value...))
}

// markOf reads a mark.
func markOf(from string, b []byte) (m store.Mark, err error) {
	if len(b) < markHead || b[0] != form {
		return m, fmt.Errorf("%w: a mark of %.64q", errForm, from)
	}
	return store.Mark{From: from, Number: binary.BigEndian.Uint64(b[1:]), Value: b[markHead:],
		At: time.UnixMilli(int64(binary.BigEndian.Uint64(b[9:])))}, nil
}

// low is the floor of a shard.
type low struct {
	is  uint64
	rev int64 // of its key, 0: there is none
}

func floorOf(kvs []*kv) (l low, err error) {
	if len(kvs) == 0 {
		return l, nil
	}
	if len(kvs[0].Value) != 8 {
		return l, fmt.Errorf("%w: a shard's floor", errForm)
	}
	return low{binary.BigEndian.Uint64(kvs[0].Value), kvs[0].ModRevision}, nil
}

func valueOfFloor(is uint64) string { return string(binary.BigEndian.AppendUint64(nil, is)) }

var _ store.Store = (*Store)(nil)
