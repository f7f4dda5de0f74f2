// Crews: to which worker of a pool a message goes, as one node knows the workers of all.

package plane

import (
	"errors"
	"strconv"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// ShyTime is how long a node is given no message of a pool, while there is another, after it has refused one for want
// of room.
const ShyTime = 100 * time.Millisecond

// Worker is one worker of a pool: an entity of the pool's type, in a shard that lives on the worker's node.
type Worker struct {
	Shard route.ShardID
	ID    string
}

// AnyWorker returns the id of a worker, by its place in the order in which Names finds them.
func AnyWorker(at uint64) string { return "w" + strconv.FormatUint(at, 10) }

// Names are the ids of the workers of a pool: of each shard those that the hash maps to it, in their order. They are
// the same on all nodes. Make it with NewNames.
type Names struct {
	shards uint32
	looked uint64 // at so many ids
	of     [][]string
}

// NewNames returns the names of the workers of a pool of so many shards.
func NewNames(shards uint32) *Names { return &Names{shards: shards, of: make([][]string, shards)} }

// Of returns the id of a worker of a shard, by its number there. It remembers the shard of each id that it looks at: to
// find one for each of n shards takes about n times the logarithm of n looks.
func (n *Names) Of(s route.ShardID, number int) string {
	for len(n.of[s]) <= number {
		id := AnyWorker(n.looked)
		n.looked++
		at := route.ShardOf(id, n.shards)
		n.of[at] = append(n.of[at], id)
	}
	return n.of[s][number]
}

// Team are the workers of a pool on another node.
type Team struct {
	Node    peer.ID
	Workers []Worker
}

// Crew are the workers of a pool as one node knows them. It does not change once made.
type Crew struct {
	Here  []Worker // on this node
	There []Team   // on others that can be reached, each with a worker, in the order of their first shards
}

// MakeCrew returns the workers of a pool. home says where a shard lives as far as this node knows; usable reports
// whether another node is to be given messages. Each node has perNode workers: entities of the shards that live there,
// as evenly as may be.
func MakeCrew(self peer.ID, names *Names, perNode int, home func(route.ShardID) (peer.ID, bool),
	usable func(peer.ID) bool) *Crew {
	var nodes []peer.ID
	owned := map[peer.ID][]route.ShardID{}
	for s := range route.ShardID(names.shards) {
		at, ok := home(s)
		if !ok || at != self && !usable(at) {
			continue
		}
		if owned[at] == nil {
			nodes = append(nodes, at)
		}
		owned[at] = append(owned[at], s)
	}
	c := &Crew{}
	for _, at := range nodes {
		workers := make([]Worker, perNode)
		for i := range workers {
			s := owned[at][i%len(owned[at])]
			workers[i] = Worker{s, names.Of(s, i/len(owned[at]))}
		}
		if at == self {
			c.Here = workers
		} else {
			c.There = append(c.There, Team{at, workers})
		}
	}
	return c
}

// Offer gives a message to workers until one takes it: two of this node at most, and then one on each of two others, of
// which the one with the smaller load comes first. r draws them: 64 random bits. load is asked of There by place, only
// where there are several; send reports whether the next one is to be tried, as NextWorker says. It reports whether
// there was any worker.
func (c *Crew) Offer(r uint64, load func(team int) int, send func(w *Worker) (next bool)) (some bool) {
	here, there := uint64(len(c.Here)), uint64(len(c.There))
	first, second := r>>48, r>>32&0xffff
	if here > 0 && !send(&c.Here[first%here]) {
		return true
	}
	if here > 1 && !send(&c.Here[(first+1+second%(here-1))%here]) {
		return true
	}
	if there == 0 {
		return here > 0
	}
	first, second = r>>16&0xffff, r&0xffff
	a, b := first%there, first%there
	if there > 1 {
		if b = (a + 1 + second%(there-1)) % there; load(int(b)) < load(int(a)) {
			a, b = b, a
		}
	}
	for i, t := range [2]uint64{a, b} {
		if team := c.There[t].Workers; i > 0 && a == b || !send(&team[second%uint64(len(team))]) {
			break
		}
	}
	return true
}

// NextWorker reports whether a message that was not taken for this reason may be by another worker: the fault is that
// worker's, or of the way there. Of an ask that was accepted, route.MayHaveRun says before whether a handler has it.
func NextWorker(err error) bool {
	for _, its := range []error{route.ErrMailboxFull, route.ErrLinkFull, route.ErrParkFull, route.ErrPeerLost,
		route.ErrCrashed, route.ErrNewFailed, route.ErrNotOwner, route.ErrNotRegistered, route.ErrShardStopping} {
		if errors.Is(err, its) {
			return true
		}
	}
	return false
}
