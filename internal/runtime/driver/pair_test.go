// Tests of what a receiver refuses and how its sender recovers, with routes that are made wrong on purpose.

package driver

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

const patience = 2 * time.Minute

// plain answers asks and notes tells.
type plain struct{ got func(payload []byte) }

func (p *plain) Receive(c *entity.Context, payload []byte) error {
	if c.Asked() {
		return c.Reply(payload)
	}
	p.got(payload)
	return nil
}

func (p *plain) Stop(*entity.Context) {}

// pair is two nodes; the second hosts a type of each mode, the first only sends.
type pair struct {
	a, b *Driver
	at   map[entity.Mode]*Region // on a

	mu     sync.Mutex
	got    []string
	failed []Undelivered
}

func newPair(t *testing.T, edit ...func(*Config)) *pair {
	p := &pair{at: map[entity.Mode]*Region{}}
	tuning := membership.Config{GossipInterval: 100 * time.Millisecond, LeaderInterval: 50 * time.Millisecond,
		ProbeInterval: 100 * time.Millisecond}
	begin := func(cfg Config) *Driver {
		cfg.Membership = tuning
		cfg.Undelivered = func(u Undelivered) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.failed = append(p.failed, u)
		}
		for _, f := range edit {
			f(&cfg)
		}
		d, err := Start(t.Context(), cfg.WithDefaults())
		require.NoError(t, err)
		t.Cleanup(func() { closes(t, d) })
		return d
	}
	p.a = begin(Config{})
	p.b = begin(Config{Seeds: []string{p.a.Self().Addr.String()}, Roles: []string{"host"}})
	for _, m := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		typ := entity.Type{Name: m.String(), Role: "host", Shards: 4, Mode: m,
			New: func(string, route.Fence) entity.Handler { return &plain{p.note} }}
		_, err := p.b.Register(typ)
		require.NoError(t, err)
		r, err := p.a.Register(typ)
		require.NoError(t, err)
		p.at[m] = r
	}
	require.NoError(t, p.a.Ready(t.Context()))
	require.NoError(t, p.b.Ready(t.Context()))
	return p
}

// closes closes a node, which may abandon what its test has left.
func closes(t *testing.T, d *Driver) {
	if err := d.Close(); err != nil {
		require.ErrorIs(t, err, route.ErrAbandoned)
	}
}

func (p *pair) note(payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, string(payload))
}

// onControl runs f on the control goroutine of d.
func onControl(d *Driver, f func()) {
	done := make(chan struct{})
	d.inbox.post(func() { f(); close(done) })
	<-done
}

// mislead makes the route of r's shard lead to the host under a fence that does not stand.
func (p *pair) mislead(r *Region, sh route.ShardID, fence route.Fence) {
	onControl(p.a, func() {
		remote := p.a.remote(p.b.self, 0)
		e := &routeEntry{remote: remote, link: remote.link, term: fence.Term(), epoch: fence.Epoch()}
		p.a.moveRoute(slotRef{r, sh}, e, plane.Home{At: p.b.self, Fence: fence})
	})
}

// opened returns the route of a shard once it stands: the answer to a parked ask may come a moment before.
func opened(t *testing.T, r *Region, sh route.ShardID) (e *routeEntry) {
	t.Helper()
	eventually(t, func() bool {
		e = r.cells.At(sh).route.Load()
		return e != nil
	})
	return e
}

// eventually waits for a condition that nobody announces. Its patience is counted in looks, which stand still while the
// process is paused.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	const every = time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for left := patience / every; !ok(); left-- {
		require.Positive(t, left, "never")
		<-tick.C
	}
}

// An ask under a fence that does not stand is answered with the reason, and the next one finds the home (SHD-9).
func TestStaleFenceIsRefused(t *testing.T) {
	p := newPair(t)
	for mode, r := range p.at {
		t.Run(mode.String(), func(t *testing.T) {
			reply, err := r.AskWithin(patience, "a", []byte("x"), nil)
			require.NoError(t, err)
			require.Equal(t, "x", string(reply))
			sh := r.Shard("a")
			right := opened(t, r, sh)
			for _, stale := range []route.Fence{
				route.MakeFence(1, right.term, right.epoch+1), route.MakeFence(1, right.term+1, right.epoch),
				route.MakeFence(1, right.term, right.epoch-1),
			} {
				p.mislead(r, sh, stale)
				_, err = r.AskWithin(patience, "a", []byte("x"), nil)
				require.ErrorIs(t, err, route.ErrNotOwner)
			}
			require.NotNil(t, p.b.regions.Load().byID.At(r.id).hosts.Host(sh), "the owner does not notice")
		})
	}
}

