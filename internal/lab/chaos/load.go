// The load of a process: numbered tells and asks to all entities of all three modes, and the entities themselves.

package chaos

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
)

// Load says what each process sends.
type Load struct {
	Entities int     // of each mode
	Shards   uint32  // of each type
	Tells    float64 // a second, of each process, over all modes
	Asks     float64
}

// modes are the types, one for each mode.
var modes = []kith.Mode{kith.Blocking, kith.Worker, kith.Inline}

// targets is how many entities there are in all.
func (l Load) targets() int { return len(modes) * l.Entities }

// typeOf returns the type of a target, and its place among the entities of that type.
func (l Load) typeOf(target int) (typ, nth int) { return target / l.Entities, target % l.Entities }

// load is the running load of one process.
type load struct {
	c       *child
	sent    *journal
	handled *journal
	fast    *storeClient      // for handlers, which may wait for it
	slow    chan pendingWrite // from handlers which may not
	regions []*kith.Region    // by type
	ids     []string          // by target
	index   map[string]uint16 // of an entity's id
	ctx     context.Context
	stop    context.CancelFunc
	senders sync.WaitGroup
	moves   *journal     // what the node reported of moves
	slowBy  atomic.Int64 // how long each Blocking call takes, in nanoseconds,

	slowUntil atomic.Int64 // until then, by the clock of the run
}

// pendingWrite is a write of a handler that does not wait for it, and the note that its answer completes.
type pendingWrite struct {
	note int
	h    handled
}

// slowRoom is how many writes may wait. A handler that finds no room does not write.
const slowRoom = 4096

