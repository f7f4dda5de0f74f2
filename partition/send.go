// Send: which instance a message goes to, and how it gets there.

package partition

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/footing"
	"github.com/kith-io/kith/route"
)

// Tell sends payload, which it copies, to the instance of a key: always the same one, as long as the slots that have
// one are the same. It never blocks: nil means accepted, an error that it was not: ErrNotPlaced, ErrNoInstance,
// ErrUnreachable, or as Region.Tell says. What is accepted and refused later comes to Config.Refused.
func (p *Partition) Tell(key string, payload []byte) error {
	slot, err := p.slotOf(key)
	if err != nil {
		return err
	}
	return p.TellAt(slot, payload)
}

// TellAt is Tell to the instance of a slot.
func (p *Partition) TellAt(slot int, payload []byte) error {
	r := p.row.Load()
	lane, h, id, err := p.way(r, slot)
	if err == nil {
		err = lane.Tell(h, id, payload)
	}
	return p.sent(slot, err)
}

// TellAny is Tell to the instance on this node; without one, or if it is full, to one of two others that are drawn, the
// one for which less waits.
func (p *Partition) TellAny(payload []byte) error {
	return p.offer(func(slot int) error { return p.TellAt(slot, payload) })
}

// TellAll is Tell to all instances. A *PartialError says which of them will not get it.
func (p *Partition) TellAll(payload []byte) error {
	slots, err := p.slots()
	if err != nil {
		return err
	}
	var partial *PartialError
	for _, slot := range slots {
		if err := p.TellAt(slot, payload); err != nil {
			if partial == nil {
				partial = &PartialError{Path: p.path, Of: len(slots), Failed: map[int]error{}}
			}
			partial.Failed[slot] = err
		}
	}
	if partial != nil {
		return partial
	}
	return nil
}

// Ask sends payload to the instance of a key and waits for its answer, which is the caller's. Errors, beside those of
// Tell: ErrMoving, ErrMoved, ErrNotOpen, ErrAstray, ErrNotMade, and those of Region.Ask.
func (p *Partition) Ask(ctx context.Context, key string, payload []byte) ([]byte, error) {
	slot, err := p.slotOf(key)
	if err != nil {
		return nil, err
	}
	return p.AskAt(ctx, slot, payload)
}

// AskAt is Ask of the instance of a slot.
func (p *Partition) AskAt(ctx context.Context, slot int, payload []byte) (b []byte, err error) {
	r := p.row.Load()
	lane, h, id, err := p.way(r, slot)
	if err == nil {
		b, err = lane.Ask(ctx, h, id, payload)
	}
	return b, p.sent(slot, refusalOf(err))
}

// AskAny is Ask of the instance to which TellAny would send; where that has certainly not handled it, of another one.
func (p *Partition) AskAny(ctx context.Context, payload []byte) (b []byte, err error) {
	err = p.offer(func(slot int) (err error) {
		b, err = p.AskAt(ctx, slot, payload)
		return err
	})
	return b, err
}

// Instance is one of a partition: its slot, and the node on which it was when it was asked.
type Instance struct {
	Slot int
	Node kith.ID
}

// Answer is what an instance has answered, or why the last of all answers is missing.
type Answer struct {
	Payload []byte // the caller's
	Err     error  // a *PartialError, of the last one, which is of no instance
}

// AskAll asks all instances, and yields each answer as it comes, until all have answered or failed, or ctx has ended.
// If fewer than least answered, the last answer yielded has a *PartialError that says which did not, and why. The asks
// go on when the loop is left.
func (p *Partition) AskAll(ctx context.Context, least int, payload []byte) iter.Seq2[Instance, Answer] {
	return func(yield func(Instance, Answer) bool) {
		slots, err := p.slots()
		if err != nil {
			yield(Instance{}, Answer{Err: err})
			return
		}
		type reply struct {
			of  Instance
			b   []byte
			err error
		}
		replies, bell := make(chan reply, len(slots)), make(chan struct{}, 1)
		row, node := p.row.Load(), p.hub.node
		for _, slot := range slots {
			spawn(node, func() {
				b, err := p.AskAt(ctx, slot, payload)
				replies <- reply{Instance{slot, target(&row.State, slot)}, b, err}
				node.Ring(bell)
			})
		}
		partial := &PartialError{Path: p.path, Of: len(slots), Least: least, Failed: map[int]error{}}
		for range slots {
			for len(replies) == 0 {
				node.Wait(context.Background(), ground.Forever, bell)
			}
			a := <-replies
			if a.err != nil {
				partial.Failed[a.of.Slot] = a.err
			} else if !yield(a.of, Answer{Payload: a.b}) {
				return
			}
		}
		if len(slots)-len(partial.Failed) < least {
			yield(Instance{}, Answer{Err: partial})
		}
	}
}

// PartialError says which instances did not get a message, or did not answer.
type PartialError struct {
	Path   string
	Of     int           // instances
	Least  int           // that had to answer; of AskAll
	Failed map[int]error // by slot; the caller's
}

