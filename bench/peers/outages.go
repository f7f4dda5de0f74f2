// Outages: how long an entity of a cluster of five Pekko nodes does not answer when the node that it lives on is lost.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kith-io/kith/bench/peers/rig"
	"github.com/kith-io/kith/internal/cli"
)

// loss is what happens to the node that an entity lives on. The names are those of lab failover.
type loss struct {
	name   string
	oldest bool          // it is the oldest of the members, which runs the coordinator of all shards
	pause  time.Duration // it stands still so long; zero where it is killed
}

var losses = []loss{{name: "owner"}, {name: "coordinator", oldest: true}, {name: "paused-30s", pause: 30 * time.Second}}

func lossNames() []string {
	var names []string
	for _, l := range losses {
		names = append(names, l.name)
	}
	return names
}

const (
	outageNodes = 5
	outageIDs   = 200              // entities among which one is looked for that lives where the loss will be
	memberLimit = 4 * time.Minute  // from the start of a JVM until it is Up; on a loaded machine that has taken 90 s
	answerLimit = 3 * time.Minute  // from the loss to an answer
	wholeLimit  = 90 * time.Second // until every member sees all others Up
	outageTries = 3                // of a round whose entity moved before the loss
)

// errMoved is returned by a round that measured nothing.
var errMoved = errors.New("the entity had moved before the loss")

// buildOutages says how a member is started: with a small heap, for there are five, and the settings of outages.conf.
func buildOutages(ctx context.Context, r *run) (starter, error) {
	java, classes, err := pekkoClasses(ctx, r)
	return starter{path: java, args: []string{"-Xmx256m", "-Dconfig.file=" + filepath.Join(r.dir, "pekko", "outages.conf"),
		"-cp", classes, "kith.peers.Main"}}, err
}

// What the members are asked; see Member.java.
type (
	wholeResult struct{ Members int }
	entityArgs  struct{ Entity string }
	homeResult  struct{ Addr string }
	lostArgs    struct{ Addr string }
	answered    struct {
		Before, From         string
		Unreachable, Removed int64 // nanoseconds
	}
)

// member is a running node.
type member struct {
	*cli.Child
	addr string
}

// crew is the cluster whose nodes are lost one after the other; the oldest member is the first.
type crew struct {
	*run
	starter
	members []member
	started int
	version string
}

// outages builds the members' program and measures the wanted losses in turn, round by round.
func (r *run) outages(ctx context.Context, build builder) (*outageReport, error) {
	begin := time.Now()
	if err := r.prepare(); err != nil {
		return nil, err
	}
	start, err := build(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("pekko cannot be built: %w", err)
	}
	c := &crew{run: r, starter: start}
	defer c.end()
	took := map[string][]outage{}
	for i := range r.Rounds {
		one, err := c.turn(ctx, fmt.Sprintf("round %d of %d", i+1, r.Rounds))
		switch {
		case err != nil && i == 0:
			return nil, err
		case err != nil: // an interrupt, or a machine too busy for one more JVM: the figures of whole rounds stand
			r.note("ended after %d rounds: %v", i, err)
			return newOutageReport(c.version, i, took, time.Since(begin)), nil
		}
		for name, o := range one {
			took[name] = append(took[name], o)
		}
	}
	return newOutageReport(c.version, r.Rounds, took, time.Since(begin)), nil
}

// turn measures every wanted loss once.
func (c *crew) turn(ctx context.Context, title string) (map[string]outage, error) {
	took := map[string]outage{}
	for _, l := range losses {
		if len(c.Cases) > 0 && !slices.Contains(c.Cases, l.name) {
			continue
		}
		o, err := c.round(ctx, l)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", title, l.name, err)
		}
		c.progress.Printf("%s: %-11s %7.3f s (unreachable %.3f, removed %.3f)", title, l.name, o.answer.Seconds(),
			o.unreachable.Seconds(), o.removed.Seconds())
		took[l.name] = o
	}
	return took, nil
}

// round measures one loss. A round whose entity moved at the last moment is measured again.
func (c *crew) round(ctx context.Context, l loss) (o outage, err error) {
	for range outageTries {
		if err = c.grow(ctx); err != nil {
			return o, err
		}
		if o, err = c.lose(ctx, l); !errors.Is(err, errMoved) {
			return o, err
		}
		c.note("%s: measured again: %v", l.name, err)
	}
	return o, err
}

// grow starts the members that lack, one after the other, and returns when every one sees all of them Up.
func (c *crew) grow(ctx context.Context) error {
	for len(c.members) < outageNodes {
		c.started++
		child, err := cli.Start(cli.Options{Name: fmt.Sprintf("pekko member %d", c.started), Path: c.path, Args: c.args,
			Env: c.env})
		if err != nil {
			return err
		}
		c.members = append(c.members, member{Child: child})
		var at rig.Served
		if err := child.CallWithin(ctx, memberLimit, "member", rig.DialArgs{Addr: c.members[0].addr}, &at); err != nil {
			return err
		}
		c.members[len(c.members)-1].addr, c.version = at.Addr, at.Version
		c.progress.Printf("member %d is up: %s", c.started, at.Addr)
	}
	ctx, cancel := context.WithTimeout(ctx, wholeLimit)
	defer cancel()
	for _, m := range c.members {
		for {
			var seen wholeResult
			if err := m.Call(ctx, "whole", cli.None{}, &seen); err != nil {
				return err
			}
			if seen.Members == outageNodes {
				break
			}
			cli.Pause(ctx, 100*time.Millisecond)
		}
	}
	return nil
}

