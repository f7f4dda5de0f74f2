// The gate: how many requests a second there are, how many are under way, and how much of a processor they get.

package door

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a gate.
type Limits struct {
	Rate   int // requests a second, as many at once; those beyond wait
	Places int // requests under way, of one address at most half of them
	Rest   int // times as long as a piece of work took nothing is worked on; zero: none
}

// maxWait bounds how long a request waits for its turn; one that would have to wait longer is refused.
const maxWait = time.Second

// Gate is passed by requests. Those that it refuses have not cost anything yet.
type Gate struct {
	limits Limits

	mu    sync.Mutex
	next  time.Time          // when the next request may go on, were there no burst
	under int                // requests
	each  map[netip.Addr]int // by visitor

	refused atomic.Uint64

	work   chan struct{} // capacity 1
	rested time.Time     // until when nothing is worked on; of the goroutine that is in work
}

// NewGate returns a gate.
func NewGate(l Limits) *Gate {
	return &Gate{limits: l, each: map[netip.Addr]int{}, work: make(chan struct{}, 1)}
}

// Refused counts requests for which there was no room.
func (g *Gate) Refused() uint64 { return g.refused.Load() }

// Pass waits for a request's turn. It is not ok when that would take too long, or the request ends first.
func (g *Gate) Pass(q *http.Request) (ok bool) {
	if ok = g.wait(q.Context()); !ok {
		g.refused.Add(1)
	}
	return ok
}

// Enter gives a request a place, in which its connection stays; leave gives that back. It is not ok when there is none.
func (g *Gate) Enter(q *http.Request) (leave func(), ok bool) {
	who := Asker(q)
	g.mu.Lock()
	room := g.under < g.limits.Places && g.each[who] < max(1, g.limits.Places/2)
	if room {
		g.under++
		g.each[who]++
	}
	g.mu.Unlock()
	if !room {
		g.refused.Add(1)
		return nil, false
	}
	release := Keep(q.Context())
	return func() {
		release()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.under--
		if g.each[who]--; g.each[who] <= 0 {
			delete(g.each, who)
		}
	}, true
}

// wait waits for its turn. Requests are spread evenly when they come faster than the rate for more than a second.
func (g *Gate) wait(ctx context.Context) bool {
	each := time.Second / time.Duration(g.limits.Rate)
	g.mu.Lock()
	now := time.Now()
	if least := now.Add(-time.Second); g.next.Before(least) {
		g.next = least
	}
	pause := g.next.Sub(now)
	if pause > maxWait {
		g.mu.Unlock()
		return false
	}
	g.next = g.next.Add(each)
	g.mu.Unlock()
	return pause <= 0 || sleep(ctx, pause)
}

// Work gives the caller the one place to work in, until done is called, and rests after it: all callers together take
// at most one part in Rest+1 of one processor. The error is the context's.
func (g *Gate) Work(ctx context.Context) (done func(), err error) {
	select {
	case g.work <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if pause := time.Until(g.rested); pause > 0 && !sleep(ctx, pause) {
		<-g.work
		return nil, ctx.Err()
	}
	began := time.Now()
	return sync.OnceFunc(func() {
		now := time.Now()
		g.rested = now.Add(time.Duration(g.limits.Rest) * now.Sub(began))
		<-g.work
	}), nil
}

// sleep reports whether a pause was over before ctx was.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Asker is the visitor that makes a request; zero for one without an address.
func Asker(q *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(q.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return Visitor(at.Addr())
}