// Error names the first of them.
func (e *PartialError) Error() string {
	for slot := range cluster.MaxInstances {
		if err := e.Failed[slot]; err != nil {
			return fmt.Sprintf("partition: %q: %d of %d instances failed, %d among them: %v", e.Path, len(e.Failed), e.Of,
				slot, err)
		}
	}
	return fmt.Sprintf("partition: %q: %d instances, %d are wanted", e.Path, e.Of, e.Least)
}

// Unwrap returns why, of all of them.
func (e *PartialError) Unwrap() (list []error) {
	for slot := range cluster.MaxInstances {
		if err := e.Failed[slot]; err != nil {
			list = append(list, err)
		}
	}
	return list
}

// sent counts a message that was accepted, and says where one failed that was not.
func (p *Partition) sent(slot int, err error) error {
	if err != nil {
		return fmt.Errorf("partition: %q: instance %d: %w", p.path, slot, err)
	}
	p.count.sent.Add(1)
	return nil
}

// way returns how a message gets to the instance of a slot.
func (p *Partition) way(r *row, slot int) (lane footing.Lane, h []byte, id string, err error) {
	if !r.ok || r.Epoch == 0 {
		return nil, nil, "", route.NotRun(ErrNotPlaced)
	}
	to := target(&r.State, slot)
	if to.IsZero() {
		return nil, nil, "", route.NotRun(ErrNoInstance)
	}
	f := frame{kind: isMessage, at: stampOf(&r.State), from: p.hub.self}
	h = appendFrame(make([]byte, 0, 64), &f)
	if r.InForce.New == cluster.NewBuffers {
		room := p.room.Load()
		if room == nil {
			return nil, nil, "", route.NotRun(ErrNotPlaced)
		}
		return room.lane, h, strconv.Itoa(slot), nil
	}
	id, ok := p.hub.ear(to, slot, p.path)
	if !ok {
		if now := p.row.by(newest, p.hub, p.path); now != r { // the instance is elsewhere, and the hub has not looked yet
			return p.way(now, slot)
		}
		// A hand-off is over when the old node and the leader know, and the word of which shards are on the new one may come
		// here later. Until then this sender counts as one that has not seen the hand-off: the old node sends on what comes,
		// or refuses it.
		if was := r.earlier(slot); p.hub.leads(was.node) {
			f.at = was.at
			id, _ = p.hub.ear(was.node, slot, p.path)
			return p.hub.pool, appendFrame(h[:0], &f), id, nil
		}
		return nil, nil, "", route.NotRun(fmt.Errorf("%w: %v", ErrUnreachable, to))
	}
	return p.hub.pool, h, id, nil
}

// slots returns those that have an instance which does not end; if all end, all.
func (p *Partition) slots() ([]int, error) {
	r := p.row.Load()
	if !r.ok || r.Epoch == 0 {
		return nil, route.NotRun(fmt.Errorf("%w: %q", ErrNotPlaced, p.path))
	}
	stay, all := make([]int, 0, len(r.Instances)), []int(nil)
	for slot := range r.Instances {
		switch {
		case lasting(&r.State, slot):
			stay = append(stay, slot)
		case !target(&r.State, slot).IsZero():
			all = append(all, slot)
		}
	}
	switch {
	case len(stay) > 0:
		return stay, nil
	case len(all) > 0:
		return all, nil
	}
	return nil, route.NotRun(fmt.Errorf("%w: %q has none", ErrNoInstance, p.path))
}

// slotOf returns the slot of a key: the one of the highest weight, so that of a slot that comes or goes no other keys
// change.
func (p *Partition) slotOf(key string) (int, error) {
	slots, err := p.slots()
	if err != nil {
		return 0, err
	}
	return choose(key, slots), nil
}

// choose is the rendezvous of a key with slots, of which there is one at least.
func choose(key string, slots []int) int {
	hash, best, most := hashOf(key), slots[0], uint64(0)
	for _, slot := range slots {
		if w := mix(hash ^ uint64(slot+1)*0x9e3779b97f4a7c15); w > most {
			best, most = slot, w
		}
	}
	return best
}

// hashOf is FNV-1a.
func hashOf(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// mix is the end of murmur3.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// offer gives a message to instances until one takes it: that of this node, then two others.
func (p *Partition) offer(send func(slot int) error) error {
	slots, err := p.slots()
	if err != nil {
		return err
	}
	s := &p.row.Load().State
	others := slots[:0:len(slots)]
	own := -1
	for _, slot := range slots {
		if target(s, slot) == p.hub.self {
			own = slot
		} else {
			others = append(others, slot)
		}
	}
	if own >= 0 {
		if err = send(own); err == nil || !next(err) {
			return err
		}
	}
	for i := len(others) - 1; i > 0; i-- {
		j := p.hub.node.Chance(int64(i + 1))
		others[i], others[j] = others[j], others[i]
	}
	if len(others) > 1 && p.hub.pool.Load(target(s, others[1])) < p.hub.pool.Load(target(s, others[0])) {
		others[0], others[1] = others[1], others[0]
	}
	for i, slot := range others {
		if err = send(slot); err == nil || !next(err) || i == 2 {
			return err
		}
	}
	return err
}

// next reports whether a message that failed so goes to another instance.
func next(err error) bool {
	return refusal(err) || !route.MayHaveRun(err) && plane.NextWorker(err)
}
