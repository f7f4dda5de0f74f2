// Package fdtest holds what every failure detector has to keep, as a suite to run against it.
package fdtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kith-io/kith/fd"
)

// T takes the findings; *testing.T is one.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// Settings returns the defaults of the library, which the suite uses.
func Settings() fd.Settings {
	return fd.Settings{Interval: time.Second, Pause: 3 * time.Second, MinDeviation: 100 * time.Millisecond,
		MaxSamples: 1000, Deviations: fd.DeviationsFor(8)}
}

// Run runs the whole suite against the detectors that f makes, and reports every law that one breaks.
func Run(t T, f fd.Factory) {
	t.Helper()
	for _, law := range []struct {
		name string
		run  func(f fd.Factory) error
	}{
		{"nothing heard is alive", unheard}, {"one deadline", oneDeadline}, {"silence is found", complete},
		{"the pause is tolerated", tolerant}, {"a heartbeat revives", revives}, {"old stamps are no news", stale},
		{"a long silence is no rhythm", unpoisoned}, {"the same stamps, the same deadline", repeatable},
		{"suspicion grows", phiGrows}, {"detectors share nothing", apart}, {"no allocation", noAllocation},
	} {
		if err := law.run(f); err != nil {
			t.Errorf("%s: %v", law.name, err)
		}
	}
}

// slowest is the longest silence that the suite lets pass for a regular rhythm before it must be found.
func slowest(s fd.Settings) time.Duration { return 3*s.Interval + s.Pause }

// regular returns a detector that heard n heartbeats in a steady rhythm, and the stamp of the last.
func regular(f fd.Factory, n int) (d fd.Detector, last time.Duration) {
	s := Settings()
	d = f(s)
	for i := range n {
		last = time.Duration(i+1) * s.Interval
		d.Heartbeat(last)
	}
	return d, last
}

func unheard(f fd.Factory) error {
	d := f(Settings())
	for _, now := range []time.Duration{0, time.Second, 1000 * time.Hour} {
		if !d.Available(now) {
			return fmt.Errorf("unavailable at %v", now)
		}
		if phi := d.Phi(now); phi != 0 {
			return fmt.Errorf("phi is %v at %v", phi, now)
		}
	}
	if at, ok := d.Deadline(); ok {
		return fmt.Errorf("a deadline at %v", at)
	}
	return nil
}

// judged says whether the two ways to ask for the verdict agree around the deadline.
func judged(d fd.Detector, last time.Duration) error {
	at, ok := d.Deadline()
	switch {
	case !ok:
		return fmt.Errorf("no deadline after a heartbeat at %v", last)
	case at <= last:
		return fmt.Errorf("the deadline of a heartbeat at %v is %v", last, at)
	case !d.Available(last), !d.Available(at - 1):
		return fmt.Errorf("unavailable before the deadline %v of a heartbeat at %v", at, last)
	case d.Available(at), d.Available(at + time.Hour):
		return fmt.Errorf("available from the deadline %v on", at)
	}
	return nil
}

func oneDeadline(f fd.Factory) error {
	for seed := range uint64(20) {
		rng, d, last := rand.New(rand.NewPCG(seed, 1)), f(Settings()), time.Duration(0)
		for range 200 {
			last += time.Duration(rng.Int64N(int64(8*time.Second))) + 1
			d.Heartbeat(last)
			if err := judged(d, last); err != nil {
				return fmt.Errorf("random rhythm %d: %w", seed, err)
			}
		}
	}
	return nil
}

func complete(f fd.Factory) error {
	for _, n := range []int{1, 2, 10, 3000} {
		d, last := regular(f, n)
		if limit := last + slowest(Settings()); d.Available(limit) {
			return fmt.Errorf("available %v after the last of %d heartbeats", limit-last, n)
		}
	}
	return nil
}

func tolerant(f fd.Factory) error {
	s := Settings()
	for _, n := range []int{1, 2, 10, 3000} {
		if d, last := regular(f, n); !d.Available(last + s.Interval + s.Pause - time.Millisecond) {
			return fmt.Errorf("unavailable after one interval and the pause that follow %d heartbeats", n)
		}
	}
	return nil
}

func revives(f fd.Factory) error {
	d, last := regular(f, 5)
	last += time.Minute
	if d.Available(last) {
		return fmt.Errorf("a minute of silence was not noticed")
	}
	d.Heartbeat(last)
	return judged(d, last)
}

func stale(f fd.Factory) error {
	d, last := regular(f, 5)
	before, _ := d.Deadline()
	for _, arrived := range []time.Duration{last, last - 1, last - time.Second, 0, -time.Hour} {
		if d.Heartbeat(arrived); deadlineOf(d) != before {
			return fmt.Errorf("a heartbeat at %v behind %v moved the deadline from %v to %v", arrived, last, before,
				deadlineOf(d))
		}
	}
	return nil
}

func deadlineOf(d fd.Detector) time.Duration {
	at, _ := d.Deadline()
	return at
}

func unpoisoned(f fd.Factory) error {
	d, last := regular(f, 5)
	for range 20 {
		last += time.Hour
		d.Heartbeat(last)
	}
	if patience := deadlineOf(d) - last; patience > slowest(Settings()) {
		return fmt.Errorf("bears %v of silence after hours of it", patience)
	}
	return nil
}

func repeatable(f fd.Factory) error {
	a, b := f(Settings()), f(Settings())
	rng, last := rand.New(rand.NewPCG(7, 1)), time.Duration(0)
	for range 2000 {
		last += time.Duration(rng.Int64N(int64(3 * time.Second)))
		a.Heartbeat(last)
		_, _ = a.Available(last+time.Minute), a.Phi(last+time.Minute) // asking changes nothing
		b.Heartbeat(last)
		if deadlineOf(a) != deadlineOf(b) {
			return fmt.Errorf("deadlines %v and %v", deadlineOf(a), deadlineOf(b))
		}
	}
	return nil
}

func phiGrows(f fd.Factory) error {
	d, last := regular(f, 10)
	before := 0.0
	for silence := time.Duration(0); silence < 6*time.Second; silence += 50 * time.Millisecond {
		phi := d.Phi(last + silence)
		if math.IsNaN(phi) || phi < before {
			return fmt.Errorf("phi is %v after %v of silence and %v before", phi, silence, before)
		}
		before = phi
	}
	return nil
}

func apart(f fd.Factory) error {
	a, _ := regular(f, 10)
	before, b := deadlineOf(a), f(Settings())
	b.Heartbeat(before + time.Minute)
	if deadlineOf(a) != before {
		return fmt.Errorf("the heartbeat of another peer moved the deadline")
	}
	return nil
}

func noAllocation(f fd.Factory) error {
	d, last := regular(f, 5000)
	if n := testing.AllocsPerRun(1000, func() {
		last += time.Second
		d.Heartbeat(last)
		_ = d.Available(last)
		_, _ = d.Deadline()
	}); n != 0 {
		return fmt.Errorf("%v allocations per heartbeat", n)
	}
	return nil
}
