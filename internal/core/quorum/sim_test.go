// A simulation of several replicas on a hostile network and on disks that fail, and the laws that it holds them to.

package quorum

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/peer"
)

// plan is what a simulation does.
type plan struct {
	cfg     Config
	nodes   int
	steps   int
	crashes bool
	losses  int  // of disks
	backups bool // a disk comes back as it was
	cuts    bool
	noisy   bool // messages are lost and doubled
	bits    bool // bits of disks flip
	full    bool // disks are full for a while
	often   bool // faults follow each other soon
	joins   bool // a node comes in the middle; what is under way then may be missed by reads
	clocks  bool // clocks of nodes jump, to within an hour of one another
	leaves  int  // nodes that leave for good, one behind the other or two at a time, when none needs their disks
	mistake string
}

// node is one of it: a disk, and a machine while its process runs.
type node struct {
	addr   peer.Addr
	id     peer.ID
	disk   *MemoryEngine
	backup *MemoryEngine
	m      *Machine
	heard  []time.Duration // when each of the others hears that this one leaves; nil: it stays
	gone   bool            // it has left
	skew   int64           // of its clock, in milliseconds
}

// flying is a message on its way.
type flying struct {
	at       time.Duration
	from, to peer.ID
	body     []byte
}

// op is a request of a client.
type op struct {
	node     int
	key      string
	data     string // of a write
	put      bool
	begun    time.Duration
	before   []*Versioned // of its key: writes that were acknowledged, and values that were read, before it began
	deleting bool
}

// world is one simulation.
type world struct {
	t        *testing.T
	plan     plan
	rng      *rand.Rand
	now      time.Duration
	nodes    []*node
	net      []flying
	cut      map[[2]int]bool
	ops      map[uint64]*op
	last     uint64
	incs     uint64
	acked    map[string][]*Versioned // by key: what was acknowledged
	seen     map[string][]*Versioned // by key: what was read or acknowledged, the newest of a register
	wrote    map[string]map[string]bool
	known    map[string]Outcome // what a client has read last, or got back of a write
	read     map[string]bool    // data that a writer had read
	losses   int
	trace    *xxhash.Digest
	versions map[change]*Versioned
	faults   []string
	counts   map[string]int
	regular  bool // faults are over
}

