// The guard: everything that a strategy can get wrong is a typed error, counted, and disturbs nothing else (SHD-6).

package strategy

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// made is a strategy of functions.
type made struct {
	allocate  func(v *View, s route.ShardID) (peer.ID, error)
	rebalance func(v *View) ([]Move, error)
}

func (m made) Allocate(v *View, s route.ShardID) (peer.ID, error) { return m.allocate(v, s) }
func (m made) Rebalance(v *View) ([]Move, error)                  { return m.rebalance(v) }

var errBroken = errors.New("broken")

// faulty demands that an error is of this fault and counted.
func faulty(t *testing.T, c *Checked, err error, want Fault) *FaultError {
	t.Helper()
	var fault *FaultError
	require.ErrorAs(t, err, &fault)
	require.Equal(t, want, fault.Fault)
	require.Equal(t, uint64(1), c.Faults(want))
	require.Equal(t, uint64(1), c.Counters().Faults)
	require.Contains(t, err.Error(), want.String())
	return fault
}

// A round with anything wrong in it is refused as a whole.
func TestBadRounds(t *testing.T) {
	good := Move{0, node(0), node(1)}
	all := func(v *View) (moves []Move) {
		for _, s := range v.Regions[0].Shards {
			moves = append(moves, Move{s, node(0), node(1)})
		}
		return moves
	}
	for name, c := range map[string]struct {
		moves []Move
		want  Fault
	}{
		"an unknown target":   {[]Move{good, {1, node(0), node(9)}}, UnknownRegion},
		"an unknown source":   {[]Move{good, {1, node(9), node(1)}}, UnknownRegion},
		"nobody":              {[]Move{good, {1, node(0), peer.ID{}}}, UnknownRegion},
		"an ineligible one":   {[]Move{good, {1, node(0), node(2)}}, Ineligible},
		"from an ineligible":  {[]Move{good, {8, node(2), node(0)}}, Ineligible},
		"no such shard":       {[]Move{good, {10, node(0), node(1)}}, UnknownShard},
		"no shard":            {[]Move{good, {route.NoShard, node(0), node(1)}}, UnknownShard},
		"it lives elsewhere":  {[]Move{good, {6, node(0), node(1)}}, NotThere},
		"it lives nowhere":    {[]Move{good, {9, node(0), node(1)}}, NotThere},
		"it moves already":    {[]Move{good, {2, node(0), node(1)}}, MovesAlready},
		"it is named twice":   {[]Move{good, good}, NamedTwice},
		"to where it is":      {[]Move{good, {1, node(0), node(0)}}, SamePlace},
		"everything at once":  {nil, TooMany},
		"it returns an error": {nil, Failed},
		"it panics":           {nil, Panicked},
	} {
		v := sized(6, 2, 1)
		v.Shards, v.Limit = 10, 6
		v.Regions[2].Draining = true
		v.Moving = []Move{{2, node(0), node(1)}}
		before := v.Clone()
		broken := Check(made{rebalance: func(shown *View) ([]Move, error) {
			shown.Regions[0].Shards[0], shown.Regions[1] = 7, Region{} // the guard shows a copy
			shown.Moving[0].Shard = 9
			switch c.want {
			case TooMany:
				return all(v), nil
			case Failed:
				return []Move{good}, errBroken
			case Panicked:
				panic(strings.Repeat("x", 5000))
			}
			return c.moves, nil
		}})
		moves, err := broken.Rebalance(v)
		require.Empty(t, moves, name)
		fault := faulty(t, broken, err, c.want)
		require.Equal(t, before, v, name)
		require.Zero(t, broken.Counters().Moves)
		require.Less(t, len(err.Error()), 1200, "what it panicked with is cut short")
		if c.want == Failed {
			require.ErrorIs(t, err, errBroken)
		}
		if len(c.moves) > 1 && c.want != UnknownRegion {
			require.Equal(t, c.moves[1].Shard, fault.Shard, name)
		}
	}
}

// A shard for which a broken strategy names nobody gets a home by the default, and the fault is reported.
func TestBadHomes(t *testing.T) {
	for name, c := range map[string]struct {
		to   peer.ID
		err  error
		want Fault
	}{
		"unknown":     {to: node(9), want: UnknownRegion},
		"nobody":      {want: UnknownRegion},
		"ineligible":  {to: node(2), want: Ineligible},
		"an error":    {to: node(0), err: errBroken, want: Failed},
		"it panicked": {want: Panicked},
	} {
		v := sized(3, 1, 0)
		v.Regions[2].NotReady = true
		before := v.Clone()
		broken := Check(made{allocate: func(shown *View, _ route.ShardID) (peer.ID, error) {
			require.Nil(t, shown.Regions[0].Shards)
			shown.Regions[1] = Region{}
			if c.want == Panicked {
				panic(errBroken)
			}
			return c.to, c.err
		}})
		to, err := broken.Allocate(v, 3)
		require.Equal(t, node(1), to, name)
		faulty(t, broken, err, c.want)
		require.Equal(t, before, v)
		require.Equal(t, uint64(1), broken.Counters().Fallbacks)
		require.Zero(t, broken.Counters().Allocations)
	}
}