func newLoad(c *child) (*load, error) {
	l := &load{c: c, slow: make(chan pendingWrite, slowRoom), index: map[string]uint16{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	out, in := journals(c.args.Dir, c.args.Sender)
	var errs [5]error
	l.sent, errs[0] = openJournal(out)
	l.handled, errs[1] = openJournal(in)
	l.fast, errs[2] = dialStore(c.args.Store)
	slow, err := dialStore(c.args.Store)
	errs[3] = err
	l.moves, errs[4] = openJournal(movesJournal(c.args.Dir, c.args.Sender))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	go l.writeSlowly(slow)
	for target := range c.args.Load.targets() {
		id := c.args.Load.nameOf(target)
		l.ids = append(l.ids, id)
		l.index[id] = uint16(target)
	}
	return l, nil
}

func (l *load) register(node *kith.Node) error {
	for _, m := range modes {
		r, err := node.Register(kith.EntityType{Name: "chaos-" + m.String(), Mode: m, Shards: l.c.args.Load.Shards,
			SlowAfter: -1,
			New:       func(id string, f kith.Fence) kith.Handler { return newEntity(l, m, id, f) }})
		if err != nil {
			return fmt.Errorf("register: %w", err)
		}
		l.regions = append(l.regions, r)
	}
	return nil
}

func (l *load) shards() []uint32 {
	all := make([]uint32, len(l.ids))
	for target, id := range l.ids {
		typ, _ := l.c.args.Load.typeOf(target)
		all[target] = uint32(l.regions[typ].Shard(id))
	}
	return all
}

// run sends from when the node is ready until it is ordered to be quiet.
func (l *load) run(node *kith.Node) {
	if node.Ready(l.ctx) != nil {
		return
	}
	for typ := range l.regions {
		l.senders.Go(func() { l.pace(l.c.args.Load.Tells/float64(len(modes)), typ, l.c.args.Load.Entities, l.tell) })
	}
	l.senders.Go(func() { l.pace(l.c.args.Load.Asks, 0, len(l.ids), l.ask) })
}

// pace calls f for the targets in turn, so many a second. What a pause kept it from is not made up for.
func (l *load) pace(perSecond float64, typ, n int, f func(target int)) {
	if perSecond <= 0 {
		return
	}
	tick := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
	defer tick.Stop()
	for i := int(l.c.args.Sender); ; i++ { // processes do not walk in step
		select {
		case <-tick.C:
			f(typ*l.c.args.Load.Entities + i%n)
		case <-l.ctx.Done():
			return
		}
	}
}

func (l *load) tell(target int) {
	n, err := l.sent.begin()
	if err != nil {
		return
	}
	typ, _ := l.c.args.Load.typeOf(target)
	s := sent{target: uint16(target), fate: fateAccepted, from: l.c.clock.Now()}
	var room [messageBytes]byte
	err = l.regions[typ].Tell(l.ids[target], appendMessage(room[:0], l.c.args.Sender, uint64(n), false))
	if s.until = l.c.clock.Now(); err != nil {
		s.fate, s.reason = fateRefused, reasonOf(err)
	}
	l.sent.note(n, s.record())
}

// askTime bounds an ask.
const askTime = 2 * time.Second

func (l *load) ask(target int) {
	n, err := l.sent.begin()
	if err != nil {
		return
	}
	typ, _ := l.c.args.Load.typeOf(target)
	s := sent{target: uint16(target), ask: true, fate: fateAsked, from: l.c.clock.Now()}
	l.sent.note(n, s.record())
	b := appendMessage(nil, l.c.args.Sender, uint64(n), true)
	err = l.regions[typ].AskFunc(askTime, l.ids[target], b, func(_ []byte, err error) {
		done := s
		done.fate, done.until = fateAnswered, l.c.clock.Now()
		if err != nil {
			done.fate, done.reason = fateFailed, reasonOf(err)
		}
		l.sent.note(n, done.record())
	})
	if err != nil {
		s.fate, s.reason, s.until = fateRefused, reasonOf(err), l.c.clock.Now()
		l.sent.note(n, s.record())
	}
}

// undelivered is Config.Undelivered.
func (l *load) undelivered(u kith.Undelivered) {
	n, err := l.sent.begin()
	if err != nil {
		return
	}
	s := sent{fate: fateReported, reason: uint16(u.Reason), count: u.Count, shard: uint32(u.Shard), from: l.c.clock.Now()}
	for _, there := range []error{kith.ErrAbandoned, kith.ErrCrashed, kith.ErrNewFailed} {
		s.ask = s.ask || errors.Is(u.Err(), there)
	}
	if u.Type == "" {
		s.typ = noType
	}
	for typ, r := range l.regions {
		if r.Type().Name == u.Type {
			s.typ = uint8(typ)
		}
	}
	l.sent.note(n, s.record())
}

// noteMoves notes what the node reports of moves until it ends.
func (l *load) noteMoves(node *kith.Node) {
	for e := range node.ShardEvents(context.Background()) {
		switch e.Kind {
		case kith.MoveBegan, kith.MoveMarked, kith.MoveHandedOver, kith.ShardReleased, kith.MoveDone, kith.MoveAborted,
			kith.MoveReturned:
		default:
			continue
		}
		for typ, r := range l.regions {
			if r.Type().Name == e.Name {
				l.noteMove(moveNote{kind: e.Kind, typ: uint8(typ), shard: uint32(e.Shard),
					number: uint64(e.Number.Term)<<32 | uint64(e.Number.Seq), from: addrWord(e.Home.Addr.String()),
					to: addrWord(e.To.Addr.String()), at: l.c.clock.Now() - time.Since(e.At)})
			}
		}
	}
}

// noteMove writes a note; where the journal is full nobody learns of it.
func (l *load) noteMove(n moveNote) {
	if i, err := l.moves.begin(); err == nil {
		l.moves.note(i, n.record())
	}
}

// reasons are the errors that a note can name, by their place here; zero is any other.
var reasons = []error{nil, kith.ErrTimeout, kith.ErrPeerLost, kith.ErrNotOwner, kith.ErrSuspended, kith.ErrLinkFull,
	kith.ErrParkFull, kith.ErrStopped, kith.ErrShardStopping, kith.ErrMailboxFull, kith.ErrHandler, kith.ErrAsksFull,
	kith.ErrNotRegistered, kith.ErrNoReply}

func reasonOf(err error) uint16 {
	for i, r := range reasons {
		if r != nil && errors.Is(err, r) {
			return uint16(i)
		}
	}
	return 0
}

// nameOf returns how a target is called.
func (l Load) nameOf(target int) string {
	typ, nth := l.typeOf(target)
	return string("bwi"[typ]) + strconv.Itoa(nth)
}
