// World: the virtual clock, the hosts and their processes, the network, the checkers. One thread steps it.

package world

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
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

// leaveTimeout is the default of Config.LeaveTimeout.
const leaveTimeout = 30 * time.Second

// WallBase is the wall clock, in milliseconds since 1970, at which every simulated world begins.
const WallBase = 1_800_000_000_000

// World is one simulated cluster. Nothing in it is safe for concurrent use.
type World struct {
	Config    setup.Config
	Now       time.Duration
	queue     queue
	Steps     uint64
	Net       *Net
	trace     *trace
	Watcher   Watcher
	Plane     PlaneCounts // what was met of the data plane beyond the fast path
	Book      Ledger      // of user messages
	Hosts     []*Host
	Processes []*Process // every process that ever ran, in the order of their starts
	hostRand  *rand.Rand
	diskRand  *rand.Rand
	workRand  *rand.Rand
	OnEvent   func(p *Process, line string) // scripts listen here
	Acting    *Process                      // the process that runs handlers now
	OnUnknown func(*Region, route.ShardID)  // the home of a shard elsewhere is about to become unknown
	OnMember  func(p *Process, e membership.Event)
	OnEnd     func(p *Process) // a process with a membership that is over has stopped
	OnStart   func(p *Process) // a process has been started, and knows its types
	// OnLeave, if not nil, does what a process does before it leaves, and calls then when that is over.
	OnLeave func(p *Process, then func())
	types   []*EntityType
	arena   []byte
	Lease   LeaseKeeper
	Leases  LeaseStore
	// False returns another claim than a process at a host can prove, zero: none; nil: all tell the truth.
	False func(h *Host) uint64
	forms struct{ never, anew bool } // how processes are started now: JoinCommand.NeverForm and FormNew
	turns turns
}

// Host is a machine: an address at which one process runs at a time.
type Host struct {
	Addr    peer.Addr
	Process *Process      // the latest, nil before the first
	Seeds   []peer.Addr   // that it was started with
	resets  bool          // a crashed process's connections are reset; otherwise they fall silent
	birth   uint64        // highest birth of a cluster that a process here was in: what a node keeps in its store
	Wall    time.Duration // how far its wall clock was set off
	record  membership.Record
	proofs  peer.Set // of processes here that were proven dead by the next one
	lock    uint64   // the incarnation that holds the lock here, or held it to its end; zero: none
}

// yields makes the next process go back to an older cluster, whatever this one did in the younger.
func (h *Host) yields(e *membership.Ended) {
	if e.Kind == membership.EndDuplicate {
		h.birth = 0
	}
}

// New returns a world of n hosts on which nothing runs yet, watched by what watch returns for it.
func New(n int, seed uint64, cfg setup.Config, watch func(*World) Watcher) *World {
	cfg.Data = cfg.Data.WithDefaults()
	cfg.LeaveTimeout = cmp.Or(cfg.LeaveTimeout, leaveTimeout)
	paced := node.Config{Patience: cfg.Patience, Membership: cfg.Membership, Resolver: cfg.Resolver}.Paced()
	cfg.Membership, cfg.Resolver = paced.Membership, paced.Resolver
	w := &World{
		Config:   cfg,
		Net:      newNetwork(n, cfg.Network, seed),
		trace:    newTrace(cfg.Text),
		hostRand: rand.New(rand.NewPCG(seed, purposeHosts)),
		diskRand: rand.New(rand.NewPCG(seed, purposeDisk)),
		workRand: rand.New(rand.NewPCG(seed, purposeWork)),
	}
	terms := node.Terms{Config: w.Node(), MaxPayload: cfg.Data.MaxPayload, Window: w.window()}
	w.Net.terms = terms.Hello()
	w.Watcher = watch(w)
	for i := range n {
		addr := peer.MustAddr(fmt.Sprintf("10.0.0.%d:%d", i+1, basePort))
		w.Hosts = append(w.Hosts, &Host{Addr: addr})
	}
	return w
}

// step runs the next event; it reports false when nothing is planned before or at the limit, or there was a livelock.
func (w *World) step(limit time.Duration) bool {
	at, ok := w.queue.next()
	if !ok || at > limit || w.turns.over {
		return false
	}
	e := w.queue.pop()
	w.Now = e.at
	w.Steps++
	if !w.turns.count(w.Now) {
		livelock(w)
	}
	e.run()
	return true
}

// Bound makes a world end in a violation when a second of its time takes more than so many steps, at least one.
func Bound(w *World, steps int) { w.turns.most = steps }

// Livelocked reports whether it has. Nothing happens there any more, its time passes all the same, and what is demanded
// of it then means nothing.
func Livelocked(w *World) bool { return w.turns.over }

// livelock ends the world, and says which process turned most.
func livelock(w *World) {
	t := &w.turns
	var who *Process
	var most work
	for _, p := range w.Running() {
		if k := t.of(p.ID); k.runs > most.runs {
			who, most = p, *k
		}
	}
	w.Watcher.Violate(who, "livelock", "%d steps since %v; this process turned most: %d times, in which its control loop "+
		"ticked %d times and took %d commands and %d frames", t.steps, t.began, most.runs, most.ticks, most.commands,
		most.frames)
	t.over = true
}

