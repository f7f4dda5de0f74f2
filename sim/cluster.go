// Cluster: the kit for tests of your own entities on a simulated cluster.

package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
)

// TB is what Cluster needs of a test: *testing.T, *testing.B and *testing.F are one.
type TB interface {
	Helper()
	Name() string
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
	Cleanup(f func())
}

// patience is how much virtual time the waiting calls of Cluster give.
const patience = 2 * time.Minute

// Option changes the configuration of a Cluster.
type Option func(*Config)

// With returns an option that edits the configuration as a whole.
func With(edit func(*Config)) Option { return edit }

// Cluster is a simulated cluster: nodes with virtual clocks, a network that can be broken, the embedder's own entity
// types, and checkers that watch the promises of the library at every step. Nodes are numbered from 0. It runs in the
// test's goroutine, time stands still between calls, and nothing here is safe for concurrent use.
//
// A broken promise fails the test when it ends, whatever the test itself looks at. A failing test prints the seed, and
// the file that holds the trace.
type Cluster struct {
	t      TB
	w      *world.World
	check  *check.Checker
	seed   uint64
	events [][]membership.Event
}

// New returns a cluster of n nodes (1 to 64) that have started and are joining; AwaitUp waits until they have.
func New(t TB, n int, seed uint64, options ...Option) *Cluster {
	t.Helper()
	if n < 1 || n > 64 {
		t.Fatalf("sim: a cluster of %d nodes, must be 1 to 64", n)
	}
	cfg := Config{Text: true}
	for _, o := range options {
		o(&cfg)
	}
	w, check := check.NewWorld(n, seed, cfg)
	c := &Cluster{t: t, w: w, check: check, seed: seed, events: make([][]membership.Event, n)}
	c.w.OnMember = func(p *world.Process, e membership.Event) { c.events[p.Index] = append(c.events[p.Index], e) }
	t.Cleanup(c.close)
	for i := range n {
		c.w.Start(i, c.w.Seeds(c.seedOrder()))
	}
	return c
}

// seedOrder is the list of contact points that every node is given: the first three.
func (c *Cluster) seedOrder() []int {
	var order []int
	for i := range min(3, len(c.w.Hosts)) {
		order = append(order, i)
	}
	return order
}

func (c *Cluster) close() {
	c.t.Helper()
	for _, v := range c.check.Violations {
		c.t.Errorf("sim: broken promise at %s", v)
	}
	if c.t.Failed() {
		c.t.Logf("sim: seed %d; trace in %s", c.seed, c.writeTrace())
	}
	c.w.End()
}

