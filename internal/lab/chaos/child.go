// The child: one node process with the entities and the load of a run. It answers calls on stdin.

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/internal/base/signals"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/lease"
)

// The exit codes of a child.
const (
	codeLeft   = 0 // it left, or closed its node, or its parent has gone
	codeFailed = 1 // it did not start
	codeEnded  = 3 // its cluster ended it: downed, removed, isolated
	codeNever  = 4 // it was not admitted in time
)

// startArgs says how a node is started.
type startArgs struct {
	Node              string // its name in logs
	Cluster           string
	Listen, Advertise string
	Seeds             []string
	Insecure          bool
	Sender            uint32 // number of this process
	Dir, Store        string
	Zero              time.Duration // of the run's clock
	Load              Load
	Proof             bool // kith.Config.Sharding.ProcessDeathIsProof
	Unproven          bool // kith.Config.Sharding.NoLockProof
	Patience          kith.Patience
	StableAfter       time.Duration // kith.Config.Resolver.StableAfter
	Admin             bool          // serves an admin interface on a free port of its own loopback
	Trace             bool          // logs at level debug
	Session           sessionArgs
	Tenure            kith.Tenure
}

// startReply says which shard each entity belongs to, and where the admin interface is.
type startReply struct {
	Shards []uint32
	Admin  string `json:",omitempty"`
}

// joinTime is how long a node may wait to be admitted before it ends and its supervisor starts it again.
const joinTime = 40 * time.Second

// child is the state of the process.
type child struct {
	stderr io.Writer
	clock  cli.Clock
	args   startArgs
	node   fleet.Node
	load   *load
	late   atomic.Int64 // the longest that this process stood still lately, in nanoseconds
	closes atomic.Bool  // its node was closed
	log    *slog.Logger
	logged *logs.Queue
	kinds  []lease.Kind // of stores of sessions, beside those that every program has
}

// Child answers calls until the parent has gone. It ends the process when the node's membership ends. Its node may hold
// sessions in stores of these kinds, beside those that every program has.
func Child(stdin io.Reader, stdout, stderr io.Writer, kinds ...lease.Kind) error {
	c := &child{stderr: stderr, kinds: kinds}
	return c.node.Serve(stdin, stdout, cli.Ops{"start": cli.Op(c.start), "status": cli.Op(c.status),
		"leave": cli.Op(c.leave), "close": cli.Op(c.shut), "quiet": cli.Op(c.quiet), "slow": cli.Op(c.slow),
		"move": cli.Op(c.move), "drain": cli.Op(c.drain), "undrain": cli.Op(c.undrain),
		"stick": cli.Op(c.stick)})
}

// logger writes records with the time of the run's clock.
func (c *child) logger() slog.Handler {
	level := slog.LevelInfo
	if c.args.Trace {
		level = slog.LevelDebug
	}
	return slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.String(slog.TimeKey, fmt.Sprintf("%.3f", c.clock.Now().Seconds()))
			}
			return a
		}})
}

func (c *child) start(ctx context.Context, a startArgs) (r startReply, err error) {
	if c.node.Node != nil {
		return r, errors.New("started already")
	}
	c.args, c.clock = a, cli.NewClock(a.Zero)
	c.logged = logs.New(c.logger())
	c.log = c.logged.Logger()
	if c.load, err = newLoad(c); err != nil {
		return r, err
	}
	session, err := a.Session.open(ctx, c.kinds)
	if err != nil {
		return r, err
	}
	c.node.Node, err = kith.Start(ctx, kith.Config{Name: a.Cluster, Listen: a.Listen, Advertise: a.Advertise,
		Seeds: a.Seeds, Insecure: a.Insecure, Logger: c.log, JoinTimeout: joinTime, LeaveTimeout: leaveTime,
		Directory: kept(a.Dir, a.Node), Undelivered: c.load.undelivered,
		Patience: a.Patience, Resolver: kith.Resolver{StableAfter: a.StableAfter},
		Sharding: kith.Sharding{ProcessDeathIsProof: a.Proof, NoLockProof: a.Unproven, DrainTime: drainTime,
			Session: session, Tenure: a.Tenure}})
	if err != nil {
		return r, err
	}
	if err := c.load.register(c.node.Node); err != nil {
		return r, err
	}
	if a.Admin { // it ends with the process, as that of kith run does
		s, err := admin.Start(c.node.Node, admin.Config{Listen: "127.0.0.1:0", Logger: c.log})
		if err != nil {
			return r, err
		}
		r.Admin = s.Addr().String()
	}
	told := signals.Heed(func(sig os.Signal) {
		c.log.Warn("told again to end: the leave goes on", "event", "node-told-again", "signal", sig.String())
	})
	context.AfterFunc(told.Told(), c.depart)
	go c.watch()
	go c.end()
	go c.load.noteMoves(c.node.Node)
	go c.load.run(c.node.Node)
	r.Shards = c.load.shards()
	return r, nil
}

