// The deadline of a move, in the three modes: what is taken, and what the next host begins with.

package exec

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/route"
)

// At the deadline no handler is called for what waits, in a mailbox, before a worker or before a loop: it is taken in
// order, and a host that begins with it has it handled before anything else (SHD-9, deadline, transfer-first).
func TestHostIsCut(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			got, on := make(chan string, 1000), make(chan struct{})
			x := newBare(t, typeOf(mode, 1, func(_ *entity.Context, payload []byte) error {
				if got <- string(payload); string(payload) == "stand" {
					<-on
				}
				return nil
			}))
			h := x.host("a")
			require.Equal(t, route.OK, x.send("a", []byte("stand")))
			require.Equal(t, "stand", <-got)
			require.Equal(t, route.OK, x.send("a", []byte("stand"))) // the first of a run that has more
			const sent = 300                                         // more than a Blocking entity takes into one run
			for i := range sent {
				require.Equal(t, route.OK, x.send("a", fmt.Appendf(nil, "%03d", i)))
			}
			on <- struct{}{}
			require.Equal(t, "stand", <-got)
			h.Stop(entity.StopMoved, 0, time.Millisecond, 0)
			eventually(t, func() bool { return Overdue(h) })
			close(on)
			eventually(t, func() bool { return x.typ.Host(0) == nil })
			left, _ := Rest(h)
			require.Len(t, left, sent)
			require.Empty(t, got)
			x.typ.Begin(0, x.fence, left, nil)
			require.Equal(t, route.OK, x.send("a", fmt.Appendf(nil, "%03d", sent)))
			for i := range sent + 1 {
				require.Equal(t, fmt.Sprintf("%03d", i), <-got)
			}
			require.Empty(t, x.told())
		})
	}
}

// A shard that has worked everything off by then has stopped, and hands over nothing.
func TestHostThatIsDoneInTime(t *testing.T) {
	got := make(chan string, 10)
	x := newBare(t, typeOf(entity.Blocking, 1, func(_ *entity.Context, payload []byte) error {
		got <- string(payload)
		return nil
	}))
	h := x.host("a")
	require.Equal(t, route.OK, x.send("a", []byte("1")))
	h.Stop(entity.StopMoved, 0, time.Hour, 0)
	eventually(t, func() bool { return x.typ.Host(0) == nil })
	require.Equal(t, "1", <-got)
	left, _ := Rest(h)
	require.Empty(t, left)
	require.False(t, Overdue(h))
	x.hosts.mu.Lock()
	defer x.hosts.mu.Unlock()
	require.Empty(t, x.hosts.leaving)
}

// leaver has a state, and its messages wait behind one that stands.
type leaver struct {
	got chan string
	on  chan struct{}
}

func (l leaver) Receive(_ *entity.Context, payload []byte) error {
	l.got <- string(payload)
	<-l.on
	return nil
}

func (leaver) Stop(*entity.Context) {}

func (leaver) HandOver(*entity.Context) ([]byte, error) { return []byte("state"), nil }

func (leaver) TakeUp(*entity.Context, []byte) error { return nil }

// leaving returns a host that has reported its end and has handed over nothing yet: a state, and at the deadline of its
// move two messages. What it still gets from now on, until it is removed, is all that a node may give it.
func leaving(t *testing.T, mode entity.Mode, deadline bool, edit ...func(*Config)) (*bare, *Host) {
	l := leaver{make(chan string, 10), make(chan struct{})}
	typ := entity.Type{Name: "bare", Shards: 1, Mode: mode, New: func(string, route.Fence) entity.Handler { return l }}
	x := newBare(t, typ, edit...)
	told := make(chan *Host, 1)
	x.needs.Stopped = func(h *Host) { told <- h }
	for _, text := range []string{"0", "1", "2"} {
		require.Equal(t, route.OK, x.send("a", []byte(text)))
	}
	require.Equal(t, "0", <-l.got)
	within := time.Hour
	if deadline {
		within = time.Millisecond
	}
	x.host("a").Stop(entity.StopMoved, 0, within, 1<<10)
	eventually(t, func() bool { return Overdue(x.host("a")) == deadline })
	close(l.on)
	h := <-told
	require.Equal(t, never, h.due.At(), "it needs no tick any more")
	return x, h
}

// What a shard has left is taken while orders and messages still come to its host, which knew nothing of the end when
// they were sent, the deadline of the move among them: nothing of them steps it any more, in whichever order they come
// (SHD-9; the race detector looks on).
func TestHostThatHasStopped(t *testing.T) {
	several := func(c *Config) { c.Loops = make([]*loop.Loop, 2) }
	for name, of := range map[string]func(t *testing.T, deadline bool) (*bare, *Host){
		"blocking": func(t *testing.T, deadline bool) (*bare, *Host) { return leaving(t, entity.Blocking, deadline) },
		"worker":   func(t *testing.T, deadline bool) (*bare, *Host) { return leaving(t, entity.Worker, deadline) },
		"inline":   func(t *testing.T, deadline bool) (*bare, *Host) { return leaving(t, entity.Inline, deadline) },
		"loops": func(t *testing.T, deadline bool) (*bare, *Host) {
			return leaving(t, entity.Inline, deadline, several)
		},
	} {
		for _, deadline := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " deadline ", deadline), func(t *testing.T) {
				x, h := of(t, deadline)
				for _, o := range []order{orderTick, orderStop, orderRecall, orderLease} {
					h.give(o)
				}
				cut(h)
				why := x.send("a", []byte("late"))
				texts := []string{}
				left, states := Rest(h)
				for _, m := range left {
					texts = append(texts, string(m.Payload))
				}
				kept := states(1 << 10)
				require.Equal(t, []string{"1", "2"}[:2*min(len(texts), 1)], texts)
				require.Equal(t, deadline, len(texts) > 0)
				require.Equal(t, []entity.State{{ID: "a", Bytes: []byte("state")}}, kept)
				left, states = Rest(h)
				require.Empty(t, left, "it is taken once")
				require.Empty(t, states(1<<10), "they are taken once")
				h.give(orderTick)
				if why == route.OK { // it lies before a goroutine, which tells
					eventually(t, func() bool { return len(x.told()) == 1 })
					why = x.told()[0].reason
				}
				require.Equal(t, route.ShardStopping, why)
				h.Remove()
			})
		}
	}
}

// What has not been taken when the node ends is reported as abandoned, once, or taken, whichever comes first (SHD-9).
func TestHostThatHasStoppedIsLost(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		for _, taken := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, " taken ", taken), func(t *testing.T) {
				x, h := leaving(t, mode, true)
				var abandoned atomic.Int64
				x.needs.Unhandled = func(_ *Type, _ route.ShardID, id string, why route.Reason, ask bool) {
					if id == "a" && why == route.Abandoned && !ask {
						abandoned.Add(1)
					}
				}
				lost := StatesLost(x.typ)
				if taken {
					left, states := Rest(h)
					require.Len(t, left, 2)
					require.Len(t, states(1<<10), 1)
				}
				x.Abandon()
				x.DropAll()
				x.over = true
				x.StopWorkers()
				<-x.workers[0].ended
				_, settled := x.Settle(patience)
				<-settled
				if taken {
					require.Zero(t, abandoned.Load())
					require.Equal(t, lost, StatesLost(x.typ))
					return
				}
				require.EqualValues(t, 2, abandoned.Load())
				require.Equal(t, lost+1, StatesLost(x.typ))
				left, states := Rest(h)
				require.Empty(t, left)
				require.Empty(t, states(1<<10))
			})
		}
	}
}