// Nobody is asked for a shard that is not there, nor when no region may be chosen; a strategy may have a shard wait.
func TestHomesThatThereAreNot(t *testing.T) {
	called := 0
	c := Check(made{allocate: func(*View, route.ShardID) (peer.ID, error) {
		called++
		return node(0), ErrNoRegion
	}})
	v := sized(3, 1)
	_, err := c.Allocate(v, 4)
	faulty(t, c, err, UnknownShard)
	require.Zero(t, called)
	to, err := c.Allocate(v, 3)
	require.ErrorIs(t, err, ErrNoRegion)
	require.True(t, to.IsZero())
	require.Equal(t, 1, called)
	for i := range v.Regions {
		v.Regions[i].Status = cluster.Exiting
	}
	_, err = c.Allocate(v, 3)
	require.ErrorIs(t, err, ErrNoRegion)
	require.Equal(t, 1, called)
	require.Equal(t, Counters{Waits: 2, Faults: 1}, c.Counters())
}

// While something holds everything the strategy is not asked, so that no custom one gets it wrong.
func TestHeldRounds(t *testing.T) {
	c := Check(made{rebalance: func(*View) ([]Move, error) { panic("asked") }})
	v := sized(3, 1)
	for _, h := range []Hold{Paused, Shutdown, Unstable, Updating} {
		v.Hold = h
		moves, err := c.Rebalance(v)
		require.NoError(t, err)
		require.Empty(t, moves)
	}
	require.Equal(t, Counters{Held: 4}, c.Counters())
}

// What is right goes through as it is; the default stands behind nil; a bad view is nobody's fault.
func TestGoodAnswersPass(t *testing.T) {
	c := Check(nil)
	v := sized(3, 0)
	moves, err := c.Rebalance(v)
	require.NoError(t, err)
	require.Equal(t, []Move{{0, node(0), node(1)}}, moves)
	to, err := c.Allocate(v, 2)
	require.NoError(t, err)
	require.Equal(t, node(1), to)
	require.Equal(t, Counters{Allocations: 1, Rounds: 1, Moves: 1}, c.Counters())
	v.Regions[1].ID = v.Regions[0].ID
	_, err = c.Rebalance(v)
	require.ErrorIs(t, err, ErrBadView)
	require.Zero(t, c.Counters().Faults)

	waits := Check(made{rebalance: func(*View) ([]Move, error) { return nil, ErrNoRegion }})
	_, err = waits.Rebalance(sized(1))
	faulty(t, waits, err, Failed)
	require.Zero(t, waits.Faults(faultCount))
}

// The words of the faults can be read back.
func TestFaultWords(t *testing.T) {
	for f := range Fault(faultCount) {
		text, err := f.MarshalText()
		require.NoError(t, err)
		var back Fault
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, f, back)
		require.NotContains(t, f.String(), "fault-")
	}
	require.Equal(t, "strategy: not-there, shard 3, region "+node(1).String()+": broken",
		(&FaultError{NotThere, 3, node(1), errBroken}).Error())
}

// bad is an error that has no text when it is nil.
type bad struct{ text string }

func (b *bad) Error() string { return b.text }

// An error that is a nil pointer of its type has a text, and no text is longer than what a panic may say.
func TestErrorsThatAreNone(t *testing.T) {
	for _, given := range []error{(*bad)(nil), &bad{strings.Repeat("x", 5000)}} {
		c := Check(made{rebalance: func(*View) ([]Move, error) { return nil, given }})
		_, err := c.Rebalance(sized(1))
		require.Less(t, len(faulty(t, c, err, Failed).Error()), 1100)
		require.ErrorIs(t, err, given)
	}
}

// reader says whether it reads loads, or panics.
type reader struct {
	made
	says func() bool
}

func (r reader) ReadsLoads() bool { return r.says() }

// A strategy under guard reads loads as without, and one that panics when it is asked reads none.
func TestReadsLoads(t *testing.T) {
	for _, c := range []struct {
		s    Strategy
		want bool
	}{
		{nil, false}, {LeastShards{}, false}, {LoadAware{}, true}, {Check(LoadAware{}), true}, {Check(nil), false},
		{reader{says: func() bool { return true }}, true}, {reader{says: func() bool { panic("boom") }}, false},
		{(*LoadAware)(nil), false},
	} {
		require.Equal(t, c.want, ReadsLoads(c.s))
	}
}
