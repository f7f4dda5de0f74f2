// Leases: the locks outside of the cluster without which singletons do not live. Package leases decides, the calls are
// made here, each on a goroutine of its own. Control goroutine, unless said otherwise.

package driver

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/leases"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/stats"
)

// Keep is what is kept alive of a type, and the lease that it needs.
type Keep struct {
	entity.Keep
	Lease Lease  // nil: none. The type has one shard then.
	Name  string // of the lease
	Use   leases.Config
	crew  crewed // not nil: nothing is kept alive, they are workers of a pool, and all else is zero
}

// leaseKeeper is the lease of one type on this node.
type leaseKeeper struct {
	d       *Driver
	r       *Region
	k       *Keep
	holder  *leases.Holder
	calling chan struct{}               // closed when the last call has returned; nil: there was none
	watch   leaseWatch                  // ends it in time
	stopped map[route.Fence]func()      // tell the node that a shard has stopped, once its lease is given back
	shown   atomic.Pointer[stats.Lease] // for readers
}

// leaseWatch ends a lease in time though the control goroutine is stuck, or does not know yet that the process slept:
// the ticker looks at it, and each goroutine that is about to call a handler.
type leaseWatch struct {
	mu    sync.Mutex
	guard leases.Guard
	until atomic.Int64 // of guard, for goroutines that only look; zero: it is not held
}

// leaseTable is all of them.
type leaseTable struct{ list []*leaseKeeper }

// drop takes out the one that was added last, of a type that could not be registered; nil: it has none.
func (t *leaseTable) drop(k *leaseKeeper) {
	if k != nil {
		t.list = t.list[:len(t.list)-1]
	}
}

// leaseFor returns the keeper of a type's lease, nil when it needs none.
func leaseFor(d *Driver, r *Region) *leaseKeeper {
	if r.keep == nil || r.keep.Lease == nil {
		return nil
	}
	return &leaseKeeper{d: d, r: r, k: r.keep, holder: leases.New(r.keep.Use), stopped: map[route.Fence]func(){}}
}

// next returns the earlier of a time and that of the next lease.
func (t *leaseTable) next(at time.Duration) time.Duration {
	for _, k := range t.list {
		if due, ok := k.holder.Next(); ok {
			at = min(at, due-time.Duration(k.d.sleeps.leapt.Load()))
		}
	}
	return at
}

// due does what is due. It comes before the gate opens after a gap: what may not live any more is not called again.
func (t *leaseTable) due() {
	for _, k := range t.list {
		now := leaseTime(k.d)
		if at, ok := k.holder.Next(); ok && at <= now {
			k.holder.Tick(now)
			k.carry()
		}
	}
}

// begins follows the start of the shard on this node: nothing of it lives before its lease is held.
func (k *leaseKeeper) begins(f route.Fence) {
	k.holder.Begin(leaseTime(k.d), f)
	k.carry()
}

// ends follows its end; tell is called when the lease is given back, or could not be in time.
func (k *leaseKeeper) ends(f route.Fence, tell func()) {
	k.stopped[f] = tell
	k.holder.End(leaseTime(k.d), f)
	k.carry()
}

// ending reports whether the end of the shard under a fence is reported later.
func (k *leaseKeeper) ending(f route.Fence) bool { return k != nil && k.stopped[f] != nil }

// carry carries out what the holder wants.
func (k *leaseKeeper) carry() {
	e := k.holder.Drain()
	k.hold(&e)
	for _, ev := range e.Events {
		k.log(ev)
	}
	if e.Op != nil {
		k.call(*e.Op)
	}
	for _, f := range e.Freed {
		tell := k.stopped[f]
		delete(k.stopped, f)
		if tell != nil {
			k.d.inbox.post(tell) // never within a step of the node
		}
	}
	k.show()
}

// hold lets the entity live or not, and tells the ticker until when.
func (k *leaseKeeper) hold(e *leases.Effects) {
	h, w := k.r.hosts.Host(0), &k.watch
	w.mu.Lock()
	again := w.guard.Follow(k.holder.Valid())
	w.until.Store(int64(w.guard.Until()))
	switch {
	case h == nil:
	case e.Withhold:
		exec.Withhold(h)
	case e.Permit || again:
		exec.Permit(h)
	}
	w.mu.Unlock()
	if h != nil && (e.Withhold || e.Permit || again) {
		exec.LookAtLease(h)
	}
}

// leaseTime is the clock of leases: that of the node, and all steps of the wall clock besides, however short. A store
// does not wait for a virtual machine that stands still; a step that was none costs a confirmation. Any goroutine.
func leaseTime(d *Driver) time.Duration { return d.now() + time.Duration(d.sleeps.leapt.Load()) }

// overdue ends the lease if its time is over by now. Any goroutine.
func (k *leaseKeeper) overdue() {
	until := k.watch.until.Load()
	if until == 0 {
		return
	}
	if k.d.sleeps.doubtful() {
		k.d.lookForSleep()
	}
	now := leaseTime(k.d)
	if int64(now) < until {
		return
	}
	w := &k.watch
	w.mu.Lock()
	ended := w.guard.Tick(now)
	if ended {
		w.until.Store(0)
		if h := k.r.hosts.Host(0); h != nil {
			exec.Withhold(h) // and what is left is for the holder, as soon as somebody steps it
		}
	}
	w.mu.Unlock()
	if ended {
		k.d.inbox.post(func() {})
	}
}

