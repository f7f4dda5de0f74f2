// etcd without the engine: what lies behind its keys, as docs/contributing/stores.md has them.

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/store/etcd"
)

// etcdAt is how a client reaches a server.
func etcdAt(source string) clientv3.Config {
	return clientv3.Config{Endpoints: []string{source}, Logger: zap.NewNop()}
}

// keys are an etcd without the engine.
type keys struct{ *clientv3.Client }

// openKeys connects when it is used first.
func openKeys(source string) (*keys, error) {
	c, err := clientv3.New(etcdAt(source))
	if err != nil {
		return nil, err
	}
	return &keys{c}, nil
}

// Sizes of keys and values: of a shard's part of a key behind the prefix, and of what stands before a record's id.
const (
	shardSize  = 8 + 3
	recordHead = 1 + 8 + 16 + 4 + 1 + 8
	pageOf     = 1000 // keys a request: an answer stays far below what a client takes
)

// kept is a record behind its key.
type kept struct {
	key   string // without the engine's prefix
	value []byte
	parts [4][]byte // id, state, outbox, reminders
}

// keptOf reads a record's value.
func keptOf(key string, value []byte) (k kept, err error) {
	k = kept{key: key, value: value}
	if len(value) < recordHead {
		return k, fmt.Errorf("the record at %q is too short", key)
	}
	b := value[recordHead:]
	for i := range 3 {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return k, fmt.Errorf("the record at %q has another form", key)
		}
		k.parts[i], b = b[size:size+int(n)], b[size+int(n):]
	}
	k.parts[3] = b
	return k, nil
}

// forced is its value with another version, nonce and state.
func (k *kept) forced(w *store.Write) []byte {
	b := binary.BigEndian.AppendUint64([]byte{k.value[0]}, w.Version)
	b = append(append(b, w.Nonce[:]...), k.value[25:recordHead]...)
	for _, part := range [][]byte{k.parts[0], w.State, k.parts[2]} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	return append(b, k.parts[3]...)
}

// each calls back with each key and value below the engine's prefix, the prefix cut off.
func (c *keys) each(ctx context.Context, take func(key string, value []byte) error) error {
	from, end := etcd.DefaultPrefix, clientv3.GetPrefixRangeEnd(etcd.DefaultPrefix)
	for {
		got, err := c.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageOf))
		if err != nil {
			return err
		}
		for _, kv := range got.Kvs {
			from = string(kv.Key)
			if err := take(from[len(etcd.DefaultPrefix):], kv.Value); err != nil {
				return err
			}
		}
		if !got.More {
			return nil
		}
		from += "\x00"
	}
}

// row is a shard.
type row struct {
	kind  string
	n     route.ShardID
	fence route.Fence
}

// shardOf is the number of the shard of a key: the last bytes of the shard's part.
func shardOf(key string) route.ShardID {
	return route.ShardID(key[8])<<16 | route.ShardID(key[9])<<8 | route.ShardID(key[10])
}

// read returns all records, and the shards by what their keys begin with.
func (c *keys) read(ctx context.Context) (list []kept, rows map[string]row, err error) {
	rows = map[string]row{}
	return list, rows, c.each(ctx, func(key string, value []byte) error {
		if len(key) <= shardSize {
			return nil
		}
		switch key[shardSize] {
		case 's':
			if len(value) < 2*route.FenceSize {
				return fmt.Errorf("the shard at %q has another form", key)
			}
			r := row{kind: string(value[2*route.FenceSize:]), n: shardOf(key)}
			copy(r.fence[:], value)
			rows[key[:shardSize]] = r
		case 'r':
			k, err := keptOf(key, value)
			if err != nil {
				return err
			}
			list = append(list, k)
		}
		return nil
	})
}

// all implements records.
func (c *keys) all(ctx context.Context) ([]stored, error) {
	found, rows, err := c.read(ctx)
	list := make([]stored, len(found))
	for i := range found {
		k, to := &found[i], &list[i]
		to.ID, to.Version = string(k.parts[0]), binary.BigEndian.Uint64(k.value[1:])
		to.State, to.Outbox, to.Reminders = k.parts[1], k.parts[2], k.parts[3]
		copy(to.Nonce[:], k.value[9:])
		r := rows[k.key[:shardSize]]
		to.Type, to.Shard, to.Fence = r.kind, r.n, r.fence
	}
	return list, err
}

// waiting implements records.
func (c *keys) waiting(ctx context.Context) (unsent, unfired int, err error) {
	list, err := c.all(ctx)
	for i := range list {
		if len(list[i].Outbox) > 0 {
			unsent++
		}
		if len(list[i].Reminders) > 0 {
			unfired++
		}
	}
	return unsent, unfired, err
}

// force writes whatever the fence and the versions say.
func (c *keys) force(ctx context.Context, s store.Shard, w []store.Write) error {
	found, rows, err := c.read(ctx)
	for i := 0; i < len(found) && err == nil; i++ {
		k := &found[i]
		n := slices.IndexFunc(w, func(w store.Write) bool { return w.ID == string(k.parts[0]) })
		if n >= 0 && rows[k.key[:shardSize]].kind == s.Type {
			_, err = c.Put(ctx, etcd.DefaultPrefix+k.key, string(k.forced(&w[n])))
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnknown, err)
	}
	return nil
}