func newWorld(t *testing.T, p plan, seed uint64) *world {
	w := &world{t: t, plan: p, rng: rand.New(rand.NewPCG(seed, 36)), cut: map[[2]int]bool{}, ops: map[uint64]*op{},
		acked: map[string][]*Versioned{}, seen: map[string][]*Versioned{}, wrote: map[string]map[string]bool{},
		known: map[string]Outcome{}, read: map[string]bool{}, trace: xxhash.New(), counts: map[string]int{},
		versions: map[change]*Versioned{}}
	for i := range p.nodes {
		n := &node{addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7000", i+1)), disk: Memory()}
		w.nodes = append(w.nodes, n)
		cfg := p.cfg
		cfg.Founding = true
		w.start(n, cfg)
	}
	w.tellMembers()
	return w
}

func (w *world) wall() int64 { return 1_800_000_000_000 + w.now.Milliseconds() }

// start opens the machine of a node on its disk.
func (w *world) start(n *node, cfg Config) {
	w.incs++
	n.disk.Room = 0
	rng := rand.New(rand.NewPCG(w.rng.Uint64(), 1))
	m, err := Open(cfg, "c/s", peer.ID{Addr: n.addr, Inc: w.incs}, n.disk, w.wall()+n.skew, rng)
	require.NoError(w.t, err)
	n.m, n.id, n.heard = m, m.ID(), nil
}

// tellMembers gives all that run the members, and which of them run.
func (w *world) tellMembers() {
	var all, up peer.Set
	for _, n := range w.nodes {
		if n.gone {
			continue
		}
		all.Add(n.id)
		if n.m != nil {
			up.Add(n.id)
		}
	}
	for i, n := range w.nodes {
		var leaving peer.Set
		for _, x := range w.nodes {
			if x.heard != nil && !x.gone && w.now >= x.heard[i] {
				leaving.Add(x.id)
			}
		}
		if n.m != nil {
			require.NoError(w.t, n.m.Do(w.now, MembersCommand{all, up, leaving}))
		}
	}
}

// leave has a node begin to leave, where N others stay; the others hear of it by and by. One goes when its disk
// is needed no more, since all others run and lack nothing.
func (w *world) leave() {
	stay, going, most := 0, 0, time.Duration(0)
	for _, n := range w.nodes {
		if !n.gone && n.heard == nil {
			stay++
		} else if !n.gone {
			going++
		}
	}
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	c := w.plan.cfg.WithDefaults()
	if n.m != nil && n.heard == nil && stay > c.N && going < max(c.W-1, 1) && w.rng.IntN(8) == 0 {
		for _, x := range w.nodes {
			late := time.Duration(50+w.rng.IntN(500)) * time.Millisecond
			if x == n {
				late = 0
			}
			n.heard = append(n.heard, w.now+late)
		}
		w.counts["leaves"]++
	}
	for _, n := range w.nodes {
		for _, at := range n.heard {
			most = max(most, at)
		}
	}
	if w.now <= most+time.Second {
		w.tellMembers()
	}
	for _, n := range w.nodes {
		needs := func(x *node) bool {
			return !x.gone && x.heard == nil && (x.m == nil || x.m.ident.lacking != 0 || !x.m.leaving.Has(n.id))
		}
		if n.m != nil && n.heard != nil && !slices.ContainsFunc(w.nodes, needs) {
			w.drop(n)
			n.m, n.gone = nil, true
			w.counts["left"]++
			w.tellMembers()
		}
	}
}

func (w *world) index(id peer.ID) int {
	return slices.IndexFunc(w.nodes, func(n *node) bool { return n.id == id })
}

// settle does what machines want done.
func (w *world) settle() {
	for i, n := range w.nodes {
		if n.m == nil {
			continue
		}
		if err := n.m.Sync(); err != nil {
			w.counts["failed commits"]++
		}
		var e Effects
		n.m.Drain(&e)
		for _, x := range e.Sends {
			w.post(i, x)
		}
		for _, o := range e.Done {
			w.done(o)
		}
		s := n.m.Stats()
		cfg := n.m.cfg
		if s.Requests > cfg.MaxRequests || s.HintBytes > cfg.MaxHints {
			w.fault("UNBOUNDED: %d requests, %d bytes of hints", s.Requests, s.HintBytes)
		}
	}
}

// post sends a message, which may be lost, late and doubled.
func (w *world) post(from int, x Mail) {
	to := w.index(x.To)
	w.learn(x.Body)
	if w.mistaken(from, &x) {
		return
	}
	if to < 0 || w.cut[[2]int{from, to}] || w.plan.noisy && !w.regular && w.rng.IntN(20) == 0 {
		return
	}
	for range 1 + w.rng.IntN(20)/19 {
		late := time.Duration(1+w.rng.IntN(20)) * time.Millisecond
		if w.plan.noisy && w.rng.IntN(30) == 0 {
			late *= 50
		}
		w.net = append(w.net, flying{w.now + late, w.nodes[from].id, x.To, x.Body})
	}
}

// change names a version.
type change struct {
	by  peer.ID
	seq uint64
}

// learn remembers each version that was ever sent.
func (w *world) learn(body []byte) {
	cfg := w.plan.cfg.WithDefaults()
	m, err := readMessage(body, &cfg)
	require.NoError(w.t, err)
	for i := range m.entry {
		w.versions[change{m.entry[i].By, m.entry[i].Seq}] = &m.entry[i]
	}
}

// mistaken has a message be what a replica would send that makes a mistake, and reports whether it would send none.
func (w *world) mistaken(from int, x *Mail) bool {
	cfg := w.plan.cfg.WithDefaults()
	m, err := readMessage(x.Body, &cfg)
	require.NoError(w.t, err)
	switch {
	case w.plan.mistake == "compares-nothing":
		return m.kind == roots || m.kind == write && m.number == 0 || m.kind == write && m.number&hintBit != 0
	case w.plan.mistake == "says-yes-unwritten" && m.kind == write && m.number != 0 && w.rng.IntN(3) == 0:
		yes := message{kind: wrote, number: m.number, key: m.key}
		w.net = append(w.net, flying{w.now + 1, x.To, w.nodes[from].id, yes.append(nil)})
		return true
	case w.plan.mistake == "sends-alone" && m.kind == write && m.number != 0 && len(m.entry) > 1:
		alone := m.entry[0]
		for i := range m.entry {
			if m.entry[i].By == w.nodes[from].id {
				alone = m.entry[i] // the last that it made
			}
		}
		m.entry = Entry{alone}
		x.Body = m.append(nil)
	case w.plan.mistake == "lacks-silently" && m.lacking:
		m.lacking = false
		x.Body = m.append(nil)
	case w.plan.mistake == "repairs-wrongly" && m.kind == write && m.number == 0:
		for i := range m.entry { // the version of one value under the data of another
			if !m.entry[i].Deleted {
				m.entry[i].Data = []byte("mixed up")
				m.entry[i].seal()
			}
		}
		x.Body = m.append(nil)
	}
	return false
}

// next is when something happens: a message comes, or a machine is due.
func (w *world) next(until time.Duration) time.Duration {
	for _, f := range w.net {
		until = min(until, f.at)
	}
	for _, n := range w.nodes {
		if n.m != nil {
			at, _ := n.m.Next()
			until = min(until, at)
		}
	}
	return max(until, w.now+1)
}

// run lets time go by until then.
func (w *world) run(until time.Duration) {
	for w.now < until {
		w.now = w.next(until)
		var later []flying
		due := w.net
		w.net = nil
		for _, f := range due {
			if f.at > w.now {
				later = append(later, f)
				continue
			}
			if to := w.index(f.to); to >= 0 && w.nodes[to].m != nil {
				require.NoError(w.t, w.nodes[to].m.Handle(w.now, f.from, bytes.Clone(f.body)))
				_, _ = w.trace.Write(f.body)
			}
		}
		w.net = append(later, w.net...)
		for _, n := range w.nodes {
			if n.m == nil {
				continue
			}
			if at, _ := n.m.Next(); at <= w.now {
				n.m.Tick(w.now, w.wall()+n.skew)
			}
		}
		w.settle()
	}
}

// fault notes a law that was broken.
func (w *world) fault(text string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf("%v: ", w.now)+fmt.Sprintf(text, args...))
}

