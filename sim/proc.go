// proc: one process at one host. It steps a node.Node as the driver does: control frames and commands in, effects
// performed in the agreed order, the next deadline planned.

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/hello"
	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// job is one input of the control loop that waits because the loop is stuck.
type job struct {
	from    peer.ID
	kind    wire.Kind
	body    []byte
	arrived time.Duration
	cmd     any
}

// proc is a process. Its clock starts at a random origin, so that no node can make sense of another's times.
type proc struct {
	w      *world
	idx    int
	id     peer.ID
	node   *node.Node
	origin time.Duration
	drift  int64 // millionths by which its clock runs fast
	eff    node.Effects
	view   *membership.View
	ended  *membership.Ended
	began  time.Duration // when it was started
	alive  bool
	closed bool // died by its own end, not by a crash

	asleep   bool
	dozed    time.Duration // since when it sleeps and its clock stands still; zero: it does not
	unseen   time.Duration // that sleep, until the control loop was told of it
	naps     int           // counts pauses, so that a pause that ended early does not end the next one
	deferred []func()      // what happens to a paused process, for when it goes on
	busy     bool
	inbox    []job // what waits for the stuck control loop
	stepped  time.Duration
	wake     time.Duration // planned tick; negative: none
	wakes    uint64

	conns    connTable // control
	accepted []*conn
	leaving  bool
	forced   bool // left without the confirmation of all its shards
	doomed   bool // an operator will down it, whatever it does
	outside  bool // and it runs, out of reach of the operator's side
	memory   *membership.Memory
	writes   bool                  // a record is being written
	saveAt   time.Duration         // when the next one is looked at
	setUp    func(*hello.Acceptor) // otherwise than the other processes; nil: like them
	dataPlane
}

// start runs a new process at a host and lets it join through seeds.
func (w *world) start(idx int, seeds []peer.Addr) *proc {
	h := w.hosts[idx]
	p := &proc{
		w: w, idx: idx, alive: true, began: w.now, wake: -1,
		id:     peer.ID{Addr: h.addr, Inc: w.hostRand.Uint64() | 1},
		origin: w.now - time.Duration(w.hostRand.Int64N(int64(time.Hour))),
	}
	if d := w.cfg.Drift; d > 0 {
		p.drift = w.hostRand.Int64N(2*d+1) - d
	}
	mc := w.cfg.Membership
	if mc.MinBirth = h.birth; w.cfg.Records {
		mc.MinBirth = 0 // a record says what the birth of a new cluster must exceed, and hinders no join
	}
	if mc.Records = w.cfg.Records; idx < len(w.cfg.Roles) {
		mc.Roles = w.cfg.Roles[idx]
	}
	p.node = node.New(node.Config{Self: p.id, Seed: w.hostRand.Uint64(), Membership: mc, Shard: w.cfg.Shard,
		ProcessDeathIsProof: w.cfg.ProcessDeathIsProof, Resolver: w.cfg.Resolver, Courier: w.cfg.Courier})
	w.trace.note(w.now, idx, opFault, "start")
	h.proc = p
	h.resets = false
	w.procs = append(w.procs, p)
	p.open()
	w.check.starts(p)
	skew := w.hostRand.Uint64N(10_000)
	wall := wallBase + uint64((w.now+h.wall)/time.Millisecond) + skew
	join := membership.JoinCommand{Seeds: seeds, WallMillis: wall, Record: h.recall(w)}
	join.NeverForm, join.FormNew = w.forms.never, w.forms.anew
	p.memory = membership.NewMemory(join.Record, w.node().RecordRole())
	p.do(join)
	for i := range w.types {
		p.register(w.types[i])
	}
	return p
}

func (p *proc) paused() bool { return p.asleep }

func (p *proc) resets() bool {
	return p.closed || p.w.hosts[p.idx].resets || p.w.hosts[p.idx].proc != p
}

func (p *proc) stuck() bool { return p.busy }

