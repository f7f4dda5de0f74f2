// What a seed decides.

package durables

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim"
)

// drawn is what a seed decides before anything begins.
type drawn struct {
	nodes, entities int
	shards          uint32
	lasts           time.Duration // the storm
	pace            time.Duration // between two asks, at most twice
	schema          uint32        // of processes that start now
	deploys         bool          // schema 2 comes in the midst of it
	wentBack        bool          // in the end the store does
	clocks          bool          // wall clocks are set
	delay, loss     float64
	idle, patience  time.Duration
	seen            time.Duration // for how long entities remember; zero: the default
	waiting, rate   int
	bytes           int64
	stable          time.Duration
	bad             int           // percent of what handlers fail at
	outage          time.Duration // of the store, once; zero: only short ones
}

func draws(seed uint64) drawn {
	r := rand.New(rand.NewPCG(seed, purposeDraw))
	secs := func(lo, hi int) time.Duration { return time.Duration(lo+r.IntN(hi-lo+1)) * time.Second }
	d := drawn{nodes: 3 + r.IntN(4), entities: 3 + r.IntN(10), shards: uint32(1 + r.IntN(6)), lasts: secs(30, 80),
		pace: time.Duration(60+r.IntN(400)) * time.Millisecond, schema: 1,
		deploys: r.IntN(3) == 0, wentBack: r.IntN(4) == 0, clocks: r.IntN(5) == 0,
		idle: secs(1, 12), patience: secs(1, 5), waiting: 4 << r.IntN(11), rate: 1 << r.IntN(8),
		bytes: 1 << (12 + r.IntN(15)), stable: secs(3, 7), bad: 1 + r.IntN(15)}
	if r.IntN(3) == 0 {
		d.loss = float64(r.IntN(30)) / 1000
	}
	if r.IntN(5) == 0 && !d.clocks {
		d.seen = secs(20, 90)
	}
	if r.IntN(6) == 0 { // it ends with the storm
		d.outage = min(secs(15, 70), d.lasts-5*time.Second)
	}
	return d
}

// String says it in a line.
func (d *drawn) String() string {
	return fmt.Sprintf("%d nodes, %d entities on %d shards, %v, every %v; deploy %t, clocks %t, went back %t; idle %v, "+
		"patience %v, seen %v, waiting %d of %d bytes, rate %d, stable %v, loss %v, bad %d%%, outage %v",
		d.nodes, d.entities, d.shards, d.lasts, d.pace, d.deploys, d.clocks, d.wentBack, d.idle,
		d.patience, d.seen, d.waiting, d.bytes, d.rate, d.stable, d.loss, d.bad, d.outage)
}

// forgetful reports whether entities remember for so short a time that messages may be given up.
func (d *drawn) forgetful() bool { return d.seen > 0 }

// configures is what the cluster is made of.
func (d *drawn) configures(cfg *sim.Config, text bool) {
	cfg.Text, cfg.Records = text, true // a supervisor starts first seeds again
	cfg.Network.Loss = d.loss
	cfg.Resolver.StableAfter = d.stable
	cfg.Shard = shard.Config{TakeoverTime: 9*time.Second + d.stable*7/4}
}

// accountType is the type of accounts as a new process at a host has it.
func (s *run) accountType(host int) durable.Type[account, order, account] {
	b := build{s.builds[host]}
	t := durable.Type[account, order, account]{Name: accounts, Shards: s.drawn.shards, Handle: s.handle,
		Reminded: s.reminded, Undelivered: s.undelivered, State: b.codec(), Schema: b.schema, IdleAfter: s.idle,
		Patience: s.patience, SeenFor: s.seen, MaxWaiting: s.waiting, MaxWaitingBytes: s.bytes, ReminderRate: s.rate}
	if b.schema == 2 {
		t.Upgrade = upgrades
	}
	return t
}

func (s *run) vaultType() durable.Type[vault, archive, int] {
	return durable.Type[vault, archive, int]{Name: vaults, Shards: 1, Handle: s.keeps, IdleAfter: s.idle,
		Patience: s.patience, SeenFor: cmp.Or(s.seen, 0)}
}
