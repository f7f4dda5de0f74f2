// The route path alone: hash, slot load, append into a link that leads to a sink.

package driver

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// sink is the runtime of a transport that takes everything and looks at nothing.
type sink struct{}

func (sink) Control(peer.ID, wire.Kind, []byte, time.Duration) {}
func (sink) Data(c *transport.InConn, frames []byte)           { c.Consumed(len(frames)) }
func (sink) PassDone(*loop.Loop)                               {}
func (sink) LinkUp(peer.ID, wire.Lane, int)                    {}
func (sink) LinkDown(peer.ID, wire.Lane, int, uint64, error)   {}
func (sink) Undelivered(peer.ID, []byte, error)                {}
func (sink) MailboxRoom(*transport.Link, wire.Full)            {}
func (sink) LinkRoom(*transport.Link)                          {}
func (sink) LinkLost(peer.ID)                                  {}
func (sink) LinkSilent(peer.ID, wire.Lane, int, time.Duration) {}
func (sink) PeerRefused(*hello.RefusedError)                   {}
func (sink) Unreached(peer.Addr, error)                        {}
func (sink) OtherVisited(peer.Addr, uint64, uint64)            {}

// sinkRegion is a region of a type with shards that lead to a sink: all of them, or, of a large type, those of the ids.
func sinkRegion(t testing.TB, shards uint32, ids ...string) (*Region, *transport.Link) {
	d, err := Start(t.Context(), Config{LinkBuffer: 16 << 20}.WithDefaults())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	to, err := transport.New(transport.Config{Name: DefaultName, Incarnation: 7, MaxFrame: d.cfg.maxFrame()}, sink{})
	require.NoError(t, err)
	to.Start()
	t.Cleanup(to.Close)
	r, err := d.Register(entity.Type{Name: "sink", Role: "nobody", Shards: shards,
		New: func(string, route.Fence) entity.Handler { return nil }})
	require.NoError(t, err)
	fence := route.MakeFence(1, 1, 1)
	var link *transport.Link
	onControl(d, func() {
		remote := d.remote(to.Self(), 0)
		link = remote.link
		open := func(s route.ShardID) {
			e := &routeEntry{remote: remote, link: link, term: 1, epoch: 1}
			d.moveRoute(slotRef{r, s}, e, plane.Home{At: to.Self(), Fence: fence})
		}
		for i := range r.shards {
			if len(ids) == 0 {
				open(route.ShardID(i))
			}
		}
		for _, id := range ids {
			open(r.Shard(id))
		}
	})
	return r, link
}

func drained(l *transport.Link) {
	for {
		l.Lock()
		n, _ := l.Backlog()
		l.Unlock()
		if n == 0 {
			return
		}
		runtime.Gosched()
	}
}

// TestRouteRemoteAllocatesNothing pins SHD-5.
func TestRouteRemoteAllocatesNothing(t *testing.T) {
	t.Run("small", func(t *testing.T) {
		r, link := sinkRegion(t, 1000)
		tellsAllocateNothing(t, r, link, "entity-0000000042")
	})
	t.Run("large", func(t *testing.T) { // its slots are made on demand
		r, link := sinkRegion(t, 1_000_000, "entity-0000000042", "another")
		made := r.cells.Made()
		require.LessOrEqual(t, made, 2*64)
		tellsAllocateNothing(t, r, link, "entity-0000000042")
		require.Equal(t, made, r.cells.Made())
	})
}

func tellsAllocateNothing(t *testing.T, r *Region, link *transport.Link, id string) {
	t.Helper()
	payload := make([]byte, 64)
	burst := func() {
		for range 1000 {
			if err := r.Tell(id, payload); err != nil {
				t.Fatal(err)
			}
		}
		drained(link)
	}
	for range 50 {
		burst() // the link's buffers grow to what a burst needs
	}
	least := testing.AllocsPerRun(1, burst)
	for range 20 { // the quietest of some: what the node does beside counts too, and more of it on a busy machine
		least = min(least, testing.AllocsPerRun(1, burst))
	}
	require.Less(t, least, 5.0, "allocations of 1000 tells")
}

// BenchmarkRouteRemote measures the sender alone: while the link is being emptied the clock stands still.
func BenchmarkRouteRemote(b *testing.B) { routeRemote(b, 1000, 1024) }

// BenchmarkRouteRemoteLarge is the same to a type of a million shards, of which so many have a slot.
func BenchmarkRouteRemoteLarge(b *testing.B) {
	for _, used := range []int{1024, 100_000} {
		b.Run(strconv.Itoa(used), func(b *testing.B) { routeRemote(b, 1_000_000, used) })
	}
}

func routeRemote(b *testing.B, shards uint32, entities int) {
	ids := make([]string, entities)
	for i := range ids {
		ids[i] = fmt.Sprintf("entity-%010d", i)
	}
	open := ids
	if shards == 1000 {
		open = nil
	}
	r, link := sinkRegion(b, shards, open...)
	payload := make([]byte, 64)
	b.ReportAllocs()
	b.SetBytes(80)
	b.ResetTimer()
	for n := 0; n < b.N; {
		for range min(20_000, b.N-n) {
			if err := r.Tell(ids[n%len(ids)], payload); err != nil {
				b.Fatal(err)
			}
			n++
		}
		b.StopTimer()
		drained(link)
		b.StartTimer()
	}
}
