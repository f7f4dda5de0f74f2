// A few couriers and the network between them, for tests: mail may be lost, doubled, delayed and overtaken.

package courier

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/contract"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const giveUpAfter = 30 * time.Second

func ip(n int) peer.ID {
	return peer.ID{Addr: peer.MustAddr("10.0.0." + strconv.Itoa(n) + ":7355"), Inc: uint64(100 + n)}
}

// A machine keeps the contract of all machines.
var _ contract.Machine[Command, Effects] = (*Machine)(nil)

// wireItem is a frame on its way.
type wireItem struct {
	at   time.Duration
	from peer.ID
	mail peer.Mail
}

// post is one node with its courier and what it was delivered, by sender.
type post struct {
	id       peer.ID
	m        *Machine
	standing map[peer.ID]Standing
	got      map[peer.ID][]string
	gaveUp   []GaveUp
	full     []*FullError
	sent     int // frames
}

// net carries frames between posts.
type net struct {
	t     *testing.T
	now   time.Duration
	rng   *rand.Rand
	posts []*post
	wires []wireItem
	lose  func(from peer.ID, m *peer.Mail) bool // nil: nothing is lost
	twice float64
	delay func() time.Duration
}

func newNet(t *testing.T, seed uint64, n int, cfg Config) *net {
	w := &net{t: t, now: time.Second, rng: rand.New(rand.NewPCG(seed, 1)),
		delay: func() time.Duration { return time.Millisecond }}
	for i := 1; i <= n; i++ {
		w.start(ip(i), cfg)
	}
	for _, p := range w.posts {
		for _, o := range w.posts {
			p.standing[o.id] = Present
		}
		w.follow(p)
	}
	return w
}

func (w *net) start(id peer.ID, cfg Config) *post {
	p := &post{id: id, m: New(id, cfg, rand.New(rand.NewPCG(id.Inc, 2))), standing: map[peer.ID]Standing{},
		got: map[peer.ID][]string{}}
	w.posts = append(w.posts, p)
	return p
}

// standings is a function that tells them.
type standings func(id peer.ID) Standing

func (f standings) Of(id peer.ID) Standing { return f(id) }

// follow tells a post its own standing table.
func (w *net) follow(p *post) {
	of := standings(func(id peer.ID) Standing { return p.standing[id] })
	require.NoError(w.t, p.m.Do(w.now, FollowCommand{Roster{Of: of, GiveUpAfter: giveUpAfter}}))
	w.drain(p)
}

// say posts a message.
func (w *net) say(p, to *post, text string) error {
	err := p.m.Do(w.now, PostCommand{Mail: peer.Mail{To: to.id, Kind: wire.KindHomes, Body: []byte(text)}})
	w.drain(p)
	return err
}

func (w *net) drain(p *post) {
	var out Effects
	contract.Drain(w.t, p.m, &out, "out", "drained")
	p.full, p.gaveUp = append(p.full, out.Full...), append(p.gaveUp, out.GaveUp...)
	for _, mail := range out.Mail {
		p.sent++
		mail.Body = slices.Clone(mail.Body)
		if w.lose != nil && w.lose(p.id, &mail) {
			continue
		}
		for range 1 + w.again() {
			w.wires = append(w.wires, wireItem{w.now + w.delay(), p.id, mail})
		}
	}
}

func (w *net) again() int {
	if w.rng.Float64() < w.twice {
		return 1
	}
	return 0
}

// run lets time pass until done, at most limit, and reports whether it came to that.
func (w *net) run(limit time.Duration, done func() bool) bool {
	for end := w.now + limit; !done(); {
		next, ok := end, false
		for _, l := range w.wires {
			next, ok = min(next, l.at), true
		}
		for _, p := range w.posts {
			if at, some := p.m.Next(); some {
				next, ok = min(next, at), true
			}
		}
		if w.now = max(w.now, min(next, end)); !ok || w.now >= end {
			w.now = end
			return done()
		}
		w.step()
	}
	return true
}

func (w *net) step() {
	slices.SortStableFunc(w.wires, func(a, b wireItem) int { return cmp.Compare(a.at, b.at) })
	for len(w.wires) > 0 && w.wires[0].at <= w.now {
		l := w.wires[0]
		w.wires = w.wires[1:]
		for _, p := range w.posts {
			if p.id.Addr == l.mail.To.Addr && (l.mail.To.Inc == 0 || p.id == l.mail.To) {
				w.arrive(p, l)
			}
		}
	}
	for _, p := range w.posts {
		p.m.Tick(w.now)
		w.drain(p)
	}
}

func (w *net) arrive(p *post, l wireItem) {
	require.NoError(w.t, p.m.Handle(w.now, w.now, l.from, l.mail.Kind, l.mail.Body))
	for _, d := range p.m.Peek().Delivered {
		p.got[l.from] = append(p.got[l.from], string(d.Body))
	}
	w.drain(p)
}

// quiet reports whether nothing is on its way and nobody has a deadline.
func (w *net) quiet() bool {
	for _, p := range w.posts {
		if _, ok := p.m.Next(); ok {
			return false
		}
	}
	return len(w.wires) == 0
}

// numbers returns "0" to "n-1".
func numbers(n int) (list []string) {
	for i := range n {
		list = append(list, strconv.Itoa(i))
	}
	return list
}