// lose loses a member, and returns when an entity that lived there has answered again. The asker is neither the lost
// member nor the oldest.
func (c *crew) lose(ctx context.Context, l loss) (outage, error) {
	lost := 1
	if l.oldest {
		lost = 0
	}
	victim, asker := c.members[lost], c.members[2]
	id, err := entityAt(ctx, asker, victim.addr)
	if err != nil {
		return outage{}, err
	}
	if err := asker.Call(ctx, "watch", entityArgs{id}, nil); err != nil {
		return outage{}, err
	}
	cli.Pause(ctx, c.Duration)
	c.members = slices.Delete(c.members, lost, lost+1)
	defer victim.Kill() // a process that stood still is no member any more
	begin := time.Now()
	if l.pause > 0 {
		err = victim.Process().Signal(syscall.SIGSTOP)
		defer time.AfterFunc(l.pause, func() { _ = victim.Process().Signal(syscall.SIGCONT) }).Stop()
	} else {
		err = victim.Process().Kill()
	}
	if err != nil {
		return outage{}, err
	}
	var got answered
	err = asker.CallWithin(ctx, answerLimit, "answer", lostArgs{victim.addr}, &got)
	switch {
	case err != nil:
		return outage{}, err
	case got.Before != victim.addr:
		return outage{}, errMoved
	}
	return outage{answer: time.Since(begin), unreachable: time.Duration(got.Unreachable),
		removed: time.Duration(got.Removed), same: got.From == victim.addr}, nil
}

// entityAt finds an entity that lives on the node with the address.
func entityAt(ctx context.Context, asker member, addr string) (string, error) {
	for i := range outageIDs {
		id := fmt.Sprintf("entity-%09d", i)
		var home homeResult
		if err := asker.CallWithin(ctx, callLimit, "home", entityArgs{id}, &home); err != nil {
			return "", err
		}
		if home.Addr == addr {
			return id, nil
		}
	}
	return "", fmt.Errorf("none of %d entities lives on %s", outageIDs, addr)
}

// end stops all members.
func (c *crew) end() {
	for _, m := range c.members {
		m.Kill()
	}
}

// outage is what one loss cost, from the signal on.
type outage struct {
	answer, unreachable, removed time.Duration
	same                         bool // it was the lost one itself that answered
}

// outageFigures are those of one case: seconds, medians over the rounds.
type outageFigures struct {
	P50         float64   `json:"p50_s"`
	Max         float64   `json:"max_s"`
	All         []float64 `json:"all_s"`
	Unreachable float64   `json:"unreachable_s"`
	Removed     float64   `json:"removed_s"`
	Same        int       `json:"answered_itself"`
}

// outageReport is the last line.
type outageReport struct {
	Peer        string                   `json:"peer"`
	Version     string                   `json:"version"`
	Nodes       int                      `json:"nodes"`
	Rounds      int                      `json:"rounds"`
	Cases       map[string]outageFigures `json:"cases"`
	WallSeconds float64                  `json:"wall_seconds"`
}

func newOutageReport(version string, rounds int, took map[string][]outage, wall time.Duration) *outageReport {
	rep := &outageReport{Peer: "pekko-sharded", Version: version, Nodes: outageNodes, Rounds: rounds,
		Cases: map[string]outageFigures{}, WallSeconds: seconds(wall)}
	for name, all := range took {
		var f outageFigures
		var unreachable, removed []float64
		for _, o := range all {
			f.All = append(f.All, seconds(o.answer))
			unreachable = append(unreachable, seconds(o.unreachable))
			removed = append(removed, seconds(o.removed))
			if o.same {
				f.Same++
			}
		}
		f.P50, f.Max = middle(f.All), slices.Max(f.All)
		f.Unreachable, f.Removed = middle(unreachable), middle(removed)
		rep.Cases[name] = f
	}
	return rep
}

// seconds of d, to the millisecond.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// middle is the median; of an even number the lower one of the two in the middle.
func middle(vs []float64) float64 {
	sorted := slices.Sorted(slices.Values(vs))
	return sorted[(len(sorted)-1)/2]
}

// table shows the cases on w.
func (r *outageReport) table(w io.Writer, on bool) {
	if !on {
		return
	}
	for _, l := range losses {
		if f, ok := r.Cases[l.name]; ok {
			fmt.Fprintf(w, "%-11s answers after %.1f s, at most %.1f s; unreachable after %.1f s, removed after %.1f s\n", l.name,
				f.P50, f.Max, f.Unreachable, f.Removed)
		}
	}
}

// validOutages says what is wrong with the flags of outages.
func (c *flags) validOutages() error {
	var errs []error
	for _, name := range c.Cases {
		if !slices.Contains(lossNames(), name) {
			errs = append(errs, fmt.Errorf("--cases: no case %q; there are %s", name, strings.Join(lossNames(), ", ")))
		}
	}
	if !c.Outages && len(c.Cases) > 0 {
		errs = append(errs, errors.New("--cases belongs to --outages"))
	}
	if c.Outages && len(c.Only)+len(c.Works) > 0 {
		errs = append(errs, errors.New("--outages measures Pekko alone: it goes without --only and --works"))
	}
	return errors.Join(errs...)
}
