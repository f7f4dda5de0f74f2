// A simulation of several replicas and owners on a hostile network and on disks that fail, and the laws that it holds
// them to.

package records

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/core/quorum"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// plan is what a simulation does.
type plan struct {
	nodes   int
	members int // of set 1
	shards  int
	steps   int
	crashes bool
	losses  int // of disks
	cuts    bool
	noisy   bool // messages are lost and doubled
	full    bool // disks are full for a while
	heals   bool // owners replace members that have lost their disks
	unowned int  // of the shards: the last ones; nobody claims them before the end, but some ask what waits in them
	bits    bool // bits of disks flip: the replica is mute about that shard, as if its disk was lost
	changes bool // of sets
	twins   bool // two processes write under one fence
	often   bool // faults and claims follow each other soon
	page    int
	window  int
	leaves  int // nodes that leave for good, one behind the other, when none needs their disks
	mistake string
}

// node is one of it: a disk, and a machine while its process runs.
type node struct {
	addr peer.Addr
	id   peer.ID
	disk *quorum.MemoryEngine
	m    *Machine
	seen map[Shard]head

	removed bool // for good
	leaving bool
	again   bool // it has asked once more
}

// flying is a message on its way.
type flight struct {
	at       time.Duration
	from, to peer.ID
	body     []byte
}

// client writes and reads one shard under one fence, at one node.
type client struct {
	node    int
	shard   Shard
	fence   route.Fence
	claimed bool
	knows   map[string]uint64
	loaded  bool
	busy    bool
	repeats []Write
}

// op is a request of a client.
type op struct {
	c      *client
	kind   string
	writes []Write
	set    peer.Set
	before int // how much was acknowledged when it began
}

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

// world is one simulation.
type world struct {
	t       *testing.T
	plan    plan
	cfg     Config
	rng     *rand.Rand
	now     time.Duration
	nodes   []*node
	net     []flight
	cut     map[[2]int]bool
	ops     map[uint64]*op
	last    uint64
	incs    uint64
	epoch   uint32
	clients []*client
	facts   []fact
	issued  map[string]bool
	gone    map[string]uint64             // by shard and id: the highest version of a deletion that was tried
	chains  map[Shard]map[uint64]link     // by chain
	told    map[Shard]map[uint64]saying   // by number
	begun   map[*owner]saying             // the chain before the entry under way
	sets    map[Shard][]peer.Set          // which must have a majority
	next    map[Shard]map[uint64]peer.Set // changes by chain
	lost    peer.Set
	losses  int
	trace   *xxhash.Digest
	faults  []string
	counts  map[string]int
	quiet   bool
	store   uint64
}

