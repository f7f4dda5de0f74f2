// A crew: the worker processes of one measurement, formed into a cluster, one sender and the receivers.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// Time limits.
const (
	findLimit  = 15 * time.Second // to be let in by running nodes
	flushLimit = 60 * time.Second
	leaveLimit = 20 * time.Second
)

// newCerts makes the certificate of a measurement, for nodes and for bare links.
func newCerts() (fleet.Certs, error) {
	return fleet.NewCerts([]string{certName}, clusterName, bench.LinkCluster)
}

// crewArgs says how a crew is started.
type crewArgs struct {
	name      string
	receivers int
	more      int // senders beside the first
	shards    uint32
	tls       fleet.Files   // zero: none
	cpus      [2][]int      // of the sender and of the receivers; empty: all
	poll      time.Duration // how long event loops poll before they sleep
	cluster   string        // its name; empty: one of its own
	targets   []string      // running nodes that are the receivers
	listen    string        // address of the sender; empty: a free loopback port
	insecure  bool
	beat      time.Duration // period of heartbeats; zero: the default
	limit     time.Duration // within which all must be up; zero: fleet.FormLimit
	observed  bool          // its nodes are measured, and have an admin interface
	contact   bool          // its one receiver has that, and a contact point, by which it forms the cluster
}

// crew is running processes. Against running nodes there is the sender alone.
type crew struct {
	sender    *cli.Child
	more      []*cli.Child // senders beside it
	receivers []*cli.Child
	at        startReply // of the first receiver
	counted   uint64     // by the entities of running nodes, when they were last asked
	admins    []string   // addresses of the admin interfaces of an observed one
}

// startCrew starts the processes and waits until each sees all of them Up. On an error nothing is left running.
func startCrew(ctx context.Context, e *env.Env, a crewArgs) (_ *crew, err error) {
	limit := cmp.Or(a.limit, fleet.FormLimit)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := &crew{}
	defer func() {
		if err != nil {
			err = c.explain(err, limit)
			c.end()
		}
	}()
	seeds := a.targets
	for i := range a.receivers {
		r, err := startWorker(e, fmt.Sprintf("%sreceiver%d", a.name, i+1), a.cpus[1])
		if err != nil {
			return nil, err
		}
		c.receivers = append(c.receivers, r)
		var at startReply
		if err := r.Call(ctx, "start", startArgs{Seeds: seeds, Host: true, Shards: a.shards, TLS: a.tls, Poll: a.poll,
			Beat: a.beat, Observed: a.observed || a.contact, Contact: a.contact}, &at); err != nil {
			return nil, err
		}
		c.watchable(at)
		if i == 0 {
			c.at, seeds = at, []string{at.Addr}
		}
	}
	start := startArgs{Name: a.cluster, Seeds: seeds, Shards: a.shards, TLS: a.tls,
		Poll: a.poll, Listen: a.listen, Insecure: a.insecure, Beat: a.beat, Observed: a.observed}
	if err := c.startSenders(ctx, e, &a, start); err != nil {
		return nil, err
	}
	if err := fleet.Tell(ctx, c.all(), "await", awaitArgs{Up: max(a.receivers+1+a.more, 2)}); err != nil {
		return nil, err
	}
	return c, nil
}

// startSenders starts the sender, and those beside it.
func (c *crew) startSenders(ctx context.Context, e *env.Env, a *crewArgs, start startArgs) (err error) {
	if c.sender, err = startWorker(e, a.name+"sender", a.cpus[0]); err != nil {
		return err
	}
	var at startReply
	if err := c.sender.Call(ctx, "start", start, &at); err != nil {
		return err
	}
	c.watchable(at)
	for i := range a.more {
		s, err := startWorker(e, fmt.Sprintf("%ssender%d", a.name, i+2), a.cpus[0])
		if err != nil {
			return err
		}
		c.more = append(c.more, s)
		if err := s.Call(ctx, "start", start, nil); err != nil {
			return err
		}
	}
	return nil
}

// watchable notes where a process that has started is watched.
func (c *crew) watchable(at startReply) {
	if at.Admin != "" {
		c.admins = append(c.admins, at.Admin)
	}
}