func (c *Cluster) writeTrace() string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\: `, r) {
			return '-'
		}
		return r
	}, c.t.Name())
	path := filepath.Join(os.TempDir(), fmt.Sprintf("kith-sim-%s-%d.txt", name, c.seed))
	if err := os.WriteFile(path, []byte(c.w.Text()), 0o600); err != nil {
		return err.Error()
	}
	return path
}

// Wait lets d of virtual time pass for the Blocking handler, the Keep.Run or the Type.Hosted that calls it; time goes
// on for all.
func (c *Cluster) Wait(d time.Duration) {
	if p := c.w.Acting; p != nil {
		p.Dawdle(d)
	}
}

// Acting returns the number of the node with the handler that calls it, -1 when none does.
func (c *Cluster) Acting() int {
	if p := c.w.Acting; p != nil {
		return p.Index
	}
	return -1
}

// World returns what the cluster is made of, for packages of kith that run in it, as durabletest. It is no part of what
// embedders may rely on.
func (c *Cluster) World() any { return c.w }

// Now returns the virtual time since the cluster was made.
func (c *Cluster) Now() time.Duration { return c.w.Now }

// Advance lets d of virtual time pass.
func (c *Cluster) Advance(d time.Duration) { c.w.Advance(d) }

// Until lets time pass until done reports true, at most d, and returns whether it did.
func (c *Cluster) Until(d time.Duration, done func() bool) bool { return c.w.Until(d, done) }

// AwaitUp waits until all running nodes are Up, reachable, and agree on it. It fails the test after two minutes of
// virtual time.
func (c *Cluster) AwaitUp() {
	c.t.Helper()
	if !c.w.Until(patience, c.w.Converged) {
		c.t.Fatalf("sim: not converged after %v: %s", patience, c.w.WhyNotConverged())
	}
}

// Partition cuts the network between groups of nodes; within a group all goes on. A node in no group keeps every
// connection. Connections that bear a cut for Network.Break are broken.
func (c *Cluster) Partition(groups ...[]int) {
	c.w.Fault(0, fmt.Sprintf("partition %v", groups))
	for g, left := range groups {
		for _, right := range groups[g+1:] {
			for _, a := range left {
				for _, b := range right {
					c.w.Net.Cuts[a][b], c.w.Net.Cuts[b][a] = true, true
				}
			}
		}
	}
}

// CutOneWay lets nothing from a reach b; the other way goes on.
func (c *Cluster) CutOneWay(a, b int) {
	c.w.Fault(a, fmt.Sprintf("cut n%d->n%d", a+1, b+1))
	c.w.Net.Cuts[a][b] = true
}

// Heal ends all cuts.
func (c *Cluster) Heal() {
	c.w.Fault(0, "heal")
	c.w.Net.Heal()
}

// Pause stops the process of node n for d, as a stopped container: its clock goes on, it does nothing, and when it goes
// on, everything that came meanwhile happens at once.
func (c *Cluster) Pause(n int, d time.Duration) { c.proc(n).Pause(d) }

// Crash kills the process of node n; the host answers its peers with resets. What was in flight is lost.
func (c *Cluster) Crash(n int) { c.proc(n).Crash(true) }

// PowerOff ends node n with its host: its peers hear nothing any more.
func (c *Cluster) PowerOff(n int) { c.proc(n).Crash(false) }

// Restart starts a new process at the address of node n, after killing the old one if it still runs.
func (c *Cluster) Restart(n int) {
	p := c.proc(n)
	p.Crash(true)
	c.w.Watcher.Excuse(p.ID)
	c.w.Start(n, c.w.Seeds(c.seedOrder()))
}

// Leave lets node n leave gracefully: its shards are stopped and given back, then it goes. Advance or Until lets it
// happen; Running tells when it is over.
func (c *Cluster) Leave(n int) {
	c.w.Fault(n, "leave")
	c.w.Leave(c.proc(n))
}

// Down lets node on mark node target as down, as an operator does. Nobody takes that back: only do it to a node that is
// gone for good, or as a test of what fences are for.
func (c *Cluster) Down(on, target int) error {
	id := c.proc(target).ID
	c.w.Watcher.Excuse(id)
	c.w.Fault(on, fmt.Sprintf("down n%d", target+1))
	return c.proc(on).Command(membership.DownCommand{ID: id})
}

// Running reports whether the process of node n lives.
func (c *Cluster) Running(n int) bool { return c.proc(n).Alive }

// Ended returns why the membership of node n's latest process ended, nil while it has not.
func (c *Cluster) Ended(n int) *membership.Ended { return c.proc(n).Ended }

// Health says where node n stands, as Node.Health does; Since is on the node's own clock.
func (c *Cluster) Health(n int) membership.Health { return c.proc(n).Node.Health() }

// Suspensions counts the times in which the latest process of node n handled no message, as Stats().Suspension does.
func (c *Cluster) Suspensions(n int) (count uint64, total time.Duration) {
	s := c.proc(n).Node.Counts().Suspensions
	return s.Count, s.Total
}

// View returns the newest membership snapshot of node n, nil before the first.
func (c *Cluster) View(n int) *membership.View { return c.proc(n).View }

// Events returns all membership events that node n has seen, over all its processes.
func (c *Cluster) Events(n int) []membership.Event { return c.events[n] }

// Tell sends a message from node on, as Region.Tell does: accepted, or a typed error. Time does not pass. Any worker of
// a pool gets what has no id.
func (c *Cluster) Tell(on int, typ, id string, payload []byte) error {
	r := c.proc(on).Region(route.TypeOf(typ))
	if r == nil {
		return fmt.Errorf("%w: %s", route.ErrNotRegistered, typ)
	}
	if id == "" && r.Pooled() {
		return world.TellAny(nil, r, payload)
	}
	_, err := r.Send(id, payload, 0)
	return err
}

// Ask asks an entity from node on and lets time pass until the answer comes, at most two minutes.
func (c *Cluster) Ask(on int, typ, id string, payload []byte) ([]byte, error) {
	return c.AskWithin(patience, on, typ, id, payload)
}

// AskWithin is Ask with a time limit, after which it returns route.ErrTimeout.
func (c *Cluster) AskWithin(d time.Duration, on int, typ, id string, payload []byte) (reply []byte, err error) {
	return c.ask(d, d, on, typ, id, payload)
}

// AskGivenUp is Ask by an asker that gives up after d, as when its context is cancelled then: the error is that of
// Region.Ask, and the handler's Context ends as soon as its node can know.
func (c *Cluster) AskGivenUp(d time.Duration, on int, typ, id string, payload []byte) ([]byte, error) {
	return c.ask(patience, d, on, typ, id, payload)
}

// ask asks with a time limit and gives up after a while, unless that is the same.
func (c *Cluster) ask(d, after time.Duration, on int, typ, id string, payload []byte) (reply []byte, err error) {
	r := c.proc(on).Region(route.TypeOf(typ))
	switch {
	case r == nil:
		return nil, route.ErrNotRegistered
	case id == "" && r.Pooled():
		return r.AskAny(d, func(left time.Duration, id string) ([]byte, error) {
			return c.askOne(r, left, after-(d-left), id, payload)
		})
	}
	return c.askOne(r, d, after, id, payload)
}

// askOne is ask of one entity.
func (c *Cluster) askOne(r *world.Region, d, after time.Duration, id string, payload []byte) (reply []byte, err error) {
	over := false
	giveUp, sent := r.AskWith(nil, d, id, payload, func(b []byte, e error) { reply, err, over = b, e, true })
	if sent != nil {
		return nil, route.NotRun(sent)
	}
	if after < d && !c.w.Until(after, func() bool { return over }) {
		giveUp()
	}
	if !c.w.Until(d+time.Second, func() bool { return over }) {
		return nil, fmt.Errorf("%w: node %d does not run", route.ErrTimeout, r.Process.Index)
	}
	return reply, err
}

// Owner returns the node on which the entity lives, -1 when it lives nowhere. An owner that does not know yet that it
// was marked down is not counted.
func (c *Cluster) Owner(typ, id string) int {
	t := c.w.TypeOf(route.TypeOf(typ))
	if t == nil {
		c.t.Fatalf("sim: type %q is not registered", typ)
	}
	n, err := t.ShardOf(id)
	if err != nil {
		c.t.Fatalf("sim: %v", err)
	}
	homes, _ := c.check.Homes(world.ShardKey{Type: route.TypeOf(typ), Shard: n})
	if len(homes) == 0 {
		return -1
	}
	return homes[len(homes)-1].Index
}

// AtMostOne fails the test if an entity of the type lives on two nodes now. Owners that have not heard yet that they
// are down do not count here: their writes are what fences refuse.
func (c *Cluster) AtMostOne(typ string) {
	c.t.Helper()
	t := c.w.TypeOf(route.TypeOf(typ))
	if t == nil {
		c.t.Fatalf("sim: type %q is not registered", typ)
	}
	if twice, notTold := c.check.AtMostOne(route.TypeOf(typ), t.Shards); twice > 0 {
		c.t.Errorf("sim: %d shards of %q live on two nodes (%d more on nodes that do not know they are down)", twice, typ,
			notTold)
	}
}

func (c *Cluster) proc(n int) *world.Process {
	c.t.Helper()
	if n < 0 || n >= len(c.w.Hosts) {
		c.t.Fatalf("sim: node %d of %d", n, len(c.w.Hosts))
	}
	return c.w.Hosts[n].Process
}