// newest returns what one value of a list does not know of, all of which are of one key.
func (w *world) missing(of []*Versioned, in Entry) *Versioned {
	for _, v := range of {
		if !slices.ContainsFunc(in, func(x Versioned) bool {
			order := x.Compare(v, w.plan.cfg.Mode)
			return order == gossip.Same || order == gossip.After
		}) {
			return v
		}
	}
	return nil
}

// request begins a read or a write of a client at a node.
func (w *world) request() {
	i := w.rng.IntN(len(w.nodes))
	n := w.nodes[i]
	if n.m == nil {
		return
	}
	key := fmt.Sprintf("key%d", w.rng.IntN(6))
	w.last++
	o := &op{node: i, key: key, begun: w.now, put: w.rng.IntN(2) == 0}
	var err error
	if o.put {
		o.deleting = w.rng.IntN(8) == 0
		o.data = fmt.Sprintf("%s-%d", key, w.last)
		c := PutCommand{Number: w.last, Key: []byte(key), Data: []byte(o.data), Delete: o.deleting}
		if w.rng.IntN(3) > 0 {
			k := w.known[key]
			c.Context = k.Context
			for i := range k.Entry {
				w.read[string(k.Entry[i].Data)] = true
			}
		}
		if err = n.m.Do(w.now, c); err == nil {
			w.wroteOf(key)[o.data] = true
		}
	} else {
		o.before = slices.Concat(w.acked[key])
		if w.plan.cfg.Mode == Register {
			o.before = append(o.before, w.seen[key]...)
		}
		err = n.m.Do(w.now, GetCommand{Number: w.last, Key: []byte(key)})
	}
	if err != nil {
		w.counts[err.Error()]++
		return
	}
	w.ops[w.last] = o
}

func (w *world) wroteOf(key string) map[string]bool {
	if w.wrote[key] == nil {
		w.wrote[key] = map[string]bool{}
	}
	return w.wrote[key]
}

// done judges an outcome.
func (w *world) done(o Outcome) {
	p := w.ops[o.Number]
	delete(w.ops, o.Number)
	fmt.Fprintf(w.trace, "%d %v %v", o.Number, o.Err, o.Context)
	switch {
	case p == nil:
		w.fault("TWICE: an outcome of number %d", o.Number)
	case o.Err != nil:
		w.counts[o.Err.Error()]++
	case p.put:
		w.counts["writes"]++
		w.acknowledged(p, o)
		w.known[p.key] = o
	default:
		w.counts["reads"]++
		w.hasRead(p, o)
		w.known[p.key] = o
	}
}

// acknowledged notes a write.
func (w *world) acknowledged(p *op, o Outcome) {
	v := o.Own
	w.acked[p.key] = append(w.acked[p.key], v)
	if w.plan.cfg.Mode == Register {
		w.seen[p.key] = append(w.seen[p.key], v)
	}
}

