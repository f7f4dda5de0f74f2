// Loop: the goroutine that steps a store, its values and its fenced records, and the callers that wait for it.

package quorum

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	core "github.com/kith-io/kith/internal/core/quorum"
	"github.com/kith-io/kith/internal/runtime/fenced"
	"github.com/kith-io/kith/internal/runtime/parcels"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/quorum/disk"
	"github.com/kith-io/kith/stats"
)

// handOn is what a loop knows of disks that leave for good, its own among them. All but wish is of its goroutine.
type handOn struct {
	given  core.MembersCommand // that the records know
	wish   atomic.Bool
	always bool // each leave of the node is for good
	again  bool // records have been asked once more since nothing was needed
	needs  stats.HandOn
}

// loop steps the machines of a store. All that has come while one commit was under way goes into the next one.
type loop struct {
	node    *kith.Node
	site    *core.Site   // of the goroutine alone
	records *fenced.Node // on the same disk

	bytes    int64 // of the engine, when that was asked last
	measured time.Duration
	handOn   handOn
	engine   disk.Engine
	service  *parcels.Service
	name     string
	most     int // requests
	n        int // replicas of a shard of records
	start    time.Time
	view     *kith.View
	wake     chan struct{} // capacity 1
	end      chan struct{}
	once     sync.Once
	over     chan struct{} // closed when the goroutine has ended
	closed   error         // of the engine
	stats    atomic.Pointer[Stats]

	mu     sync.Mutex
	queue  []core.Command
	waits  map[uint64]chan core.Outcome
	shows  []chan<- *core.Report // that wait for one; each has room for it
	number uint64
}

func (l *loop) init(node *kith.Node, s *Store, name string, site *core.Site) (err error) {
	l.node, l.site, l.engine, l.name, l.start = node, site, s.Engine, s.Name, time.Now()
	c := s.config().WithDefaults()
	l.most, l.n, l.handOn.always = c.MaxRequests, c.N, s.HandOn
	l.wake, l.end, l.over = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	l.waits = map[uint64]chan core.Outcome{}
	l.stats.Store(&Stats{Store: s.Name})
	l.records, err = fenced.Open(fenced.Config{Records: s.records(), Name: name, Self: site.ID(), Disk: s.Engine,
		Carrier: l, Rouse: l.rouse})
	return err
}

// rouse wakes the goroutine. From any other.
func (l *loop) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *loop) close() { l.once.Do(func() { close(l.end) }) }

// watch wakes the goroutine when the members change.
func (l *loop) watch(node *kith.Node) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		<-l.over
		stop()
	}()
	for range node.Events(ctx) {
		l.rouse()
	}
}

// run steps the store until it is closed or the node has ended.
func (l *loop) run(nodeOver <-chan struct{}) {
	defer close(l.over)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ended := false; !ended; {
		select {
		case <-l.wake:
		case <-timer.C:
		case <-l.end:
			ended = true
		case <-nodeOver:
			ended = true
		}
		if !ended {
			timer.Reset(l.turn())
		}
	}
	l.service.Close()
	l.records.End()
	l.closed = l.engine.Close()
}

