// A simulation of several replicas and owners on a hostile network and on disks that fail. Its clients and its laws are
// in files beside it.

package records

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/core/quorum"
	"github.com/kith-io/kith/peer"
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

var ids = []string{"a", "b", "c"}

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

// foundAgain founds the store as before, where the one disk that had heard of it was lost before it told anybody. On
// real nodes each knows with which disks the store began, and so founds it by itself (quorum/loop.go).
func (w *world) foundAgain() {
	if slices.ContainsFunc(w.nodes, func(n *node) bool { return n.m != nil && n.m.Founded() }) {
		return
	}
	first := w.sets[Shard{"t", 0}][0]
	require.NoError(w.t, w.nodes[0].m.Do(w.now, FoundCommand{Store: w.store, Groups: []peer.Set{first}}))
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
