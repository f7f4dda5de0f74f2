// The run of kith dev: what happens to its cluster while the senders send. The last node joins and gets its share of
// the shards, then the oldest one, which coordinates, leaves.

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// When it happens, without a duration; with one at a third and at two thirds of it.
const (
	joinAfter  = 5 * time.Second
	leaveAfter = 15 * time.Second

	// shareLimit is how long the newcomer's share is waited for. Very many shards take longer, and go on moving.
	shareLimit = 30 * time.Second
)

// Run starts the cluster, sends until it is time, counts, and ends everything in order.
func (c *devCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	d := &dev{cmd: c, progress: cli.NewProgress(e.Stderr, c.Progress), dead: map[*cli.Child]bool{}}
	d.sum.Nodes, d.sum.Shards = c.Nodes, c.Shards
	end, err := d.serve(e)
	if err != nil {
		return err
	}
	defer end()
	defer func() { d.certs.Remove() }()
	defer func() { fleet.Kill(d.children()) }() // after a failure, or nothing
	if err := d.protect(); err != nil {
		return err
	}
	for _, phase := range []func(context.Context, *env.Env) error{d.form, d.send, d.watch} {
		if err := phase(ctx, e); err != nil {
			return err
		}
	}
	stop() // what follows ends by itself; a second Ctrl-C ends this process, and with it its children
	if c.Kill {
		return d.endKilled(context.Background(), e)
	}
	if err := d.awaitShards(context.Background()); err != nil {
		return err
	}
	left := d.leave(context.Background())
	if err := cli.Line(e.Stdout, "summary", d.sum); err != nil {
		return err
	}
	return errors.Join(left, d.verdict())
}

// protect makes the certificates, if there are to be any.
func (d *dev) protect() (err error) {
	if !d.cmd.TLS {
		return nil
	}
	if d.certs, err = fleet.NewCerts(fleet.Names(d.cmd.Nodes), devName); err == nil {
		d.progress.Printf("connections are protected by mutual TLS 1.3, certificates in %s", d.certs)
	}
	return err
}

// watch shows progress each second until the time is over and the nodes have changed as they should, or ctx ends.
func (d *dev) watch(ctx context.Context, e *env.Env) error {
	var over <-chan time.Time
	if d.cmd.Duration > 0 {
		over = time.After(d.cmd.Duration)
	}
	d.died = make(chan *cli.Child, d.cmd.Nodes)
	for _, node := range d.children() {
		d.guard(node)
	}
	changed := make(chan error, 1)
	go func() { changed <- d.change(ctx, e) }()
	changing := true
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var before uint64
	for changing || ctx.Err() == nil && (over != nil || d.cmd.Duration == 0) {
		select {
		case <-ctx.Done():
			if changing {
				return <-changed
			}
		case err := <-changed:
			if changing = false; err != nil {
				return err
			}
		case <-over:
			over = nil
		case node := <-d.died:
			if err := d.bury(node); err != nil {
				return err
			}
			d.progress.Printf("%s  process %d is dead", node.Name(), node.PID())
		case <-tick.C:
			limited, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			all, err := d.status(limited)
			cancel()
			if err != nil {
				return err
			}
			before = d.show(all, before)
		}
	}
	return nil
}

// guard notifies watch when a process ends.
func (d *dev) guard(node *cli.Child) {
	go func() { <-node.Done(); d.died <- node }()
}

// change lets it happen. When ctx ends it makes an end of what it has begun.
func (d *dev) change(ctx context.Context, e *env.Env) error {
	if !d.cmd.changes() {
		return nil
	}
	join, leave := joinAfter, leaveAfter
	if d.cmd.Duration > 0 {
		join, leave = d.cmd.Duration/3, 2*d.cmd.Duration/3
	}
	if !cli.Pause(ctx, join-time.Since(d.began)) {
		return nil
	}
	if err := d.join(ctx, e); err != nil || ctx.Err() != nil {
		return err
	}
	if !cli.Pause(ctx, leave-time.Since(d.began)) {
		return nil
	}
	if d.cmd.Kill {
		return d.killNewest(ctx)
	}
	return d.leaveEarly()
}

// join starts the last node and waits until it is Up and has its share.
func (d *dev) join(ctx context.Context, e *env.Env) error {
	limited, cancel := context.WithTimeout(context.Background(), fleet.FormLimit)
	defer cancel()
	begin := time.Now()
	if err := d.start(limited, e); err != nil {
		return err
	}
	nodes := d.children()
	d.guard(nodes[len(nodes)-1])
	_, err := d.await(limited, func(all []status) bool { return ctx.Err() != nil || allUp(all, d.cmd.Nodes) })
	if err != nil {
		return fmt.Errorf("%s did not join: %w", fleet.Name(len(nodes)-1), err)
	}
	d.sum.Joined++
	up := cli.Seconds(begin)
	waits := time.Now().Add(shareLimit)
	all, err := d.await(limited, func(all []status) bool {
		return ctx.Err() != nil || time.Now().After(waits) || hasShare(all)
	})
	if d.most = hostedBy(all); err == nil {
		d.progress.Printf("%s  joined: up after %.1f s, %d shards after %.1f s", fleet.Name(len(nodes)-1), up,
			all[len(all)-1].Shards, cli.Seconds(begin))
	}
	return err
}

