// Mistakes that are planted in what replicas and owners do, by changing what they say, hold or take for decided: each
// breaks the law that the model names.

package records

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
)

// founds is the mistake that a second member founds the store, by a table that names other members.
func (w *world) founds(first peer.Set) {
	if w.plan.mistake != "founded-once" {
		return
	}
	var other peer.Set
	for i := range first {
		other.Add(w.nodes[len(w.nodes)-1-i].id)
	}
	m := w.nodes[len(w.nodes)-1].m
	f := found{w.store, []peer.Set{other}}
	require.NoError(w.t, m.write(&f))
	for _, n := range w.nodes[1 : len(w.nodes)-1] { // one half believes one, one half the other
		if f := w.nodes[0].m.found; other.Has(n.id) {
			f.groups = []peer.Set{other}
			require.NoError(w.t, n.m.write(&f))
		}
	}
}

// read decodes a message of the simulation.
func (w *world) decode(body []byte) *message {
	cfg := w.cfg.WithDefaults()
	m, _, err := readMessage(bytes.Clone(body), &cfg)
	require.NoError(w.t, err)
	return m
}

// forge has a message arrive that was not sent.
func (w *world) forge(from, to peer.ID, x *message) {
	w.net = append(w.net, flight{w.now + 1, from, to, x.append(nil, w.store)})
}

// tampers changes what is sent, and reports whether it is.
func (w *world) tampers(from int, mail *Mail) bool {
	n, x := w.nodes[from], w.decode(mail.Body)
	switch w.plan.mistake {
	case "whole-history":
		return x.kind != pull
	case "answers-tell-sets":
		if x.kind == promised {
			x.sets = Sets{Now: n.m.found.setOf(x.shard)}
		}
	case "proposed-is-none": // what anybody has heard of is in force
		if x.kind == promised {
			x.sets.At = 0
		}
	case "old-majority":
		if x.kind == promised && x.sets.At == x.stamp.Number {
			x.sets.Prior = x.sets.Now
		}
	case "new-majority":
		if x.kind == promised && x.sets.At == x.stamp.Number && x.sets.At > 0 {
			x.sets.Now = x.sets.Prior
		}
	case "sets-of-disks":
		if x.kind == promised {
			x.sets = Sets{Now: w.table(int(n.id.Inc))}
		}
	case "own-sets":
		if x.kind == promised {
			other := Shard{x.shard.Type, 1 - x.shard.N}
			if h := n.m.heads[other]; h != nil && h.stamp.Number > 0 {
				x.sets = h.current()
				x.sets.At = 0
			}
		}
	case "copy-refused", "copy-stamped":
		if x.code == no && (x.kind == wrote || x.kind == promised || x.kind == answered) {
			return false // refusals are lost
		}
		if x.kind == part && x.code == yes { // and copies are late
			w.net = append(w.net, flight{w.now + 300*time.Millisecond, n.id, mail.To, mail.Body})
			return false
		}
	}
	mail.Body = x.append(nil, n.m.found.store)
	return w.tampersMore(n, mail, x)
}

// tampersMore is the rest of tampers.
func (w *world) tampersMore(n *node, mail *Mail, x *message) bool {
	switch w.plan.mistake {
	case "acks-unwritten":
		if x.kind == write && w.rng.IntN(3) == 0 {
			s := x.stamp
			s.Ballot = x.ballot
			for _, body := range x.entries {
				s.Number, s.Chain = s.Number+1, chained(s.Chain, body)
			}
			w.forge(mail.To, n.id, &message{kind: wrote, shard: x.shard, ballot: x.ballot, promise: x.ballot, stamp: s,
				results: make([]result, 9)})
			return false
		}
	}
	mail.Body = x.append(nil, n.m.found.store)
	return true
}

// table is the set that the table of a node names.
func (w *world) table(seed int) (s peer.Set) {
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	for len(s) < w.plan.members {
		s.Add(w.nodes[rng.IntN(len(w.nodes))].id)
	}
	return s
}

