// Events: what happens to a cluster, and when it is over.

package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// The events that are named elsewhere.
const (
	cutEvent   = "cut"
	storeEvent = "store"
)

// event is one.
type event struct {
	name string
	come func(ctx context.Context, f *cluster) error
}

// events are all of them, in the order in which they come.
var events = []event{
	{"rolling", rolling},
	{"drain", drain},
	{"join", func(ctx context.Context, f *cluster) error { _, err := f.start(ctx); return err }},
	{"stop-3s", stopping(3 * time.Second)},
	{"stop-10s", stopping(10 * time.Second)},
	{"kill-owner", func(_ context.Context, f *cluster) error { return f.newest().kill() }},
	{"kill-coordinator", func(_ context.Context, f *cluster) error { return f.running()[0].kill() }},
	{storeEvent, restartStore},
	{cutEvent, func(_ context.Context, f *cluster) error { return f.cut() }},
}

func eventNames() (list []string) {
	for _, e := range events {
		list = append(list, e.name)
	}
	return list
}

// newest is a process that coordinates nothing: the youngest.
func (f *cluster) newest() *process {
	all := f.running()
	return all[len(all)-1]
}

// rolling restarts each process in turn: SIGTERM, wait for its end, start the next one.
func rolling(ctx context.Context, f *cluster) error {
	for _, p := range f.running() {
		err := p.signal(syscall.SIGTERM)
		if err == nil {
			err = p.ended(ctx)
		}
		if err == nil {
			_, err = f.start(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drain has the youngest give away what it has.
func drain(ctx context.Context, f *cluster) error {
	p := f.newest()
	if err := p.signal(syscall.SIGUSR1); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	line, err := p.says(limited)
	if err == nil && line != "drained <nil>" {
		err = errors.New(line)
	}
	return err
}

// stopping has a process stand still.
func stopping(d time.Duration) func(context.Context, *cluster) error {
	return func(ctx context.Context, f *cluster) error {
		p := f.newest()
		if err := p.signal(syscall.SIGSTOP); err != nil {
			return err
		}
		cli.Pause(ctx, d)
		return p.signal(syscall.SIGCONT)
	}
}

// storeAway is how long the store's server is away.
const storeAway = 3 * time.Second

// restartStore kills PostgreSQL and starts it again.
func restartStore(ctx context.Context, f *cluster) error {
	f.server.Stop(syscall.SIGKILL)
	cli.Pause(ctx, storeAway)
	return f.server.Start()
}

// cut cuts a minority of the processes off from the others. Clients and store reach them all.
func (f *cluster) cut() error {
	all := f.running()
	first := (len(all) + 2) / 2 // three of five stay together
	for _, p := range all[first:] {
		p.struck.Store(true)
	}
	f.wires.sever(first)
	return nil
}

// The times around an event.
const (
	leastTime = 8 * time.Second // what is looked at in any case
	quietTime = 5 * time.Second // without a failure: it is over
	mostTime  = 2 * time.Minute
	restTime  = 12 * time.Second // behind the start of processes: the balance gives them shards
)

// measure has one event come, and returns what clients saw.
func (f *cluster) measure(ctx context.Context, c *clients, name string) ([]row, error) {
	if err := f.settle(ctx, c); err != nil {
		return nil, err
	}
	var come func(context.Context, *cluster) error
	for _, e := range events {
		if e.name == name {
			come = e.come
		}
	}
	began := time.Now()
	if err := come(ctx, f); err != nil {
		return nil, err
	}
	cli.Pause(ctx, leastTime)
	if err := untilCalm(ctx, c); err != nil {
		return nil, err
	}
	if name == cutEvent { // those that were cut off end: until then they answer as they can
		for len(f.running()) > (f.want+2)/2 && time.Since(began) < mostTime && cli.Pause(ctx, time.Second) {
		}
		if err := untilCalm(ctx, c); err != nil {
			return nil, err
		}
	}
	return c.rows(name, began), nil
}

// settle waits until the cluster is at rest.
func (f *cluster) settle(ctx context.Context, c *clients) error {
	cli.Pause(ctx, restTime)
	return untilCalm(ctx, c)
}

// untilCalm waits until nothing has failed for a while.
func untilCalm(ctx context.Context, c *clients) error {
	for end := time.Now().Add(mostTime); !c.calm(time.Now().Add(-quietTime)); {
		if time.Now().After(end) {
			return errors.New("requests fail, or wait, for two minutes on end")
		}
		if !cli.Pause(ctx, 200*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return ctx.Err()
}
