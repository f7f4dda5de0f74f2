// Places: the streams that may be open at one time, and which one goes when one more comes.

package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/base/door"
)

// places are those of the streams that may be open at one time. When all are taken, a newcomer from an address that has
// fewer streams than another one takes the place of the oldest there.
type places struct {
	most  int
	write time.Duration // for one event to a slow reader

	refused, putOut atomic.Uint64

	mu    sync.Mutex
	taken map[*place]struct{}
	there map[netip.Addr]int
}

// place is that of one stream.
type place struct {
	from  netip.Addr
	since time.Time
	end   context.CancelFunc
}

// init makes as many as a configuration has.
func (p *places) init(most int, write time.Duration) {
	p.most, p.write = most, write
	p.taken, p.there = map[*place]struct{}{}, map[netip.Addr]int{}
}

// open counts the streams.
func (p *places) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.taken)
}

// take returns the context of a stream, and free, which ends it; not ok: there is no place, the request has been
// answered, and its connection goes.
func (p *places) take(w http.ResponseWriter, q *http.Request) (ctx context.Context, free func(), ok bool) {
	ctx, end := context.WithCancel(q.Context())
	own := &place{door.Asker(q), time.Now(), end}
	if !p.enter(own) {
		end()
		p.refused.Add(1)
		w.Header().Set("Retry-After", "5")
		w.Header().Set("Connection", "close")
		fail(w, http.StatusServiceUnavailable, fmt.Sprintf("%d streams are open, which is the bound", p.most))
		return nil, nil, false
	}
	release := door.Keep(q.Context())
	return ctx, func() {
		release()
		end()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.leave(own)
	}, true
}

// enter takes a place for a stream, if need be that of another one.
func (p *places) enter(own *place) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.taken) >= p.most {
		var goes *place
		for o := range p.taken { // the least: the order does not show
			if goes == nil || p.there[o.from] > p.there[goes.from] ||
				p.there[o.from] == p.there[goes.from] && o.since.Before(goes.since) {
				goes = o
			}
		}
		if goes == nil || p.there[goes.from] < p.there[own.from]+2 {
			return false
		}
		p.putOut.Add(1)
		goes.end()
		p.leave(goes)
	}
	p.taken[own] = struct{}{}
	p.there[own.from]++
	return true
}

// leave gives a place back, unless it is another's by now.
func (p *places) leave(o *place) {
	if _, in := p.taken[o]; !in {
		return
	}
	delete(p.taken, o)
	if p.there[o.from]--; p.there[o.from] <= 0 {
		delete(p.there, o.from)
	}
}

// put writes one event, and reports whether the reader has taken it in time. Between two events there is no deadline:
// one that passes then would end a stream of HTTP/2.
func (p *places) put(out *http.ResponseController, w http.ResponseWriter, text []byte) bool {
	_ = out.SetWriteDeadline(time.Now().Add(p.write))
	_, err := w.Write(text)
	if err == nil {
		err = out.Flush()
	}
	_ = out.SetWriteDeadline(time.Time{})
	return err == nil
}
