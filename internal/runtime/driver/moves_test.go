// Moves of shards over real sockets, under tells and asks from two senders, in all three modes.

package driver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// movers is three nodes that all host a type of each mode, and a ledger of what its handlers got: numbers of senders,
// which have to come once and in order.
type movers struct {
	t     *testing.T
	nodes []*Driver

	mu    sync.Mutex
	last  map[string]uint32 // by type, entity and sender
	wrong []string
	gaps  bool // somebody dies: numbers may be missing
	lost  []Undelivered
	began map[string]route.Fence // by type and shard: the highest fence that a handler has seen
}

type mover struct {
	m   *movers
	typ string
}

// Receive takes a sender's name, one byte, and its number.
func (h *mover) Receive(c *entity.Context, payload []byte) error {
	h.m.takes(fmt.Sprintf("%s/%s/%c", h.typ, c.ID, payload[0]), binary.LittleEndian.Uint32(payload[1:]),
		fmt.Sprintf("%s/%d", h.typ, c.Shard), c.Fence)
	if c.Asked() {
		return c.Reply(payload)
	}
	return nil
}

func (h *mover) Stop(*entity.Context) {}

func (m *movers) takes(key string, n uint32, at string, f route.Fence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.last[key]; n != last+1 && !(m.gaps && n > last) {
		m.wrong = append(m.wrong, fmt.Sprintf("%s: %d after %d", key, n, last))
	}
	m.last[key] = max(m.last[key], n)
	if m.began[at].Compare(f) > 0 {
		m.wrong = append(m.wrong, fmt.Sprintf("%s: handled under %s after %s", at, f, m.began[at]))
	}
	m.began[at] = f
}

func newMovers(t *testing.T, edit ...func(*Config)) *movers {
	m := &movers{t: t, last: map[string]uint32{}, began: map[string]route.Fence{}}
	tuning := membership.Config{GossipInterval: 100 * time.Millisecond, LeaderInterval: 50 * time.Millisecond,
		ProbeInterval: 100 * time.Millisecond}
	for i := range 3 {
		cfg := Config{Membership: tuning, Undelivered: func(u Undelivered) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.lost = append(m.lost, u)
		}}
		for _, f := range edit {
			f(&cfg)
		}
		if i > 0 {
			cfg.Seeds = []string{m.nodes[0].Self().Addr.String()}
		}
		d, err := Start(t.Context(), cfg.WithDefaults())
		require.NoError(t, err)
		t.Cleanup(func() { closes(t, d) })
		for _, mode := range allModes {
			typ := entity.Type{Name: mode.String(), Shards: 4, Mode: mode,
				New: func(string, route.Fence) entity.Handler { return &mover{m, mode.String()} }}
			_, err := d.Register(typ)
			require.NoError(t, err)
		}
		require.NoError(t, d.Ready(t.Context()))
		m.nodes = append(m.nodes, d)
	}
	return m
}

// deathIsProof has shards of a process that has ended go to others at once. The members of a cluster so young cannot
// know which members it lost before they came, so the next coordinator waits for the takeover time all the same.
func deathIsProof(c *Config) {
	c.Sharding.ProcessDeathIsProof, c.Sharding.TakeoverTime, c.Resolver.Strategy = true, time.Second, node.ResolverOff
}

func (d *Driver) regionNamed(name string) *Region { return d.regions.Load().named(name) }

// move has the coordinator move a shard, and returns its error.
func (m *movers) move(typ string, s route.ShardID, to *Driver) (err error) {
	cmd := shard.MoveCommand{Type: route.TypeOf(typ), Shard: s, To: to.Self()}
	onControl(m.nodes[0], func() { err = m.nodes[0].command(cmd) })
	return err
}

// home returns the node that hosts a shard, nil while none does.
func (m *movers) home(typ string, s route.ShardID) *Driver {
	for _, d := range m.nodes {
		if h := (slotRef{d.regionNamed(typ), s}).host(); h != nil && !h.Ending() {
			return d
		}
	}
	return nil
}

// sends has a sender tell, and every fourth time ask, one entity of each mode until stop is set; it returns how
// many it sent to each.
func (m *movers) sends(d *Driver, name byte, id string, stop *atomic.Bool) (sent uint32) {
	for !stop.Load() {
		sent++
		payload := binary.LittleEndian.AppendUint32([]byte{name}, sent)
		for _, mode := range allModes {
			r := d.regionNamed(mode.String())
			if sent%4 == 0 {
				if _, err := r.AskWithin(patience, id, payload, nil); err != nil {
					m.note("ask %d of %c: %v", sent, name, err)
				}
				continue
			}
			for err := r.Tell(id, payload); err != nil; err = r.Tell(id, payload) {
				if !errors.Is(err, route.ErrLinkFull) && !errors.Is(err, route.ErrMailboxFull) {
					m.note("tell %d of %c: %v", sent, name, err)
					break
				}
			}
		}
	}
	return sent
}

