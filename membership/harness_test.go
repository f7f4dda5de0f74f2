// The harness of these tests: several machines, a virtual clock and a mail queue with a small delay.

package membership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/base/contract"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

type mailItem struct {
	at       time.Duration
	seq      int
	from, to peer.ID
	kind     wire.Kind
	body     []byte
}

type actor struct {
	id     peer.ID
	m      *Machine
	epoch  time.Duration // world time of its start
	view   *cluster.View
	events []Event
	ended  *Ended
	dead   bool
}

type world struct {
	t      *testing.T
	rng    *rand.Rand
	now    time.Duration
	seq    int
	queue  []mailItem
	actors []*actor
	inc    uint64
	cut    func(from, to peer.ID) bool // true: lost
	lose   func(from peer.ID, kind wire.Kind) bool
	chaos  bool              // duplicate, delay and reorder at random
	sizes  map[wire.Kind]int // largest body by kind
	counts map[wire.Kind]int
	cfg    Config
}

// A machine keeps the contract of all machines.
var _ contract.Machine[Command, Effects] = (*Machine)(nil)

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, rng: rand.New(rand.NewPCG(seed, 9)), sizes: map[wire.Kind]int{}, counts: map[wire.Kind]int{}}
}

func addr(n int) peer.Addr { return peer.MustAddr(fmt.Sprintf("10.0.0.%d:7355", n)) }

func addrs(ns ...int) []peer.Addr {
	var out []peer.Addr
	for _, n := range ns {
		out = append(out, addr(n))
	}
	return out
}

// start begins a new incarnation at address n.
func (w *world) start(n int, roles ...string) *actor {
	w.inc++
	id := peer.ID{Addr: addr(n), Inc: w.rng.Uint64() | 1}
	cfg := w.cfg
	cfg.Roles = roles
	a := &actor{id: id, m: New(id, cfg, rand.New(rand.NewPCG(w.rng.Uint64(), w.inc))), epoch: w.now}
	w.actors = append(w.actors, a)
	return a
}

func (w *world) join(a *actor, seeds ...int) {
	w.do(a, JoinCommand{Seeds: addrs(seeds...), WallMillis: 1_750_000_000_000})
}

func (w *world) do(a *actor, c Command) {
	require.NoError(w.t, a.m.Do(w.now-a.epoch, c))
	w.drain(a)
}

func (w *world) drain(a *actor) {
	var out Effects
	contract.Drain(w.t, a.m, &out, "drained")
	for _, mail := range out.Mail {
		require.False(w.t, mail.To == a.id, "mail to itself: %s", mail.Kind)
		w.sizes[mail.Kind] = max(w.sizes[mail.Kind], len(mail.Body))
		w.counts[mail.Kind]++
		w.post(a.id, mail.To, mail.Kind, mail.Body)
	}
	w.apply(a, &out)
	if a.m.st != nil {
		requireSound(w.t, a.m.st)
	}
}

func (w *world) apply(a *actor, out *Effects) {
	a.events = append(a.events, out.Events...)
	if out.View != nil {
		if a.view != nil {
			require.Equal(w.t, a.view.Seq+1, out.View.Seq)
		}
		a.view = out.View
	}
	if out.Ended != nil {
		require.Nil(w.t, a.ended, "ended twice")
		a.ended = out.Ended
		a.dead = true
	}
}

func (w *world) post(from, to peer.ID, kind wire.Kind, body []byte) {
	if w.cut != nil && w.cut(from, to) || w.lose != nil && w.lose(from, kind) {
		return
	}
	copies := 1
	if w.chaos && w.rng.IntN(10) == 0 {
		copies = w.rng.IntN(3)
	}
	for range copies {
		delay := time.Duration(200+w.rng.IntN(800)) * time.Microsecond
		if w.chaos && w.rng.IntN(10) == 0 {
			delay = time.Duration(w.rng.IntN(3000)) * time.Millisecond
		}
		w.seq++
		w.queue = append(w.queue, mailItem{w.now + delay, w.seq, from, to, kind, slices.Clone(body)})
	}
}

func (w *world) find(to peer.ID) *actor {
	for _, a := range w.actors {
		if !a.dead && a.id.Addr == to.Addr && (to.Inc == 0 || to.Inc == a.id.Inc) {
			return a
		}
	}
	return nil
}

func (w *world) crash(a *actor) { a.dead = true }

