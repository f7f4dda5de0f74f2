// Checked: the guard between a strategy and the coordinator. Nothing that a strategy answers, or does, disturbs more
// than the answer itself.

package strategy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Fault is what was wrong with an answer.
type Fault uint8

// The faults.
const (
	Failed        Fault = 0 // the strategy returned an error
	Panicked      Fault = 1 // it panicked
	UnknownRegion Fault = 2 // a region that the view does not have
	Ineligible    Fault = 3 // a move from or to a region, or a shard for one, that may not be chosen
	UnknownShard  Fault = 4 // a shard that the type does not have
	NotThere      Fault = 5 // a move from a region where the shard does not live
	MovesAlready  Fault = 6 // a move of a shard that moves
	NamedTwice    Fault = 7 // two moves of a shard
	SamePlace     Fault = 8 // a move to where the shard is
	TooMany       Fault = 9 // more moves than View.Room

	faultCount = 10
)

var faultNames = [...]string{Failed: "failed", Panicked: "panicked", UnknownRegion: "unknown-region",
	Ineligible: "ineligible", UnknownShard: "unknown-shard", NotThere: "not-there", MovesAlready: "moves-already",
	NamedTwice: "named-twice", SamePlace: "same-place", TooMany: "too-many"}

// String names the fault in one word.
func (f Fault) String() string { return enum.Name(faultNames[:], f, "fault") }

// MarshalText gives the name.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (f *Fault) UnmarshalText(text []byte) error { return enum.Parse(f, text) }

// FaultError says what was wrong with the answer of a strategy; get at it with errors.As.
type FaultError struct {
	Fault  Fault
	Shard  route.ShardID // route.NoShard when the fault is of no one shard
	Region peer.ID       // the region that is wrong; zero when it is not a region
	Err    error         // what the strategy returned, or in words what it panicked with or what is wrong; may be nil
}

// Error names the fault, the shard and the region.
func (e *FaultError) Error() string {
	text := "strategy: " + e.Fault.String()
	if e.Shard != route.NoShard {
		text += fmt.Sprintf(", shard %d", e.Shard)
	}
	if !e.Region.IsZero() {
		text += ", region " + e.Region.String()
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *FaultError) Unwrap() error { return e.Err }

// Counters are totals of a Checked since it was made.
type Counters struct {
	Allocations uint64 // shards that were given a region as the strategy chose
	Fallbacks   uint64 // shards that were given one by LeastShards because of a fault
	Waits       uint64 // shards for which there was no region, or the strategy wanted none
	Rounds      uint64 // rounds of rebalancing that were asked for and let through, those without moves included
	Held        uint64 // rounds in which the strategy was not asked: View.Holds
	Moves       uint64 // moves let through
	Faults      uint64 // answers refused; Checked.Faults has them one by one
}

// Checked is a strategy under guard. It shows the strategy copies, recovers its panics and refuses a wrong answer as a
// whole with a *FaultError. What it cannot do is end a strategy that does not return. It is itself a Strategy, for one
// goroutine.
type Checked struct {
	strategy Strategy
	counters Counters
	faults   [faultCount]uint64
	shown    []Region // what Allocate shows, used again
}

// Check returns the strategy under guard; nil is LeastShards with its defaults.
func Check(s Strategy) *Checked {
	if s == nil {
		s = LeastShards{}
	}
	return &Checked{strategy: s}
}

// ReadsLoads reports whether the strategy under guard reads loads.
func (c *Checked) ReadsLoads() bool { return ReadsLoads(c.strategy) }

// Counters returns the totals.
func (c *Checked) Counters() Counters { return c.counters }

// Faults returns how often an answer had this fault.
func (c *Checked) Faults(f Fault) uint64 {
	if f >= faultCount {
		return 0
	}
	return c.faults[f]
}

// refuse counts a fault and makes its error.
func (c *Checked) refuse(f Fault, s route.ShardID, id peer.ID, err error) error {
	c.faults[f]++
	c.counters.Faults++
	return &FaultError{f, s, id, err}
}

// Allocate returns the region that the strategy gives a shard. It returns ErrNoRegion when no region is eligible, or
// the strategy says so. After a fault it returns both the *FaultError and the region by LeastShards: a shard does not
// stay without a home because a strategy is broken. A shard that the type does not have is refused without asking.
func (c *Checked) Allocate(v *View, s route.ShardID) (peer.ID, error) {
	if uint32(s) >= v.Shards {
		return peer.ID{}, c.refuse(UnknownShard, s, peer.ID{}, nil)
	}
	fallback, err := LeastShards{}.Allocate(v, s)
	if err != nil {
		c.counters.Waits++
		return peer.ID{}, err
	}
	c.shown = append(c.shown[:0], v.Regions...)
	shown := *v
	shown.Regions, shown.Moving, shown.Loads = c.shown, nil, nil
	for i := range c.shown {
		c.shown[i].Shards = nil
	}
	var to peer.ID
	err = c.guarded(func() (err error) {
		to, err = c.strategy.Allocate(&shown, s)
		return err
	})
	if errors.Is(err, ErrNoRegion) {
		c.counters.Waits++
		return peer.ID{}, ErrNoRegion
	}
	if err == nil {
		err = c.target(v, s, to)
	}
	if err != nil {
		c.counters.Fallbacks++
		return fallback, err
	}
	c.counters.Allocations++
	return to, nil
}

// guarded calls the strategy and makes faults of its errors and panics.
func (c *Checked) guarded(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = c.refuse(Panicked, route.NoShard, peer.ID{}, fmt.Errorf("%.1000v", p))
		}
	}()
	if err = call(); err != nil && !errors.Is(err, ErrNoRegion) {
		return c.refuse(Failed, route.NoShard, peer.ID{}, fmt.Errorf("%.1000w", err)) // its text is made here, once
	}
	return err
}

