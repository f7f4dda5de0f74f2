// The law of accounts: every accepted message is handled, or its sender learns that it was not, or it is lost for a
// reason that has a name. Reports count: by shard and reason, never which message.

package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
)

// Cause is why a message that was not handled was not reported. Docs name them: docs/account.md.
type Cause string

// The causes that the docs name: nobody is left to report it, or to get the report.
const (
	SenderEnded    Cause = "sender-ended"    // the process that sent it has ended, or was killed
	ReceiverKilled Cause = "receiver-killed" // it lay at a process that was killed
	ReceiverEnded  Cause = "receiver-ended"  // it lay at a process that the cluster ended
	RefuserEnded   Cause = "refuser-ended"   // its refuser ended before it had reported so
	Earlier        Cause = "earlier-version" // its sender or receiver speaks an earlier version, and tells once, or not
)

// The causes that are none: each such message counts in the difference.
const (
	InFlight   Cause = "in-flight"   // its connection broke, and both live, or its sender has ended by itself
	Untold     Cause = "untold"      // its refuser lives
	LeftBehind Cause = "left-behind" // it lay at a process that left
	Nowhere    Cause = "nowhere"     // two that live, and neither has it
	AskOpen    Cause = "ask-open"    // an asker that lives waits for ever
	TooOften   Cause = "too-often"   // more are said to be undelivered than are
)

// named are the causes that explain a loss.
var named = []Cause{SenderEnded, ReceiverKilled, ReceiverEnded, RefuserEnded, Earlier}

// lawless are the causes of a difference, in the order in which they are reported.
var lawless = []Cause{InFlight, Untold, LeftBehind, Nowhere, AskOpen, TooOften}

// Accounts is the sum over all messages of a run.
type Accounts struct {
	Accepted, Handled, Reported int
	Lost                        map[Cause]int  // by a named cause
	Open                        map[Cause]int  // the difference, by its cause
	Twice                       int            // reported as perhaps lost, and handled, or reported again where they lay
	Forms                       map[string]int // accepted, by form and mode: "large tell blocking"

	samples map[Cause]string // of the difference, one of each cause
}

// Difference is what the equation lacks: accepted less handled, reported and lost for a named reason. What is said to
// be undelivered and is not counts too.
func (a *Accounts) Difference() (n int) {
	for _, k := range a.Open { // in any order: it is a sum
		n += k
	}
	return n
}

// Add adds the sums of another run.
func (a *Accounts) Add(o *Accounts) {
	a.Accepted, a.Handled, a.Reported = a.Accepted+o.Accepted, a.Handled+o.Handled, a.Reported+o.Reported
	a.Twice += o.Twice
	add := func(to *map[Cause]int, from map[Cause]int) {
		for c, n := range from { // in any order: they are sums
			if *to == nil {
				*to = map[Cause]int{}
			}
			(*to)[c] += n
		}
	}
	add(&a.Lost, o.Lost)
	add(&a.Open, o.Open)
	for form, n := range o.Forms { // in any order: they are sums
		if a.Forms == nil {
			a.Forms = map[string]int{}
		}
		a.Forms[form] += n
	}
}

// Law notes a violation for each cause of a difference.
func (a *Accounts) Law(c *Checker) {
	for _, cause := range lawless {
		if n := a.Open[cause]; n > 0 {
			c.Violate(nil, "accounts", "%d of %d messages are %s: %s", n, a.Accepted, cause, a.samples[cause])
		}
	}
}

// group is the messages of a process to a shard that nobody has handled, and the reports about them to the process.
type group struct {
	world.Report         // its reason is zero
	settled      []*loss // refused, or given up by their sender
	adrift       []*loss // others
	maybe        int     // handled, though reported as perhaps lost
}

// loss is one message that nobody has handled.
type loss struct {
	at    *world.Process
	why   route.Reason // zero: nobody knows its end
	cause Cause        // why it was not reported, if it was not
}

// Account makes the sums of a world. All messages have a fate or a process that has them: nothing is under way.
func Account(w *world.World) *Accounts {
	b := &books{w: w, sums: Accounts{Lost: map[Cause]int{}, Open: map[Cause]int{}, Forms: map[string]int{},
		samples: map[Cause]string{}}, groups: map[world.Report]*group{},
		spare: map[world.Report]int{}, lost: maps.Clone(w.Book.Unknown())}
	w.Book.Accounts(b.enter)
	for _, g := range b.list {
		b.settle(g, w.Book.Reports())
	}
	b.rest(w.Book.Reports())
	return &b.sums
}

