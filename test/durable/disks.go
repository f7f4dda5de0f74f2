// Disks: the store on the disks of the nodes themselves. A process opens its own; what is stored is read by claims.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/lab/cuts"
	"github.com/kith-io/kith/quorum"
	"github.com/kith-io/kith/quorum/disk"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// errNoForce is returned where a store has no way past its fence.
var errNoForce = errors.New("this store has no way past the fence")

// replaceAfter is how long a disk may be away until its places go to others.
const replaceAfter = 20 * time.Second

// openDisk opens the disk of a process, which begins the store with as many as there are nodes.
func openDisk(n *kith.Node, engine disk.Engine, nodes int) (*quorum.Values, error) {
	v, err := quorum.Open(n, quorum.Store{Name: "bank", Engine: engine, Founders: nodes, Timeout: time.Second,
		ReplaceAfter: replaceAfter})
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return v, nil
}

// unforced is the way past the fence of a store that has none.
type unforced struct{}

func (unforced) force(context.Context, store.Shard, []store.Write) error { return errNoForce }

// disksBackend is the disks, one in the place of each node, and what lies between the nodes.
type disksBackend struct {
	dir string
	net *cuts.Network
}

// newDisks makes the folder of the disks, and the network.
func newDisks(h *harness) (*disksBackend, error) {
	net, err := cuts.Lay(2 * h.cfg.Nodes) // two for each: slot.place
	return &disksBackend{filepath.Join(h.dir, "disks"), net}, errors.Join(err, os.MkdirAll(filepath.Join(h.dir, "disks"), 0o755))
}

func (b *disksBackend) source() string  { return b.dir }
func (*disksBackend) disk() string      { return "plain" }
func (*disksBackend) cannotFill() error { return nil }
func (b *disksBackend) close() error    { return b.net.Close() }

// hit has nothing to hit beside the nodes: what hits a disk hits one of them.
func (*disksBackend) hit(_ context.Context, kind string) (func() error, error) {
	return nil, fmt.Errorf("the disks of the nodes have no fault %q", kind)
}

// diskOf is the disk of a node.
func (h *harness) diskOf(s *slot) string { return filepath.Join(h.back.source(), s.name()) }

// listen is where a node listens, and where others reach it: a disk is that of an address, so it stays.
func (s *slot) listen() (listen, advertise string) {
	if b, ok := s.h.back.(*disksBackend); ok {
		return b.net.Back(s.place()), b.net.Addr(s.place()).String()
	}
	return "127.0.0.1:0", ""
}

// comes has others find the node of a slot, gone has them be refused.
func (s *slot) comes() error {
	if b, ok := s.h.back.(*disksBackend); ok {
		return b.net.Comes(s.place())
	}
	return nil
}

func (s *slot) gone() {
	if b, ok := s.h.back.(*disksBackend); ok {
		b.net.Gone(s.place())
	}
}

// holds says what a disk lacks.
type holds struct {
	Disks, Lacking, Shards int
}

// settled is how long owners have to put an empty disk into the place of the one that was lost: five rounds, and copies.
const settled = 8 * time.Second

