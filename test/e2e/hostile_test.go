// Hostile clients at a node's port, one table of them, against one node of a healthy pair on real sockets: each is
// refused with a counted reason, within bounded memory and time, and the pair beside it does not notice.

package e2e_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/lab/hostile"
)

// besieged is a healthy pair that talks all the time, a third member, and the target that the first of them is.
type besieged struct {
	nodes  []*kith.Node
	target *hostile.Target
	ca     *pki.CA // nil without TLS
	stolen tls.Certificate
	book   *ledger

	cancel  context.CancelFunc
	stop    chan struct{}
	senders sync.WaitGroup
	events  sync.WaitGroup
	sent    [2]int
	mu      sync.Mutex
	faults  []string
	beats   [2]uint64 // answers to heartbeats when the siege began
	lost    uint64
}

func besiege(t *testing.T, secure bool) *besieged {
	b := &besieged{book: newLedger(), stop: make(chan struct{}), target: &hostile.Target{Name: "test"}}
	var list []byte // of revoked certificates
	if secure {
		var err error
		b.ca, err = pki.NewCA("test", time.Hour)
		require.NoError(t, err)
		c := issued(t, b.ca, "test")
		b.target.TLS = &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{c.Certificate},
			MinVersion: tls.VersionTLS13}
		b.stolen, list, err = b.target.Revoked(b.ca)
		require.NoError(t, err)
	}
	regions := make([]*kith.Region, 3)
	b.nodes = cluster(t, 3, func(i int, cfg *kith.Config) {
		if secure {
			c := issued(t, b.ca, "test")
			var err error
			c.CRLs, err = kith.ParseCRLs(list)
			require.NoError(t, err)
			c.Issuers, err = pki.Certificates(b.ca.Pair().Cert)
			require.NoError(t, err)
			cfg.TLS.Load = func() (kith.Credentials, error) { return c, nil }
		}
		cfg.Membership = quick()
		cfg.PartialBudget = 32 << 20
		// What the machine does to all of them is not what is looked for: nobody is lost, and nobody suspends itself.
		cfg.Membership.AcceptablePause, cfg.Sharding.TakeoverTime = 5*time.Second, 20*time.Minute
		if i < 2 {
			cfg.Roles = []string{"pair"}
		}
		cfg.Undelivered = func(u kith.Undelivered) { b.fault("undelivered: %+v", u) }
	}, func(i int, n *kith.Node) {
		typ := echoType("echo", kith.Worker, b.book, func() *kith.Node { return n })
		typ.Role = "pair"
		var err error
		regions[i], err = n.Register(typ)
		require.NoError(t, err)
	})
	for e := range 16 { // all homes are known, so that nothing waits for them
		for _, r := range regions {
			_, err := r.Ask(within(t), fmt.Sprintf("e%d", e), nil)
			require.NoError(t, err)
		}
	}
	view := b.nodes[0].View()
	b.target.Node, b.target.Member = b.nodes[0].ID(), b.nodes[2].ID()
	b.target.Cluster, b.target.Type = view.ClusterID, hostile.TypeOf("echo")
	eventually(t, func() bool { return b.nodes[0].Stats().Courier.Delivered > 0 }, "the third node has sent a message")
	b.talk(t, regions)
	return b
}

// size is how many goroutines there are, and bytes in use after a collection.
func size() (goroutines int, heap uint64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), m.HeapAlloc
}

func (b *besieged) fault(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// watch makes a fault of each event of any node by which a member seems lost, and of the kinds that are named besides,
// until the context that it returns is over.
func (b *besieged) watch(t *testing.T, besides ...kith.EventKind) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	t.Cleanup(cancel)
	bad := append(besides, kith.UnreachableMember, kith.MemberDowned, kith.MemberRemoved, kith.MemberExited)
	for i, n := range b.nodes {
		b.events.Go(func() {
			for ev := range n.Events(ctx) {
				if slices.Contains(bad, ev.Kind) {
					b.fault("node %d saw %v of %v", i, ev.Kind, ev.Member.ID)
				}
			}
		})
	}
	return ctx
}