// watchLeases ends leases that are over by now, whatever the control goroutine does. The ticker's goroutine.
func watchLeases(d *Driver) {
	for _, r := range d.regions.Load().leased {
		r.lease.overdue()
	}
}

// show publishes where the lease stands.
func (k *leaseKeeper) show() {
	s := k.holder.Status()
	at := &stats.Lease{}
	at.Held, at.Waits, at.Why = s.State == leases.Held, s.State == leases.Waits, s.Why
	if s.State != leases.Unwanted {
		at.Since = k.d.start.Add(s.Since - time.Duration(k.d.sleeps.leapt.Load()))
	}
	at.Acquired, at.Refused, at.Failed, at.Lost = s.Acquired, s.Refused, s.Failed, s.Lost
	at.Unfreed, at.Dropped = s.Giving, s.Dropped
	k.shown.Store(at)
}

func (k *leaseKeeper) log(e leases.Event) {
	about := []any{"singleton", k.r.typ.Name, "lease", k.k.Name, "fence", e.Fence}
	switch e.Kind {
	case leases.Acquired:
		k.d.log.Info("the lease of a singleton is held", about...)
	case leases.Refused:
		k.d.log.Warn("a singleton waits for its lease", append(about, "why", e.Why)...)
	case leases.Lost:
		k.d.log.Warn("the lease of a singleton is lost: it is stopped", append(about, "why", e.Why)...)
	case leases.Released:
		k.d.log.Info("the lease of a singleton was given back", about...)
	case leases.NotFreed:
		k.d.log.Warn("the lease of a singleton cannot be given back", append(about, "why", e.Why)...)
	}
}

// owner is the holder of the lease of an ownership: this incarnation, under its fence. So what is done late for an
// earlier one concerns nobody else.
func (k *leaseKeeper) owner(f route.Fence) string { return fmt.Sprintf("%s/%s", k.d.self, f) }

// call makes one call and brings the answer back. The holder makes no other before that.
func (k *leaseKeeper) call(op leases.Op) {
	done := make(chan struct{})
	k.calling = done
	go func() {
		defer close(done)
		r := leases.Result{ID: op.ID}
		var err error
		if r.OK, err = k.ask(context.Background(), op.Limit, op.Release, op.Fence); err != nil {
			r.Err = errText(err)
		}
		if !k.d.inbox.post(func() { k.holder.Answer(leaseTime(k.d), r); k.carry() }) && !op.Release {
			// The node has ended meanwhile, and nobody else gives back what it has got so late.
			_, _ = k.ask(context.Background(), op.Limit, true, op.Fence)
		}
	}()
}

// ask makes a call of the lease, which may take limit. A panic in it is an error. Any goroutine.
func (k *leaseKeeper) ask(ctx context.Context, limit time.Duration, release bool, f route.Fence) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			ok, err = false, fmt.Errorf("panic: %v", v)
		}
	}()
	if release {
		err = k.k.Lease.Release(ctx, k.k.Name, k.owner(f))
		return err == nil, err
	}
	return k.k.Lease.Acquire(ctx, k.k.Name, k.owner(f))
}

// errText is the text of an error of user code, which may panic, and is never empty.
func errText(err error) (text string) {
	defer func() {
		if recover() != nil || text == "" {
			text = fmt.Sprintf("%T", err)
		}
	}()
	return err.Error()
}

// end gives back what this node holds, when it ends: all at once, within patience. What its handlers may still use, for
// some have not returned, is left to the time limit of the store.
func (t *leaseTable) end(patience time.Duration, behind int, log *slog.Logger) {
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, k := range t.list {
		owed := k.holder.Owed()
		if at := k.holder.Status(); behind > 0 && at.State == leases.Held {
			owed = owed[:len(owed)-1]
			log.Warn("the lease of a singleton is not given back: handlers run on", "singleton", k.r.typ.Name,
				"lease", k.k.Name)
		}
		calling := k.calling
		all.Go(func() {
			if calling != nil {
				select {
				case <-calling:
				case <-ctx.Done():
					return
				}
			}
			for _, f := range owed {
				if _, err := k.ask(ctx, patience, true, f); err != nil {
					log.Warn("the lease of a singleton cannot be given back", "singleton", k.r.typ.Name, "lease", k.k.Name,
						"fence", f, "why", errText(err))
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// leaseWaits lists the singletons that wait here for their lease. Any goroutine.
func leaseWaits(d *Driver) (list []stats.LeaseWait) {
	for _, r := range d.regions.Load().list {
		waits, _ := LeaseWaits(r, d.self)
		list = append(list, waits...)
	}
	return list
}

// LeaseWaits returns the singleton of a type if it waits on this node for its lease, and whether at is this node. Any
// goroutine.
func LeaseWaits(r *Region, at peer.ID) (list []stats.LeaseWait, here bool) {
	if s := r.leaseStats(); s.Waits {
		list = []stats.LeaseWait{{Type: r.typ.Name, Since: s.Since, Why: s.Why}}
	}
	return list, at == r.d.self
}

// leaseStats is where the lease of a type stands. Any goroutine.
func (r *Region) leaseStats() (s stats.Lease) {
	if r.lease != nil {
		if at := r.lease.shown.Load(); at != nil {
			s = *at
		}
	}
	return s
}
