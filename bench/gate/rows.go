// Rows: what is measured, and of which processes.

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// Sizes of what is measured.
const (
	entities     = 1000
	shards       = 100
	running      = 100 // messages that go round a ring at a time
	manyShards   = 100_000
	fewShards    = 1000
	manyEntities = 100_000
	idleEntities = 1_000_000
)

// row is one thing that is measured.
type row struct {
	name, what string
	crew       *plan
	less       bool // of the value less is better
	run        func(ctx context.Context, c *crew, unit time.Duration) (sample, error)
}

// The crews. Those of two builds stand side by side, but for the ones that are apart: large, or busy even when idle.
var (
	remote = &plan{name: "remote", away: true, types: threeTypes(0), entities: entities}
	local  = &plan{name: "local", types: threeTypes(entities), entities: entities}
	many   = &plan{name: "shards", away: true, apart: true, entities: manyEntities, types: []typeArgs{
		{Name: "many", Mode: "worker", Shards: manyShards, Exact: true},
		{Name: "few", Mode: "worker", Shards: fewShards, Exact: true}}}
	memory = &plan{name: "memory", apart: true, types: []typeArgs{
		{Name: "idle", Mode: "blocking", Shards: fewShards, Idle: true}}}
)

func threeTypes(ring int) (all []typeArgs) {
	for _, mode := range []string{"inline", "worker", "blocking"} {
		all = append(all, typeArgs{Name: mode, Mode: mode, Shards: shards, Ring: ring})
	}
	return all
}

// allRows are all rows, those of one crew beside each other.
var allRows = func() (all []row) {
	for _, p := range []*plan{remote, local} {
		where := map[*plan]string{remote: "to another process", local: "in one process"}[p]
		for _, t := range p.types {
			all = append(all, row{name: "tell-" + p.name + "-" + t.Name, crew: p, run: tells(t.Name, 0),
				what: "one-way messages of one goroutine " + where + ", " + t.Name + " entities"})
		}
		for _, n := range []int{1, 256} {
			for _, mode := range []string{"inline", "blocking"} {
				all = append(all, row{name: fmt.Sprintf("ask%d-%s-%s", n, p.name, mode), crew: p, run: tells(mode, n),
					what: fmt.Sprintf("asks %s, %d under way, %s entities", where, n, mode)})
			}
		}
	}
	for _, t := range local.types {
		all = append(all, row{name: "ring-" + t.Name, crew: local, run: ring(t.Name),
			what: fmt.Sprintf("%d messages that go round a ring of %d %s entities", running, entities, t.Name)})
	}
	return append(all,
		row{name: "shards-100k", crew: many, run: shardTells,
			what: "one-way messages to another process that hosts 100,000 shards; beside it when idle"},
		row{name: "memory-1m", crew: memory, less: true, run: held, what: "memory of a million idle entities, MiB resident"})
}()

// wanted returns the rows that only names, whole or by how their names begin; all when it is empty.
func wanted(only []string) ([]row, error) {
	if len(only) == 0 {
		return allRows, nil
	}
	var rows []row
	used := make([]bool, len(only))
	for _, r := range allRows {
		found := false
		for i, name := range only {
			if name != "" && strings.HasPrefix(r.name, name) {
				found, used[i] = true, true
			}
		}
		if found {
			rows = append(rows, r)
		}
	}
	for i, name := range only {
		if !used[i] {
			return nil, fmt.Errorf("--only: no row begins with %q; --list lists them", name)
		}
	}
	return rows, nil
}

// tells measures messages per second to entities of a type, with so many asks under way, or one-way when that is zero.
func tells(typ string, asks int) func(context.Context, *crew, time.Duration) (sample, error) {
	return func(ctx context.Context, c *crew, unit time.Duration) (sample, error) {
		return c.steady(ctx, typ, unit, "load", loadArgs{Type: typ, Entities: entities, Asks: asks, For: over(unit)})
	}
}

func ring(typ string) func(context.Context, *crew, time.Duration) (sample, error) {
	return func(ctx context.Context, c *crew, unit time.Duration) (sample, error) {
		return c.steady(ctx, typ, unit, "ring", ringArgs{Type: typ, Entities: entities, Run: running, For: over(unit)})
	}
}

// idleRest is how long a host of many shards rests before it counts as idle.
const idleRest = time.Second

// shardTells measures messages to entities on very many shards, beside those to as many entities on few, and what the
// host uses when it is idle.
func shardTells(ctx context.Context, c *crew, unit time.Duration) (sample, error) {
	load := loadArgs{Type: "few", Entities: manyEntities, For: over(unit)}
	few, err := c.steady(ctx, "few", unit, "load", load)
	if err != nil {
		return sample{}, err
	}
	load.Type = "many"
	s, err := c.steady(ctx, "many", unit, "load", load)
	if err != nil {
		return sample{}, err
	}
	cli.Pause(ctx, idleRest)
	before, err := c.look(ctx, "many")
	if err != nil {
		return sample{}, err
	}
	cli.Pause(ctx, unit+unit/2)
	after, err := c.look(ctx, "many")
	if err != nil {
		return sample{}, err
	}
	host := len(after) - 1
	used := float64(after[host].CPU-before[host].CPU) / float64(after[host].At-before[host].At)
	s.More = map[string]float64{"few_over_many": few.Value / s.Value, "idle_cores": used}
	return s, nil
}

// held measures the memory of idle entities.
func held(ctx context.Context, c *crew, _ time.Duration) (sample, error) {
	if err := c.host.Call(ctx, "fill", fillArgs{"idle", idleEntities}, nil); err != nil {
		return sample{}, err
	}
	var h heldReply
	err := c.host.Call(ctx, "held", cli.None{}, &h)
	return sample{Value: float64(h.Resident) / (1 << 20)}, err
}