// senders returns the processes that send.
func (c *crew) senders() []*cli.Child { return append([]*cli.Child{c.sender}, c.more...) }

// explain says why a cluster did not come about in time: what its sender had to say of it.
func (c *crew) explain(err error, limit time.Duration) error {
	if !errors.Is(err, context.DeadlineExceeded) || c.sender == nil {
		return err
	}
	return fmt.Errorf("the nodes were not all up within %v: %w%s", limit, err, c.sender.Said())
}

// all returns the processes, the senders first.
func (c *crew) all() []*cli.Child {
	var all []*cli.Child
	if c.sender != nil {
		all = c.senders()
	}
	return append(all, c.receivers...)
}

// first is the receiver that baselines run against.
func (c *crew) first() *cli.Child { return c.receivers[0] }

// flush makes all entities of a mode known to the sender, and what it sent to them counted.
func (c *crew) flush(ctx context.Context, exec string, entities int) error {
	var r flushReply
	err := c.sender.CallWithin(ctx, flushLimit, "flush", flushArgs{exec, entities}, &r)
	c.counted = r.Count
	return err
}

// benchShards and benchEntities are the hot set of all measures.
const (
	benchShards   = 100
	benchEntities = 1000
)

// know makes the hot set of all measures known to the sender.
func (c *crew) know(ctx context.Context) error {
	for exec := range execs {
		if err := c.flush(ctx, exec, benchEntities); err != nil {
			return err
		}
	}
	return nil
}

// usages is what the sender and the receivers used, and how many messages reached handlers.
type usages struct {
	sender, receivers bench.Usage
	count, refused    uint64
}

func (c *crew) usage(ctx context.Context, exec string) (usages, error) {
	var u usages
	if c.targets() {
		u.count = c.counted
	}
	for _, p := range c.all() {
		var r usageReply
		if err := p.Call(ctx, "usage", execArgs{exec}, &r); err != nil {
			return u, err
		}
		u.refused += r.Refused
		if p == c.sender {
			u.sender = r.Usage
			continue
		}
		u.count += r.Count
		u.receivers.CPU += r.CPU
		u.receivers.Mallocs += r.Mallocs
		u.receivers.Heap += r.Heap
		u.receivers.At = r.At // processes differ by a constant; one receiver's clock times all
	}
	return u, nil
}

// lateRefusals is how long after the last message was worked off a refusal may still be on its way: they are gathered
// for 50 ms before they are reported.
const lateRefusals = time.Second

// targets reports whether the receivers are running nodes, of which only the answers are known.
func (c *crew) targets() bool { return len(c.receivers) == 0 }

// quiesced waits until what was sent since before has been worked off, and returns how things stand then: everything
// has reached a handler or came back as refused, or it is lost.
func (c *crew) quiesced(ctx context.Context, exec string, entities int, before usages, sent uint64) (usages, error) {
	if err := c.flush(ctx, exec, entities); err != nil {
		return usages{}, err
	}
	for end := time.Now().Add(lateRefusals); ; cli.Pause(ctx, 10*time.Millisecond) {
		u, err := c.usage(ctx, exec)
		if err != nil || u.count-before.count+u.refused-before.refused >= sent || time.Now().After(end) {
			return u, err
		}
	}
}

// leave lets all nodes leave, the sender first, and ends the processes.
func (c *crew) leave(ctx context.Context) error {
	var errs []error
	for _, p := range c.all() {
		errs = append(errs, p.CallWithin(ctx, leaveLimit, "leave", cli.None{}, nil))
	}
	return errors.Join(append(errs, fleet.Close(c.all()))...)
}

// end ends what is still running. Running nodes are left in order: to them a member that is killed is a lost one, and
// the resolver of a small cluster may end them for it.
func (c *crew) end() {
	if c.targets() && c.sender != nil {
		_ = c.sender.CallWithin(context.Background(), leaveLimit, "leave", cli.None{}, nil)
	}
	c.kill()
}

// kill ends what is still running, at once.
func (c *crew) kill() {
	fleet.Kill(c.all())
}
