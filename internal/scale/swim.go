// A plain SWIM, as its paper describes it, beside which the part "frozen" is read: the same number of nodes stands
// still for the same time, and what counts is how often a healthy one is declared dead.

package scale

import (
	"math/rand/v2"
	"slices"
	"time"
)

// The settings of the model: the protocol of the paper, with suspicion and its rumours on probes and answers, and the
// values that its best known implementation ships for a local network.
const (
	swimPeriod    = time.Second            // one probe a period
	swimTimeout   = 500 * time.Millisecond // for the direct answer; then others are asked to probe
	swimHelpers   = 3                      // how many are asked
	swimSuspicion = 4                      // periods for each digit of the number of nodes until a suspect is dead
	swimSpread    = 4                      // how often, for each digit, one rumour is passed on by one node
	swimRumours   = 30                     // at most on one message, as fits into a packet; those passed on least first
)

// SwimResult is what a plain SWIM does under the law of the part "frozen".
type SwimResult struct {
	Suspected int `json:"suspected"` // times that a node's own probe of a healthy member failed
	Declared  int `json:"declared"`  // times that a node's own suspicion of a healthy member ran out: it is dead
	Events    int `json:"events"`    // times that a node came to hold a healthy member dead, by its own or by rumour
}

// What one holds of another.
const (
	swimAlive uint8 = iota
	swimSuspect
	swimDead
)

type swimRumour struct {
	about int32
	state uint8
	inc   uint32
}

type swimView struct {
	swimRumour
	until time.Duration // a suspect is dead then
	left  int           // how often the rumour is still passed on
}

type swimNode struct {
	frozen bool
	inc    uint32
	views  []swimView
	order  []int // of probing, shuffled anew each time it is through
	target int32 // of this period, -1 once it answered
	held   []swimMessage
}

type swimMessage struct {
	kind     uint8
	from, to int32
	who      int32 // whom a helper is asked to probe, or whose answer it is
	client   int32 // for whom a helper probes; -1: for itself
	rumours  []swimRumour
}

// The kinds of a letter; the last two are a node's own timers.
const (
	swimPing uint8 = iota
	swimAck
	swimAsk
	swimStart
	swimDirect
)

type swim struct {
	now          time.Duration
	queue        moments
	sentMessages []swimMessage
	free         []int32
	nodes        []*swimNode
	rng          *rand.Rand
	digits       int
	still        map[int]bool
	out          SwimResult
}

func newSwim(n int, seed uint64) *swim {
	s := &swim{rng: rand.New(rand.NewPCG(seed, drawsOfNodes)), still: map[int]bool{}}
	for d := 1; d < n; d *= 10 {
		s.digits++
	}
	for i := range n {
		node := &swimNode{views: make([]swimView, n), target: -1}
		for k := range node.views {
			node.views[k].about = int32(k)
		}
		s.nodes = append(s.nodes, node)
		s.post(time.Duration(s.rng.Int64N(int64(swimPeriod))), swimMessage{kind: swimStart, to: int32(i)})
	}
	return s
}

func (s *swim) post(d time.Duration, l swimMessage) {
	var slot int32
	if n := len(s.free); n > 0 {
		slot, s.free = s.free[n-1], s.free[:n-1]
	} else {
		slot = int32(len(s.sentMessages))
		s.sentMessages = append(s.sentMessages, swimMessage{})
	}
	s.sentMessages[slot] = l
	s.queue.push(s.now+d, l.to, slot)
}

func (s *swim) advance(d time.Duration) {
	end := s.now + d
	for len(s.queue.heap) > 0 && s.queue.heap[0].at <= end {
		m := s.queue.pop()
		s.now = m.at
		l := s.sentMessages[m.slot]
		s.sentMessages[m.slot] = swimMessage{}
		s.free = append(s.free, m.slot)
		if n := s.nodes[l.to]; n.frozen {
			n.held = append(n.held, l)
		} else {
			s.handle(n, l)
		}
	}
	s.now = end
}

// thaw lets a node go on: first its timers, then what had arrived, as in a swarm.
func (s *swim) thaw(i int) {
	n := s.nodes[i]
	n.frozen = false
	held := n.held
	n.held = nil
	slices.SortStableFunc(held, func(a, b swimMessage) int {
		return min(int(b.kind), int(swimStart)) - min(int(a.kind), int(swimStart))
	})
	for _, l := range held {
		s.handle(n, l)
	}
}

