// The run: types of very many shards on real node processes, how soon they have homes, how long a new node waits for
// its share and what that costs the others, and the memory of it all.

package shardscale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// Result is the last line of lab scale-shards. What was not measured is absent.
type Result struct {
	HomeShards  int       `json:"home_shards,omitempty"`
	Homed       *float64  `json:"homed_s,omitempty"` // from the registrations until an entity of each shard has answered
	Shards      int       `json:"shards,omitempty"`
	Entities    int       `json:"entities,omitempty"`
	Placed      float64   `json:"placed_s,omitempty"`    // until all entities were there, on three nodes
	Rebalance   *float64  `json:"rebalance_s,omitempty"` // from the fourth node's start to the balance
	Moves       *uint64   `json:"moves,omitempty"`       // meanwhile
	Hosted      []int     `json:"shards_per_node,omitempty"`
	RSS         []float64 `json:"rss_mb_per_node,omitempty"` // before the fourth came
	RSSAfter    []float64 `json:"rss_mb_per_node_after,omitempty"`
	SteadyRate  float64   `json:"steady_rate,omitempty"` // messages handled a second, of all processes
	RateRatio   *float64  `json:"rate_ratio_during_rebalance,omitempty"`
	Sent        uint64    `json:"sent,omitempty"`
	Handled     uint64    `json:"handled,omitempty"`
	Lost        *uint64   `json:"lost,omitempty"` // accepted, and neither handled nor said to be undelivered
	Undelivered *uint64   `json:"undelivered,omitempty"`
	ProxyShards int       `json:"proxy_shards,omitempty"`
	ProxyRSS    *float64  `json:"proxy_rss_mb,omitempty"`  // of the whole process, with a type of so many shards
	ProxyHeap   *float64  `json:"proxy_heap_kb,omitempty"` // what live objects have grown by for that type
	WallSeconds float64   `json:"wall_seconds"`
}

// What Run finds wrong; match with errors.Is.
var (
	ErrSlowHomes = errors.New("homes took longer than --home-limit")
	ErrNoBalance = errors.New("no balance within --limit")
	ErrLost      = errors.New("messages were lost")
)

// proxyUses is how many shards of its type the proxy talks to.
const proxyUses = 100

// Run measures the parts, one after the other, and returns what was measured, also with an error.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	began := time.Now()
	s := &run{cmd: &cfg, progress: cfg.Progress}
	var errs []error
	for _, p := range []struct {
		name string
		run  func(context.Context) error
	}{{PartHome, s.home}, {PartBalance, s.balance}, {PartProxy, s.proxy}} {
		if slices.Contains(cfg.Parts, p.name) {
			if err := p.run(ctx); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
			}
			s.end()
		}
	}
	s.out.WallSeconds = cli.Seconds(began)
	return &s.out, errors.Join(errs...)
}

// run is one run. Each part has its own processes.
type run struct {
	cmd      *Config
	progress *cli.Progress
	out      Result
	nodes    []*cli.Child
	seed     string
}

// join starts one more node process of the part's cluster, which is up when it returns.
func (s *run) join(ctx context.Context, role string) (*cli.Child, error) {
	o := s.cmd.Child
	o.Name = fmt.Sprintf("node %d", len(s.nodes))
	n, err := cli.Start(o)
	if err != nil {
		return nil, err
	}
	s.nodes = append(s.nodes, n)
	args := startArgs{Role: role, MaxMoves: s.cmd.MaxMoves, Interval: s.cmd.Interval}
	if s.seed != "" {
		args.Seeds = []string{s.seed}
	}
	var at startReply
	if err := n.CallWithin(ctx, fleet.FormLimit, "start", args, &at); err != nil {
		return nil, err
	}
	s.seed = cmp.Or(s.seed, at.Addr)
	return n, nil
}

func (s *run) form(ctx context.Context, roles ...string) error {
	for _, role := range roles {
		if _, err := s.join(ctx, role); err != nil {
			return err
		}
	}
	return nil
}

func (s *run) end() {
	_ = fleet.Close(s.nodes)
	s.nodes, s.seed = nil, ""
}

func (s *run) register(ctx context.Context, nodes []*cli.Child, name string, shards int) error {
	t := typeArgs{Name: name, Role: "host", Shards: uint32(shards)}
	return fleet.Tell(ctx, nodes, "register", t)
}

