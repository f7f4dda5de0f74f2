// View: what a strategy is shown, and what it answers with.

package strategy

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Strategy decides where the shards of one type live. It is used by one node at a time and from one goroutine; it may
// keep what it has worked out, but must answer the same question in the same way, must change nothing in the view, and
// must return soon: it runs in a step of the coordinator's node, which puts Check around it. Run one of your own
// through strategytest.Run.
type Strategy interface {
	// Allocate returns the region that a shard without a home is given to, or ErrNoRegion when the shard is to wait. The
	// view lists no shards, no moves and no loads by shard: see Region.Count and Coming.
	Allocate(v *View, s route.ShardID) (peer.ID, error)
	// Rebalance returns the moves that make the balance better, the most urgent first; none when it is good. It returns no
	// more than View.Room, none of a shard that moves already, none from or to a region that is not eligible.
	Rebalance(v *View) ([]Move, error)
}

// Errors of this package; match with errors.Is.
var (
	// ErrNoRegion says that no region can be given the shard now: the coordinator asks again when the view has changed.
	ErrNoRegion = errors.New("strategy: no region for the shard")
	ErrBadView  = errors.New("strategy: bad view")
)

// Move is a shard and the regions between which it moves.
type Move struct {
	Shard    route.ShardID
	From, To peer.ID
}

// Load is what a shard costs where it lives, as its region has measured it over a window of time.
type Load struct {
	Entities uint32 // in memory
	Rate     uint32 // messages a second
	// HandlerTime is how long its handlers ran, in microseconds a second: what they waited for included, not processor
	// time. Calls of Worker and Inline handlers are sampled, one in 64 on average, rarer where they are fast.
	HandlerTime uint32
	// Queued is what waited in the mailboxes of its entities when it was read: bytes, with entity.RecordOverhead for each
	// message.
	Queued uint32
}

// NodeLoad is how short a node is of what all its shards share, in thousandths; zero where it does not say so.
type NodeLoad struct {
	Processor uint16 // time of the process, of that of all processors it may use
	Collector uint16 // time of the garbage collector, of the same
	Memory    uint16 // of the memory limit that the Go runtime was given; zero without one
}

// From so much on a node is strained, in thousandths.
const (
	StrainedProcessor = 900
	StrainedCollector = 250
	StrainedMemory    = 900
)

// Strained reports whether the node had better be given nothing more.
func (n NodeLoad) Strained() bool {
	return n.Processor >= StrainedProcessor || n.Collector >= StrainedCollector || n.Memory >= StrainedMemory
}

// Reading is what a runtime reads of a shard that lives on its node: totals since it lives there under this fence.
type Reading struct {
	Shard       route.ShardID
	Fence       route.Fence
	Entities    uint32        // in memory now
	Handled     uint64        // messages
	HandlerTime time.Duration // that its handlers ran; zero where it is not measured
	Queued      uint32        // as Load has it, now
}

// Region is one region of the type, hosting or not, as the coordinator sees it.
type Region struct {
	ID          peer.ID
	Status      cluster.Status
	AppVersion  string   // see cluster.CompareVersions
	UpNumber    uint32   // of its member: the lower, the older
	Unreachable bool     // some member marks it unreachable
	NotReady    bool     // its application has declared that it takes no shards for now
	Draining    bool     // it gives its shards back
	Count       int      // shards that live there, those included that start, stop or move away
	Coming      int      // shards that move there, which count beside them where a home is looked for
	Load        Load     // sum over those of its shards that have been measured, each figure at most the largest number
	Measured    int      // how many these are
	Node        NodeLoad // as its node measured it with them; zero where the type's strategy reads no loads
	// Shards are those that live there in the order of their allocation, Count of them. Only Rebalance is shown them.
	Shards []route.ShardID
}

// View is what a coordinator knows of one type at one moment. It belongs to its maker.
type View struct {
	Now     time.Duration // monotonic, on the coordinator's node
	Shards  uint32        // of the type: they are numbered from 0 to Shards-1
	Regions []Region      // sorted by ID, at most cluster.MaxMembers
	// Moving are those under way, sorted by shard; each still counts as a shard of From. Only Rebalance is shown them, and
	// neither a move that takes longer than a minute nor its shard.
	Moving []Move
	Limit  int           // how many moves there may be: those under way, and those of a round that begin as others end
	Hold   Hold          // why nothing may move; Holds adds what the regions show
	Moved  time.Duration // when the last move ended; zero when there was none
	// Loads are by shard, or nil when nothing is known. Only Rebalance is shown them. All were measured after Since.
	Loads []Load
	Since time.Duration
}

