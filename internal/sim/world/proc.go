// proc: one process at one host. It steps a node.Node as the driver does: control frames and commands in, effects
// performed in the agreed order, the next deadline planned.

package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/core/flight"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/replica"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// job is one input of the control loop that waits because the loop is stuck.
type job struct {
	from    peer.ID
	kind    wire.Kind
	body    []byte
	arrived time.Duration
	cmd     any
	run     func() // what the control loop does of itself, in place of all that
}

// Process is a process. Its clock starts at a random origin, so that no node can make sense of another's times.
type Process struct {
	World *World
	Index int
	ID    peer.ID
	Node  *flight.Node
	Setup node.Config // what it was made with
	clocks
	eff    node.Effects
	View   *membership.View
	Ended  *membership.Ended
	Began  time.Duration // when it was started
	Alive  bool
	closed bool // died by its own end, not by a crash

	Asleep   bool
	dozed    time.Duration // since when it sleeps and its clock stands still; zero: it does not
	naps     int           // counts pauses, so that a pause that ended early does not end the next one
	deferred []func()      // what happens to a paused process, for when it goes on
	busy     bool
	inbox    []job         // what waits for the stuck control loop
	wake     time.Duration // planned tick; negative: none
	wakes    uint64

	conns    connTable // control
	accepted []*conn
	Leaving  bool
	forced   bool // left without the confirmation of all its shards
	Doomed   bool // an operator will down it, whatever it does
	Outside  bool // and it runs, out of reach of the operator's side
	memory   *membership.Memory
	writes   bool                  // a record is being written
	saveAt   time.Duration         // when the next one is looked at
	replicas *Replicas             // nil: it has no replicated values
	setUp    func(*hello.Acceptor) // otherwise than the other processes; nil: like them
	dataPlane
}

// Start runs a new process at a host and lets it join through seeds.
func (w *World) Start(idx int, seeds []peer.Addr) *Process {
	h := w.Hosts[idx]
	p := &Process{
		World: w, Index: idx, Alive: true, Began: w.Now, wake: -1,
		ID:     peer.ID{Addr: h.Addr, Inc: w.hostRand.Uint64() | 1},
		clocks: clocks{origin: w.Now - time.Duration(w.hostRand.Int64N(int64(time.Hour)))},
	}
	if d := w.Config.Drift; d > 0 {
		p.drift = w.hostRand.Int64N(2*d+1) - d
	}
	p.slewed.begin(p.clock())
	mc := w.Config.Membership
	mc.NoLockProof = w.Config.NoLockProof
	if mc.MinBirth = h.birth; w.Config.Records {
		mc.MinBirth = 0 // a record says what the birth of a new cluster must exceed, and hinders no join
	}
	if mc.Records = w.Config.Records; idx < len(w.Config.Roles) {
		mc.Roles = w.Config.Roles[idx]
	}
	sharding := w.Config.Shard
	sharding.Moves = func(peer.ID) bool { return w.version() >= movesSince }
	sharding.Costs = func(peer.ID) bool { return w.version() >= wire.KindMoveCost.Since() }
	sharding.Strains = func(peer.ID) bool { return w.version() >= wire.KindShardStrains.Since() }
	p.Setup = node.Config{Self: p.ID, Seed: w.hostRand.Uint64(), Membership: mc, Shard: sharding,
		ProcessDeathIsProof: w.Config.ProcessDeathIsProof, Resolver: w.Config.Resolver, Courier: w.Config.Courier,
		Patience: w.Config.Patience, Session: w.Node().Session, Tenure: w.Node().Tenure}
	p.Node = flight.New(p.Setup, w.Config.FlightBytes, nil)
	w.trace.note(w.Now, idx, opFault, "start")
	h.Process = p
	h.resets = false
	w.Processes = append(w.Processes, p)
	p.open()
	w.Watcher.Starts(p)
	skew := w.hostRand.Uint64N(10_000)
	p.skew = time.Duration(skew) * time.Millisecond
	wall := WallBase + uint64((w.Now+h.Wall)/time.Millisecond) + skew
	h.Seeds = seeds
	join := membership.JoinCommand{Seeds: seeds, WallMillis: wall, Record: h.recall(w)}
	join.NeverForm, join.FormNew = w.forms.never, w.forms.anew
	join.Dead = h.locks(w, p.ID)
	p.memory = membership.NewMemory(join.Record, w.Node().RecordRole())
	p.Do(join)
	for _, t := range w.types {
		if !t.Late {
			p.register(t)
		}
	}
	if w.OnStart != nil {
		w.OnStart(p)
	}
	return p
}

// locks takes the lock of a host for a new process, and returns the incarnation with an end that it proves.
func (h *Host) locks(w *World, id peer.ID) (dead uint64) {
	if w.Config.NoLockProof {
		return 0
	}
	dead, h.lock = h.lock, id.Inc
	if w.False != nil {
		if inc := w.False(h); inc != 0 {
			return inc
		}
	}
	h.proofs.Add(peer.ID{Addr: h.Addr, Inc: dead})
	return dead
}

