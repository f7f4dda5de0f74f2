// The test kit: execution without a node around it, on real event loops.

package exec

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

const patience = 2 * time.Minute

// quiet is the runtime of a transport that only lends its loops.
type quiet struct{}

func (quiet) Control(peer.ID, wire.Kind, []byte, time.Duration) {}
func (quiet) Data(*transport.InConn, []byte)                    {}
func (quiet) PassDone(*loop.Loop)                               {}
func (quiet) LinkUp(peer.ID, wire.Lane, int)                    {}
func (quiet) LinkDown(peer.ID, wire.Lane, int, uint64, error)   {}
func (quiet) Undelivered(peer.ID, []byte, error)                {}
func (quiet) MailboxRoom(*transport.Link, wire.Full)            {}
func (quiet) LinkRoom(*transport.Link)                          {}
func (quiet) LinkLost(peer.ID)                                  {}
func (quiet) LinkSilent(peer.ID, wire.Lane, int, time.Duration) {}
func (quiet) PeerRefused(*hello.RefusedError)                   {}
func (quiet) Unreached(peer.Addr, error)                        {}
func (quiet) OtherVisited(peer.Addr, uint64, uint64)            {}

// refusal is one call of Needs.Refused.
type refusal struct {
	t      *Type
	from   *Source
	id     string
	asked  bool
	reason route.Reason
}

// bare is execution with all its shards living here, under one fence, with a ticker.
type bare struct {
	*Exec
	typ   *Type
	other *Source // another node
	fence route.Fence
	large Large // what Needs.Large returns
	over  bool  // its workers have been stopped

	mu      sync.Mutex
	refused []refusal
}

// answers is the origin of an ask.
type answers struct{ got chan route.Reason }

func (a answers) Reply(_ uint64, reason route.Reason, _ []byte) error {
	a.got <- reason
	return nil
}

// alone is what handlers reach: nobody.
type alone struct{ *Host }

func (alone) Answered(entity.Origin, uint64)            {}
func (alone) Tell([]byte, string, string, []byte) error { return route.ErrNotRegistered }

func (alone) Ask([]byte, time.Duration, string, string, []byte) ([]byte, error) {
	return nil, route.ErrNotRegistered
}

func newBare(t testing.TB, typ entity.Type, edit ...func(*Config)) *bare {
	x := &bare{Exec: &Exec{}, fence: route.MakeFence(1, 2, 3),
		other: &Source{ID: peer.ID{Inc: 7}, Origin: answers{make(chan route.Reason, 64)}}}
	cfg := Config{Workers: 1, MaxPayload: 1 << 20, LocalBuffer: 4 << 20, Backlog: 64 << 20, LatencyEvery: 64,
		Origin: answers{make(chan route.Reason, 64)}, Logger: slog.New(slog.DiscardHandler),
		Loops: make([]*loop.Loop, 1)}
	for _, f := range edit {
		f(&cfg)
	}
	wires, err := transport.New(transport.Config{Name: "kith", Incarnation: 7, DataLoops: len(cfg.Loops)}, quiet{})
	require.NoError(t, err)
	cfg.Loops = wires.Loops()
	x.Clock.Init(time.Now())
	x.Gate.Init(time.Hour)
	x.Init(cfg, Needs{
		Refused:       x.note,
		InvalidFrames: func(peer.ID, wire.Kind, error) {},
		Large:         func(*Source, *wire.Envelope) (Large, route.Reason) { return x.large, route.OK },
		Room:          func(route.TypeID, route.ShardID, uint64) {},
		Stopped:       (*Host).Remove,
		Overdue:       func(*Host) {},
		Unhandled:     func(*Type, route.ShardID, string, route.Reason, bool) {},
	})
	x.typ = x.NewType(typ.WithDefaults(), func(h *Host) entity.Runtime { return alone{h} })
	x.SetTypes((&Types{}).With(x.typ))
	for i := range x.typ.shards {
		x.typ.Begin(route.ShardID(i), x.fence, nil, nil)
	}
	wires.Start()
	var threads sync.WaitGroup
	x.Start(&threads)
	stop := make(chan struct{})
	threads.Go(func() { x.ticker(stop) })
	t.Cleanup(func() {
		x.Abandon()
		x.DropAll()
		x.Gate.Release(true)
		close(stop)
		if !x.over {
			x.StopWorkers()
		}
		threads.Wait()
		require.True(t, x.StopEntities(patience))
		wires.Close()
	})
	return x
}

func (x *bare) ticker(stop <-chan struct{}) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			x.Tick(x.Clock.Now())
		}
	}
}

func (x *bare) note(t *Type, from *Source, env *wire.Envelope, reason route.Reason) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refused = append(x.refused, refusal{t, from, string(env.ID), env.Flags&wire.FlagAsk != 0, reason})
}

// told returns the refusals so far.
func (x *bare) told() []refusal {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]refusal(nil), x.refused...)
}

// host returns where an entity lives.
func (x *bare) host(id string) *Host { return x.typ.Host(route.ShardOf(id, x.typ.shards)) }

// envelope is that of a message for an entity here.
func (x *bare) envelope(id string, payload []byte) wire.Envelope {
	return wire.Envelope{Type: uint32(x.typ.id), Shard: uint32(x.host(id).shard), Term: x.fence.Term(),
		Epoch: x.fence.Epoch(), ID: []byte(id), Payload: payload}
}

// send sends a message of this node.
func (x *bare) send(id string, payload []byte) route.Reason {
	h, env := x.host(id), x.envelope(id, payload)
	return h.Send(h.Lock(), &env, 0, id)
}

// read has a loop take whole frames of another node, as one read pass, and returns when it has.
func (x *bare) read(t testing.TB, loop int, frames []byte) {
	p := x.passes[loop]
	x.onLoop(t, loop, func() {
		p.from = x.other
		p.sit()
		p.frames(x.Clock.Now(), nil, x.other, frames)
		p.rise()
		p.flush()
	})
}

func (x *bare) onLoop(t testing.TB, loop int, f func()) {
	done := make(chan struct{})
	require.NoError(t, x.passes[loop].loop.Execute(task(func() { f(); close(done) })))
	<-done
}

type task func()

func (f task) Run(*loop.Loop) { f() }

// handling is a handler of one function.
type handling func(c *entity.Context, payload []byte) error

func (f handling) Receive(c *entity.Context, payload []byte) error { return f(c, payload) }

func (f handling) Stop(*entity.Context) {}

// typeOf is a type with one function as its handlers.
func typeOf(mode entity.Mode, shards uint32, f handling) entity.Type {
	return entity.Type{Name: "bare", Shards: shards, Mode: mode,
		New: func(string, route.Fence) entity.Handler { return f }}
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
