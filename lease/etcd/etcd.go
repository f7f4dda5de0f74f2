// The lease: a key with an owner, bound to a lease of etcd that ends by itself.

// Package etcd keeps leases of kith in etcd, 3.4 or newer: for the resolver's strategy lease-majority and for
// singletons. A lease is a key with the owner as its value, bound to a lease of etcd. The leader of the servers counts
// its time, by a clock that nobody sets, and one that begins to lead counts it anew: so it never ends early. It ends
// late by up to two seconds, and by the time that the servers are away.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/kith-io/kith/lease"
)

const (
	// DefaultPrefix begins all keys unless another one is given.
	DefaultPrefix = "kith/lease/"
	// MaxPrefix is the most bytes of a prefix.
	MaxPrefix = 256
	// alive is how long a server may be silent before it is asked whether it lives, and then until it is given up: the
	// call after that goes to another one. A session of 5 s bears no more.
	alive = time.Second
	// longestRest is the longest rest before a server that does not answer is tried again.
	longestRest = time.Second
	// maxDoubt bounds the grants that are kept in mind because nobody knows what became of their write.
	maxDoubt = 1024
)

// Config says where leases are kept.
type Config struct {
	// Client is how the servers are reached. What it does not say of keepalives is set so that a silent server is noticed
	// within 2 s; without a logger the client logs nothing.
	Client clientv3.Config
	// Prefix begins all keys; empty: DefaultPrefix. At most MaxPrefix bytes.
	Prefix string
	// TTL is how long a lease lasts after its owner's last word, in whole seconds, rounded up; zero means
	// lease.DefaultTTL. Servers raise one that is less than two seconds, or than one and a half of their election timeout.
	TTL time.Duration
}

// Lease is a lease.Service in etcd. Close it.
type Lease struct {
	client *clientv3.Client
	prefix string
	ttl    time.Duration
	mu     sync.Mutex
	doubt  map[claim]map[clientv3.LeaseID]struct{} // grants of which a write may still come to pass
	grants int                                     // of doubt, all together
}

// claim is an owner of a lease.
type claim struct{ name, owner string }

// Open returns the leases under a prefix. It asks no server: one that is away is an error of each call. Errors match
// lease.ErrBadConfig.
func Open(cfg Config) (*Lease, error) {
	ttl, err := lease.CheckTTL(cfg.TTL)
	if err != nil {
		return nil, err
	}
	if cfg.Prefix == "" {
		cfg.Prefix = DefaultPrefix
	}
	if len(cfg.Prefix) > MaxPrefix {
		return nil, fmt.Errorf("%w: the prefix has %d bytes, must have at most %d", lease.ErrBadConfig, len(cfg.Prefix),
			MaxPrefix)
	}
	c := cfg.Client
	if c.DialKeepAliveTime == 0 {
		c.DialKeepAliveTime, c.DialKeepAliveTimeout = alive, alive
	}
	rest := backoff.DefaultConfig
	rest.BaseDelay, rest.MaxDelay = 50*time.Millisecond, longestRest
	c.DialOptions = append([]grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: rest,
		MinConnectTimeout: longestRest})}, c.DialOptions...)
	if c.Logger == nil && c.LogConfig == nil {
		c.Logger = zap.NewNop() // what it would tell is in the errors
	}
	client, err := clientv3.New(c)
	if err != nil {
		return nil, fmt.Errorf("%w: etcd: %w", lease.ErrBadConfig, err)
	}
	return &Lease{client: client, prefix: cfg.Prefix, ttl: (ttl + time.Second - 1).Truncate(time.Second),
		doubt: map[claim]map[clientv3.LeaseID]struct{}{}}, nil
}

// Kind is how lease.Open opens leases here: etcd://host:2379,host:2379/prefix, with the values ca, cert and key (files,
// PEM; with ca the servers are asked by TLS), and user and password-file.
var Kind = lease.Kind{Scheme: "etcd", Open: func(_ context.Context, a lease.Address, ttl time.Duration) (lease.Service,
	error) {
	cfg, err := configOf(a)
	if err != nil {
		return nil, fmt.Errorf("%w: etcd: %w", lease.ErrBadConfig, err)
	}
	cfg.TTL = ttl
	l, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	return l, nil
}}