func newWorld(t *testing.T, p plan, seed uint64) *world {
	w := &world{t: t, plan: p, rng: rand.New(rand.NewPCG(seed, 37)), cut: map[[2]int]bool{}, ops: map[uint64]*op{},
		issued: map[string]bool{}, gone: map[string]uint64{}, chains: map[Shard]map[uint64]link{},
		told: map[Shard]map[uint64]saying{}, begun: map[*owner]saying{}, sets: map[Shard][]peer.Set{},
		next: map[Shard]map[uint64]peer.Set{}, trace: xxhash.New(), counts: map[string]int{}}
	w.cfg = Config{Again: 20 * time.Millisecond, Timeout: time.Second, Page: p.page, MaxWindow: p.window}
	if p.heals {
		w.cfg.ReplaceAfter = 500 * time.Millisecond
	}
	for i := range p.nodes {
		n := &node{addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7000", i+1)), disk: quorum.Memory()}
		w.nodes = append(w.nodes, n)
		w.start(n)
	}
	var first peer.Set
	for _, n := range w.nodes[:p.members] {
		first.Add(n.id)
	}
	require.NoError(t, w.nodes[0].m.Do(0, FoundCommand{Groups: []peer.Set{first}}))
	w.store = w.nodes[0].m.found.store
	w.founds(first)
	w.members()
	for i := range p.shards {
		sh := Shard{"t", uint32(i)}
		w.chains[sh], w.told[sh] = map[uint64]link{}, map[uint64]saying{}
		w.sets[sh], w.next[sh] = []peer.Set{first}, map[uint64]peer.Set{}
	}
	w.run(200 * time.Millisecond)
	return w
}

// start opens the machine of a node on its disk.
func (w *world) start(n *node) {
	w.incs++
	n.disk.Room = 0
	m, err := Open(w.cfg, "c/s", peer.ID{Addr: n.addr, Inc: w.incs}, n.disk, rand.New(rand.NewPCG(w.rng.Uint64(), 1)))
	require.NoError(w.t, err)
	n.m, n.id, n.seen, n.leaving = m, m.ID(), map[Shard]head{}, false
}

// members gives all that run the members, and which of them run.
func (w *world) members() {
	var all, up peer.Set
	for _, n := range w.nodes {
		if !n.removed && !n.leaving {
			all.Add(n.id)
		}
		if n.m != nil {
			up.Add(n.id)
		}
	}
	for _, n := range w.nodes {
		if n.m != nil {
			require.NoError(w.t, n.m.Do(w.now, MembersCommand{all, up}))
		}
	}
}

// leave has a node begin to leave, where enough others stay. One that has lent nothing, while all others run and care
// for nothing, goes, when it has asked once more.
func (w *world) leave() {
	stay, going := 0, 0
	for _, n := range w.nodes {
		switch {
		case n.leaving:
			going++
		case !n.removed:
			stay++
		}
	}
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	if n.m != nil && going == 0 && stay > w.plan.members && w.counts["leaves"] < w.plan.leaves && w.rng.IntN(8) == 0 {
		w.counts["leaves"]++
		n.leaving, n.again = true, false
		w.members()
	}
	for _, n := range w.nodes {
		busy := func(x *node) bool { return x != n && !x.removed && (x.m == nil || x.m.Caring()) }
		switch {
		case !n.leaving || n.m == nil || n.m.Lent() > 0 || slices.ContainsFunc(w.nodes, busy):
		case !n.again:
			n.again = true
			n.m.LendAgain()
		default:
			if !w.spares(n.id) {
				w.fault("THIN: %v leaves, and a set that counts has no majority then", n.id)
			}
			w.counts["left"]++
			w.crash(n)
			n.removed, n.leaving = true, false
			w.lost.Add(n.id)
			w.members()
			at := slices.Index(w.nodes, n)
			w.clients = slices.DeleteFunc(w.clients, func(c *client) bool { return c.node == at })
		}
	}
}

func (w *world) index(id peer.ID) int {
	return slices.IndexFunc(w.nodes, func(n *node) bool { return n.id == id })
}

// fault notes a law that was broken.
func (w *world) fault(text string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf("%v: ", w.now)+fmt.Sprintf(text, args...))
}

// drain does what a machine wants done, but for its disk.
func (w *world) drain(i int) {
	var e Effects
	w.nodes[i].m.Drain(&e)
	for _, x := range e.Sends {
		w.post(i, x)
	}
	for _, o := range e.Done {
		w.done(o)
	}
}

// settle does what a machine wants done. What owners send leaves before the disk has anything.
func (w *world) settle(i int) {
	n := w.nodes[i]
	if n.m == nil {
		return
	}
	w.watch(n)
	w.drain(i)
	if w.plan.crashes && w.plan.mistake == "" && !w.quiet && w.rng.IntN(1000) == 0 {
		w.counts["crashes before a sync"]++
		w.crash(n)
		return
	}
	if err := n.m.Sync(); err != nil {
		w.counts["failed commits"]++
		if !errors.Is(err, quorum.ErrFull) {
			w.fault("DISK: %v", err)
		}
	}
	w.watch(n)
	w.drain(i)
	s := n.m.Stats()
	if s.Requests > n.m.cfg.MaxRequests || s.Copies > 2*n.m.cfg.MaxCopies || s.Shards > n.m.cfg.MaxShards {
		w.fault("UNBOUNDED: %+v", s)
	}
}

// post sends a message, which may be lost, late and doubled.
func (w *world) post(from int, x Mail) {
	to := w.index(x.To)
	if w.plan.mistake != "" && !w.tampers(from, &x) {
		return
	}
	if to < 0 || w.cut[[2]int{from, to}] || w.plan.noisy && !w.quiet && w.rng.IntN(20) == 0 {
		return
	}
	for range 1 + w.rng.IntN(20)/19 {
		late := time.Duration(1+w.rng.IntN(10)) * time.Millisecond
		if w.plan.noisy && w.rng.IntN(30) == 0 {
			late *= 50
		}
		w.net = append(w.net, flight{w.now + late, w.nodes[from].id, x.To, x.Body})
	}
}

