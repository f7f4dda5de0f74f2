// Replicas: replicated values of a process, stepped beside its control loop as a node's are: a loop that is stuck holds
// nothing of them up.

package world

import (
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/internal/core/replica"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Replicas keeps the replicated values of a process.
type Replicas struct {
	p       *Process
	machine *replica.Machine
	effects replica.Effects
	over    map[uint64]*membership.View // waits that have come to their end, and the members then
	wake    time.Duration               // planned tick; negative: none
	wakes   uint64
}

// Replicated returns the replicated values of a process. Its first call for one makes them, so that worlds without any
// go on as they did.
func Replicated(p *Process) *Replicas {
	if p.replicas == nil {
		p.replicas = &Replicas{p: p, over: map[uint64]*membership.View{}, wake: -1,
			machine: replica.New(p.ID, rand.New(rand.NewPCG(p.Setup.Seed, 4)))}
		if p.View != nil {
			_ = p.replicas.Do(replica.ViewCommand{View: p.View}) // never refused
		}
	}
	return p.replicas
}

// Do carries out a command.
func (r *Replicas) Do(cmd replica.Command) error {
	err := r.machine.Do(r.p.clock(), cmd)
	r.perform()
	return err
}

// Value returns the value under a name, nil when it is not open.
func (r *Replicas) Value(name string) any { v, _ := r.machine.Value(name); return v }

// Over returns the view at which the wait under a nonce ended; nil: it has not.
func (r *Replicas) Over(nonce uint64) *membership.View { return r.over[nonce] }

// Stats returns the counters.
func (r *Replicas) Stats() replica.Stats { return r.machine.Stats() }

// replicated takes a frame off the network.
func replicated(p *Process, from peer.ID, kind wire.Kind, body []byte) {
	w := p.World
	w.trace.frame(w.Now, p.Index, from, kind, body)
	if p.replicas == nil {
		return
	}
	now := p.clock()
	if err := p.replicas.machine.Handle(now, now, from, kind, body); err != nil {
		w.Watcher.Refused(p, err)
	}
	p.replicas.perform()
}

func (r *Replicas) perform() {
	r.machine.Drain(&r.effects)
	for _, n := range r.effects.Done {
		r.over[n] = r.p.View
	}
	w := r.p.World
	for _, m := range r.effects.Mail {
		r.p.mail(m.To, m.Kind, w.keep(m.Body))
	}
	r.plan()
}

// plan makes sure that a tick comes at the next deadline.
func (r *Replicas) plan() {
	next, ok := r.machine.Next()
	if !ok || !r.p.Alive {
		return
	}
	w := r.p.World
	at := max(w.Now, r.p.reaches(next))
	if r.wake >= 0 && r.wake <= at {
		return
	}
	r.wake = at
	r.wakes++
	nth := r.wakes
	w.queue.push(at, func() {
		if nth == r.wakes {
			r.wake = -1
			r.p.Live(r.tick)
		}
	})
}

func (r *Replicas) tick() {
	if next, ok := r.machine.Next(); ok && next <= r.p.clock() {
		r.machine.Tick(r.p.clock())
	}
	r.perform()
}