// watch notes how long the process stands still.
func (c *child) watch() {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for before := time.Now(); ; before = time.Now() {
		<-tick.C
		if d := int64(time.Since(before)); d > c.late.Load() {
			c.late.Store(d)
		}
	}
}

// end ends the process with the membership of its node: a supervisor starts it again.
func (c *child) end() {
	<-c.node.Done()
	if !c.closes.Load() { // Close is no shutdown
		<-c.node.ShutdownDone()
	}
	code := codeEnded
	switch reason := c.node.ShutdownReason(); {
	case c.closes.Load() || reason == kith.ReasonLeft || reason == kith.ReasonSignal:
		code = codeLeft
	case reason == kith.ReasonJoinUnsuccessful:
		code = codeNever
	}
	c.log.Warn("process ends", "event", "process-ends", "code", code, "reason", fmt.Sprint(c.node.Err()))
	c.logged.Flush(logs.FlushTime)
	os.Exit(code)
}

// leaveTime bounds how long entities may take to stop when a node leaves.
const leaveTime = 15 * time.Second

// leaveArgs says how long each Blocking call takes while the node leaves.
type leaveArgs struct{ Slow time.Duration }

// leave begins to leave; the process ends when that is over.
func (c *child) leave(ctx context.Context, a leaveArgs) (cli.None, error) {
	_, _ = c.slow(ctx, slowArgs{a.Slow, math.MaxInt64 / 2})
	go c.depart()
	return cli.None{}, nil
}

// depart leaves.
func (c *child) depart() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*leaveTime)
	defer cancel()
	_ = c.node.Leave(ctx)
}

// stickArgs says for how long nobody reads what the process logs.
type stickArgs struct{ For time.Duration }

// stick puts a pipe that is full in the place of stderr, so that a writer to it stands still; then what has come is
// read, and stderr is itself again.
func (c *child) stick(_ context.Context, a stickArgs) (cli.None, error) {
	var ends [2]int
	kept, err := unix.Dup(unix.Stderr)
	if err == nil {
		err = unix.Pipe(ends[:])
	}
	if err == nil {
		err = fill(ends[1])
	}
	if err == nil {
		err = unix.Dup2(ends[1], unix.Stderr)
	}
	if err != nil {
		return cli.None{}, err
	}
	_ = unix.Close(ends[1])
	go func() {
		time.Sleep(a.For)
		_ = unix.Dup2(kept, unix.Stderr)
		out, in := os.NewFile(uintptr(kept), "stderr"), os.NewFile(uintptr(ends[0]), "pipe")
		_, _ = io.Copy(out, in)
		_, _ = in.Close(), out.Close()
	}()
	return cli.None{}, nil
}

// fill writes to a pipe until there is no room.
func fill(fd int) error {
	line := []byte(strings.Repeat(".", 63) + "\n")
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	for _, part := range [][]byte{line, line[len(line)-1:]} {
		for {
			if _, err := unix.Write(fd, part); errors.Is(err, unix.EAGAIN) {
				break
			} else if err != nil {
				return err
			}
		}
	}
	return unix.SetNonblock(fd, false)
}

