// Package door is a listener for HTTP at a port that others than friends reach: how many connections there are, which
// one goes when one more comes, how much of a processor handshakes and readers get.
package door

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how many come in. All of it but Full and Crowded is needed.
type Config struct {
	// Most is how many connections there are at a time; while all of them are fresh, twice as many. At most so many may
	// be kept (Keep) that there is always one that is not, or a newcomer finds nobody to take the place of.
	Most int
	// FirstByte is how long a connection may be silent after it was opened.
	FirstByte time.Duration
	// FirstBytes is how much it may say until its first request is there, its handshake included. One that says more is
	// closed; zero: no bound.
	FirstBytes int
	// Full is sent to a newcomer that finds no place, before it is closed; empty: nothing, as when it expects TLS.
	Full string
	// Crowded is called when somebody was put out or refused, once a second at most, with how many were so far.
	Crowded func(Stats)
}

// Stats are the counters of a door.
type Stats struct {
	Open    int    // connections
	PutOut  uint64 // that were closed for a later one: they had asked nothing, or were idle
	Refused uint64 // that found no place: all there were had their requests under way
	Silent  uint64 // that said nothing in time
}

// tellTime is for the words to a newcomer that finds no place.
const tellTime = 100 * time.Millisecond

// NewTime is for how long a connection is fresh, and an idle one goes before it, until its first bytes are there.
const NewTime = 250 * time.Millisecond

// speakTime is for how long it is fresh from then until its first request is there: that needs round trips, its turn,
// and a busy machine's time.
const speakTime = 4 * NewTime

// Door is a listener with a bound on its connections. When it is reached the newcomer takes the place of another one:
// of the address with the most connections (of IPv6: of the network of 64 bits), there of one that said nothing in its
// time, then of one that began to speak and has not gone on since, then of an idle one, always the oldest first. While
// all are fresh nobody goes until there are twice as many; then those that have said nothing or those that speak go,
// whichever are more, so that a crowd of one kind does not put out the other. A client that asks as soon as it is
// connected, as a probe does, is served in any crowd. Clients open an idle connection anew; a request would be lost.
type Door struct {
	net.Listener
	cfg   Config
	grace time.Duration // NewTime, but in tests; speakTime is as many times of it
	turns chan struct{} // of those that have asked nothing yet: so many are worked on at a time

	mu     sync.Mutex
	guests map[*Conn]struct{}
	there  map[netip.Addr]int // connections by visitor
	told   time.Time

	putOut, refused, silent atomic.Uint64
}

// New puts a door in front of a listener.
func New(l net.Listener, cfg Config) *Door {
	return &Door{Listener: l, cfg: cfg, grace: NewTime, turns: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		guests: map[*Conn]struct{}{}, there: map[netip.Addr]int{}}
}

// Stats returns the counters.
func (d *Door) Stats() Stats {
	d.mu.Lock()
	open := len(d.guests)
	d.mu.Unlock()
	return Stats{open, d.putOut.Load(), d.refused.Load(), d.silent.Load()}
}

// Attach makes a server use the door: it speaks HTTP/1.1 alone, for HTTP/2 makes any number of requests of one
// connection, and tells the door which connections have asked for something.
func (d *Door) Attach(s *http.Server) {
	s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		if secure, is := nc.(*tls.Conn); is {
			nc = secure.NetConn()
		}
		return context.WithValue(ctx, key{}, nc)
	}
	next := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if c := connOf(q.Context()); c != nil {
			c.move(asking)
			defer c.move(idle)
		}
		next.ServeHTTP(w, q)
	})
}

// key is that of a request's connection in its context.
type key struct{}

func connOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(key{}).(*Conn)
	return c
}

// Keep keeps the place of a request's connection until release is called, or the request is over. A request that
// came through no door has nothing to keep.
func Keep(ctx context.Context) (release func()) {
	c := connOf(ctx)
	if c == nil {
		return func() {}
	}
	c.move(kept)
	return func() { c.move(asking) }
}

// Accept returns the next connection, if need be in the place of another one.
func (d *Door) Accept() (net.Conn, error) {
	for {
		nc, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &Conn{Conn: nc, door: d, from: Visitor(source(nc)), since: time.Now()}
		goes, ok := d.enter(c)
		for _, g := range goes {
			d.putOut.Add(1)
			_ = g.Conn.Close()
		}
		if !ok {
			d.refused.Add(1)
			if d.cfg.Full != "" {
				_ = nc.SetWriteDeadline(time.Now().Add(tellTime))
				_, _ = io.WriteString(nc, d.cfg.Full)
			}
			_ = nc.Close()
		}
		if len(goes) > 0 || !ok {
			d.crowded()
		}
		if ok {
			c.patience(d.cfg.FirstByte)
			return c, nil
		}
	}
}

// crowded tells that there is more than there is room for, now and then.
func (d *Door) crowded() {
	d.mu.Lock()
	tell := d.cfg.Crowded != nil && time.Since(d.told) >= time.Second
	if tell {
		d.told = time.Now()
	}
	d.mu.Unlock()
	if tell {
		d.cfg.Crowded(d.Stats())
	}
}

// enter takes a connection in; goes are those that it takes the place of, two when there are too many. Not ok: there is
// no place.
func (d *Door) enter(c *Conn) (goes []*Conn, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := len(d.guests); n >= d.cfg.Most && len(goes) < 2; n-- {
		least, fresh := d.least()
		if fresh && n < 2*d.cfg.Most || least == nil && len(goes) > 0 {
			break
		}
		if least == nil {
			return nil, false
		}
		d.leaveLocked(least)
		goes = append(goes, least)
	}
	d.guests[c] = struct{}{}
	d.there[c.from]++
	return goes, true
}

