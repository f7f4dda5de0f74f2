// Benchmarks of the host: the price of a message in each mode, and the memory of idle entities.

package entity

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/kith-io/kith/route"
)

type idleHandler struct{}

func (idleHandler) Receive(*Context, []byte) error { return nil }
func (idleHandler) Stop(*Context)                  {}

func benchShard(mode Mode, n int) (*Shard, [][]byte) {
	h := Handler(idleHandler{})
	t := Type{Name: "bench", Mode: mode, New: func(string, route.Fence) Handler { return h }}.WithDefaults()
	s := NewShard(&t, 0, route.Fence{}, &fake{}, &Pool{Limit: 1 << 30})
	ids := make([][]byte, n)
	for i := range ids {
		ids[i] = fmt.Appendf(nil, "entity-%09d", i)
		deliverAndRun(s, &Message{ID: ids[i]}, &RunFrame{})
	}
	return s, ids
}

func deliverAndRun(s *Shard, m *Message, f *RunFrame) {
	if s.Deliver(0, m) != route.OK {
		panic("refused")
	}
	for e := s.Ready(); e != nil; e = s.Ready() {
		for ok := e.Begin(0); ok; ok = e.End(0) && e.Begin(0) {
			e.Enter(f, 0)
			for e.Work() {
			}
		}
	}
}

// BenchmarkDeliver is one message to one of 1,000 entities of a shard, run to the end.
func BenchmarkDeliver(b *testing.B) {
	for _, mode := range []Mode{Inline, Worker, Blocking} {
		b.Run(mode.String(), func(b *testing.B) {
			s, ids := benchShard(mode, 1000)
			m, f := &Message{Payload: make([]byte, 64)}, &RunFrame{}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				m.ID = ids[i%len(ids)]
				deliverAndRun(s, m, f)
			}
		})
	}
}

// BenchmarkBlockingBatch is a message to a busy Blocking entity, worked off sixteen at a time.
func BenchmarkBlockingBatch(b *testing.B) {
	s, ids := benchShard(Blocking, 1)
	m, f := &Message{ID: ids[0], Payload: make([]byte, 64)}, &RunFrame{}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%16 < 15 {
			s.Deliver(0, m)
		} else {
			deliverAndRun(s, m, f)
		}
	}
}

// BenchmarkIdleEntities reports the memory of a million idle entities over 1,000 shards, beside the user's own state.
func BenchmarkIdleEntities(b *testing.B) {
	const shards, each = 1000, 1000
	for range b.N {
		before := heap()
		hosts := make([]*Shard, shards)
		for i := range hosts {
			hosts[i] = fillShard(Blocking, i, each)
		}
		b.ReportMetric(float64(heap()-before)/(shards*each), "B/entity")
		runtime.KeepAlive(hosts)
	}
}

func fillShard(mode Mode, nth, n int) *Shard {
	h := Handler(idleHandler{})
	t := &Type{Name: "bench", Mode: mode, New: func(string, route.Fence) Handler { return h }, MailboxBytes: 4096}
	s := NewShard(t, route.ShardID(nth), route.Fence{}, &fake{}, &Pool{Limit: 1 << 30})
	id, f := make([]byte, 0, 16), &RunFrame{}
	for i := range n {
		id = fmt.Appendf(id[:0], "entity-%09d", nth*n+i)
		deliverAndRun(s, &Message{ID: id, Payload: id}, f)
	}
	return s
}

func heap() int64 {
	runtime.GC()
	var st runtime.MemStats
	runtime.ReadMemStats(&st)
	return int64(st.HeapAlloc)
}
