// Tests of stop calls that do not return: reported by name, once, behind their deadline, and nothing else is disturbed.

package exec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/route"
)

// parts is a handler with one function as Receive, HandOver and Stop; call says which.
type parts struct {
	do func(c *entity.Context, call, text string)
}

func (p parts) Receive(c *entity.Context, payload []byte) error {
	p.do(c, "receive", string(payload))
	return nil
}

func (p parts) HandOver(c *entity.Context) ([]byte, error) {
	p.do(c, entity.HandOverCall.String(), "")
	return nil, nil
}

func (parts) TakeUp(*entity.Context, []byte) error { return nil }

func (p parts) Stop(c *entity.Context) { p.do(c, entity.StopCall.String(), "") }

// hangsKit is execution with its incidents and log kept.
type hangsKit struct {
	*bare
	t     *testing.T
	began atomic.Bool // a handler that waits
	mu    sync.Mutex
	seen  []entity.Incident
	log   bytes.Buffer
}

func newHangsKit(t *testing.T, mode entity.Mode, do func(c *entity.Context, call, text string),
	edit ...func(*entity.Type)) *hangsKit {
	k := &hangsKit{t: t}
	typ := typeOf(mode, 2, nil)
	typ.SlowAfter = -1 // a call that hangs is slow, too, which is another incident
	typ.New = func(string, route.Fence) entity.Handler { return parts{do} }
	for _, f := range edit {
		f(&typ)
	}
	k.bare = newBare(t, typ, func(cfg *Config) {
		cfg.Workers, cfg.Loops = 2, make([]*loop.Loop, 2)
		cfg.Logger = slog.New(slog.NewJSONHandler(&k.log, nil))
		cfg.Incident = func(i entity.Incident) {
			k.mu.Lock()
			k.seen = append(k.seen, i)
			k.mu.Unlock()
		}
	})
	return k
}

// look returns what the ticker tells that far in the future, where the slewed clock has moved by slewed.
func (k *hangsKit) look(ahead, slewed time.Duration) []entity.Incident {
	watchStops(k.Exec, k.Clock.Now()+ahead, k.Clock.Slewed()+slewed)
	return k.last()
}

// notLost are the incidents about calls that hang. A shard that stops without a move loses states beside.
func notLost(list []entity.Incident) []entity.Incident {
	return slices.DeleteFunc(list, func(i entity.Incident) bool { return i.Kind == entity.StateLost })
}

// last returns what was reported since it was last called.
func (k *hangsKit) last() []entity.Incident {
	k.TellHook()
	k.mu.Lock()
	defer k.mu.Unlock()
	seen := k.seen
	k.seen = nil
	return seen
}

