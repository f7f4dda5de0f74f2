// Node: a machine of fenced records between callers, a carrier of messages and a disk.

// Package fenced makes the machine of internal/core/quorum/records a store.Store: durable entities then keep their
// records on the disks of the cluster itself. Messages are carried by a Carrier, and the goroutine is its owner's.
package fenced

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/core/quorum/records"
	"github.com/kith-io/kith/peer"
)

// Carrier carries messages to other disks. Send does not wait: what it has no room for is lost, and sent again later.
// It may keep body. Turn calls it.
type Carrier interface {
	Send(to peer.ID, body []byte)
}

// Config is that of a Node.
type Config struct {
	Records records.Config
	Name    string         // of cluster and store, the same at all nodes
	Self    peer.ID        // of an empty disk; its Inc has to be drawn anew for each
	Disk    records.Engine // it stays the caller's
	Carrier Carrier
	Rouse   func() // called when there is something for Turn to do, from any goroutine; it does not block
}

// ErrClosed is what a call of a node that has ended returns.
var ErrClosed = errors.New("quorum: the store is closed, or its node has ended")

// Node is one. Handle, Members, Caring, Lent, LendAgain, Found, Turn and End are of one goroutine; all else is safe for
// concurrent use.
type Node struct {
	machine *records.Machine
	carrier Carrier
	rouse   func()
	ended   chan struct{}
	last    uint64           // number of a call
	waiting map[uint64]*call // by number
	stats   atomic.Pointer[records.Stats]

	mu     sync.Mutex
	calls  []*call
	closed bool
}

// call is one request of a caller.
type call struct {
	cmd func(number uint64) records.Command
	out chan records.Outcome
}

// Open opens a node on a disk.
func Open(cfg Config) (*Node, error) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	m, err := records.Open(cfg.Records, cfg.Name, cfg.Self, cfg.Disk, rng)
	if err != nil {
		return nil, fmt.Errorf("fenced: opening the disk: %w", err)
	}
	n := &Node{machine: m, carrier: cfg.Carrier, rouse: cfg.Rouse, ended: make(chan struct{}),
		waiting: map[uint64]*call{}}
	n.stats.Store(&records.Stats{})
	return n, nil
}

// ID returns the id of the disk.
func (n *Node) ID() peer.ID { return n.machine.ID() }

// Stats returns the counts, as they were behind the last Turn.
func (n *Node) Stats() records.Stats { return *n.stats.Load() }

// Handle takes a message of another disk. It belongs to n from now on; nonsense is counted.
func (n *Node) Handle(now time.Duration, from peer.ID, body []byte) {
	_ = n.machine.Handle(now, from, body)
}

// Members says which disks there are, and which of them answer.
func (n *Node) Members(now time.Duration, all, up peer.Set) {
	_ = n.machine.Do(now, records.MembersCommand{All: all, Up: up}) // never refused
}

// Caring reports whether there is anything to do yet, or to find out, for disks that are no members any more.
func (n *Node) Caring() bool { return n.machine.Caring() }

// Lent returns how many shards of this disk, which is no member any more, are not known to be elsewhere.
func (n *Node) Lent() int { return n.machine.Lent() }

// LendAgain has a disk that is no member any more find that out anew.
func (n *Node) LendAgain() { n.machine.LendAgain() }

// Founded reports whether this disk knows what the store was founded as.
func (n *Node) Founded() bool { return n.machine.Founded() }

// Found founds the store: records.FoundCommand.
func (n *Node) Found(now time.Duration, c records.FoundCommand) error { return n.machine.Do(now, c) }

// Turn takes what callers have asked, has all that was asked since the last one on disk in one commit, and sends what
// comes of that. It returns how long nothing is due.
func (n *Node) Turn(now time.Duration) time.Duration {
	n.mu.Lock()
	calls := n.calls
	n.calls = nil
	n.mu.Unlock()
	for _, c := range calls {
		n.last++
		if err := n.machine.Do(now, c.cmd(n.last)); err != nil {
			c.out <- records.Outcome{Err: err}
		} else {
			n.waiting[n.last] = c
		}
	}
	if at, ok := n.machine.Next(); ok && at <= now {
		n.machine.Tick(now)
	}
	n.carry()            // what owners ask of other disks needs not wait for this one
	_ = n.machine.Sync() // counted there, and tried again when the others ask again
	n.carry()
	s := n.machine.Stats()
	n.stats.Store(&s)
	if at, ok := n.machine.Next(); ok {
		return max(at-now, 0)
	}
	return time.Hour
}

// carry has done what the machine wants.
func (n *Node) carry() {
	var e records.Effects
	n.machine.Drain(&e)
	for _, x := range e.Sends {
		n.carrier.Send(x.To, x.Body)
	}
	for _, o := range e.Done {
		if c := n.waiting[o.Number]; c != nil {
			delete(n.waiting, o.Number)
			c.out <- o
		}
	}
}

// End ends the node. Calls that wait return ErrClosed.
func (n *Node) End() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.closed = true
		close(n.ended)
	}
}

// call gives the machine a command and waits for its outcome.
func (n *Node) call(ctx context.Context, cmd func(uint64) records.Command) (records.Outcome, error) {
	if ctx.Err() != nil {
		return records.Outcome{}, context.Cause(ctx)
	}
	c := &call{cmd, make(chan records.Outcome, 1)}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return records.Outcome{}, ErrClosed
	}
	n.calls = append(n.calls, c)
	n.mu.Unlock()
	n.rouse()
	select {
	case out := <-c.out:
		return out, out.Err
	case <-ctx.Done():
		return records.Outcome{}, context.Cause(ctx)
	case <-n.ended:
		select {
		case out := <-c.out:
			return out, out.Err
		default:
			return records.Outcome{}, ErrClosed
		}
	}
}
