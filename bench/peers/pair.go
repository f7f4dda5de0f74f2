// A pair: the two processes of a system, a receiver and a sender that was dialled to it.

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kith-io/kith/bench/peers/rig"
	"github.com/kith-io/kith/internal/cli"
)

// Time limits.
const (
	startLimit = 90 * time.Second
	callLimit  = 60 * time.Second // beyond what a call is meant to take
	closeGrace = 3 * time.Second
)

// pair is running processes.
type pair struct {
	receiver, sender *cli.Child
	version          string
}

// startPair starts both halves on their cores; on an error nothing is left running.
func startPair(ctx context.Context, name string, s starter, cpus [2][]int) (_ *pair, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	p := &pair{}
	defer func() {
		if err != nil {
			p.kill()
		}
	}()
	options := cli.Options{Name: name + " receiver", Path: s.path, Args: s.args, Env: s.env, CPUs: cpus[1]}
	if p.receiver, err = cli.Start(options); err != nil {
		return nil, err
	}
	var at rig.Served
	if err := p.receiver.Call(ctx, "serve", cli.None{}, &at); err != nil {
		return nil, err
	}
	p.version = at.Version
	options.Name, options.CPUs = name+" sender", cpus[0]
	if p.sender, err = cli.Start(options); err != nil {
		return nil, err
	}
	return p, p.sender.Call(ctx, "dial", rig.DialArgs{Addr: at.Addr}, nil)
}

// end closes both halves; what does not end by itself is killed.
func (p *pair) end() {
	for _, c := range []*cli.Child{p.sender, p.receiver} {
		if c != nil {
			_ = c.Close(closeGrace)
		}
	}
}

func (p *pair) kill() {
	for _, c := range []*cli.Child{p.sender, p.receiver} {
		if c != nil {
			c.Kill()
		}
	}
}

// usage is what both halves have used, and how much has reached handlers.
type usage struct{ sender, receiver rig.Usage }

func (p *pair) usage(ctx context.Context) (u usage, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if err = p.sender.Call(ctx, "usage", cli.None{}, &u.sender); err == nil {
		err = p.receiver.Call(ctx, "usage", cli.None{}, &u.receiver)
	}
	return u, err
}

// measured is what one load gave.
type measured struct {
	rate   float64 // per second at the handlers, by the receiver's clock, in the middle of the load
	allocs float64 // objects per message in both processes; below zero where not counted
	result rig.Result
	nanos  float64 // of one call, for codecs only
	// version of the peer, where no pair reported it
	version string
	lost    uint64
}

// measure runs a load for one and a half times d and looks at the middle of it.
func (p *pair) measure(ctx context.Context, l rig.Load, d time.Duration) (measured, error) {
	begin, err := p.usage(ctx)
	if err != nil {
		return measured{}, err
	}
	l.Nanos = int64(d + d/2)
	var m measured
	done := make(chan error, 1)
	limited, cancel := context.WithTimeout(ctx, d+d/2+callLimit)
	defer cancel()
	go func() { done <- p.sender.Call(limited, "load", l, &m.result) }()
	cli.Pause(ctx, d/4)
	before, errBefore := p.usage(ctx)
	cli.Pause(ctx, d)
	after, errAfter := p.usage(ctx)
	for _, err := range []error{<-done, errBefore, errAfter} {
		if err != nil {
			return measured{}, err
		}
	}
	if m.result.Failed > 0 {
		return measured{}, fmt.Errorf("%d of %d failed: %s", m.result.Failed, m.result.Failed+m.result.Sent, m.result.FirstErr)
	}
	n := after.receiver.Count - before.receiver.Count
	m.rate = float64(n) / (float64(after.receiver.At-before.receiver.At) / 1e9)
	m.allocs = allocs(before, after, n)
	if n == 0 { // raw ping-pong has no handler that counts
		m.rate = float64(m.result.Sent) / l.Duration().Seconds()
	}
	if l.Work == rig.Tell {
		m.lost, err = p.drain(ctx, begin.receiver.Count+m.result.Sent)
	}
	return m, err
}

// allocs is what both processes allocated for each of n messages; below zero where a runtime does not count objects.
func allocs(before, after usage, n uint64) float64 {
	sum := uint64(0)
	for _, u := range [][2]rig.Usage{{before.sender, after.sender}, {before.receiver, after.receiver}} {
		if u[0].Mallocs == nil || u[1].Mallocs == nil || n == 0 {
			return -1
		}
		sum += *u[1].Mallocs - *u[0].Mallocs
	}
	return float64(sum) / float64(n)
}

// drainLimit is how long a receiver may count nothing before what is missing is taken for lost.
const drainLimit = 2 * time.Second

// drain waits until the receiver has counted up to want and returns how many it has not.
func (p *pair) drain(ctx context.Context, want uint64) (uint64, error) {
	for last, since := uint64(0), time.Now(); ; cli.Pause(ctx, 10*time.Millisecond) {
		u, err := p.usage(ctx)
		switch n := u.receiver.Count; {
		case err != nil:
			return 0, err
		case n >= want:
			return 0, nil
		case n != last:
			last, since = n, time.Now()
		case time.Since(since) > drainLimit:
			return want - n, nil
		}
	}
}
