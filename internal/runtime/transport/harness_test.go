// Harness of the tests: a rider that records upcalls and lets tests wait for them.

package transport

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

const patience = 2 * time.Minute

type mail struct {
	from peer.ID
	kind wire.Kind
	body string
}

type down struct {
	id     peer.ID
	lane   wire.Lane
	number int
	lost   uint64
	err    error
}

type silent struct {
	id     peer.ID
	lane   wire.Lane
	number int
	since  time.Duration
}

type unsent struct {
	id     peer.ID
	frames []byte
	err    error
}

// rider is an Upcalls for tests. Without onData it consumes everything at once.
type rider struct {
	mails   chan mail
	ups     chan down
	downs   chan down
	rooms   chan *Link
	refused chan *hello.RefusedError
	lost    chan peer.ID
	unsent  chan unsent
	silent  chan silent

	mailboxes chan wire.Full
	onData    func(c *InConn, frames []byte)
	onPass    func(l *loop.Loop)
}

func newRider() *rider {
	return &rider{mails: make(chan mail, 4096), ups: make(chan down, 256), downs: make(chan down, 256),
		rooms: make(chan *Link, 256), refused: make(chan *hello.RefusedError, 256), unsent: make(chan unsent, 256),
		lost: make(chan peer.ID, 256), silent: make(chan silent, 256),
		mailboxes: make(chan wire.Full, 256)}
}

func (r *rider) Control(from peer.ID, kind wire.Kind, body []byte, _ time.Duration) {
	select {
	case r.mails <- mail{from, kind, string(body)}:
	default:
	}
}

func (r *rider) Data(c *InConn, frames []byte) {
	if r.onData != nil {
		r.onData(c, frames)
		return
	}
	c.Consumed(len(frames))
}

func (r *rider) PassDone(l *loop.Loop) {
	if r.onPass != nil {
		r.onPass(l)
	}
}

func (r *rider) LinkUp(id peer.ID, lane wire.Lane, number int) {
	select {
	case r.ups <- down{id: id, lane: lane, number: number}:
	default:
	}
}

func (r *rider) LinkDown(id peer.ID, lane wire.Lane, number int, lost uint64, err error) {
	select {
	case r.downs <- down{id, lane, number, lost, err}:
	default:
	}
}

func (r *rider) MailboxRoom(_ *Link, f wire.Full) {
	select {
	case r.mailboxes <- f:
	default:
	}
}

func (r *rider) LinkRoom(l *Link) {
	select {
	case r.rooms <- l:
	default:
	}
}
func (r *rider) Undelivered(id peer.ID, frames []byte, err error) {
	select {
	case r.unsent <- unsent{id, frames, err}:
	default:
	}
}

func (r *rider) LinkLost(id peer.ID) { r.lost <- id }

func (r *rider) LinkSilent(id peer.ID, lane wire.Lane, number int, since time.Duration) {
	select {
	case r.silent <- silent{id, lane, number, since}:
	default:
	}
}

func (r *rider) Unreached(peer.Addr, error)             {}
func (r *rider) OtherVisited(peer.Addr, uint64, uint64) {}
func (r *rider) PeerRefused(err *hello.RefusedError)    { r.refused <- err }

var nextInc uint64 = 100

// start runs a transport until the test ends.
func start(t testing.TB, r *rider, change func(*Config)) *Transport { return startWith(t, r, change) }

func startWith(t testing.TB, r Upcalls, change func(*Config)) *Transport {
	t.Helper()
	nextInc++
	cfg := Config{Incarnation: nextInc, Name: "test", DataLoops: 1, BackoffMin: 2 * time.Millisecond,
		BackoffMax: 20 * time.Millisecond, CloseTimeout: 200 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	tr, err := New(cfg, r)
	require.NoError(t, err)
	tr.Start()
	t.Cleanup(tr.Close)
	return tr
}

// want receives one value within patience.
func want[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing came in time")
		panic("unreachable")
	}
}

// until waits for a condition that no upcall reports. It leaves the processor to the goroutines that bring it about.
func until(t testing.TB, cond func() bool) {
	t.Helper()
	arrives(t, func() (int, bool) { return 0, cond() })
}

// arrives waits until something is done that goes on in steps: however long it takes on a busy machine, it fails only
// when no step was made for so long.
func arrives(t testing.TB, at func() (steps int, done bool)) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	last, since := 0, time.Now()
	for {
		steps, done := at()
		if done {
			return
		}
		if steps != last {
			last, since = steps, time.Now()
		}
		require.Less(t, time.Since(since), patience, "did not come about in time")
		<-tick.C
	}
}

// wantMail waits for mail of one kind and drops others.
func wantMail(t testing.TB, r *rider, kind wire.Kind) mail {
	t.Helper()
	for {
		if m := want(t, r.mails); m.kind == kind {
			return m
		}
	}
}

// send appends one envelope with a sender's number and a sequence number, waiting for room if wait is not nil.
func send(t testing.TB, l *Link, sender, seq uint32, payload int, wait <-chan struct{}) error {
	for start := time.Now(); ; {
		l.Lock()
		b, err := l.Reserve(wire.SizeEnvelope(1, payload))
		if err != nil {
			l.Unlock()
			if wait == nil || time.Since(start) > patience {
				return err
			}
			select {
			case <-wait:
			case <-time.After(time.Millisecond): // the room may have come before we waited
			}
			continue
		}
		var zeros [64]byte
		wire.PutEnvelope(b, &wire.Envelope{Type: sender, Shard: seq, Payload: zeros[:min(payload, 64)]}, "x")
		wake := l.Commit()
		l.Unlock()
		if wake {
			l.Wake(nil)
		}
		return nil
	}
}

// eachFrame calls f with every frame.
func eachFrame(frames []byte, f func(frame []byte)) {
	for len(frames) > 0 {
		n := binary.LittleEndian.Uint32(frames)
		f(frames[:n:n])
		frames = frames[n:]
	}
}

// isParked reports whether a blocked writer has the connection of u.
func isParked(t testing.TB, u *uplink) bool {
	t.Helper()
	answer := make(chan bool, 1)
	require.NoError(t, u.loop.Execute(taskFunc(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		answer <- u.conn != nil && u.conn.writer != nil
	})))
	return want(t, answer)
}
