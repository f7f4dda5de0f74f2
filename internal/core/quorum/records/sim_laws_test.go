// What the simulation demands: of each step, of each message that says what is decided, and when all is quiet.

package records

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/quorum"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// fact is a write that was acknowledged.
type fact struct {
	shard Shard
	fence route.Fence
	w     Write
}

// link is an entry of a history: what it was appended to.
type link struct {
	prev   uint64
	number uint64
	body   []byte
}

// saying is that an owner took a position for decided.
type saying struct {
	chain uint64
	by    Ballot
}

// watch looks at what owners of a machine take for decided, and at what its disk holds.
func (w *world) watch(n *node) {
	if w.plan.mistake != "" {
		w.pokes(n)
	}
	for _, o := range n.m.owners {
		all := w.chains[o.shard]
		switch o.phase {
		case writes:
			if _, ok := all[o.stamp.Chain]; !ok {
				body := o.window[len(o.window)-1]
				prev := w.begun[o]
				if prev.by != o.ballot {
					prev.chain = o.base.Chain
				}
				all[o.stamp.Chain] = link{prev.chain, o.stamp.Number, body}
				if e, err := readEntry(body); err == nil && e.set != nil {
					w.next[o.shard][o.stamp.Chain] = e.set
					if slices.ContainsFunc(n.m.carer.under, func(x caring) bool { return x.shard == o.shard }) {
						w.counts["cared"]++
					}
					w.sets[o.shard] = append(w.sets[o.shard], e.set)
				}
			}
			w.begun[o] = saying{o.stamp.Chain, o.ballot}
			if w.plan.mistake != "one-under-way" {
				w.tell(o, all[o.stamp.Chain].prev, o.stamp.Number-1)
			}
		case serves:
			w.tell(o, o.stamp.Chain, o.stamp.Number)
		}
	}
	for sh, h := range n.m.heads { // each is looked at alone
		was, now := n.seen[sh], *h
		if was.stamp == now.stamp && was.state == now.state {
			continue
		}
		n.seen[sh] = now
		if l, ok := w.chains[sh][now.stamp.Chain]; now.stamp.Number > 0 && (!ok || l.number != now.stamp.Number) {
			w.fault("HOLE: %v holds number %d, which follows nothing that was written", n.id, now.stamp.Number)
		}
		if was.state != 0 && !w.follows(sh, was.state, now.stamp.Chain) {
			w.fault("UNDONE: %v would have to take back what is in its state", n.id)
		}
	}
}

// follows reports whether a history begins with another one.
func (w *world) follows(sh Shard, first, chain uint64) bool {
	for ; chain != first; chain = w.chains[sh][chain].prev {
		if chain == 0 {
			return false
		}
	}
	return true
}

// tell notes that an owner holds a history to be decided, and may show it.
func (w *world) tell(o *owner, chain, number uint64) {
	told := w.told[o.shard]
	if s, ok := told[number+1]; ok && s.by.Compare(o.ballot) <= 0 {
		w.fault("LOST: %v serves %v without number %d, of which %v was told", o.fence, o.shard, number+1, s.by.Fence)
	}
	for ; number > 0; number-- {
		if s, ok := told[number]; ok {
			if s.chain != chain {
				w.fault("CONFLICT: number %d of %v is another one for %v than for %v", number, o.shard, o.fence, s.by.Fence)
			}
			return
		}
		told[number] = saying{chain, o.ballot}
		l, ok := w.chains[o.shard][chain]
		if !ok || l.number != number {
			w.fault("HOLE: %v serves a history of %v without number %d", o.fence, o.shard, number)
			return
		}
		w.decided(o.shard, l)
		chain = l.prev
	}
}

// decided: an entry was decided. With the one behind a change, the sets before count no more.
func (w *world) decided(sh Shard, l link) {
	set := w.next[sh][l.prev]
	if set == nil || w.plan.mistake != "" {
		return
	}
	list := w.sets[sh]
	if i := slices.IndexFunc(list, func(s peer.Set) bool { return s.Equal(set) }); i >= 0 {
		w.sets[sh] = list[i:]
	}
}

