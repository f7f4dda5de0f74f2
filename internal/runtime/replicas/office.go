// Package replicas runs the replicated values of a node beside its control goroutine: a large merge delays no
// heartbeat, and an update runs on the goroutine of its caller.
package replicas

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/base/callback"
	"github.com/kith-io/kith/internal/core/replica"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/stats"
	"github.com/kith-io/kith/wire"
)

// Bounds of frames that wait. What is over them is dropped: it is said again.
const (
	maxFrames = 4096
	maxBytes  = 16 << 20
	rest      = time.Second // longest sleep
)

// ErrOver is returned by an office when its node has ended.
var ErrOver = errors.New("replicated: the node has ended")

// MissingError says that a context ended before enough members had answered.
type MissingError struct {
	Missing    []peer.ID // members that have not answered, in order
	Need, Have int       // members, this node among them
	Err        error     // of the context
}

// Error says how many are missing.
func (e *MissingError) Error() string { return e.Err.Error() }

// Needs is what an office needs of its node.
type Needs struct {
	Self    peer.ID
	Now     func() time.Duration // since the node's start
	Send    func(peer.Mail)      // what is not sent is said again
	Invalid func(from peer.ID, kind wire.Kind, err error)
	Guard   *callback.Guard // calls what users' values do
}

// Office keeps the replicated values of a node. All methods are safe for concurrent use.
type Office struct {
	Needs Needs
	wake  chan struct{} // capacity 1
	over  chan struct{} // closed at the end

	mu      sync.Mutex // of the machine and what comes of it
	machine *replica.Machine
	effects replica.Effects
	mail    []peer.Mail // to be sent when the lock is free
	cells   map[string]*Cell
	waits   map[uint64]chan struct{}
	nonce   uint64

	inMu    sync.Mutex // of what has come; never held while mu is taken
	frames  []frame
	bytes   int
	view    *cluster.View // the newest, not taken yet
	dropped uint64
}

// frame is one that waits.
type frame struct {
	from    peer.ID
	kind    wire.Kind
	body    []byte
	arrived time.Duration
}

// Cell is the value under a name, as it is published.
type Cell struct {
	value    atomic.Pointer[any]
	watchers []chan struct{} // under the lock of the office
}

// Load returns the value: one atomic load.
func (c *Cell) Load() any { return *c.value.Load() }

// Watch returns a channel that is sent to after each change of a value, of which it keeps one, and a function that ends
// that.
func (o *Office) Watch(c *Cell) (news <-chan struct{}, end func()) {
	ch := make(chan struct{}, 1)
	o.mu.Lock()
	defer o.mu.Unlock()
	c.watchers = append(c.watchers, ch)
	return ch, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		c.watchers = slices.DeleteFunc(c.watchers, func(w chan struct{}) bool { return w == ch })
	}
}

