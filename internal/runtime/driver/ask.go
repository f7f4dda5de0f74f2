// Asks: package plane's tables of waiters, each under a lock of its own, and their states in atomic words.

package driver

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/base/callback"
	"github.com/kith-io/kith/internal/base/incall"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

const (
	askStripes = 8   // each with a lock of its own; a power of two
	askChunk   = 256 // waiters made at a time

	wheelTick = plane.WheelTick
)

// askWaiter is one ask under way. Between begin and free it belongs to the asker; reply, reason and err are written by
// the goroutine that settles it, before wake is signalled. That is another core than the asker's, mostly: so a waiter
// shares no line of memory with another one, and an answer touches one of its lines, a failure two
// (TestLinesOfAWaiter).
type askWaiter struct {
	state  atomic.Uint64              // plane.AskState: the move from waiting to settled gives the right to answer it
	dest   atomic.Pointer[routeEntry] // where it was sent; nil while it is parked
	wake   chan struct{}              // capacity 1
	fn     func(reply []byte, err error)
	reply  []byte
	reason route.Reason
	timed  bool // began is set

	by     atomic.Pointer[exec.Host] // the shard of the handler that asks; nil: another asks
	region *Region
	shard  route.ShardID
	err    error
	began  time.Time // of an ask that is timed

	plane.Ask        // guarded by the stripe's lock, but for the index, which never changes
	id        string // of the entity, of an ask with fn
}

// askTable holds all waiters of a node.
type askTable struct {
	stripes   [askStripes]askStripe
	tick      atomic.Int64  // wheel ticks since start, as the ticker last said
	at        func() int64  // the tick that it is now: exact, for the ticker may have stood still
	late      atomic.Uint64 // answers that found nobody
	foreign   atomic.Uint64 // answers of nodes that were not asked, as far as was known when they came
	full      *AsksFullError
	every     int // one of so many is timed; zero: none
	callbacks *callback.Guard

	early earlyAnswers
}

type askStripe struct {
	mu     sync.Mutex
	timed  exec.Sampler
	asks   plane.Asks
	_      [64]byte // what follows is read where answers come, on other cores than the askers, which write the above
	limit  int
	chunks []atomic.Pointer[[askChunk]askWaiter]
	_      [64]byte // stripes are taken by different threads
}

// newAskTable returns a table of at most limit waiters, that times one of every so many; zero: none.
func newAskTable(limit, every int) *askTable {
	t := &askTable{full: &AsksFullError{Limit: limit}, every: every}
	t.at = t.tick.Load
	for i := range t.stripes {
		s := &t.stripes[i]
		s.limit = (limit + askStripes - 1 - i) / askStripes
		s.chunks = make([]atomic.Pointer[[askChunk]askWaiter], (s.limit+askChunk-1)/askChunk)
	}
	return t
}

// begin takes a waiter that times out after d, or returns an *AsksFullError.
func (t *askTable) begin(d time.Duration, r *Region, shard route.ShardID, into []byte,
	fn func([]byte, error)) (asking, uint64, error) {
	return t.beginFor("", d, r, shard, into, fn)
}

// beginFor is begin with the id of the entity, for the error that fn gets.
func (t *askTable) beginFor(id string, d time.Duration, r *Region, shard route.ShardID, into []byte,
	fn func([]byte, error)) (asking, uint64, error) {
	start, due := stripeHere(), t.at()+plane.WheelTicks(d)
	for i := range uint32(askStripes) {
		n := (start + i) % askStripes
		s := &t.stripes[n]
		s.mu.Lock()
		if s.asks.Full() && !s.grow(n) {
			s.mu.Unlock()
			continue
		}
		w := s.at(s.asks.Begin(due).Index())
		w.region, w.shard, w.fn, w.reply = r, shard, fn, into[:0]
		if fn != nil {
			w.id = id
		}
		limit, limited := plane.LimitOf(w.Due(), d)
		corr := w.Corr()
		w.state.Store(uint64(plane.Waiting(corr)))
		if t.every > 0 && s.timed.Pick(t.every) {
			w.timed, w.began = true, time.Now()
		}
		s.mu.Unlock()
		return asking{w, limit, limited, fn != nil}, corr, nil
	}
	return asking{}, 0, t.full
}

// stripeHere returns at which stripe an ask of this goroutine looks first: at that of its last one, since its core has
// that waiter and lock at hand.
func stripeHere() uint32 {
	if incall.Known {
		return uint32(uint64(incall.Here()) * 0x9e3779b97f4a7c15 >> 32)
	}
	return rand.Uint32()
}

