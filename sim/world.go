// World: the virtual clock, the hosts and their processes, the network, the checkers. One thread steps it.

package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/flow"
	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// One seed feeds several generators, one per purpose, so that a change in what one draws does not shift the others.
const (
	purposeNetwork uint64 = iota + 1
	purposeHosts
	_ // storms draw from 3 and 4, and from 100 on
	_
	purposeDisk
	purposeWork
)

// basePort is the port of every simulated node; the hosts are 10.0.0.1 and up.
const basePort = 7355

// wallBase is the wall clock, in milliseconds since 1970, at which every simulated world begins.
const wallBase = 1_800_000_000_000

// Config is what a simulated cluster is made of. The zero value of a field takes its default.
type Config struct {
	Network    Network
	Membership membership.Config
	Shard      shard.Config
	Data       DataConfig
	// ProcessDeathIsProof is node.Config's.
	ProcessDeathIsProof bool
	Roles               [][]string    // by node index; a node beyond the list has no roles
	Drift               int64         // millionths by which a process's clock runs fast or slow at most; 0 to 100,000
	Resolver            node.Resolver // the zero value is keep-majority, on
	Courier             node.CourierConfig
	// Records has every host keep what its process remembers of its cluster, for the next one there: no second cluster is
	// formed then. Without it a first seed that is restarted while it is cut off forms one.
	Records bool
	Text    bool // keep a trace that people can read
}

// world is one simulated cluster. Nothing in it is safe for concurrent use.
type world struct {
	cfg       Config
	now       time.Duration
	queue     queue
	steps     uint64
	net       *network
	trace     *trace
	check     watcher
	plane     PlaneCounts // what was met of the data plane beyond the fast path
	book      ledger      // of user messages
	hosts     []*host
	procs     []*proc // every process that ever ran, in the order of their starts
	hostRand  *rand.Rand
	diskRand  *rand.Rand
	workRand  *rand.Rand
	onEvent   func(p *proc, line string)   // scripts listen here
	acting    *proc                        // whose handlers run now
	onUnknown func(*region, route.ShardID) // the home of a shard elsewhere is about to become unknown
	onMember  func(p *proc, e membership.Event)
	onEnd     func(p *proc) // a process whose membership is over has stopped
	types     []*entityType
	arena     []byte
	lease     leaseKeeper
	forms     struct{ never, anew bool } // how processes are started now: JoinCommand.NeverForm and FormNew
}

// rolesOf returns the roles of a host's processes.
func (c *Config) rolesOf(host int) []string {
	if host < len(c.Roles) {
		return c.Roles[host]
	}
	return nil
}

// host is a machine: an address at which one process runs at a time.
type host struct {
	addr   peer.Addr
	proc   *proc         // the latest, nil before the first
	resets bool          // a crashed process's connections are reset; otherwise they fall silent
	birth  uint64        // highest birth of a cluster that a process here was in: what a node keeps in its store
	wall   time.Duration // how far its wall clock was set off
	record membership.Record
}

// newWorld returns a world of n hosts on which nothing runs yet, watched by what watch returns for it.
func newWorld(n int, seed uint64, cfg Config, watch func(*world) watcher) *world {
	cfg.Data = cfg.Data.withDefaults()
	w := &world{
		cfg:      cfg,
		net:      newNetwork(n, cfg.Network, seed),
		trace:    newTrace(cfg.Text),
		hostRand: rand.New(rand.NewPCG(seed, purposeHosts)),
		diskRand: rand.New(rand.NewPCG(seed, purposeDisk)),
		workRand: rand.New(rand.NewPCG(seed, purposeWork)),
	}
	w.check = watch(w)
	for i := range n {
		addr := peer.MustAddr(fmt.Sprintf("10.0.0.%d:%d", i+1, basePort))
		w.hosts = append(w.hosts, &host{addr: addr})
	}
	return w
}

// step runs the next event; it reports false when nothing is planned before or at the limit.
func (w *world) step(limit time.Duration) bool {
	at, ok := w.queue.next()
	if !ok || at > limit {
		return false
	}
	e := w.queue.pop()
	w.now = e.at
	w.steps++
	e.run()
	return true
}