func (m *movers) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

// Shards move back and forth between nodes that live, while two nodes tell and ask their entities: nothing is lost,
// overtaken or doubled, and every ask is answered (SHD-12, in all modes).
func TestMovesOverSocketsLoseNothing(t *testing.T) {
	m := newMovers(t)
	const id = "x"
	var stop atomic.Bool
	var senders sync.WaitGroup
	var sent [2]uint32
	for i, d := range m.nodes[1:] {
		senders.Go(func() { sent[i] = m.sends(d, byte('a'+i), id, &stop) })
	}
	for round := range 6 {
		for _, mode := range allModes {
			typ := mode.String()
			s := m.nodes[0].regionNamed(typ).Shard(id)
			to := m.nodes[round%3]
			eventually(t, func() bool {
				err := m.move(typ, s, to)
				return err == nil || errors.Is(err, shard.ErrAtHome)
			})
			eventually(t, func() bool { return m.home(typ, s) == to })
		}
	}
	stop.Store(true)
	senders.Wait()
	for i := range sent {
		for _, mode := range allModes {
			eventually(t, func() bool {
				m.mu.Lock()
				defer m.mu.Unlock()
				return m.last[fmt.Sprintf("%s/%s/%c", mode, id, 'a'+i)] == sent[i]
			})
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	require.Empty(t, m.wrong)
	require.Empty(t, m.lost)
	t.Logf("sent %v to each of three entities", sent)
}

// A node ends, without a word, in the middle of a move: the owner, the next owner, or the coordinator: another takes
// over its part. Some node owns the shard afterwards, and nothing was handled twice or overtaken.
func TestNodeEndsInTheMiddleOfAMove(t *testing.T) {
	for victim, name := range []string{"coordinator", "owner", "next owner"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMovers(t, deathIsProof)
			m.gaps = true
			const id = "x"
			typ := entity.Worker.String()
			r := m.nodes[0].regionNamed(typ)
			s := r.Shard(id)
			number := uint32(0)
			ask := func(d *Driver) error {
				number++
				payload := binary.LittleEndian.AppendUint32([]byte{'a'}, number)
				_, err := d.regionNamed(typ).AskWithin(time.Second, id, payload, nil)
				return err
			}
			require.NoError(t, ask(m.nodes[0]))
			eventually(t, func() bool {
				err := m.move(typ, s, m.nodes[1])
				return err == nil || errors.Is(err, shard.ErrAtHome)
			})
			eventually(t, func() bool { return m.home(typ, s) == m.nodes[1] })
			left := m.nodes[(victim+1)%3]
			require.NoError(t, ask(left))
			eventually(t, func() bool { return m.move(typ, s, m.nodes[2]) == nil })
			closes(t, m.nodes[victim])
			eventually(t, func() bool { return ask(left) == nil })
			m.mu.Lock()
			defer m.mu.Unlock()
			require.Empty(t, m.wrong)
		})
	}
}

// loner asks an entity of its own shard on a signal.
type loner struct {
	began chan struct{}
	on    chan struct{}
	got   chan error
}

func (h *loner) Receive(c *entity.Context, payload []byte) error {
	if c.Asked() {
		return c.Reply(payload)
	}
	close(h.began)
	<-h.on
	_, err := c.Ask(patience, "lone", "b", nil)
	h.got <- err
	return nil
}

func (h *loner) Stop(*entity.Context) {}

// An entity that asks its own shard, which moves, gets a typed error at once: its stop waits for the entity, and the
// answer would wait for the stop.
func TestAskOfAShardThatMovesToItself(t *testing.T) {
	m := newMovers(t)
	h := &loner{make(chan struct{}), make(chan struct{}), make(chan error, 1)}
	for _, d := range m.nodes {
		_, err := d.Register(entity.Type{Name: "lone", Shards: 1, Mode: entity.Blocking,
			New: func(string, route.Fence) entity.Handler { return h }})
		require.NoError(t, err)
	}
	r := m.nodes[0].regionNamed("lone")
	require.NoError(t, r.Tell("a", nil))
	<-h.began
	from := m.home("lone", 0)
	to := m.nodes[0]
	if to == from {
		to = m.nodes[1]
	}
	eventually(t, func() bool { return m.move("lone", 0, to) == nil })
	eventually(t, func() bool { return from.regionNamed("lone").cells.At(0).route.Load() == nil })
	close(h.on)
	err := <-h.got
	require.ErrorIs(t, err, route.ErrShardStopping)
	require.False(t, route.MayHaveRun(err))
	eventually(t, func() bool { return m.home("lone", 0) == to })
}
