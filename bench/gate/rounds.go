// Rounds: pairs of measurements, in another order each time, there and back.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// rounds measures the rows of all builds in turn.
type rounds struct {
	builds  []build
	rows    []row
	unit    time.Duration // of a row of a build in a pair
	profile string
	raw     *raw
	say     func(string, ...any)
}

// run measures so many pairs; they are numbered on from those that the file of raw lines has.
func (r *rounds) run(ctx context.Context, pairs int) error {
	first := r.raw.last() + 1
	for pair := first; pair < first+pairs; pair++ {
		began := time.Now()
		for at := 0; at < len(r.rows); {
			end := at + 1
			for end < len(r.rows) && r.rows[end].crew == r.rows[at].crew {
				end++
			}
			if err := r.group(ctx, pair, r.rows[at:end]); err != nil {
				return fmt.Errorf("pair %d: %w", pair, err)
			}
			at = end
		}
		r.say("pair %d (%d of %d): %.0f s", pair, pair-first+1, pairs, time.Since(began).Seconds())
	}
	return nil
}

// turn returns the builds in the order of a turn: each comes first equally often.
func turn(builds []build, n int) []build {
	out := make([]build, 0, len(builds))
	for i := range builds {
		at := (i + n) % len(builds)
		if n/len(builds)%2 == 1 { // and is followed by each other one
			at = (n - i + len(builds)) % len(builds)
		}
		out = append(out, builds[at])
	}
	return out
}

// group measures the rows of one crew.
func (r *rounds) group(ctx context.Context, pair int, rows []row) (err error) {
	crews := map[string]*crew{}
	defer func() {
		for _, c := range crews {
			c.kill()
		}
	}()
	for i, row := range rows {
		order, unit := turn(r.builds, pair+i), r.unit
		if !row.crew.apart {
			order, unit = thereAndBack(order), unit/2
		}
		for _, b := range order {
			if err := r.measure(ctx, pair, row, b, crews, unit); err != nil {
				return err
			}
		}
	}
	return nil
}

// thereAndBack returns an order that measures each build twice, on the way back in the other order: what the machine
// loses or gains steadily meanwhile is the same for all.
func thereAndBack(order []build) []build {
	back := slices.Clone(order)
	slices.Reverse(back)
	return append(back[:len(back):len(back)], order...)
}

// measure measures one row of one build, and starts its crew if need be.
func (r *rounds) measure(ctx context.Context, pair int, row row, b build, crews map[string]*crew,
	unit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c := crews[b.Name]
	if c == nil {
		var err error
		if c, err = row.crew.start(ctx, &b); err != nil {
			return err
		}
		crews[b.Name] = c
	}
	s, err := r.sample(ctx, row, b, c, unit)
	for again := 0; errors.Is(err, errNothing) && again < 2; again++ {
		s, err = r.sample(ctx, row, b, c, unit)
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w", row.name, b.Commit, err)
	}
	s.Pair, s.Build, s.Row = pair, b.Name, row.name
	if row.crew.apart {
		c.kill()
		delete(crews, b.Name)
	}
	r.say("%d %-22s %-5s %12.5g %9.1f ns %v", pair, s.Row, s.Build, s.Value, s.CPU, s.More)
	return r.raw.add(s)
}

// sample measures one row of a crew, with profiles if they are wanted; those of the last pair stay.
func (r *rounds) sample(ctx context.Context, row row, b build, c *crew, unit time.Duration) (sample, error) {
	if r.profile == "" {
		return row.run(ctx, c, unit)
	}
	if err := os.MkdirAll(r.profile, 0o755); err != nil {
		return sample{}, err
	}
	if err := c.profile(ctx, filepath.Join(r.profile, row.name+"-"+b.Name)); err != nil {
		return sample{}, err
	}
	s, err := row.run(ctx, c, unit)
	return s, errors.Join(err, c.profile(ctx, ""))
}
