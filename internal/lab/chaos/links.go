// Links: what every directed way between two nodes does while faults are under way. Pure.

package chaos

import "time"

// lane is a kind of connection between two nodes, as the hello names it.
type lane uint8

const (
	controlLane lane = iota
	dataLane
	bulkLane
	lanes
)

// lanesOf is a set of lanes, a bit each.
type lanesOf uint8

const allLanes = lanesOf(1<<lanes - 1)

func (s lanesOf) has(l lane) bool { return s&(1<<l) != 0 }

// link is what one directed way does.
type link struct {
	Cut   lanesOf // nothing of these passes
	Loss  int     // per mille of what is sent
	Delay time.Duration
	MBit  int // megabits a second that the links of both carry; zero: all that the machine can
	Reset int // per mille of the chunks behind which the connection is reset
}

// links holds one link for each directed way, [from][to].
type links [][]link

func newLinks(nodes int) links {
	l := make(links, nodes)
	for i := range l {
		l[i] = make([]link, nodes)
	}
	return l
}

// each calls f for the ways from a to b that fit.
func (l links) each(fits func(from, to int) bool, f func(*link)) {
	for from := range l {
		for to := range l[from] {
			if from != to && fits(from, to) {
				f(&l[from][to])
			}
		}
	}
}

// linksUnder returns what all ways do under these faults.
func linksUnder(faults []struck, nodes int) links {
	l := newLinks(nodes)
	for i := range faults {
		f := &faults[i]
		across := func(from, to int) bool { return f.touched(from) != f.touched(to) }
		all := func(int, int) bool { return true }
		cut := func(s lanesOf) func(*link) { return func(k *link) { k.Cut |= s } }
		switch f.Kind {
		case Cut, Flap:
			l.each(across, cut(allLanes))
		case Kill, Restart: // of the second, which loses its power
			if f.Kind == Restart || f.away() {
				l.each(func(from, to int) bool { return f.touched(from) || f.touched(to) }, cut(allLanes))
			}
		case CutOneWay:
			l.each(func(from, to int) bool { return f.touched(from) && !f.touched(to) }, cut(allLanes))
		case CutPartial:
			l.each(func(from, to int) bool { return f.touched(from) && f.touched(to) }, cut(allLanes))
		case DataCut:
			l.each(across, cut(allLanes&^(1<<controlLane)))
		case ControlCut:
			l.each(across, cut(1<<controlLane))
		case holdData, holdControl:
			lane := lanesOf(1 << controlLane)
			if f.Kind == holdData {
				lane = allLanes &^ lane
			}
			l.each(func(from, to int) bool { return from == f.who[0] && to == f.who[1] }, cut(lane))
		case Reset:
			of := all
			if f.Victims > 0 {
				of = func(from, to int) bool { return f.touched(from) || f.touched(to) }
			}
			l.each(of, func(k *link) { k.Reset = max(k.Reset, f.PerMille) })
		case Loss:
			l.each(all, func(k *link) { k.Loss = max(k.Loss, f.PerMille) })
		case Delay:
			l.each(all, func(k *link) { k.Delay += f.Extra })
		case SlowLink:
			l.each(all, func(k *link) { k.MBit = f.MBit })
		}
	}
	return l
}
