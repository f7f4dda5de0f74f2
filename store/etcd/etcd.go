// The engine: what Open asks of the servers, and how each call is one transaction under the shard's fence.

// Package etcd keeps the records of durable entities in etcd, 3.4 or newer. A commit is one transaction of etcd: what
// it wrote has been synced to the write-ahead logs of a majority of the servers when Commit returns. It survives the
// crash of all of them, and the loss of the disks of a minority. A cluster that was restored from a snapshot has lost
// what came after: that is noticed (store.ErrStoreWentBack), and not prevented. Servers with --unsafe-no-fsync break
// the contract at each crash.
//
// etcd keeps every revision until it is compacted, and stops all writes when its file has --quota-backend-bytes: have
// it compact itself, as with --auto-compaction-mode=periodic --auto-compaction-retention=5m.
package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

const (
	// DefaultPrefix begins all keys of a Store unless it is given another one.
	DefaultPrefix = "kith/"
	// MaxPrefix is the most bytes of a prefix.
	MaxPrefix = 16
	// maxOps is how many operations and comparisons servers must allow one transaction: the default of --max-txn-ops.
	maxOps = 128
	// maxRequest is how many bytes they must allow one request: less than the default of --max-request-bytes, and more
	// than any commit within the bounds of package store makes.
	maxRequest = 1450 << 10
	// alive is how long a server may be silent before it is asked whether it lives, and then until it is given up.
	alive = 10 * time.Second
	// longestRest is the longest rest before a server that does not answer is tried again.
	longestRest = 2 * time.Second
)

// Store is a store.Store in etcd. Close it.
type Store struct {
	client *clientv3.Client
	kv     clientv3.KV
	prefix string
	known  known
}

// Open connects to a cluster of etcd and keeps all under a prefix, of at most MaxPrefix bytes; empty: DefaultPrefix.
// Stores with the same prefix share their data; two prefixes of which one begins with the other must not be used beside
// each other. Open fails where no server answers within ctx, and where they allow a transaction fewer than 128
// operations (--max-txn-ops) or a request less than 1,450 KiB (--max-request-bytes): their defaults are enough. What cfg
// does not say of keepalives is set so that a server that is silent is noticed within 20 s; without a logger the client
// logs nothing.
func Open(ctx context.Context, cfg clientv3.Config, prefix string) (*Store, error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if len(prefix) > MaxPrefix {
		return nil, fmt.Errorf("store/etcd: the prefix has %d bytes, must have at most %d", len(prefix), MaxPrefix)
	}
	if cfg.DialKeepAliveTime == 0 {
		cfg.DialKeepAliveTime, cfg.DialKeepAliveTimeout = alive, alive
	}
	rest := backoff.DefaultConfig
	rest.BaseDelay, rest.MaxDelay = 50*time.Millisecond, longestRest
	cfg.DialOptions = append([]grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: rest,
		MinConnectTimeout: longestRest})}, cfg.DialOptions...)
	if cfg.Logger == nil && cfg.LogConfig == nil {
		cfg.Logger = zap.NewNop() // what it would tell is in the errors
	}
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("store/etcd: %w", err)
	}
	s := &Store{client: client, kv: client.KV, prefix: prefix}
	if err := s.probe(ctx); err != nil {
		_ = client.Close() // it has said enough
		return nil, fmt.Errorf("store/etcd: %w", err)
	}
	return s, nil
}

// probe asks whether the servers answer, and take transactions as large as commits may be. It changes nothing.
func (s *Store) probe(ctx context.Context) error {
	key := s.prefix + "probe"
	reads := make([]clientv3.Op, maxOps)
	for i := range reads {
		reads[i] = clientv3.OpGet(key, clientv3.WithCountOnly())
	}
	if _, err := s.kv.Txn(ctx).Then(reads...).Commit(); err != nil {
		if errors.Is(err, rpctypes.ErrTooManyOps) {
			return fmt.Errorf("the servers must allow %d operations in a transaction, --max-txn-ops=%d: %w", maxOps, maxOps, err)
		}
		return err
	}
	never := clientv3.Compare(clientv3.Version(key), "<", 0)
	_, err := s.kv.Txn(ctx).If(never).Then(clientv3.OpPut(key, string(make([]byte, maxRequest)))).Commit()
	if tooLarge(err) {
		return fmt.Errorf("the servers must allow requests of %d bytes, --max-request-bytes=1572864: %w", maxRequest, err)
	}
	return err
}

// tooLarge reports whether a request was refused because of its size.
func tooLarge(err error) bool {
	return errors.Is(err, rpctypes.ErrRequestTooLarge) || status.Code(err) == codes.ResourceExhausted &&
		strings.Contains(err.Error(), "larger than max")
}

// Close ends the connections. Calls under way may end with store.ErrUnknown.
func (s *Store) Close() error { return s.client.Close() }

// told returns an error of the client as Store returns it.
func told(err error) error {
	switch {
	case err == nil:
		return nil
	case tooLarge(err), errors.Is(err, rpctypes.ErrTooManyOps): // the servers were changed behind Open
		return fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	}
	return fmt.Errorf("%w: %w", store.ErrUnknown, err)
}

// row is what is stored of a shard: its fence, that of the owner before, and the name of its type, for people that
// look.
type row struct {
	fence, before route.Fence
	of            string
	rev           int64 // of its key, 0: there is none
}