// run lets time go by until then.
func (w *world) run(until time.Duration) {
	for w.now < until {
		at := until
		for _, f := range w.net {
			at = min(at, f.at)
		}
		for _, n := range w.nodes {
			if n.m != nil {
				if next, ok := n.m.Next(); ok {
					at = min(at, next)
				}
			}
		}
		w.now = max(at, w.now+1)
		var later, due []flight
		for _, f := range w.net {
			if f.at > w.now {
				later = append(later, f)
			} else {
				due = append(due, f)
			}
		}
		w.net = later
		for _, f := range due {
			if to := w.index(f.to); to >= 0 && w.nodes[to].m != nil {
				w.deliver(to, f)
			}
		}
		for i, n := range w.nodes {
			if n.m != nil {
				if at, ok := n.m.Next(); ok && at <= w.now {
					n.m.Tick(w.now)
				}
				w.settle(i)
			}
		}
	}
}

// deliver hands a message over. Several may come before a Sync.
func (w *world) deliver(to int, f flight) {
	n := w.nodes[to]
	_, _ = w.trace.Write(f.body)
	body := bytes.Clone(f.body)
	after := func() {}
	if w.plan.mistake != "" {
		after = w.misleads(to, &f, &body)
		if after == nil {
			return
		}
	}
	require.NoError(w.t, n.m.Handle(w.now, f.from, body))
	w.watch(n)
	if w.plan.mistake != "" || w.rng.IntN(2) == 0 {
		w.settle(to)
	}
	after()
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

// do begins a request of a client.
func (w *world) do(c *client, o *op, cmd func(number uint64) Command) {
	w.last++
	n := w.nodes[c.node]
	o.c, o.before = c, len(w.facts)
	if err := n.m.Do(w.now, cmd(w.last)); err != nil {
		w.counts[err.Error()]++
		return
	}
	c.busy = true
	w.ops[w.last] = o
	w.settle(c.node)
}

var ids = []string{"a", "b", "c"}

// acts has a client do something.
func (w *world) acts(c *client) {
	n := w.nodes[c.node]
	if n.m == nil || c.busy {
		return
	}
	switch k := w.rng.IntN(10); {
	case !c.claimed:
		w.do(c, &op{kind: "claim"}, func(x uint64) Command { return ClaimCommand{x, c.shard, c.fence} })
	case c.repeats != nil:
		w.commits(c, c.repeats)
	case k < 4 || !c.loaded:
		w.do(c, &op{kind: "load"}, func(x uint64) Command {
			return ReadCommand{x, c.shard, c.fence, Query{Ask: AskRecords, IDs: ids}}
		})
	case w.plan.changes && (k == 4 || w.plan.often && k > 6):
		set := w.draws()
		w.do(c, &op{kind: "change", set: set}, func(x uint64) Command { return ChangeCommand{x, c.shard, c.fence, set} })
	case k == 5:
		w.do(c, &op{kind: "due"}, func(x uint64) Command {
			return ReadCommand{x, c.shard, route.Fence{}, Query{Ask: AskDue, By: 1 << 40, First: true, Most: 100}}
		})
	default:
		w.commits(c, w.writes(c))
	}
}

// draws draws a set of disks that were not lost.
func (w *world) draws() (s peer.Set) {
	for len(s) < w.plan.members {
		if n := w.nodes[w.rng.IntN(len(w.nodes))]; !n.removed {
			s.Add(n.id)
		}
	}
	return s
}

// writes draws what a client writes, on top of what it knows.
func (w *world) writes(c *client) (list []Write) {
	for _, id := range ids {
		if w.rng.IntN(2) == 0 {
			continue
		}
		w.last++
		x := Write{New: c.knows[id] == 0,
			Record: Record{ID: id, Version: c.knows[id] + 1, State: fmt.Appendf(nil, "%d", w.last)}}
		x.Nonce[0], x.Nonce[1], x.Nonce[2], x.Nonce[3] = 1, byte(w.last), byte(w.last>>8), byte(w.last>>16)
		if x.New {
			x.Version = c.knows["floor"] + 1
		}
		if x.Delete = w.rng.IntN(6) == 0; x.Delete {
			x.State = nil
		}
		x.Alarm, x.Due = w.rng.IntN(2) == 0, int64(w.last)
		if w.rng.IntN(3) == 0 {
			x.Marks = []Mark{{From: "m", Number: w.last, At: int64(w.last)}}
		}
		w.issued[fmt.Sprint(c.shard, id, x.Version, string(x.State))] = true
		if x.Delete {
			key := fmt.Sprint(c.shard, id)
			w.gone[key] = max(w.gone[key], x.Version)
		}
		list = append(list, x)
	}
	return list
}

func (w *world) commits(c *client, list []Write) {
	if len(list) > 0 {
		w.do(c, &op{kind: "commit", writes: list}, func(x uint64) Command {
			return CommitCommand{x, c.shard, c.fence, list}
		})
	}
}

// done judges an outcome.
func (w *world) done(out Outcome) {
	p := w.ops[out.Number]
	delete(w.ops, out.Number)
	fmt.Fprintf(w.trace, "%d %v %v %d", out.Number, out.Err, out.Last, len(out.Answer.Records))
	if p == nil {
		w.fault("TWICE: an outcome of number %d", out.Number)
		return
	}
	c := p.c
	c.busy = false
	if out.Err != nil {
		w.counts[p.kind+": "+out.Err.Error()]++
		w.failed(p, out.Err)
		return
	}
	w.counts[p.kind]++
	switch p.kind {
	case "claim":
		if c.claimed = true; out.Last.Compare(c.fence) >= 0 {
			w.fault("LAST: %v follows %v", c.fence, out.Last)
		}
		c.knows["floor"] = out.Answer.Floor
	case "load":
		w.hasRead(p, out)
	case "commit":
		c.repeats = nil
		for _, x := range p.writes {
			w.acknowledged(c, x)
		}
	}
}

// failed: a client goes on after an error.
func (w *world) failed(p *op, err error) {
	c := p.c
	switch {
	case errors.Is(err, ErrFenced), errors.Is(err, ErrUnclaimed):
		if errors.Is(err, ErrUnclaimed) && c.claimed {
			w.fault("LOST: the claim of %v", c.fence)
		}
		w.clients = slices.DeleteFunc(w.clients, func(x *client) bool { return x == c })
	case errors.Is(err, ErrVersion):
		c.loaded, c.repeats = false, nil
	case errors.Is(err, ErrTimeout) && p.kind == "commit":
		c.repeats = p.writes
	}
}

// acknowledged notes a write.
func (w *world) acknowledged(c *client, x Write) {
	for _, f := range w.facts {
		if f.shard == c.shard && f.w.ID == x.ID && f.w.Version == x.Version && f.w.Nonce != x.Nonce &&
			!f.w.Delete && !x.Delete {
			w.fault("CONFLICT: %s of %v has two writes of version %d", x.ID, c.shard, x.Version)
		}
	}
	w.facts = append(w.facts, fact{c.shard, c.fence, x})
	c.knows[x.ID] = x.Version
	if x.Delete {
		c.knows[x.ID] = 0
		c.knows["floor"] = max(c.knows["floor"], x.Version)
	}
}

// hasRead holds a read against what was acknowledged before it began.
func (w *world) hasRead(p *op, out Outcome) {
	c := p.c
	c.loaded = true
	for _, id := range ids[:out.Answer.Done] {
		i := slices.IndexFunc(out.Answer.Records, func(r Record) bool { return r.ID == id })
		var is Record
		if i >= 0 {
			is = out.Answer.Records[i]
			if !w.issued[fmt.Sprint(c.shard, id, is.Version, string(is.State))] {
				w.fault("NOWHERE: %s has %d %q", id, is.Version, is.State)
			}
		}
		c.knows[id] = is.Version
		for _, f := range w.facts[:p.before] {
			gone := w.gone[fmt.Sprint(c.shard, id)]
			if f.shard != c.shard || f.w.ID != id || is.Version >= f.w.Version || i < 0 && gone >= f.w.Version {
				continue
			}
			law := "LOST"
			if f.fence.Compare(c.fence) > 0 {
				law = "STALE"
			}
			w.fault("%s: %v reads version %d of %s in %v, and %d of %v was acknowledged", law, c.fence, is.Version, id,
				c.shard, f.w.Version, f.fence)
		}
	}
}

// claims gives a shard another owner. The one before goes on until it is fenced.
func (w *world) claim(sh Shard) *client {
	w.epoch++
	at := w.rng.IntN(len(w.nodes))
	for w.nodes[at].removed {
		at = w.rng.IntN(len(w.nodes))
	}
	c := &client{node: at, shard: sh, fence: route.MakeFence(1, 1, w.epoch),
		knows: map[string]uint64{}}
	w.clients = append(w.clients, c)
	if w.plan.twins {
		d := *c
		d.node, d.knows = (c.node+1)%len(w.nodes), map[string]uint64{}
		w.clients = append(w.clients, &d)
	}
	return c
}

// disturb breaks something.
func (w *world) disturb() {
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	switch w.rng.IntN(6) {
	case 0:
		if w.plan.crashes {
			w.crash(n)
		}
	case 1:
		for _, n := range w.nodes {
			if n.m == nil && !n.removed {
				w.start(n)
			}
		}
		w.members()
	case 2:
		if w.plan.cuts {
			i, alone := w.rng.IntN(len(w.nodes)), w.rng.IntN(2) == 0
			w.cut[[2]int{i, w.rng.IntN(len(w.nodes))}] = true
			for j := range w.nodes {
				if alone && j != i {
					w.cut[[2]int{i, j}], w.cut[[2]int{j, i}] = true, true
				}
			}
		}
	case 3:
		w.cut = map[[2]int]bool{}
		for _, n := range w.nodes {
			n.disk.Room = 0
		}
	case 4:
		if w.losses < w.plan.losses && w.now > time.Second && !n.removed && w.spares(n.id) {
			w.losses++
			w.lose(n)
		}
	case 5:
		if w.plan.bits && w.losses < w.plan.losses && w.now > time.Second && w.spares(n.id) {
			w.losses++
			w.flips(n)
		}
		if w.plan.full {
			n.disk.Room = n.disk.Bytes() + 1
		}
		if w.plan.often && w.plan.crashes && w.rng.IntN(3) == 0 {
			for _, n := range w.nodes { // power fails everywhere
				w.crash(n)
			}
			for _, n := range w.nodes {
				if !n.removed {
					w.start(n)
				}
			}
			w.members()
		}
	}
}

// spares reports whether majorities live of all sets that count without this disk.
func (w *world) spares(id peer.ID) bool {
	for i := range w.plan.shards {
		for _, set := range w.sets[Shard{"t", uint32(i)}] {
			left := 0
			for _, x := range set {
				if x != id && !w.lost.Has(x) {
					left++
				}
			}
			if left < len(set)/2+1 {
				return false
			}
		}
	}
	return true
}

// crash ends a process. Its clients may go on when it runs again, without a claim.
func (w *world) crash(n *node) {
	if n.m == nil {
		return
	}
	n.m = nil
	w.torn(n)
	i := slices.Index(w.nodes, n)
	for number, o := range w.ops { // a set in, a set out: no order
		if o.c.node == i {
			delete(w.ops, number)
			o.c.busy = false
			if o.kind == "commit" {
				o.c.repeats = o.writes
			}
		}
	}
	w.members()
}

// lose has a node start with an empty disk.
func (w *world) lose(n *node) {
	w.crash(n)
	was := n.id
	n.disk = quorum.Memory()
	if w.plan.mistake == "disk-is-identity" {
		m, err := Open(w.cfg, "c/s", was, n.disk, rand.New(rand.NewPCG(w.rng.Uint64(), 1)))
		require.NoError(w.t, err)
		n.m, n.seen = m, map[Shard]head{}
	} else {
		w.lost.Add(was)
		w.start(n)
	}
	w.members()
}

// flips has a node start on a disk on which one bit has changed, of a head or of the entry beside the state.
func (w *world) flips(n *node) {
	w.crash(n)
	sh := Shard{"t", uint32(w.rng.IntN(w.plan.shards))}
	key := []byte([]string{headKey, entryKey}[w.rng.IntN(2)] + sh.key())
	if b, _ := n.disk.Get(key); b != nil {
		b = bytes.Clone(b)
		b[w.rng.IntN(len(b))] ^= 1 << w.rng.IntN(8)
		require.NoError(w.t, n.disk.Commit([]Change{{Key: key, Value: b}}))
		w.lost.Add(n.id)
	}
	w.start(n)
	w.members()
}

// simulate runs a plan: clients and faults, then quiet, then the laws of what is left.
func simulate(t *testing.T, p plan, seed uint64) *world {
	w := newWorld(t, p, seed)
	for range p.steps {
		w.run(w.now + time.Duration(1+w.rng.IntN(30))*time.Millisecond)
		if len(w.clients) < p.shards || w.rng.IntN(25) == 0 || p.often && w.rng.IntN(5) == 0 {
			w.claim(Shard{"t", uint32(w.rng.IntN(p.shards - p.unowned))})
		}
		if p.unowned > 0 && w.rng.IntN(10) == 0 {
			if i := w.rng.IntN(len(w.nodes)); w.nodes[i].m != nil {
				w.asks(i, Shard{"t", uint32(p.shards - 1 - w.rng.IntN(p.unowned))})
			}
		}
		for _, c := range slices.Clone(w.clients) {
			if w.rng.IntN(2) == 0 {
				w.acts(c)
			}
		}
		if p.leaves > w.counts["left"] {
			w.leave()
		}
		if often := 12 + 3*p.leaves; w.rng.IntN(often) == 0 || p.often && w.rng.IntN(3) == 0 {
			w.disturb()
		}
		if len(w.faults) > 0 {
			return w
		}
	}
	w.ends()
	return w
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

// plans are what is simulated, by name.
func plans() map[string]plan {
	return map[string]plan{
		"three": {nodes: 3, members: 3, shards: 2, steps: 200, crashes: true, cuts: true, noisy: true},
		"five": {nodes: 6, members: 5, shards: 1, steps: 150, crashes: true, cuts: true, noisy: true, losses: 2,
			changes: true},
		"changes": {nodes: 5, members: 3, shards: 2, steps: 200, crashes: true, noisy: true, changes: true, losses: 2,
			page: 100, window: 100},
		"twins": {nodes: 3, members: 3, shards: 1, steps: 150, crashes: true, noisy: true, twins: true},
		"heals": {nodes: 5, members: 3, shards: 2, steps: 200, crashes: true, noisy: true, heals: true, losses: 4,
			page: 100, window: 100},
		"unowned": {nodes: 6, members: 3, shards: 4, steps: 300, crashes: true, cuts: true, noisy: true, heals: true,
			losses: 6, unowned: 2, often: true, page: 100},
		"leaves": {nodes: 7, members: 3, shards: 4, steps: 800, crashes: true, cuts: true, noisy: true, heals: true,
			losses: 1, leaves: 8, unowned: 2, page: 100},
		"bits":  {nodes: 4, members: 3, shards: 2, steps: 150, crashes: true, noisy: true, bits: true, losses: 1},
		"full":  {nodes: 4, members: 3, shards: 2, steps: 150, crashes: true, noisy: true, full: true, page: 64},
		"power": {nodes: 4, members: 3, shards: 1, steps: 300, crashes: true, cuts: true, often: true, changes: true},
	}
}

// seeds simulates a plan under many seeds, some of them twice, which gives the same bytes.
func seeds(t *testing.T, many, twice uint64) {
	first := uint64(0)
	if drawn := os.Getenv("KITH_QUORUM_SEEDS"); drawn != "" { // first,many: others than those of each run
		_, err := fmt.Sscanf(drawn, "%d,%d", &first, &many)
		require.NoError(t, err)
	}
	for name, p := range plans() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			commits, loads, cared, left := 0, 0, 0, 0
			for seed := first; seed < first+many; seed++ {
				w := simulate(t, p, seed)
				require.Empty(t, w.faults, "seed %d", seed)
				commits += w.counts["commit"]
				loads += w.counts["load"]
				cared += w.counts["cared"]
				left += w.counts["left"]
				if seed < first+twice {
					require.Equal(t, w.trace.Sum64(), simulate(t, p, seed).trace.Sum64(), "seed %d", seed)
				}
			}
			t.Logf("%d commits, %d loads, %d changes of shards without an owner", commits, loads, cared)
			if p.leaves > 0 {
				require.Greater(t, left, int(many)/2)
			}
			if p.unowned > 0 {
				require.Greater(t, cared, int(many)/2)
			}
			require.Greater(t, commits, 2*int(many))
			require.Greater(t, loads, 2*int(many))
		})
	}
}

// TestSimulation holds the laws of fenced records on a hostile network, on disks that are lost, full and damaged
// (DYN-1).
func TestSimulation(t *testing.T) { seeds(t, long.Fewer(20), 3) }

// TestLongSimulation is the same over sixty seeds of each plan, each twice (DYN-1).
func TestLongSimulation(t *testing.T) {
	long.Test(t)
	seeds(t, 60, 60)
}