// inShard returns ids of entities of a shard.
func (k *hangsKit) inShard(s route.ShardID, n int) (ids []string) {
	for i := 0; len(ids) < n; i++ {
		if id := fmt.Sprint("e", i); route.ShardOf(id, k.typ.shards) == s {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestStopCallThatHangsIsTold: Stop or HandOver that has not returned at the deadline of its move is reported, counted
// and logged, once and in each mode, with everything that names it; entities of another shard are served meanwhile, and
// when it returns its shard goes on (SHD-12).
func TestStopCallThatHangsIsTold(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		for _, call := range []string{"hand-over", "stop"} {
			t.Run(mode.String()+call, func(t *testing.T) {
				got, on := make(chan string, 10), make(chan struct{})
				free := sync.OnceFunc(func() { close(on) })
				defer free()
				k := newHangsKit(t, mode, func(_ *entity.Context, is, text string) {
					if got <- is + text; is == call {
						<-on
					}
				})
				id := k.inShard(0, 1)[0]
				require.Equal(t, route.OK, k.send(id, nil))
				require.Equal(t, "receive", <-got)
				h := k.typ.Host(0)
				h.Stop(entity.StopMoved, 0, time.Hour, 1<<20)
				for is := ""; is != call; is = <-got {
				}
				require.Empty(t, k.look(30*time.Minute, 30*time.Minute), "its deadline is later")
				require.Zero(t, StopsHung(k.typ))
				told := k.look(time.Hour+time.Minute, time.Hour)
				require.Len(t, told, 1)
				require.GreaterOrEqual(t, told[0].Took, time.Hour)
				took := told[0].Took
				told[0].Took = 0
				require.Equal(t, entity.Incident{Type: "bare", ID: id, Shard: 0, Fence: k.fence, Mode: mode,
					Kind: entity.StopHangs, Running: true, Text: call}, told[0])
				require.Empty(t, k.look(2*time.Hour, 2*time.Hour), "it is told once")
				require.EqualValues(t, 1, StopsHung(k.typ))
				require.Equal(t, route.OK, k.send(k.inShard(1, 1)[0], []byte("else")))
				require.Equal(t, "receiveelse", <-got)
				free()
				eventually(t, func() bool { return k.typ.Host(0) == nil })
				require.Empty(t, k.look(24*time.Hour, 24*time.Hour))
				require.EqualValues(t, 1, StopsHung(k.typ))
				requireHangLogged(t, &k.log, told[0], took)
			})
		}
	}
}

// requireHangLogged demands one line of the log for an incident, with its keys.
func requireHangLogged(t *testing.T, log *bytes.Buffer, i entity.Incident, took time.Duration) {
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 1)
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &line))
	delete(line, "time")
	fence, err := i.Fence.MarshalText()
	require.NoError(t, err)
	require.Equal(t, map[string]any{"level": "ERROR", "msg": "stop call hangs", "fence": string(fence), "call": i.Text,
		"for": float64(took), "not_logged": 0.0, "entity": map[string]any{"type": i.Type, "id": i.ID,
			"shard": float64(i.Shard), "mode": i.Mode.String()}}, line)
}

// TestDeadlineOfStopCalls: which deadline a stop call has. A machine that slept, and a deadline that lay before the
// call, take nothing of the second that each has in any case.
func TestDeadlineOfStopCalls(t *testing.T) {
	passivates := func(k *hangsKit, id string) { require.Equal(t, route.OK, k.send(id, []byte("go"))) }
	stops := func(why entity.StopReason, by, within time.Duration) func(*hangsKit, string) {
		return func(k *hangsKit, id string) {
			if by > 0 {
				by += k.Clock.Now()
			}
			k.host(id).Stop(why, by, within, 1<<20)
		}
	}
	for name, c := range map[string]struct {
		begin     func(k *hangsKit, id string)
		then      func(k *hangsKit, id string)
		not, told time.Duration
	}{
		"passivation":         {begin: passivates, not: 9 * time.Second, told: 11 * time.Second},
		"stop without a time": {begin: stops(entity.StopMoved, 0, 0), not: 9 * time.Second, told: 11 * time.Second},
		"move":                {begin: stops(entity.StopMoved, 0, time.Hour), not: 59 * time.Minute, told: 61 * time.Minute},
		"leave": {begin: stops(entity.StopLeaving, time.Hour, 0),
			not: 59 * time.Minute, told: 61 * time.Minute},
		"leave before a move": {begin: stops(entity.StopLeaving, time.Minute, time.Hour),
			not: 59 * time.Second, told: 61 * time.Second},
		"move before the end of a leave": {begin: stops(entity.StopLeaving, time.Hour, time.Minute),
			not: 59 * time.Second, told: 61 * time.Second},
		"passivation, then a move": {begin: passivates, then: stops(entity.StopMoved, 0, time.Hour),
			not: 59 * time.Minute, told: 61 * time.Minute},
		"deadline before the call": {begin: func(k *hangsKit, id string) {
			require.Equal(t, route.OK, k.send(id, []byte("late")))
			h := k.host(id)
			eventually(k.t, k.began.Load) // else it is cut before it has an instance
			h.Stop(entity.StopMoved, 0, time.Millisecond, 1<<20)
			eventually(k.t, func() bool { return Overdue(h) })
		}, not: 0, told: 2 * time.Second},
		"passivation, then the loss of the shard": {begin: passivates,
			then: func(k *hangsKit, id string) { k.host(id).Abandon() }, not: 0, told: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in, on, late := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var k *hangsKit
			k = newHangsKit(t, entity.Blocking, func(c *entity.Context, is, text string) {
				switch {
				case is == "stop":
					close(in)
					<-on
				case text == "late":
					k.began.Store(true)
					<-late
				case text == "go":
					c.Passivate()
				}
			})
			defer close(on)
			require.Equal(t, route.OK, k.send("a", nil))
			c.begin(k, "a")
			close(late)
			<-in
			if c.then != nil {
				c.then(k, "a")
			}
			require.Empty(t, notLost(k.look(c.not, c.not)))
			require.Empty(t, notLost(k.look(24*time.Hour, 0)), "the machine slept")
			require.Len(t, notLost(k.look(c.told, c.told)), 1)
		})
	}
}

