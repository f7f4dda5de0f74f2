// kith dev: a local cluster of real processes with demo entities, watched and counted from here.

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// devName is the name of the cluster.
const devName = "dev"

// devCmd is the flags of kith dev.
type devCmd struct {
	Nodes    int           `default:"3" help:"Node processes, 1 to 64."`
	Duration time.Duration `default:"0s" help:"How long to send; 0: until Ctrl-C."`
	Entities int           `default:"1000" help:"Demo entities, 1 to 1000000."`
	Shards   uint32        `default:"100" help:"Shards that they are spread over, 1 to 1048576."`
	Senders  int           `default:"4" help:"Senders, spread over the nodes, 0 to 1024."`
	Rate     float64       `default:"20000" help:"Messages per second of all senders together; 0: all that are accepted."`
	Progress bool          `help:"Show progress although stderr is not a terminal."`
	Steady   bool          `help:"Start all nodes before the senders, and none leaves while they send."`
	TLS      bool          `name:"tls" help:"Mutual TLS, with a certificate authority that is thrown away."`
	Kill     bool          `help:"${devkill_help}"`
	Old      string        `type:"existingfile" placeholder:"FILE" help:"${old_help}"`
	Verbose  bool          `short:"v" help:"Show the logs of the node processes on stderr."`

	Dashboard string `default:"127.0.0.1:0" help:"${devpage_help}"`
}

// Validate is called by the parser.
func (c *devCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Nodes >= 1 && c.Nodes <= 64, "--nodes must be 1 to 64")
	errs.Must(c.Duration >= 0, "--duration is negative")
	errs.Must(c.Entities >= 1 && c.Entities <= 1_000_000, "--entities must be 1 to 1000000")
	errs.Must(c.Shards >= 1 && c.Shards <= 1<<20, "--shards must be 1 to 1048576")
	errs.Must(c.Senders >= 0 && c.Senders <= 1024, "--senders must be 0 to 1024")
	errs.Must(c.Rate >= 0, "--rate is negative")
	errs.Must(!c.Kill || c.Nodes > 2 && !c.Steady && c.Old == "",
		"--kill needs three nodes, and neither --steady nor --old")
	if c.Dashboard != "" {
		cfg := admin.DashboardConfig{Listen: c.Dashboard, Nodes: func() []admin.DashboardNode { return nil }}
		errs = append(errs, cli.About(cfg.Validate(), admin.ErrBadConfig, "Listen", "--dashboard"))
	}
	return errs.Err()
}

// changes reports whether a node joins and one leaves: not where there is one alone, nor beside nodes of another build,
// which may know no moves.
func (c *devCmd) changes() bool { return c.Nodes > 1 && !c.Steady && c.Old == "" }

// summary is the last line of kith dev.
type summary struct {
	Nodes         int     `json:"nodes"`
	Up            int     `json:"up"`     // when the senders stopped
	Joined        int     `json:"joined"` // while others sent
	Left          int     `json:"left"`
	Shards        uint32  `json:"shards"`
	ShardsPerNode []int   `json:"shards_per_node"` // when the senders stopped
	Moves         uint64  `json:"moves"`           // of shards, from a node that lived to another
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

// leaveLimit is how long one node may take to leave.
const leaveLimit = 30 * time.Second

var (
	errNotDelivered = errors.New("messages were lost, reordered or duplicated")
	errInterrupted  = errors.New("interrupted before the cluster had formed")
)

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
	seeds    []string

	mu    sync.Mutex
	nodes []*cli.Child // in the order of their starts; the first sum.Left have left
	ids   uint32       // of senders, so far
	dead  map[*cli.Child]bool
	pages []admin.DashboardNode
	most  int // shards that had a home when all nodes had joined

	died    chan *cli.Child
	sum     summary
	killed  killSummary // with --kill
	foreign uint64
	certs   fleet.Certs
	began   time.Time // when the senders started
}

// build is the program of the i-th process, empty for this one.
func (d *dev) build(i int) string {
	if i%2 == 1 {
		return d.cmd.Old
	}
	return ""
}

// form starts the processes and waits until every one sees all of them Up.
func (d *dev) form(ctx context.Context, e *env.Env) error {
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, fleet.FormLimit)
	defer cancel()
	first := d.cmd.Nodes
	if d.cmd.changes() {
		first--
	}
	for range first {
		if err := d.start(limited, e); err != nil {
			return d.early(ctx, err)
		}
	}
	if _, err := d.await(limited, func(all []status) bool { return allUp(all, first) }); err != nil {
		return d.early(ctx, fmt.Errorf("cluster did not form: %w", err))
	}
	d.sum.FormSeconds = cli.Seconds(begin)
	d.progress.Printf("%d nodes up after %.1f s", first, d.sum.FormSeconds)
	return nil
}

// start starts the next process, and its node.
func (d *dev) start(ctx context.Context, e *env.Env) error {
	i := len(d.children())
	o := e.Self("child", d.cmd.Verbose)
	o.Name, o.Path = fleet.Name(i), d.build(i)
	node, err := cli.Start(o)
	if err != nil {
		return err
	}
	var r startReply
	if err := node.Call(ctx, "start", d.startArgs(i), &r); err != nil {
		node.Kill()
		return err
	}
	d.mu.Lock()
	d.nodes = append(d.nodes, node)
	if r.Admin != "" {
		d.pages = append(d.pages, admin.DashboardNode{Name: node.Name(), Address: r.Admin})
	}
	d.mu.Unlock()
	d.progress.Printf("%s  process %d on %s", node.Name(), node.PID(), r.Addr)
	if i == 0 {
		d.seeds = []string{r.Addr} // a cluster of one, which the others join
	}
	return nil
}

