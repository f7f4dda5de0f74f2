// The processes of loadgen pressure: what a worker does as its receiver and as one of its senders.

package main

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/cli"
)

// pressing is a worker's part in loadgen pressure. node and beside are set before anything else.
type pressing struct {
	node   *kith.Node
	all    *bench.Pressed
	region *kith.Region
	beside *kith.Region // of another type, which is quick
	peaks  *bench.Peaks

	mu      sync.Mutex
	reports map[string]uint64 // undelivered messages by reason
}

// pressType is the name of the type.
const pressType = "pressed"

// reported counts what a node reports as undelivered.
func (p *pressing) reported(u kith.Undelivered) {
	if u.Type != pressType && u.Type != "" { // lost in flight, of whatever type
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reports == nil {
		p.reports = map[string]uint64{}
	}
	p.reports[u.Reason.String()] += u.Count
}

type pressJoinArgs struct {
	Shards  uint32
	Mailbox int
	Role    string
}

// join registers the type, at receivers and senders alike.
func (p *pressing) join(_ context.Context, a pressJoinArgs) (_ cli.None, err error) {
	p.all = bench.NewPressed()
	p.region, err = p.node.Register(p.all.Type(pressType, a.Shards, a.Mailbox, a.Role))
	return cli.None{}, err
}

type pressKnowArgs struct{ Entities int }

// know makes all entities, and their homes known here.
func (p *pressing) know(ctx context.Context, a pressKnowArgs) (cli.None, error) {
	return cli.None{}, bench.Flush(ctx, p.region, a.Entities)
}

type pressSlowArgs struct{ Delay time.Duration }

// slow makes the first entity take so long.
func (p *pressing) slow(_ context.Context, a pressSlowArgs) (cli.None, error) {
	p.all.Slow(a.Delay)
	return cli.None{}, nil
}

// load sends.
func (p *pressing) load(ctx context.Context, a bench.PressLoad) (bench.PressResult, error) {
	return a.Run(ctx, p.region)
}

// watch begins to look for peaks.
func (p *pressing) watch(context.Context, cli.None) (cli.None, error) {
	p.peaks = bench.WatchPeaks(p.node)
	return cli.None{}, nil
}

// peak ends what watch began.
func (p *pressing) peak(context.Context, cli.None) (bench.Peak, error) {
	if p.peaks == nil {
		return bench.Peak{}, nil
	}
	peak := p.peaks.End()
	p.peaks = nil
	return peak, nil
}

// pressLook is how things stand at one process.
type pressLook struct {
	At, CPU      time.Duration // on the process's clock; used by it, of user and system
	Slow, Others uint64        // messages that have reached handlers
	Reports      map[string]uint64
	Pressure     kith.PressureStats
	PeakRSS      uint64
}

func (p *pressing) look(context.Context, cli.None) (l pressLook, err error) {
	used := bench.Now()
	l.At, l.CPU = used.At, used.CPU
	l.Slow, l.Others = p.all.Count()
	for _, t := range p.node.Stats().Types {
		if t.Name == pressType {
			l.Pressure = t.Pressure
		}
	}
	_, l.PeakRSS = bench.Resident()
	p.mu.Lock()
	defer p.mu.Unlock()
	l.Reports = maps.Clone(p.reports)
	return l, nil
}

type pressCostArgs struct{ Suffix string }

// cost measures calls of Tell and TellWait on the very links that know of the slow entity, to entities of another type.
func (p *pressing) cost(ctx context.Context, a pressCostArgs) (bench.Figures, error) {
	return bench.PressCost(ctx, p.beside, a.Suffix)
}