// home measures how soon all shards of a fresh cluster have homes.
func (s *run) home(ctx context.Context) error {
	if err := s.form(ctx, "host", "host", "host"); err != nil {
		return err
	}
	began := time.Now()
	if err := s.register(ctx, s.nodes, "tallied", s.cmd.HomeShards); err != nil {
		return err
	}
	if err := s.nodes[0].Call(ctx, "touch", touched{Shards: s.cmd.HomeShards}, nil); err != nil {
		return err
	}
	took := cli.Seconds(began)
	s.out.HomeShards, s.out.Homed = s.cmd.HomeShards, &took
	s.progress.Printf("home: %d shards after %.3f s", s.cmd.HomeShards, took)
	if took > s.cmd.HomeLimit.Seconds() {
		return fmt.Errorf("%w: %.3f s, at most %v", ErrSlowHomes, took, s.cmd.HomeLimit)
	}
	return nil
}

// look asks all processes, and adds up.
func (s *run) look(ctx context.Context, collect bool) (all []looked, sum looked, err error) {
	all, err = fleet.Ask[looked](ctx, s.nodes, "look", lookArgs{collect})
	for _, l := range all {
		sum.Hosted, sum.Entities, sum.Moves = sum.Hosted+l.Hosted, sum.Entities+l.Entities, sum.Moves+l.Moves
		sum.Sent, sum.Handled, sum.Lost = sum.Sent+l.Sent, sum.Handled+l.Handled, sum.Lost+l.Lost
	}
	return all, sum, err
}

