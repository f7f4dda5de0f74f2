// A pair of sockets of the proxy: bytes are carried both ways, each way with the faults of its direction.

package chaos

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// pair is one connection through the proxy.
type pair struct {
	all  *proxies
	ends [2]*net.TCPConn // dialler, acceptor
	slot [2]int
	lane lane
	over chan struct{}
	once sync.Once
	shut atomic.Int32 // directions that have ended in order
}

// chunk is what one read brought, or how the reading ended.
type chunk struct {
	b   []byte
	due time.Time
	end error // why nothing comes behind it: io.EOF, or a reset
}

// The bounds of one direction: bytes of a chunk, and chunks that wait.
const (
	chunkBytes = 16 << 10
	chunkRoom  = 64
)

func newPair(p *proxies, dialler, acceptor *net.TCPConn, from, to int, l lane) *pair {
	return &pair{all: p, ends: [2]*net.TCPConn{dialler, acceptor}, slot: [2]int{from, to}, lane: l,
		over: make(chan struct{})}
}

// run carries until one side has ended. begin was read already.
func (x *pair) run(begin []byte) {
	var busy sync.WaitGroup
	for way := range x.ends {
		queue := make(chan chunk, chunkRoom)
		if way == 0 {
			queue <- chunk{b: begin, due: time.Now()}
		}
		busy.Go(func() { x.read(way, queue) })
		busy.Go(func() { x.write(way, queue) })
	}
	select {
	case <-x.over:
	case <-x.all.ctx.Done():
		x.end()
	}
	busy.Wait()
}

// end resets both sides: what is in a socket is lost, as with a process that dies.
func (x *pair) end() {
	x.once.Do(func() {
		close(x.over)
		abort(x.ends[0])
		abort(x.ends[1])
	})
}

// firstLost is after how long a lost packet comes again, doubled each time that it is lost again.
const firstLost = 200 * time.Millisecond

// read takes chunks from one side and says when each may go on. Time only grows: what is lost holds up what is behind.
func (x *pair) read(way int, queue chan<- chunk) {
	defer close(queue)
	from, to := x.slot[way], x.slot[1-way]
	var due time.Time
	for {
		b := make([]byte, chunkBytes)
		n, err := x.ends[way].Read(b)
		l, lot, _ := x.all.look(from, to)
		at := time.Now().Add(l.Delay)
		for again := firstLost; lot < l.Loss && again < 10*time.Second; again *= 2 {
			at = at.Add(again)
			_, lot, _ = x.all.look(from, to)
		}
		if at.After(due) {
			due = at
		}
		select {
		case queue <- chunk{b[:n], due, err}:
		case <-x.over:
			return
		}
		if err != nil {
			return
		}
	}
}

// write gives chunks to the other side when it is their time and the way is open.
func (x *pair) write(way int, queue <-chan chunk) {
	from, to := x.slot[way], x.slot[1-way]
	for c := range queue {
		if !x.wait(time.Until(c.due)) || !x.clear(from, to) {
			return
		}
		if len(c.b) > 0 {
			if _, err := x.ends[1-way].Write(c.b); err != nil {
				x.end()
				return
			}
		}
		l, lot, _ := x.all.look(from, to)
		switch {
		case c.end == io.EOF: // what the other direction carries may still come
			_ = x.ends[1-way].CloseWrite()
			if x.shut.Add(1) == 2 {
				x.once.Do(func() { close(x.over); _ = x.ends[0].Close(); _ = x.ends[1].Close() })
			}
			return
		case c.end != nil || lot < l.Reset:
			x.end()
			return
		}
	}
}

// wait lets time pass; false when the pair has ended meanwhile.
func (x *pair) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-x.over:
		return false
	}
}

// clear waits until the way is not cut; false when the pair has ended meanwhile.
func (x *pair) clear(from, to int) bool {
	for {
		l, _, changed := x.all.look(from, to)
		if !l.Cut.has(x.lane) {
			return true
		}
		select {
		case <-changed:
		case <-x.over:
			return false
		}
	}
}