// target judges the region that a shard is to go to, or to come from.
func (c *Checked) target(v *View, s route.ShardID, id peer.ID) error {
	r := v.Region(id)
	if r == nil {
		return c.refuse(UnknownRegion, s, id, nil)
	}
	if why := r.Why(); why != "" {
		return c.refuse(Ineligible, s, id, errors.New(why))
	}
	return nil
}

// Rebalance returns the moves that the strategy wants, which can be carried out as they are, or none and a *FaultError,
// or ErrBadView. While the view holds everything (View.Holds) the strategy is not asked, and nothing moves.
func (c *Checked) Rebalance(v *View) ([]Move, error) {
	if v.Holds() != 0 {
		c.counters.Held++
		return nil, nil
	}
	homes, err := v.homes()
	if err != nil {
		return nil, err
	}
	var moves []Move
	err = c.guarded(func() (err error) {
		moves, err = c.strategy.Rebalance(v.Clone())
		return err
	})
	if err != nil {
		if errors.Is(err, ErrNoRegion) {
			err = c.refuse(Failed, route.NoShard, peer.ID{}, err)
		}
		return nil, err
	}
	if err := c.moves(v, homes, moves); err != nil {
		return nil, err
	}
	c.counters.Rounds++
	c.counters.Moves += uint64(len(moves))
	return slices.Clone(moves), nil
}

// moves judges a whole round.
func (c *Checked) moves(v *View, homes []int32, moves []Move) error {
	if len(moves) > v.Room() {
		return c.refuse(TooMany, route.NoShard, peer.ID{}, fmt.Errorf("%d moves, room for %d", len(moves), v.Room()))
	}
	named := make(map[route.ShardID]bool, len(moves))
	for _, m := range moves {
		switch {
		case uint32(m.Shard) >= v.Shards:
			return c.refuse(UnknownShard, m.Shard, peer.ID{}, nil)
		case v.IsMoving(m.Shard):
			return c.refuse(MovesAlready, m.Shard, peer.ID{}, nil)
		case named[m.Shard]:
			return c.refuse(NamedTwice, m.Shard, peer.ID{}, nil)
		case m.From == m.To:
			return c.refuse(SamePlace, m.Shard, m.To, nil)
		}
		named[m.Shard] = true
		for _, id := range []peer.ID{m.From, m.To} {
			if err := c.target(v, m.Shard, id); err != nil {
				return err
			}
		}
		if at := homes[m.Shard]; at == nowhere || v.Regions[at].ID != m.From {
			return c.refuse(NotThere, m.Shard, m.From, nil)
		}
	}
	return nil
}
