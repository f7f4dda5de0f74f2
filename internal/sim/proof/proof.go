// Proof: every state of the directed links between a few nodes, decided by the resolver from every node's own view.
// docs/contributing/resolver.md defines how views arise, what obliges a strategy to leave survivors, and what a double
// survivor is.

package proof

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/sbr"
)

// Result is what the proof found. Its JSON is the last line of `make resolver-proof`.
type Result struct {
	Nodes             int      `json:"nodes"`
	States            int      `json:"states"`  // directed link states, each under each strategy
	Leaving           int      `json:"leaving"` // states in which one member leaves, over all strategies: see leaving.go
	Strategies        int      `json:"strategies"`
	DoubleSurvivors   int      `json:"double_survivors"`
	AllDownUnexpected int      `json:"all_down_unexpected"`
	WallSeconds       float64  `json:"wall_seconds"`
	Views             int      `json:"views"` // different views that were decided, over all strategies
	Rows              []Row    `json:"rows"`
	Failures          []string `json:"failures,omitempty"` // the first few
}

// Row is the result for one strategy with its settings.
type Row struct {
	Settings          string `json:"settings"`
	Survived          int    `json:"survived"` // states with a survivor
	Obliged           int    `json:"obliged"`  // states that oblige the strategy to leave one
	AllDown           int    `json:"all_down"`
	DoubleSurvivors   int    `json:"double_survivors"`
	AllDownUnexpected int    `json:"all_down_unexpected"`
}

// MaxNodes is the most nodes that can be enumerated: 2^20 states.
const MaxNodes = 5

const maxFailures = 10

// role is the role that roleNodes have.
const (
	role      = "voter"
	roleNodes = 0b10110
)

// Strategies returns the strategies with settings that the proof is run for with that many nodes.
func Strategies(nodes int) []sbr.Config {
	return []sbr.Config{{}, {Role: role}, {Strategy: sbr.StaticQuorum, QuorumSize: nodes/2 + 1},
		{Strategy: sbr.KeepOldest}, {Strategy: sbr.KeepOldest, KeepAlone: true}, {Strategy: sbr.DownAll},
		{Strategy: sbr.LeaseMajority}}
}

// Case is a strategy, and with a tenure the nodes that hold its seats; -1 is an empty seat.
type Case struct {
	sbr.Config
	Seats []int
}

// Name says which it is.
func (c Case) Name() string {
	if c.Seats == nil {
		return c.Settings()
	}
	return fmt.Sprintf("%s seats=%v", c.Settings(), c.Seats)
}

// Cases returns what the proof is run for with that many nodes: all strategies, and three and five seats that are
// counted in their place.
func Cases(nodes int) (list []Case) {
	for _, c := range Strategies(nodes) {
		list = append(list, Case{Config: c})
	}
	seats := func(all, first int) []int {
		s := make([]int, all)
		for i := range s {
			if s[i] = (i + first) % nodes; i >= nodes {
				s[i] = -1
			}
		}
		return s
	}
	list = append(list, Case{Seats: seats(3, nodes-1)}, Case{sbr.Config{Strategy: sbr.KeepOldest}, seats(3, 0)})
	if nodes > 2 {
		list = append(list, Case{Seats: seats(5, 0)})
	}
	return list
}

// prover decides for one strategy. Sets of nodes and of pairs are bit masks.
type prover struct {
	n       int
	cfg     sbr.Config
	seats   []int      // of a tenure, nil without one
	promise sbr.Config // what it is held to: the same but in a test of the proof
	ids     []peer.ID
	pair    [MaxNodes][MaxNodes]uint32 // the bit of an unordered pair
	memo    map[viewKey]act
	views   int
	parting
}

// viewKey is all that a view holds: which pairs in the group of self are in contact. Everybody inside accuses everybody
// outside.
type viewKey struct {
	self  int
	group uint32 // nodes
	heard uint32 // pairs within the group
	leaver
}

// act is what the resolver of one node does.
type act struct {
	suspends bool
	downs    uint32
	asks     bool          // for the lease
	at       time.Duration // when it asks
	refused  uint32        // downs when it is refused the lease
	granted  uint32        // downs when it gets it
}