// later plans something that this process does at now + d: not when it is dead, late when it is paused.
func (p *proc) later(d time.Duration, run func()) {
	p.w.after(d, func() { p.live(run) })
}

// live runs now, or when the process goes on, or never.
func (p *proc) live(run func()) {
	switch {
	case !p.alive:
	case p.paused():
		p.deferUntilResume(run)
	default:
		run()
	}
}

func (p *proc) deferUntilResume(run func()) { p.deferred = append(p.deferred, run) }

// stick keeps the control loop busy for d: the data plane and the answers to heartbeats go on.
func (p *proc) stick(d time.Duration) {
	if !p.alive || p.stuck() {
		return
	}
	p.w.trace.note(p.w.now, p.idx, opFault, fmt.Sprintf("control stuck %v", d))
	p.busy = true
	p.w.check.touch(p)
	p.later(d, p.unstick)
}

func (p *proc) unstick() {
	p.busy = false
	list := p.inbox
	p.inbox = nil
	for _, j := range list {
		if p.alive {
			p.take(j)
		}
	}
	if p.alive {
		p.plan()
		p.turn()
	}
}

// probed answers a heartbeat at the edge, whatever the control loop is doing.
func (p *proc) probed(body []byte, answer func(ack []byte)) {
	ack, err := wire.AnswerHeartbeat(nil, body, uint64(p.clock()-p.stepped))
	if err == nil {
		answer(ack)
	}
}

// control takes one control frame off the network.
func (p *proc) control(from peer.ID, kind wire.Kind, body []byte) {
	p.put(job{from: from, kind: kind, body: body, arrived: p.clock()})
}

// do gives the control loop a command.
func (p *proc) do(cmd any) { p.put(job{cmd: cmd}) }

// post gives the control loop a command after the present step, never within it.
func (p *proc) post(cmd any) { p.later(0, func() { p.do(cmd) }) }

func (p *proc) put(j job) {
	if !p.stuck() {
		p.take(j)
		return
	}
	if len(p.inbox) >= maxControlQueue && j.cmd == nil {
		p.w.net.dropped++
		return
	}
	p.inbox = append(p.inbox, j)
}

// take is one step of the control loop.
func (p *proc) take(j job) {
	w := p.w
	if j.cmd != nil {
		if _, slept := j.cmd.(node.SleptCommand); slept {
			p.unseen = 0
		}
		p.step(func(now time.Duration) error { return p.node.Do(now, j.cmd) })
		return
	}
	w.trace.frame(w.now, p.idx, j.from, j.kind, j.body)
	w.check.frame(p, j.from, j.kind)
	p.step(func(now time.Duration) error { return p.node.Handle(now, j.arrived, j.from, j.kind, j.body) })
}

// step runs one verb, performs its effects and plans the next tick.
func (p *proc) step(verb func(now time.Duration) error) {
	now := p.clock()
	if err := verb(now); err != nil {
		p.w.check.refused(p, err)
	}
	p.stepped = now
	p.node.Drain(&p.eff)
	p.perform(&p.eff)
	if p.alive {
		p.plan()
		p.goOn()
	}
}

// plan makes sure that a tick comes at the next deadline. A tick that is planned too early only looks again.
func (p *proc) plan() {
	next, ok := p.node.Next()
	if !ok {
		return
	}
	at := max(p.w.now, p.reaches(next))
	if p.wake >= 0 && p.wake <= at {
		return
	}
	p.wake = at
	p.wakes++
	nth := p.wakes
	p.w.queue.push(at, func() {
		if nth == p.wakes {
			p.wake = -1
			p.live(p.tick)
		}
	})
}

func (p *proc) tick() {
	if p.stuck() {
		return
	}
	next, ok := p.node.Next()
	if !ok {
		return
	}
	if now := p.clock(); next > now {
		p.plan()
		return
	}
	p.step(func(now time.Duration) error { p.node.Tick(now); return nil })
}

