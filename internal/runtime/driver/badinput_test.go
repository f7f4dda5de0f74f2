// Bad input over real sockets: whatever a stranger sends to a running node is refused with a reason, and two nodes that
// exchange messages and heartbeats beside it do not notice.

package driver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/logs/logstest"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// healthy is two nodes that tell and ask numbered messages of each other's entities all the time.
type healthy struct {
	nodes    [2]*Driver
	regions  [2]*Region
	log      logstest.Text // of the node that is attacked, the second one
	stop     chan struct{}
	senders  sync.WaitGroup
	watchers sync.WaitGroup
	sent     [2]uint64 // rounds

	mu     sync.Mutex
	next   map[string]uint64 // by entity and sender
	faults []string
}

const (
	healthyEntities = 16
	heldUp          = 5 * time.Minute // as long an answer may take when the machine stands still
)

func newHealthy(t *testing.T) *healthy {
	h := &healthy{stop: make(chan struct{}), next: map[string]uint64{}}
	for i := range h.nodes {
		// Nobody is lost here, so nobody takes over: the takeover time is as long as the machine may hold the process
		// up without a node suspending itself, at half of it.
		cfg := Config{Sharding: Sharding{TakeoverTime: 20 * time.Minute}, Membership: membership.Config{
			GossipInterval: 100 * time.Millisecond, LeaderInterval: 50 * time.Millisecond,
			HeartbeatInterval: 100 * time.Millisecond, ProbeInterval: 100 * time.Millisecond,
			AcceptablePause: 10 * time.Second}}
		cfg.helloTimeout = time.Second
		cfg.Undelivered = func(u Undelivered) { h.fault("undelivered: %+v", u) }
		if i == 1 {
			cfg.Seeds = []string{h.nodes[0].Self().Addr.String()}
			cfg.Logger = slog.New(slog.NewTextHandler(&h.log, nil))
		}
		d, err := Start(t.Context(), cfg.WithDefaults())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		h.nodes[i] = d
		h.regions[i], err = d.Register(entity.Type{Name: "numbered", Shards: 8, Mode: entity.Worker,
			New: func(id string, _ route.Fence) entity.Handler {
				return &plain{func(payload []byte) { h.got(id, payload) }}
			}})
		require.NoError(t, err)
	}
	for i, d := range h.nodes {
		eventually(t, func() bool { return d.View().CountUp() == 2 })
		for e := range healthyEntities {
			_, err := h.regions[i].AskWithin(patience, entityName(e), nil, nil)
			require.NoError(t, err)
		}
	}
	return h
}

func entityName(e int) string { return fmt.Sprintf("e%d", e) }

func (h *healthy) fault(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, fmt.Sprintf(format, args...))
}

func (h *healthy) got(id string, payload []byte) {
	key := fmt.Sprintf("%s from %d", id, payload[0])
	seq := binary.LittleEndian.Uint64(payload[1:])
	h.mu.Lock()
	want := h.next[key]
	h.next[key] = seq + 1
	h.mu.Unlock()
	if seq != want {
		h.fault("%s: number %d where %d was due", key, seq, want)
	}
}

