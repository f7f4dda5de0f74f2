// A crew: the processes of one build, formed into a cluster.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// The arguments and answers of the program's calls, as they stand there.
type (
	startArgs struct {
		Seeds []string
		Host  bool
		Types []typeArgs
	}
	typeArgs struct {
		Name   string
		Mode   string
		Shards uint32
		Ring   int
		Exact  bool
		Idle   bool
	}
	startReply struct{ Addr string }
	awaitArgs  struct{ Up int }
	flushArgs  struct {
		Type     string
		Entities int
	}
	loadArgs struct {
		Type     string
		Entities int
		Asks     int
		For      time.Duration
	}
	ringArgs struct {
		Type          string
		Entities, Run int
		For           time.Duration
	}
	usageArgs  struct{ Type string }
	usageReply struct {
		At, CPU time.Duration
		Count   uint64
	}
	fillArgs struct {
		Type     string
		Entities int
	}
	heldReply   struct{ Resident uint64 }
	profileArgs struct{ Path string }
)

// sample is one measurement of one row. A row of crews that stand side by side has two of each build in a pair.
type sample struct {
	Pair  int                `json:"pair"`
	Build string             `json:"build"`
	Row   string             `json:"row"`
	Value float64            `json:"value"`            // messages per second, or MiB
	CPU   float64            `json:"cpu_ns,omitempty"` // user and system time of all processes for a message
	More  map[string]float64 `json:"more,omitempty"`   // figures beside it, in which less is better
}

// plan says what a crew is.
type plan struct {
	name     string
	away     bool // a process sends, another one hosts; else one does both
	apart    bool // it does not stand beside that of another build
	types    []typeArgs
	entities int // of each type, that exist when it is measured
}

// crew is the running processes of one build.
type crew struct {
	sender, host *cli.Child // the same one unless the plan says away
}

// startLimit bounds how long a crew takes to be ready, and a measurement.
const startLimit = 3 * time.Minute

// start starts the processes of a plan, and returns when entities and homes are known.
func (p *plan) start(ctx context.Context, b *build) (_ *crew, err error) {
	c := &crew{}
	defer func() {
		if err != nil {
			c.kill()
			err = fmt.Errorf("%s of %s: %w", p.name, b.Commit, err)
		}
	}()
	if c.host, err = cli.Start(cli.Options{Name: "host", Path: b.path}); err != nil {
		return nil, err
	}
	var at startReply
	if err := c.host.Call(ctx, "start", startArgs{Host: true, Types: p.types}, &at); err != nil {
		return nil, err
	}
	c.sender = c.host
	if p.away {
		if c.sender, err = cli.Start(cli.Options{Name: "sender", Path: b.path}); err != nil {
			return nil, err
		}
		if err := c.sender.Call(ctx, "start", startArgs{Seeds: []string{at.Addr}, Types: p.types}, nil); err != nil {
			return nil, err
		}
	}
	for _, child := range c.all() {
		if err := child.Call(ctx, "await", awaitArgs{len(c.all())}, nil); err != nil {
			return nil, err
		}
	}
	for _, t := range p.types {
		if err := c.sender.Call(ctx, "flush", flushArgs{t.Name, p.entities}, nil); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// all returns the processes, the host last.
func (c *crew) all() []*cli.Child {
	switch {
	case c.host == nil:
		return nil
	case c.sender == c.host || c.sender == nil:
		return []*cli.Child{c.host}
	}
	return []*cli.Child{c.sender, c.host}
}

// kill ends the processes.
func (c *crew) kill() {
	for _, child := range c.all() {
		child.Kill()
	}
}

// look returns what the processes have used, the host last.
func (c *crew) look(ctx context.Context, typ string) ([]usageReply, error) {
	all := c.all()
	out, errs := make([]usageReply, len(all)), make(chan error, len(all))
	for i, child := range all {
		go func() { errs <- child.Call(ctx, "usage", usageArgs{typ}, &out[i]) }()
	}
	var err error
	for range all {
		if e := <-errs; e != nil {
			err = e
		}
	}
	return out, err
}

// profile begins CPU profiles of all processes in files that begin with a path, or ends those under way when it is
// empty.
func (c *crew) profile(ctx context.Context, path string) error {
	for _, child := range c.all() {
		to := path
		if to != "" {
			to += "-" + child.Name() + ".prof"
		}
		if err := child.Call(ctx, "profile", profileArgs{to}, nil); err != nil {
			return err
		}
	}
	return nil
}

// errNothing is the error of a measurement in which the machine was with others all the time.
var errNothing = errors.New("nothing arrived")

// over is how long a load goes on if its middle is measured for a unit.
func over(unit time.Duration) time.Duration { return unit + unit/2 }

// steady makes the sender do something for over(unit) and measures the middle of it: what reached handlers per second
// of the host's own clock, and what all processes used for it.
func (c *crew) steady(ctx context.Context, typ string, unit time.Duration, op string, args any) (sample, error) {
	done := make(chan error, 1)
	go func() { done <- c.sender.Call(ctx, op, args, nil) }()
	cli.Pause(ctx, unit/4)
	before, err := c.look(ctx, typ)
	var after []usageReply
	if err == nil {
		cli.Pause(ctx, unit)
		after, err = c.look(ctx, typ)
	}
	if failed := <-done; failed != nil {
		err = failed
	}
	if err == nil { // what is still under way must not reach into what comes next
		err = c.sender.Call(ctx, "flush", flushArgs{typ, 1}, nil)
	}
	if err != nil {
		return sample{}, err
	}
	host := len(after) - 1
	n := float64(after[host].Count - before[host].Count)
	if n == 0 {
		return sample{}, fmt.Errorf("%w within %v", errNothing, unit)
	}
	s := sample{Value: n / (after[host].At - before[host].At).Seconds()}
	for i := range after {
		s.CPU += float64(after[i].CPU-before[i].CPU) / n
	}
	return s, nil
}
