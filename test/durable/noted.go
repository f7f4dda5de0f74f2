// The store as a process has it: every claim and every commit that succeeded goes to a journal, which outlives the
// process, and what the fence has refused; and stores that lie, to show that the laws can fail.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// note is one line of a journal.
type note struct {
	From, To time.Duration // of the run's clock: when the call began and returned
	Op       string        // claim, commit, or fenced: a call of any kind that the fence refused
	Type     string
	Shard    route.ShardID
	Fence    route.Fence
	Writes   []noted `json:",omitempty"`
}

// noted is one write of a commit.
type noted struct {
	ID      string
	Version uint64
	Nonce   [16]byte
}

// The kinds of notes.
const (
	noteClaim  = "claim"
	noteCommit = "commit"
	noteFenced = "fenced"
)

// noting is a store with a journal.
type noting struct {
	store.Store
	clock cli.Clock

	mu sync.Mutex
	f  *os.File
}

// note writes a line, if the call succeeded or was fenced.
func (n *noting) note(op string, from time.Duration, s store.Shard, f route.Fence, err error, w []store.Write) {
	switch {
	case errors.Is(err, store.ErrFenced):
		op, w = noteFenced, nil
	case err != nil || op == "":
		return
	}
	line := note{From: from, To: n.clock.Now(), Op: op, Type: s.Type, Shard: s.N, Fence: f}
	for i := range w {
		line.Writes = append(line.Writes, noted{w[i].ID, w[i].Version, w[i].Nonce})
	}
	b, _ := json.Marshal(line)
	n.mu.Lock()
	defer n.mu.Unlock()
	_, _ = n.f.Write(append(b, '\n')) // at once: a process that is killed a moment later has written it
}

// Claim implements store.Store.
func (n *noting) Claim(ctx context.Context, s store.Shard, f route.Fence) (store.Claimed, error) {
	from := n.clock.Now()
	claimed, err := n.Store.Claim(ctx, s, f)
	n.note(noteClaim, from, s, f, err, nil)
	return claimed, err
}

// Load implements store.Store.
func (n *noting) Load(ctx context.Context, s store.Shard, f route.Fence, ids ...string) ([]store.Record, error) {
	from := n.clock.Now()
	list, err := n.Store.Load(ctx, s, f, ids...)
	n.note("", from, s, f, err, nil)
	return list, err
}

// Commit implements store.Store.
func (n *noting) Commit(ctx context.Context, s store.Shard, f route.Fence, w ...store.Write) error {
	from := n.clock.Now()
	err := n.Store.Commit(ctx, s, f, w...)
	n.note(noteCommit, from, s, f, err, w)
	return err
}

// The mistakes that can be planted.
const (
	breakEarly   = "early"   // a commit is acknowledged before it is done
	breakUnbound = "unbound" // a commit that the fence refuses is written all the same
	breakForget  = "forget"  // one commit of a hundred is acknowledged and never made
	breakAgain   = "again"   // callers repeat what may have been done, and the account does not look
	breakMarks   = "marks"   // what an entity has seen is not written
	breakOutbox  = "outbox"  // what an entity has sent is not written
	breakAlarms  = "alarms"  // what an entity is to be reminded of is not written
	breakStale   = "stale"   // a register answers a read by what it had before
	breakReaders = "readers" // readers acknowledge letters that they drop, and note some behind later ones
)

// breaks are all mistakes.
var breaks = []string{breakEarly, breakUnbound, breakForget, breakAgain, breakMarks, breakOutbox, breakAlarms, breakStale,
	breakReaders}

// forcer is an engine's way past the fence.
type forcer interface {
	force(ctx context.Context, s store.Shard, w []store.Write) error
}

