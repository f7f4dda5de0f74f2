// State that moves with its entity over real sockets: counts go on under load, and an owner of an earlier version.

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
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// keeper counts what its entity got, as each instance knows it from the one before. The book knows the truth.
type keeper struct {
	b   *keptBook
	typ string
	n   uint32
}

// keptBook is what all instances together have counted.
type keptBook struct {
	mu    sync.Mutex
	truth map[string]uint32
	wrong []string
}

func (b *keptBook) check(typ, id string, n uint32, handled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := typ + "/" + id
	if handled {
		b.truth[key]++
	}
	if n != b.truth[key] && len(b.wrong) < 10 {
		b.wrong = append(b.wrong, fmt.Sprintf("%s has counted %d, of %d", key, n, b.truth[key]))
	}
}

func (h *keeper) Receive(c *entity.Context, _ []byte) error {
	h.n++
	h.b.check(h.typ, c.ID, h.n, true)
	if c.Asked() {
		return c.Reply(binary.LittleEndian.AppendUint32(nil, h.n))
	}
	return nil
}

func (h *keeper) Stop(*entity.Context) {}

func (h *keeper) HandOver(*entity.Context) ([]byte, error) {
	return binary.LittleEndian.AppendUint32(nil, h.n), nil
}

func (h *keeper) TakeUp(c *entity.Context, state []byte) error {
	h.n = binary.LittleEndian.Uint32(state)
	h.b.check(h.typ, c.ID, h.n, false)
	return nil
}

// keepers registers a type of counters in each mode on all nodes.
func (m *movers) keepers() *keptBook {
	b := &keptBook{truth: map[string]uint32{}}
	for _, d := range m.nodes {
		for _, mode := range allModes {
			typ := "kept-" + mode.String()
			_, err := d.Register(entity.Type{Name: typ, Shards: 4, Mode: mode,
				New: func(string, route.Fence) entity.Handler { return &keeper{b: b, typ: typ} }})
			require.NoError(m.t, err)
		}
	}
	return b
}

// Counters move back and forth with their counts, in all modes, while two nodes tell and ask them; one that gets no
// message meanwhile keeps its count too (SHD-9, SHD-12).
func TestStateMovesOverSockets(t *testing.T) {
	m := newMovers(t, func(c *Config) { c.Sharding.DrainTime = 20 * time.Millisecond })
	b := m.keepers()
	var stop atomic.Bool
	var senders sync.WaitGroup
	quiet := map[string]string{}
	for _, mode := range allModes {
		typ := "kept-" + mode.String()
		r := m.nodes[0].regionNamed(typ)
		for i := 0; ; i++ { // of the same shard, so that it moves too
			if id := fmt.Sprint("quiet", i); r.Shard(id) == r.Shard("x") {
				quiet[typ] = id
				break
			}
		}
		_, err := r.AskWithin(patience, quiet[typ], nil, nil)
		require.NoError(t, err)
		for _, d := range m.nodes[1:] {
			to := d.regionNamed(typ)
			senders.Go(func() {
				for i := 0; !stop.Load(); i++ {
					if i%4 == 0 {
						if _, err := to.AskWithin(patience, "x", nil, nil); err != nil {
							m.note("ask: %v", err)
						}
					} else if err := to.Tell("x", nil); err != nil && !errors.Is(err, route.ErrLinkFull) &&
						!errors.Is(err, route.ErrMailboxFull) {
						m.note("tell: %v", err)
					}
				}
			})
		}
	}
	for round := range 6 {
		for _, mode := range allModes {
			typ := "kept-" + mode.String()
			s, to := m.nodes[0].regionNamed(typ).Shard("x"), m.nodes[round%3]
			eventually(t, func() bool {
				err := m.move(typ, s, to)
				return err == nil || errors.Is(err, shard.ErrAtHome)
			})
			eventually(t, func() bool { return m.home(typ, s) == to })
		}
	}
	stop.Store(true)
	senders.Wait()
	for _, mode := range allModes {
		typ := "kept-" + mode.String()
		_, err := m.nodes[0].regionNamed(typ).AskWithin(patience, "x", nil, nil)
		require.NoError(t, err)
		n, err := m.nodes[1].regionNamed(typ).AskWithin(patience, quiet[typ], nil, nil)
		require.NoError(t, err)
		require.Equal(t, uint32(2), binary.LittleEndian.Uint32(n))
	}
	handed, taken := uint64(0), uint64(0)
	for _, d := range m.nodes {
		for _, st := range d.Stats().Types {
			require.Zero(t, st.States.Lost)
			handed, taken = handed+st.States.HandedOver, taken+st.States.TakenUp
		}
	}
	require.GreaterOrEqual(t, handed, uint64(3*5))
	require.Positive(t, taken)
	b.mu.Lock()
	defer b.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	require.Empty(t, b.wrong)
	require.Empty(t, m.wrong)
	require.Empty(t, m.lost)
}

// States that do not fit into what a shard hands over are lost by name, and what fits arrives; messages come first.
func TestStatesBeyondTheBound(t *testing.T) {
	var mu sync.Mutex
	why := map[string]error{}
	m := newMovers(t, func(c *Config) {
		c.Sharding.MaxHandOver = 300
		c.Incident = func(i entity.Incident) {
			mu.Lock()
			defer mu.Unlock()
			why[i.ID] = i.Err
		}
	})
	var taken atomic.Int64
	for _, d := range m.nodes {
		_, err := d.Register(entity.Type{Name: "large", Shards: 1, MaxState: 200, Mode: entity.Worker,
			New: func(id string, _ route.Fence) entity.Handler { return &heavy{&taken, id} }})
		require.NoError(t, err)
	}
	for _, id := range []string{"150a", "150b", "201"} {
		_, err := m.nodes[0].regionNamed("large").AskWithin(patience, id, nil, nil)
		require.NoError(t, err)
	}
	from, to := m.home("large", 0), m.nodes[0]
	if from == to {
		to = m.nodes[1]
	}
	eventually(t, func() bool { return m.move("large", 0, to) == nil })
	eventually(t, func() bool { return m.home("large", 0) == to && taken.Load() == 1 })
	eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		full := errors.Is(why["150a"], entity.ErrHandOverFull) != errors.Is(why["150b"], entity.ErrHandOverFull)
		return full && errors.Is(why["201"], entity.ErrStateTooLarge)
	})
	for _, d := range m.nodes {
		for _, st := range d.Stats().Types {
			require.Equal(t, st.Name == "large" && d == from, st.States.Lost == 2)
		}
	}
}

// heavy has as many bytes of state as its id says.
type heavy struct {
	taken *atomic.Int64
	id    string
}

func (h *heavy) Receive(c *entity.Context, _ []byte) error { return c.Reply(nil) }
func (h *heavy) Stop(*entity.Context)                      {}

func (h *heavy) HandOver(*entity.Context) ([]byte, error) {
	var n int
	_, err := fmt.Sscanf(h.id, "%d", &n)
	return make([]byte, n), err
}

func (h *heavy) TakeUp(*entity.Context, []byte) error {
	h.taken.Add(1)
	return nil
}
