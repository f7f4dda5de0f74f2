// Tests of topics on real nodes.

package topic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/runtime/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// begin starts a node that joins the others, and its topics.
func begin(t *testing.T, others ...*kith.Node) (*kith.Node, *Topics) {
	t.Helper()
	cfg := kith.Config{Name: "topics", Listen: port.Keep(t), Resolver: kith.Resolver{Strategy: kith.ResolverOff},
		Sharding: kith.Sharding{TakeoverTime: 20 * time.Minute}, Membership: kith.MembershipConfig{
			GossipInterval: 100 * time.Millisecond, LeaderInterval: 50 * time.Millisecond, ProbeInterval: 100 * time.Millisecond,
			SeedTimeout: 2 * time.Second}}
	for _, o := range others {
		cfg.Seeds = append(cfg.Seeds, o.Addr().String())
	}
	n, err := kith.Start(within(t), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	ts, err := Start(n)
	require.NoError(t, err)
	require.NoError(t, n.Ready(within(t)))
	return n, ts
}

// opens opens a topic on several nodes, all of which can send to all.
func opens(t *testing.T, name string, all ...*Topics) []*Topic {
	t.Helper()
	list := make([]*Topic, len(all))
	for i, ts := range all {
		var err error
		list[i], err = ts.Open(name)
		require.NoError(t, err)
		pool := ts.crew.(*driver.Pool)
		require.Eventually(t, func() bool { return len(pool.Workers()) == len(all) }, time.Minute, time.Millisecond)
	}
	return list
}

// reader collects numbers by publisher and checks their order.
type reader struct {
	mu     sync.Mutex
	last   map[byte]uint32
	got    int
	missed uint64
	fault  error
}

func (r *reader) read(m Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[byte]uint32{}
	}
	who, number := m.Payload[0], binary.LittleEndian.Uint32(m.Payload[1:])
	if number <= r.last[who] {
		r.fault = errors.Join(r.fault, fmt.Errorf("%d of %d behind %d", number, who, r.last[who]))
	}
	r.last[who] = number
	r.got++
	r.missed += m.Missed
}

func (r *reader) sum() (got int, missed uint64, fault error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got, r.missed, r.fault
}

// allHeard reports whether soon all readers know of so many messages, those among them that they missed.
func allHeard(readers []*reader, messages int) bool {
	for began := time.Now(); time.Since(began) < 2*time.Second; <-time.After(time.Millisecond) {
		if !slices.ContainsFunc(readers, func(r *reader) bool {
			got, missed, _ := r.sum()
			return got+int(missed) != messages
		}) {
			return true
		}
	}
	return false
}

func numbered(who byte, n uint32) []byte { return binary.LittleEndian.AppendUint32([]byte{who}, n) }

// Each subscriber on each node gets what each publisher says, in that one's order, and each node gets a message once
// (REP-2).
func TestPublishAndSubscribe(t *testing.T) {
	const subscribers, messages = 20, 400
	a, as := begin(t)
	b, bs := begin(t, a)
	_, cs := begin(t, a, b)
	topics := opens(t, "prices", as, bs, cs)
	same, err := as.Open("prices")
	require.NoError(t, err)
	require.Same(t, topics[0], same)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	var readers []*reader
	var reading sync.WaitGroup
	for _, topic := range topics[:2] {
		for range subscribers {
			r, seq := &reader{}, topic.Subscribe(ctx)
			readers = append(readers, r)
			reading.Go(func() {
				for m := range seq {
					r.read(m)
				}
			})
		}
		require.NoError(t, topic.Known(within(t)))
	}
	var publishing sync.WaitGroup
	for i, topic := range topics {
		require.Eventually(t, func() bool { return topic.Stats().Nodes == 2 }, time.Minute, time.Millisecond)
		publishing.Go(func() {
			for n := range uint32(messages) {
				if err := topic.Publish(numbered(byte(i), n+1)); err != nil {
					t.Errorf("publish: %v", err)
				}
			}
		})
	}
	publishing.Wait()
	said := messages // by each
	for began := time.Now(); !allHeard(readers, len(topics)*said); said++ {
		// What met a worker that moves, behind all others, is reported by the next message alone.
		require.Less(t, time.Since(began), time.Minute)
		for i, topic := range topics {
			require.NoError(t, topic.Publish(numbered(byte(i), uint32(said+1))))
		}
	}
	for _, r := range readers {
		_, _, fault := r.sum()
		require.NoError(t, fault)
	}
	require.EqualValues(t, 2*said, topics[2].Stats().Sent, "once to each node, not to each subscriber")
	require.EqualValues(t, said, topics[0].Stats().Sent)
	if said == messages { // no worker moved meanwhile
		require.EqualValues(t, 2*messages, topics[0].Stats().Received)
	}
	require.LessOrEqual(t, topics[0].Stats().Received, uint64(2*said))
	cancel()
	reading.Wait()
	for _, topic := range topics {
		require.Eventually(t, func() bool { return topic.Stats().Nodes == 0 }, time.Minute, time.Millisecond)
		require.Zero(t, topic.Stats().Subscribers)
		require.NoError(t, topic.Publish(nil), "to nobody")
	}
}

