// Tests of the storm of durable entities, and of its judge (DUR-1).

package durables

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/sim/storm"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// TestStormOfDurableEntities: a few seeds break no law, and do what a storm is to do; others run more.
func TestStormOfDurableEntities(t *testing.T) {
	last := storm.Progress{}
	cfg := Config{Seeds: 4, First: 1, TraceDir: t.TempDir(), Workers: 2, Progress: func(p storm.Progress) { last = p }}
	r := Run(cfg)
	require.Empty(t, r.Failures)
	require.Equal(t, storm.Progress{Done: 4, Seeds: 4, Seed: 4}, last)
	require.False(t, r.Stopped)
	for name, n := range map[string]int{"faults": r.Faults, "commits": r.Commits, "done": r.Acked, "arrived": r.Delivered,
		"fired": r.Fired, "deleted": r.Deleted, "panics": r.Panics, "fenced": r.Fenced, "upgraded": r.Upgraded} {
		require.NotZero(t, n, name)
	}
	require.Equal(t, r.Sent, r.Delivered+r.Refunded+r.Undelivered)
}

// TestSeedsThatFoundSomething: what these broke is mended. An ask that was given up left room in a link of the
// simulator to a removed peer (12). An owner waited for ever for a store that did not answer which outboxes it has, so
// that what was in them was not sent before the shard moved (596377512248).
func TestSeedsThatFoundSomething(t *testing.T) {
	for _, seed := range []uint64{12, 596377512248} {
		require.Empty(t, Run(Config{Seeds: 1, First: seed, TraceDir: t.TempDir()}).Failures, seed)
	}
}

// TestStormStops: no further seed begins.
func TestStormStops(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	r := Run(Config{Seeds: 3, First: 5, Stop: stop})
	require.True(t, r.Stopped)
	require.Zero(t, r.Seeds)
}

// TestPanicAndHangAreViolations: the other seeds go on.
func TestPanicAndHangAreViolations(t *testing.T) {
	r := patiently(&Config{Patience: time.Nanosecond}, 1)
	require.Equal(t, "hang", r.violations[0].Rule)
	var out Result
	out.add(7, &r, &Config{Seeds: 1, TraceDir: t.TempDir()})
	require.Equal(t, "make storm-durable SEEDS=1 FIRST=7", out.Failures[0].Replay)
}

// still is a run in which nothing happens by itself.
func still(t *testing.T) *run {
	t.Helper()
	s := fresh(3)
	s.drawn = drawn{nodes: 1, entities: 2, shards: 1, schema: 1}
	s.begins(false)
	t.Cleanup(s.bench.ends)
	return s
}

// stored makes a store say that it has carried out a commit of an account.
func (s *run) stored(version uint64, a account) {
	b, err := build{1}.Append(nil, &a)
	if err != nil {
		panic(err)
	}
	s.wrote(accounts, store.Write{Record: store.Record{ID: "a0", Version: version, Schema: 1, State: b,
		Nonce: [16]byte{byte(version)}}})
}

func (s *run) wrote(typ any, w store.Write) {
	s.sees(store.Call{Do: "commit", Shard: store.Shard{Type: fmt.Sprint(typ)}, Fence: route.MakeFence(1, 1, 1),
		Writes: []store.Write{w}}, nil)
}

func (s *run) asked(o op) *op {
	o.n, o.id, o.over = len(s.ops), "a0", true
	s.ops = append(s.ops, &o)
	return &o
}

// gave is an account of one life that has given 5.
var gave = account{Gen: 1, Balance: -5, List: []entry{{Op: 0, Do: transfer, Amount: -5}}}

// takes returns it with a further entry.
func takes(a account, e entry) account {
	a.List = append(a.List[:len(a.List):len(a.List)], e)
	a.Balance += e.Amount
	return a
}