// run begins the traffic and watches the events of both nodes.
func (h *healthy) run(ctx context.Context) {
	for i, d := range h.nodes {
		h.watchers.Go(func() {
			for ev := range d.Events(ctx) {
				switch ev.Kind {
				case Snapshot, membership.LeaderChanged, membership.RoleLeaderChanged:
				default:
					h.fault("node %d saw event %v of %v", i, ev.Kind, ev.Member.ID)
				}
			}
		})
		h.senders.Go(func() {
			for seq := uint64(0); ; seq++ {
				payload := binary.LittleEndian.AppendUint64([]byte{byte(i)}, seq)
				for e := range healthyEntities {
					if err := h.regions[i].TellWait(ctx, entityName(e), payload); err != nil {
						h.fault("tell: %v", err)
					}
				}
				if _, err := h.regions[i].AskWithin(heldUp, entityName(int(seq%healthyEntities)), payload, nil); err != nil {
					h.fault("ask: %v", err)
				}
				select {
				case <-h.stop:
					h.sent[i] = seq + 1
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
}

// finish ends the traffic and demands that all of it arrived in order and that nothing else was noticed.
func (h *healthy) finish(t *testing.T, cancel func()) {
	close(h.stop)
	complete := func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i := range h.nodes {
			for e := range healthyEntities {
				if h.next[fmt.Sprintf("%s from %d", entityName(e), i)] != h.sent[i] {
					return false
				}
			}
		}
		return true
	}
	h.senders.Wait()
	eventually(t, complete)
	cancel()
	h.watchers.Wait()
	require.Positive(t, h.sent[0])
	require.Positive(t, h.sent[1])
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Empty(t, h.faults)
}

// stranger is what one hello says, field by field as docs/contributing/wire.md and internal/runtime/transport/hello.go
// list them.
type stranger struct {
	magic   string
	version uint16
	lane    wire.Lane
	window  uint32
	name    string
	from    peer.ID
	to      peer.ID
}

var strangers uint64 = 1000

func newStranger(to *Driver, lane wire.Lane) stranger {
	strangers++
	return stranger{magic: hello.Magic, version: wire.Version, lane: lane, window: 64 << 10,
		name: to.cfg.Name, from: peer.ID{Addr: peer.MustAddr("127.0.0.9:9"), Inc: strangers}, to: to.Self()}
}

func (s stranger) hello() []byte {
	b := append([]byte(nil), s.magic...)
	b = wire.AppendU16(b, s.version) // newest that is spoken
	b = wire.AppendU16(b, s.version) // oldest
	b = wire.AppendU8(b, uint8(s.lane))
	b = wire.AppendU16(b, 0)             // number of the connection
	b = wire.AppendU32(b, 1)             // generation
	b = wire.AppendU32(b, s.window)      // credit window
	b = wire.AppendU64(b, 0)             // cluster id: not known yet
	b = wire.AppendU64(b, 0)             // birth: not known yet
	b = wire.AppendString(b, s.name)     // cluster name
	b = peer.AppendID(b, s.from)         // the dialler
	b = peer.AppendAddr(b, s.to.Addr)    // address dialled
	b = wire.AppendU64(b, s.to.Inc)      // incarnation meant
	b = wire.AppendUvarint(b, uint64(0)) // settings
	b = wire.AppendString(b, "")         // tail
	return wire.AppendFrame(nil, wire.KindHello, 0, 0, b)
}

// attack is one connection of a stranger: a hello if lane says so, then bytes.
type attack struct {
	name   string
	hello  func(*stranger) // nil: no hello, only bytes
	bytes  []byte
	count  func(s *Stats) uint64 // rises by one
	closes bool                  // the node closes the connection
	log    string                // what the log says, if that is not rate-limited with others of its reason
}

func refusedFor(reason hello.Refusal) func(*Stats) uint64 {
	return func(s *Stats) uint64 { return s.Transport.Refused[reason.String()] }
}

func brokenHello(s *Stats) uint64  { return s.Transport.FaultsHello }
func silence(s *Stats) uint64      { return s.Transport.SaidNothing }
func brokenFrames(s *Stats) uint64 { return s.Transport.FaultsFrames }
func nonsense(s *Stats) uint64     { return s.InvalidFrames }
func unregistered(s *Stats) uint64 { return s.Unregistered }
func onControlLane(*stranger)      {}
func onDataLane(s *stranger)       { s.lane = wire.LaneData }
func header(size uint32, kind wire.Kind) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, size), byte(kind), 0, 0, 0)
}

// attacks lists everything that is thrown at the node.
func attacks(to *Driver) []attack {
	rng := rand.New(rand.NewPCG(1, 2))
	garbage := make([]byte, 4096)
	for i := range garbage {
		garbage[i] = byte(rng.Uint32())
	}
	good := newStranger(to, wire.LaneControl)
	wrong := func(change func(*stranger)) []byte {
		s := newStranger(to, wire.LaneControl)
		change(&s)
		return s.hello()
	}
	envelope := wire.AppendEnvelope(nil, &wire.Envelope{Type: 77, ID: []byte("id"), Payload: []byte("payload")})
	longID := slices.Clone(envelope)
	binary.LittleEndian.PutUint16(longID[6:], 1000) // an id longer than the frame
	list := []attack{
		{"random garbage", nil, garbage, refusedFor(hello.RefusedMagic), true, "refused: magic"},
		{"wrong magic", nil, wrong(func(s *stranger) { s.magic = "HTTP" }), refusedFor(hello.RefusedMagic), true, ""},
		{"wrong wire version", nil, wrong(func(s *stranger) { s.version++ }), refusedFor(hello.RefusedVersion), true,
			"refused: wire-version"},
		{"another cluster name", nil, wrong(func(s *stranger) { s.name = "other" }), refusedFor(hello.RefusedName), true,
			"refused: cluster-name"},
		{"over-long hello", nil, header(1<<31, wire.KindHello), refusedFor(hello.RefusedMagic), true, ""},
		{"half a hello, then silence", nil, good.hello()[:20], brokenHello, true, "connection fault: hello"},
		{"silence", nil, nil, silence, true, ""},
		{"unknown kind", onControlLane, wire.AppendFrame(nil, 99, 0, 0, nil), brokenFrames, true,
			"connection fault: protocol"},
		{"over-long control frame", onControlLane, header(wire.MaxControlFrame+1, wire.KindGossip), brokenFrames, true, ""},
		{"over-long data frame", onDataLane, header(wire.MaxFrameLimit+1, wire.KindEnvelope), brokenFrames, true, ""},
		{"control frame on the data lane", onDataLane, wire.AppendFrame(nil, wire.KindGossip, 0, 0, nil), brokenFrames,
			true, ""},
		{"garbage after a hello", onDataLane, garbage, brokenFrames, true, ""},
		{"half a frame", onDataLane, envelope[:20], nil, false, ""},
		{"garbage envelope", onDataLane, longID, nonsense, false, "frame refused"},
		{"short envelope", onDataLane, wire.AppendFrame(nil, wire.KindEnvelope, 0, 1, []byte("x")), nonsense, false, ""},
		{"envelope of no type", onDataLane, envelope, unregistered, false, ""},
		{"garbage reply", onDataLane, wire.AppendFrame(nil, wire.KindReply, 0, 0, []byte("x")), nonsense, false, ""},
		{"short marker", onDataLane, wire.AppendFrame(nil, wire.KindMarker, 0, 0, make([]byte, 15)), nonsense, false, ""},
	}
	for k := range wire.Kind(255) {
		if !k.Known() || k.Lane() != wire.LaneControl {
			continue
		}
		body := bytes.Repeat([]byte{0xff}, min(61, k.MaxBody()))
		a := attack{name: "body of " + k.String(), hello: onControlLane, count: nonsense}
		switch k {
		case wire.KindHello, wire.KindHelloAck, wire.KindHelloRefuse, wire.KindHeartbeatAck, wire.KindCredit,
			wire.KindFull, wire.KindRoom:
			a.count, a.closes = brokenFrames, true
		case wire.KindHeartbeat:
			a.count, a.closes, body = brokenFrames, true, body[:15]
		}
		a.bytes = wire.AppendFrame(nil, k, 0, 0, body)
		list = append(list, a)
	}
	return list
}

// throw carries out one attack and waits until the node has noticed it.
func (a *attack) throw(t *testing.T, to *Driver) {
	nc, err := net.Dial("tcp", to.Self().Addr.String())
	require.NoError(t, err)
	defer nc.Close()
	require.NoError(t, nc.SetReadDeadline(time.Now().Add(patience)))
	if a.hello != nil {
		s := newStranger(to, wire.LaneControl)
		a.hello(&s)
		_, err := nc.Write(s.hello())
		require.NoError(t, err)
		var head [wire.HeaderSize]byte
		_, err = io.ReadFull(nc, head[:])
		require.NoError(t, err)
		require.Equal(t, wire.KindHelloAck, wire.Kind(head[4]))
		_, err = io.CopyN(io.Discard, nc, int64(binary.LittleEndian.Uint32(head[:]))-wire.HeaderSize)
		require.NoError(t, err)
	}
	var before uint64
	if a.count != nil {
		s := to.Stats()
		before = a.count(&s)
	}
	_, err = nc.Write(a.bytes)
	require.NoError(t, err)
	if a.closes {
		_, err := io.Copy(io.Discard, nc)
		var late net.Error
		require.False(t, err != nil && errors.As(err, &late) && late.Timeout(), "not closed")
	}
	if a.count != nil {
		eventually(t, func() bool { s := to.Stats(); return a.count(&s) == before+1 })
	}
}

func TestStrangersHurtNobody(t *testing.T) {
	h := newHealthy(t)
	victim := h.nodes[1]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.run(ctx)
	seen := map[string]bool{}
	for _, a := range attacks(victim) {
		t.Run(a.name, func(t *testing.T) { a.throw(t, victim) })
		seen[a.log] = true
	}
	log := h.log.String()
	for text := range seen {
		require.Contains(t, log, text)
	}
	for _, text := range []string{`differs="cluster name"`, `theirs=other`, `kind=envelope`, `error=`} {
		require.Contains(t, log, text)
	}
	// Nothing is left of them: no connection, no hello under way, no dial to where they said they were. The other node
	// has a data connection, a control connection, and now and then a second one: when it joined, and when it is in
	// doubt.
	eventually(t, func() bool {
		s := victim.Stats().Transport
		return s.Data.In == 1 && s.Control.In <= 2 && s.Pending == 0
	})
	eventually(t, func() bool {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		return !strings.Contains(string(stacks), ".handshake(") && !strings.Contains(string(stacks), ".dialLoop(")
	})
	h.finish(t, cancel)
	require.Zero(t, h.nodes[0].Stats().InvalidFrames)
	require.Zero(t, h.nodes[0].Stats().Transport.LostBytes+victim.Stats().Transport.LostBytes)
}
