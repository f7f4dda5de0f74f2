// Tests of what TLS allocates on connections.

package transport

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Batches of frames over TLS allocate next to nothing: the standard library makes one small value for each record that
// it reads, which holds more than a hundred frames; sending allocates nothing (CARD-4).
func TestTLSAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ca := authority(t)
	a, b := newRider(), newRider()
	got := make(chan int, 1<<16)
	b.onData = func(c *InConn, fs []byte) {
		n := 0
		eachFrame(fs, func([]byte) { n++ })
		c.Consumed(len(fs))
		got <- n
	}
	ta, tb := start(t, a, member(t, ca)), start(t, b, member(t, ca))
	link := ta.Link(tb.Self())
	const batch = 1000
	size := wire.SizeEnvelope(1, 64)
	e := wire.Envelope{Payload: make([]byte, 64)}
	one := func() {
		link.Lock()
		for range batch {
			f, err := link.Reserve(size)
			if err != nil {
				panic(err)
			}
			wire.PutEnvelope(f, &e, "x")
		}
		wake := link.Commit()
		link.Unlock()
		if wake {
			link.Wake(nil)
		}
		for n := 0; n < batch; {
			n += <-got
		}
	}
	for range 500 {
		one()
	}
	runtime.GC()
	perBatch := testing.AllocsPerRun(500, one)
	require.LessOrEqual(t, perBatch, float64(batch*size/trust.MaxPlain+6), "of %d frames", batch)
	t.Logf("%.0f allocations for %d frames, both ends", perBatch, batch)
	m := peer.Mail{To: tb.Self(), Kind: wire.KindStatus, Body: make([]byte, 40)}
	require.LessOrEqual(t, testing.AllocsPerRun(2000, func() { _ = ta.Send(m) }), 1.0, "mail")
}