func (s *askStripe) grow(stripe uint32) bool {
	made := s.asks.Made()
	if made == s.limit {
		return false
	}
	chunk := new([askChunk]askWaiter)
	s.chunks[made/askChunk].Store(chunk)
	for i := range min(len(chunk), s.limit-made) {
		w := &chunk[i]
		w.wake = make(chan struct{}, 1)
		s.asks.Add(&w.Ask, uint32(made+i)*askStripes+stripe)
	}
	return true
}

// find returns the waiter of a correlation, which may have been used again since.
func (t *askTable) find(corr uint64) *askWaiter {
	index := plane.AskIndex(corr)
	return t.stripes[index%askStripes].at(index)
}

// at returns a waiter of this stripe by its index, nil when there is none.
func (s *askStripe) at(index uint32) *askWaiter {
	n := int(index / askStripes)
	if n >= s.limit {
		return nil
	}
	if chunk := s.chunks[n/askChunk].Load(); chunk != nil {
		return &chunk[n%askChunk]
	}
	return nil
}

// conclude answers an ask: the payload, valid during the call, is the reply or the text of the failure. It reports
// whether somebody was waiting.
func (t *askTable) conclude(corr uint64, reason route.Reason, payload []byte) bool {
	w := t.find(corr)
	if w == nil || !w.claim(corr) {
		t.late.Add(1)
		return false
	}
	t.finish(w, reason, payload, false)
	return true
}

// answered is conclude for the reply of another node, which must be the one that was asked: numbers can be guessed.
// That of a node to which the shard may have moved, unheard of here, is kept until a route changes.
func (t *askTable) answered(corr uint64, n *peerNode, reason route.Reason, payload []byte) bool {
	// Nearly all: the waiter's line comes from the asker's core once, to be written, where a look at it before would
	// bring it twice.
	if w := t.find(corr); w != nil && n.number != 0 && w.claimAs(plane.Waiting(corr).SentTo(n.number)) {
		t.finish(w, reason, payload, false)
		return true
	}
	from := n.id
	w, asked, what := t.claimFrom(corr, from)
	switch {
	case w != nil:
		t.finish(w, reason, payload, false)
	case what == plane.Foreign && !asked.IsZero():
		t.early.keep(&plane.EarlyAnswer{Corr: corr, From: from, Asked: asked, Reason: reason, Payload: payload})
		t.lookAgain() // the route may have changed just before
	}
	return w != nil
}

// lookAgain takes the kept answers of nodes that are known now for those to which shards have moved.
func (t *askTable) lookAgain() {
	for again := t.early.any.Load(); again; {
		list, turn := t.early.take()
		due := list.Look(func(a *plane.EarlyAnswer) plane.Verdict {
			_, asked, what := t.judge(a.Corr, a.From)
			return a.Judge(what, asked)
		})
		for i := range due {
			a := &due[i]
			if w, _, _ := t.claimFrom(a.Corr, a.From); w != nil {
				t.finish(w, a.Reason, a.Payload, true)
			}
		}
		again = t.early.giveBack(&list, turn)
	}
}

// claimFrom is awaiting for an answer that is taken: the waiter that it returns is answered by nobody else any more.
func (t *askTable) claimFrom(corr uint64, from peer.ID) (*askWaiter, route.Fence, plane.Verdict) {
	w, asked, what := t.judge(corr, from)
	if what == plane.Due && !w.claim(corr) {
		what = plane.Late
	}
	return t.counted(w, what), asked, what
}

// awaiting returns the waiter for that node's answer to an ask, nil for none. One that waits for another node's answer,
// or was not sent yet, is left waiting.
func (t *askTable) awaiting(corr uint64, from peer.ID) *askWaiter {
	w, _, what := t.judge(corr, from)
	return t.counted(w, what)
}

// counted counts an answer that is not due, and returns the waiter of one that is.
func (t *askTable) counted(w *askWaiter, what plane.Verdict) *askWaiter {
	switch what {
	case plane.Late:
		t.late.Add(1)
	case plane.Foreign:
		t.foreign.Add(1)
	case plane.Due:
		return w
	}
	return nil
}

// judge says what a node's answer to an ask is, and returns the waiter, if there is one, and the fence of the owner to
// which it was sent, zero when to none.
func (t *askTable) judge(corr uint64, from peer.ID) (w *askWaiter, to route.Fence, what plane.Verdict) {
	w = t.find(corr)
	if w == nil {
		return nil, to, plane.Late
	}
	state := plane.AskState(w.state.Load()) // before dest, which is the next ask's once this one is over
	e := w.dest.Load()
	asked := e != nil && (e.remote != nil && e.remote.id == from || mayAnswerFor(e, from))
	if e != nil {
		to = e.fence
	}
	what = state.Judge(corr, asked)
	if what == plane.Foreign && plane.AskState(w.state.Load()).Judge(corr, asked) != plane.Foreign {
		what = plane.Late // it was answered just now
	}
	return w, to, what
}

