// Recovery: the claim of a shard, and what its owner before has left.

package delivery

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/kith-io/kith/store"
)

// held is what is stored of a shard.
type held struct {
	list  []*message // that wait, in order
	dead  []uint64
	last  uint64 // the highest number that may have been given
	floor uint64
}

// recovers claims the shard and reads what is stored, unless that is known. False: the store does not answer, or the
// shard is lost.
func (l *ledger) recovers() bool {
	l.mu.Lock()
	ready := l.ready
	l.mu.Unlock()
	if ready {
		return true
	}
	ctx, cancel := l.d.within()
	c, err := l.d.store.Claim(ctx, l.shard, l.fence)
	cancel()
	if !l.judge(err) {
		return false
	}
	h := &held{floor: c.Floor, last: max(c.Floor, l.d.begins())}
	if !l.judge(l.loads(h)) {
		return false
	}
	l.adopts(h)
	return true
}

// loads reads all that waits, and which dead letters there are.
func (l *ledger) loads(h *held) error {
	ctx, cancel := l.d.within()
	defer cancel()
	var ids []string
	for id, err := range l.d.store.Unsent(ctx, l.shard) {
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for a, err := range l.d.store.Due(ctx, l.shard, forever) {
		if err != nil {
			return err
		}
		if n, is := numberOf(a.ID); is {
			h.dead = append(h.dead, n)
			h.last = max(h.last, n+1)
		}
	}
	slices.Sort(h.dead)
	h.dead = slices.Compact(h.dead)
	slices.Sort(ids)
	for part := range slices.Chunk(slices.Compact(ids), store.MaxWrites) {
		if err := l.load(h, part); err != nil {
			return err
		}
	}
	slices.SortFunc(h.list, func(a, b *message) int { return int(int64(a.number - b.number)) })
	return nil
}

// load reads some of what waits. What cannot be read stays where it is.
func (l *ledger) load(h *held, ids []string) error {
	ctx, cancel := l.d.within()
	defer cancel()
	list, err := l.d.store.Load(ctx, l.shard, l.fence, ids...)
	if err != nil {
		return err
	}
	for _, r := range list {
		n, is := numberOf(r.ID)
		if len(r.Outbox) == 0 || !is {
			continue
		}
		h.last = max(h.last, n, r.Version)
		at, err := parseLetter(bytes.Clone(r.Outbox))
		if err != nil {
			l.d.unreadable.Add(1)
			l.d.log.Error("a message of a queue cannot be read", "queue", l.d.name, "shard", l.shard.N, "id", r.ID,
				"error", err)
			continue
		}
		at.may = true
		h.list = append(h.list, &message{letter: at, number: n, version: r.Version})
	}
	return nil
}

// adopts takes up what was read. Requests that it leaves no room for are refused.
func (l *ledger) adopts(h *held) {
	var full []*op
	l.mu.Lock()
	for _, m := range h.list {
		l.holds(m, 1)
		l.lanes.add(m)
	}
	l.ready, l.dead, l.graves, l.last, l.floor = true, h.dead, len(h.dead), max(l.last, h.last), max(l.floor, h.floor)
	for i := len(l.queue) - 1; i >= 0 && (l.count > l.d.messages || l.bytes > l.d.bytes); i-- {
		if o := l.queue[i]; o.kind == opSend && l.count > 1 {
			l.undo(o)
			l.queue = slices.Delete(l.queue, i, i+1)
			full = append(full, o)
		}
	}
	f := fails(codeFull, fmt.Errorf("%d messages, %d bytes", l.count, l.bytes))
	l.mu.Unlock()
	l.d.full.Add(uint64(len(full)))
	l.d.ground.Ring(l.bell)
	for _, o := range full {
		o.answer(f.answer())
	}
}