// until looks, every so often, until ok.
func (s *run) until(ctx context.Context, limit time.Duration, what string,
	ok func(all []looked, sum looked) bool) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	shown := time.Now()
	var sum looked
	look := func(ctx context.Context) (all []looked, err error) {
		all, sum, err = s.look(ctx, false)
		return all, err
	}
	_, err := fleet.Until(limited, 200*time.Millisecond, look, func(all []looked) bool {
		if ok(all, sum) {
			return true
		}
		if time.Since(shown) > time.Second {
			shown = time.Now()
			s.progress.Printf("%s: shards %v, entities %d, moves %d, sent %d, handled %d", what, hosted(all), sum.Entities,
				sum.Moves, sum.Sent, sum.Handled)
		}
		return false
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func hosted(all []looked) (list []int) {
	for _, l := range all {
		list = append(list, l.Hosted)
	}
	return list
}

// balance has three nodes host all entities, and a fourth one join.
func (s *run) balance(ctx context.Context) error {
	if err := s.place(ctx); err != nil {
		return err
	}
	all, _, err := s.look(ctx, true)
	if err != nil {
		return err
	}
	s.out.RSS = megabytes(all)
	load := sending{s.cmd.Entities, float64(s.cmd.Rate)}
	for _, n := range s.nodes {
		if err := n.Call(ctx, "send", load, nil); err != nil {
			return err
		}
	}
	cli.Pause(ctx, s.cmd.Steady/5)
	steady, err := s.rate(ctx, func() error { cli.Pause(ctx, s.cmd.Steady); return ctx.Err() })
	if err != nil {
		return err
	}
	s.out.SteadyRate = steady
	_, before, err := s.look(ctx, false)
	if err != nil {
		return err
	}
	began := time.Now()
	meanwhile, err := s.rate(ctx, func() error { return s.fourth(ctx) })
	took, ratio := cli.Seconds(began), meanwhile/steady
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(fmt.Errorf("%w: %v", ErrNoBalance, s.cmd.Limit), err)
	}
	if err != nil {
		return err
	}
	s.out.Rebalance, s.out.RateRatio = &took, &ratio
	return s.account(ctx, before.Moves)
}

// place forms the cluster and has all entities made.
func (s *run) place(ctx context.Context) error {
	c := s.cmd
	if err := s.form(ctx, "host", "host", "host"); err != nil {
		return err
	}
	s.out.Shards, s.out.Entities = c.Shards, c.Entities
	began := time.Now()
	if err := s.register(ctx, s.nodes, "tallied", c.Shards); err != nil {
		return err
	}
	made := s.touch(ctx)
	var failed error
	err := s.until(ctx, c.Limit, "place", func(_ []looked, sum looked) bool {
		if sum.Entities == uint64(c.Entities) {
			failed = <-made
			return true
		}
		select {
		case failed = <-made: // a balance has moved some that had been made: they come again with their next message
			made = s.touch(ctx)
		default:
		}
		return failed != nil
	})
	s.out.Placed = cli.Seconds(began)
	return errors.Join(err, failed)
}

// touch sends something to all entities, from all nodes. What it returns gets what came of it.
func (s *run) touch(ctx context.Context) <-chan error {
	made, of := make(chan error, 1), s.cmd.Entities
	go func() {
		made <- fleet.Each(s.nodes, func(i int, n *cli.Child) error {
			return n.Call(ctx, "touch", touched{From: i * of / 3, To: (i + 1) * of / 3}, nil)
		})
	}()
	return made
}

// fourth makes a fourth node join and waits for the balance.
func (s *run) fourth(ctx context.Context) error {
	n, err := s.join(ctx, "host")
	if err != nil {
		return err
	}
	if err := s.register(ctx, []*cli.Child{n}, "tallied", s.cmd.Shards); err != nil {
		return err
	}
	return s.until(ctx, s.cmd.Limit, "balance", func(all []looked, sum looked) bool {
		on := hosted(all)
		return slices.Max(on)-slices.Min(on) <= 1
	})
}

// rate returns how many messages were handled a second while f ran.
func (s *run) rate(ctx context.Context, f func() error) (float64, error) {
	began := time.Now()
	_, before, err := s.look(ctx, false)
	if err == nil {
		err = f()
	}
	if err != nil {
		return 0, err
	}
	_, after, err := s.look(ctx, false)
	return float64(after.Handled-before.Handled) / time.Since(began).Seconds(), err
}

// account ends the load and counts; so many moves had been before the fourth node came.
func (s *run) account(ctx context.Context, moves uint64) error {
	if err := fleet.Tell(ctx, s.nodes, "stop", cli.None{}); err != nil {
		return err
	}
	settled := func(_ []looked, sum looked) bool { return sum.Handled+sum.Lost >= sum.Sent }
	late := s.until(ctx, fleet.DrainLimit, "account", settled)
	all, sum, err := s.look(ctx, true)
	if err != nil {
		return err
	}
	lost, moves := sum.Sent-min(sum.Sent, sum.Handled+sum.Lost), sum.Moves-moves
	s.out.Moves, s.out.Lost, s.out.Undelivered, s.out.RSSAfter = &moves, &lost, &sum.Lost, megabytes(all)
	s.out.Sent, s.out.Handled = sum.Sent, sum.Handled
	s.out.Hosted = hosted(all)
	if lost+sum.Lost > 0 { // nobody dies in this run, so what was accepted is handled
		return errors.Join(fmt.Errorf("%w: %d of %d, and %d are said to be undelivered", ErrLost, lost, sum.Sent, sum.Lost),
			late)
	}
	return nil
}

func megabytes(all []looked) (list []float64) {
	for _, l := range all {
		list = append(list, float64(l.RSS/1e4)/100)
	}
	return list
}

// proxy measures what a type of very many shards costs a process that hosts none of it and talks to a few.
func (s *run) proxy(ctx context.Context) error {
	if err := s.form(ctx, "host", "other"); err != nil {
		return err
	}
	proxy, uses := s.nodes[1], min(proxyUses, s.cmd.ProxyShards)
	talk := func(name string, shards int) error {
		if err := s.register(ctx, s.nodes, name, shards); err != nil {
			return err
		}
		return proxy.Call(ctx, "touch", touched{Shards: uses}, nil)
	}
	if err := talk("small", uses); err != nil { // what asks and connections take is no part of it
		return err
	}
	var before, after looked
	if err := proxy.Call(ctx, "look", lookArgs{true}, &before); err != nil {
		return err
	}
	if err := talk("large", s.cmd.ProxyShards); err != nil {
		return err
	}
	if err := proxy.Call(ctx, "look", lookArgs{true}, &after); err != nil {
		return err
	}
	// Pages come and go in the runtime by more than such a type takes: its objects alone show what it costs.
	rss, heap := megabytes([]looked{after})[0], (float64(after.Heap)-float64(before.Heap))/1e3
	s.out.ProxyShards, s.out.ProxyRSS, s.out.ProxyHeap = s.cmd.ProxyShards, &rss, &heap
	s.progress.Printf("proxy: %d shards, %d of them used: %.0f kB of objects; the process has %.2f MB resident",
		s.cmd.ProxyShards, uses, heap, rss)
	return nil
}