// earlyAnswers are those that wait for the news that their shards have moved. They are judged without the lock.
type earlyAnswers struct {
	any   atomic.Bool // there may be some
	mu    sync.Mutex
	list  plane.EarlyAnswers
	turn  uint64 // how often they were taken
	taken int    // by how many they are being judged
}

func (l *earlyAnswers) keep(a *plane.EarlyAnswer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list.Keep(a)
	l.any.Store(l.taken > 0 || l.list.Len() > 0)
}

// take takes them out, for a caller that gives back what is to wait on.
func (l *earlyAnswers) take() (list plane.EarlyAnswers, turn uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn++
	l.taken++
	list, l.list = l.list, plane.EarlyAnswers{}
	return list, l.turn
}

// giveBack gives back what take took, and reports whether it is to be judged again: somebody took what was there
// meanwhile, for a route that had changed.
func (l *earlyAnswers) giveBack(list *plane.EarlyAnswers, turn uint64) (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken--
	l.list.Add(list)
	l.any.Store(l.taken > 0 || l.list.Len() > 0)
	return l.turn != turn && l.list.Len() > 0
}

// concludeWith answers an ask with a reply of that node that becomes the asker's own.
func (t *askTable) concludeWith(corr uint64, from peer.ID, reply []byte) bool {
	w, _, _ := t.claimFrom(corr, from)
	if w == nil {
		return false
	}
	if w.fn == nil && cap(w.reply) < len(reply) {
		w.reply, reply = reply, nil
	}
	t.finish(w, route.OK, reply, false)
	return true
}

// waits reports whether somebody waits for the answer to an ask.
func (t *askTable) waits(corr uint64) bool {
	w := t.find(corr)
	return w != nil && plane.AskState(w.state.Load()).WaitsFor(corr)
}

// claim moves w from waiting for the answer to an ask to settled; only one caller succeeds.
func (w *askWaiter) claim(corr uint64) bool {
	for {
		state := plane.AskState(w.state.Load())
		if !state.WaitsFor(corr) {
			return false
		}
		if w.claimAs(state) { // else it was settled, or has gone to another node
			return true
		}
	}
}

// claimAs is claim by the state of a waiter that waits.
func (w *askWaiter) claimAs(state plane.AskState) bool {
	return w.state.CompareAndSwap(uint64(state), uint64(state.Settled()))
}

// claimIf is claim for the ask that waits, if there is one and so says. It reads the state before it asks: an ask that
// begins in between has another generation, and is asked about again.
func (w *askWaiter) claimIf(so func() bool) bool {
	for {
		state := plane.AskState(w.state.Load())
		if !state.Waits() || !so() {
			return false
		}
		if w.claimAs(state) {
			return true
		}
	}
}

// finish hands an answer to the asker. own: it is no answer but a failure that was found here, by the control goroutine
// or the ticker perhaps, which no function of the embedder's may hold up: it gets a goroutine.
func (t *askTable) finish(w *askWaiter, reason route.Reason, payload []byte, own bool) {
	w.reason = reason
	if reason == route.OK && w.fn == nil && !w.timed { // as most: this needs the waiter's first line alone
		w.reply = append(w.reply, payload...)
		w.wake <- struct{}{}
		return
	}
	if w.timed {
		w.tellTime(t.callbacks, reason)
	}
	if plane.WrongHome(reason) {
		if e := w.dest.Load(); e != nil {
			w.region.d.doubt(slotRef{w.region, w.shard}, e)
		}
	}
	failed := w.err
	if reason != route.OK && failed == nil {
		failed = w.failure(reason, payload)
	}
	if w.fn != nil {
		t.callBack(w, reason, payload, failed, own)
		return
	}
	if reason != route.OK {
		w.err = failed
	} else {
		w.reply = append(w.reply, payload...)
	}
	w.wake <- struct{}{}
}

// callBack ends an ask whose answer calls a function of the embedder's.
func (t *askTable) callBack(w *askWaiter, reason route.Reason, payload []byte, failed error, own bool) {
	f, r, id, sh, e := w.fn, w.region, w.id, w.shard, w.dest.Load()
	fn := func(b []byte, err error) { _ = t.callbacks.Call("AskFunc", func() { f(b, err) }) }
	t.free(w)
	switch {
	case reason == route.OK:
		fn(payload, nil)
	case route.Unanswered(reason): // where its entity lives is asked under locks that may be held here
		go func() { fn(nil, unanswered(e, r, id, sh, reason, failed)) }()
	case own || reason == route.Stopped || reason == route.Crashed || reason == route.Abandoned:
		// A shard answers so, for what it drops, under its lock, which user code must not run under.
		go fn(nil, failed)
	default:
		fn(nil, failed)
	}
}

