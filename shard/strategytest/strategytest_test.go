// Tests of the suite: our strategies pass it, and each deliberately broken one fails the law that it breaks (SHD-6).

package strategytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

func TestOurStrategiesConform(t *testing.T) {
	for name, fresh := range map[string]func() strategy.Strategy{
		"least shards":       func() strategy.Strategy { return strategy.LeastShards{} },
		"least shards, free": func() strategy.Strategy { return strategy.LeastShards{Absolute: 1000, Percent: 100} },
		"consistent hash":    func() strategy.Strategy { return &strategy.ConsistentHash{} },
		"load-aware":         func() strategy.Strategy { return strategy.LoadAware{} },
		"oldest":             func() strategy.Strategy { return strategy.Oldest{} },
		"under guard":        func() strategy.Strategy { return strategy.Check(nil) },
		"external": func() strategy.Strategy {
			e := strategy.NewExternal(MaxShards)
			var wishes []strategy.Wish
			for s := range route.ShardID(200) {
				wishes = append(wishes, strategy.Wish{Shard: s, Home: Node(int(s) % 13).Addr})
			}
			require.NoError(t, e.Update(1, wishes))
			return e
		},
	} {
		t.Run(name, func(t *testing.T) { Run(t, fresh) })
	}
}

// notes gathers findings instead of failing.
type notes struct{ strings.Builder }

func (n *notes) Helper() {}

func (n *notes) Errorf(format string, args ...any) { fmt.Fprintf(n, format+"\n", args...) }

// twisted is LeastShards, or another strategy, with a twist.
type twisted struct {
	strategy.Strategy
	allocate  func(s strategy.Strategy, v *strategy.View, shard route.ShardID) (peer.ID, error)
	rebalance func(s strategy.Strategy, v *strategy.View) ([]strategy.Move, error)
}

func (w twisted) Allocate(v *strategy.View, s route.ShardID) (peer.ID, error) {
	if w.allocate != nil {
		return w.allocate(w.Strategy, v, s)
	}
	return w.Strategy.Allocate(v, s)
}

func (w twisted) Rebalance(v *strategy.View) ([]strategy.Move, error) {
	if w.rebalance != nil {
		return w.rebalance(w.Strategy, v)
	}
	return w.Strategy.Rebalance(v)
}

// always moves the first shard of a region to the next region, whatever the balance.
func always(_ strategy.Strategy, v *strategy.View) ([]strategy.Move, error) {
	if v.Holds() != 0 || len(v.Moving) > 0 || v.Room() == 0 {
		return nil, nil
	}
	for i, r := range v.Regions {
		if next := v.Regions[(i+1)%len(v.Regions)]; len(r.Shards) > 0 && r.Eligible() && next.Eligible() && next.ID != r.ID {
			return []strategy.Move{{Shard: r.Shards[0], From: r.ID, To: next.ID}}, nil
		}
	}
	return nil, nil
}

