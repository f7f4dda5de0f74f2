// kith replay: what a node saw and decided, by the replay of its flight record.

package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/core/flight"
)

type replayCmd struct {
	File string `arg:"" type:"existingfile" help:"A flight record: kith flight-record, or what a node left behind."`
	All  bool   `help:"Print frames, ticks and inner commands, too."`
	JSON bool   `name:"json" help:"Print an object a line."`
}

// replayLine is a line with --json.
type replayLine struct {
	At   time.Time `json:"at"`
	Verb uint64    `json:"verb"`
	What string    `json:"what"`
	Text string    `json:"text"`
}

// replaySum is the last line.
type replaySum struct {
	flight.Header
	Replayed  uint64 `json:"replayed"` // verbs
	Decisions int    `json:"decisions"`
	Events    int    `json:"events"`
	Moves     int    `json:"shard_events"`
	Same      bool   `json:"same"` // it did what was recorded, to the end
}

// Run replays a record. Exit code 1: it is damaged, of another build, or goes another way than was recorded.
func (c *replayCmd) Run(e *env.Env) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	rec, err := flight.Read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if !c.JSON {
		fmt.Fprintf(e.Stdout, "node %s of cluster %q, recorded by %s\nwritten %s: %s\n", rec.Node, rec.Cluster, rec.Build,
			rec.Written.Format(time.RFC3339Nano), rec.Why)
		if rec.From > 0 {
			fmt.Fprintf(e.Stdout, "what was before %s is lost\n", rec.Started.Add(rec.From).Format(time.RFC3339Nano))
		}
		if rec.Over != "" {
			fmt.Fprintln(e.Stdout, rec.Over)
		}
	}
	sum := replaySum{Header: rec.Header}
	lines := flight.Lines{All: c.All}
	err = rec.Replay(func(s *flight.Step) (err error) {
		sum.Replayed++
		lines.Of(s, func(l flight.Line) {
			sum.count(l.What)
			err = errors.Join(err, c.print(e, rec.Started.Add(l.At), &l))
		})
		return err
	})
	sum.Same = err == nil
	last, failed := json.Marshal(&sum)
	if failed != nil { // of no value of ours
		return failed
	}
	_, told := fmt.Fprintf(e.Stdout, "replay %s\n", last)
	return errors.Join(err, told)
}

func (r *replaySum) count(what string) {
	switch what {
	case flight.WhatDecision:
		r.Decisions++
	case flight.WhatEvent:
		r.Events++
	case flight.WhatShard:
		r.Moves++
	}
}

// print prints one line; what peers have named is escaped by the writer.
func (c *replayCmd) print(e *env.Env, at time.Time, l *flight.Line) error {
	if c.JSON {
		return json.NewEncoder(e.Stdout).Encode(replayLine{at, l.Verb, l.What, l.Text})
	}
	_, err := fmt.Fprintf(e.Stdout, "%s  %-8s  %s\n", at.Format("15:04:05.000"), l.What, l.Text)
	return err
}
