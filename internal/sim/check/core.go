// Availability: a healthy core, which no fault has touched, goes on where the strategy of the resolver obliges it to.

package check

import (
	"slices"
	"time"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/sbr"
	"github.com/kith-io/kith/sim/setup"
)

// What is no disturbance: see core.
const (
	GoodLoss  = 0.01                    // of packets, repaired as TCP does
	goodDelay = 50 * time.Millisecond   // one way
	brief     = 2500 * time.Millisecond // a pause that nobody may hold against a process, at most
)

// Brief is how long a pause may be that nobody may hold against a process: less than half of the silence that the
// detectors of a cluster bear, which a preset may make short, and a third of what a session lease lasts: a node renews
// it after another third.
func Brief(cfg *setup.Config) time.Duration {
	d := min(brief, cfg.Membership.SilenceBound()*47/100)
	if cfg.SessionTTL > 0 {
		d = min(d, cfg.SessionTTL/3)
	}
	return d
}

// Steady is for how long a cluster has been well before anything is demanded of it: its detectors have learned again
// what is regular, and what was decided before is over.
const Steady = 4 * time.Second

// ProgressBound is how long, beyond the takeover time, a core may take that was left alone: until the others are
// removed from its views.
const ProgressBound = 10 * time.Second

// changeBound is how long a change, as of a tombstone that is forgotten, may be on its way through a core at rest.
const changeBound = 5 * time.Second

// askedAgain is within what time a suspended process asks a silent coordinator anew.
const askedAgain = 3 * time.Second

// Core remembers a cluster that was well, and what faults have touched since. It was well when all that ran were Up,
// agreed and handled messages, and nothing was cut. A member is healthy as long as nobody stopped it, killed it or
// asked it to leave, and as long as it hears everybody that a path leads to from it: nobody can take it for indirectly
// connected. Twins are two that have heard each other all the time. Whatever becomes of all the others, none of a group
// of healthy twins may be suspected. If the strategy obliges it to live, whichever of the others count, all of it has
// to live.
//
// One thing excuses: a picture that goes on changing until one of them has to end all for instability, or of which one
// of them cannot know any more what others have made.
type Core struct {
	c     *Checker
	on    bool // the storm reports its faults: see watch
	set   bool
	fed   time.Duration                  // since when nothing has disturbed a cluster that is well; negative: it is not
	procs []*world.Process               // its members
	first *world.Process                 // the oldest of them
	Seats electorate                     // of tenures, as all of them had it
	sound []bool                         // by host: its process is one of these, and untouched
	naps  []bool                         // by host: it has stood still, so briefly that it counts as untouched
	leave []bool                         // by host: it was asked to leave, and that is all
	twins [][]bool                       // by two hosts
	news  []*world.Process               // processes that were started since
	moved time.Duration                  // when something was disturbed last
	dirty bool                           // something was, since the cluster was taken for well
	still map[peer.ID]time.Duration      // by process, when its picture changed last
	rows  map[peer.ID]time.Duration      // by process, when one more began or ceased to accuse a living one
	back  map[membership.Accusation]bool // taken back, though others still accuse the subject
	waits map[peer.ID]leaseWait          // by process, how what it decided last waits for the lease
	// Steadfast says that nobody goes for instability: all that changes is which of a minority stand still.
	Steadfast bool
	asked     questions // since the last disturbance
	setbacks

	Bases    int // how often a cluster was well
	Tested   int // of these, in how many a group was obliged after others were lost for it
	Progress int // in how many of these it came to rest
}

// questions are those that a core was asked that was left alone.
type questions struct {
	rest, proofs, tested bool
	change               time.Duration // since when a change is on its way, when the core was asked; zero: none was
}

// setbacks are what a core that was left alone gets more time for, or may go for.
type setbacks struct {
	fell  time.Duration    // when one of an obliged core saw a member downed last
	slept time.Duration    // when a process suspended itself last since it had slept through a decision
	tired time.Duration    // when a process gave up last on a member that acknowledged no control message
	older map[peer.ID]bool // by process: one that it hears was downed by a picture that is gone, see unsure
}

