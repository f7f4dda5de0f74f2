// Scenarios of queues of package delivery in a simulated cluster, over a store that breaks: each message that was
// stored is acknowledged, waits, or is a dead letter. Each runs twice, with the same bytes.

package durabletest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/delivery"
	"github.com/kith-io/kith/durable/durabletest"
	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/lab/queuetest"
	"github.com/kith-io/kith/sim"
	"github.com/kith-io/kith/store"
)

const queueShards = 4

// post is a cluster with receivers and a queue to them, and what all of them have handled.
type post struct {
	t   *testing.T
	c   *sim.Cluster
	kit *durabletest.Kit
	set *durabletest.Queues

	lives   int
	refuses map[string]int // how often a message is refused yet
	h       queuetest.History
	n       int
	calm    time.Duration // until then the cluster gets over what was done to it
}

// receiver is an entity that messages are for.
type receiver struct {
	p    *post
	id   string
	life int
}

// Receive refuses what is to be refused, and notes the rest.
func (r *receiver) Receive(c *kith.Context, payload []byte) error {
	m, p := string(payload), r.p
	_, delivered := delivery.Of(c)
	require.True(p.t, delivered)
	switch {
	case strings.HasPrefix(m, "slow"):
		p.c.Wait(3 * time.Second)
	case p.refuses[m] > 0:
		if p.refuses[m]--; strings.HasPrefix(m, "panics") {
			panic("on demand")
		}
		return errors.New("not yet")
	}
	p.h.Handled = append(p.h.Handled, queuetest.Handled{To: r.id, Text: m, Life: fmt.Sprint(r.life)})
	return nil
}

// Stop does nothing.
func (r *receiver) Stop(*kith.Context) {}

func opensPost(t *testing.T, seed uint64, q delivery.Queue) *post {
	t.Helper()
	c := sim.New(t, 4, seed)
	p := &post{t: t, c: c, kit: durabletest.New(c, seed), refuses: map[string]int{},
		h: queuetest.History{Again: map[string]bool{}, Discarded: map[string]bool{}}}
	c.Register(delivery.Consumer(kith.EntityType{Name: "receiver", Shards: 6,
		New: func(id string, _ kith.Fence) kith.Handler {
			p.lives++
			return &receiver{p, id, p.lives}
		}}))
	q.Name, q.Shards = "post", queueShards
	var err error
	p.set, err = durabletest.RegisterQueue(p.kit, "receiver", q)
	require.NoError(t, err)
	c.AwaitUp()
	return p
}

// sends sends one message from some node that runs, and notes what came of it.
func (p *post) sends(from int, to, kind string) error {
	p.t.Helper()
	for i := 0; !p.c.Running(from % 4); from, i = from+1, i+1 {
		require.Less(p.t, i, 4, "nobody is left")
	}
	p.n++
	m := fmt.Sprintf("%s%d", kind, p.n)
	switch kind {
	case "refused", "panics":
		p.refuses[m] = 2
	case "poison":
		p.refuses[m] = 1 << 30
	}
	err := p.set.On(from%4).Send(p.kit.Within(8*time.Second), to, []byte(m))
	p.h.Sent = append(p.h.Sent, queuetest.Sent{Sender: "all", To: to, Text: m, Outcome: queuetest.OutcomeOf(err)})
	return err
}

// held returns what waits, and which dead letters there are, as the store has them.
func (p *post) held() (waiting, dead []string) {
	held, ctx := p.kit.Store().Copy(), context.Background()
	for n := range kith.ShardID(queueShards) {
		at := store.Shard{Type: "delivery/post", N: n}
		for id, err := range held.Unsent(ctx, at) {
			require.NoError(p.t, err)
			waiting = append(waiting, fmt.Sprint(n, "/", id))
		}
		for a, err := range held.Due(ctx, at, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) {
			require.NoError(p.t, err)
			dead = append(dead, fmt.Sprint(n, "/", a.ID))
		}
	}
	return waiting, dead
}