func (s *swim) send(from, to int32, l swimMessage) {
	n := s.nodes[from]
	l.from, l.to = from, to
	for left := swimSpread * s.digits; left > 0 && len(l.rumours) < swimRumours; left-- {
		for k := range n.views {
			if v := &n.views[k]; v.left == left && len(l.rumours) < swimRumours {
				l.rumours = append(l.rumours, v.swimRumour)
			}
		}
	}
	for _, r := range l.rumours {
		n.views[r.about].left--
	}
	s.post(time.Millisecond, l)
}

func (s *swim) handle(n *swimNode, l swimMessage) {
	me := l.to
	for _, r := range l.rumours {
		s.hear(n, me, r)
	}
	switch l.kind {
	case swimStart:
		s.period(n, me)
	case swimDirect:
		if n.target < 0 {
			return
		}
		for range swimHelpers {
			if h := int32(s.rng.IntN(len(s.nodes))); h != me && h != n.target && n.views[h].state != swimDead {
				s.send(me, h, swimMessage{kind: swimAsk, who: n.target})
			}
		}
	case swimAsk:
		s.send(me, l.who, swimMessage{kind: swimPing, client: l.from})
	case swimPing:
		s.send(me, l.from, swimMessage{kind: swimAck, who: me, client: l.client})
	case swimAck:
		if l.client >= 0 && l.client != me {
			s.send(me, l.client, swimMessage{kind: swimAck, who: l.who, client: -1})
		} else if n.target == l.who {
			n.target = -1
		}
	}
}

// period ends a node's probe, lets its suspicions run out, and begins the next probe.
func (s *swim) period(n *swimNode, me int32) {
	if t := n.target; t >= 0 && n.views[t].state == swimAlive {
		if !s.still[int(t)] {
			s.out.Suspected++
		}
		s.believe(n, swimRumour{t, swimSuspect, n.views[t].inc})
	}
	for k := range n.views {
		if v := &n.views[k]; v.state == swimSuspect && v.until <= s.now {
			if !s.still[k] {
				s.out.Declared++
			}
			s.believe(n, swimRumour{int32(k), swimDead, v.inc})
		}
	}
	n.target = -1
	for range 2 * len(s.nodes) {
		if len(n.order) == 0 {
			n.order = s.rng.Perm(len(s.nodes))
		}
		t := int32(n.order[0])
		if n.order = n.order[1:]; t != me && n.views[t].state != swimDead {
			n.target = t
			s.send(me, t, swimMessage{kind: swimPing, client: -1})
			break
		}
	}
	s.post(swimTimeout, swimMessage{kind: swimDirect, to: me})
	s.post(swimPeriod, swimMessage{kind: swimStart, to: me})
}

// hear takes a rumour that says more than what the node holds; one that speaks ill of itself it refutes.
func (s *swim) hear(n *swimNode, me int32, r swimRumour) {
	v := &n.views[r.about]
	if r.about == me {
		if r.state != swimAlive && r.inc >= n.inc {
			n.inc = r.inc + 1
			s.believe(n, swimRumour{me, swimAlive, n.inc})
		}
		return
	}
	if r.inc > v.inc || r.inc == v.inc && r.state > v.state {
		s.believe(n, r)
	}
}

func (s *swim) believe(n *swimNode, r swimRumour) {
	if r.state == swimDead && !s.still[int(r.about)] {
		s.out.Events++
	}
	n.views[r.about] = swimView{r, s.now + time.Duration(swimSuspicion*s.digits)*swimPeriod, swimSpread * s.digits}
}

// swimFrozen is the part "frozen" with this model in place of kith.
func swimFrozen(law freezing, nodes int, seed uint64, rounds int) SwimResult {
	s := newSwim(nodes, seed)
	s.advance(frozenFor)
	var picked []int
	for round := range rounds {
		if picked = law.pick(s.rng, nodes, round, picked); round == 0 || !law.same {
			clear(s.still)
		}
		for _, i := range picked {
			s.still[i], s.nodes[i].frozen = true, true
		}
		s.advance(frozenFor)
		for _, i := range picked {
			s.thaw(i)
		}
		s.advance(law.rests)
	}
	return s.out
}