// hasRead holds a read against what was acknowledged, and of a register also read, before it began.
func (w *world) hasRead(p *op, o Outcome) {
	for i := range o.Entry {
		v := &o.Entry[i]
		if !w.wrote[p.key][string(v.Data)] {
			w.fault("NOWHERE: %s has %q", p.key, v.Data)
		}
		w.seen[p.key] = append(w.seen[p.key], v)
	}
	if w.plan.joins {
		return
	}
	// deletions are left out of what a read returns: what the context covers was known
	for _, v := range p.before {
		if o.Context.Of(v.By) < v.Seq && !slices.ContainsFunc(o.Entry, func(x Versioned) bool {
			return x.Compare(v, w.plan.cfg.Mode) == gossip.After
		}) && !w.newerGone(v, o) {
			w.fault("STALE: a read of %s begun at %v without %v/%d (counter %d)", p.key, p.begun, v.By, v.Seq, v.Counter)
		}
	}
}

// newerGone reports whether a read of a register returned a deletion that is newer than v.
func (w *world) newerGone(v *Versioned, o Outcome) bool {
	if w.plan.cfg.Mode != Register || len(o.Context) != 1 {
		return false
	}
	x := w.versions[change{o.Context[0].ID, o.Context[0].N}]
	return x.Compare(v, Register) == gossip.After
}

// disturb breaks something.
func (w *world) disturb() {
	i := w.rng.IntN(len(w.nodes))
	n := w.nodes[i]
	switch w.rng.IntN(6) {
	case 0:
		if w.plan.crashes {
			w.crash(n)
		}
	case 1:
		for _, n := range w.nodes {
			if n.m == nil && !n.gone {
				w.start(n, w.plan.cfg)
			}
		}
		w.tellMembers()
	case 2:
		if w.plan.cuts {
			j := w.rng.IntN(len(w.nodes))
			w.cut[[2]int{i, j}] = true
		}
	case 3:
		w.cut = map[[2]int]bool{}
		for _, n := range w.nodes {
			n.disk.Room = 0
		}
	case 4:
		if w.losses < w.plan.losses && w.now > 2*time.Second && !n.gone {
			w.losses++
			w.lose(n)
		}
	case 5:
		if w.plan.clocks {
			n.skew = w.rng.Int64N(2*future) - future
			n.skew /= 2
			w.counts["jumps"]++
		}
		if w.plan.bits {
			w.flip(n)
		}
		if w.plan.full {
			n.disk.Room = n.disk.size + 1
		}
		if (w.plan.backups || w.plan.mistake == "no-sync") && n.backup == nil && n.m != nil {
			n.backup = n.disk.Copy()
		}
	}
}

// crash ends a process. All that its disk did not get is gone.
func (w *world) crash(n *node) {
	if n.m != nil {
		w.drop(n)
		n.m = nil
		w.tellMembers()
	}
	if w.plan.mistake == "no-sync" && n.backup != nil {
		n.disk = n.backup
	}
	n.backup = nil
}

// drop forgets the requests of a node.
func (w *world) drop(n *node) {
	for _, r := range n.m.requests {
		delete(w.ops, r.number)
	}
}

// lose has a node start with an empty disk, or with an old one.
func (w *world) lose(n *node) {
	if n.m != nil {
		w.drop(n)
	}
	cfg := w.plan.cfg
	was := n.id
	if w.plan.backups && n.backup != nil {
		n.disk = n.backup
		if w.plan.mistake != "old-disk" {
			w.incs++
			require.NoError(w.t, Renew(cfg, peer.ID{Addr: n.addr, Inc: w.incs}, n.disk, w.wall()))
		}
	} else {
		n.disk = Memory()
	}
	cfg.Founding = w.plan.mistake == "counts-at-once"
	w.start(n, cfg)
	if w.plan.mistake == "same-id" {
		n.disk = Memory()
		m, err := Open(cfg, "c/s", was, n.disk, w.wall(), rand.New(rand.NewPCG(1, 1)))
		require.NoError(w.t, err)
		n.m, n.id = m, was
	}
	w.tellMembers()
}

