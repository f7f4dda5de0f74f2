// node dev: a local cluster of real processes with demo entities, watched and counted from here.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// devCmd is the flags of node dev.
type devCmd struct {
	Nodes    int           `default:"3" help:"Node processes, 1 to 64."`
	Duration time.Duration `default:"0s" help:"How long to send; 0: until Ctrl-C."`
	Entities int           `default:"1000" help:"Demo entities, 1 to 1000000."`
	Shards   uint32        `default:"100" help:"Shards that they are spread over, 1 to 1048576."`
	Senders  int           `default:"4" help:"Senders, spread over the nodes, 0 to 1024."`
	Rate     float64       `default:"20000" help:"Messages per second of all senders together; 0: all that are accepted."`
	Progress bool          `help:"Show progress although stderr is not a terminal."`
	TLS      bool          `name:"tls" help:"Mutual TLS, with a certificate authority that is thrown away."`
	Old      string        `type:"existingfile" placeholder:"FILE" help:"${old_help}"`
	Verbose  bool          `short:"v" help:"Show the logs of the node processes on stderr."`
}

// Validate is called by the parser.
func (c *devCmd) Validate() error {
	var errs []error
	check := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	check(c.Nodes >= 1 && c.Nodes <= 64, "--nodes must be 1 to 64")
	check(c.Duration >= 0, "--duration is negative")
	check(c.Entities >= 1 && c.Entities <= 1_000_000, "--entities must be 1 to 1000000")
	check(c.Shards >= 1 && c.Shards <= 1<<20, "--shards must be 1 to 1048576")
	check(c.Senders >= 0 && c.Senders <= 1024, "--senders must be 0 to 1024")
	check(c.Rate >= 0, "--rate is negative")
	return errors.Join(errs...)
}

// summary is the last line of node dev.
type summary struct {
	Nodes         int     `json:"nodes"`
	Up            int     `json:"up"` // when the senders stopped
	Shards        uint32  `json:"shards"`
	ShardsPerNode []int   `json:"shards_per_node"`
	Sent          uint64  `json:"sent"`
	Delivered     uint64  `json:"delivered"`
	Lost          uint64  `json:"lost"`
	Reordered     uint64  `json:"reordered"`
	Duplicated    uint64  `json:"duplicated"`
	Rate          float64 `json:"rate"` // messages sent per second
	Asks          uint64  `json:"asks"`
	AskErrors     uint64  `json:"ask_errors"`
	AskP50        float64 `json:"ask_p50_us,omitempty"` // absent when nothing was asked
	AskP99        float64 `json:"ask_p99_us,omitempty"`
	FormSeconds   float64 `json:"form_s"`
	SendSeconds   float64 `json:"send_s"`
	LeaveSeconds  float64 `json:"leave_s"`
}

// Time limits of the phases.
const (
	formLimit  = 60 * time.Second
	leaveLimit = 30 * time.Second // of one node
	drainLimit = 60 * time.Second // for what is in flight when the senders stop
	drainQuiet = 5 * time.Second  // without any arrival, what is missing is taken for lost
	closeGrace = 5 * time.Second
)

// registerTime is what the regions of nodes that have just come get to register with the coordinator before the first
// message asks for homes: whoever has not registered by then hosts nothing until there is a rebalance.
const registerTime = 200 * time.Millisecond

var (
	errNotDelivered = errors.New("messages were lost, reordered or duplicated")
	errInterrupted  = errors.New("interrupted before the cluster had formed")
)

// Run starts the cluster, sends until it is time, counts, and ends everything in order.
func (c *devCmd) Run(e *env) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	d := &dev{cmd: c, progress: cli.NewProgress(e.stderr, c.Progress)}
	d.sum.Nodes, d.sum.Shards = c.Nodes, c.Shards
	defer d.forget()
	defer d.kill()
	if err := d.protect(); err != nil {
		return err
	}
	for _, phase := range []func(context.Context, *env) error{d.form, d.send, d.watch} {
		if err := phase(ctx, e); err != nil {
			return err
		}
	}
	stop() // what follows ends by itself; a second Ctrl-C ends this process, and with it its children
	if err := d.awaitShards(context.Background()); err != nil {
		return err
	}
	left := d.leave(context.Background())
	if err := cli.Line(e.stdout, "summary", d.sum); err != nil {
		return err
	}
	return errors.Join(left, d.verdict())
}

// verdict is nil when every message came once and in order.
func (d *dev) verdict() error {
	if s := &d.sum; s.Lost+s.Reordered+s.Duplicated+d.foreign > 0 {
		return fmt.Errorf("%w: %d lost, %d reordered, %d duplicated, %d never sent", errNotDelivered,
			s.Lost, s.Reordered, s.Duplicated, d.foreign)
	}
	return nil
}

// dev is a running local cluster.
type dev struct {
	cmd      *devCmd
	progress *cli.Progress
	nodes    []*cli.Child
	sum      summary
	foreign  uint64
	certs    string    // folder of the certificates; empty without TLS
	began    time.Time // when the senders started
}