// hasShare reports whether the last node has as many shards as the others, but for one.
func hasShare(all []status) bool {
	last := all[len(all)-1].Shards
	for _, s := range all {
		if !s.Left && s.Shards > last+1 {
			return false
		}
	}
	return true
}

// leaveEarly stops the senders of the oldest node, begins as many on those that stay, and makes it leave.
func (d *dev) leaveEarly() error {
	limited, cancel := context.WithTimeout(context.Background(), 2*leaveLimit)
	defer cancel()
	nodes := d.children()
	oldest, begin := nodes[0], time.Now()
	var stopped stopReply
	if err := oldest.Call(limited, "stop", cli.None{}, &stopped); err != nil {
		return err
	}
	stay := nodes[1:]
	err := fleet.Each(stay, func(i int, node *cli.Child) error {
		return d.sendFrom(limited, node, part(len(stopped.Sent), i, len(stay)))
	})
	if err = errors.Join(err, oldest.Call(limited, "leave", cli.None{}, nil)); err != nil {
		return err
	}
	d.sum.Left++
	d.progress.Printf("%s  left after %.1f s, while others sent", oldest.Name(), cli.Seconds(begin))
	return nil
}

// killedLimit is how long the shards of a killed node may take to live elsewhere: the takeover time, and room.
const killedLimit = 2 * time.Minute

// killNewest kills the newest process, unless somebody has killed one, and waits until all shards that had a home have
// one again.
func (d *dev) killNewest(ctx context.Context) error {
	limited, cancel := context.WithTimeout(context.Background(), killedLimit)
	defer cancel()
	nodes, begin := d.children(), time.Now()
	if len(d.alive()) == len(nodes) {
		last := nodes[len(nodes)-1]
		d.progress.Printf("%s  killed (kill -9)", last.Name())
		last.Kill()
		if err := d.bury(last); err != nil {
			return err
		}
	}
	now, err := d.await(limited, func(all []status) bool { return ctx.Err() != nil || hostedBy(all) >= d.most })
	if err != nil {
		return fmt.Errorf("the shards of the killed node have no home: %w", err)
	}
	if ctx.Err() == nil {
		d.killed.HomeSeconds = cli.Seconds(begin)
		d.progress.Printf("%d shards live on the others after %.1f s", hostedBy(now), d.killed.HomeSeconds)
	}
	return nil
}

func hostedBy(all []status) (n int) {
	for _, s := range all {
		n += s.Shards
	}
	return n
}

// endKilled stops the senders that live, has their nodes leave, and prints the last line.
func (d *dev) endKilled(ctx context.Context, e *env.Env) error {
	ctx, cancel := context.WithTimeout(ctx, 2*fleet.DrainLimit)
	defer cancel()
	all, err := d.status(ctx)
	if err != nil {
		return err
	}
	sum, nodes := &d.killed, d.alive()
	sum.Nodes, sum.Joined, sum.Shards, sum.FormSeconds = d.cmd.Nodes, d.sum.Joined, d.cmd.Shards, d.sum.FormSeconds
	sum.Killed, sum.Up = len(d.children())-len(nodes), d.cmd.Nodes
	for _, s := range all {
		if sum.ShardsPerNode = append(sum.ShardsPerNode, s.Shards); !s.Left {
			sum.Up, sum.Sent = min(sum.Up, s.Up), sum.Sent+s.Sent
		}
	}
	stopped, err := fleet.Ask[stopReply](ctx, nodes, "stop", cli.None{})
	errs := []error{err}
	sum.SendSeconds = cli.Seconds(d.began)
	for _, s := range stopped {
		sum.Asks, sum.AskErrors = sum.Asks+s.Asks, sum.AskErrors+s.AskErrors
	}
	begin := time.Now()
	for i := len(nodes) - 1; i >= 0; i-- {
		errs = append(errs, nodes[i].Call(ctx, "leave", cli.None{}, nil))
	}
	errs = append(errs, fleet.Close(nodes))
	sum.LeaveSeconds = cli.Seconds(begin)
	return errors.Join(append(errs, cli.Line(e.Stdout, "summary", sum))...)
}

// serve serves the page, if there is to be one, and says where. What it returns ends that.
func (d *dev) serve(e *env.Env) (end func(), err error) {
	if d.cmd.Dashboard == "" {
		return func() {}, nil
	}
	s, err := admin.StartDashboard(admin.DashboardConfig{Listen: d.cmd.Dashboard, Nodes: d.shown})
	if err != nil {
		return nil, fmt.Errorf("--dashboard: %w", err)
	}
	fmt.Fprintf(e.Stderr, "dashboard http://%s/\n", s.Addr())
	return func() {
		bounded, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Close(bounded)
	}, nil
}

// shown returns the processes that serve what the page shows. A node of another build may have nothing to serve.
func (d *dev) shown() []admin.DashboardNode {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.pages)
}
