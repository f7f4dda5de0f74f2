// Partition: what the gossiped state says of one partition: which member defined it and how, where its instances are,
// which of them are being handed over.

package cluster

import (
	"errors"
	"fmt"

	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/peer"
)

// Bounds of the partition table. Every node holds and gossips all of it.
const (
	MaxPartitions        = 1024 // paths, deleted ones included: they keep their place and can be defined again
	MaxInstances         = 32   // instances of one partition
	MaxAllInstances      = 8192 // instances of all partitions: the leader places no more
	MaxPendingChanges    = 64   // hand-offs under way: the leader begins no more
	MaxPartitionPath     = 255  // bytes of a path
	MaxPartitionSegments = 16   // segments of a path
	MaxPartitionLoad     = 1 << 31
)

// Errors of what defines a partition.
var (
	ErrBadPath          = errors.New("partition: bad path")
	ErrBadCount         = errors.New("partition: bad number of instances")
	ErrBadHandoff       = errors.New("partition: hand-off options that make no sense together")
	ErrBadDefinition    = errors.New("partition: bad definition")
	ErrPartitionsFull   = errors.New("partition: the table is full")
	ErrUnknownPartition = errors.New("partition: no such partition")
	ErrMovePending      = errors.New("partition: another move of this partition has not been looked at yet")
)

// CountKind says how a Count is to be read.
type CountKind uint8

// The kinds of a Count. Numbers stand on the wire.
const (
	CountExactly  CountKind = 0 // N instances
	CountSurvives CountKind = 1 // N nodes may fail, and one instance is left
	CountShare    CountKind = 2 // N percent of the nodes
	CountScaled   CountKind = 3 // N to Most instances, one for each Load of load
)

var countNames = [...]string{"exactly", "survives", "share", "scaled"}

// String names the kind.
func (k CountKind) String() string { return enum.Name(countNames[:], k, "count") }

