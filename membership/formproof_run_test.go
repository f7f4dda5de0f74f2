// The agreement on which node forms a cluster, tried exhaustively: what may happen in a state, the search, and what
// must hold.

package membership

import (
	"flag"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

var (
	proofCrashes = flag.Int("forming-crashes", 1, "crashes in each run of TestFormingProof")
	proofLives   = flag.Int("forming-lives", 3, "processes of each node, at most 4")
	proofTries   = flag.Int("forming-attempts", 2, "attempts of each process to form a cluster, at most 3")
	proofStates  = flag.Int("forming-states", 12_000, "states of each run of TestFormingProof at most")
)

// proofStep is what happened: to a node, by a frame of another one or not.
type proofStep struct {
	what       string
	node, from uint8
	bit        int
}

func (a proofStep) String() string {
	switch {
	case a.what == "asked":
		return fmt.Sprintf("n%d is asked by n%d#%d for %d, wants %d", a.node+1, a.from+1, a.bit/(2*proofAttempts)+1,
			a.bit%(2*proofAttempts)/2+1, a.bit%2)
	case a.what == "granted":
		return fmt.Sprintf("n%d is granted %d by n%d#%d", a.node+1, a.bit%proofAttempts+1, a.from+1, a.bit/proofAttempts+1)
	case a.node != a.from:
		return fmt.Sprintf("n%d %s n%d", a.node+1, a.what, a.from+1)
	}
	return fmt.Sprintf("n%d %s", a.node+1, a.what)
}

// faults are the steps that nobody may hope for when a way out is looked for.
var faults = map[string]bool{"crashes": true, "loses its record": true}

// next shows all states that may follow.
func (p *prover) next(s *proofState, visit func(proofStep, *proofState)) {
	for i := range uint8(proofNodes) {
		p.hosts(s, i, visit)
		switch n := &s.nodes[i]; {
		case n.life == proofProbing:
			p.times(s, i, visit)
			p.arrivals(s, i, visit)
		case n.life == proofPending:
			p.step(s, i, proofStep{"gives up asking", i, i, 0}, func(m *Machine) { m.joining.giveUp() }, visit)
			p.admitted(s, i, visit)
		case n.member():
			p.members(s, i, visit)
		}
	}
}

// hosts: a process starts, or dies, or its record is lost.
func (p *prover) hosts(s *proofState, i uint8, visit func(proofStep, *proofState)) {
	t := *s
	n := &t.nodes[i]
	if n.life != proofDead {
		if s.crashes > 0 {
			t.crashes--
			t.kill(i)
			visit(proofStep{"crashes", i, i, 0}, &t)
		}
		return
	}
	if s.losses > 0 && n.rec != 0 {
		t.losses--
		n.rec, n.lost = 0, true
		visit(proofStep{"loses its record", i, i, 0}, &t)
		t = *s
	}
	if n.inc == p.incs {
		return
	}
	n.inc++
	n.given[n.inc-1] = n.rec
	m := New(proofID(i, n.inc), p.cfg, rand.New(rand.NewPCG(1, 1)))
	m.begin(proofNow, m.self)
	_ = m.joining.startJoin(JoinCommand{Seeds: proofAddrs, WallMillis: 1, Record: p.records[n.rec]})
	p.keep(&t, i, m)
	visit(proofStep{"starts", i, i, 0}, &t)
}

func (s *proofState) kill(i uint8) {
	n := &s.nodes[i]
	*n = proofNode{inc: n.inc, rec: n.rec, given: n.given, lost: n.lost}
	for j := range s.grants {
		s.grants[j][i] = 0
	}
}

// become makes a node in no cluster a member.
func (n *proofNode) become(life, cluster uint8) {
	*n = proofNode{life: life, inc: n.inc, rec: n.rec, given: n.given, lost: n.lost, cluster: cluster}
}

// step makes the machine of a node do something, and looks at a cluster that comes of it.
func (p *prover) step(s *proofState, i uint8, a proofStep, do func(m *Machine), visit func(proofStep, *proofState)) {
	t := *s
	m := p.load(&t, i)
	m.begin(proofNow, m.self)
	do(m)
	m.settle()
	if p.keep(&t, i, m) && !p.forms(&t, i) {
		return // a cluster of a node that has lost its record may be a second one
	}
	if t.nodes[i].attempt <= p.attempts {
		visit(a, &t)
	}
}

// forms is a new cluster; it reports whether what comes of it is to be looked at. A first seed that has no record, and
// hears nobody that has one, may form a second one: when its record was lost, and when other joiners agreed on a
// cluster after it had died without one. Never beside one of its own making.
func (p *prover) forms(s *proofState, i uint8) bool {
	n := &s.nodes[i]
	unknowing := n.given[n.inc-1] == 0 && !n.told
	stray := unknowing && n.lost
	for j := range s.nodes {
		o := &s.nodes[j]
		if o.life != proofUp || uint8(j) == i || !s.lives(o.cluster) || s.clusters[o.cluster].stray {
			continue
		}
		if byOwn := s.clusters[o.cluster].by == i+1; !stray && (!unknowing || byOwn) {
			p.broken = fmt.Sprintf("n%d forms a cluster while n%d is up in cluster %d", i+1, j+1, o.cluster)
		}
		return false
	}
	s.count++
	n.become(proofUp, s.count)
	s.clusters[s.count] = proofCluster{1 << i, 1 << i, i + 1, stray}
	return true
}

// lives reports whether the living Up members of a cluster would go on by keep-majority.
func (s *proofState) lives(cluster uint8) bool {
	up := s.clusters[cluster].up
	here := uint8(0)
	for i := range s.nodes {
		if n := &s.nodes[i]; n.life == proofUp && n.cluster == cluster {
			here |= 1 << i
		}
	}
	all, some := bits.OnesCount8(up), bits.OnesCount8(here)
	return 2*some > all || 2*some == all && some > 0 && bits.TrailingZeros8(up) == bits.TrailingZeros8(here)
}

// times: a deadline of a node in no cluster passes.
func (p *prover) times(s *proofState, i uint8, visit func(proofStep, *proofState)) {
	n := &s.nodes[i]
	p.step(s, i, proofStep{"asks again", i, i, 0}, func(m *Machine) { m.joining.askAgain() }, visit)
	if !n.looked && i == 0 && !s.counted(i) {
		p.step(s, i, proofStep{"has looked for long", i, i, 0}, func(m *Machine) { m.forming.seedTimeout() }, visit)
	}
	if n.tries && n.attempt < p.attempts {
		p.step(s, i, proofStep{"has tried for long", i, i, 0}, func(m *Machine) {
			m.forming.begun = 0
			m.joining.askAgain()
		}, visit)
	}
}

// counted reports whether a node may still form a cluster with the pledge of a process at this node that is no more.
// The time in which others are looked for is longer than an attempt, so none of these goes on when it is over.
func (s *proofState) counted(i uint8) bool {
	for j := range s.nodes {
		o := &s.nodes[j]
		for inc := uint8(1); o.tries && inc < s.nodes[i].inc; inc++ {
			c := o.contacts[i]
			if c.promised && c.inc == inc || s.grants[i][j]&proofGrant(inc, o.attempt) != 0 {
				return true
			}
		}
	}
	return false
}

// admitted: a node that asked a member becomes one.
func (p *prover) admitted(s *proofState, i uint8, visit func(proofStep, *proofState)) {
	for j := range s.nodes {
		if o := &s.nodes[j]; o.member() && s.lives(o.cluster) {
			t := *s
			t.nodes[i].become(proofJoining, o.cluster)
			t.clusters[o.cluster].known |= 1 << i
			t.clusters[o.cluster].up &^= 1 << i // its predecessor is down
			visit(proofStep{"is admitted by", i, uint8(j), 0}, &t)
		}
	}
}

// arrivals: a frame comes to a node in no cluster.
func (p *prover) arrivals(s *proofState, i uint8, visit func(proofStep, *proofState)) {
	own := uint64(s.nodes[i].inc)
	for j := range uint8(proofNodes) {
		for list := s.asks[j][i]; list != 0; list &= list - 1 {
			bit := bits.TrailingZeros32(list)
			inc := uint8(bit/(2*proofAttempts)) + 1
			ask := formAskBody{uint64(inc), uint64(bit%(2*proofAttempts)/2 + 1), bit%2 == 1,
				p.records[s.nodes[j].given[inc-1]].Known()}
			p.hears(s, i, proofStep{"asked", i, j, bit}, proofID(j, inc), wire.KindFormAsk, appendFormAsk(nil, ask), visit)
		}
		for list := s.grants[j][i]; list != 0; list &= list - 1 {
			bit := bits.TrailingZeros16(list)
			inc := uint8(bit/proofAttempts) + 1
			answer := formAnswerBody{own, own, uint64(bit%proofAttempts + 1), false, p.records[s.nodes[j].given[inc-1]]}
			p.hears(s, i, proofStep{"granted", i, j, bit}, proofID(j, inc), wire.KindFormAnswer,
				appendFormAnswer(nil, answer), visit)
		}
		n := &s.nodes[j]
		if j == i || n.life == proofDead {
			continue
		}
		id := proofID(j, n.inc)
		rec := p.records[n.given[n.inc-1]]
		switch first := j == 0; {
		case n.member():
			p.hears(s, i, proofStep{"hears the member", i, j, 0}, id, wire.KindJoinProbeAck,
				appendProbeAck(nil, probeAckBody{own, own, 1, 1, 0, nil}), visit)
		case n.life == proofProbing && formingAs(first, formState{record: rec}).remembers():
			p.hears(s, i, proofStep{"hears the record of", i, j, 0}, id, wire.KindFormAnswer,
				appendFormAnswer(nil, formAnswerBody{own, own, 0, false, rec}), visit)
		case n.life == proofProbing:
			p.hears(s, i, proofStep{"hears no of", i, j, 0}, id, wire.KindJoinProbeNak,
				wire.AppendU64(wire.AppendU64(nil, own), own), visit)
			if own := &s.nodes[i]; formingAs(i == 0, formState{asked: own.asked,
				record: p.records[own.given[own.inc-1]]}).agrees() { // it is asked what it remembers
				own := uint64(own.inc)
				p.hears(s, i, proofStep{"hears of nothing remembered by", i, j, 0}, id, wire.KindFormAnswer,
					appendFormAnswer(nil, formAnswerBody{own, own, 0, false, rec}), visit)
				ask := formAskBody{own, 0, false, p.records[s.nodes[i].given[own-1]].Known()}
				p.hears(s, j, proofStep{"is asked in general by", j, i, 0}, proofID(i, uint8(own)), wire.KindFormAsk,
					appendFormAsk(nil, ask), visit)
			}
		}
	}
}

func (p *prover) hears(s *proofState, i uint8, a proofStep, from peer.ID, kind wire.Kind, body []byte,
	visit func(proofStep, *proofState)) {
	p.step(s, i, a, func(m *Machine) { _ = m.Handle(proofNow, proofNow, from, kind, body) }, visit)
}

// members: one of them writes its record, comes up, forgets one that is gone, or ends where it cannot go on.
func (p *prover) members(s *proofState, i uint8, visit func(proofStep, *proofState)) {
	n, t := &s.nodes[i], *s
	c := s.clusters[n.cluster]
	if !s.lives(n.cluster) {
		t.kill(i)
		visit(proofStep{"ends", i, i, 0}, &t)
		t = *s
	}
	if s.crashes == 0 {
		return // nobody will read what they write, nor ask which were up
	}
	rec := p.record(n.cluster, i, c.known, c.up)
	t.nodes[i].rec, t.nodes[i].lost = rec, false
	visit(proofStep{"writes its record", i, i, 0}, &t)
	if !s.lives(n.cluster) {
		return
	}
	lead := uint8(0) // the leader decides on the others
	for s.nodes[lead].life != proofUp || s.nodes[lead].cluster != n.cluster {
		lead++
	}
	m := Machine{core: core{self: proofID(lead, s.nodes[lead].inc), now: 1, cfg: Config{Records: true}}}
	m.leading = leading{core: &m.core, recorded: p.records[s.nodes[lead].rec]}
	m.st = members.NewState(members.Version{Cluster: uint64(n.cluster)})
	m.st.Add(cluster.Member{ID: proofID(i, n.inc), Status: cluster.Joining})
	if n.life == proofJoining && m.leading.named() {
		t = *s
		t.nodes[i].life = proofUp
		t.clusters[n.cluster].up |= 1 << i
		visit(proofStep{"comes up by", i, lead, 0}, &t)
	}
	for j := range uint8(proofNodes) {
		if o := &s.nodes[j]; i == lead && c.known&(1<<j) != 0 && !(o.member() && o.cluster == n.cluster) {
			t = *s
			t.clusters[n.cluster].known &^= 1 << j
			t.clusters[n.cluster].up &^= 1 << j
			visit(proofStep{"is forgotten by", j, i, 0}, &t)
		}
	}
}

// proofRun is one search.
type proofRun struct {
	*prover
	index  map[proofState]int32
	states []proofState
	parent []int32
	steps  []proofStep
	back   [][]int32 // by state, those from which it follows without a fault
	cut    bool      // there were more states than it may have
}

func (p *prover) run(first proofState, most int) *proofRun {
	r := &proofRun{prover: p, index: map[proofState]int32{}}
	r.add(&first, -1, proofStep{})
	for at := int32(0); int(at) < len(r.states) && p.broken == ""; at++ {
		from := r.states[at]
		p.next(&from, func(a proofStep, t *proofState) {
			if p.broken != "" {
				return
			}
			t.tidy()
			to, known := r.index[*t]
			if !known {
				if len(r.states) >= most {
					r.cut = true
					return
				}
				to = r.add(t, at, a)
			}
			if !faults[a.what] && to != at {
				r.back[to] = append(r.back[to], at)
			}
		})
		if p.broken != "" {
			p.broken += "\n" + r.story(at)
		}
	}
	return r
}

func (r *proofRun) add(s *proofState, parent int32, a proofStep) int32 {
	n := int32(len(r.states))
	r.index[*s] = n
	r.states, r.parent, r.steps, r.back = append(r.states, *s), append(r.parent, parent), append(r.steps, a),
		append(r.back, nil)
	return n
}

func (r *proofRun) story(at int32) string {
	var lines []string
	for ; at >= 0; at = r.parent[at] {
		lines = append([]string{fmt.Sprintf("%-40s %s", r.steps[at], &r.states[at])}, lines...)
	}
	return strings.Join(lines, "\n")
}

// stuck returns a state from which no cluster comes about without further faults, -1 for none. Those in which a bound
// of the proof is reached say nothing.
func (r *proofRun) stuck() int32 {
	ok := make([]bool, len(r.states))
	var todo []int32
	for i := range r.states {
		for _, n := range r.states[i].nodes {
			if n.life == proofUp || n.attempt == r.attempts || n.inc == r.incs {
				ok[i] = true
			}
		}
		if ok[i] {
			todo = append(todo, int32(i))
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range r.back[at] {
			if !ok[from] {
				ok[from] = true
				todo = append(todo, from)
			}
		}
	}
	for i := range ok {
		if !ok[i] {
			return int32(i)
		}
	}
	return -1
}

// TestFormingProof: in every state of three nodes within the bounds, nobody forms a cluster while one lives that
// a node remembers, and from every one a cluster comes about when no more faults do (JOIN-1).
func TestFormingProof(t *testing.T) {
	formed := func(p *prover, crashes, losses uint8) (s proofState) {
		s.count, s.crashes, s.losses = 1, crashes, losses
		s.clusters[1] = proofCluster{0b111, 0b111, 1, false}
		for i := range s.nodes {
			rec := p.record(1, uint8(i), 0b111, 0b111)
			s.nodes[i] = proofNode{life: proofUp, inc: 1, rec: rec, cluster: 1}
		}
		return s
	}
	died := func(p *prover, crashes uint8) proofState {
		s := formed(p, crashes, 0)
		for i := range s.nodes {
			s.kill(uint8(i))
		}
		return s
	}
	for name, c := range map[string]struct {
		may   int
		first func(p *prover, crashes uint8) proofState
	}{
		"nobody remembers": {0, func(_ *prover, crashes uint8) proofState { return proofState{crashes: crashes} }},
		"all live":         {0, func(p *prover, crashes uint8) proofState { return formed(p, crashes+1, 0) }},
		"one forgets":      {0, func(p *prover, crashes uint8) proofState { return formed(p, crashes+1, 1) }},
		"all have died":    {0, died},
		// A pledge does not outlive its process, and one that was cut off after it formed a cluster may be missing.
		"one may be missing": {1, func(p *prover, _ uint8) proofState { return died(p, 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProver(c.may, uint8(*proofTries), uint8(*proofLives))
			r := p.run(c.first(p, uint8(*proofCrashes)), *proofStates)
			require.Empty(t, p.broken)
			t.Logf("%d states, cut short: %t", len(r.states), r.cut)
			if at := r.stuck(); !r.cut && at >= 0 {
				require.Fail(t, "no way out", "%s", r.story(at))
			}
		})
	}
}
