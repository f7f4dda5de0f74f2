// The run: pairs are started and warmed, then rounds give every work to every system, back to back.

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/bench/peers/rig"
	"github.com/kith-io/kith/internal/cli"
)

// run is a running measurement.
type run struct {
	flags
	progress *cli.Progress
	notes    io.Writer

	dir, out string
	built    []builtSystem
	pairs    map[string]*pair // by system and placement
	codec    *cli.Child
	done     []round
}

type builtSystem struct {
	system
	starter
}

// cell is one work of one row.
type cell struct {
	system builtSystem
	row    rowOf
	work   work
}

// key names a pair of processes.
func (c cell) key() string { return strings.TrimSuffix(c.system.name+"-"+c.work.place, "-") }

func (c cell) load() rig.Load {
	return rig.Load{Work: c.work.load, Variant: c.row.variant, Size: c.work.size, Inflight: c.work.inflight}
}

// round is what one round measured, by row and work.
type round map[rowWork]measured

type rowWork struct{ peer, work string }

// warmLeast is how long every work of every system runs before the first round.
const warmLeast = 200 * time.Millisecond

func (r *run) note(format string, args ...any) { fmt.Fprintf(r.notes, "peers: "+format+"\n", args...) }

// wantedSystem reports whether a system is measured: raw and ours always are, as the baselines of all others.
func (r *run) wantedSystem(name string) bool {
	return len(r.Only) == 0 || name == ours || name == raw || slices.Contains(r.Only, name)
}

// wantedWork reports whether a work is measured; bulk is the baseline of one-way rates.
func (r *run) wantedWork(name string) bool {
	if len(r.Works) == 0 || slices.Contains(r.Works, name) {
		return true
	}
	return name == "bulk" && slices.ContainsFunc(r.Works, func(w string) bool { return strings.HasPrefix(w, "tell") })
}

func (r *run) run(ctx context.Context) (*report, error) {
	begin := time.Now()
	if err := r.prepare(); err != nil {
		return nil, err
	}
	defer r.end()
	if err := r.build(ctx); err != nil {
		return nil, err
	}
	if err := r.buildCodec(ctx); err != nil {
		return nil, err
	}
	cells, err := r.start(ctx)
	if err != nil {
		return nil, err
	}
	for i := range r.Rounds {
		one, err := r.round(ctx, i, cells)
		if err != nil && ctx.Err() != nil && i > 0 {
			r.note("interrupted after %d rounds", i)
			break // the figures of whole rounds stand
		}
		if err != nil {
			return nil, err
		}
		r.done = append(r.done, one)
	}
	versions := map[string]string{}
	for _, c := range cells {
		if p := r.pairs[c.key()]; p != nil {
			versions[c.row.peer] = p.version
		}
		if c.system.name == ours {
			versions[c.row.peer] = r.commit(ctx)
		}
	}
	return newReport(r.done, versions, time.Since(begin)), nil
}

// start starts the pairs that the wanted works need, warms them, and returns the works in the order of a round. A peer
// that fails here is named and left out.
func (r *run) start(ctx context.Context) ([]cell, error) {
	places := cli.Placements()
	places[""] = [2][]int{} // where the kernel puts them
	var cells []cell
	for _, w := range works {
		cores, ok := places[w.place]
		if !ok || !r.wantedWork(w.name) {
			continue
		}
		for _, s := range r.built {
			for _, row := range s.rows {
				if !slices.Contains(row.works, w.name) {
					continue
				}
				c := cell{s, row, w}
				if err := r.warm(ctx, c, cores); err == nil {
					cells = append(cells, c)
				} else if ctx.Err() != nil || s.name == ours || s.name == raw {
					return nil, fmt.Errorf("%s: %s: %w", row.peer, w.name, err)
				} else {
					r.note("%s has no row %s: %v", row.peer, w.name, err)
				}
			}
		}
	}
	return cells, nil
}

func (r *run) warm(ctx context.Context, c cell, cores [2][]int) error {
	p, started := r.pairs[c.key()]
	switch {
	case !started:
		var err error
		p, err = startPair(ctx, c.key(), c.system.starter, cores)
		if err != nil {
			p = nil
		}
		if r.pairs[c.key()] = p; err != nil {
			return err
		}
	case p == nil:
		return fmt.Errorf("its processes did not start")
	}
	_, err := p.measure(ctx, c.load(), max(c.system.warm, warmLeast))
	if err == nil {
		r.progress.Printf("%s warm for %s", c.row.peer, c.work.name)
	}
	return err
}

// round gives every work to every system. Work by work, so that the rows of one work lie seconds apart; each round
// begins with another system, so that none always follows the same one.
func (r *run) round(ctx context.Context, i int, cells []cell) (round, error) {
	out := round{}
	title := fmt.Sprintf("round %d of %d", i+1, r.Rounds)
	for _, w := range works {
		var same []cell
		for _, c := range cells {
			if c.work.name == w.name {
				same = append(same, c)
			}
		}
		for k := range same {
			c := same[(k+i)%len(same)]
			m, err := r.pairs[c.key()].measure(ctx, c.load(), r.Duration)
			if err != nil && (ctx.Err() != nil || c.system.name == ours || c.system.name == raw) {
				return nil, fmt.Errorf("%s: %s: %s: %w", title, c.row.peer, w.name, err)
			}
			if err != nil {
				r.note("%s: %s: %s is missing: %v", title, c.row.peer, w.name, err)
				continue
			}
			out[rowWork{c.row.peer, w.name}] = m
			if w.latency {
				r.progress.Printf("%s: %-9s %-14s %8.1f us", title, w.name, c.row.peer, m.result.P50)
			} else {
				r.progress.Printf("%s: %-9s %-14s %10.0f /s", title, w.name, c.row.peer, m.rate)
			}
		}
	}
	return out, r.codecs(ctx, title, out)
}

// end stops every process.
func (r *run) end() {
	ended := make(chan struct{})
	n := 0
	for _, p := range r.pairs {
		if p != nil {
			n++
			go func() { p.end(); ended <- struct{}{} }()
		}
	}
	for range n {
		<-ended
	}
	if r.codec != nil {
		_ = r.codec.Close(closeGrace)
	}
	for _, s := range r.built {
		if s.stop != nil {
			s.stop()
		}
	}
}