// turn takes what has come, has it on disk in one commit, and sends what comes of that. It returns how long nothing is
// due.
func (l *loop) turn() time.Duration {
	now, wall := time.Since(l.start), time.Now().UnixMilli()
	if v := l.node.View(); v != l.view {
		l.view = v
		_ = l.site.Do(now, membersOf(v)) // never refused
		l.service.Forget(func(id peer.ID) bool { _, is := v.Member(id); return is })
	}
	for _, m := range l.service.Letters() {
		if disk, body, ok := l.site.FromBeside(m.From, m.Body); ok {
			l.records.Handle(now, disk, body)
		} else if !core.IsBeside(m.Body) {
			_ = l.site.Handle(now, m.From, m.Body) // counted there
		}
	}
	l.mu.Lock()
	queue, shows := l.queue, l.shows
	l.queue, l.shows = nil, nil
	l.mu.Unlock()
	l.handOn.begins(now, l)
	for _, c := range queue {
		if err := l.site.Do(now, c); err != nil {
			l.finish(core.Outcome{Number: numberOf(c), Err: err})
		}
	}
	if at, _ := l.site.Next(); at <= now {
		l.site.Tick(now, wall)
	}
	if len(shows) > 0 {
		r := l.site.Report()
		for _, c := range shows {
			c <- r
		}
	}
	_ = l.site.Sync() // counted there, and tried again
	var e core.Effects
	l.site.Drain(&e)
	for _, m := range e.Sends {
		l.service.Send(m.To, m.Body)
	}
	for _, o := range e.Done {
		l.finish(o)
	}
	l.follow(now)
	rest := l.records.Turn(now)
	l.handOn.goesOn(now, l)
	l.count()
	at, _ := l.site.Next()
	return max(min(at, now+rest)-time.Since(l.start), 0)
}

// follow gives the records the disks that the values know, once the store has begun: those that founded it, which each
// disk has written down, are the members of their first sets.
func (l *loop) follow(now time.Duration) {
	members, founders := l.site.Members(), l.site.Founders()
	if len(founders) == 0 || members.All.Equal(l.handOn.given.All) && members.Up.Equal(l.handOn.given.Up) &&
		members.Leaving.Equal(l.handOn.given.Leaving) {
		return
	}
	if !l.records.Founded() && l.records.Found(now, founding(founders, l.n)) != nil {
		return // the disk refuses; tried again with the next turn
	}
	l.handOn.given = members
	l.records.Members(now, members.Stay(), members.Up)
}

// begins has the site know of a wish.
func (h *handOn) begins(now time.Duration, l *loop) {
	if on := h.wish.Load(); on != h.needs.Leaves {
		_ = l.site.Do(now, core.LeaveCommand{On: on}) // never refused
		h.needs, h.again = stats.HandOn{Leaves: on}, false
	}
}

// goesOn lets other disks go that leave, as far as the records of this one need them no more, and counts what this disk
// is needed for. When it is needed for nothing, its records are looked at once more: an owner may have given it some
// before it heard that the disk leaves.
func (h *handOn) goesOn(now time.Duration, l *loop) {
	m := l.site.Members()
	known := m.All.Equal(h.given.All) && m.Leaving.Equal(h.given.Leaving) // by the records
	if len(m.Leaving) > 0 && known && !l.records.Caring() {
		_ = l.site.Do(now, core.SpareCommand{}) // never refused
	}
	if !h.needs.Leaves {
		return
	}
	h.needs.Disks, h.needs.Alone = l.site.Needed()
	h.needs.Shards = l.records.Lent()
	switch {
	case !known:
		h.needs.Shards = max(h.needs.Shards, 1)
	case h.needs.Disks+h.needs.Shards == 0 && !h.again:
		h.again = true
		l.records.LendAgain()
		h.needs.Shards = l.records.Lent()
		l.rouse()
	}
}

// Send implements fenced.Carrier.
func (l *loop) Send(to peer.ID, body []byte) {
	if m, ok := l.site.Beside(to, body); ok {
		l.service.Send(m.To, m.Body)
	}
}

func numberOf(c core.Command) uint64 {
	switch c := c.(type) {
	case core.GetCommand:
		return c.Number
	case core.PutCommand:
		return c.Number
	case core.LookCommand:
		return c.Number
	}
	return 0
}

// membersOf returns the members that may hold disks, and those of them that answer.
func membersOf(v *kith.View) (c core.ViewCommand) {
	for i := range v.Members {
		m := &v.Members[i]
		if m.Status == kith.Down {
			continue
		}
		c.Members.Add(m.ID)
		if v.Reachable(m.ID) {
			c.Reachable.Add(m.ID)
		}
	}
	return c
}