func TestBrokenStrategiesAreFound(t *testing.T) {
	least := strategy.LeastShards{Absolute: 1000, Percent: 100}
	for name, broken := range map[string]func() strategy.Strategy{
		"the same question, the same answer": func() strategy.Strategy {
			n := 0
			return twisted{Strategy: least, allocate: func(_ strategy.Strategy, v *strategy.View, _ route.ShardID) (peer.ID,
				error) {
				n++
				return v.Regions[n%len(v.Regions)].ID, nil
			}}
		},
		"the view stays as it is": func() strategy.Strategy {
			return twisted{Strategy: least, rebalance: func(s strategy.Strategy, v *strategy.View) ([]strategy.Move, error) {
				slices.Reverse(v.Regions[0].Shards)
				return s.Rebalance(v)
			}}
		},
		"only who is eligible": func() strategy.Strategy {
			return twisted{Strategy: least, allocate: func(_ strategy.Strategy, v *strategy.View, s route.ShardID) (peer.ID,
				error) {
				return v.Regions[int(s)%len(v.Regions)].ID, nil
			}}
		},
		"nobody is eligible": func() strategy.Strategy {
			return twisted{Strategy: least, allocate: func(s strategy.Strategy, v *strategy.View, n route.ShardID) (peer.ID,
				error) {
				id, err := s.Allocate(v, n)
				if errors.Is(err, strategy.ErrNoRegion) {
					err = nil
				}
				return id, err
			}}
		},
		"moves can be carried out": func() strategy.Strategy {
			return twisted{Strategy: least, rebalance: func(s strategy.Strategy, v *strategy.View) ([]strategy.Move, error) {
				ignores := v.Clone()
				ignores.Moving = nil
				return s.Rebalance(ignores)
			}}
		},
		"moves stay within the limit": func() strategy.Strategy {
			return twisted{Strategy: least, rebalance: func(s strategy.Strategy, v *strategy.View) ([]strategy.Move, error) {
				all := v.Clone()
				all.Limit = 1 << 20
				return s.Rebalance(all)
			}}
		},
		"nothing moves while it is held": func() strategy.Strategy {
			return twisted{Strategy: least, rebalance: func(s strategy.Strategy, v *strategy.View) ([]strategy.Move, error) {
				free := v.Clone()
				free.Hold &^= strategy.Paused
				return s.Rebalance(free)
			}}
		},
		"what was allocated stays": func() strategy.Strategy {
			return twisted{Strategy: least, allocate: func(_ strategy.Strategy, v *strategy.View, _ route.ShardID) (peer.ID,
				error) {
				return (&strategy.ConsistentHash{}).Allocate(v, 0)
			}}
		},
		"rebalancing ends": func() strategy.Strategy { return twisted{Strategy: least, rebalance: always} },
		"no shard comes back": func() strategy.Strategy {
			turns := 0
			return twisted{Strategy: least, rebalance: func(s strategy.Strategy, v *strategy.View) ([]strategy.Move, error) {
				if turns++; turns < 10 {
					return always(s, v)
				}
				return s.Rebalance(v)
			}}
		},
		"noise moves nothing for ever": func() strategy.Strategy {
			return twisted{Strategy: strategy.LoadAware{Tolerance: 1}, rebalance: nervous}
		},
		"odd views": func() strategy.Strategy {
			return twisted{Strategy: least, rebalance: func(s strategy.Strategy, v *strategy.View) ([]strategy.Move, error) {
				_ = v.Regions[0]
				return s.Rebalance(v)
			}}
		},
	} {
		i := slices.IndexFunc(laws, func(l law) bool { return l.name == name })
		require.GreaterOrEqual(t, i, 0, name)
		require.Error(t, safely(laws[i].run, broken), name)
	}
}

// nervous moves a shard whenever one region has more load than another, however little.
func nervous(_ strategy.Strategy, v *strategy.View) ([]strategy.Move, error) {
	if v.Holds() != 0 || len(v.Moving) > 0 || v.Loads == nil || len(v.Regions) < 2 || v.Room() == 0 {
		return nil, nil
	}
	rate := func(r strategy.Region) (sum uint64) {
		for _, s := range r.Shards {
			sum += uint64(v.Loads[s].Rate)
		}
		return sum
	}
	most, least := v.Regions[0], v.Regions[0]
	for _, r := range v.Regions {
		if rate(r) > rate(most) {
			most = r
		}
		if rate(r) < rate(least) {
			least = r
		}
	}
	if !most.Eligible() || !least.Eligible() || rate(most) == rate(least) {
		return nil, nil
	}
	return []strategy.Move{{Shard: most.Shards[0], From: most.ID, To: least.ID}}, nil
}

// A strategy that is too slow is not waited for; the limit here is too short for anybody.
func TestSlowStrategiesAreFound(t *testing.T) {
	fresh := func() strategy.Strategy { return strategy.LeastShards{} }
	require.ErrorContains(t, within(time.Nanosecond)(fresh), "take more than")
}

// A panic is a finding, not the end of the suite.
func TestPanicsAreFound(t *testing.T) {
	found := &notes{}
	Run(found, func() strategy.Strategy { return twisted{} })
	for _, l := range laws {
		require.Regexp(t, "(?m)^"+l.name+": .*panicked", found.String())
	}
}

// BenchmarkLarge is what the law about time does: 100,000 homes at 100 regions, a region that comes, ten rounds.
func BenchmarkLarge(b *testing.B) {
	for _, c := range []struct {
		name  string
		fresh func() strategy.Strategy
	}{
		{"LeastShards", func() strategy.Strategy { return strategy.LeastShards{} }},
		{"ConsistentHash", func() strategy.Strategy { return &strategy.ConsistentHash{} }},
		{"External", func() strategy.Strategy { return strategy.NewExternal(MaxShards) }},
		{"LoadAware", func() strategy.Strategy { return strategy.LoadAware{} }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				require.NoError(b, large(c.fresh))
			}
		})
	}
}
