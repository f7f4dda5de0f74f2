// The route path alone: hash, slot load, append into a link that leads to a sink.

package driver

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/hello"
	"github.com/kith-io/kith/internal/loop"
	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/internal/transport"
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

// sinkRegion is a region all of whose shards lead to a sink.
func sinkRegion(t testing.TB) (*Region, *transport.Link) {
	d, err := Start(t.Context(), Config{LinkBuffer: 16 << 20}.WithDefaults())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	to, err := transport.New(transport.Config{Name: DefaultName, Incarnation: 7, MaxFrame: d.cfg.maxFrame()}, sink{})
	require.NoError(t, err)
	to.Start()
	t.Cleanup(to.Close)
	r, err := d.Register(entity.Type{Name: "sink", Role: "nobody", Shards: 1000,
		New: func(string, route.Fence) entity.Handler { return nil }})
	require.NoError(t, err)
	fence := route.MakeFence(1, 1, 1)
	var link *transport.Link
	onControl(d, func() {
		remote := d.remote(to.Self(), 0)
		link = remote.link
		for i := range r.slots {
			e := &routeEntry{remote: remote, link: link, term: 1, epoch: 1}
			d.moveRoute(slotRef{r, route.ShardID(i)}, e, plane.Home{At: to.Self(), Fence: fence})
		}
	})
	return r, link
}

func drained(l *transport.Link) {
	for {
		l.Lock()
		n := l.Pending()
		l.Unlock()
		if n == 0 {
			return
		}
		runtime.Gosched()
	}
}

// TestRouteRemoteAllocatesNothing pins SHD-5.
func TestRouteRemoteAllocatesNothing(t *testing.T) {
	r, link := sinkRegion(t)
	payload := make([]byte, 64)
	burst := func() {
		for range 1000 {
			if err := r.Tell("entity-0000000042", payload); err != nil {
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
func BenchmarkRouteRemote(b *testing.B) {
	r, link := sinkRegion(b)
	payload := make([]byte, 64)
	ids := make([]string, 1024)
	for i := range ids {
		ids[i] = "entity-" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + "000000"
	}
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