// books is an account that is being made.
type books struct {
	w      *world.World
	sums   Accounts
	groups map[world.Report]*group
	list   []*group // in the order of their first messages
	left   []missing
	lost   map[*world.Process]uint64 // tells reported to a process as perhaps lost that no message explains
	spare  map[world.Report]int      // reports that no message of the process that got them explains
}

// missing is a message that was not reported to its own sender.
type missing struct {
	*loss
	*group
}

// enter takes one message.
func (b *books) enter(a *world.Account) {
	b.sums.Accepted++
	b.sums.Forms[form(a)+" "+b.w.TypeOf(a.Type).Mode.String()]++
	handled := a.Fate == world.FateDelivered || a.Fate == world.FateLate
	if handled {
		b.sums.Handled++
	}
	switch {
	case handled && (!a.Maybe || a.Ask):
	case handled:
		b.group(a).maybe++
	case a.Told:
		b.sums.Reported++
		if a.Maybe && !a.Ask {
			b.group(a).maybe++ // its sender got a report, and its receiver dropped it and reported as well
		}
	case a.Ask:
		b.lose(&loss{at: a.At, cause: asked(a)}, world.Report{Sender: a.Sender, Type: a.Type, Shard: a.Shard})
	case a.Fate == world.FateRefused || a.Fate == world.FateFailed || a.Fate == world.FateInFlight && a.Why != route.OK:
		g := b.group(a)
		g.settled = append(g.settled, &loss{a.At, b.spoken(a.Why), b.untold(a)})
	default:
		g := b.group(a)
		g.adrift = append(g.adrift, &loss{at: a.At, cause: adrift(a)})
	}
}

func (b *books) group(a *world.Account) *group {
	key := world.Report{Sender: a.Sender, Type: a.Type, Shard: a.Shard}
	g := b.groups[key]
	if g == nil {
		g = &group{Report: key}
		b.groups[key] = g
		b.list = append(b.list, g)
	}
	return g
}

// spoken returns a reason as it is reported where nodes speak an earlier version.
func (b *books) spoken(why route.Reason) route.Reason {
	if b.w.Config.Data.OldCredit {
		return why.Spoken(1)
	}
	return why
}

// asked is why an ask has no end.
func asked(a *world.Account) Cause {
	if !a.Sender.Alive {
		return SenderEnded
	}
	return AskOpen
}

// untold is why a refused, or given up, message was not reported to its sender.
func (b *books) untold(a *world.Account) Cause {
	switch {
	case !a.Sender.Alive:
		return SenderEnded
	case a.Fate == world.FateRefused && !a.At.Alive:
		return RefuserEnded
	case a.Fate == world.FateRefused && a.At != a.Sender && b.w.Config.Data.OldCredit:
		return Earlier
	}
	return Untold
}

// adrift is why a message with an unknown end is lost.
func adrift(a *world.Account) Cause {
	switch {
	case !a.Sender.Alive && a.Sender.Ended != nil && a.Fate == world.FateInFlight && !a.Large &&
		!a.Sender.World.Config.Data.OldCredit:
		return InFlight
	case !a.Sender.Alive:
		return SenderEnded
	case a.Fate == world.FateInFlight && a.Sender.World.Config.Data.OldCredit:
		return Earlier
	case a.Fate == world.FateInFlight:
		return InFlight
	case a.At.Alive:
		return Nowhere
	case a.At.Ended == nil:
		return ReceiverKilled
	case a.At.Ended.Kind == membership.EndLeft && !a.Hosted && a.At != a.Sender && a.Sender.World.Config.Data.OldCredit:
		return Earlier // kept by a closed gate: it went with its connection
	case a.At.Ended.Kind == membership.EndLeft:
		return LeftBehind
	}
	return ReceiverEnded
}

// form is how a message was sent.
func form(a *world.Account) string {
	name := "tell"
	if a.Ask {
		name = "ask"
	}
	if a.Large {
		name = "large " + name
	}
	return name
}

// lose counts a message that was not reported.
func (b *books) lose(l *loss, of world.Report) {
	if slices.Contains(named, l.cause) {
		b.sums.Lost[l.cause]++
		return
	}
	b.sums.Open[l.cause]++
	if b.sums.samples[l.cause] == "" {
		b.sums.samples[l.cause] = fmt.Sprintf("one of %s to %s, last at %s (%s)", b.w.Name(of.Sender.ID),
			b.w.ShardName(of.Type, of.Shard), b.w.Name(l.at.ID), l.why)
	}
}