// MarshalText gives the name.
func (k CountKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (k *CountKind) UnmarshalText(text []byte) error { return enum.Parse(k, text) }

// Count is how many instances a partition has, as a function of the nodes and of load. It is data and no function, so
// that every leader computes the same. The zero value is not valid.
type Count struct {
	Kind CountKind
	N    int // instances; failures to survive; percent of the nodes; least instances
	Most int // instances, CountScaled only
	Load int // that one instance carries, in the unit of the definition's Hint; CountScaled only
}

// Validate refuses with ErrBadCount what no cluster can have: fewer than one instance, or more than MaxInstances.
func (c Count) Validate() error {
	ok := false
	switch c.Kind {
	case CountExactly:
		ok = c.N >= 1 && c.N <= MaxInstances
	case CountSurvives:
		ok = c.N >= 0 && c.N < MaxInstances
	case CountShare:
		ok = c.N >= 1 && c.N <= 100
	case CountScaled:
		ok = c.N >= 1 && c.N <= c.Most && c.Most <= MaxInstances && c.Load >= 1 && c.Load <= MaxPartitionLoad
	}
	if !ok || c.Kind != CountScaled && (c.Most != 0 || c.Load != 0) {
		return fmt.Errorf("%w: %s %d %d %d", ErrBadCount, c.Kind, c.N, c.Most, c.Load)
	}
	return nil
}

// Of returns how many instances are wanted on so many nodes under that load: 1 to MaxInstances, whether or not there
// are as many nodes. A valid count only.
func (c Count) Of(nodes, load int) int {
	n := c.N
	switch c.Kind {
	case CountSurvives:
		n = c.N + 1
	case CountShare:
		n = (nodes*c.N + 99) / 100
	case CountScaled:
		n = min(max((load+c.Load-1)/c.Load, c.N), c.Most)
	}
	return min(max(n, 1), MaxInstances)
}

// OldOption is what the node that hosts an instance does with messages from when it begins to hand the instance over
// until the new node is ready.
type OldOption uint8

// NewOption is how the new node begins.
type NewOption uint8

// LateOption is what the old node does with messages that still come to it when the new one is ready.
type LateOption uint8

// The options, under the names of the early specification. Numbers stand on the wire.
const (
	OldKeeps    OldOption = 0 // 2a: goes on as before
	OldForwards OldOption = 1 // 2b: forwards all messages to the new node
	OldDrops    OldOption = 2 // 2c: ends the instance; messages are refused and reported

	NewOpen    NewOption = 0 // 3a: handles messages as they come
	NewBuffers NewOption = 1 // 3b: keeps those of each sender until its last one by way of the old node has come

	LateForwards LateOption = 0 // 4a: forwards them to the new node
	LateDrops    LateOption = 1 // 4b: refuses and reports them
)

var (
	oldNames  = [...]string{"keeps", "forwards", "drops"}
	newNames  = [...]string{"open", "buffers"}
	lateNames = [...]string{"forwards", "drops"}
)

// String names the option.
func (o OldOption) String() string { return enum.Name(oldNames[:], o, "old") }

// MarshalText gives the name.
func (o OldOption) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (o *OldOption) UnmarshalText(text []byte) error { return enum.Parse(o, text) }

// String names the option.
func (o NewOption) String() string { return enum.Name(newNames[:], o, "new") }

// MarshalText gives the name.
func (o NewOption) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (o *NewOption) UnmarshalText(text []byte) error { return enum.Parse(o, text) }

// String names the option.
func (o LateOption) String() string { return enum.Name(lateNames[:], o, "late") }

// MarshalText gives the name.
func (o LateOption) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (o *LateOption) UnmarshalText(text []byte) error { return enum.Parse(o, text) }

// Handoff is how an instance goes from one node to another. The zero value is Stateless.
type Handoff struct {
	Old  OldOption
	New  NewOption
	Late LateOption
}

// The hand-offs that have a name.
var (
	Stateless = Handoff{OldKeeps, NewOpen, LateForwards}       // 2a 3a 4a: no gap, no order, two instances for a moment
	Ordered   = Handoff{OldForwards, NewBuffers, LateForwards} // 2b 3b 4a: order, one instance at a time, state moves
	Lossy     = Handoff{OldDrops, NewOpen, LateDrops}          // 2c 3a 4b: what comes meanwhile is refused and reported
)

// Validate refuses options that make no sense together with ErrBadHandoff and the reason.
func (h Handoff) Validate() error {
	why := ""
	switch {
	case h.Old > OldDrops || h.New > NewBuffers || h.Late > LateDrops:
		why = "no such option"
	case h.New == NewBuffers && h.Late == LateDrops:
		why = "buffers (3b) are opened by acknowledgements that the old node forwards, and one that drops (4b) forwards none"
	case h.Old == OldForwards && h.Late == LateDrops:
		why = "an old node that forwards from the beginning (2b) would drop (4b) only what it could forward best"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s: %s", ErrBadHandoff, h, why)
}

// String gives the name, or the options as the early specification numbers them: "2a 3b 4a".
func (h Handoff) String() string {
	switch h {
	case Stateless:
		return "stateless"
	case Ordered:
		return "ordered"
	case Lossy:
		return "lossy"
	}
	return string([]byte{'2', 'a' + byte(h.Old), ' ', '3', 'a' + byte(h.New), ' ', '4', 'a' + byte(h.Late)})
}

// PartitionDefinition is what a programmer says of a partition.
type PartitionDefinition struct {
	Path    string // "a/b/c"
	Count   Count
	Handoff Handoff
	Role    string // of the members that may host an instance; empty: all
	Hint    int    // the load that is expected, 0 to MaxPartitionLoad; CountScaled reads it
}

// PartitionChange is an instance that is being handed over. The leader writes it; From completes it.
type PartitionChange struct {
	Path     string
	Slot     int
	From     peer.ID // hosts the instance
	To       peer.ID // is to host it; zero: the instance ends
	Complete bool    // From has handed it over; the leader has not changed the table yet
	Epoch    uint64  // of the partition when the leader began it; with Writer it tells it from an earlier one
	Writer   uint32  // up-number of that leader
}

// Partition is one path of the partition table. It is immutable, its lists too. Epoch grows by one with each change
// that a leader makes; where leaders of two sides of a cut changed one partition, the higher epoch stands, then the
// higher Writer.
type Partition struct {
	PartitionDefinition         // the last one; a change of it waits until no hand-off of the partition is pending
	Version             uint64  // how often the partition was defined, moved or deleted
	DefinedBy           peer.ID // the node that defined it; it need not be a member any more
	Deleted             bool    // the definition was taken back; views do not show it once it has no instance
	MoveSlot            int     // which slot a programmer wants moved
	MoveTo              peer.ID // and where to; zero: none

	Epoch   uint64 // 0: no leader has placed it yet; all below is empty then
	Writer  uint32 // up-number of the leader that wrote the epoch
	Wanted  int    // instances; there are fewer while too few members may host one
	InForce Handoff
	Heeded  uint64 // the highest Version that a leader has looked at
	// Instances are the nodes by slot. A slot without an instance is zero, and the last slot has one.
	Instances []peer.ID
	Changes   []PartitionChange // pending, sorted by slot, one for each slot at most
}

// Has returns how many instances there are.
func (p *Partition) Has() (n int) {
	for _, id := range p.Instances {
		if !id.IsZero() {
			n++
		}
	}
	return n
}

// Change returns the change pending for a slot.
func (p *Partition) Change(slot int) (c PartitionChange, ok bool) {
	for i := range p.Changes {
		if p.Changes[i].Slot == slot {
			return p.Changes[i], true
		}
	}
	return c, false
}

// SlotOf returns the slot of the instance that id hosts, -1 when it hosts none.
func (p *Partition) SlotOf(id peer.ID) int {
	for i := range p.Instances {
		if p.Instances[i] == id {
			return i
		}
	}
	return -1
}
