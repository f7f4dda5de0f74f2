// Harness of the root package's tests: clusters in one process over loopback sockets, and a ledger of deliveries.

package e2e_test

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/logs/logstest"
	"github.com/kith-io/kith/internal/base/port"
)

// TestMain fails when a goroutine is left beside those that a package which gnet pulls in starts with the process.
// A process that TestKilledSender started is no test.
func TestMain(m *testing.M) {
	if spec, ok := os.LookupEnv(beChild); ok {
		child(spec)
		return
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(together)); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// together is how many tests run at a time, unless -parallel says otherwise: most of what they do is wait. Tests that
// count goroutines, memory or allocations, or take the processors for themselves, do not run beside others.
const together = 8

// patience bounds every wait of a test; reaching it is a failure.
const patience = 2 * time.Minute

// A node that has stood still for half the takeover time is suspended, as all are now and then on a busy machine. Tests
// in which nobody is lost have a takeover time that is never over; others wait for one of takeover.
const (
	never    = 20 * time.Minute
	takeover = 8 * time.Second
)

// quick paces membership for tests: the same protocol, ten times as fast, and patient with a busy machine.
func quick() kith.MembershipConfig {
	return kith.MembershipConfig{
		GossipInterval: 100 * time.Millisecond, LeaderInterval: 50 * time.Millisecond,
		ReaperInterval: 100 * time.Millisecond, HeartbeatInterval: 200 * time.Millisecond,
		ProbeInterval: 100 * time.Millisecond, SeedTimeout: 2 * time.Second, ExitTimeout: 2 * time.Second,
		AcceptablePause: 2 * time.Second,
	}
}

// logger returns a log that is shown where the test fails.
func logger(t *testing.T) *logstest.Text {
	l := &logstest.Text{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log:\n%s", l)
		}
	})
	return l
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// start starts one node that is closed with the test. Its port is nobody else's until then, whatever becomes of it:
// other tests run beside this one.
func start(t *testing.T, l *logstest.Text, cfg kith.Config) *kith.Node {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "test"
	}
	if cfg.Listen == "" {
		cfg.Listen = port.Keep(t)
	}
	if cfg.Membership.GossipInterval == 0 {
		cfg.Membership = quick()
	}
	if cfg.Resolver == (kith.Resolver{}) {
		cfg.Resolver.Strategy = kith.ResolverOff // else no takeover time may be shorter than its patience
	}
	if cfg.Sharding.TakeoverTime == 0 && cfg.Resolver.Strategy == kith.ResolverOff {
		cfg.Sharding.TakeoverTime = never
	}
	n, err := kith.Start(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { closes(t, n) })
	return n
}

// closes closes a node, which may abandon what its test has left, and lose states.
func closes(t *testing.T, n *kith.Node) {
	t.Helper()
	if err := n.Close(); err != nil {
		require.True(t, errors.Is(err, kith.ErrAbandoned) || errors.Is(err, kith.ErrStatesLost), "%v", err)
	}
}

// cluster starts n nodes, registers what prepare does, and waits until all see all of them Up.
func cluster(t *testing.T, n int, prepare func(i int, cfg *kith.Config),
	registered func(i int, n *kith.Node)) []*kith.Node {
	t.Helper()
	l := logger(t)
	nodes := make([]*kith.Node, n)
	for i := range nodes {
		cfg := kith.Config{}
		cfg.Logger = slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", i)
		if i > 0 {
			cfg.Seeds = []string{nodes[0].Addr().String()}
		}
		if prepare != nil {
			prepare(i, &cfg)
		}
		nodes[i] = start(t, l, cfg)
		if registered != nil {
			registered(i, nodes[i])
		}
	}
	for _, node := range nodes {
		awaitView(t, node, func(v *kith.View) bool { return v.CountUp() == n })
	}
	return nodes
}

// awaitView waits for a view.
func awaitView(t *testing.T, n *kith.Node, ok func(*kith.View) bool) {
	t.Helper()
	ctx := within(t)
	for ev := range n.Events(ctx) {
		if ok(ev.View) {
			return
		}
	}
	require.FailNow(t, "no such view", "%v: %+v, ended: %v", n.ID(), n.View(), n.Err())
}

// eventually waits for a condition that nobody announces. Its patience is counted in looks, which stand still while the
// process is paused.
func eventually(t *testing.T, ok func() bool, what string, args ...any) {
	t.Helper()
	const every = 2 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for left := patience / every; !ok(); left-- {
		require.Positive(t, left, "never: "+fmt.Sprintf(what, args...))
		<-tick.C
	}
}

// ledger records what reaches entities: numbered messages of numbered senders.
type ledger struct {
	mu        sync.Mutex
	next      map[string]uint64 // by entity and sender: the number expected
	delivered int
	lost      int
	reordered int
	owners    map[string]kith.ID
	changed   chan struct{}
}

func newLedger() *ledger {
	return &ledger{next: map[string]uint64{}, owners: map[string]kith.ID{}, changed: make(chan struct{}, 1)}
}

// forget makes it begin anew.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.next)
	clear(l.owners)
	l.delivered, l.lost, l.reordered = 0, 0, 0
}

func numbered(sender int, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(sender)), seq)
}

func (l *ledger) got(id string, payload []byte, at kith.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := fmt.Sprintf("%s/%d", id, binary.BigEndian.Uint64(payload))
	seq := binary.BigEndian.Uint64(payload[8:])
	switch want := l.next[key]; {
	case seq < want:
		l.reordered++
	case seq > want:
		l.lost += int(seq - want)
	}
	l.next[key] = max(l.next[key], seq+1)
	l.delivered++
	l.owners[id] = at
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// await waits until n messages were delivered, and demands that none was lost or reordered.
func (l *ledger) await(t *testing.T, n int) {
	t.Helper()
	ctx := within(t)
	for {
		l.mu.Lock()
		delivered, lost, reordered := l.delivered, l.lost, l.reordered
		l.mu.Unlock()
		if delivered >= n {
			require.Equal(t, []int{n, 0, 0}, []int{delivered, lost, reordered}, "delivered, lost, reordered")
			return
		}
		select {
		case <-l.changed:
		case <-ctx.Done():
			require.FailNow(t, "messages missing", "%d of %d, %d lost, %d reordered", delivered, n, lost, reordered)
		}
	}
}

// echo is an entity that books tells and answers asks as their payload demands.
type echo struct {
	l  *ledger
	at func() kith.ID
}

func (e *echo) Receive(c *kith.Context, payload []byte) error {
	if !c.Asked() {
		e.l.got(c.ID, payload, e.at())
		return nil
	}
	switch string(payload) {
	case "fail":
		return errors.New("out of stock")
	case "panic":
		panic("boom")
	case "silent":
		return nil
	case "never":
		c.Detach()
		return nil
	case "where":
		return c.Reply([]byte(e.at().String()))
	}
	return c.Reply(append([]byte("re: "), payload...))
}

func (e *echo) Stop(*kith.Context) {}

// echoType declares a type of echo entities on one node.
func echoType(name string, mode kith.Mode, l *ledger, n func() *kith.Node) kith.EntityType {
	return kith.EntityType{Name: name, Mode: mode, Shards: 16,
		New: func(string, kith.Fence) kith.Handler { return &echo{l, func() kith.ID { return n().ID() }} }}
}