// TestJudgeCriesOut: each law is broken once, and the judge says so.
func TestJudgeCriesOut(t *testing.T) {
	paid := entry{Op: 1, Do: deposit, Amount: 3}
	other := account{Gen: 2, Balance: 1, List: []entry{{Op: 1, Do: deposit, Amount: 1}}}
	rules := map[string]func(*run){
		"lost": func(s *run) {
			s.stored(1, takes(gave, paid))
			s.stored(2, gave)
		},
		"twice": func(s *run) { s.stored(1, takes(takes(gave, paid), paid)) },
		"sum":   func(s *run) { s.stored(1, account{Gen: 1, Balance: 7, List: gave.List}) },
		"versions": func(s *run) {
			s.stored(2, gave)
			s.stored(1, takes(gave, paid))
		},
		"stale": func(s *run) {
			s.sees(store.Call{Do: "claim", Shard: store.Shard{Type: string(accounts)}, Fence: route.MakeFence(1, 2, 1)}, nil)
			s.stored(1, gave)
		},
		"refused": func(s *run) {
			s.ops[1].acked = -1
			s.stored(1, takes(gave, paid))
		},
		"uncommitted": func(s *run) {
			s.stored(1, gave)
			a := takes(gave, paid)
			s.shows(s.ops[1], &a)
		},
		"phantom": func(s *run) { s.stored(1, takes(gave, entry{Op: 1, Do: credit, Amount: 3})) },
		"refunded": func(s *run) {
			s.stored(1, takes(takes(gave, entry{Do: credit, Amount: 5}), entry{Do: refunded, Amount: 5}))
		},
		"undelivered": func(s *run) { s.stored(1, takes(gave, entry{Do: unsure})) },
		"unfired":     func(s *run) { s.stored(1, takes(gave, entry{Op: 2, Do: remind})) },
		"order": func(s *run) {
			s.ops[0].acked, s.ops[1].begun = 1, 2
			s.stored(1, takes(account{Gen: 1}, paid))
			s.stored(2, takes(takes(account{Gen: 1}, paid), gave.List[0]))
		},
		"strange": func(s *run) {
			s.wrote(accounts, store.Write{Record: store.Record{ID: "a0", Version: 1, State: []byte("x")}})
		},
		"schema": func(s *run) {
			b, _ := build{2}.Append(nil, &gave)
			s.wrote(accounts, store.Write{Record: store.Record{ID: "a0", Version: 1, Schema: 2, State: b}})
			s.stored(2, gave)
		},
	}
	for rule, breaks := range rules {
		t.Run(rule, func(t *testing.T) {
			s := still(t)
			s.asked(op{do: transfer, how: plain, acked: 1})
			s.asked(op{do: deposit, how: plain, acked: 3, begun: 2})
			s.asked(op{do: remind, how: plain, acked: -1, maybe: true, times: 1})
			breaks(s)
			(&judge{run: s, all: map[line][]place{}}).judges()
			var found []string
			for _, v := range s.found {
				found = append(found, v.Rule)
			}
			require.Contains(t, found, rule)
		})
	}
	t.Run("a life that nobody archived", func(t *testing.T) {
		s := still(t)
		s.stored(1, gave)
		s.stored(2, other)
		s.asked(op{do: read})
		s.asked(op{do: deposit})
		(&judge{run: s, all: map[line][]place{}}).judges()
		require.Equal(t, "lost", s.found[0].Rule)
	})
}

// TestArchivesAreHeldAgainstLives: what a vault has is all that was stored, one time.
func TestArchivesAreHeldAgainstLives(t *testing.T) {
	s := still(t)
	file := func(version uint64, list ...archive) {
		b, err := json.Marshal(vault{list})
		require.NoError(t, err)
		r := store.Record{ID: "v0", Version: version, State: b, Nonce: [16]byte{byte(version)}}
		s.wrote(vaults, store.Write{Record: r})
	}
	s.stored(1, gave)
	whole := archive{3, "a0", takes(gave, entry{Op: 3, Do: remove})}
	file(1, whole)
	require.Empty(t, s.found)
	file(2, whole, whole)
	require.Equal(t, "twice", s.found[0].Rule)
	file(3, whole)
	require.Equal(t, "lost", s.found[1].Rule)
	s.stored(2, account{Gen: 4, List: []entry{{Op: 5, Do: deposit}}})
	file(4, whole, whole, archive{6, "a0", account{Gen: 4}})
	require.Equal(t, "lost", s.found[2].Rule)
}