// Region returns the region with this identity, which is the view's own, or nil.
func (v *View) Region(id peer.ID) *Region {
	i, ok := slices.BinarySearchFunc(v.Regions, id, func(r Region, id peer.ID) int { return r.ID.Compare(id) })
	if !ok {
		return nil
	}
	return &v.Regions[i]
}

// Room returns how many moves a round may have now.
func (v *View) Room() int { return max(0, v.Limit-len(v.Moving)) }

// IsMoving reports whether a shard moves already.
func (v *View) IsMoving(s route.ShardID) bool {
	_, ok := slices.BinarySearchFunc(v.Moving, s, func(m Move, s route.ShardID) int { return int(m.Shard) - int(s) })
	return ok
}

// Clone returns a copy that shares nothing with v.
func (v *View) Clone() *View {
	c := *v
	c.Regions, c.Moving, c.Loads = slices.Clone(v.Regions), slices.Clone(v.Moving), slices.Clone(v.Loads)
	for i := range c.Regions {
		c.Regions[i].Shards = slices.Clone(c.Regions[i].Shards)
	}
	return &c
}

// Give notes that a shard has been given to a region, and reports whether there is that region: a caller that allocates
// several shards shows the next one what became of those before. A view with lists of shards lists it last.
func (v *View) Give(s route.ShardID, to peer.ID) bool {
	r := v.Region(to)
	if r == nil {
		return false
	}
	if len(r.Shards) == r.Count {
		r.Shards = append(r.Shards, s)
	}
	r.Count++
	return true
}

// Apply carries out a move in the view, as if it had ended, and reports whether From had the shard and there is To. It
// is for plans and simulations.
func (v *View) Apply(m Move) bool {
	from := v.Region(m.From)
	if from == nil || v.Region(m.To) == nil {
		return false
	}
	i := slices.Index(from.Shards, m.Shard)
	if i < 0 {
		return false
	}
	from.Shards = slices.Delete(from.Shards, i, i+1)
	from.Count--
	return v.Give(m.Shard, m.To)
}

// nowhere is the index of no region.
const nowhere = -1

// Validate returns ErrBadView with the reason when the view contradicts itself, or nil.
func (v *View) Validate() error {
	_, err := v.homes()
	return err
}

// homes returns for each shard the index of its region, or nowhere, or ErrBadView when the view contradicts itself.
func (v *View) homes() ([]int32, error) {
	bad := func(format string, args ...any) ([]int32, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrBadView}, args...)...)
	}
	switch {
	case v.Shards == 0 || v.Shards > route.MaxShards:
		return bad("%d shards, must be 1 to %d", v.Shards, route.MaxShards)
	case len(v.Regions) > cluster.MaxMembers:
		return bad("%d regions, at most %d", len(v.Regions), cluster.MaxMembers)
	case v.Loads != nil && len(v.Loads) != int(v.Shards):
		return bad("loads of %d shards, there are %d", len(v.Loads), v.Shards)
	}
	homes := slices.Repeat([]int32{nowhere}, int(v.Shards))
	for i := range v.Regions {
		r := &v.Regions[i]
		if i > 0 && v.Regions[i-1].ID.Compare(r.ID) >= 0 {
			return bad("region %v is out of order", r.ID)
		}
		if len(r.Shards) != r.Count {
			return bad("region %v has %d shards and lists %d", r.ID, r.Count, len(r.Shards))
		}
		for _, s := range r.Shards {
			if uint32(s) >= v.Shards || homes[s] != nowhere {
				return bad("shard %d of region %v is not there, or lives twice", s, r.ID)
			}
			homes[s] = int32(i)
		}
	}
	for i, m := range v.Moving {
		if i > 0 && v.Moving[i-1].Shard >= m.Shard || uint32(m.Shard) >= v.Shards {
			return bad("shard %d moves and is not there, or out of order", m.Shard)
		}
	}
	return homes, nil
}

// LoadReader is a Strategy that reads loads. They are measured, and sent to the coordinator, only for types with a
// strategy that says so.
type LoadReader interface {
	Strategy
	ReadsLoads() bool
}

// ReadsLoads reports whether a strategy reads loads. One that panics when it is asked reads none.
func ReadsLoads(s Strategy) (reads bool) {
	r, is := s.(LoadReader)
	if !is {
		return false
	}
	defer func() {
		if recover() != nil {
			reads = false
		}
	}()
	return r.ReadsLoads()
}