// settle holds the reports to a process about a shard against what has become of its messages there. What was refused
// or given up is reported with its very reason; what else is missing may be reported as lost. Messages that nothing
// explains are matched with reports first.
func (b *books) settle(g *group, reports map[world.Report]uint64) {
	told := map[route.Reason]int{}
	for why := route.Reason(0); int(why) < route.Reasons; why++ {
		k := g.Report
		k.Why = why
		if n := int(reports[k]); n > 0 {
			told[b.spoken(why)] += n
		}
	}
	loose := b.match(g, told)
	twice := min(loose+told[route.PeerLost]+told[route.Stopped], g.maybe)
	b.sums.Twice += twice
	for why := range told { // in any order: each for itself, but for what is taken of three
		k := g.Report
		k.Why = why
		b.spare[k] = told[why]
	}
	for _, why := range []route.Reason{route.PeerLost, route.Stopped, route.LostInFlight, route.Abandoned} {
		k := g.Report
		k.Why = why
		n := min(twice, b.spare[k])
		b.spare[k] -= n
		twice -= n
	}
}

// match finds messages for the reports, takes those off, and keeps the others. It returns how many reports of messages
// with an unknown end are left when none is missing.
func (b *books) match(g *group, told map[route.Reason]int) (loose int) {
	excused := func(a, b *loss) int { return cmp.Compare(rank(a.cause), rank(b.cause)) }
	slices.SortStableFunc(g.settled, excused)
	slices.SortStableFunc(g.adrift, excused)
	for _, l := range g.settled {
		if told[l.why] > 0 {
			told[l.why]--
			b.sums.Reported++
			continue
		}
		b.left = append(b.left, missing{l, g})
	}
	for _, l := range g.adrift {
		switch {
		case told[route.LostInFlight] > 0:
			told[route.LostInFlight]--
			b.sums.Reported++
		case told[route.Abandoned] > 0:
			told[route.Abandoned]--
			b.sums.Reported++
		default:
			b.left = append(b.left, missing{l, g})
		}
	}
	return told[route.LostInFlight] + told[route.Abandoned]
}

// rank puts what nothing explains first.
func rank(c Cause) int {
	if slices.Contains(named, c) {
		return 1
	}
	return 0
}

// rest looks for the messages that were not reported to their own senders: a process where they lay may have reported
// to its own embedder that it dropped them. What is left then is lost, and reports beyond that are too many.
func (b *books) rest(reports map[world.Report]uint64) {
	for k, n := range reports { // in any order: each for itself
		if b.groups[world.Report{Sender: k.Sender, Type: k.Type, Shard: k.Shard}] == nil {
			b.spare[k] = int(n)
		}
	}
	slices.SortStableFunc(b.left, func(a, b missing) int { return cmp.Compare(rank(a.cause), rank(b.cause)) })
	for _, m := range b.left {
		if !b.toldThere(m) && !b.toldLost(m) {
			b.lose(m.loss, m.Report)
		}
	}
	for _, n := range b.lost { // in any order: it is a sum
		b.sums.Twice += int(n)
	}
	over := 0
	for k, n := range b.spare { // in any order: it is a sum, and the least of the texts
		if k.Type == 0 && b.w.Unwritten() {
			continue // of messages that have no entry, or of any type
		}
		if over += n; n == 0 {
			continue
		}
		text := fmt.Sprintf("%d to %s are told as %s to %s", n, b.w.ShardName(k.Type, k.Shard), k.Why, b.w.Name(k.Sender.ID))
		if old := b.sums.samples[TooOften]; old == "" || text < old {
			b.sums.samples[TooOften] = text
		}
	}
	if over > 0 {
		b.sums.Open[TooOften] += over
	}
}

// toldLost finds a report of the sender of a message that was on its way, or at a process that is gone: it does not
// name a shard. First those that are exact, since the receiver has said what it took; then those of which nobody knows
// whether they were handled: what is left of them was.
func (b *books) toldLost(m missing) bool {
	k := world.Report{Sender: m.Sender, Shard: route.NoShard, Why: route.LostInFlight}
	switch {
	case m.why == route.OK && b.spare[k] > 0:
		b.spare[k]--
	case b.lost[m.Sender] > 0 && m.cause != Untold:
		b.lost[m.Sender]--
	default:
		return false
	}
	b.sums.Reported++
	return true
}

// toldThere finds a report of the process at which a message lay.
func (b *books) toldThere(m missing) bool {
	for _, why := range []route.Reason{route.Crashed, route.NewFailed, route.Abandoned} {
		k := world.Report{Sender: m.at, Type: m.Type, Shard: m.Shard, Why: b.spoken(why)}
		if b.spare[k] > 0 && (m.why == route.OK || m.why == k.Why) {
			b.spare[k]--
			b.sums.Reported++
			return true
		}
	}
	return false
}
