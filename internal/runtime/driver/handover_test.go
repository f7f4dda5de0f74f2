// What a shard that moves has not worked off at its deadline, over real sockets.

package driver

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// slow is an entity that stands in its first message until it is let go, and notes what it gets, and where.
type slow struct {
	got   chan string
	began chan struct{}
	on    chan struct{}
	ask   bool // it waits for the answer of another entity instead
	asked chan error
}

func (h *slow) Receive(c *entity.Context, payload []byte) error {
	h.got <- fmt.Sprintf("%d %s", c.Fence.Epoch(), payload)
	switch {
	case string(payload) == "stand" && h.ask:
		h.began <- struct{}{}
		_, err := c.Ask(patience, "deaf", "x", nil)
		h.asked <- err
	case string(payload) == "stand":
		h.began <- struct{}{}
		<-h.on
	}
	if c.Asked() {
		return c.Reply(append([]byte("re "), payload...))
	}
	return nil
}

func (h *slow) Stop(*entity.Context) {}

// deaf never answers.
type deaf struct{}

func (deaf) Receive(c *entity.Context, _ []byte) error {
	c.Detach()
	return nil
}

func (deaf) Stop(*entity.Context) {}

// moving registers a type of slow entities and returns where its shard lives, and where it does not.
func (m *movers) moving(h *slow) (from, to, third *Driver) {
	for _, d := range m.nodes {
		_, err := d.Register(entity.Type{Name: "slow", Shards: 1,
			New: func(string, route.Fence) entity.Handler { return h }})
		require.NoError(m.t, err)
	}
	require.NoError(m.t, m.nodes[2].regionNamed("slow").Tell("a", []byte("stand")))
	<-h.began
	from = m.home("slow", 0)
	for _, d := range m.nodes {
		switch {
		case d == from:
		case to == nil:
			to = d
		default:
			third = d
		}
	}
	return from, to, third
}

