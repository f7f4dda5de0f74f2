// Availability: a healthy core, which no fault has touched, goes on where the strategy of the resolver obliges it to.

package sim

import (
	"slices"
	"time"

	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/sbr"
)

// What is no disturbance: see core.
const (
	goodLoss  = 0.01                    // of packets, repaired as TCP does
	goodDelay = 50 * time.Millisecond   // one way
	brief     = 2500 * time.Millisecond // a pause that nobody may hold against a process
)

// steady is for how long a cluster has been well before anything is demanded of it: its detectors have learned again
// what is regular, and what was decided before is over.
const steady = 4 * time.Second

// progressBound is how long, beyond the takeover time, a core may take that was left alone: until the others are
// removed from its views.
const progressBound = 10 * time.Second

// askedAgain is within what time who is suspended asks anew a coordinator that has said nothing.
const askedAgain = 3 * time.Second

// core remembers a cluster that was well, and what faults have touched since. It was well when all who ran were Up,
// agreed and handled messages, and nothing was cut. A member is healthy as long as nobody stopped it, killed it or
// asked it to leave, and as long as it hears everybody to whom a path leads from it: nobody can take it for indirectly
// connected. Twins are two who have heard each other all the time. Whatever becomes of all the others, none of a group
// of healthy twins may be suspected. If the strategy obliges it to live, whoever of the others counts, all of it has to
// live.
//
// One thing excuses: a picture that goes on changing until one of them has to end all for instability.
type core struct {
	c     *checker
	on    bool // the storm tells of its faults: see watch
	set   bool
	fed   time.Duration                  // since when nothing has disturbed a cluster that is well; negative: it is not
	procs []*proc                        // its members
	sound []bool                         // by host: its process is one of these, and untouched
	naps  []bool                         // by host: it has stood still, so briefly that it counts as untouched
	twins [][]bool                       // by two hosts
	news  []*proc                        // processes that were started since
	moved time.Duration                  // when something was disturbed last
	dirty bool                           // something was, since the cluster was taken for well
	still map[peer.ID]time.Duration      // by process, when its picture changed last
	rows  map[peer.ID]time.Duration      // by process, when one more began or ceased to accuse somebody who lives
	back  map[membership.Accusation]bool // taken back, though others still accuse the subject
	asked bool                           // whether it has come to rest was asked after the last disturbance
	fell  time.Duration                  // when one of an obliged core saw somebody downed last

	Bases    int // how often a cluster was well
	Tested   int // of these, in how many a group was obliged after somebody else was lost for it
	Progress int // in how many of these it came to rest
	tested   bool
}

// watch begins it all.
func (k *core) watch(c *checker) { k.c, k.on = c, true }

// stirs notes a disturbance of any kind.
func (k *core) stirs() { k.moved, k.fed, k.asked, k.dirty = k.c.w.now, -1, false, true }

// touch notes that a fault has met a process.
func (k *core) touch(p *proc) {
	if !k.on {
		return
	}
	k.stirs()
	if k.set && slices.Contains(k.procs, p) {
		k.sound[p.idx] = false
	}
}

// pauses notes that a process stands still for d.
func (k *core) pauses(p *proc, d time.Duration) {
	switch {
	case d > brief:
		k.touch(p)
	case k.on && k.set:
		k.naps[p.idx] = true
	}
}

// resumes notes that one goes on that was stopped: one of a pause that nobody may hold against it stirs nothing.
func (k *core) resumes(p *proc) {
	if k.on && !(k.set && slices.Contains(k.procs, p) && k.sound[p.idx]) {
		k.stirs()
	}
}

// ends is told of every process whose membership is over.
func (k *core) ends(p *proc, e *membership.Ended) {
	if e.Kind != membership.EndLeft {
		k.goes(p, e.By, 0, "it has ended, "+endName(e.Kind))
	}
}

// starts notes a new process.
func (k *core) starts(p *proc) {
	if !k.on {
		return
	}
	k.news = append(k.news, p)
	heard := func(q *proc) bool { return k.sound[q.idx] && open(k.c.w.net, p.idx, q.idx) }
	if !k.set || slices.ContainsFunc(k.procs, heard) {
		k.stirs()
	}
}