// Advance runs everything up to and at now + d.
func (w *World) Advance(d time.Duration) {
	end := w.Now + d
	for w.step(end) {
	}
	w.Now = end
}

// Until runs events until done reports true, at most for d of virtual time. It returns whether done did.
func (w *World) Until(d time.Duration, done func() bool) bool {
	end := w.Now + d
	for !done() {
		if !w.step(end) {
			w.Now = end
			return done()
		}
	}
	return true
}

// After plans something for now + d. What is planned for one moment runs in the order of planning.
func (w *World) After(d time.Duration, run func()) { w.queue.push(w.Now+d, run) }

// IndexOf returns the index of the host with an address, and whether there is one.
func (w *World) IndexOf(a peer.Addr) (int, bool) {
	i := slices.IndexFunc(w.Hosts, func(h *Host) bool { return h.Addr == a })
	return i, i >= 0
}

// Name prints an identity as n1, or n1#2 for the second process at that host.
func (w *World) Name(id peer.ID) string {
	if id.IsZero() {
		return "none"
	}
	i, ok := w.IndexOf(id.Addr)
	if !ok {
		return id.String()
	}
	if id.Inc == 0 {
		return fmt.Sprintf("n%d?", i+1)
	}
	nth := 0
	for _, p := range w.Processes {
		if p.Index == i {
			nth++
			if p.ID == id {
				break
			}
		}
	}
	if nth <= 1 {
		return fmt.Sprintf("n%d", i+1)
	}
	return fmt.Sprintf("n%d#%d", i+1, nth)
}

// NameOf prints a process, which may be nil, as Name prints its identity.
func (w *World) NameOf(p *Process) string {
	if p == nil {
		return "no node"
	}
	return w.Name(p.ID)
}

// keep copies b into memory that lives as long as somebody points to it.
func (w *World) keep(b []byte) []byte {
	if len(b) > cap(w.arena)-len(w.arena) {
		w.arena = make([]byte, 0, max(64<<10, len(b)))
	}
	at := len(w.arena)
	w.arena = append(w.arena, b...)
	return w.arena[at:len(w.arena):len(w.arena)]
}

// ProcessOf finds a process by its identity.
func (w *World) ProcessOf(id peer.ID) *Process {
	for i := len(w.Processes) - 1; i >= 0; i-- {
		if w.Processes[i].ID == id {
			return w.Processes[i]
		}
	}
	return nil
}

// Running returns the processes that are alive and have a membership that has not ended, in host order.
func (w *World) Running() []*Process {
	var list []*Process
	for _, h := range w.Hosts {
		if h.Process != nil && h.Process.Alive {
			list = append(list, h.Process)
		}
	}
	return list
}

// Seeds returns the contact points: every host's address, those of first in front.
func (w *World) Seeds(order []int) []peer.Addr {
	var list []peer.Addr
	for _, i := range order {
		list = append(list, w.Hosts[i].Addr)
	}
	return list
}

// AddType makes a type known to all processes, those to come included.
func (w *World) AddType(t *EntityType) {
	w.types = append(w.types, t)
	for _, p := range w.Running() {
		if !t.Late {
			p.register(t)
		}
	}
}

// Unwritten reports whether there are types of which no message has an entry in the book: those that are Late.
func (w *World) Unwritten() bool {
	return slices.ContainsFunc(w.types, func(t *EntityType) bool { return t.Late })
}

// TypeOf returns the declaration of a type, nil when nobody declared it.
func (w *World) TypeOf(id route.TypeID) *EntityType {
	for _, t := range w.types {
		if route.TypeOf(t.Name) == id {
			return t
		}
	}
	return nil
}

// role returns the role under which a process registers a type.
func (t *EntityType) role(p *Process) string {
	if t.RoleAt != nil {
		return t.RoleAt(p)
	}
	return t.Role
}

// TypeName prints a type by its name, or its hash when nobody declared it.
func (w *World) TypeName(id route.TypeID) string {
	if t := w.TypeOf(id); t != nil {
		return t.Name
	}
	return fmt.Sprintf("type-%08x", uint32(id))
}

// ShardName prints a shard as type/number.
func (w *World) ShardName(id route.TypeID, n route.ShardID) string {
	return fmt.Sprintf("%s/%d", w.TypeName(id), n)
}

// Node is what the takeover time follows from.
func (w *World) Node() node.Config {
	return node.Config{Patience: w.Config.Patience, Membership: w.Config.Membership, Resolver: w.Config.Resolver,
		Shard: w.Config.Shard, ProcessDeathIsProof: w.Config.ProcessDeathIsProof,
		Session: node.SessionConfig{TTL: w.Config.SessionTTL, Ends: w.Config.SessionEnds},
		Tenure: node.TenureConfig{Voters: w.Config.TenureVoters, Grant: w.Config.TenureGrant,
			Refound: w.Config.TenureRefound}}
}

// Takeover is how long a shard of a lost owner waits at most: as for all processes that ever ran.
func (w *World) Takeover() time.Duration { return w.Node().Takeover(max(len(w.Processes), 1)) }

func (w *World) window() int {
	if w.Config.Data.Window > 0 {
		return w.Config.Data.Window
	}
	return flow.DefaultWindow
}