// TestStopCallsThatReturn: nothing is reported of stop calls that return or panic, however many there are, nothing is
// kept of them, and noting one allocates nothing.
func TestStopCallsThatReturn(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			k := newHangsKit(t, mode, func(_ *entity.Context, is, _ string) {
				if is != "receive" {
					panic("boom")
				}
			})
			h := k.typ.Host(0)
			for _, id := range k.inShard(0, 300) {
				require.Equal(t, route.OK, k.send(id, nil))
			}
			h.Stop(entity.StopMoved, 0, time.Hour, 1<<20)
			eventually(t, func() bool { return k.typ.Host(0) == nil })
			for _, i := range k.look(24*time.Hour, 24*time.Hour) {
				require.NotEqual(t, entity.StopHangs, i.Kind)
			}
			require.Zero(t, StopsHung(k.typ))
			panics, _ := k.typ.Incidents()
			require.EqualValues(t, 600, panics)
			require.Empty(t, k.parting.take())
			require.Nil(t, h.calls.stops)
		})
	}
	h, e, other := &Host{x: &Exec{}}, &entity.Entity{}, &entity.Entity{}
	beginStop(h, other, entity.StopCall)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		beginStop(h, e, entity.StopCall)
		endStop(h, e)
	}))
	require.Len(t, h.x.parting.take(), 1, "a host is noted once")
}

// TestStopCallsThatTheEndLeavesBehind: a node that ends names those that it does not wait for.
func TestStopCallsThatTheEndLeavesBehind(t *testing.T) {
	in, on := make(chan struct{}), make(chan struct{})
	k := newHangsKit(t, entity.Blocking, func(c *entity.Context, is, _ string) {
		if c.Passivate(); is == "stop" {
			close(in)
			<-on
		}
	})
	defer close(on)
	require.Equal(t, route.OK, k.send("a", nil))
	<-in
	k.Clock.SetSlept(0, 2*time.Second)
	k.Abandon()
	k.DropAll()
	k.over = true
	k.StopWorkers()
	for _, w := range k.workers {
		<-w.ended // else it counts as left behind
	}
	behind, _ := k.Settle(time.Minute)
	require.Equal(t, 1, behind)
	told := k.last()
	require.Len(t, told, 1)
	require.Equal(t, []any{entity.StopHangs, "a"}, []any{told[0].Kind, told[0].ID})
}

// TestIncidentKindsAreBounded: each kind that has a name has its limit.
func TestIncidentKindsAreBounded(t *testing.T) {
	var l incidentLimits
	for k := entity.IncidentKind(1); k != 0; k++ {
		if k.String() != fmt.Sprintf("incident-%d", k) {
			require.Less(t, int(k), len(l.kinds), k)
		}
	}
}