// chat makes one of the pair tell numbered messages all the time, and ask with every eighth.
func (b *besieged) chat(ctx context.Context, i int, r *kith.Region) {
	b.senders.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-b.stop:
				b.sent[i] = n
				return
			case <-time.After(500 * time.Microsecond):
			}
			id := fmt.Sprintf("e%d", n%16)
			if err := r.TellWait(ctx, id, numbered(i, uint64(n/16))); err != nil {
				b.fault("tell: %v", err)
			}
			if n%8 == 0 {
				if _, err := r.Ask(ctx, id, nil); err != nil {
					b.fault("ask: %v", err)
				}
			}
		}
	})
}

// talk makes each of the pair tell and ask numbered messages of entities on both, and watches the events of all.
func (b *besieged) talk(t *testing.T, regions []*kith.Region) {
	ctx := b.watch(t, kith.MemberJoined)
	for _, n := range b.nodes {
		b.lost += n.Stats().Transport.LostBytes
	}
	for i, r := range regions[:2] {
		b.beats[i] = beats(b.nodes[i], b.nodes[1-i].ID())
		b.chat(ctx, i, r)
	}
}

// beats is how many heartbeats a peer has answered.
func beats(n *kith.Node, of kith.ID) uint64 {
	for _, l := range n.Stats().Transport.Links {
		if l.Peer == of {
			return l.Control.RoundTrip.Count
		}
	}
	return 0
}

// throw carries attacks out, the slow ones beside all others: the counter of each rises, and the node closes the
// connections that are to be closed.
func (b *besieged) throw(t *testing.T, list []hostile.Attack) {
	var wait sync.WaitGroup
	for _, a := range list {
		if a.Slow {
			wait.Go(func() { b.one(t, &a) })
		}
	}
	for _, a := range list {
		if !a.Slow {
			b.one(t, &a)
		}
	}
	wait.Wait()
}