// flip changes a bit of a disk, of an entry.
func (w *world) flip(n *node) {
	var list [][]byte
	_ = n.disk.Each([]byte{'v'}, nil, func(k, _ []byte) bool {
		list = append(list, bytes.Clone(k))
		return true
	})
	if len(list) == 0 || w.losses >= w.plan.losses {
		return
	}
	w.losses++ // of one entry
	k := list[w.rng.IntN(len(list))]
	v := bytes.Clone(n.disk.kept[string(k)])
	v[w.rng.IntN(len(v))] ^= 1 << w.rng.IntN(8)
	n.disk.kept[string(k)] = v
}

// simulate runs a plan: clients and faults, then quiet, then the laws of what is left.
func simulate(t *testing.T, p plan, seed uint64) *world {
	w := newWorld(t, p, seed)
	for k := range p.steps {
		if p.leaves > w.counts["leaves"] || w.counts["left"] < w.counts["leaves"] {
			w.leave()
		}
		if p.joins && k == p.steps/2 {
			n := &node{addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7000", len(w.nodes)+1)), disk: Memory()}
			w.nodes = append(w.nodes, n)
			w.start(n, p.cfg)
			w.tellMembers()
		}
		w.run(w.now + time.Duration(1+w.rng.IntN(40))*time.Millisecond)
		for range w.rng.IntN(4) {
			w.request()
		}
		if often := 12 + 3*p.leaves; w.rng.IntN(often) == 0 || p.often && w.rng.IntN(3) == 0 {
			w.disturb()
		}
	}
	w.regular = true
	w.cut = map[[2]int]bool{}
	for _, n := range w.nodes {
		n.disk.Room = 0
		n.heard = nil // those that have not left by then stay
		if n.m == nil && !n.gone {
			w.start(n, p.cfg)
		}
	}
	w.nodes = slices.DeleteFunc(w.nodes, func(n *node) bool { return n.gone })
	w.tellMembers()
	for _, n := range w.nodes {
		for k := range 6 { // a bit that flipped is found when its entry is read, as the judge does (seed 360300044)
			n.m.entry(&step{}, fmt.Append(nil, "key", k))
		}
	}
	for range 60 {
		w.run(w.now + 2*time.Second)
		if w.equal() {
			break
		}
	}
	w.judge()
	return w
}

// equal reports whether all replicas of all groups hold the same, and lack nothing. Hints are not looked at: one that
// its replica refuses stays until it is too old, and one that its replica lacks shows in the roots.
func (w *world) equal() bool {
	for g := range Groups {
		var roots []uint64
		for _, n := range w.nodes {
			if n.m.Stats().Lacking > 0 {
				return false
			}
			if slices.Contains(n.m.groups[g], n.id) {
				roots = append(roots, n.m.root(g))
			}
		}
		if len(slices.Compact(roots)) > 1 {
			return false
		}
	}
	return true
}

// judge holds what is left against what was acknowledged.
func (w *world) judge() {
	if !w.equal() {
		w.fault("UNEQUAL: replicas differ after quiet")
	}
	if len(w.ops) > 0 {
		w.fault("SILENT: %d requests without an outcome", len(w.ops))
	}
	for k := range 6 {
		key := fmt.Sprintf("key%d", k)
		for _, n := range w.nodes {
			g, _ := place([]byte(key))
			if !slices.Contains(n.m.groups[g], n.id) {
				continue
			}
			e := n.m.entry(&step{}, []byte(key))
			if v := w.missing(w.acked[key], e); v != nil {
				w.fault("LOST: %v/%d of %s (%q)", v.By, v.Seq, key, v.Data)
			}
			for _, v := range w.acked[key] {
				if w.plan.cfg.Mode == Siblings && !v.Deleted && !w.read[string(v.Data)] && !has(e, change{v.By, v.Seq}) {
					w.fault("UNREAD: %v/%d of %s (%q) was replaced, and nobody had read it", v.By, v.Seq, key, v.Data)
				}
			}
			for i := range e {
				if !e[i].Deleted && !w.wrote[key][string(e[i].Data)] {
					w.fault("NOWHERE: %s ends with %q", key, e[i].Data)
				}
			}
		}
	}
}

// soon is c with times in which a leave is over soon.
func soon(c Config) Config {
	c.Timeout, c.Round = 300*time.Millisecond, 100*time.Millisecond
	return c
}

// plans are what is simulated, by name.
func plans() map[string]plan {
	return map[string]plan{
		"siblings": {nodes: 5, steps: 150, crashes: true, cuts: true, noisy: true, losses: 1},
		"register": {cfg: Config{Mode: Register}, nodes: 5, steps: 150, crashes: true, cuts: true, noisy: true, losses: 1},
		"backups":  {nodes: 4, steps: 150, crashes: true, noisy: true, losses: 1, backups: true},
		"bits":     {nodes: 4, steps: 150, crashes: true, noisy: true, losses: 1, bits: true},
		"three": {cfg: Config{N: 5, R: 3, W: 3}, nodes: 6, steps: 150, crashes: true, cuts: true, noisy: true,
			losses: 2},
		"write-all": {cfg: Config{N: 3, R: 1, W: 3}, nodes: 3, steps: 150, cuts: true, noisy: true},
		"joins":     {nodes: 4, steps: 150, crashes: true, cuts: true, noisy: true, joins: true},
		"leaves": {cfg: soon(Config{}), nodes: 6, steps: 200, crashes: true, cuts: true, noisy: true, losses: 1,
			leaves: 8},
		"register-leaves": {cfg: soon(Config{Mode: Register}), nodes: 6, steps: 200, crashes: true, cuts: true, noisy: true,
			losses: 1, leaves: 8},
		"clocks": {nodes: 4, steps: 150, crashes: true, noisy: true, losses: 1, clocks: true, often: true},
		"leaves-two": {cfg: soon(Config{N: 5, R: 3, W: 3}), nodes: 7, steps: 150, noisy: true, losses: 1,
			leaves: 4},
		"leaves-read-all": {cfg: soon(Config{N: 3, R: 3, W: 1}), nodes: 6, steps: 200, noisy: true, leaves: 8},
		"full":            {nodes: 4, steps: 150, crashes: true, noisy: true, full: true},
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
			writes, reads, left := 0, 0, 0
			for seed := first; seed < first+many; seed++ {
				w := simulate(t, p, seed)
				require.Empty(t, w.faults, "seed %d", seed)
				writes += w.counts["writes"]
				reads += w.counts["reads"]
				left += w.counts["left"]
				if seed < first+twice {
					require.Equal(t, w.trace.Sum64(), simulate(t, p, seed).trace.Sum64(), "seed %d", seed)
				}
			}
			if p.leaves > 0 {
				require.Greater(t, left, int(many)/2)
			}
			require.Greater(t, writes, 30*int(many))
			require.Greater(t, reads, 30*int(many))
		})
	}
}