// advance runs everything up to and at now + d.
func (w *world) advance(d time.Duration) {
	end := w.now + d
	for w.step(end) {
	}
	w.now = end
}

// until runs events until done reports true, at most for d of virtual time. It returns whether done did.
func (w *world) until(d time.Duration, done func() bool) bool {
	end := w.now + d
	for !done() {
		if !w.step(end) {
			w.now = end
			return done()
		}
	}
	return true
}

func (w *world) after(d time.Duration, run func()) { w.queue.push(w.now+d, run) }

func (w *world) indexOf(a peer.Addr) (int, bool) {
	i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.addr == a })
	return i, i >= 0
}

// name prints an identity as n1, or n1#2 for the second process at that host.
func (w *world) name(id peer.ID) string {
	if id.IsZero() {
		return "none"
	}
	i, ok := w.indexOf(id.Addr)
	if !ok {
		return id.String()
	}
	if id.Inc == 0 {
		return fmt.Sprintf("n%d?", i+1)
	}
	nth := 0
	for _, p := range w.procs {
		if p.idx == i {
			nth++
			if p.id == id {
				break
			}
		}
	}
	if nth <= 1 {
		return fmt.Sprintf("n%d", i+1)
	}
	return fmt.Sprintf("n%d#%d", i+1, nth)
}

func (w *world) nameOf(p *proc) string {
	if p == nil {
		return "no node"
	}
	return w.name(p.id)
}

// keep copies b into memory that lives as long as somebody points to it.
func (w *world) keep(b []byte) []byte {
	if len(b) > cap(w.arena)-len(w.arena) {
		w.arena = make([]byte, 0, max(64<<10, len(b)))
	}
	at := len(w.arena)
	w.arena = append(w.arena, b...)
	return w.arena[at:len(w.arena):len(w.arena)]
}

// process finds a process by its identity.
func (w *world) process(id peer.ID) *proc {
	for i := len(w.procs) - 1; i >= 0; i-- {
		if w.procs[i].id == id {
			return w.procs[i]
		}
	}
	return nil
}

// running returns the processes that are alive and whose membership has not ended, in host order.
func (w *world) running() []*proc {
	var list []*proc
	for _, h := range w.hosts {
		if h.proc != nil && h.proc.alive {
			list = append(list, h.proc)
		}
	}
	return list
}

// seeds returns the contact points: every host's address, those of first in front.
func (w *world) seeds(order []int) []peer.Addr {
	var list []peer.Addr
	for _, i := range order {
		list = append(list, w.hosts[i].addr)
	}
	return list
}

// addType makes a type known to all processes, those to come included.
func (w *world) addType(t *entityType) {
	w.types = append(w.types, t)
	for _, p := range w.running() {
		p.register(t)
	}
}

func (w *world) typeOf(id route.TypeID) *entityType {
	for _, t := range w.types {
		if route.TypeOf(t.Name) == id {
			return t
		}
	}
	return nil
}

// role returns the role under which a process registers a type.
func (t *entityType) role(p *proc) string {
	if t.roleAt != nil {
		return t.roleAt(p)
	}
	return t.Role
}

func (w *world) typeName(id route.TypeID) string {
	if t := w.typeOf(id); t != nil {
		return t.Name
	}
	return fmt.Sprintf("type-%08x", uint32(id))
}

func (w *world) shardName(id route.TypeID, n route.ShardID) string {
	return fmt.Sprintf("%s/%d", w.typeName(id), n)
}

// node is what the takeover time follows from.
func (w *world) node() node.Config {
	return node.Config{Membership: w.cfg.Membership, Resolver: w.cfg.Resolver, Shard: w.cfg.Shard}
}

// takeover is how long a shard of a lost owner waits at most: as for all processes that ever ran.
func (w *world) takeover() time.Duration { return w.node().Takeover(max(len(w.procs), 1)) }

func (w *world) window() int {
	if w.cfg.Data.Window > 0 {
		return w.cfg.Data.Window
	}
	return flow.DefaultWindow
}