// configOf is an address as a configuration.
func configOf(a lease.Address) (Config, error) {
	cfg := Config{Prefix: strings.TrimPrefix(a.Path, "/")}
	if a.Host == "" {
		return cfg, errors.New("the address names no server, as etcd://host:2379")
	}
	files := transport.TLSInfo{TrustedCAFile: a.Take("ca"), CertFile: a.Take("cert"), KeyFile: a.Take("key")}
	scheme := "http://"
	if files.TrustedCAFile != "" {
		scheme = "https://"
		protect, err := files.ClientConfig()
		if err != nil {
			return cfg, err
		}
		cfg.Client.TLS = protect
	} else if files.CertFile != "" || files.KeyFile != "" {
		return cfg, errors.New("cert and key are given, and no ca: the servers would be asked without TLS")
	}
	for _, host := range strings.Split(a.Host, ",") {
		cfg.Client.Endpoints = append(cfg.Client.Endpoints, scheme+host)
	}
	cfg.Client.Username = a.Take("user")
	if file := a.Take("password-file"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return cfg, err
		}
		cfg.Client.Password = strings.TrimSpace(string(text))
	}
	return cfg, a.Rest()
}

// TTL implements lease.Service.
func (l *Lease) TTL() time.Duration { return l.ttl }

// Close implements lease.Service.
func (l *Lease) Close() error { return l.client.Close() }

// found is the key of a lease; rev zero: there is none.
type found struct {
	owner string
	rev   int64
}

func (l *Lease) key(name string) string { return l.prefix + name }

// get reads the key of a lease, as a majority of the servers has it.
func (l *Lease) get(ctx context.Context, name string) (f found, err error) {
	a, err := l.client.Get(ctx, l.key(name))
	if err != nil || len(a.Kvs) == 0 {
		return f, err
	}
	return found{string(a.Kvs[0].Value), a.Kvs[0].ModRevision}, nil
}

// Acquire implements lease.Service. Each call is granted a lease of its own, for a grant is agreed upon by a majority of
// the servers: one that leads no more, and does not know, may still confirm an old one.
func (l *Lease) Acquire(ctx context.Context, name, owner string) (ok bool, err error) {
	if err := lease.CheckName(name, owner); err != nil {
		return false, err
	}
	ctx, cancel := lease.Bound(ctx)
	defer cancel()
	for {
		is, err := l.get(ctx, name)
		if err != nil {
			return false, told(err)
		}
		if is.rev != 0 && is.owner != owner {
			return false, nil
		}
		got, err := l.client.Grant(ctx, int64(l.ttl/time.Second))
		if err != nil {
			return false, told(err)
		}
		who := claim{name, owner}
		l.doubts(who, got.ID, true)
		did, err := l.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(l.key(name)), "=", is.rev)).
			Then(clientv3.OpPut(l.key(name), owner, clientv3.WithLease(got.ID))).Commit()
		if err == nil {
			l.doubts(who, got.ID, false)
		}
		if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) { // it ended before it was used
			return false, told(err)
		}
		if err == nil && did.Succeeded {
			return true, nil
		}
	}
}

// Release implements lease.Service.
func (l *Lease) Release(ctx context.Context, name, owner string) error {
	if err := lease.CheckName(name, owner); err != nil {
		return err
	}
	ctx, cancel := lease.Bound(ctx)
	defer cancel()
	who := claim{name, owner}
	for _, id := range l.doubted(who) { // a write with a lease that has ended is refused
		if _, err := l.client.Revoke(ctx, id); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return told(err)
		}
		l.doubts(who, id, false)
	}
	for {
		is, err := l.get(ctx, name)
		if err != nil {
			return told(err)
		}
		if is.owner != owner {
			return nil
		}
		did, err := l.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(l.key(name)), "=", is.rev)).
			Then(clientv3.OpDelete(l.key(name))).Commit()
		if err != nil {
			return told(err)
		}
		if did.Succeeded {
			return nil
		}
	}
}

// doubts notes whether nobody knows what became of the write with a grant.
func (l *Lease) doubts(who claim, id clientv3.LeaseID, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, was := l.doubt[who][id]
	switch {
	case is && !was && l.grants < maxDoubt: // what is beyond ends by its TTL
		if l.doubt[who] == nil {
			l.doubt[who] = map[clientv3.LeaseID]struct{}{}
		}
		l.doubt[who][id] = struct{}{}
		l.grants++
	case !is && was:
		if delete(l.doubt[who], id); len(l.doubt[who]) == 0 {
			delete(l.doubt, who)
		}
		l.grants--
	}
}

func (l *Lease) doubted(who claim) (list []clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.doubt[who] {
		list = append(list, id)
	}
	return list
}

// told returns an error as callers get it.
func told(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("lease: etcd: %w", err)
}