// TestSimulation holds the laws of replicas on a hostile network, on disks that are lost, damaged, full, or come back
// from a backup (DYN-1, DYN-3, DYN-4).
func TestSimulation(t *testing.T) { seeds(t, long.Fewer(20), 2) }

// TestLongSimulation is the same over hundreds of seeds, each twice (DYN-1, DYN-3, DYN-4).
func TestLongSimulation(t *testing.T) {
	long.Test(t)
	seeds(t, 80, 300)
}

// TestMistakesAreFound plants mistakes in what replicas say, and in how their disks are kept: each breaks the law that
// it must (DYN-1, DYN-4).
func TestMistakesAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it holds the laws of the simulation, not the code")
	}
	noisy := plan{nodes: 4, steps: 150, crashes: true, noisy: true, losses: 1}
	with := func(mistake string, change func(*plan)) plan {
		p := noisy
		p.mistake = mistake
		change(&p)
		return p
	}
	for _, c := range []struct {
		plan plan
		law  string
	}{
		{with("same-id", func(*plan) {}), "STALE|LOST"},
		{with("old-disk", func(p *plan) { p.backups, p.often = true, true }), "STALE|LOST"},
		{with("counts-at-once", func(*plan) {}), "STALE"},
		{with("lacks-silently", func(p *plan) { p.often, p.cuts = true, true }), "STALE"},
		{with("no-sync", func(p *plan) { p.often = true }), "STALE|LOST|UNREAD"},
		{with("compares-nothing", func(*plan) {}), "UNEQUAL"},
		{with("says-yes-unwritten", func(*plan) {}), "STALE|LOST"},
		{with("repairs-wrongly", func(*plan) {}), "NOWHERE"},
		{with("sends-alone", func(p *plan) { p.cfg = Config{R: 1, W: 2} }), "UNREAD"},
		{with("no-overlap", func(p *plan) { p.cfg = Config{R: 1, W: 1} }), "STALE"},
	} {
		t.Run(c.plan.mistake, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(200) {
				if w := simulate(t, c.plan, seed); len(w.faults) > 0 {
					require.Regexp(t, c.law, strings.Join(w.faults, " "))
					return
				}
			}
			t.Fatal("nobody noticed")
		})
	}
}
