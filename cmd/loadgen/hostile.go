// loadgen bench, hostile clients: what a healthy pair keeps of its rate and of its heartbeats beside them.

package main

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/internal/lab/hostile"
)

const (
	// hostileShare is the part of one core that the attackers themselves may use: on a machine of two cores anything
	// more measures which process gets the processor. Their node spends about as much again on refusing them.
	hostileShare = 0.1
	// hostileSilent are connections that stand all the time and say nothing: half of what one address may have.
	hostileSilent = 32
	hostileTurns  = 9                     // pairs of alone and beside, each the other way round than the one before
	hostileRests  = 5                     // pairs in which the attacked pair is at rest
	hostileBeat   = 20 * time.Millisecond // period of heartbeats, so that there are enough for a quantile
)

// hostile measures a pair of processes of its own, alone and beside hostile clients at the receiver's port, in turn;
// and another one over TLS, beside strangers with certificates that are dear to look at.
func (r *rounds) hostile(ctx context.Context, e *env.Env, f bench.Figures) error {
	err := r.besieged(ctx, e, f, "hostile", fleet.Files{}, func(t *hostile.Target) ([]hostile.Attack, error) {
		list := append(t.NonMembers(), t.Insiders()...)
		return slices.DeleteFunc(list, func(a hostile.Attack) bool { return a.Slow }), nil
	})
	if err != nil {
		return err
	}
	certs, err := newCerts()
	if err != nil {
		return err
	}
	defer certs.Remove()
	return r.besieged(ctx, e, f, "hostile_chains", certs.Of(certName), (*hostile.Target).Tangles)
}

// besieged measures one pair beside the attacks of a list.
func (r *rounds) besieged(ctx context.Context, e *env.Env, f bench.Figures, name string, secure fleet.Files,
	list func(*hostile.Target) ([]hostile.Attack, error)) error {
	c, err := startCrew(ctx, e, crewArgs{name: name + "-", receivers: 1, shards: benchShards, beat: hostileBeat,
		tls: secure})
	if err != nil {
		return err
	}
	defer c.kill()
	if err := c.flush(ctx, "inline", benchEntities); err != nil {
		return err
	}
	var at targetReply
	if err := c.first().Call(ctx, "target", cli.None{}, &at); err != nil {
		return err
	}
	addr, err := kith.ParseAddr(at.Addr)
	if err != nil {
		return err
	}
	target := &hostile.Target{Name: clusterName, Cluster: at.Cluster, Type: hostile.TypeOf("sink-inline"),
		Node: kith.ID{Addr: addr, Inc: at.Inc}}
	var legs [2]hostileLeg
	for i := range legs {
		legs[i].trips = bench.NewLatency()
	}
	var siege siege
	if siege.list, err = list(target); err != nil {
		return err
	}
	var ratios []bench.Figures
	for turn := range hostileTurns {
		if err := siege.pair(target, turn, func(i int) error { return legs[i].measure(ctx, r, c) }); err != nil {
			return err
		}
		if alone := legs[0].rates[turn]["rate"]; alone > 0 {
			ratios = append(ratios, bench.Figures{"ratio": legs[1].rates[turn]["rate"] / alone})
		}
	}
	legs[0].figures(f, name, "alone")
	legs[1].figures(f, name, "beside")
	// Within each pair, for what else the machine does comes and goes over a run.
	f.Set(name+"_rate_ratio", bench.Medians(ratios)["ratio"])
	f.Ratio(name+"_hb_p99_ratio", name+"_hb_p99_us_beside", name+"_hb_p99_us_alone")
	f.Ratio(name+"_hb_p50_ratio", name+"_hb_p50_us_beside", name+"_hb_p50_us_alone")
	f.Set(name+"_attacks_per_second", float64(siege.thrown)/siege.took.Seconds())
	f.Set(name+"_cpu_share", siege.cpu.Seconds()/siege.took.Seconds())
	if err := r.victim(ctx, c, f, name, target, siege.list); err != nil {
		return err
	}
	r.progress.Printf("%s", name)
	return nil
}

