// Decide: the lowest address alone forms the cluster, and only when nothing speaks against it.

package formation

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kith-io/kith/peer"
)

// LowestAddress is the default Decider: a node that finds a cluster joins it; where there is none, the node of the
// lowest address forms it, after the margin, when enough nodes and all contact points have said that they are in none.
type LowestAddress struct{}

// Decide looks at what is observed, in this order: a cluster that is there, enough nodes, the margin, points that do
// not answer, which is the lowest, and whether this node may.
func (LowestAddress) Decide(info Info) Decision {
	if d, found := existing(&info); found {
		return d
	}
	nodes := confirmed(&info)
	switch {
	case !info.Known:
		return wait(HoldUnknown, "no look-up has succeeded yet")
	case len(nodes) < info.Required:
		return wait(HoldTooFew, "%d of at least %d nodes have confirmed that they are in no cluster", len(nodes),
			info.Required)
	case info.Stable < info.Margin:
		return wait(HoldUnstable, "look-ups have shown the same contact points for %v, at least %v are needed", info.Stable,
			info.Margin)
	}
	if silent := unanswered(&info); len(silent) > 0 && !info.Silent && !otherFamily(&info) {
		return wait(HoldSilent, "no answer of %s", strings.Join(silent, ", "))
	}
	if !slices.Contains(nodes, info.Self) {
		return wait(HoldNotListed, "look-ups do not show this node, %s", info.Self.Addr)
	}
	if info.NeverForm {
		return wait(HoldNeverForm, "this node may not form a cluster")
	}
	lowest := slices.MinFunc(slices.DeleteFunc(nodes, func(id peer.ID) bool { return never(&info, id) }), peer.ID.Compare)
	if lowest != info.Self {
		return wait(HoldNotLowest, "%s has the lowest address of those that may, and is to form the cluster", lowest.Addr)
	}
	return Decision{Action: FormCluster}
}

// never reports whether a node has said that it may not form a cluster.
func never(info *Info, id peer.ID) bool {
	return slices.ContainsFunc(info.Points, func(o Observed) bool {
		return o.Answered && o.Reply.Node == id && o.Reply.Never
	})
}

// otherFamily reports whether the points that do not answer are only the other addresses of nodes that do: all of one
// address family are silent, and all of the other answer, and are at least as many. So look names of dual-stack nodes
// that listen in one family. It is believed where Required is a majority: a node that was no such address joins later.
func otherFamily(info *Info) bool {
	var answer, silent [2]int // by family
	for i := range info.Points {
		o := &info.Points[i]
		family := 0
		switch ip, err := netip.ParseAddr(o.Point.Host()); {
		case err != nil:
			return false
		case ip.Is6():
			family = 1
		}
		if o.Answered {
			answer[family]++
		} else {
			silent[family]++
		}
	}
	whole := func(f int) bool { return silent[f] == 0 && answer[1-f] == 0 && answer[f] >= silent[1-f] }
	return info.Majority && (whole(0) || whole(1))
}

func wait(h Hold, format string, args ...any) Decision {
	return Decision{Hold: h, Detail: fmt.Sprintf(format, args...)}
}

// maxNamed is how many addresses a sentence names.
const maxNamed = 8

// unanswered names contact points that do not answer, at most maxNamed of them and how many more, with the reasons.
func unanswered(info *Info) (list []string) {
	for i := range info.Points {
		switch o := &info.Points[i]; {
		case o.Answered:
		case o.Failed == "":
			list = append(list, o.Point.String())
		default:
			list = append(list, fmt.Sprintf("%s (%s)", o.Point, o.Failed))
		}
	}
	if more := len(list) - maxNamed; more > 0 {
		list = append(list[:maxNamed:maxNamed], fmt.Sprintf("%d more", more))
	}
	return list
}

// confirmed returns the nodes of this name that have said that they are in no cluster, each once, whatever the number
// of its contact points. One that speaks no common version could not be joined by this one and does not count.
func confirmed(info *Info) (nodes []peer.ID) {
	for i := range info.Points {
		o := &info.Points[i]
		if o.Answered && !o.Foreign && o.Speaks && o.Reply.ClusterID == 0 && !slices.Contains(nodes, o.Reply.Node) {
			nodes = append(nodes, o.Reply.Node)
		}
	}
	return nodes
}

// existing decides where some node is in a cluster of this name, or about to form one.
func existing(info *Info) (Decision, bool) {
	var ids []uint64
	var seeds []peer.Addr
	twin, foreign := false, false
	forming := peer.ID{}
	for i := range info.Points {
		o := &info.Points[i]
		switch {
		case !o.Answered || o.Foreign:
		case o.Reply.ClusterID != 0:
			twin = twin || len(ids) > 0 && !slices.Contains(ids, o.Reply.ClusterID)
			ids = append(ids, o.Reply.ClusterID)
		case o.Reply.Forms && o.Reply.Node != info.Self:
			forming = o.Reply.Node
		}
	}
	known := info.Remembered != 0 && slices.Contains(ids, info.Remembered)
	for i := range info.Points {
		o := &info.Points[i]
		switch {
		case !o.Answered || o.Foreign || o.Reply.ClusterID == 0 || known && o.Reply.ClusterID != info.Remembered:
		case !o.Speaks:
			foreign = true
		default:
			seeds = union(seeds, o.Reply.Seeds, info.Self.Addr)
		}
	}
	switch {
	case twin && !known:
		return wait(HoldDuplicate, "there are two clusters of this name, %016x and another: neither is joined", ids[0]), true
	case len(seeds) > 0:
		return Decision{Action: JoinCluster, Seeds: seeds}, true
	case foreign:
		return wait(HoldIncompatible, "the nodes of cluster %016x speak no wire version that this node speaks",
			ids[0]), true
	case len(ids) > 0:
		return wait(HoldForming, "a node is in cluster %016x and names no member to join yet", ids[0]), true
	case !forming.IsZero():
		return wait(HoldForming, "%s is about to form the cluster", forming.Addr), true
	}
	return Decision{}, false
}

// union adds seeds that are not this node to a list of at most MaxSeeds.
func union(list, more []peer.Addr, self peer.Addr) []peer.Addr {
	for _, a := range more {
		if a != self && !slices.Contains(list, a) && len(list) < MaxSeeds {
			list = append(list, a)
		}
	}
	return list
}
