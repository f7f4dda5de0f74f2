// Connections: what one has done so far, and its turn to be worked on while it has asked nothing.

package door

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// stage is how far a connection is. The lower it is, the sooner it goes for a later one.
type stage uint8

const (
	silent   stage = iota // has said nothing
	speaking              // within its handshake, or its first request
	idle                  // its last request was answered
	asking                // a request is there, which has no place yet
	kept                  // it has one: it does not go
)

// Conn is a connection that came in by a door.
type Conn struct {
	net.Conn
	door *Door
	from netip.Addr // its visitor

	stage stage // guarded by the door's mu
	since time.Time

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
	n, err := c.Conn.Read(p)
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
