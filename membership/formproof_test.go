// The agreement on which node forms a cluster, tried exhaustively: the states, and the machine that the search drives.
// A node in no cluster is a real machine, taken apart after each step; a member is a mark, for all that matters of one
// is that it lives and says so. Time is what may happen: any timer may fire, and any attempt may be over.

package membership

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Bounds of the proof. Incarnations, attempts and clusters are numbered from 1.
const (
	proofNodes    = 3
	proofIncs     = 4 // incarnations of a node at most
	proofAttempts = 3 // attempts of an incarnation at most
	proofClusters = 6
)

// What a process is. It is a member of its cluster from proofJoining on.
const (
	proofDead = iota
	proofProbing
	proofPending
	proofJoining
	proofUp
)

// proofContact is a contact as a joiner knows it: the incarnation that answered; its record follows from that.
type proofContact struct {
	inc           uint8
	nak, promised bool
}

// proofNode is a host and its process. rec is the record that it keeps, given those with which its processes were
// started.
type proofNode struct {
	life, inc, rec, cluster        uint8
	given                          [proofIncs]uint8
	asked, told, looked, tries     bool
	lost                           bool // its record was, and none has been written since
	attempt                        uint8
	pledgedTo, pledgedInc, pledged uint8 // the node counts from 1
	contacts                       [proofNodes]proofContact
}

// proofCluster is what its members agree on: the members, as far as known, and which of them were up; and the node that
// formed it, counted from 1. A stray one was formed by a node that had lost its record: whatever comes of that.
type proofCluster struct {
	known, up, by uint8
	stray         bool
}

// proofState is one state of all, by value: a key of a map. What was asked for an attempt, and what was granted, may
// arrive from then on, in any order, any number of times, or never; asks and grants hold a bit for each such frame, by
// sender and receiver. All else that one may hear of another is what that one would say now: to hear it late is to have
// heard it before.
type proofState struct {
	nodes    [proofNodes]proofNode
	clusters [proofClusters]proofCluster
	count    uint8                          // clusters that there were
	crashes  uint8                          // that may still happen
	losses   uint8                          // of records, likewise
	asks     [proofNodes][proofNodes]uint32 // see proofAsk
	grants   [proofNodes][proofNodes]uint16 // see proofGrant
}

// proofAsk is the bit of an incarnation's word that it wants the pledge for an attempt, or has given it up.
func proofAsk(inc, attempt uint8, wants bool) uint32 {
	n := (inc-1)*2*proofAttempts + (attempt-1)*2
	if wants {
		n++
	}
	return 1 << n
}

// proofGrant is the bit of the pledge of an incarnation to an attempt.
func proofGrant(inc, attempt uint8) uint16 { return 1 << ((inc-1)*proofAttempts + attempt - 1) }

// prover steps states.
type prover struct {
	cfg            Config
	attempts, incs uint8    // bounds
	records        []Record // what numbers stand for
	m              *Machine
	broken         string // what was found
}

const proofNow = time.Hour

func newProver(may int, attempts, incs uint8) *prover {
	return &prover{cfg: Config{MayMiss: func(int) int { return may }}.WithDefaults(), attempts: attempts, incs: incs,
		records: make([]Record, 1)}
}

func proofID(node, inc uint8) peer.ID { return peer.ID{Addr: proofAddrs[node], Inc: uint64(inc)} }

var proofAddrs = addrs(1, 2, 3)

func proofNumber(a peer.Addr) uint8 {
	for i := range proofAddrs {
		if proofAddrs[i] == a {
			return uint8(i)
		}
	}
	panic("a stranger in the proof")
}

// record returns the number of the record of a member of a cluster, that names all others of known.
func (p *prover) record(cluster, node, known, up uint8) uint8 {
	r := Record{ClusterID: uint64(cluster), Birth: uint64(cluster), Highest: uint64(cluster), Counts: up&(1<<node) != 0}
	for i := range uint8(proofNodes) {
		if i != node && known&(1<<i) != 0 {
			r.remember(proofAddrs[i], up&(1<<i) == 0)
		}
	}
	for i := range p.records {
		if p.records[i].Equal(r) {
			return uint8(i)
		}
	}
	p.records = append(p.records, r)
	return uint8(len(p.records) - 1)
}

// formingAs is what a node that may head the list of seeds knows of forming a cluster.
func formingAs(first bool, s formState) *forming {
	return &forming{joining: &joining{joinState: joinState{first: first}}, formState: s}
}