// misleads changes what a replica holds before a message comes, and returns what to do behind it; nil: it is lost.
func (w *world) misleads(to int, f *flight, body *[]byte) func() {
	n, x := w.nodes[to], w.decode(*body)
	nothing := func() {}
	h := n.m.heads[x.shard]
	if h == nil {
		h = &head{sets: Sets{Now: n.m.found.setOf(x.shard)}, fresh: true}
	}
	if len(n.m.inbox) > 0 { // what it holds is not yet what it will
		w.settle(to)
		if h = n.m.heads[x.shard]; h == nil {
			return nothing
		}
	}
	lower := h.stamp.Ballot.Compare(x.ballot) < 0 && h.promise.Compare(x.ballot) <= 0
	switch mistake := w.plan.mistake; {
	case mistake == "batch-promises" && x.kind == write:
		was := h.promise
		return func() { w.alters(n, x.shard, func(h *head) { h.promise = was }) }
	case mistake == "no-gap" && x.kind == write && h.stamp.Ballot == x.ballot && len(x.entries) > 0 &&
		h.stamp.Number+1 < x.number:
		w.alters(n, x.shard, func(h *head) { h.stamp.Number = x.number - 1 })
	case mistake == "same-fence-before" && x.kind == write && lower && h.stamp.Number == x.stamp.Number && !h.fresh:
		w.alters(n, x.shard, func(h *head) { h.stamp.Chain = x.stamp.Chain })
	case mistake == "newcomer-catches-up" && x.kind == write && h.stamp.Number == 0 && x.stamp.Number > 0:
		w.alters(n, x.shard, func(h *head) { h.stamp, h.state = x.stamp, x.stamp.Chain })
	case mistake == "beyond-goes" && x.kind == write && lower && h.entry != nil &&
		h.stamp.Number == x.stamp.Number+1 && h.state == x.stamp.Chain:
		w.alters(n, x.shard, func(h *head) { h.promise, h.stamp.Ballot = x.ballot, x.ballot })
		s := x.stamp
		s.Ballot = x.ballot
		w.forge(n.id, f.from, &message{kind: wrote, shard: x.shard, ballot: x.ballot, promise: x.ballot, stamp: s})
		return nil
	case mistake == "copy-stamped" && x.kind == part && x.code == yes && h.promise.Compare(x.stamp.Ballot) > 0:
		x.stamp.Ballot = h.promise
		*body = x.append(nil, w.store)
	case mistake == "promise-on-disk" && x.kind == claim && w.rng.IntN(3) == 0:
		return func() {
			w.crash(n)
			w.start(n)
			w.members()
		}
	case mistake == "copy-refused" && x.kind == part && x.code == yes && h.promise.Compare(x.stamp.Ballot) > 0:
		was := h.promise
		w.alters(n, x.shard, func(h *head) { h.promise, h.stamp.Ballot = x.stamp.Ballot, Ballot{} })
		return func() { w.alters(n, x.shard, func(h *head) { h.promise = was }) }
	}
	return nothing
}

// alters changes a head, on the disk too.
func (w *world) alters(n *node, sh Shard, f func(*head)) {
	h := &head{sets: Sets{Now: n.m.found.setOf(sh)}}
	if is := n.m.heads[sh]; is != nil {
		*h = *is
	}
	f(h)
	n.m.heads[sh] = h
	require.NoError(w.t, n.disk.Commit([]Change{{Key: []byte(headKey + sh.key()), Value: h.bytes(sh)}}))
}

// pokes has owners take for decided what is not.
func (w *world) pokes(n *node) {
	for _, o := range slices.Clone(n.m.owners) {
		at := o.sets.At == o.stamp.Number && o.stamp.Number > 0
		switch w.plan.mistake {
		case "rewrite-first":
			if o.phase == rewrites {
				n.m.decides(o)
			}
		case "one-under-way":
			if _, ok := w.chains[o.shard][o.stamp.Chain]; ok && o.phase == writes && w.rng.IntN(4) == 0 {
				w.last++
				w.ops[w.last] = &op{c: &client{}, kind: "another"}
				r := &request{number: w.last, kind: committing, body: appendForget(nil, 0, int(w.last%100)+1),
					deadline: w.now + w.cfg.Timeout}
				n.m.pending, n.m.bytes = n.m.pending+1, n.m.bytes+len(r.body)
				w.begun[o] = saying{o.stamp.Chain, o.ballot}
				for _, r := range o.flying {
					if r != nil {
						n.m.done(r, Outcome{Err: ErrTimeout})
					}
				}
				o.flying, o.waiting, o.phase = nil, append([]*request{r}, o.waiting...), serves
				n.m.begins(o)
			}
		case "old-majority":
			if at {
				o.sets.Prior = o.sets.Now
			}
		case "new-majority":
			if prior := (Sets{Now: o.sets.Prior}); at && o.phase == writes && prior.decided(o.stamp.Number, o.holds) {
				n.m.decides(o)
			}
		case "reads-ask":
			for _, r := range o.reads {
				for _, id := range r.poll.all {
					if r.id != 0 && !r.poll.said(id) && id != n.id {
						r.poll.heard = append(r.poll.heard, heard{id, true, &message{kind: answered, code: without}})
					}
				}
			}
		}
	}
}

