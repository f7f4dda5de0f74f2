// Command bank is a service of accounts and transfers over HTTP; its money survives the death of its processes.
//
//	bank                              starts three processes of itself, moves money, kills one, counts the money
//	bank --store=quorum               the same with the money on the disks of the processes, and no database
//	bank node --db=FILE [SEED...]     is one process of the service
//	bank node --disk=DIR [SEED...]    is one that has a disk of its own in that directory
package main

import (
	"context"
	"errors"
	"flag"
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
	"github.com/kith-io/kith/quorum"
	"github.com/kith-io/kith/quorum/pebble"
	"github.com/kith-io/kith/service"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/store/sqlite"
)

// node runs one process of the service until it has to leave.
func node(args []string) error {
	f := flag.NewFlagSet("bank node [flags] [SEED...]", flag.ExitOnError)
	file := f.String("db", "bank.db", "the SQLite file, one for all processes of this machine")
	disk := f.String("disk", "", "in the place of --db: a directory of this process alone; the money is on three such disks")
	listen := f.String("listen", "127.0.0.1:0", "address for the other processes; theirs are the seeds")
	door := f.String("http", "127.0.0.1:0", "address for clients")
	tied := f.Bool("tied", false, "leave when stdin ends")
	_ = f.Parse(args) // it exits where they are wrong
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if *tied {
		go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
	}
	return service.Run(ctx, service.Config{Node: kith.Config{Name: "bank", Listen: *listen, Seeds: f.Args(),
		JoinTimeout: 40 * time.Second, Logger: slog.Default(),
		Sharding: kith.Sharding{ProcessDeathIsProof: true}, // right where nothing stands between the processes
	}}, func(ctx context.Context, n *kith.Node) error {
		db, end, err := open(n, *file, *disk)
		if err != nil {
			return err
		}
		defer end()
		h, err := bank(n, db)
		if err != nil {
			return err
		}
		ln, err := net.Listen("tcp", *door)
		if err != nil {
			return err
		}
		fmt.Println(n.Addr(), ln.Addr()) // clients wait until all is ready
		if err := n.Ready(ctx); err != nil {
			return errors.Join(err, ln.Close())
		}
		s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
		failed := make(chan error, 1)
		go func() { failed <- s.Serve(ln) }()
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return s.Shutdown(context.Background()) // requests under way end; Run waits for 5 s
		}
	})
}

// open opens what keeps the money: a file, or disks of three processes.
func open(n *kith.Node, file, disk string) (db store.Store, end func() error, err error) {
	if disk == "" {
		db, err := sqlite.Open(file)
		return db, db.Close, err
	}
	engine, err := pebble.Open(disk, pebble.Options{})
	if err != nil {
		return nil, nil, err
	}
	values, err := quorum.Open(n, quorum.Store{Name: "bank", Engine: engine}) // it begins when three have met
	if err != nil {
		return nil, nil, errors.Join(err, engine.Close())
	}
	return values.Fenced(), values.Close, nil
}

func main() {
	var err error
	if len(os.Args) > 1 && os.Args[1] == "node" {
		err = node(os.Args[2:])
	} else {
		d := flag.Duration("duration", 0, "move money for so long and end; zero: 10s, and serve until Ctrl-C")
		kind := flag.String("store", "sqlite", "what keeps the money: sqlite, or quorum, the disks of the processes")
		flag.Parse()
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = demo(ctx, os.Stdout, *d, *kind)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bank:", err)
	}
	os.Exit(kith.ExitCode(err))
}