// empty kills a node, and takes its disk away before it is started again.
func (f *faults) empty(ctx context.Context, x fault) error {
	s := f.h.slots[x.victim]
	over := make(chan struct{})
	s.mu.Lock()
	l := s.now
	s.rest, s.between = x.last, func() {
		_ = os.RemoveAll(f.h.diskOf(s))
		close(over)
	}
	s.mu.Unlock()
	if l == nil {
		return fmt.Errorf("%s does not run", s.name())
	}
	l.child.Kill()
	select {
	case <-over:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	f.h.line("%s has an empty disk", s.name())
	if err := f.h.whole(ctx, wholeTime); err != nil {
		return err
	}
	f.h.line("%s lacks nothing; owners have %v for its shards", s.name(), settled)
	cli.Pause(ctx, settled)
	return ctx.Err()
}

// fills has the disk of a node be full for a while. Its process ends when it writes, and starts again when there is room.
func (f *faults) fills(ctx context.Context, x fault) error {
	s := f.h.slots[x.victim]
	s.mu.Lock()
	s.filled = true
	s.mu.Unlock()
	mark := f.h.diskOf(s) + fullMark
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	cli.Pause(ctx, x.last)
	return os.Remove(mark)
}

// locks kills a node, and holds the lock of its disk for a while: its process does not start before.
func (f *faults) locks(ctx context.Context, x fault) error {
	s := f.h.slots[x.victim]
	held := make(chan error, 1)
	var lock io.Closer
	s.mu.Lock()
	l := s.now
	s.between = func() {
		var err error
		lock, err = hold(f.h.diskOf(s))
		held <- err
	}
	s.mu.Unlock()
	if l == nil {
		return fmt.Errorf("%s does not run", s.name())
	}
	l.child.Kill()
	select {
	case err := <-held:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	cli.Pause(ctx, x.last)
	return lock.Close()
}

// cuts cuts a node off from the others, or two of them. Callers reach them still.
func (f *faults) cuts(ctx context.Context, x fault) {
	net, hit := f.h.back.(*disksBackend).net, []int{f.h.slots[x.victim].place()}
	if x.beside == faultCut {
		hit = append(hit, f.h.slots[x.other].place())
	}
	net.Cut(hit...)
	cli.Pause(ctx, x.last)
	net.Cut()
}

// shardIDs are ids of records in a shard.
type shardIDs struct {
	Shard store.Shard
	IDs   []string
}

// left is what waits in the store.
type left struct{ Unsent, Unfired int }

// waiting counts records of shards with an outbox, and with a reminder.
func (c *child) waiting(ctx context.Context, in []store.Shard) (n left, err error) {
	for _, s := range in {
		for _, err := range c.store.Unsent(ctx, s) {
			if err != nil {
				return n, err
			}
			n.Unsent++
		}
		if s.Type == queueType { // a dead letter is due when it is dropped; letters have no reminders
			continue
		}
		for _, err := range c.store.Due(ctx, s, time.Now().Add(24*time.Hour)) {
			if err != nil {
				return n, err
			}
			n.Unfired++
		}
	}
	return n, nil
}

// readerFence is above that of each owner: who claims under it sees what all of them have left.
var readerFence = route.MakeFence(1<<62, 1, 1)

// records claims a shard, and reads the records of ids there.
func (c *child) records(ctx context.Context, s shardIDs) (list []store.Record, err error) {
	if _, err := c.store.Claim(ctx, s.Shard, readerFence); err != nil {
		return nil, err
	}
	for ids := range slices.Chunk(s.IDs, store.MaxWrites) {
		page, err := c.store.Load(ctx, s.Shard, readerFence, ids...)
		if err != nil {
			return nil, err
		}
		list = append(list, page...)
	}
	return list, nil
}

// disks are the records of a run on the disks of its nodes, read through them.
type disks struct {
	unforced
	h    *harness
	used []store.Shard
}

func (*disks) Close() error { return nil }

// call calls an operation of one process after the other until one answers.
func call[In, Out any](ctx context.Context, h *harness, op string, in In) (out Out, err error) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	for {
		for _, s := range h.slots {
			if l := s.current(); l != nil {
				var next Out
				if err = l.child.CallWithin(ctx, callTime, op, in, &next); err == nil {
					return next, nil
				}
			}
		}
		if !cli.Pause(ctx, 200*time.Millisecond) {
			return out, fmt.Errorf("%s: %w", op, errors.Join(err, context.Cause(ctx)))
		}
	}
}

// ids returns, by shard, the records that were ever written and acknowledged. A shard that nobody has claimed has none.
func (d *disks) ids() (map[store.Shard]map[string]bool, error) {
	notes, err := journals[note](d.h, "store-*.notes")
	ids := map[store.Shard]map[string]bool{}
	for _, n := range notes {
		s := store.Shard{Type: n.Type, N: n.Shard}
		if ids[s] == nil {
			ids[s] = map[string]bool{}
		}
		for _, w := range n.Writes {
			ids[s][w.ID] = true
		}
	}
	return ids, err
}

// waiting implements records.
func (d *disks) waiting(ctx context.Context) (unsent, unfired int, err error) {
	if d.used == nil {
		ids, err := d.ids()
		if err != nil {
			return 0, 0, err
		}
		for s := range ids { // in any order: the counts of all are added
			d.used = append(d.used, s)
		}
	}
	n, err := call[[]store.Shard, left](ctx, d.h, "waiting", d.used)
	return n.Unsent, n.Unfired, err
}

// all implements records: of each record that was ever written what its shard has now. No owner writes any more then:
// each shard is claimed.
func (d *disks) all(ctx context.Context) (list []stored, err error) {
	ids, err := d.ids()
	if err != nil {
		return nil, err
	}
	for s, of := range ids { // in any order
		in := shardIDs{Shard: s}
		for id := range of {
			in.IDs = append(in.IDs, id)
		}
		slices.Sort(in.IDs)
		page, err := call[shardIDs, []store.Record](ctx, d.h, "records", in)
		if err != nil {
			return nil, fmt.Errorf("%s, shard %d: %w", s.Type, s.N, err)
		}
		for i := range page {
			list = append(list, stored{Record: page[i], Type: s.Type, Shard: s.N, Fence: readerFence})
		}
	}
	return list, nil
}