// shut closes the node without leaving; the process ends when that is over.
func (c *child) shut(context.Context, cli.None) (cli.None, error) {
	c.closes.Store(true)
	go func() { _ = c.node.Close() }()
	return cli.None{}, nil
}

func (c *child) quiet(context.Context, cli.None) (cli.None, error) {
	c.load.stop()
	return cli.None{}, nil
}

// slowArgs says how long each Blocking call takes, and for how long that is so.
type slowArgs struct{ By, For time.Duration }

func (c *child) slow(_ context.Context, a slowArgs) (cli.None, error) {
	c.load.slowUntil.Store(int64(c.clock.Now() + a.For))
	c.load.slowBy.Store(int64(a.By))
	return cli.None{}, nil
}

// moveArgs says which shard of the Blocking type goes where.
type moveArgs struct {
	Shard uint32
	To    string
}

var errNoMember = errors.New("no member at that address")

// move begins a move by hand.
func (c *child) move(ctx context.Context, a moveArgs) (cli.None, error) {
	for _, m := range c.node.View().Members {
		if m.ID.Addr.String() == a.To {
			return cli.None{}, c.load.regions[0].Move(ctx, kith.ShardID(a.Shard), m.ID)
		}
	}
	return cli.None{}, fmt.Errorf("%w: %s", errNoMember, a.To)
}

// drain begins a drain, which goes on until undrain.
func (c *child) drain(context.Context, cli.None) (cli.None, error) {
	go func() { _ = c.node.Drain(c.load.ctx) }()
	return cli.None{}, nil
}

func (c *child) undrain(ctx context.Context, _ cli.None) (cli.None, error) {
	return cli.None{}, c.node.Undrain(ctx)
}

// seen is one member in the view of another.
type seen struct {
	Addr        string
	Incarnation uint64
	Status      string
	Up          uint32 // its up-number
	Unreachable bool
}

// status is what a process reports of itself a few times a second.
type status struct {
	Cluster uint64 // zero before it is a member
	Self    string
	Up      bool // it sees itself Up
	Members []seen
	Leader  string // address
	Oldest  string
	Hosted  int
	Decided int           // what its resolver has decided so far
	Ended   string        // why the membership is over
	Late    time.Duration // the longest that the process stood still since the last call
}

func (c *child) status(context.Context, cli.None) (status, error) {
	if c.node.Node == nil {
		return status{}, errors.New("not started")
	}
	v := c.node.View()
	s := status{Cluster: v.ClusterID, Self: v.Self.Addr.String(), Late: time.Duration(c.late.Swap(0)),
		Decided: len(c.node.Decisions())}
	if err := c.node.Err(); err != nil {
		s.Ended = err.Error()
	}
	if (v.Leader != kith.ID{}) {
		s.Leader = v.Leader.Addr.String()
	}
	if m, ok := v.Oldest(""); ok {
		s.Oldest = m.ID.Addr.String()
	}
	for _, m := range v.Members {
		s.Members = append(s.Members, seen{m.ID.Addr.String(), m.ID.Inc, m.Status.String(), m.UpNumber,
			!v.Reachable(m.ID)})
		s.Up = s.Up || m.ID == v.Self && m.Status == kith.Up
	}
	for _, t := range c.node.Stats().Types {
		s.Hosted += t.Hosted
	}
	return s, nil
}

// kept returns the directory of a node: what it remembers of its cluster, and its flight records.
func kept(dir, node string) string { return filepath.Join(dir, "keep-"+node) }

// journals returns where a process keeps its two journals.
func journals(dir string, sender uint32) (sent, handled string) {
	return filepath.Join(dir, fmt.Sprintf("sent-%d", sender)), filepath.Join(dir, fmt.Sprintf("handled-%d", sender))
}

// movesJournal is where a process notes its moves.
func movesJournal(dir string, sender uint32) string {
	return filepath.Join(dir, fmt.Sprintf("moves-%d", sender))
}