// free gives w back, which is settled; its correlation is void from here on.
func (t *askTable) free(w *askWaiter) {
	s := &t.stripes[w.Index()%askStripes]
	w.region, w.reply, w.err = nil, nil, nil
	if w.fn != nil {
		w.fn, w.id = nil, ""
	}
	if w.timed {
		w.timed, w.began = false, time.Time{}
	}
	if w.by.Load() != nil {
		w.by.Store(nil)
	}
	s.mu.Lock()
	w.stays() // under the lock: its sender may still call goes
	s.asks.End(&w.Ask)
	s.mu.Unlock()
}

// goes notes where an ask goes, before it is sent there, and reports whether anybody waits for it still: else it must
// not be sent, because an asker that gives up and finds that it went nowhere says that it was not executed.
func (w *askWaiter) goes(corr uint64, e *routeEntry) bool {
	w.dest.Store(e)
	node := uint32(0)
	if e.remote != nil {
		node = e.remote.number
	}
	for {
		state := plane.AskState(w.state.Load())
		if !state.WaitsFor(corr) {
			return false
		}
		if sent := state.SentTo(node); sent == state || w.state.CompareAndSwap(uint64(state), uint64(sent)) {
			return true
		}
	}
}

// stays notes that an ask of one's own goes nowhere yet.
func (w *askWaiter) stays() {
	w.dest.Store(nil)
	for {
		state := plane.AskState(w.state.Load())
		if nowhere := state.SentTo(0); nowhere == state || !state.Waits() ||
			w.state.CompareAndSwap(uint64(state), uint64(nowhere)) {
			return
		}
	}
}

// stays notes that an ask which waited in a link goes nowhere yet.
func (t *askTable) stays(corr uint64) {
	w := t.find(corr)
	if w == nil {
		return
	}
	s := &t.stripes[w.Index()%askStripes]
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.Corr() == corr {
		w.stays()
	}
}

// goes notes where a parked ask goes, before it is sent there, and reports whether anybody waits for it still.
func (t *askTable) goes(corr uint64, e *routeEntry) bool {
	w := t.find(corr)
	if w == nil {
		return false
	}
	s := &t.stripes[w.Index()%askStripes]
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.Corr() == corr && w.goes(corr, e) // else it was given up
}

// advance moves the wheels to tick and fails what is over.
func (t *askTable) advance(tick int64) {
	t.tick.Store(tick)
	var over []uint64
	for i := range t.stripes {
		s := &t.stripes[i]
		s.mu.Lock()
		over = s.asks.Advance(tick, over[:0])
		s.mu.Unlock()
		for _, corr := range over {
			t.failIfWaiting(corr, route.TimedOut)
		}
	}
}

// failIfWaiting fails an ask unless it has been answered meanwhile.
func (t *askTable) failIfWaiting(corr uint64, reason route.Reason) { t.failWith(corr, reason, nil) }

// failWith is settleQuietly with an error that matches the reason and tells more; nil: that of the reason.
func (t *askTable) failWith(corr uint64, reason route.Reason, why error) {
	if w := t.find(corr); w != nil && w.claim(corr) {
		w.err = why
		t.finish(w, reason, nil, true)
	}
}

// abandon gives back a waiter when its message was not accepted. It reports false when somebody has settled it
// meanwhile and so has called its function.
func (t *askTable) abandon(w *askWaiter, corr uint64, byFunc bool) bool {
	if w.claim(corr) {
		t.free(w)
		return true
	}
	if byFunc {
		return false
	}
	<-w.wake
	t.free(w)
	return true
}

// lose fails every ask that was sent to n, if any.
func (t *askTable) lose(n *peerNode, reason route.Reason) {
	if n == nil {
		return
	}
	for _, r := range n.conns {
		t.fail(r, reason)
	}
}

// fail fails every ask that was sent over r; a nil r means all asks.
func (t *askTable) fail(r *peerConn, reason route.Reason) {
	for i := range t.stripes {
		for j := range t.stripes[i].chunks {
			chunk := t.stripes[i].chunks[j].Load()
			if chunk == nil {
				break
			}
			for k := range chunk {
				w := &chunk[k]
				if w.claimIf(func() bool { return r == nil || w.dest.Load().over(r) }) {
					t.finish(w, reason, nil, true)
				}
			}
		}
	}
}

// underway counts the asks that wait.
func (t *askTable) underway() int {
	n := 0
	for i := range t.stripes {
		s := &t.stripes[i]
		s.mu.Lock()
		n += s.asks.Underway()
		s.mu.Unlock()
	}
	return n
}