// A subscriber that does not read misses messages by count; another one gets all (REP-2).
func TestSlowSubscriber(t *testing.T) {
	a, as := begin(t)
	_, bs := begin(t, a)
	topics := opens(t, "news", as, bs)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	never := topics[1].Subscribe(ctx)
	slow, err := topics[1].SubscribeWithin(ctx, Bounds{Messages: 3})
	require.NoError(t, err)
	_, err = topics[1].SubscribeWithin(ctx, Bounds{Messages: -1})
	require.ErrorIs(t, err, ErrBadBounds)
	require.NoError(t, topics[1].Known(within(t)))
	require.Eventually(t, func() bool { return topics[0].Stats().Nodes == 1 }, time.Minute, time.Millisecond)
	for n := range uint32(10) {
		require.NoError(t, topics[0].Publish(numbered(0, n+1)))
	}
	require.Eventually(t, func() bool { return topics[1].Stats().Received == 10 }, time.Minute, time.Millisecond)
	var got []uint64
	for m := range slow {
		got = append(got, uint64(binary.LittleEndian.Uint32(m.Payload[1:])), m.Missed)
		if len(got) == 6 {
			require.NoError(t, topics[0].Publish(numbered(0, 11)))
		}
		if len(got) == 8 {
			break
		}
	}
	require.Equal(t, []uint64{1, 0, 2, 0, 3, 0, 11, 7}, got)
	require.EqualValues(t, 7, topics[1].Stats().Missed)
	require.Equal(t, 1, topics[1].Stats().Subscribers, "who leaves the loop is gone")
	cancel()
	for m := range never {
		require.Equal(t, a.ID(), m.From)
	}
	require.Eventually(t, func() bool { return topics[1].Stats().Subscribers == 0 }, time.Minute, time.Millisecond)
}