// ends: faults are over, the network is quiet, and each shard has one more owner, which finds all and writes.
func (w *world) ends() {
	w.quiet, w.cut = true, map[[2]int]bool{}
	for _, n := range w.nodes {
		n.disk.Room, n.leaving = 0, false
		if n.m == nil && !n.removed {
			w.start(n)
		}
	}
	w.foundAgain()
	w.members()
	w.run(w.now + 3*time.Second)
	w.clients = nil
	for i := range w.plan.shards {
		w.claim(Shard{"t", uint32(i)})
	}
	for _, want := range []string{"claim", "load", "commit"} {
		was := w.counts[want]
		for range 100 {
			for _, c := range slices.Clone(w.clients) {
				switch {
				case c.busy || w.counts[want] >= was+len(w.clients):
				case want == "claim" && !c.claimed, want == "load" && !c.loaded:
					w.acts(c)
				case want == "commit":
					w.commits(c, w.final(c))
				}
			}
			w.run(w.now + 200*time.Millisecond)
		}
		if w.counts[want] < was+len(w.clients) && len(w.faults) == 0 {
			w.fault("STUCK: no %s of the last owner succeeds: %v", want, w.counts)
		}
	}
	if len(w.ops) > 0 {
		w.fault("SILENT: %d requests without an outcome", len(w.ops))
	}
	for i := range w.plan.shards {
		w.equal(Shard{"t", uint32(i)})
	}
}

// final is the last write of a client.
func (w *world) final(c *client) []Write {
	if c.repeats != nil {
		return c.repeats
	}
	if c.busy || !c.loaded {
		return nil
	}
	w.last++
	x := Write{Record: Record{ID: fmt.Sprint("last", w.last), Version: 1 << 40}, New: true}
	x.Nonce[0] = 1
	return []Write{x}
}

// equal holds the disks of the last set against the history that was decided.
func (w *world) equal(sh Shard) {
	var o *owner
	for _, n := range w.nodes {
		if n.removed {
			continue
		}
		for _, x := range n.m.owners {
			if x.shard == sh && (o == nil || x.ballot.Compare(o.ballot) > 0) {
				o = x
			}
		}
	}
	if o == nil || len(w.faults) > 0 {
		return
	}
	var bodies [][]byte
	for chain := o.stamp.Chain; chain != 0; chain = w.chains[sh][chain].prev {
		bodies = append(bodies, w.chains[sh][chain].body)
	}
	slices.Reverse(bodies)
	want := quorum.Memory()
	for _, body := range bodies {
		done, _, err := apply(&view{disk: want}, "x", body)
		require.NoError(w.t, err)
		require.NoError(w.t, want.Commit(done.list()))
	}
	for _, id := range o.sets.Now {
		i := w.index(id)
		if w.plan.heals && w.lost.Has(id) {
			w.fault("UNHEALED: %v is a member of %v, and its disk is gone", id, sh)
		}
		if i < 0 || w.lost.Has(id) { // its disk was lost or damaged, and nobody has changed the set
			continue
		}
		m := w.nodes[i].m
		h, err := m.loaded(sh)
		if err != nil {
			w.fault("HOLE: %v of %v: %v", sh, id, err)
			continue
		}
		if h.stamp != o.stamp {
			w.fault("UNEQUAL: %v holds number %d of %v, the owner has %d", id, h.stamp.Number, sh, o.stamp.Number)
			continue
		}
		done, _, err := m.opened(&view{disk: m.disk}, sh, h)
		require.NoError(w.t, err)
		is := contents((&view{disk: m.disk}).with(done), sh.stateKey(h.place))
		if was := contents(&view{disk: want}, "x"); was != is {
			w.fault("HOLE: the state of %v at %v is not what was written", sh, id)
		}
	}
}

func contents(v *view, base string) string {
	var b strings.Builder
	v.each(base, "", func(key string, value []byte) bool {
		fmt.Fprintf(&b, "%x=%x\n", key[len(base):], value)
		return true
	})
	return b.String()
}