// rowOf reads a row from the answer to a get.
func rowOf(kvs []*kv) (r row, err error) {
	if len(kvs) == 0 {
		return r, nil
	}
	if len(kvs[0].Value) < 2*route.FenceSize {
		return r, errors.New("store/etcd: a shard's row has another form")
	}
	r.rev, r.of = kvs[0].ModRevision, string(kvs[0].Value[2*route.FenceSize:])
	copy(r.fence[:], kvs[0].Value)
	copy(r.before[:], kvs[0].Value[route.FenceSize:])
	return r, nil
}

// held says whether the shard is that of an owner.
func (r *row) held(f route.Fence) error {
	switch r.fence.Compare(f) {
	case 1:
		return store.ErrFenced
	case -1:
		return store.ErrStoreWentBack
	}
	return nil
}

// ours are comparisons that hold where f is the fence of a shard: its row begins with f, and is longer.
func ours(k keys, f route.Fence) []clientv3.Cmp {
	list := []clientv3.Cmp{clientv3.Compare(clientv3.Value(k.row()), ">", string(f[:]))}
	next := f
	for i := len(next) - 1; i >= 0; i-- {
		if next[i]++; next[i] != 0 {
			return append(list, clientv3.Compare(clientv3.Value(k.row()), "<", string(next[:])))
		}
	}
	return list
}

// under runs operations as one transaction if f is the fence of the shard and further comparisons hold. Where only they
// do not hold, its answer is nil.
func (s *Store) under(ctx context.Context, k keys, f route.Fence, further []clientv3.Cmp, ops ...clientv3.Op) (
	*clientv3.TxnResponse, error) {
	did, err := s.kv.Txn(ctx).If(append(ours(k, f), further...)...).Then(ops...).Else(clientv3.OpGet(k.row())).Commit()
	if err != nil {
		return nil, told(err)
	}
	if did.Succeeded {
		return did, nil
	}
	r, err := rowOf(did.Responses[0].GetResponseRange().Kvs)
	if err != nil {
		return nil, err
	}
	return nil, r.held(f)
}

// reads is under for operations that read: their answers in order.
func (s *Store) reads(ctx context.Context, k keys, f route.Fence, ops ...clientv3.Op) (list [][]*kv, err error) {
	for len(ops) > 0 {
		n := min(len(ops), maxOps)
		did, err := s.under(ctx, k, f, nil, ops[:n]...)
		if err != nil {
			return nil, err
		}
		if did == nil { // the row had another fence, and has ours
			return nil, fmt.Errorf("%w: the shard's row has another form", store.ErrUnknown)
		}
		for _, r := range did.Responses {
			list = append(list, r.GetResponseRange().Kvs)
		}
		ops = ops[n:]
	}
	return list, nil
}

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, at store.Shard, f route.Fence) (c store.Claimed, err error) {
	if err := store.CheckShard(at, f); err != nil {
		return c, err
	}
	k := s.keys(at)
	for {
		is, err := s.kv.Txn(ctx).Then(clientv3.OpGet(k.row()), clientv3.OpGet(k.floor())).Commit()
		if err != nil {
			return c, told(err)
		}
		r, err := rowOf(is.Responses[0].GetResponseRange().Kvs)
		if err != nil {
			return c, err
		}
		low, err := floorOf(is.Responses[1].GetResponseRange().Kvs)
		switch {
		case err != nil:
			return c, err
		case r.rev != 0 && r.of != at.Type:
			return c, fmt.Errorf("%w: the keys of the type %.64q are those of %.64q", store.ErrTooLarge, at.Type, r.of)
		case r.fence.Compare(f) > 0:
			return c, store.ErrFenced
		case r.fence == f:
			return store.Claimed{Last: r.before, Floor: low.is}, nil
		}
		value := string(bytes.Join([][]byte{f[:], r.fence[:], []byte(at.Type)}, nil))
		did, err := s.kv.Txn(ctx).If(revision(k.row(), r.rev), revision(k.floor(), low.rev)).
			Then(clientv3.OpPut(k.row(), value)).Commit()
		if err != nil {
			return c, told(err)
		}
		if did.Succeeded {
			return store.Claimed{Last: r.fence, Floor: low.is}, nil
		}
	}
}

// revision is a comparison that holds where a key was written last by that revision; 0: where there is none.
func revision(key string, rev int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(key), "=", rev)
}

// Load implements store.Store.
func (s *Store) Load(ctx context.Context, at store.Shard, f route.Fence, ids ...string) (list []store.Record,
	err error) {
	if err := errors.Join(store.CheckShard(at, f), store.CheckIDs(ids)); err != nil {
		return nil, err
	}
	k := s.keys(at)
	ops := make([]clientv3.Op, max(1, len(ids)))
	ops[0] = clientv3.OpGet(k.row(), clientv3.WithKeysOnly()) // where no id is asked for
	for i, id := range ids {
		ops[i] = clientv3.OpGet(k.record(id))
	}
	got, err := s.reads(ctx, k, f, ops...)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		r, rev, err := recordOf(id, got[i])
		if err != nil {
			return nil, err
		}
		s.known.read(k.record(id), seenOf(&r, rev))
		if rev != 0 {
			list = append(list, r)
		}
	}
	return list, nil
}