// A tell under a fence that does not stand is counted at the receiver and reported at the sender with its id.
func TestStaleTellIsReported(t *testing.T) {
	p := newPair(t)
	for mode, r := range p.at {
		_, err := r.AskWithin(patience, "a", nil, nil)
		require.NoError(t, err)
		sh := r.Shard("a")
		right := opened(t, r, sh)
		p.mislead(r, sh, route.MakeFence(1, right.term, right.epoch+9))
		require.NoError(t, r.Tell("a", []byte("lost")))
		require.NoError(t, r.Tell("a", []byte("lost too")))
		eventually(t, func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			n := uint64(0)
			for _, u := range p.failed {
				if u.Type == mode.String() {
					require.Equal(t, route.NotOwner, u.Reason)
					require.Equal(t, sh, u.Shard)
					require.Contains(t, u.Samples, "a")
					n += u.Count
				}
			}
			return n == 2
		})
		require.EqualValues(t, 2, r.stats().RefusedRemote)
	}
	require.Empty(t, p.got)
}

// A message of a type that its receiver does not know is refused, and neither node suffers.
func TestUnregisteredAtReceiver(t *testing.T) {
	p := newPair(t)
	r, err := p.a.Register(entity.Type{Name: "stranger", Role: "nobody", Shards: 2,
		New: func(string, route.Fence) entity.Handler { return &plain{p.note} }})
	require.NoError(t, err)
	p.mislead(r, r.Shard("a"), route.MakeFence(1, 2, 3))
	_, err = r.AskWithin(patience, "a", nil, nil)
	require.ErrorIs(t, err, route.ErrNotRegistered)
	p.mislead(r, r.Shard("a"), route.MakeFence(1, 2, 4))
	require.NoError(t, r.Tell("a", nil))
	eventually(t, func() bool { return p.b.Stats().Unregistered >= 2 })
	_, err = p.at[entity.Worker].AskWithin(patience, "a", nil, nil)
	require.NoError(t, err)
}

// What was parked goes first, in order, also when the link has no room for all of it at once; senders that come
// meanwhile queue up behind.
func TestDrainWaitsForRoom(t *testing.T) {
	p := newPair(t)
	r := p.at[entity.Worker]
	_, err := r.AskWithin(patience, "a", nil, nil)
	require.NoError(t, err)
	sh := r.Shard("a")
	ref := slotRef{r, sh}
	right := opened(t, r, sh)
	var f route.Fence
	onControl(p.a, func() { f = ref.slot().slot.Fence(); p.a.closeRoute(ref) })
	big := make([]byte, 900<<10)
	const parked = 12 // more than the link's buffer of 4 MiB
	for i := range parked {
		copy(big, []byte{byte('a' + i)})
		require.NoError(t, r.Tell("a", big))
	}
	stalledOnce := false
	onControl(p.a, func() {
		again := &routeEntry{remote: right.remote, link: right.link, term: right.term, epoch: right.epoch}
		p.a.moveRoute(ref, again, plane.Home{At: p.b.self, Fence: f})
		stalledOnce = p.a.dispatch.control.agenda.Stalls() > 0
		require.True(t, p.a.drains.Load())
	})
	for i := parked; i < 2*parked; i++ {
		copy(big, []byte{byte('a' + i)})
		require.NoError(t, r.TellWait(t.Context(), "a", big))
	}
	require.True(t, stalledOnce, "the link took everything at once")
	eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.got) == 2*parked
	})
	for i, payload := range p.got {
		require.Equal(t, byte('a'+i), payload[0])
	}
	eventually(t, func() bool { return !p.a.drains.Load() })
}