// electorate is the holders of the seats, and how many members were lost with ends that had to be proven in time.
type electorate struct {
	holders []peer.ID
	Lost    int
}

// Watch begins it all.
func (k *Core) Watch(c *Checker) { k.c, k.on = c, true }

// stirs notes a disturbance of any kind.
func (k *Core) stirs() {
	k.moved, k.fed, k.asked.rest, k.asked.proofs, k.asked.change, k.dirty = k.c.w.Now, -1, false, false, 0, true
}

// touch notes that a fault has met a process.
func (k *Core) touch(p *world.Process) {
	if !k.on {
		return
	}
	k.stirs()
	if k.set && slices.Contains(k.procs, p) {
		k.leave[p.Index] = k.sound[p.Index] && p.Leaving
		k.sound[p.Index] = false
	}
}

// pauses notes that a process stands still for d.
func (k *Core) pauses(p *world.Process, d time.Duration) {
	switch {
	case !k.on:
	case d > Brief(&k.c.w.Config):
		k.touch(p)
	case k.set:
		k.naps[p.Index] = true
	}
}

// resumes notes that one goes on that was stopped: one of a pause that nobody may hold against it stirs nothing.
func (k *Core) resumes(p *world.Process) {
	if k.on && !(k.set && slices.Contains(k.procs, p) && k.sound[p.Index]) {
		k.stirs()
	}
}

// ends gets every process with a membership that is over. One that nobody obliged to live is none of the healthy ones
// any more: with a lease they may be obliged again when its owner has given it back (storm 17000002608).
func (k *Core) ends(p *world.Process, e *membership.Ended) {
	if e.Kind != membership.EndLeft {
		k.goes(p, e.By, 0, "it has ended, "+world.EndName(e.Kind))
		k.touch(p)
	}
}

// starts notes a new process.
func (k *Core) starts(p *world.Process) {
	if !k.on {
		return
	}
	k.news = append(k.news, p)
	heard := func(q *world.Process) bool { return k.sound[q.Index] && open(k.c.w.Net, p.Index, q.Index) }
	if !k.set || slices.ContainsFunc(k.procs, heard) {
		k.stirs()
	}
}

// Spoil ends what is demanded until the cluster is well again.
func (k *Core) Spoil() {
	if k.on {
		k.set = false
		k.stirs()
	}
}

// Links notes a change of the wires.
func (k *Core) Links() {
	if !k.on {
		return
	}
	k.stirs()
	if !k.set {
		return
	}
	net, n := k.c.w.Net, len(k.c.w.Hosts)
	for a := range n {
		k.sound[a] = k.sound[a] && hearsAll(net, a)
		k.leave[a] = k.leave[a] && hearsAll(net, a)
		for b := range a {
			k.twins[a][b] = k.twins[a][b] && open(net, a, b)
			k.twins[b][a] = k.twins[a][b]
		}
	}
}

// hearsAll reports whether a host hears everybody that a path leads to from it: nobody can be between it and another.
func hearsAll(n *world.Net, a int) bool {
	for b := range n.Cuts {
		if b == a || !open(n, a, b) {
			continue
		}
		for c := range n.Cuts {
			if c != a && c != b && open(n, b, c) && !open(n, a, c) {
				return false
			}
		}
	}
	return true
}

// Look takes the cluster as it is for one that is well, when it has been for long enough, and asks a core that was left
// alone whether it has come to rest. It is called about once a second.
func (k *Core) Look() {
	if !k.on {
		return
	}
	w := k.c.w
	k.rests()
	k.proves()
	if !k.well() {
		k.fed = -1
		return
	}
	if k.fed < 0 {
		k.fed = w.Now
	}
	if w.Now-k.fed >= Steady && (k.dirty || !k.set) && !k.owed() {
		k.take()
	}
}