// spoil ends what is demanded until the cluster is well again.
func (k *core) spoil() {
	if k.on {
		k.set = false
		k.stirs()
	}
}

// links notes a change of the wires.
func (k *core) links() {
	if !k.on {
		return
	}
	k.stirs()
	if !k.set {
		return
	}
	net, n := k.c.w.net, len(k.c.w.hosts)
	for a := range n {
		k.sound[a] = k.sound[a] && hearsAll(net, a)
		for b := range a {
			k.twins[a][b] = k.twins[a][b] && open(net, a, b)
			k.twins[b][a] = k.twins[a][b]
		}
	}
}

// hearsAll reports whether a host hears everybody to whom a path leads from it: nobody can be between it and another.
func hearsAll(n *network, a int) bool {
	for b := range n.cuts {
		if b == a || !open(n, a, b) {
			continue
		}
		for c := range n.cuts {
			if c != a && c != b && open(n, b, c) && !open(n, a, c) {
				return false
			}
		}
	}
	return true
}

// look takes the cluster as it is for one that is well, when it has been for long enough, and asks a core that was left
// alone whether it has come to rest. It is called about once a second.
func (k *core) look() {
	if !k.on {
		return
	}
	w := k.c.w
	k.rests()
	if !k.well() {
		k.fed = -1
		return
	}
	if k.fed < 0 {
		k.fed = w.now
	}
	if w.now-k.fed >= steady && (k.dirty || !k.set) {
		k.take()
	}
}

// take begins anew with the cluster as it is.
func (k *core) take() {
	w := k.c.w
	if k.set && k.tested && len(w.running()) < len(k.procs) {
		k.Progress++
	}
	k.set, k.procs, k.news, k.tested, k.asked = true, w.running(), nil, false, true
	k.Bases++
	k.dirty = false
	clear(k.back)
	clear(k.rows)
	n := len(w.hosts)
	k.sound, k.naps, k.twins = make([]bool, n), make([]bool, n), make([][]bool, n)
	for i := range n {
		k.twins[i] = make([]bool, n)
		for j := range n {
			k.twins[i][j] = true
		}
	}
	for _, p := range k.procs {
		k.sound[p.idx] = true
	}
}

// well reports whether all who run are Up, agree and handle messages, on a good network without cuts.
func (k *core) well() bool {
	w := k.c.w
	if !good(w.net) {
		return false
	}
	for _, p := range w.running() {
		if p.paused() || p.stuck() || p.leaving || p.doomed || p.held() || p.view == nil {
			return false
		}
		if self, ok := p.view.SelfMember(); !ok || self.Status != membership.Up || !p.view.Converged {
			return false
		}
	}
	return len(w.running()) > 1 && w.converged()
}

// good reports whether the network loses little, delays little and cuts nothing.
func good(n *network) bool {
	if n.Loss > goodLoss || n.Raw.on() {
		return false
	}
	for i := range n.cuts {
		if slices.Contains(n.cuts[i], true) || slices.Max(n.slow[i]) > goodDelay {
			return false
		}
	}
	return true
}

// open reports whether nothing between two hosts is cut.
func open(n *network, a, b int) bool { return !n.cuts[a][b] && !n.cuts[b][a] }

// obliged returns the healthy processes that have to live, nil when nobody has to.
func (k *core) obliged() []*proc {
	if !k.on || !k.set {
		return nil
	}
	for _, p := range k.procs {
		var group []*proc
		for _, q := range k.procs {
			if k.sound[q.idx] && k.twins[p.idx][q.idx] {
				group = append(group, q)
			}
		}
		if k.sound[p.idx] && k.mustLive(group) {
			return group
		}
	}
	return nil
}

