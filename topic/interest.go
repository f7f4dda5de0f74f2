// Interest: which nodes have subscribers, as this node says and hears it.

package topic

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kith-io/kith"
)

// declared is the interest in the topic as this node has it now.
func (t *Topic) declared(in interest) interest {
	me := t.shared.self
	switch want, has := t.subscribed(), in.Has(key(me)); {
	case want && !has:
		return in.Add(me, key(me))
	case !want && has:
		return in.Remove(key(me))
	}
	return in
}

// Known waits until all members know whether this node has subscribers. After it has returned nil, what any member
// publishes reaches those that have subscribed before. Errors: a *replicated.MissingError, which names the members that
// have not answered when ctx ends; ctx's; why the node has ended.
func (t *Topic) Known(ctx context.Context) error {
	return t.interest.change(ctx, true, t.declared)
}

// watch keeps the nodes to which messages go.
func (t *Topic) watch() {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	for v := range t.interest.Watch(ctx) {
		in := v.(interest)
		t.set(in)
		// Not declared yet, or a leader forgot this node that had not seen it join.
		if t.subscribed() && !in.Has(key(t.shared.self)) {
			t.shared.tell(t)
		}
	}
}

// set notes which nodes have subscribers, of those that are members.
func (t *Topic) set(in interest) {
	var nodes []kith.ID
	v := t.shared.node.View()
	if v == nil {
		return
	}
	for k := range in.All() {
		id, good := nodeOf(k)
		if m, ok := v.Member(id); good && ok && m.Status != kith.Down {
			nodes = append(nodes, id)
		}
	}
	slices.SortFunc(nodes, kith.ID.Compare)
	t.nodes.Store(&nodes)
}

// lateTime is how long after the removal of a publisher its messages are still expected: a stream that was dropped too
// early would begin anew, and count all that came before as missed.
const lateTime = time.Minute

// forget drops what is kept of nodes that are no members any more; the leader does so for all.
func (t *Topic) forget(ctx context.Context, v *kith.View) {
	gone := func(id kith.ID) bool { _, ok := v.Member(id); return !ok }
	t.mu.Lock()
	for id := range t.sent {
		if gone(id) {
			delete(t.sent, id)
		}
	}
	now := t.shared.node.Now()
	for id, s := range t.streams {
		switch {
		case !gone(id):
		case s.gone.IsZero():
			s.gone = now
		case now.Sub(s.gone) > lateTime:
			delete(t.streams, id)
		}
	}
	t.mu.Unlock()
	if v.Leader == t.shared.self {
		err := t.interest.change(ctx, false, func(in interest) interest {
			var dead []string
			for k := range in.All() {
				if id, ok := nodeOf(k); !ok || gone(id) {
					dead = append(dead, k)
				}
			}
			if len(dead) == 0 {
				return in
			}
			return in.Remove(dead...)
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			return // the next leader, or the next change, does it
		}
	}
	t.set(t.interest.get())
}