// torn has a disk lose, in a crash, what it must not.
func (w *world) torn(n *node) {
	if w.plan.mistake != "promise-on-disk" && w.plan.mistake != "beside-the-state" {
		return
	}
	for _, sh := range []Shard{{"t", 0}, {"t", 1}} {
		b, _ := n.disk.Get([]byte(headKey + sh.key()))
		entry, _ := n.disk.Get([]byte(entryKey + sh.key()))
		if b == nil {
			continue
		}
		h, err := readHead(sh, bytes.Clone(b), bytes.Clone(entry))
		require.NoError(w.t, err)
		switch {
		case w.plan.mistake == "promise-on-disk":
			h.promise = h.stamp.Ballot
		case w.plan.mistake == "beside-the-state" && h.entry != nil:
			h.stamp.Number, h.stamp.Chain, h.entry = h.stamp.Number-1, h.state, nil
		}
		require.NoError(w.t, n.disk.Commit([]Change{{Key: []byte(headKey + sh.key()), Value: h.bytes(sh)}}))
	}
}

// TestMistakesAreFound plants what happens without the rules of the protocol, and more: each breaks the law that it
// must (DYN-1).
func TestMistakesAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it holds the laws of the simulation, not the code")
	}
	noisy := plan{nodes: 3, members: 3, shards: 1, steps: 200, crashes: true, cuts: true, noisy: true, often: true}
	changes := plan{nodes: 6, members: 3, shards: 2, steps: 200, noisy: true, changes: true, often: true, cuts: true}
	with := func(p plan, change func(*plan)) plan {
		change(&p)
		return p
	}
	same := func(*plan) {}
	for _, c := range []struct {
		mistake string
		plan    plan
		law     string
	}{
		{"rewrite-first", noisy, "LOST|CONFLICT"},
		{"promise-on-disk", noisy, "LOST|CONFLICT"},
		{"batch-promises", noisy, "LOST|CONFLICT"},
		{"no-gap", noisy, "HOLE"},
		{"same-fence-before", noisy, "CONFLICT|HOLE|UNDONE|LOST"},
		{"beyond-goes", noisy, "CONFLICT|LOST|HOLE"},
		{"whole-history", with(noisy, func(p *plan) { p.window = 100 }), "STUCK|UNEQUAL"},
		{"one-under-way", noisy, "UNDONE"},
		{"beside-the-state", noisy, "LOST|CONFLICT"},
		{"old-majority", changes, "LOST|CONFLICT"},
		{"new-majority", changes, "LOST|CONFLICT"},
		{"sets-of-disks", changes, "LOST|CONFLICT"},
		{"proposed-is-none", changes, "LOST|CONFLICT"},
		{"answers-tell-sets", changes, "LOST|CONFLICT"},
		{"newcomer-catches-up", changes, "HOLE"},
		{"disk-is-identity", with(noisy, func(p *plan) { p.losses = 3 }), "LOST|CONFLICT"},
		{"own-sets", changes, "LOST|CONFLICT"},
		{"copy-refused", with(noisy, func(p *plan) { p.window, p.page = 100, 64 }), "LOST|CONFLICT"},
		{"copy-stamped", with(noisy, func(p *plan) { p.window, p.page = 100, 64 }), "LOST|CONFLICT|HOLE"},
		{"reads-ask", noisy, "STALE"},
		{"founded-once", with(changes, func(p *plan) { p.changes = false }), "LOST|CONFLICT"},
		{"acks-unwritten", noisy, "LOST|CONFLICT"},
	} {
		t.Run(c.mistake, func(t *testing.T) {
			t.Parallel()
			p := with(c.plan, same)
			p.mistake = c.mistake
			law, others := regexp.MustCompile(c.law), []string(nil)
			for seed := range uint64(400) {
				p.often = seed%2 == 0 // faults and claims follow each other soon, or not
				w := simulate(t, p, seed)
				if found := strings.Join(w.faults, "\n"); law.MatchString(found) {
					t.Logf("seed %d: %s", seed, w.faults[0])
					return
				} else if found != "" {
					others = append(others, w.faults[0])
				}
			}
			t.Fatalf("nobody noticed; others: %.500v", others)
		})
	}
}