func (b *besieged) one(t *testing.T, a *hostile.Attack) {
	s := b.nodes[0].Stats()
	before := hostile.Count(&s, a.Counts)
	if err := a.Throw(b.target); err != nil {
		t.Errorf("%s: %v", a.Name, err)
		return
	}
	counted := func() bool {
		s := b.nodes[0].Stats()
		return hostile.Count(&s, a.Counts) > before
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !counted(); {
		select {
		case <-tick.C:
		case <-end:
			t.Errorf("%s: not counted as %s", a.Name, a.Counts)
			return
		}
	}
}

// calm demands that nothing is left of the attackers: beyond about so many goroutines, and bytes in use.
func (b *besieged) calm(t *testing.T, what string, goroutines int, heap uint64) {
	eventually(t, func() bool {
		s := b.nodes[0].Stats().Transport
		if s.Pending > 0 || runtime.NumGoroutine() > goroutines+16 {
			return false
		}
		_, now := size()
		return now < heap+48<<20
	}, "%s: something is left: %d of %d goroutines", what, runtime.NumGoroutine(), goroutines)
}

// finish demands that the pair has missed nothing, and heard each other all the time.
func (b *besieged) finish(t *testing.T) {
	for i := range b.beats {
		require.Greater(t, beats(b.nodes[i], b.nodes[1-i].ID()), b.beats[i]+10, "heartbeats were answered")
	}
	close(b.stop)
	b.senders.Wait()
	b.book.await(t, b.sent[0]+b.sent[1])
	b.cancel()
	b.events.Wait()
	require.Greater(t, b.sent[0], 1000)
	require.Greater(t, b.sent[1], 1000)
	require.Empty(t, b.faults)
	lost := uint64(0)
	for _, n := range b.nodes {
		lost += n.Stats().Transport.LostBytes
		require.Empty(t, n.View().Unreachable)
		require.Equal(t, 3, n.View().CountUp())
	}
	require.Equal(t, b.lost, lost, "bytes in flight on a connection that broke")
	require.Zero(t, b.nodes[1].Stats().InvalidFrames)
}

// A hostile client at the port, of every kind, beside a healthy pair, without TLS and with it at one time ("Bad input";
// CARD-3, CARD-4, SEC-3, SEC-4).
func TestHostileClients(t *testing.T) {
	plain, secure := besiege(t, false), besiege(t, true)
	goroutines, heap := size()
	calm := func(what string) {
		for _, b := range []*besieged{plain, secure} {
			b.calm(t, what, goroutines, heap)
		}
	}
	both := func(what string, do func(t *testing.T, b *besieged)) {
		t.Run(what, func(t *testing.T) {
			t.Run("plain", func(t *testing.T) { t.Parallel(); do(t, plain) })
			t.Run("tls", func(t *testing.T) { t.Parallel(); do(t, secure) })
		})
		calm(what)
	}
	both("strangers", func(t *testing.T, b *besieged) {
		list := b.target.NonMembers()
		if b.ca != nil {
			uncertified, err := b.target.Uncertified(b.ca, b.stolen)
			require.NoError(t, err)
			list = slices.Concat(list, uncertified, b.target.Forgers())
		}
		b.throw(t, list)
	})
	both("insiders", func(t *testing.T, b *besieged) {
		b.throw(t, b.target.Insiders())
		b.replay(t)
		b.refused(t)
		b.throw(t, b.target.Floods())
	})
	both("a crowd", func(t *testing.T, b *besieged) { b.crowd(t) })
	both("all is over", func(t *testing.T, b *besieged) { b.finish(t) })
}

// replay says again what the node itself has said.
func (b *besieged) replay(t *testing.T) {
	r, err := hostile.Record(b.target)
	require.NoError(t, err)
	defer r.Close()
	older := r.Version()
	require.NotNil(t, older)
	require.NoError(t, b.nodes[0].SetMetadata(within(t), "k", []byte("v")))
	known := func(n *kith.Node) bool { return len(n.View().Metadata) == 1 }
	eventually(t, func() bool { return known(b.nodes[1]) && known(b.nodes[2]) },
		"the change is known to all")
	same := r.Version()
	require.NotNil(t, same)
	require.NotEqual(t, older, same)
	b.throw(t, b.target.Replays(same, older))
}

// refused makes the node dial a nobody that answers that it was removed.
func (b *besieged) refused(t *testing.T) {
	r, err := hostile.Refuse(b.target)
	require.NoError(t, err)
	defer r.Close()
	b.throw(t, []hostile.Attack{r.Lure("disbelieved")})
}

// crowd is a thousand connections that say nothing, and then more than an address may open.
func (b *besieged) crowd(t *testing.T) {
	const silent = 1000
	s := b.nodes[0].Stats()
	each, tooOften := hostile.Count(&s, "too-many-each"), hostile.Count(&s, "too-often")
	var conns []net.Conn
	most := 0
	for range silent {
		c, err := b.target.Bare()
		require.NoError(t, err)
		conns = append(conns, c)
		most = max(most, b.nodes[0].Stats().Transport.Pending)
	}
	for _, c := range conns {
		require.NoError(t, c.(*hostile.Conn).Closed())
		_ = c.Close()
	}
	s = b.nodes[0].Stats()
	require.LessOrEqual(t, most, 64)
	turned := hostile.Count(&s, "too-many-each") - each + hostile.Count(&s, "too-often") - tooOften
	require.Greater(t, turned, uint64(silent-3*64))
	// However slow the machine is, so many at once come sooner or later faster than one address may.
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if c, err := b.target.Bare(); err == nil {
					_ = c.Close()
				}
			}
		})
	}
	defer wait.Wait()
	defer close(stop)
	eventually(t, func() bool {
		s := b.nodes[0].Stats()
		return hostile.Count(&s, "too-often") > tooOften
	}, "turned away for coming too often")
}