// victim measures what the attacks cost the attacked process itself, which no other work on the machine changes much:
// its processor time while the pair is at rest, alone and beside them, in turn.
func (r *rounds) victim(ctx context.Context, c *crew, f bench.Figures, name string, target *hostile.Target,
	list []hostile.Attack) error {
	siege := siege{list: list}
	var more []bench.Figures
	for turn := range hostileRests {
		var share [2]float64
		err := siege.pair(target, turn, func(i int) error {
			before, err := c.usage(ctx, "inline")
			cli.Pause(ctx, r.unit)
			after, errAfter := c.usage(ctx, "inline")
			share[i] = float64(after.receivers.CPU-before.receivers.CPU) / float64(after.receivers.At-before.receivers.At)
			return errors.Join(err, errAfter)
		})
		if err != nil {
			return err
		}
		more = append(more, bench.Figures{"share": share[1] - share[0]})
	}
	share := bench.Medians(more)["share"]
	f.Set(name+"_victim_cpu_share", share)
	if siege.thrown > 0 {
		f.Set(name+"_victim_us", share*float64(siege.took.Microseconds())/float64(siege.thrown))
	}
	return nil
}

// hostileLeg is what was measured of one of the two.
type hostileLeg struct {
	rates []bench.Figures
	trips *bench.Latency
}

// measure runs one turn: one-way messages to inline entities, as fast as they go, and heartbeats meanwhile.
func (l *hostileLeg) measure(ctx context.Context, r *rounds, c *crew) error {
	if err := c.sender.Call(ctx, "beats", cli.None{}, nil); err != nil { // those before do not count
		return err
	}
	rate, err := r.plainTell(ctx, c, "inline")
	if err != nil {
		return err
	}
	l.rates = append(l.rates, bench.Figures{"rate": rate})
	var raw []byte
	if err := c.sender.Call(ctx, "beats", cli.None{}, &raw); err != nil {
		return err
	}
	trips, err := bench.DecodeLatency(raw)
	if err == nil {
		l.trips.Merge(trips)
	}
	return err
}

func (l *hostileLeg) figures(f bench.Figures, name, suffix string) {
	f.Set(name+"_rate_"+suffix, bench.Medians(l.rates)["rate"])
	l.trips.Figures(f, name+"_hb", "_"+suffix)
}

// siege is the attackers, one at a time, within their share of a core, and silent connections beside them.
type siege struct {
	list   []hostile.Attack
	thrown int
	took   time.Duration
	cpu    time.Duration
}

// pair measures alone (0) and beside the attacks (1), every other time the other way round.
func (s *siege) pair(t *hostile.Target, turn int, measure func(i int) error) error {
	for k := range 2 {
		i, stop := (turn+k)%2, func() {}
		if i == 1 {
			stop = s.begin(t)
		}
		err := measure(i)
		stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// begin attacks until the returned function is called, which waits for the last attacker.
func (s *siege) begin(t *hostile.Target) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		s.attack(t, quit)
	}()
	return func() {
		close(quit)
		<-done
	}
}

func (s *siege) attack(t *hostile.Target, quit <-chan struct{}) {
	var silent []net.Conn
	for range hostileSilent {
		if c, err := t.Bare(); err == nil {
			silent = append(silent, c)
		}
	}
	defer func() {
		for _, c := range silent {
			_ = c.Close()
		}
	}()
	before := bench.Now()
	for i := s.thrown; ; i++ {
		used := bench.Now()
		spent, took := used.CPU-before.CPU, used.At-before.At
		select {
		case <-quit:
			s.cpu, s.took = s.cpu+spent, s.took+took
			return
		case <-time.After(max(0, time.Duration(float64(spent)/hostileShare)-took)):
		}
		_ = s.list[i%len(s.list)].Throw(t) // the node may close it first; the suite of the root package looks at each
		s.thrown++
	}
}