// A node that goes is sent nothing any more, and one that comes is (REP-2).
func TestTopicsOfNodesThatComeAndGo(t *testing.T) {
	a, as := begin(t)
	b, bs := begin(t, a)
	topics := opens(t, "news", as, bs)
	_ = topics[1].Subscribe(within(t))
	require.Eventually(t, func() bool { return topics[0].Stats().Nodes == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, b.Leave(within(t)))
	require.Eventually(t, func() bool {
		return topics[0].Stats().Nodes == 0 && topics[0].interest.get().Len() == 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, topics[0].Publish(nil))
	require.ErrorIs(t, topics[1].Publish(nil), b.Err())

	_, cs := begin(t, a)
	third := opens(t, "news", as, cs)[1]
	seq := third.Subscribe(within(t))
	require.NoError(t, third.Known(within(t)))
	require.Eventually(t, func() bool { return topics[0].Stats().Nodes == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, topics[0].Publish([]byte("here")))
	for m := range seq {
		require.Equal(t, Message{a.ID(), []byte("here"), 0}, m)
		break
	}
}

// A subscription begins at once for what its own node publishes (REP-2).
func TestOwnSubscriber(t *testing.T) {
	_, ts := begin(t)
	topic := opens(t, "own", ts)[0]
	seq := topic.Subscribe(within(t))
	require.NoError(t, topic.Publish([]byte("now")))
	for m := range seq {
		require.Equal(t, "now", string(m.Payload))
		break
	}
}

// What no topic can be, and what is too large, is refused and changes nothing (REP-2).
func TestBadTopics(t *testing.T) {
	n, ts := begin(t)
	_, err := Start(n)
	require.ErrorIs(t, err, kith.ErrTypeExists)
	for _, name := range []string{"", strings.Repeat("a", 1<<20)} {
		_, err := ts.Open(name)
		require.ErrorIs(t, err, ErrBadName)
	}
	topic := opens(t, "x", ts)[0]
	require.ErrorIs(t, topic.Publish(make([]byte, 1<<20)), ErrTooLarge)
	require.Zero(t, topic.Stats().Published)
	e := ear{ts}
	require.ErrorIs(t, e.Receive(nil, []byte{9}), errFrame)
	b := appendFrame(nil, &frame{n.ID().Inc + 1, 1, "x", sender, nil})
	require.NoError(t, e.Receive(nil, b), "for another incarnation")
	b = appendFrame(nil, &frame{n.ID().Inc, 1, "unknown", sender, nil})
	require.NoError(t, e.Receive(nil, b))
	require.EqualValues(t, 3, ts.Stray())
	require.NoError(t, n.Close())
	_, err = ts.Open("y")
	require.Error(t, err)
}

// What went nowhere before the first message that came is among what a subscriber learns that it missed; one that began
// later learns of none of it (REP-2).
func TestMissedBeforeTheFirst(t *testing.T) {
	a, as := begin(t)
	b, bs := begin(t, a)
	topics := opens(t, "news", as, bs)
	first := topics[1].Subscribe(within(t))
	require.NoError(t, topics[1].Known(within(t)))
	require.Eventually(t, func() bool { return topics[0].Stats().Nodes == 1 }, time.Minute, time.Millisecond)
	topics[0].mu.Lock()
	topics[0].sent[b.ID()] = 3 // for which there was no room
	topics[0].mu.Unlock()
	later := topics[1].Subscribe(within(t))
	require.NoError(t, topics[0].Publish([]byte("x")))
	for m := range first {
		require.EqualValues(t, 3, m.Missed)
		break
	}
	for m := range later {
		require.Zero(t, m.Missed)
		break
	}
}

// What a publisher sent before it was removed may come afterwards, and is no new stream: nothing is counted as missed
// twice. A minute later nothing is kept of it (REP-2).
func TestLateMessagesOfARemovedPublisher(t *testing.T) {
	a, as := begin(t)
	_, bs := begin(t, a)
	topics := opens(t, "news", as, bs)
	next, stop := iter.Pull(topics[1].Subscribe(within(t)))
	defer stop()
	require.NoError(t, topics[1].Known(within(t)))
	require.Eventually(t, func() bool { return topics[0].Stats().Nodes == 1 }, time.Minute, time.Millisecond)
	for n := range 3 {
		require.NoError(t, topics[0].Publish([]byte{byte(n)}))
		m, ok := next()
		require.True(t, ok)
		require.Equal(t, []byte{byte(n)}, m.Payload)
		require.Zero(t, m.Missed)
		topics[1].forget(within(t), &kith.View{})
	}
	topics[1].mu.Lock()
	require.Contains(t, topics[1].streams, a.ID())
	topics[1].streams[a.ID()].gone = time.Now().Add(-2 * lateTime)
	topics[1].mu.Unlock()
	topics[1].forget(within(t), &kith.View{})
	topics[1].mu.Lock()
	defer topics[1].mu.Unlock()
	require.Empty(t, topics[1].streams)
}