// lying returns the store with a mistake planted, or as it is.
func lying(s store.Store, by forcer, mistake string) store.Store {
	switch mistake {
	case breakEarly:
		return &early{Store: s, shards: map[store.Shard]chan func(){}}
	case breakUnbound:
		return &unbound{s, by}
	case breakForget:
		return &forgetful{Store: s}
	case breakMarks:
		return &cut{s, func(w *store.Write) { w.Marks = nil }}
	case breakAlarms:
		return &cut{s, func(w *store.Write) { w.Reminders, w.Due = nil, time.Time{} }}
	case breakOutbox:
		return &cut{s, func(w *store.Write) { w.Outbox = nil }}
	}
	return s
}

// earlyLag is how far behind its word an early store is.
const earlyLag = 200 * time.Millisecond

// early tells a commit as done before it is.
type early struct {
	store.Store
	mu     sync.Mutex
	shards map[store.Shard]chan func()
}

// queue returns what is to be done for a shard, in order.
func (e *early) queue(s store.Shard) chan func() {
	e.mu.Lock()
	defer e.mu.Unlock()
	q := e.shards[s]
	if q == nil {
		q = make(chan func(), 1<<16)
		e.shards[s] = q
		go func() {
			for do := range q {
				do()
			}
		}()
	}
	return q
}

// Load waits for what is queued.
func (e *early) Load(ctx context.Context, s store.Shard, f route.Fence, ids ...string) ([]store.Record, error) {
	done := make(chan struct{})
	e.queue(s) <- func() { close(done) }
	select {
	case <-done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return e.Store.Load(ctx, s, f, ids...)
}

// Commit returns at once.
func (e *early) Commit(_ context.Context, s store.Shard, f route.Fence, w ...store.Write) error {
	writes := append([]store.Write(nil), w...)
	e.queue(s) <- func() {
		time.Sleep(earlyLag)
		for try := 0; try < 100; try++ {
			if err := e.Store.Commit(context.Background(), s, f, writes...); !errors.Is(err, store.ErrUnknown) {
				return
			}
			time.Sleep(earlyLag)
		}
	}
	return nil
}

// unbound writes what the fence refuses. It takes its time, so that a process may be stopped within.
type unbound struct {
	store.Store
	by forcer
}

// Commit forces what is refused.
func (u *unbound) Commit(ctx context.Context, s store.Shard, f route.Fence, w ...store.Write) error {
	time.Sleep(earlyLag / 10)
	err := u.Store.Commit(context.WithoutCancel(ctx), s, f, w...)
	if errors.Is(err, store.ErrFenced) {
		return u.by.force(context.WithoutCancel(ctx), s, w)
	}
	return err
}

// forgetful drops a commit now and then.
type forgetful struct {
	store.Store
	mu sync.Mutex
	n  int
}

// Commit forgets one of a hundred.
func (f *forgetful) Commit(ctx context.Context, s store.Shard, fence route.Fence, w ...store.Write) error {
	f.mu.Lock()
	f.n++
	forgets := f.n%100 == 0
	f.mu.Unlock()
	if forgets {
		return nil
	}
	return f.Store.Commit(ctx, s, fence, w...)
}

// cut takes something away from each write.
type cut struct {
	store.Store
	from func(*store.Write)
}

// Commit writes the rest.
func (c *cut) Commit(ctx context.Context, s store.Shard, f route.Fence, w ...store.Write) error {
	writes := append([]store.Write(nil), w...)
	for i := range writes {
		c.from(&writes[i])
	}
	return c.Store.Commit(ctx, s, f, writes...)
}

// readNotes reads the lines of a journal. A last line that is cut short was written by a process that was killed.
func readNotes[T any](file string) (list []T, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for len(b) > 0 {
		line, rest, whole := cutLine(b)
		var n T
		if err := json.Unmarshal(line, &n); err != nil {
			if !whole {
				return list, nil
			}
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list = append(list, n)
		b = rest
	}
	return list, nil
}

// cutLine returns the first line.
func cutLine(b []byte) (line, rest []byte, whole bool) {
	for i, c := range b {
		if c == '\n' {
			return b[:i], b[i+1:], true
		}
	}
	return b, nil, false
}