// take begins anew with the cluster as it is.
func (k *Core) take() {
	w := k.c.w
	if k.set && k.asked.tested && len(w.Running()) < len(k.procs) {
		k.Progress++
	}
	k.set, k.procs, k.news, k.asked = true, w.Running(), nil, questions{rest: true, proofs: true}
	k.first = oldest(k.procs)
	k.Seats.holders = node.Electorate(k.procs[0].Node.Node).Holders
	k.Bases++
	k.dirty = false
	clear(k.back)
	clear(k.rows)
	clear(k.older)
	n := len(w.Hosts)
	k.sound, k.naps, k.leave, k.twins = make([]bool, n), make([]bool, n), make([]bool, n), make([][]bool, n)
	for i := range n {
		k.twins[i] = make([]bool, n)
		for j := range n {
			k.twins[i][j] = true
		}
	}
	for _, p := range k.procs {
		k.sound[p.Index] = true
	}
}

// well reports whether all that run are Up, agree and handle messages, on a good network without cuts.
func (k *Core) well() bool {
	w := k.c.w
	if !Good(w.Net) {
		return false
	}
	for _, p := range w.Running() {
		if p.Paused() || p.Stuck() || p.Leaving || p.Doomed || p.Held() || p.View == nil {
			return false
		}
		if self, ok := p.View.SelfMember(); !ok || self.Status != membership.Up || !p.View.Converged {
			return false
		}
	}
	return len(w.Running()) > 1 && w.Converged()
}

// Good reports whether the network loses little, delays little and cuts nothing.
func Good(n *world.Net) bool {
	if n.Loss > GoodLoss || n.Raw.On() {
		return false
	}
	for i := range n.Cuts {
		if slices.Contains(n.Cuts[i], true) || slices.Max(n.Slow[i]) > goodDelay {
			return false
		}
	}
	return true
}

// open reports whether nothing between two hosts is cut.
func open(n *world.Net, a, b int) bool { return !n.Cuts[a][b] && !n.Cuts[b][a] }

// Obliged returns the healthy processes that have to live, nil when nobody has to.
func (k *Core) Obliged() []*world.Process {
	if !k.on || !k.set {
		return nil
	}
	for _, p := range k.procs {
		var group, leavers []*world.Process
		for _, q := range k.procs {
			switch {
			case !k.twins[p.Index][q.Index]:
			case k.sound[q.Index]:
				group = append(group, q)
			case len(k.Seats.holders) > 0: // the seat of a leaver goes to another, which may be anyone
			case k.leave[q.Index] && stillCounts(k.procs, q) && k.c.w.Config.Resolver.Strategy != sbr.LeaseMajority:
				leavers = append(leavers, q)
			}
		}
		if k.sound[p.Index] && k.mustLive(slices.Concat(group, leavers)) {
			return group
		}
	}
	return nil
}

// Quiet reports whether the cluster is taken for well, and nothing has disturbed it since.
func (k *Core) Settled() bool { return k.set && !k.dirty }

// LivesWithout reports whether the strategy obliges the others of a cluster that is well to live when nobody can count
// on these hosts.
func (k *Core) LivesWithout(hosts []int) bool {
	return k.mustLive(slices.DeleteFunc(slices.Clone(k.procs), func(p *world.Process) bool {
		return slices.Contains(hosts, p.Index)
	}))
}

// mustLive reports whether the strategy obliges a group to live, whichever of the others count: those that have come
// since do in the worst case.
func (k *Core) mustLive(group []*world.Process) bool {
	r := &k.c.w.Config.Resolver
	if len(k.Seats.holders) > 0 && r.Strategy != sbr.DownAll {
		return k.seated(group)
	}
	others := slices.Concat(k.procs, k.news)
	votes, total := k.voters(group), k.voters(others)
	switch r.Strategy {
	case sbr.KeepMajority:
		return 2*len(votes) > len(total) || 2*len(votes) == len(total) && len(votes) > 0 && votes[0] == total[0]
	case sbr.StaticQuorum:
		return len(votes) >= r.QuorumSize && len(total) <= 2*r.QuorumSize-1
	case sbr.KeepOldest:
		return slices.Contains(group, k.first) && (len(group) > 1 || r.KeepAlone)
	case sbr.LeaseMajority:
		owner := k.c.w.Lease.Owner // its owner must be the one that will ask
		alone := !slices.ContainsFunc(others, func(p *world.Process) bool {
			return (p.Alive || p.Ended != nil) && !slices.Contains(group, p)
		})
		return alone && (owner.IsZero() || owner == votes[0].ID)
	}
	return false
}