// load makes the machine that of a node.
func (p *prover) load(s *proofState, node uint8) *Machine {
	n := &s.nodes[node]
	if p.m == nil || p.m.st != nil {
		p.m = New(proofID(node, n.inc), p.cfg, rand.New(rand.NewPCG(1, 1)))
	}
	m := p.m
	m.self, m.now, m.drained, m.over, m.timers = proofID(node, n.inc), proofNow, true, nil, [timerCount]timer{}
	m.told = m.told[:0]
	m.phase = probing
	j := joinState{first: node == 0, wall: 1, nonce: uint64(n.inc)}
	if n.life == proofPending {
		m.phase = pending
	}
	f := formState{record: p.records[n.given[n.inc-1]], asked: n.asked, othersRemember: n.told, looked: n.looked,
		attempt: uint64(n.attempt), tries: n.tries, begun: proofNow, heldAt: 2 * proofNow, pledged: uint64(n.pledged)}
	if n.pledgedTo != 0 {
		f.pledgedTo = proofID(n.pledgedTo-1, n.pledgedInc)
	}
	for i := range uint8(proofNodes) {
		if i == node {
			continue
		}
		c, at := &n.contacts[i], contact{addr: proofAddrs[i]}
		j.seeds = append(j.seeds, at.addr)
		if at.nak, at.promised = c.nak, c.promised; c.inc != 0 {
			at.id, at.at, at.record = proofID(i, c.inc), proofNow, p.records[s.nodes[i].given[c.inc-1]]
		}
		f.contacts = append(f.contacts, at)
	}
	m.joining.joinState, m.forming.formState = j, f
	return m
}

// keep takes the machine apart again, sends what it sent, and reports whether it formed a cluster.
func (p *prover) keep(s *proofState, node uint8, m *Machine) (formed bool) {
	n, f := &s.nodes[node], &m.forming
	for i := range m.mail {
		p.send(s, node, &m.mail[i])
	}
	n.asked, n.told, n.looked, n.tries = f.asked, f.othersRemember, f.looked, f.tries
	n.attempt = uint8(f.attempt)
	n.pledgedTo, n.pledgedInc, n.pledged = 0, 0, uint8(f.pledged)
	if !f.pledgedTo.IsZero() {
		n.pledgedTo, n.pledgedInc = proofNumber(f.pledgedTo.Addr)+1, uint8(f.pledgedTo.Inc)
	}
	for i := range f.contacts {
		c := &f.contacts[i]
		k := &n.contacts[proofNumber(c.addr)]
		k.nak, k.promised, k.inc = c.nak, c.promised, uint8(c.id.Inc)
	}
	n.life = proofProbing
	if m.phase == pending {
		n.life = proofPending
	}
	switch j := &m.forming; {
	case m.phase == member:
		return true
	case !j.forms(): // all that it does is to pledge itself
		n.told, n.looked, n.contacts = false, false, [proofNodes]proofContact{}
	case j.agrees(): // it may have looked for long whenever it likes
		n.looked, n.told = true, false
		for i := range n.contacts {
			n.contacts[i].nak = n.contacts[i].inc != 0
		}
	default: // which ones said no, and whether one remembers
		for i := range n.contacts {
			n.contacts[i].inc = 0
		}
	}
	for to := range s.asks {
		if n.attempt > 0 && n.attempt <= proofAttempts && uint8(to) != node {
			s.asks[node][to] |= proofAsk(n.inc, n.attempt, n.tries) // it may ask again at any time
		}
	}
	return false
}

// tidy forgets the records of incarnations of which nothing is left.
func (s *proofState) tidy() {
	for i := range s.nodes {
		n := &s.nodes[i]
		for inc := uint8(1); inc <= n.inc; inc++ {
			left := inc == n.inc && !n.member() && n.life != proofDead
			for j := range s.nodes {
				left = left || s.nodes[j].contacts[i].inc == inc || s.asks[i][j]>>((inc-1)*2*proofAttempts)&
					(1<<(2*proofAttempts)-1) != 0 || s.grants[i][j]>>((inc-1)*proofAttempts)&(1<<proofAttempts-1) != 0
			}
			if !left {
				n.given[inc-1] = 0
			}
		}
	}
}

// send puts a frame about an attempt where it may arrive from now on. A frame to an incarnation that is no more is left
// out.
func (p *prover) send(s *proofState, from uint8, mail *peer.Mail) {
	to, inc := proofNumber(mail.To.Addr), s.nodes[from].inc
	switch mail.Kind {
	case wire.KindFormAsk:
		if a, _ := readFormAsk(mail.Body); a.attempt > 0 && a.attempt <= proofAttempts {
			s.asks[from][to] |= proofAsk(inc, uint8(a.attempt), a.wants)
		}
	case wire.KindFormAnswer:
		if a, _ := readFormAnswer(mail.Body); a.attempt > 0 && mail.To.Inc == uint64(s.nodes[to].inc) {
			s.grants[from][to] |= proofGrant(inc, uint8(a.attempt))
		}
	}
}

func (n *proofNode) member() bool { return n.life >= proofJoining }

// name words a state for a counterexample.
func (s *proofState) String() string {
	out := ""
	for i := range s.nodes {
		n := &s.nodes[i]
		out += fmt.Sprintf("n%d#%d %s", i+1, n.inc, [...]string{"dead", "probing", "pending", "joining", "up"}[n.life])
		if n.member() {
			out += fmt.Sprintf(" in %d", n.cluster)
		}
		if n.tries {
			out += fmt.Sprintf(" tries %d", n.attempt)
		}
		if n.pledgedTo != 0 {
			out += fmt.Sprintf(" pledged to n%d#%d for %d", n.pledgedTo, n.pledgedInc, n.pledged)
		}
		out += "; "
	}
	return out
}
