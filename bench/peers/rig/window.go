// The window: how many one-way messages are under way to a peer that does not hold its senders back. The receiver tells
// over a connection of its own how many have reached handlers.

package rig

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// stripes spread the counts of the receiver, so that its goroutines do not slow each other by counting.
const stripes = 64

// bellEvery is after how many messages of one stripe the total is sent. A power of two.
const bellEvery = 32

// idleTell is after how long without a bell the total is sent.
const idleTell = 2 * time.Millisecond

// Inbound counts what reaches the handlers of a receiver. Safe for concurrent use.
type Inbound struct {
	counts [stripes]struct {
		atomic.Uint64
		_ [56]byte
	}
	bell chan struct{}
}

func newInbound() *Inbound { return &Inbound{bell: make(chan struct{}, 1)} }

// Count counts one message that reached the handler of an entity.
func (in *Inbound) Count(entity int) {
	if in.counts[entity%stripes].Add(1)%bellEvery == 0 {
		select {
		case in.bell <- struct{}{}:
		default:
		}
	}
}

func (in *Inbound) total() uint64 {
	var n uint64
	for i := range in.counts {
		n += in.counts[i].Load()
	}
	return n
}

// listen opens the port on which totals are sent to each dialler.
func (in *Inbound) listen() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("window: %w", err)
	}
	go func() {
		defer l.Close()
		if c, err := l.Accept(); err == nil {
			in.tell(c)
		}
	}()
	return l.Addr().String(), nil
}

// tell writes the total whenever it has grown, until the other side is gone.
func (in *Inbound) tell(c net.Conn) {
	defer c.Close()
	idle := time.NewTicker(idleTell)
	defer idle.Stop()
	var told uint64
	var b [8]byte
	for {
		select {
		case <-in.bell:
		case <-idle.C:
		}
		if n := in.total(); n != told {
			told = n
			binary.LittleEndian.PutUint64(b[:], n)
			if _, err := c.Write(b[:]); err != nil {
				return
			}
		}
	}
}

// window is the sender's side. Its goroutines take room before they send.
type window struct {
	mu    sync.Mutex
	room  sync.Cond
	size  uint64
	taken uint64
	done  uint64 // of those taken, how many have reached handlers
	base  uint64 // the receiver's total when nothing was taken
	heard uint64 // the receiver's last total
	gone  bool   // the receiver is
}

func dialWindow(ctx context.Context, addr string) (*window, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("window: %w", err)
	}
	w := &window{}
	w.room.L = &w.mu
	go w.hear(c)
	return w, nil
}

func (w *window) hear(c net.Conn) {
	defer c.Close()
	var b [8]byte
	for {
		_, err := io.ReadFull(c, b[:])
		w.mu.Lock()
		if err == nil {
			w.heard = binary.LittleEndian.Uint64(b[:])
			w.done = w.heard - w.base
		}
		w.gone = err != nil
		w.mu.Unlock()
		w.room.Broadcast()
		if err != nil {
			return
		}
	}
}

// open begins a load with that much room. What an earlier load sent has arrived or is lost by then.
func (w *window) open(size uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.size, w.taken, w.done, w.base = size, 0, 0, w.heard
}

// take waits until n more messages may be under way; false when the load is over.
func (w *window) take(n uint64, over *atomic.Bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.taken+n > w.done+w.size && !over.Load() && !w.gone {
		w.room.Wait()
	}
	if over.Load() || w.gone {
		return false
	}
	w.taken += n
	return true
}

// wake lets those that wait for room see that the load is over.
func (w *window) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.room.Broadcast()
}

// windowKey finds the window of a load in its context.
type windowKey struct{}