// Proven reports whether a process that has got the lock of its host said that the one of id is dead.
func (w *World) Proven(id peer.ID) bool {
	i, ok := w.IndexOf(id.Addr)
	return ok && w.Hosts[i].proofs.Has(id)
}

// clock is the process's own monotonic time.
func (p *Process) clock() time.Duration { return p.clockAt(p.World.Now) }

// leaseClock is that of leases: it counts sleeps that clock does not.
func leaseClock(p *Process) time.Duration { return p.clock() + p.leapt }

// Paused reports whether the process stands still.
func (p *Process) Paused() bool { return p.Asleep }

func (p *Process) resets() bool {
	return p.closed || p.World.Hosts[p.Index].resets || p.World.Hosts[p.Index].Process != p
}

// Stuck reports whether its control loop does.
func (p *Process) Stuck() bool { return p.busy }

// Later plans something that this process does at now + d: not when it is dead, late when it is paused.
func (p *Process) Later(d time.Duration, run func()) {
	p.World.After(d, func() { p.Live(run) })
}

// Stick keeps the control loop busy for d: the data plane and the answers to heartbeats go on.
func (p *Process) Stick(d time.Duration) {
	if !p.Alive || p.Stuck() {
		return
	}
	p.World.trace.note(p.World.Now, p.Index, opFault, fmt.Sprintf("control stuck %v", d))
	p.busy = true
	p.World.Watcher.Touch(p)
	p.Later(d, p.unstick)
}

func (p *Process) unstick() {
	p.busy = false
	list := p.inbox
	p.inbox = nil
	for _, j := range list {
		if p.Alive {
			p.take(j)
		}
	}
	if p.Alive {
		noticeSleep(p)
		p.plan()
		p.turn()
	}
}

// probed answers a heartbeat at the edge, whatever the control loop is doing.
func (p *Process) probed(body []byte, answer func(ack []byte)) {
	ack, err := wire.AnswerHeartbeat(nil, body, uint64(p.clock()-p.stepped))
	if err == nil {
		answer(ack)
	}
}

// control takes one control frame off the network.
func (p *Process) control(from peer.ID, kind wire.Kind, body []byte) {
	if kind.Owner() == wire.OwnerReplica {
		replicated(p, from, kind, body)
		return
	}
	p.put(job{from: from, kind: kind, body: body, arrived: p.clock()})
}

// Do gives the control loop a command.
func (p *Process) Do(cmd any) { p.put(job{cmd: cmd}) }

// post gives the control loop a command after the present step, never within it.
func (p *Process) post(cmd any) { p.Later(0, func() { p.Do(cmd) }) }

func (p *Process) put(j job) {
	if !p.Stuck() {
		p.take(j)
		return
	}
	if len(p.inbox) >= maxControlQueue && j.cmd == nil && j.run == nil {
		p.World.Net.dropped++
		return
	}
	p.inbox = append(p.inbox, j)
}

// take is one step of the control loop.
func (p *Process) take(j job) {
	if j.run != nil {
		j.run()
		return
	}
	w := p.World
	if j.cmd != nil {
		w.turns.of(p.ID).commands++
		p.step(func(now time.Duration) error { return p.Node.Do(now, j.cmd) })
		return
	}
	w.turns.of(p.ID).frames++
	w.trace.frame(w.Now, p.Index, j.from, j.kind, j.body)
	w.Watcher.Frame(p, j.from, j.kind)
	p.step(func(now time.Duration) error { return p.Node.Handle(now, j.arrived, j.from, j.kind, j.body) })
}

// step runs one verb, performs its effects and plans the next tick.
func (p *Process) step(verb func(now time.Duration) error) {
	now := p.clock()
	p.goesOn(p.World.Now, p.View)
	tellSlept(p, now)
	leasesDue(p)
	if err := verb(now); err != nil {
		p.World.Watcher.Refused(p, err)
	}
	p.stepped = now
	p.Node.Drain(&p.eff)
	p.perform(&p.eff)
	if p.Alive {
		p.plan()
		p.goOn()
	}
}

// noticeSleep makes the control loop step for what it has slept, at once or when it is no longer stuck.
func noticeSleep(p *Process) {
	if p.unseen > 0 && !p.Stuck() {
		p.step(func(time.Duration) error { return nil })
	}
}

// tellSlept reports a sleep to the node before anything else of a step: what waited in front of a stuck control loop
// came before the sleep or during it, and nothing may be hosted on its word before the sleep is judged.
func tellSlept(p *Process, now time.Duration) {
	if p.unseen == 0 {
		return
	}
	by := p.unseen
	p.unseen = 0
	_ = p.Node.Do(now, node.SleptCommand{For: by}) // never refused; its effects come out with those of the verb
}

// plan makes sure that a tick comes at the next deadline. A tick that is planned too early only looks again.
func (p *Process) plan() {
	next, ok := p.Node.Next()
	if !ok {
		return
	}
	at := max(p.World.Now, p.reaches(next))
	if p.wake >= 0 && p.wake <= at {
		return
	}
	p.wake = at
	p.wakes++
	nth := p.wakes
	p.World.queue.push(at, func() {
		if nth == p.wakes {
			p.wake = -1
			p.Live(p.tick)
		}
	})
}