func newProver(n int, c Case) *prover {
	p := &prover{n: n, cfg: c.Config, seats: c.Seats, promise: c.Config, memo: map[viewKey]act{},
		parting: parting{node: -1}}
	bit := 0
	for a := range n {
		p.ids = append(p.ids, peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7355", a+1)), Inc: uint64(a + 1)})
		for b := a + 1; b < n; b++ {
			p.pair[a][b], p.pair[b][a] = 1<<bit, 1<<bit
			bit++
		}
	}
	return p
}

// mutual returns the pairs that hear each other. A state holds for each ordered pair whether the first reaches the
// second. A probe needs one direction and its answer the other, so one missing direction makes both accuse.
func (p *prover) mutual(state uint32) (heard uint32) {
	bit := 0
	for a := range p.n {
		for b := a + 1; b < p.n; b++ {
			if state>>bit&3 == 3 {
				heard |= p.pair[a][b]
			}
			bit += 2
		}
	}
	return heard
}

// group returns the nodes connected to self by pairs that hear each other: state spreads along these and no others, for
// a node refuses gossip from one that it accuses.
func (p *prover) group(self int, heard uint32) uint32 {
	in := uint32(1) << self
	for {
		next := in
		for a := range p.n {
			for b := range p.n {
				if in>>a&1 == 1 && a != b && heard&p.pair[a][b] != 0 {
					next |= 1 << b
				}
			}
		}
		if next == in {
			return in
		}
		in = next
	}
}

// inside returns the pairs of heard with both ends in group.
func (p *prover) inside(group, heard uint32) uint32 {
	for a := range p.n {
		for b := range a {
			if group>>a&1 == 0 || group>>b&1 == 0 {
				heard &^= p.pair[a][b]
			}
		}
	}
	return heard
}

// act returns what the resolver of self does in its view; each different view is decided once.
func (p *prover) act(self int, group, heard uint32) act {
	key := viewKey{self, group, p.inside(group, heard), p.as(group)}
	a, ok := p.memo[key]
	if !ok {
		p.views++
		var rows [MaxNodes]uint32
		for o := range p.n {
			if group>>o&1 == 1 {
				rows[o] = p.accuses(o, heard)
			}
		}
		a = p.decide(self, group, nil, rows[:p.n])
		p.memo[key] = a
	}
	return a
}

// accuses returns the nodes that a node accuses: all with which it does not hear each other.
func (p *prover) accuses(o int, heard uint32) (whom uint32) {
	for x := range p.n {
		if x != o && heard&p.pair[o][x] == 0 {
			whom |= 1 << x
		}
	}
	return whom
}

// decide lets a resolver live through the views of self: all is well, then an earlier break if there was one, then the
// last, which everybody in group has seen.
func (p *prover) decide(self int, group uint32, earlier, rows []uint32) act {
	m := sbr.New(p.ids[self], p.cfg)
	now := time.Second
	if p.seats != nil {
		_ = m.Do(now, sbr.SeatsCommand{Number: 2, Holders: p.holders()}) // likewise
	}
	as := p.as(group)
	show := func(rows []uint32, converged bool) {
		v := p.view(self, rows, converged)
		p.leaves(v, as.stage)
		_ = m.Do(now, sbr.ViewCommand{View: v}) // never refused
		now += time.Second
	}
	last := as.stage
	as.stage = last.before()
	show(nil, true)
	if as.stage = last; as.aware && last == exiting {
		show(nil, false)
		_ = m.Do(now, sbr.SeenCommand{IDs: []peer.ID{p.ids[p.node]}})
	}
	if earlier != nil {
		show(earlier, false)
	}
	show(rows, false)
	var seen []peer.ID
	for x := range p.n {
		if group>>x&1 == 1 {
			seen = append(seen, p.ids[x])
		}
	}
	_ = m.Do(now, sbr.SeenCommand{IDs: seen})
	var e sbr.Effects
	looks, stopped := 256, false // it looks a few times for late ones before it decides, and may have to stop meanwhile
	if p.cfg.Strategy == sbr.LeaseMajority {
		looks = 64 // until the others name its owner
	}
	for range looks {
		m.Drain(&e)
		if e.Suspend != nil {
			stopped = e.Suspend.On && p.cfg.Strategy != sbr.LeaseMajority
		}
		if len(e.Lease) > 0 {
			d := m.Decisions()
			last := d[len(d)-1]
			return act{asks: true, at: now, granted: p.mask(last.Down), refused: p.answer(m, now, e.Lease[0].Op, false)}
		}
		if len(e.Decisions) > 0 && e.Decisions[0].Lease != sbr.LeasePending {
			break
		}
		next, ok := m.Next()
		if !ok {
			return act{}
		}
		now = max(now, next)
		m.Tick(now)
	}
	return act{suspends: stopped || e.Suspend != nil && e.Suspend.On, downs: p.downs(&e)}
}

// answer returns the nodes that the resolver downs when its question about the lease is answered so.
func (p *prover) answer(m *sbr.Machine, now time.Duration, op uint64, ok bool) uint32 {
	_ = m.Do(now, sbr.LeaseResult{Op: op, OK: ok})
	var e sbr.Effects
	m.Drain(&e)
	return p.downs(&e)
}

func (p *prover) downs(e *sbr.Effects) (mask uint32) {
	for _, c := range e.Down {
		mask |= p.mask(peer.Set{c.ID})
	}
	return mask
}

func (p *prover) mask(s peer.Set) (mask uint32) {
	for i, id := range p.ids {
		if s.Has(id) {
			mask |= 1 << i
		}
	}
	return mask
}

// view is what self sees under the rows that it knows. The oldest member is the third, or the last of two.
func (p *prover) view(self int, rows []uint32, converged bool) *membership.View {
	v := &membership.View{Self: p.ids[self], Converged: converged}
	for i, id := range p.ids {
		m := membership.Member{ID: id, Status: membership.Up, UpNumber: uint32((i+p.n-p.oldest())%p.n + 1),
			Roles: Roles(i)}
		v.Members = append(v.Members, m)
	}
	for o, whom := range rows {
		for x := range p.n {
			if whom>>x&1 == 1 {
				v.Accusations = append(v.Accusations, membership.Accusation{Observer: p.ids[o], Subject: p.ids[x]})
				if x != self {
					v.Unreachable.Add(p.ids[x])
				}
			}
		}
	}
	v.Leader = v.RoleLeader("")
	return v
}

// holders returns the holder of each seat.
func (p *prover) holders() []peer.ID {
	list := make([]peer.ID, len(p.seats))
	for i, x := range p.seats {
		if x >= 0 {
			list[i] = p.ids[x]
		}
	}
	return list
}

func (p *prover) oldest() int { return min(2, p.n-1) }

// voters returns the nodes that count.
func (p *prover) voters() uint32 {
	all := uint32(1)<<p.n - 1
	if p.cfg.Role != "" {
		return all & roleNodes
	}
	return all
}

func count(mask uint32) int { return bits.OnesCount32(mask) }

// Roles returns the roles that a node has in the proof, none or one, for settings that count only members of a role.
// The first node is 0.
func Roles(node int) []string {
	if roleNodes>>node&1 == 1 {
		return []string{role}
	}
	return nil
}