// seated reports whether a group holds a quorum of the seats: then it lives, under every strategy that chooses a side.
// Of healthy members none loses its seat, so they are a quorum by each later list, too.
func (k *Core) seated(group []*world.Process) bool {
	held := 0
	for _, p := range group {
		if slices.Contains(k.Seats.holders, p.ID) {
			held++
		}
	}
	return 2*held > len(k.Seats.holders)
}

// tenureSlack is what the words of the seats may take, beyond the silence that a detector bears and a promise: a few
// questions of those that try first, a connection that is dialled anew, and gossip.
const tenureSlack = 3 * time.Second

// proves demands with tenures that the end of each lost member is proven, so that its shards are free, in a time that
// no resolver has a part in: when a core that holds a quorum of the seats has been left alone for so long (SHD-4). One
// that has ended by itself, as indirectly connected ones do by their resolver's word, was no lost one until then.
func (k *Core) proves() {
	w := k.c.w
	if len(k.Seats.holders) == 0 || k.asked.proofs {
		return
	}
	group := k.Obliged()
	if len(group) == 0 || k.owed() {
		return
	}
	k.asked.proofs = true
	for _, q := range k.procs {
		lost := !q.Alive || cutOff(w.Net, group, q) || q.StoodTooLong(w.Now, q.View)
		if !lost || q.Ended != nil || slices.Contains(group, q) {
			continue
		}
		k.Seats.Lost++
		if !provenDead(k.c, q.ID) {
			k.c.Violate(q, "tenure-bound", "it is lost, and nothing proves its end %v after the last fault, though %d members "+
				"hold a quorum of the seats", w.Now-k.moved, len(group))
		}
	}
}

// owed reports whether proofs are waited for yet: until then no other cluster is taken for one that is well.
func (k *Core) owed() bool {
	cfg := k.c.w.Node()
	bound := cfg.Membership.SilenceBound() + cfg.Tenure.Promise() + tenureSlack
	return k.set && len(k.Seats.holders) > 0 && !k.asked.proofs && k.c.w.Now-k.moved < bound
}

// cutOff reports whether nothing goes between a process and each of a group, in either direction.
func cutOff(n *world.Net, group []*world.Process, q *world.Process) bool {
	return !slices.ContainsFunc(group, func(p *world.Process) bool {
		return !n.Cuts[p.Index][q.Index] || !n.Cuts[q.Index][p.Index]
	})
}

// voters returns those of a list that count, the lowest address first.
func (k *Core) voters(list []*world.Process) (votes []*world.Process) {
	role := k.c.w.Config.Resolver.Role
	for _, p := range list {
		if role == "" || slices.Contains(k.c.w.Config.RolesOf(p.Index), role) {
			votes = append(votes, p)
		}
	}
	slices.SortStableFunc(votes, func(a, b *world.Process) int { return a.Index - b.Index })
	return votes
}

// oldest returns the oldest of a cluster that is well: all are in their own views. The last view of one that ends of
// itself may lack it (storm 1127300456).
func oldest(list []*world.Process) (first *world.Process) {
	least := uint32(0)
	for _, p := range list {
		if m, ok := p.View.SelfMember(); ok && (first == nil || m.UpNumber < least) {
			first, least = p, m.UpNumber
		}
	}
	return first
}

// goes gets a process that goes or stops, by which process's word and why. One of an obliged core may not.
func (k *Core) goes(p *world.Process, by peer.ID, cause membership.Cause, what string) {
	group := k.Obliged()
	if !slices.Contains(group, p) {
		return
	}
	k.set = false
	own := slices.ContainsFunc(group, func(q *world.Process) bool { return q.ID == by })
	moves := k.c.w.Now-k.still[by] < k.standsStill() || k.older[by]
	if cause == membership.CauseUnstable && own && moves && !k.Steadfast {
		return
	}
	names := ""
	for _, q := range group {
		names += " " + k.c.w.Name(q.ID)
	}
	k.c.Violate(p, "obliged", "%s, though no fault has touched%s since all was well, and the strategy obliges them "+
		"to live", what, names)
}

