// The child: one process of a service, with two types of entities behind the gateway, run by package service.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/gateway"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/service"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/store/postgres"
	"github.com/kith-io/kith/store/sqlite"
)

// order is how a process is started: the first line of its stdin. It leaves when stdin ends, and on SIGTERM; SIGUSR1
// has it drain.
type order struct {
	Engine, Source    string
	Listen, Advertise string
	Seeds             []string
	Proof             bool
}

// The types: plain keeps a number in memory, account in the store.
const (
	plainType   = "plain"
	accountType = "account"
	shards      = 32
	joinTime    = time.Minute
)

// childCmd is one process.
type childCmd struct{}

// Run runs it until it has left.
func (*childCmd) Run(e *env.Env) error {
	var o order
	in := json.NewDecoder(e.Stdin)
	if err := in.Decode(&o); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, e.Stdin)
		cancel()
	}()
	db, shut, err := openStore(ctx, o.Engine, o.Source)
	if err != nil {
		return err
	}
	cfg := kith.Config{Name: "clients", Listen: o.Listen, Advertise: o.Advertise, Seeds: o.Seeds, JoinTimeout: joinTime,
		Logger: slog.Default(), Sharding: kith.Sharding{ProcessDeathIsProof: o.Proof}}
	err = service.Run(ctx, service.Config{Node: cfg}, func(ctx context.Context, n *kith.Node) error {
		return serve(ctx, n, db, e.Stdout)
	})
	return errors.Join(err, shut())
}

// openStore opens the store of a process.
func openStore(ctx context.Context, engine, source string) (store.Store, func() error, error) {
	if engine == sqliteEngine {
		db, err := sqlite.Open(source)
		if err != nil {
			return nil, nil, err
		}
		return db, db.Close, nil
	}
	db, err := postgres.Open(ctx, source+" pool_max_conns=8")
	if err != nil {
		return nil, nil, err
	}
	return db, func() error { db.Close(); return nil }, nil
}

// serve serves clients until ctx ends, and says where.
func serve(ctx context.Context, n *kith.Node, db store.Store, out io.Writer) error {
	h, err := types(n, db)
	if err != nil {
		return err
	}
	if err := n.Ready(ctx); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, n.Addr(), ln.Addr())
	drain := make(chan os.Signal, 1)
	signal.Notify(drain, syscall.SIGUSR1)
	go func() {
		select {
		case <-drain:
			fmt.Fprintln(out, "drained", n.Drain(ctx))
		case <-ctx.Done():
		}
	}()
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(ln) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return s.Shutdown(context.Background()) // requests under way end; Run waits for 5 s
	}
}

// number is what an account keeps, and what is answered.
type number struct{ N int64 }

// counter is an entity whose number is in memory alone.
type counter struct{ number }

func (c *counter) add(_ *kith.Context, m *number) (number, error) {
	c.N += m.N
	return c.number, nil
}

// Stop implements the handler: nothing is kept.
func (*counter) Stop(*kith.Context) {}

// types registers both, and returns what serves them.
func types(n *kith.Node, db store.Store) (http.Handler, error) {
	add := kith.Message[number, number]{Type: plainType}
	plain, err := n.Register(kith.EntityType{Name: plainType, Shards: shards, Typed: kith.Methods(
		func(*kith.Context) (*counter, error) { return &counter{}, nil }, kith.On(add, (*counter).add))})
	if err != nil {
		return nil, err
	}
	accounts, err := durable.Register(n, durable.Type[number, number, number]{Name: accountType, Store: db,
		Shards: shards, Handle: func(tx *durable.Tx[number], m *number) (number, error) {
			tx.State.N += m.N
			return *tx.State, nil
		}})
	if err != nil {
		return nil, err
	}
	codec := kith.JSON[number]()
	return gateway.New(gateway.Config{Types: []gateway.Type{{Region: plain, Ask: true},
		{Region: accounts.Region(), Ask: true, AskBy: gateway.AskOf(accounts.Ask, codec, codec),
			Once: gateway.OnceOf(accounts.AskOnce, codec, codec)}}})
}