// mustLive reports whether the strategy obliges a group to live, whoever of the others counts: those who have come
// since do in the worst case.
func (k *core) mustLive(group []*proc) bool {
	r := &k.c.w.cfg.Resolver
	others := slices.Concat(k.procs, k.news)
	votes, total := k.voters(group), k.voters(others)
	switch r.Strategy {
	case sbr.KeepMajority:
		return 2*len(votes) > len(total) || 2*len(votes) == len(total) && len(votes) > 0 && votes[0] == total[0]
	case sbr.StaticQuorum:
		return len(votes) >= r.QuorumSize && len(total) <= 2*r.QuorumSize-1
	case sbr.KeepOldest:
		return slices.Contains(group, k.oldest()) && (len(group) > 1 || r.KeepAlone)
	case sbr.LeaseMajority:
		owner := k.c.w.lease.owner // who has it must be the one who will ask
		alone := !slices.ContainsFunc(others, func(p *proc) bool {
			return (p.alive || p.ended != nil) && !slices.Contains(group, p)
		})
		return alone && (owner.IsZero() || owner == votes[0].id)
	}
	return false
}

// voters returns those of a list who count, the lowest address first.
func (k *core) voters(list []*proc) (votes []*proc) {
	role := k.c.w.cfg.Resolver.Role
	for _, p := range list {
		if role == "" || slices.Contains(k.c.w.cfg.rolesOf(p.idx), role) {
			votes = append(votes, p)
		}
	}
	slices.SortStableFunc(votes, func(a, b *proc) int { return a.idx - b.idx })
	return votes
}

// oldest returns the oldest of the cluster that was well.
func (k *core) oldest() (first *proc) {
	least := uint32(0)
	for _, p := range k.procs {
		if m, ok := p.view.Member(p.id); ok && (first == nil || m.UpNumber < least) {
			first, least = p, m.UpNumber
		}
	}
	return first
}

// goes is told that a process goes or stops, by whose word and why. One of an obliged core may not.
func (k *core) goes(p *proc, by peer.ID, cause membership.Cause, what string) {
	group := k.obliged()
	if !slices.Contains(group, p) {
		return
	}
	k.set = false
	own := slices.ContainsFunc(group, func(q *proc) bool { return q.id == by })
	if cause == membership.CauseUnstable && own && k.c.w.now-k.still[by] < k.standsStill() {
		return
	}
	names := ""
	for _, q := range group {
		names += " " + k.c.w.name(q.id)
	}
	k.c.violate(p, "obliged", "%s, though no fault has touched%s since all was well, and the strategy obliges them "+
		"to live", what, names)
}

// downed is told of whom a resolver has downed in the view of p. What those say who are lost themselves is the past.
func (k *core) downed(p *proc, m *membership.Member) {
	if !k.set || !resolverDown(m) || !slices.Contains(k.obliged(), p) {
		return
	}
	k.fell = k.c.w.now
	if q := k.c.w.process(m.ID); q != nil {
		k.goes(q, m.By, m.Cause, "it is down for "+k.c.w.name(p.id))
	}
}

// decided is told of every decision of a resolver.
func (k *core) decided(p *proc, d *node.Decision) {
	if !d.Lives {
		k.goes(p, p.id, d.Cause, "it decides to stop: "+d.Why)
	}
}

// rests asks a core that was left alone for long enough whether those who are lost are gone from its views: nobody else
// helps.
func (k *core) rests() {
	w := k.c.w
	group := k.obliged()
	if len(group) == 0 {
		return
	}
	if !k.tested && slices.ContainsFunc(k.procs, func(p *proc) bool { return !slices.Contains(group, p) }) {
		k.tested = true
		k.Tested++
	}
	if k.asked || w.now-k.moved < w.takeover()+progressBound {
		return
	}
	held := func(p *proc) bool { return p.held() }
	if slices.ContainsFunc(group, held) && w.now < k.fell+w.takeover()+askedAgain {
		return // a coordinator whose predecessor was downed says nothing before the takeover time is over
	}
	k.asked = true
	for _, p := range group {
		switch {
		case p.held():
			k.c.violate(p, "progress", "it is suspended %v after the last fault, which did not touch it", w.now-k.moved)
		case !p.view.Converged || len(p.view.Unreachable) > 0:
			k.c.violate(p, "progress", "%d members are unreachable (converged %t) %v after the last fault",
				len(p.view.Unreachable), p.view.Converged, w.now-k.moved)
		default:
			continue
		}
		return
	}
	if k.tested {
		k.Progress++
	}
}
