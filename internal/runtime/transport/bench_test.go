// Benchmarks: one link one way, beside bulk bytes over loopback; a ping-pong; and what a send allocates.

package transport

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Baseline: one connection, 1 MiB writes, large reads, no framing.
func BenchmarkBulkLoopback(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer ln.Close()
	done := make(chan struct{})
	go func() {
		nc, _ := ln.Accept()
		buf := make([]byte, 1<<20)
		for err := error(nil); err == nil; {
			_, err = nc.Read(buf)
		}
		close(done)
	}()
	nc, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(b, err)
	chunk := make([]byte, 1<<20)
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		_, _ = nc.Write(chunk)
	}
	nc.Close()
	<-done
}

func BenchmarkLinkOneWay1(b *testing.B)  { benchmarkOneWay(b, 1, nil) }
func BenchmarkLinkOneWay64(b *testing.B) { benchmarkOneWay(b, 64, nil) }

// Loops and connections of both nodes: what a second data connection is worth.
func BenchmarkConnections(b *testing.B) {
	for _, n := range []struct{ loops, conns int }{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {2, 4}} {
		b.Run(fmt.Sprintf("loops=%d/conns=%d", n.loops, n.conns), func(b *testing.B) {
			benchmarkOneWay(b, 8, func(c *Config) { c.DataLoops, c.DataConnections = n.loops, n.conns })
		})
	}
}

func benchmarkOneWay(b *testing.B, producers int, change func(*Config)) {
	const payload = 64
	a, r := newRider(), newRider()
	var bytes atomic.Int64
	all := make(chan struct{}, 1)
	size := wire.SizeEnvelope(16, payload)
	total := int64(b.N * size)
	r.onData = func(c *InConn, fs []byte) {
		c.Consumed(len(fs))
		if bytes.Add(int64(len(fs))) == total {
			all <- struct{}{}
		}
	}
	ta, tb := start(b, a, change), start(b, r, change)
	links := ta.Links(tb.Self())
	body := make([]byte, payload)
	gate := sync.NewCond(&sync.Mutex{})
	var rooms atomic.Int64 // times the link had room again
	go func() {
		for range a.rooms {
			gate.L.Lock()
			rooms.Add(1)
			gate.L.Unlock()
			gate.Broadcast()
		}
	}()
	b.SetBytes(80) // what the user asked to move: payload and id
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for p := range producers {
		n := b.N / producers
		if p == 0 {
			n += b.N % producers
		}
		wg.Go(func() {
			e := wire.Envelope{Payload: body}
			link := links[p%len(links)]
			for range n {
				for {
					link.Lock()
					seen := rooms.Load()
					f, err := link.Reserve(size)
					if err == nil {
						wire.PutEnvelope(f, &e, "0123456789abcdef")
						wake := link.Commit()
						link.Unlock()
						if wake {
							link.Wake(nil)
						}
						break
					}
					link.Unlock()
					gate.L.Lock()
					for rooms.Load() == seen {
						gate.Wait()
					}
					gate.L.Unlock()
				}
			}
		})
	}
	wg.Wait()
	<-all
	b.StopTimer()
	close(a.rooms)
	s := ta.Stats().Data
	b.ReportMetric(float64(s.BytesOut)/float64(max(s.Writes, 1)), "B/write")
	b.ReportMetric(float64(s.Wakes)/float64(b.N), "wakes/op")
}

// One frame there and one back, the replier corked on its loop, the asker a goroutine.
func BenchmarkPingPong(b *testing.B) {
	a, r := newRider(), newRider()
	ta, tb := start(b, a, nil), start(b, r, nil)
	back := tb.Link(ta.Self())
	r.onData = func(c *InConn, fs []byte) {
		back.Lock()
		room, err := back.Reserve(len(fs))
		if err == nil {
			copy(room, fs)
		}
		wake := back.Commit()
		back.Unlock()
		if wake {
			back.Wake(c.Loop())
		}
		c.Consumed(len(fs))
	}
	got := make(chan struct{}, 1)
	a.onData = func(c *InConn, fs []byte) {
		c.Consumed(len(fs))
		got <- struct{}{}
	}
	link := ta.Link(tb.Self())
	b.ReportAllocs()
	for b.Loop() {
		if err := send(b, link, 0, 0, 64, nil); err != nil {
			b.Fatal(err)
		}
		<-got
	}
	b.StopTimer()
	for len(a.rooms) > 0 {
		<-a.rooms
	}
}

// Baseline of the ping-pong: blocking reads and writes on both sides.
func BenchmarkPingPongRaw(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer ln.Close()
	go func() {
		nc, _ := ln.Accept()
		buf := make([]byte, 97)
		for {
			if _, err := io.ReadFull(nc, buf); err != nil {
				return
			}
			_, _ = nc.Write(buf)
		}
	}()
	nc, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(b, err)
	defer nc.Close()
	buf := make([]byte, 97)
	for b.Loop() {
		_, _ = nc.Write(buf)
		_, _ = io.ReadFull(nc, buf)
	}
}

// A send that wakes the loop, its flush, the read at the other end and the credit for it allocate nothing.
func TestSendAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	a, b := newRider(), newRider()
	got := make(chan struct{}, 1)
	b.onData = func(c *InConn, fs []byte) {
		c.Consumed(len(fs))
		got <- struct{}{}
	}
	ta, tb := start(t, a, nil), start(t, b, nil)
	link := ta.Link(tb.Self())
	one := func() {
		_ = send(t, link, 0, 0, 64, nil)
		<-got
	}
	for range 20_000 { // past both buffers' growth and several credits
		one()
	}
	runtime.GC()
	require.Zero(t, testing.AllocsPerRun(5000, one))
	m := peer.Mail{To: tb.Self(), Kind: wire.KindStatus, Body: make([]byte, 40)}
	require.Zero(t, testing.AllocsPerRun(2000, func() { _ = ta.Send(m) }), "mail")
}

// What a node with nothing to do does ten times a second allocates nothing, however many peers it has.
func TestSweepAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	a, b := newRider(), newRider()
	hour := func(c *Config) { c.CreditEvery = time.Hour } // nobody else sweeps
	ta, tb := start(t, a, hour), start(t, b, hour)
	require.NoError(t, send(t, ta.Link(tb.Self()), 0, 0, 8, nil))
	until(t, func() bool { return len(tb.dataFrom(nil, ta.Self())) == 1 })
	for _, tr := range []*Transport{ta, tb} {
		var found sweeping
		least := 1.0
		for range 10 { // the connections that come about beside allocate too
			least = min(least, testing.AllocsPerRun(100, func() { tr.sweep(&found, false) }))
		}
		require.Zero(t, least)
	}
}

// The same over TLS, to stand beside the plain ones of the same run.
func BenchmarkLinkOneWayTLS1(b *testing.B)  { benchmarkOneWay(b, 1, member(b, authority(b))) }
func BenchmarkLinkOneWayTLS64(b *testing.B) { benchmarkOneWay(b, 64, member(b, authority(b))) }