// perform carries out the effects of one step in the order that node.Effects states.
func (p *proc) perform(e *node.Effects) {
	w := p.w
	for i := range e.Received {
		w.check.received(p, &e.Received[i])
	}
	w.check.replay(p, p.view, e.View, e.Events)
	p.resolved(e)
	if e.View != nil {
		old := p.view
		p.view = e.View
		w.hosts[p.idx].birth = max(w.hosts[p.idx].birth, e.View.Birth)
		w.trace.view(w.now, p.idx, e.View)
		w.check.view(p, e.View)
		p.remember(e.View)
		p.viewChanged(old)
	}
	p.suspend(e.Suspend)
	for i := range e.Events {
		w.trace.event(w, p, &e.Events[i])
		w.check.event(p, &e.Events[i])
		if w.onMember != nil {
			w.onMember(p, e.Events[i])
		}
	}
	for i := range e.Hosts {
		w.trace.host(w, p, &e.Hosts[i])
		p.host(e.Hosts[i])
	}
	for i := range e.Routes {
		w.trace.route(w, p, &e.Routes[i])
		p.routed(e.Routes[i])
	}
	for i := range e.TypeRefused {
		p.typeRefused(e.TypeRefused[i])
	}
	for i := range e.ShardEvents {
		w.trace.shard(w, p, &e.ShardEvents[i])
		w.check.shard(p, &e.ShardEvents[i])
	}
	for i := range e.Full {
		w.trace.note(w.now, p.idx, opNote, "no room: "+e.Full[i].Error())
	}
	for _, m := range e.Mail {
		w.check.posted(p, &m)
		p.mail(m.To, m.Kind, w.keep(m.Body))
	}
	if e.Ended != nil && p.ended == nil {
		p.end(e.Ended)
	}
}

// end is the process's own end: its membership is over, so it stops, after what it has written is on the wire.
func (p *proc) end(e *membership.Ended) {
	p.ended = e
	w := p.w
	w.trace.note(w.now, p.idx, opEnded, fmt.Sprintf("ended %d by %s: %s", e.Kind, w.name(e.By), e.Reason))
	w.tell(p, "ended: %s", endNames[e.Kind])
	p.leaves(e)
	p.die(true)
	w.check.ends(p, e)
	if w.onEnd != nil {
		w.onEnd(p)
	}
}

var endNames = map[membership.EndKind]string{membership.EndLeft: "left", membership.EndDowned: "downed",
	membership.EndRemoved: "removed", membership.EndIsolated: "isolated", membership.EndJoinRefused: "join refused",
	membership.EndJoinTimeout: "join timeout", membership.EndTwin: "yields to its twin"}

// crash kills the process. With reset the host answers for it; without, its peers hear nothing any more.
func (p *proc) crash(reset bool) {
	if !p.alive {
		return
	}
	p.w.trace.note(p.w.now, p.idx, opFault, fmt.Sprintf("crash reset=%t", reset))
	p.w.hosts[p.idx].resets = reset
	p.w.check.touch(p)
	p.die(false)
}

func (p *proc) die(clean bool) {
	p.alive, p.closed = false, clean
	p.deferred, p.inbox = nil, nil
	p.shut(clean)
	p.w.check.died(p)
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
			p.w.after(p.w.net.delay(p.idx, c.from.idx), func() {
				if c.peer == p && c.from.alive {
					c.broke("peer is gone")
				}
			})
		}
	}
	p.accepted = nil
}

// typeRefused notes that the cluster has a type with other settings. What is parked fails, and all later sends.
func (p *proc) typeRefused(r shard.TypeRefused) {
	if reg := p.region(r.Type); reg != nil {
		reg.refused = r.Err
		for i := range reg.slots {
			reg.slots[i].FailAll(func(frame []byte) { p.failed(frame, route.NotRegistered, "type refused") })
		}
	}
	p.w.trace.note(p.w.now, p.idx, opNote, fmt.Sprintf("type refused: %v", r.Err))
	p.w.tell(p, "type refused: %v", r.Err)
}