// step does the next thing that is due before limit and reports whether there was one.
func (w *world) step(limit time.Duration) bool {
	best, at := -1, limit
	for i, l := range w.queue {
		if l.at < at || l.at == at && best >= 0 && l.seq < w.queue[best].seq {
			best, at = i, l.at
		}
	}
	var ticked *actor
	for _, a := range w.actors {
		if d, ok := a.m.Next(); ok && !a.dead && a.epoch+d < at {
			ticked, at = a, a.epoch+d
		}
	}
	if best < 0 && ticked == nil {
		w.now = limit
		return false
	}
	w.now = max(w.now, at)
	if ticked != nil {
		ticked.m.Tick(w.now - ticked.epoch)
		d, ok := ticked.m.Next()
		require.True(w.t, !ok || ticked.epoch+d > w.now, "a deadline in the past stays")
		w.drain(ticked)
		return true
	}
	l := w.queue[best]
	w.queue = slices.Delete(w.queue, best, best+1)
	a := w.find(l.to)
	if a == nil {
		return true
	}
	if l.kind == wire.KindHeartbeat {
		if ack, err := wire.AnswerHeartbeat(nil, l.body, 0); err == nil {
			w.post(a.id, l.from, wire.KindHeartbeatAck, ack)
		}
	}
	now := w.now - a.epoch
	require.NoError(w.t, a.m.Handle(now, now, l.from, l.kind, l.body), "%s", l.kind)
	w.drain(a)
	return true
}

// run lets d pass.
func (w *world) run(d time.Duration) {
	for limit := w.now + d; w.step(limit); {
	}
}

// until runs until ok, at most d, and returns how long it took.
func (w *world) until(d time.Duration, what string, ok func() bool) time.Duration {
	begin := w.now
	for !ok() {
		if !w.step(begin + d) {
			require.Fail(w.t, "not within "+d.String(), "%s%s", what, w.describe())
		}
	}
	return w.now - begin
}

func (w *world) describe() string {
	out := ""
	for _, a := range w.actors {
		if a.view != nil {
			out += fmt.Sprintf("\n%s dead=%v converged=%v %v accusations %v seen %d ended %v", a.id, a.dead, a.view.Converged,
				a.view.Members, a.view.Accusations, a.m.st.Seen.Count(), a.ended)
		}
	}
	return out
}

func (w *world) alive() []*actor {
	var out []*actor
	for _, a := range w.actors {
		if !a.dead {
			out = append(out, a)
		}
	}
	return out
}

// settled reports whether all live nodes hold the same converged state with exactly the live nodes Up.
func (w *world) settled() bool {
	live := w.alive()
	for _, a := range live {
		if a.view == nil || !a.view.Converged || a.view.CountUp() != len(live) || len(a.view.Members) != len(live) ||
			a.view.Hash != live[0].view.Hash || len(a.view.Unreachable) != 0 {
			return false
		}
		if m, ok := a.view.SelfMember(); !ok || m.Status != cluster.Up {
			return false
		}
	}
	return true
}

// cluster forms a settled cluster of n nodes at addresses 1 to n, all started at once.
func (w *world) cluster(n int) []*actor {
	seeds := []int{1, 2, 3}[:min(n, 3)]
	var all []*actor
	for i := range n {
		all = append(all, w.start(i+1))
	}
	for _, a := range all {
		w.join(a, seeds...)
	}
	w.until(30*time.Second, "forming", w.settled)
	return all
}

func kindsOf(events []Event) []EventKind {
	var out []EventKind
	for _, e := range events {
		out = append(out, e.Kind)
	}
	return out
}

// requireSound checks the invariants of a state.
func requireSound(t require.TestingT, s *members.State) {
	ups := map[uint32]peer.ID{}
	for i, m := range s.Members {
		require.True(t, m.Status.Known() && m.Status != cluster.Removed)
		require.LessOrEqual(t, m.UpNumber, s.HighestUp)
		if m.UpNumber != 0 {
			require.NotContains(t, ups, m.UpNumber, "an up-number given twice")
			ups[m.UpNumber] = m.ID
		}
		if i > 0 {
			require.True(t, s.Members[i-1].ID.Less(m.ID))
		}
		_, dead := s.Tomb(m.ID)
		require.False(t, dead)
	}
	require.Equal(t, len(s.Members), s.Seen.Len())
	for _, e := range s.Clock {
		require.True(t, s.Has(e.ID))
	}
	for _, a := range s.Accused {
		require.True(t, s.Has(a.Observer) && s.Has(a.Subject) && a.Subject != a.Observer)
	}
}