// downed gets a member that a resolver has downed in the view of p. The word of processes that are lost themselves is
// the past.
func (k *Core) downed(p *world.Process, m *membership.Member) {
	if !k.set || !resolverDown(m) || !slices.Contains(k.Obliged(), p) {
		return
	}
	k.fell = k.c.w.Now
	k.unsure(p, m)
	if q := k.c.w.ProcessOf(m.ID); q != nil {
		k.goes(q, m.By, m.Cause, "it is down for "+k.c.w.Name(p.ID))
	}
}

// unsure notes that p has seen one downed, by its own word or that of another that is lost, which p hears again though
// a fault had cut it off: it was decided by an older picture, in which p may have been on either side. When the picture
// of p does not come to rest in time all go (resolver.md, "Unrest"); not for one that went for instability by itself.
func (k *Core) unsure(p *world.Process, m *membership.Member) {
	old, q := k.c.checked[p], k.c.w.ProcessOf(m.ID)
	if old == nil || q == nil || m.Cause == membership.CauseUnstable && m.By == m.ID {
		return
	}
	was, ok := old.Member(m.ID)
	alive := q.Alive || q.Ended != nil
	lost := !slices.ContainsFunc(k.Obliged(), func(x *world.Process) bool { return x.ID == m.By || x == q })
	if ok && was.Status != membership.Down && alive && lost && open(k.c.w.Net, p.Index, q.Index) {
		k.older[p.ID] = true
	}
}

// decided gets every decision of a resolver.
func (k *Core) decided(p *world.Process, d *node.Decision) {
	defer delete(k.older, p.ID) // it begins anew
	if k.on {
		k.awaits(p, d)
	}
	if !d.Lives {
		k.goes(p, p.ID, d.Cause, "it decides to stop: "+d.Why)
	}
}

// rests asks a core that was left alone for long enough whether the lost ones are gone from its views: nobody else
// helps.
func (k *Core) rests() {
	w := k.c.w
	group := k.Obliged()
	if len(group) == 0 {
		return
	}
	if !k.asked.tested && slices.ContainsFunc(k.procs, func(p *world.Process) bool { return !slices.Contains(group, p) }) {
		k.asked.tested = true
		k.Tested++
	}
	if k.asked.rest || w.Now-k.moved < w.Takeover()+ProgressBound {
		return
	}
	held := func(p *world.Process) bool { return p.Held() }
	if slices.ContainsFunc(group, held) && w.Now < k.fell+w.Takeover()+askedAgain {
		return // a coordinator with a downed predecessor says nothing before the takeover time is over
	}
	if slices.ContainsFunc(group, held) && k.slept > k.moved && w.Now < k.slept+w.Takeover()+ProgressBound {
		return // the patience of one that overslept a decision begins anew (storm 12100002317)
	}
	if k.tired > k.moved && w.Now < k.tired+w.Takeover()+ProgressBound {
		return // two that are cut off from each other, and do not watch each other, nobody accuses before (storm 12300000952)
	}
	if !slices.ContainsFunc(group, func(p *world.Process) bool { return p.Held() || len(p.View.Unreachable) > 0 }) &&
		slices.ContainsFunc(group, func(p *world.Process) bool { return !p.View.Converged }) {
		if k.asked.change == 0 {
			k.asked.change = w.Now
		}
		if w.Now < k.asked.change+changeBound {
			return // it is asked again
		}
	}
	k.asked.rest = true
	for _, p := range group {
		switch {
		case p.Held():
			k.c.Violate(p, "progress", "it is suspended %v after the last fault, which did not touch it", w.Now-k.moved)
		case !p.View.Converged || len(p.View.Unreachable) > 0:
			k.c.Violate(p, "progress", "%d members are unreachable (converged %t) %v after the last fault",
				len(p.View.Unreachable), p.View.Converged, w.Now-k.moved)
		default:
			continue
		}
		return
	}
	if k.asked.tested {
		k.Progress++
	}
}