// A shard moves though its entity is slow: at the deadline what waits is handed over, in order, by every sender, asks
// with their askers, and the next owner handles it before anything that was sent later (SHD-9, SHD-12).
func TestWhatIsNotWorkedOffIsHandedOver(t *testing.T) {
	m := newMovers(t, func(c *Config) { c.Sharding.DrainTime = 20 * time.Millisecond })
	h := &slow{got: make(chan string, 1000), began: make(chan struct{}), on: make(chan struct{})}
	from, to, third := m.moving(h)
	first := <-h.got
	const each = 50
	var answers sync.WaitGroup
	for i, d := range []*Driver{from, to, third} {
		r := d.regionNamed("slow")
		for n := range each {
			require.NoError(t, r.Tell("a", fmt.Appendf(nil, "%d %03d", i, n)))
		}
		answers.Go(func() {
			ask := fmt.Sprintf("%d %03d", i, each)
			if reply, err := r.AskWithin(patience, "a", []byte(ask), nil); err != nil || string(reply) != "re "+ask {
				m.note("ask of %s: %q, %v", d.Self(), reply, err)
			}
		})
	}
	host := slotRef{from.regionNamed("slow"), 0}.host()
	m.waits(from, 3*each+3)
	eventually(t, func() bool { return m.move("slow", 0, to) == nil })
	eventually(t, func() bool { return exec.Overdue(host) })
	require.NoError(t, third.regionNamed("slow").Tell("a", fmt.Appendf(nil, "2 %03d", each+1)))
	close(h.on)
	eventually(t, func() bool { return m.home("slow", 0) == to })
	answers.Wait()
	next := map[int]int{}
	for range 3*each + 3 + 1 {
		var epoch, who, n int
		line := <-h.got
		_, err := fmt.Sscanf(line, "%d %d %d", &epoch, &who, &n)
		require.NoError(t, err, line)
		require.Equal(t, next[who], n, line)
		next[who]++
		require.NotEqual(t, first[:2], line[:2], "another owner handles it")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	require.Empty(t, m.wrong)
	require.Empty(t, m.lost)
}

// What is left of a shard and is more than may be handed over stays with its owner, in order, and so does the shard:
// the owner says that and why, and the coordinator that it is back (SHD-12).
func TestMoveWhoseRestIsTooLarge(t *testing.T) {
	m := newMovers(t, func(c *Config) { c.Sharding.DrainTime, c.Sharding.MaxHandOver = 20*time.Millisecond, 64 })
	var mu sync.Mutex
	said := map[peer.ID]map[shard.EventKind]ShardEvent{}
	var began, ended sync.WaitGroup
	for _, d := range m.nodes {
		said[d.Self()] = map[shard.EventKind]ShardEvent{}
	}
	for _, d := range m.nodes {
		began.Add(1)
		ended.Go(func() {
			for e := range ShardEvents(t.Context(), d) {
				mu.Lock()
				if said[d.Self()][e.Kind] = e; e.Kind == 0 {
					began.Done()
				}
				mu.Unlock()
			}
		})
	}
	heard := func(d *Driver, k shard.EventKind) (e ShardEvent, is bool) {
		mu.Lock()
		defer mu.Unlock()
		e, is = said[d.Self()][k]
		return e, is
	}
	began.Wait()
	h := &slow{got: make(chan string, 1000), began: make(chan struct{}), on: make(chan struct{})}
	from, to, third := m.moving(h)
	first := <-h.got
	const tells = 20
	for n := range tells {
		require.NoError(t, third.regionNamed("slow").Tell("a", fmt.Appendf(nil, "2 %03d", n)))
	}
	m.waits(from, tells)
	host := slotRef{from.regionNamed("slow"), 0}.host()
	eventually(t, func() bool { return m.move("slow", 0, to) == nil })
	eventually(t, func() bool { return exec.Overdue(host) })
	close(h.on)
	eventually(t, func() bool { _, is := heard(m.nodes[0], shard.MoveReturned); return is })
	for n := range tells {
		line := <-h.got
		require.Equal(t, fmt.Sprintf("2 %03d", n), line[2:])
		require.NotEqual(t, first[:2], line[:2], "under the next fence")
	}
	require.Equal(t, from, m.home("slow", 0))
	eventually(t, func() bool { _, is := heard(from, shard.MoveUntaken); return is })
	untaken, _ := heard(from, shard.MoveUntaken)
	require.ErrorIs(t, untaken.Err, shard.ErrNotTaken)
	require.Contains(t, untaken.String(), " bytes, at most 64")
	back, _ := heard(m.nodes[0], shard.MoveReturned)
	require.Equal(t, []any{from.Self(), to.Self(), untaken.Number}, []any{back.Home, back.To, back.Number})
	_, done := heard(m.nodes[0], shard.MoveDone)
	require.False(t, done)
	moves := m.nodes[0].Stats().Sharding.Moves
	require.Equal(t, []uint64{1, 0, 1}, []uint64{moves.Begun, moves.Done, moves.Returned})
	m.mu.Lock()
	defer m.mu.Unlock()
	require.Empty(t, m.lost)
}

// At the deadline of a move the handlers that run get a typed error for what they ask, also when the ask may be
// executed: an asker of an entity with a shard that waits for it in turn would never return (deadline-fails-asks).
func TestAsksOfHandlersEndAtTheDeadline(t *testing.T) {
	m := newMovers(t, func(c *Config) { c.Sharding.DrainTime = 20 * time.Millisecond })
	for _, d := range m.nodes {
		_, err := d.Register(entity.Type{Name: "deaf", Shards: 1,
			New: func(string, route.Fence) entity.Handler { return deaf{} }})
		require.NoError(t, err)
	}
	h := &slow{got: make(chan string, 10), began: make(chan struct{}), ask: true, asked: make(chan error, 1)}
	from, to, _ := m.moving(h)
	eventually(t, func() bool { return m.move("slow", 0, to) == nil })
	err := <-h.asked
	require.ErrorIs(t, err, route.ErrShardStopping)
	require.True(t, route.MayHaveRun(err), "it was sent")
	eventually(t, func() bool { return m.home("slow", 0) == to })
	require.Zero(t, from.regionNamed("slow").count.abandonedTells.Load())
}

// A node ends, without a word, when it has taken what was not worked off, or is to get it. What it had taken over is
// reported there; nothing is handled twice or overtaken, and every ask ends.
func TestNodeEndsWhileItHandsOver(t *testing.T) {
	for _, victim := range []string{"owner", "next owner"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			m := newMovers(t, deathIsProof, func(c *Config) { c.Sharding.DrainTime = 20 * time.Millisecond })
			h := &slow{got: make(chan string, 1000), began: make(chan struct{}), on: make(chan struct{})}
			from, to, third := m.moving(h)
			<-h.got
			const sent = 100
			r := third.regionNamed("slow")
			for n := range sent {
				require.NoError(t, r.Tell("a", fmt.Appendf(nil, "0 %03d", n)))
			}
			answered := make(chan error, 1)
			go func() {
				_, err := r.AskWithin(patience, "a", fmt.Appendf(nil, "0 %03d", sent), nil)
				answered <- err
			}()
			m.waits(from, sent+1)
			eventually(t, func() bool { return m.move("slow", 0, to) == nil })
			host := slotRef{from.regionNamed("slow"), 0}.host()
			eventually(t, func() bool { return exec.Overdue(host) })
			gone := map[string]*Driver{"owner": from, "next owner": to}[victim]
			close(h.on)
			closes(t, gone)
			<-answered                                     // with an answer or an error
			again := time.NewTicker(50 * time.Millisecond) // one that was sent to the ended node is lost
			defer again.Stop()
			last, handled, next := -1, 0, sent
			for last <= sent {
				var epoch, who, n int
				select {
				case line := <-h.got:
					_, err := fmt.Sscanf(line, "%d %d %d", &epoch, &who, &n)
					require.NoError(t, err, line)
					require.Greater(t, n, last, "%s: doubled or overtaken", line)
					last = n
					handled++
				case <-again.C:
					next++
					require.NoError(t, r.Tell("a", fmt.Appendf(nil, "0 %03d", next)))
				}
			}
			eventually(t, func() bool { return handled+m.told() >= sent+1 })
		})
	}
}