// letters returns all dead letters, page by page, from a node that runs.
func (p *post) letters() (all []delivery.Letter) {
	p.t.Helper()
	on := 0
	for ; !p.c.Running(on); on++ {
	}
	for after := (delivery.Place{}); ; {
		page, next, err := p.set.On(on).Dead(p.kit.Within(time.Minute), after, 3)
		for try := 0; err != nil && try < 50; try++ {
			p.c.Advance(time.Second)
			page, next, err = p.set.On(on).Dead(p.kit.Within(time.Minute), after, 3)
		}
		require.NoError(p.t, err)
		require.LessOrEqual(p.t, len(page), 3)
		if all = append(all, page...); next == (delivery.Place{}) {
			return all
		}
		after = next
	}
}

// settles waits until nothing waits any more.
func (p *post) settles() {
	p.t.Helper()
	ok := p.c.Until(20*time.Minute, func() bool { w, _ := p.held(); return len(w) == 0 })
	w, _ := p.held()
	require.True(p.t, ok, "%v wait", w)
}

// had returns what a receiver has handled.
func (p *post) had(to string) (list []string) {
	for _, h := range p.h.Handled {
		if h.To == to {
			list = append(list, h.Text)
		}
	}
	return list
}

// judges holds what was handled, and what is dead, against what was sent.
func (p *post) judges() {
	p.t.Helper()
	p.h.Dead = nil
	for _, l := range p.letters() {
		require.NotEmpty(p.t, l.Reason)
		p.h.Dead = append(p.h.Dead, queuetest.Dead{To: l.To, Text: string(l.Payload)})
	}
	_, inStore := p.held()
	require.Len(p.t, inStore, len(p.h.Dead))
	v := p.h.Judge()
	require.NoError(p.t, v.Err())
	require.Positive(p.t, v.Stored)
}

// text is all that a run leaves.
func (p *post) text() string {
	out := bytes.NewBufferString(p.c.World().(interface{ Text() string }).Text())
	w, d := p.held()
	fmt.Fprintln(out, p.h.Handled, w, d, p.kit.Store().Counts())
	return out.String()
}

// twiceOf runs a scenario twice with each of so many seeds.
func twiceOf(t *testing.T, seeds uint64, run func(t *testing.T, seed uint64) string) {
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			require.True(t, run(t, seed) == run(t, seed), "the second run is another one")
		})
	}
}

// harms does something to the cluster.
func (p *post) harms(r *rand.Rand, to string) {
	if p.c.Now() < p.calm { // else a second cluster forms beside one that nobody has seen end
		p.c.Advance(p.calm - p.c.Now())
	}
	defer func() { p.calm = p.c.Now() + 40*time.Second }()
	owner := p.c.Owner("receiver", to)
	if r.IntN(2) == 0 {
		owner = p.c.Owner("delivery/post", fmt.Sprint(kith.ShardOf(to, queueShards)))
	}
	running := 0
	for n := range 4 {
		if p.c.Running(n) {
			running++
		}
	}
	switch k := r.IntN(5); {
	case owner < 0 || running < 3:
		for n := range 4 {
			if !p.c.Running(n) {
				p.c.Restart(n)
			}
		}
	case k == 0:
		p.c.Crash(owner)
	case k == 1:
		p.c.Pause(owner, time.Duration(r.IntN(12))*time.Second)
	case k == 2:
		p.c.Leave(owner)
	case k == 3:
		p.c.Partition([]int{owner}, others(owner))
		p.c.Advance(time.Duration(r.IntN(20)) * time.Second)
		p.c.Heal()
	default:
		p.c.Advance(time.Duration(r.IntN(5)) * time.Second)
	}
}

// owner returns the node that owns the shard of a receiver's messages.
func (p *post) owner(to string) int {
	return p.c.Owner("delivery/post", fmt.Sprint(kith.ShardOf(to, queueShards)))
}

// apart returns a receiver that lives on another node than the owner of its messages' shard, both of which run.
func (p *post) apart() string {
	p.t.Helper()
	for i := range 100 {
		to := fmt.Sprint("r", i)
		require.NoError(p.t, p.sends(0, to, "plain"))
		p.settles()
		if owner := p.owner(to); owner > 0 && owner != p.c.Owner("receiver", to) {
			return to
		}
	}
	p.t.Fatal("all receivers live with their owners")
	return ""
}

// TestReceiverOutlivesOwners: a receiver drops what the next owner of the queue delivers again, and handles what is
// new, also where the store was emptied between the two (SHD-10).
func TestReceiverOutlivesOwners(t *testing.T) { twiceOf(t, 3, receiverOutlivesOwners) }