func (c *Cell) store(v any) {
	c.value.Store(&v)
	for _, w := range c.watchers {
		signal(w)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// New returns an office for a machine.
func New(n Needs, m *replica.Machine) *Office {
	return &Office{Needs: n, machine: m, wake: make(chan struct{}, 1), over: make(chan struct{}),
		cells: map[string]*Cell{}, waits: map[uint64]chan struct{}{}}
}

// Follow takes a view of the members. It does not wait for a merge that is under way.
func (o *Office) Follow(v *cluster.View) {
	o.inMu.Lock()
	o.view = v
	o.inMu.Unlock()
	signal(o.wake)
}

// Take takes a frame of a member, of which it copies the body. It may be called from event loops.
func (o *Office) Take(from peer.ID, kind wire.Kind, arrived time.Duration, body []byte) {
	o.inMu.Lock()
	defer o.inMu.Unlock()
	if len(o.frames) >= maxFrames || o.bytes+len(body) > maxBytes {
		o.dropped++
		return
	}
	o.frames = append(o.frames, frame{from, kind, slices.Clone(body), arrived})
	o.bytes += len(body)
	signal(o.wake)
}

// Run works off what comes and what is due, until ctx ends.
func (o *Office) Run(ctx context.Context) {
	defer close(o.over)
	timer := time.NewTimer(rest)
	defer timer.Stop()
	for {
		timer.Reset(o.turn())
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		case <-timer.C:
		}
	}
}

// turn works off what has come, and returns how long nothing is due.
func (o *Office) turn() time.Duration {
	o.inMu.Lock()
	list, view := o.frames, o.view
	o.frames, o.bytes, o.view = nil, 0, nil
	o.inMu.Unlock()
	if view != nil {
		_ = o.do(replica.ViewCommand{View: view}) // never refused
	}
	for i := range list {
		o.handle(&list[i])
	}
	return o.tick()
}

// tick does what is due.
func (o *Office) tick() (next time.Duration) {
	defer o.post()
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.Needs.Now()
	if at, ok := o.machine.Next(); ok && at <= now {
		o.guarded(func() { o.machine.Tick(now) })
	}
	if at, ok := o.machine.Next(); ok {
		return min(max(at-now, 0), rest)
	}
	return rest
}

func (o *Office) handle(f *frame) {
	defer o.post()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.guarded(func() {
		now := o.Needs.Now()
		if err := o.machine.Handle(now, min(f.arrived, now), f.from, f.kind, f.body); err != nil {
			o.Needs.Invalid(f.from, f.kind, err)
		}
	})
}

// guarded steps the machine, which calls what users' values do, and carries out what comes of it. mu is held.
func (o *Office) guarded(step func()) {
	_ = o.Needs.Guard.Call("replicated.Value", step) // counted there; the value is as it was
	o.perform()
}

// do makes the machine carry out a command. A panic of a user's function goes to the caller.
func (o *Office) do(cmd replica.Command) error {
	defer o.post()
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.perform()
	return o.machine.Do(o.Needs.Now(), cmd)
}

// perform carries out effects. mu is held.
func (o *Office) perform() {
	e := &o.effects
	o.machine.Drain(e)
	for _, c := range e.Changes {
		o.cells[c.Name].store(c.Value)
	}
	for _, n := range e.Done {
		if w := o.waits[n]; w != nil {
			close(w)
			delete(o.waits, n)
		}
	}
	o.mail = append(o.mail, e.Mail...)
}

// post sends what is to be sent. mu is not held: a link has locks of its own.
func (o *Office) post() {
	o.mu.Lock()
	list := o.mail
	o.mail = nil
	o.mu.Unlock()
	for _, m := range list {
		o.Needs.Send(m)
	}
}

// Open keeps a value under a name. Errors: those of replica.OpenCommand, ErrOver.
func (o *Office) Open(name string, kind *replica.Kind) (*Cell, error) {
	if o.ended() {
		return nil, ErrOver
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.machine.Do(o.Needs.Now(), replica.OpenCommand{Name: name, Kind: kind}); err != nil {
		return nil, err
	}
	c := o.cells[name]
	if c == nil {
		c = &Cell{}
		c.store(kind.Zero)
		o.cells[name] = c
	}
	signal(o.wake)
	return c, nil
}

func (o *Office) ended() bool {
	select {
	case <-o.over:
		return true
	default:
		return false
	}
}

// Update changes a value, and waits for members as the level says. Errors: those of replica.UpdateCommand, ErrOver, and
// *MissingError when ctx ends before, with the value changed all the same.
func (o *Office) Update(ctx context.Context, name string, level replica.Level, change func(any) any) error {
	return o.wait(ctx, level, func(nonce uint64) replica.Command {
		return replica.UpdateCommand{Name: name, Change: change, Level: level, Nonce: nonce}
	})
}

// Read waits until the value here has what enough members had. Errors: as those of Update.
func (o *Office) Read(ctx context.Context, name string, level replica.Level) error {
	if level == replica.Local {
		return ctx.Err()
	}
	return o.wait(ctx, level, func(nonce uint64) replica.Command {
		return replica.ReadCommand{Name: name, Level: level, Nonce: nonce}
	})
}

func (o *Office) wait(ctx context.Context, level replica.Level, cmd func(nonce uint64) replica.Command) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.ended() {
		return ErrOver
	}
	if level == replica.Local {
		err := o.do(cmd(0))
		signal(o.wake)
		return err
	}
	done := make(chan struct{})
	o.mu.Lock()
	o.nonce++
	nonce := o.nonce
	o.waits[nonce] = done
	o.mu.Unlock()
	defer o.forget(nonce)
	if err := o.do(cmd(nonce)); err != nil {
		return err
	}
	signal(o.wake)
	select {
	case <-done:
		return nil
	case <-o.over:
		return ErrOver
	case <-ctx.Done():
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	missing, need, have := o.machine.Missing(nonce)
	if need == 0 {
		return nil // it came to its end meanwhile
	}
	return &MissingError{missing, need, have, ctx.Err()}
}

// forget ends what waits under a nonce.
func (o *Office) forget(nonce uint64) {
	o.mu.Lock()
	delete(o.waits, nonce)
	o.mu.Unlock()
	_ = o.do(replica.CancelCommand{Nonce: nonce}) // never refused
}

// Stats returns the counters.
func (o *Office) Stats() stats.Replicated {
	o.mu.Lock()
	s := o.machine.Stats()
	o.mu.Unlock()
	o.inMu.Lock()
	defer o.inMu.Unlock()
	s.Dropped = o.dropped
	return s
}
