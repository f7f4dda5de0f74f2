// The child: one node process, with a partition of each hand-off, its senders, and what its instances have handled. It
// answers calls on stdin.

package instances

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/partition"
)

// handoffs are the partitions of a run, by path: one of each hand-off that there is, in the order of
// docs/partitions.md.
var handoffs = map[string]partition.Handoff{
	"stateless":     partition.Stateless,                              // 2a 3a 4a
	"forwards":      {Old: cluster.OldForwards},                       // 2b 3a 4a
	"drops":         {Old: cluster.OldDrops},                          // 2c 3a 4a
	"late-drops":    {Late: cluster.LateDrops},                        // 2a 3a 4b
	"lossy":         partition.Lossy,                                  // 2c 3a 4b
	"ordered":       partition.Ordered,                                // 2b 3b 4a
	"buffers":       {New: cluster.NewBuffers},                        // 2a 3b 4a
	"drops-buffers": {Old: cluster.OldDrops, New: cluster.NewBuffers}, // 2c 3b 4a
}

// startArgs says how a node is started.
type startArgs struct {
	Seeds     []string
	Listen    string
	Advertise string
	Sender    int // number of the process, below 256
	Instances int
	Zero      time.Duration // of the run's clock
}

// to is an instance that is sent to.
type to struct {
	Path string
	Slot int
}

// numbers are messages of one sender, From to To, that an instance has handled one behind the other.
type numbers struct {
	Sender   int
	From, To uint32
	At       time.Duration // the first of them
}

// life is what an instance has handled in one process.
type life struct {
	to
	First, Last time.Duration // message
	Got         []numbers
}

// report is what a process has done.
type report struct {
	Lives []life
	Back  map[string][]uint32 // messages that came back, by path and slot
	Sent  map[string]uint32   // likewise, of this process: the last number
}

// child is the state of the process. start comes before every other call.
type child struct {
	stderr io.Writer
	node   fleet.Node
	clock  cli.Clock
	sender int
	parts  map[string]*partition.Partition
	end    context.CancelFunc
	ended  sync.WaitGroup

	mu    sync.Mutex
	lives []*life
	back  map[string][]uint32
	sent  map[string]uint32
}

// Child answers calls until the parent has closed stdin, or has gone.
func Child(stdin io.Reader, stdout, stderr io.Writer) error {
	c := &child{stderr: stderr, parts: map[string]*partition.Partition{}, back: map[string][]uint32{},
		sent: map[string]uint32{}}
	return c.node.Serve(stdin, stdout, cli.Ops{"start": cli.Op(c.start), "known": cli.Op(c.known),
		"begin": cli.Op(c.begin), "end": cli.Op(c.stop), "report": cli.Op(c.report), "move": cli.Op(c.move),
		"hosts": cli.Op(c.hosts), "leave": cli.Op(c.node.Depart)})
}

func key(path string, slot int) string { return fmt.Sprintf("%s/%d", path, slot) }

func (c *child) start(ctx context.Context, a startArgs) (string, error) {
	c.clock, c.sender = cli.NewClock(a.Zero), a.Sender
	node, err := kith.Start(ctx, kith.Config{Name: "instances", Listen: a.Listen, Advertise: a.Advertise,
		Insecure: true, Seeds: a.Seeds, // in namespaces of its own, or on loopback
		Logger: slog.New(slog.NewTextHandler(c.stderr, nil))})
	if err != nil {
		return "", err
	}
	c.node.Node = node
	for path, h := range handoffs { // each on its own: the order does not show
		p, err := partition.Open(node, partition.Config{Path: path, Instances: partition.Exactly(a.Instances), Handoff: h,
			New: func(slot int, _ kith.Fence) kith.Handler { return c.newLife(path, slot) },
			Refused: func(r partition.Refused) {
				c.mu.Lock()
				defer c.mu.Unlock()
				k := key(r.Path, r.Slot)
				c.back[k] = append(c.back[k], binary.LittleEndian.Uint32(r.Payload[1:]))
			}})
		if err != nil {
			return "", err
		}
		c.parts[path] = p
	}
	return node.Addr().String(), node.Ready(ctx)
}