func receiverOutlivesOwners(t *testing.T, seed uint64) string {
	p := opensPost(t, seed, delivery.Queue{})
	to := p.apart()
	require.NoError(t, p.sends(0, to, "slow"))
	require.NoError(t, p.sends(0, to, "plain"))
	p.kit.Store().Fail(durabletest.Faults{Away: true}) // both are stored; that they are acknowledged will not be
	p.c.Advance(5 * time.Second)
	require.Len(t, p.had(to), 3)
	waiting, _ := p.held()
	require.Len(t, waiting, 2)
	p.c.Crash(p.owner(to))
	p.kit.Store().Fail(durabletest.Faults{})
	p.settles()
	require.Len(t, p.had(to), 3)
	require.EqualValues(t, 2, p.set.On(p.owner(to)).Stats().Had)
	require.NoError(t, p.sends(0, to, "plain"))
	p.settles()
	require.Len(t, p.had(to), 4)

	p.c.Advance(time.Minute)
	to = p.apart()
	had := len(p.had(to))
	p.c.Crash(p.owner(to))
	p.kit.Store().GoBack() // to nothing
	p.c.Advance(time.Minute)
	require.NoError(t, p.sends(0, to, "plain"))
	p.settles()
	require.Len(t, p.had(to), had+1)
	p.judges()
	return p.text()
}

// TestQueueOverABadStore: calls and answers of the store get lost, commits come twice and late, owners and receivers
// crash, leave, stand still and are cut off, receivers refuse, panic and are slow: what was stored is acknowledged or a
// dead letter, in order, once in a receiver's life (SHD-10).
func TestQueueOverABadStore(t *testing.T) { twiceOf(t, 8, queueOverABadStore) }

// TestLongQueueOverABadStore has 60 seeds (SHD-10).
func TestLongQueueOverABadStore(t *testing.T) {
	long.Test(t)
	twiceOf(t, 60, queueOverABadStore)
}

func queueOverABadStore(t *testing.T, seed uint64) string {
	p := opensPost(t, seed, delivery.Queue{MaxTries: 4, RetryMost: 2 * time.Second, AckTime: 2 * time.Second,
		Patience: time.Second})
	r := rand.New(rand.NewPCG(seed, 35))
	p.kit.Store().Fail(durabletest.Faults{Delay: 40 * time.Millisecond, LostCalls: 0.1, LostAnswers: 0.1, Again: 0.2})
	for i := range 50 {
		to := fmt.Sprint("r", r.IntN(5))
		if i%8 == 7 {
			p.harms(r, to)
		}
		kinds := []string{"plain", "plain", "plain", "plain", "refused", "panics", "slow", "poison"}
		_ = p.sends(r.IntN(4), to, kinds[r.IntN(len(kinds))])
	}
	p.c.Heal()
	p.settles()
	p.judges()
	require.NotEmpty(t, p.h.Handled)
	for i, l := range p.letters() { // some are sent again, and are handled or die again
		m := string(l.Payload)
		switch i % 3 {
		case 0:
			p.refuses[m], p.h.Again[m] = 0, true
			p.digs(l, (*delivery.Producer).SendAgain)
		case 1:
			p.h.Discarded[m] = true
			p.digs(l, (*delivery.Producer).Discard)
		}
	}
	p.settles()
	p.judges()
	for m := range p.h.Again {
		require.True(t, slices.ContainsFunc(p.h.Handled, func(h queuetest.Handled) bool { return h.Text == m }),
			"%s was sent again", m)
	}
	return p.text()
}

// digs does something with a dead letter until it is known that it is done.
func (p *post) digs(l delivery.Letter, do func(*delivery.Producer, context.Context, delivery.Place) error) {
	p.t.Helper()
	for try := range 200 {
		if n := try % 4; p.c.Running(n) {
			err := do(p.set.On(n), p.kit.Within(10*time.Second), l.Place)
			if err == nil || try > 0 && errors.Is(err, delivery.ErrNoLetter) {
				return
			}
		}
		p.c.Advance(100 * time.Millisecond)
	}
	p.t.Fatalf("%v is not done with", l.Place)
}