// least returns the connection that goes first, nil when all are kept, and whether it is fresh. One with bytes that
// nobody has read yet, as when many are accepted at once, is neither silent nor idle.
func (d *Door) least() (least *Conn, fresh bool) {
	for {
		o := order{now: time.Now(), grace: d.grace, there: d.there}
		for c := range d.guests {
			if o.fresh(c) {
				o.more[c.stage]++
			}
		}
		least = nil
		for c := range d.guests { // the least: the order does not show
			if c.stage != kept && (least == nil || o.before(c, least)) {
				least = c
			}
		}
		if least == nil || least.stage != silent && least.stage != idle || !waits(least.Conn) {
			return least, least != nil && o.fresh(least)
		}
		least.stage, least.since = speaking, o.now
	}
}

// order is the one in which connections go at one moment.
type order struct {
	now   time.Time
	grace time.Duration
	there map[netip.Addr]int
	more  [speaking + 1]int // fresh connections by stage
}

// fresh reports whether c has time yet for the next step of its first request.
func (o *order) fresh(c *Conn) bool {
	took := o.now.Sub(c.since)
	return c.stage == silent && took < o.grace || c.stage == speaking && took/(speakTime/NewTime) < o.grace
}

// before reports whether a goes before b.
func (o *order) before(a, b *Conn) bool {
	if m, n := o.there[a.from], o.there[b.from]; m != n {
		return m > n
	}
	if m, n := o.rank(a), o.rank(b); m != n {
		return m < n
	}
	return a.since.Before(b.since)
}

// rank orders connections by what their end costs the client, the least first.
func (o *order) rank(c *Conn) int {
	switch {
	case o.fresh(c) && o.more[c.stage] < o.more[speaking-c.stage]:
		return 4
	case o.fresh(c):
		return 3
	default:
		return []int{silent: 0, speaking: 1, idle: 2, asking: 5, kept: 6}[c.stage]
	}
}

func (d *Door) leaveLocked(c *Conn) {
	if _, in := d.guests[c]; !in {
		return
	}
	delete(d.guests, c)
	if d.there[c.from]--; d.there[c.from] <= 0 {
		delete(d.there, c.from)
	}
}

// Visitor is the owner of the share of a door that a connection from an address uses: that address, of IPv6 its network
// of 64 bits, which one host can have to itself.
func Visitor(from netip.Addr) netip.Addr {
	if from = from.Unmap(); from.Is6() && !from.IsLinkLocalUnicast() {
		if p, err := from.WithZone("").Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return from
}

// source is the address that a connection comes from.
func source(nc net.Conn) netip.Addr {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr()
	}
	return netip.Addr{}
}

// stage is how far a connection is.
type stage uint8

const (
	silent   stage = iota // has said nothing
	speaking              // within its handshake, or its first request
	idle                  // its last request was answered
	asking                // a request is there, which has no place yet
	kept                  // it has one: it does not go
)

// errTooMuch ends a connection that says more than a handshake and a first request may have.
var errTooMuch = errors.New("door: too many bytes before the first request")

// Conn is a connection that came in by a door.
type Conn struct {
	net.Conn
	door *Door
	from netip.Addr // its visitor

	stage stage // guarded by the door's mu
	since time.Time

	said  int         // bytes, before it has asked; of the goroutine that reads
	asked atomic.Bool // a whole request has come
	spoke atomic.Bool
	first *time.Timer

	mu   sync.Mutex // of held
	held bool       // its turn
}

// patience closes the connection if nothing is heard of it for so long.
func (c *Conn) patience(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first = time.AfterFunc(d, func() {
		if !c.spoke.Load() {
			c.door.silent.Add(1)
			_ = c.Conn.Close()
		}
	})
}

// move notes how far the connection is, and since when.
func (c *Conn) move(to stage) {
	if to >= asking && !c.asked.Swap(true) {
		c.give()
	}
	c.door.mu.Lock()
	c.stage, c.since = to, time.Now()
	c.door.mu.Unlock()
}

// Read reads. What comes before a connection has asked anything is worked on when it is its turn: of the handshakes
// and headers of strangers only so many at a time, which is not while they wait for the other end.
func (c *Conn) Read(p []byte) (int, error) {
	c.give()
	if c.asked.Load() {
		return c.Conn.Read(p)
	}
	if most := c.door.cfg.FirstBytes; most > 0 {
		if c.said >= most {
			return 0, errTooMuch
		}
		p = p[:min(len(p), most-c.said)]
	}
	n, err := c.Conn.Read(p)
	c.said += n
	if n > 0 && !c.asked.Load() {
		if !c.spoke.Swap(true) {
			c.move(speaking)
		}
		c.door.turns <- struct{}{}
		c.mu.Lock()
		c.held = true
		c.mu.Unlock()
	}
	return n, err
}

// Write writes, which ends its turn.
func (c *Conn) Write(p []byte) (int, error) {
	c.give()
	return c.Conn.Write(p)
}

// CloseWrite says that nothing more is sent.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection and gives its place back.
func (c *Conn) Close() error {
	c.give()
	c.mu.Lock()
	if c.first != nil {
		c.first.Stop()
	}
	c.mu.Unlock()
	c.door.mu.Lock()
	c.door.leaveLocked(c)
	c.door.mu.Unlock()
	return c.Conn.Close()
}

// give ends its turn, if it has it.
func (c *Conn) give() {
	c.mu.Lock()
	held := c.held
	c.held = false
	c.mu.Unlock()
	if held {
		<-c.door.turns
	}
}