// What was handed over and no owner began with is reported where it lies: as abandoned where nobody handles it, asks
// too. Where the other owner may handle it, tells are perhaps lost, and an ask goes on waiting, until its time is over:
// its answer may come (SHD-9).
func TestHandedOverAndNotBegun(t *testing.T) {
	p := newPair(t)
	r := p.at[entity.Blocking]
	w, corr, err := begun(p.a.asks.begin(patience, r, 1, nil, nil))
	require.NoError(t, err)
	told := func() map[route.Reason]uint64 {
		p.mu.Lock()
		defer p.mu.Unlock()
		sums := map[route.Reason]uint64{}
		for _, u := range p.failed {
			sums[u.Reason] += u.Count
		}
		return sums
	}
	ends := func(unsure bool) {
		onControl(p.a, func() {
			tell := wire.Envelope{Type: uint32(r.id), Shard: 1, ID: []byte("x")}
			ask := tell
			ask.Corr = corr
			plane.FlagUnhandled(&tell, false, 0)
			plane.FlagUnhandled(&ask, true, 0)
			left := plane.AppendUnhandled(nil, peer.ID{}, &tell, p.a.now())
			left = plane.AppendUnhandled(left, p.a.self, &ask, p.a.now())
			untaken(p.a, []shard.Untaken{{Type: r.id, Shard: 1, Left: left, Unsure: unsure}})
		})
	}
	ends(true)
	require.True(t, p.a.asks.waits(corr))
	eventually(t, func() bool { return told()[route.LostInFlight] == 1 })
	ends(false)
	<-w.wake
	require.ErrorIs(t, w.err, route.ErrAbandoned)
	p.a.asks.free(w)
	eventually(t, func() bool { return told()[route.Abandoned] == 1 })
	require.Len(t, told(), 2)
	require.EqualValues(t, 1, told()[route.LostInFlight])
}

// told is how many tells were reported to the nodes' hooks.
func (m *movers) told() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.lost {
		n += int(u.Count)
	}
	return n
}

// waits returns when so many messages of five bytes wait behind the first, which is being handled.
func (m *movers) waits(d *Driver, n uint64) {
	eventually(m.t, func() bool {
		for _, st := range d.Stats().Types {
			if st.Name == "slow" && st.MailboxBytes == (n+1)*(entity.RecordOverhead+5) {
				return true
			}
		}
		return false
	})
}