// build is the program of the i-th process, empty for this one.
func (d *dev) build(i int) string {
	if i%2 == 1 {
		return d.cmd.Old
	}
	return ""
}

// form starts the processes and waits until every one sees all of them Up.
func (d *dev) form(ctx context.Context, e *env) error {
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, formLimit)
	defer cancel()
	var logs io.Writer
	if d.cmd.Verbose {
		logs = e.stderr
	}
	var seeds []string
	for i := range d.cmd.Nodes {
		node, err := e.startChild(devNode(i), d.build(i), logs)
		if err != nil {
			return err
		}
		d.nodes = append(d.nodes, node)
		var r startReply
		a := startArgs{TLS: d.tlsFiles(i), Name: devName, Listen: "127.0.0.1:0", Seeds: seeds, Shards: d.cmd.Shards,
			LeaveTimeout: leaveLimit}
		if err := node.Call(limited, "start", a, &r); err != nil {
			return d.early(ctx, err)
		}
		d.progress.Printf("%s  process %d on %s", node.Name(), node.PID(), r.Addr)
		if i == 0 {
			seeds = []string{r.Addr} // a cluster of one, which the others join
		}
	}
	for {
		all, err := d.status(limited)
		if err != nil {
			return d.early(ctx, fmt.Errorf("cluster did not form: %w", err))
		}
		ready := 0
		for _, s := range all {
			if s.Up == d.cmd.Nodes {
				ready++
			}
		}
		if ready == d.cmd.Nodes {
			d.sum.FormSeconds = seconds(begin)
			d.progress.Printf("%d nodes up after %.1f s", ready, d.sum.FormSeconds)
			cli.Pause(limited, registerTime)
			return nil
		}
		cli.Pause(limited, 50*time.Millisecond)
	}
}

// early tells an interruption from a failure.
func (d *dev) early(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// status asks all nodes.
func (d *dev) status(ctx context.Context) ([]status, error) {
	all := make([]status, len(d.nodes))
	return all, d.each(func(i int, node *cli.Child) error { return node.Call(ctx, "status", cli.None{}, &all[i]) })
}

// each calls f for all nodes side by side and joins the errors.
func (d *dev) each(f func(i int, node *cli.Child) error) error {
	errs := make([]error, len(d.nodes))
	done := make(chan struct{})
	for i, node := range d.nodes {
		go func() { errs[i] = f(i, node); done <- struct{}{} }()
	}
	for range d.nodes {
		<-done
	}
	return errors.Join(errs...)
}

// send starts the senders, dealt out to the nodes in turn.
func (d *dev) send(ctx context.Context, _ *env) error {
	args := make([]sendArgs, len(d.nodes))
	for i := range args {
		args[i] = sendArgs{Entities: d.cmd.Entities}
	}
	for s := range d.cmd.Senders {
		a := &args[s%len(args)]
		a.Senders = append(a.Senders, uint32(s+1))
		a.Rate = d.cmd.Rate / float64(d.cmd.Senders)
	}
	d.began = time.Now()
	return d.each(func(i int, node *cli.Child) error { return node.Call(ctx, "send", args[i], nil) })
}

// watch shows progress each second until the time is over or the context ends.
func (d *dev) watch(ctx context.Context, _ *env) error {
	var over <-chan time.Time
	if d.cmd.Duration > 0 {
		over = time.After(d.cmd.Duration)
	}
	died := make(chan *cli.Child, len(d.nodes))
	for _, node := range d.nodes {
		go func() { <-node.Done(); died <- node }()
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var before uint64
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-over:
			return nil
		case node := <-died:
			return fmt.Errorf("node process ended while it was needed: %w", orGone(node))
		case <-tick.C:
		}
		limited, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		all, err := d.status(limited)
		cancel()
		if err != nil {
			return err
		}
		before = d.show(all, before)
	}
}

func orGone(node *cli.Child) error {
	if err := node.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", node.Name(), cli.ErrChildGone)
}

// show writes one progress line and returns how many messages have been sent.
func (d *dev) show(all []status, before uint64) uint64 {
	var sent, delivered, asks uint64
	shards := ""
	low := d.cmd.Nodes
	for i, s := range all {
		sent, delivered, asks, low = sent+s.Sent, delivered+s.Delivered, asks+s.Asks, min(low, s.Up)
		shards += fmt.Sprintf(" %s:%d", d.nodes[i].Name(), s.Shards)
	}
	d.progress.Printf("%4.0fs  members up %d/%d  shards%s  %d msg/s  sent %d  delivered %d  asks %d",
		seconds(d.began), low, d.cmd.Nodes, shards, sent-before, sent, delivered, asks)
	return sent
}

// kill ends what is still running: after a failure, or nothing.
func (d *dev) kill() {
	for _, node := range d.nodes {
		node.Kill()
	}
}

func seconds(since time.Time) float64 { return float64(time.Since(since).Milliseconds()) / 1000 }
