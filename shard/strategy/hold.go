// Hold: why nothing moves for balance, as the members of the cluster show it.

package strategy

import (
	"strings"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// Hold is a set of reasons for which nothing moves for balance.
type Hold uint32

// The reasons. Shards without a home are given one all the same.
const (
	Paused   Hold = 1 << iota // an operator has said so
	Shutdown                  // the whole cluster stops
	Unstable                  // a member joins, leaves, is down or unreachable; or the coordinator is suspended
	Updating                  // regions run different versions of the application: a rolling update
)

var holds = [...]string{"paused", "shutdown", "unstable", "updating"}

// String names the reasons: "unstable, updating"; none is "".
func (h Hold) String() string {
	var words []string
	for i, word := range holds {
		if h&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// HoldOf returns what the members of a cluster, whether they host the type or not, give as reasons. A joining member
// may be about to take shards, one that goes gives its own back: a rebalance beside either would move shards twice.
func HoldOf(members []cluster.Member, unreachable peer.Set) (h Hold) {
	for i := range members {
		h |= holdOf(members[i].Status)
	}
	if len(unreachable) > 0 {
		h |= Unstable
	}
	return h
}

func holdOf(s cluster.Status) Hold {
	switch s {
	case cluster.Up:
		return 0
	case cluster.PreparingForShutdown, cluster.ReadyForShutdown:
		return Shutdown
	}
	return Unstable
}