func (p *Process) tick() {
	if p.Stuck() {
		return
	}
	next, ok := p.Node.Next()
	if !ok {
		return
	}
	if now := p.clock(); next > now {
		p.plan()
		return
	}
	p.World.turns.of(p.ID).ticks++
	p.step(func(now time.Duration) error { p.Node.Tick(now); return nil })
}

// perform carries out the effects of one step in the order that node.Effects states.
func (p *Process) perform(e *node.Effects) {
	w := p.World
	for i := range e.Received {
		w.Watcher.Received(p, &e.Received[i])
	}
	w.Watcher.Replay(p, p.View, e.View, e.Events)
	p.resolved(e)
	if e.View != nil {
		old := p.View
		p.View = e.View
		w.Hosts[p.Index].birth = max(w.Hosts[p.Index].birth, e.View.Birth)
		w.trace.view(w.Now, p.Index, e.View)
		w.Watcher.View(p, e.View)
		p.remember(e.View)
		p.viewChanged(old)
		if p.replicas != nil {
			_ = p.replicas.Do(replica.ViewCommand{View: e.View}) // never refused
		}
	}
	p.Suspend(e.Suspend)
	for i := range e.Events {
		w.trace.event(w, p, &e.Events[i])
		w.Watcher.Event(p, &e.Events[i])
		if w.OnMember != nil {
			w.OnMember(p, e.Events[i])
		}
	}
	for i := range e.Hosts {
		w.trace.host(w, p, &e.Hosts[i])
		p.host(e.Hosts[i])
	}
	for i := range e.Routes {
		w.trace.route(w, p, &e.Routes[i])
		p.Routed(e.Routes[i])
	}
	p.heed(e)
	mark(p, e.Marks)
	untaken(p, e.Untaken)
	for i := range e.TypeRefused {
		p.typeRefused(e.TypeRefused[i])
	}
	for _, t := range e.Measure {
		measure(p, t)
	}
	for i := range e.ShardEvents {
		w.trace.shard(w, p, &e.ShardEvents[i])
		w.Watcher.Shard(p, &e.ShardEvents[i])
		handedTo(p, &e.ShardEvents[i])
	}
	for i := range e.Full {
		w.trace.note(w.Now, p.Index, opNote, "no room: "+e.Full[i].Error())
	}
	for _, m := range e.Mail {
		w.Watcher.Posted(p, &m)
		p.mail(m.To, m.Kind, w.keep(m.Body))
	}
	if e.Ended != nil && p.Ended == nil {
		p.end(e.Ended)
	}
}

// end is the process's own end: its membership is over, so it stops, after what it has written is on the wire.
func (p *Process) end(e *membership.Ended) {
	p.Ended = e
	w := p.World
	w.Hosts[p.Index].yields(e)
	w.trace.note(w.Now, p.Index, opEnded, fmt.Sprintf("ended %d by %s: %s", e.Kind, w.Name(e.By), e.Reason))
	w.tell(p, "ended: %s", endNames[e.Kind])
	p.leaves(e)
	p.Die(true)
	w.Watcher.Ends(p, e)
	if w.OnEnd != nil {
		w.OnEnd(p)
	}
}

var endNames = map[membership.EndKind]string{membership.EndLeft: "left", membership.EndDowned: "downed",
	membership.EndRemoved: "removed", membership.EndIsolated: "isolated", membership.EndJoinRefused: "join refused",
	membership.EndJoinTimeout: "join timeout", membership.EndDuplicate: "yields to its twin"}

// Crash kills the process. With reset the host answers for it; without, its peers hear nothing any more.
func (p *Process) Crash(reset bool) {
	if !p.Alive {
		return
	}
	p.World.trace.note(p.World.Now, p.Index, opFault, fmt.Sprintf("crash reset=%t", reset))
	p.World.Hosts[p.Index].resets = reset
	p.World.Watcher.Touch(p)
	p.Die(false)
}

// Die ends the process: clean as by its own end, otherwise as by a kill. It may be called once.
func (p *Process) Die(clean bool) {
	if clean {
		p.abandon()
	}
	p.Alive, p.closed = false, clean
	for _, c := range p.links.list {
		lostAtEnd(p, c.to) // of connections before the one that stands
	}
	p.deferred, p.inbox = nil, nil
	p.shut()
	p.World.Watcher.Died(p)
	for _, c := range p.conns.list {
		c.waiting = nil
		if !clean {
			c.close()
		}
	}
	for _, c := range slices.Concat(p.links.list, p.bulk.links.list) {
		if !clean {
			c.close()
		}
	}
	for _, c := range p.accepted {
		if c.peer == p && c.state == connUp && p.resets() {
			c := c
			p.World.After(p.World.Net.delay(p.Index, c.from.Index), func() {
				if c.peer == p && c.from.Alive {
					c.broke("peer is gone")
				}
			})
		}
	}
	p.accepted = nil
}