func (c *child) newLife(path string, slot int) kith.Handler {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &life{to: to{path, slot}}
	c.lives = append(c.lives, l)
	return &instance{c: c, l: l}
}

// instance notes what it gets.
type instance struct {
	c *child
	l *life
}

// Receive notes a message.
func (i *instance) Receive(_ *kith.Context, payload []byte) error {
	n, now := binary.LittleEndian.Uint32(payload[1:]), i.c.clock.Now()
	i.c.mu.Lock()
	defer i.c.mu.Unlock()
	if len(i.l.Got) == 0 {
		i.l.First = now
	}
	i.l.Last = now
	for k := len(i.l.Got) - 1; k >= 0; k-- {
		if g := &i.l.Got[k]; g.Sender == int(payload[0]) {
			if g.To+1 == n {
				g.To = n
				return nil
			}
			break
		}
	}
	i.l.Got = append(i.l.Got, numbers{int(payload[0]), n, n, now})
	return nil
}

// Stop has nothing to do.
func (*instance) Stop(*kith.Context) {}

// known waits until all instances are placed, and can be reached from here.
func (c *child) known(ctx context.Context, _ cli.None) (cli.None, error) {
	for _, p := range c.parts { // in any order: all of them
		if err := p.Known(ctx); err != nil {
			return cli.None{}, err
		}
	}
	return cli.None{}, nil
}

// begin sends so many messages a second to each instance until it is ordered to end.
func (c *child) begin(_ context.Context, rate float64) (cli.None, error) {
	ctx, end := context.WithCancel(context.Background())
	c.end = end
	for path, p := range c.parts { // each on its own: the order does not show
		s, _ := p.Table()
		for slot := range s.Instances {
			c.ended.Go(func() { c.send(ctx, path, slot, rate) })
		}
	}
	return cli.None{}, nil
}

// send sends to one instance. What is not accepted is tried again, so that numbers have no gaps.
func (c *child) send(ctx context.Context, path string, slot int, rate float64) {
	c.mu.Lock()
	n := c.sent[key(path, slot)]
	c.mu.Unlock()
	payload := make([]byte, 5)
	payload[0] = byte(c.sender)
	began, first := time.Now(), n
	for cli.Pause(ctx, 5*time.Millisecond) {
		for due := first + uint32(rate*time.Since(began).Seconds()); n < due; n++ {
			binary.LittleEndian.PutUint32(payload[1:], n+1)
			if c.parts[path].TellAt(slot, payload) != nil {
				break
			}
		}
	}
	c.mu.Lock()
	c.sent[key(path, slot)] = n
	c.mu.Unlock()
}

// stop ends the senders.
func (c *child) stop(context.Context, cli.None) (cli.None, error) {
	if c.end != nil {
		c.end()
		c.ended.Wait()
	}
	return cli.None{}, nil
}

// report tells what was done until now.
func (c *child) report(context.Context, cli.None) (r report, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r = report{Back: maps.Clone(c.back), Sent: maps.Clone(c.sent)}
	for _, l := range c.lives {
		one := *l
		one.Got = append([]numbers(nil), l.Got...)
		r.Lives = append(r.Lives, one)
	}
	return r, nil
}

// moveArgs names an instance and the address of the node that is to have it.
type moveArgs struct {
	to
	Addr string
}

func (c *child) move(ctx context.Context, a moveArgs) (cli.None, error) {
	for _, m := range c.node.View().Members {
		if m.ID.Addr.String() == a.Addr {
			return cli.None{}, c.parts[a.Path].Move(ctx, a.Slot, m.ID)
		}
	}
	return cli.None{}, fmt.Errorf("no member at %s", a.Addr)
}

// hosts returns the addresses of the nodes of all instances by path, as this node sees them; empty where something is
// being handed over, or instances are missing.
func (c *child) hosts(context.Context, cli.None) (map[string][]string, error) {
	all := map[string][]string{}
	for path, p := range c.parts { // into a map
		s, _ := p.Table()
		list := []string{}
		for _, id := range s.Instances {
			list = append(list, id.Addr.String())
		}
		if len(s.Changes) > 0 || s.Has() < s.Wanted || s.Epoch == 0 {
			list = nil
		}
		all[path] = list
	}
	return all, c.node.Err()
}