// finish gives an outcome to its caller.
func (l *loop) finish(o core.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.waits[o.Number]; c != nil {
		c <- o // it has room for one
		delete(l.waits, o.Number)
	}
}

// count publishes the counts.
func (l *loop) count() {
	if now := time.Since(l.start); l.measured == 0 || now-l.measured > time.Second { // an engine has to look for that
		l.measured, l.bytes = now, l.engine.Bytes()
	}
	s := &Stats{Store: l.name, Bytes: l.bytes}
	disks, differs := l.site.Disks()
	s.Refused = differs
	if m := l.site.Machine(); m != nil {
		c := m.Stats()
		s.Disks, s.Requests, s.Keys, s.Lacking, s.Hints, s.HintBytes = disks, c.Requests, c.Keys, c.Lacking, c.Hints,
			c.HintBytes
		s.Repairs, s.Exchanged, s.Conflicted, s.HintsGone = c.Repairs, c.Exchanged, c.Conflicted, c.HintsGone
		s.Failed, s.Damaged, s.Purged = c.Failed, c.Damaged, c.Purged
		s.Refused += c.Refused
	}
	r := l.records.Stats()
	s.Shards, s.Owners, s.Entries, s.Commits, s.Copied = r.Shards, r.Owners, r.Entries, r.Commits, r.Copied
	s.Cared, s.HandOn = r.Cared, l.handOn.needs
	s.Refused, s.Failed, s.Damaged = s.Refused+r.Refused, s.Failed+r.Failed, s.Damaged+r.Damaged
	l.stats.Store(s)
}

// do carries out a command and waits for its outcome.
func (l *loop) do(ctx context.Context, command func(number uint64) core.Command) (core.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return core.Outcome{}, err
	}
	done := make(chan core.Outcome, 1)
	l.mu.Lock()
	if len(l.waits) >= l.most {
		l.mu.Unlock()
		return core.Outcome{}, ErrBusy
	}
	l.number++
	number := l.number
	l.waits[number] = done
	l.queue = append(l.queue, command(number))
	l.mu.Unlock()
	defer l.forget(number)
	l.rouse()
	select {
	case o := <-done:
		if o.Err == ErrTooFew {
			return o, &TooFewError{o.Have, o.Need}
		}
		return o, o.Err
	case <-l.over:
		return core.Outcome{}, ErrClosed
	case <-ctx.Done():
		return core.Outcome{}, ctx.Err()
	}
}

func (l *loop) forget(number uint64) {
	l.mu.Lock()
	delete(l.waits, number)
	l.mu.Unlock()
}

// mostShown is how many operators may wait for a report.
const mostShown = 64

// shown is the store of a loop as operators look at it.
type shown struct{ l *loop }

// Report implements parcels.Store. What it returns is shared, and changed by nobody.
func (s shown) Report(ctx context.Context) (*core.Report, error) {
	c := make(chan *core.Report, 1)
	s.l.mu.Lock()
	if len(s.l.shows) >= mostShown {
		s.l.mu.Unlock()
		return nil, ErrBusy
	}
	s.l.shows = append(s.l.shows, c)
	s.l.mu.Unlock()
	s.l.rouse()
	select {
	case r := <-c:
		return r, nil
	case <-s.l.over:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Look implements parcels.Store.
func (s shown) Look(ctx context.Context, key []byte) (looks []core.Look, values int, err error) {
	o, err := s.l.do(ctx, func(number uint64) core.Command { return core.LookCommand{Number: number, Key: key} })
	return o.Looks, len(o.Entry), err
}

// HandOn implements parcels.Store.
func (s shown) HandOn(on bool) {
	s.l.handOn.wish.Store(on)
	s.l.rouse()
}

// Leaves implements parcels.Store.
func (s shown) Leaves() {
	if s.l.handOn.always {
		s.HandOn(true)
	}
}