// startArgs is how the i-th node is started. Another build is not asked for what the first ones did not know, since a
// child refuses arguments that it does not know: it shows no page of its node.
func (d *dev) startArgs(i int) startArgs {
	return startArgs{Admin: d.cmd.Dashboard != "" && d.build(i) == "", TLS: d.certs.Of(fleet.Name(i)),
		Name: devName, Listen: "127.0.0.1:0", Seeds: d.seeds, Shards: d.cmd.Shards,
		LeaveTimeout: leaveLimit}
}

// children returns the processes that have been started so far.
func (d *dev) children() []*cli.Child {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.nodes)
}

// await asks all nodes until they say what is waited for, and returns that.
func (d *dev) await(ctx context.Context, ok func([]status) bool) ([]status, error) {
	return fleet.Until(ctx, 50*time.Millisecond, d.status, ok)
}

// allUp reports whether all that have not left see so many nodes Up.
func allUp(all []status, n int) bool {
	return !slices.ContainsFunc(all, func(s status) bool { return !s.Left && s.Up != n })
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
	nodes := d.children()
	all := make([]status, len(nodes))
	return all, fleet.Each(nodes, func(i int, node *cli.Child) (err error) {
		all[i], err = d.statusOf(ctx, node)
		return err
	})
}

// send starts the senders, dealt out to the nodes in turn.
func (d *dev) send(ctx context.Context, _ *env.Env) error {
	nodes := d.children()
	d.began = time.Now()
	return fleet.Each(nodes, func(i int, node *cli.Child) error {
		return d.sendFrom(ctx, node, part(d.cmd.Senders, i, len(nodes)))
	})
}

// part is how many of n the i-th of so many gets.
func part(n, i, of int) int { return (n + of - 1 - i) / of }

// sendFrom starts n more senders on a node. Their numbers begin anew, so each is another sender.
func (d *dev) sendFrom(ctx context.Context, node *cli.Child, n int) error {
	a := sendArgs{Entities: d.cmd.Entities}
	d.mu.Lock()
	for range n {
		d.ids++
		a.Senders = append(a.Senders, d.ids)
	}
	d.mu.Unlock()
	if n > 0 {
		a.Rate = d.cmd.Rate / float64(d.cmd.Senders)
	}
	return node.Call(ctx, "send", a, nil)
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
		if sent, delivered, asks = sent+s.Sent, delivered+s.Delivered, asks+s.Asks; !s.Left {
			low = min(low, s.Up)
			shards += fmt.Sprintf(" %s:%d", fleet.Name(i), s.Shards)
		}
	}
	d.progress.Printf("%4.0fs  members up %d/%d  shards%s  %d msg/s  sent %d  delivered %d  asks %d",
		cli.Seconds(d.began), low, d.cmd.Nodes, shards, sent-before, sent, delivered, asks)
	return sent
}

var errAllKilled = errors.New("no node process is left")

// killSummary is the last line of kith dev --kill. A crash loses what was on the way, so nothing is said of losses.
type killSummary struct {
	Nodes         int     `json:"nodes"`
	Up            int     `json:"up"` // when the senders stopped
	Joined        int     `json:"joined"`
	Killed        int     `json:"killed"`
	Shards        uint32  `json:"shards"`
	ShardsPerNode []int   `json:"shards_per_node"` // when the senders stopped
	Sent          uint64  `json:"sent"`            // by those that lived to the end
	Asks          uint64  `json:"asks"`
	AskErrors     uint64  `json:"ask_errors"`
	FormSeconds   float64 `json:"form_s"`
	SendSeconds   float64 `json:"send_s"`
	HomeSeconds   float64 `json:"home_s,omitempty"` // from the kill until the shards of the killed node lived elsewhere
	LeaveSeconds  float64 `json:"leave_s"`
}

// bury notes that a process has ended, if that may be: a user who kills one sees the same as with --kill.
func (d *dev) bury(node *cli.Child) error {
	if !d.cmd.Kill {
		return fmt.Errorf("node process ended while it was needed: %w", orGone(node))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead[node] = true
	if len(d.dead) == len(d.nodes) {
		return errAllKilled
	}
	return nil
}

func (d *dev) isDead(node *cli.Child) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead[node]
}

// alive returns the processes that have not ended.
func (d *dev) alive() []*cli.Child {
	var list []*cli.Child
	for _, node := range d.children() {
		if !d.isDead(node) {
			list = append(list, node)
		}
	}
	return list
}

// statusOf asks one process; of one that is dead nothing counts any more.
func (d *dev) statusOf(ctx context.Context, node *cli.Child) (s status, err error) {
	if d.isDead(node) {
		return status{Left: true}, nil
	}
	if err = node.Call(ctx, "status", cli.None{}, &s); err == nil || !d.cmd.Kill {
		return s, err
	}
	select {
	case <-node.Done(): // that is why
		return status{Left: true}, d.bury(node)
	case <-ctx.Done():
		return s, err
	}
}
