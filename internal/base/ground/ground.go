// Grounds: goroutines and clocks, or what the simulator has in their place.

// Package ground is what code stands on that waits: it begins, waits and reads clocks by a Ground, so that the same
// code runs on goroutines and on the simulator's coroutines and virtual time.
package ground

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"sync"
	"time"
)

// Forever is no limit.
const Forever time.Duration = -1

// Ground is what code stands on. Its methods are safe for concurrent use.
type Ground interface {
	// Now is for what is measured; Wall is the time of day, which may be set.
	Now() time.Time
	Wall() time.Time
	// Begin runs f beside its caller, which may hold locks.
	Begin(f func())
	// Wait waits until something is to be had from bell, which it takes, for d, or until ctx ends, and reports whether it
	// was the first. bell may be nil. No lock is held.
	Wait(ctx context.Context, d time.Duration, bell <-chan struct{}) bool
	// Ring puts something into bell, unless it is full; Close closes it. Callers may hold locks.
	Ring(bell chan struct{})
	Close(bell chan struct{})
	// Within is context.WithTimeout.
	Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
	// Fill fills b by chance, as no two are filled; Chance draws one of the numbers below n, which is above 0.
	Fill(b []byte)
	Chance(n int64) int64
}

// Line carries messages to the entities of a type.
type Line interface {
	// Ask waits for an answer; AskFunc has done called with it, once, unless it returns an error.
	Ask(ctx context.Context, headers []byte, id string, body []byte) ([]byte, error)
	AskFunc(headers []byte, d time.Duration, id string, body []byte, done func([]byte, error)) error
	// Tell does not wait.
	Tell(id string, body []byte) error
}

// Node is what a node of another kind than kith.Node is to code that stands on it.
type Node interface {
	Ground
	// Line is that of a type, though the type may not be registered yet.
	Line(typ string) Line
	// Kept is what the users of the node share.
	Kept() *any
}

// Real is goroutines and the machine's clock.
type Real struct{}

// Now implements Ground.
func (Real) Now() time.Time { return time.Now() }

// Wall implements Ground.
func (Real) Wall() time.Time { return time.Now() }

// Begin implements Ground.
func (Real) Begin(f func()) { go f() }

// Wait implements Ground.
func (Real) Wait(ctx context.Context, d time.Duration, bell <-chan struct{}) bool {
	var over <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-bell:
		return true
	case <-over:
	case <-ctx.Done():
	}
	return false
}

// Ring implements Ground.
func (Real) Ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// Close implements Ground.
func (Real) Close(bell chan struct{}) { close(bell) }

// Within implements Ground.
func (Real) Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// Fill implements Ground.
func (Real) Fill(b []byte) { _, _ = crand.Read(b) } // never fails

// Chance implements Ground.
func (Real) Chance(n int64) int64 { return rand.Int64N(n) }

// Crew is what was begun together, as a sync.WaitGroup is. Its methods are safe for concurrent use.
type Crew struct {
	On Ground

	mu    sync.Mutex
	busy  int
	empty chan struct{} // closed when nobody is busy; nil: nobody waits
}

// Go runs f.
func (c *Crew) Go(f func()) {
	c.mu.Lock()
	c.busy++
	c.mu.Unlock()
	c.On.Begin(func() {
		f()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.busy--; c.busy == 0 && c.empty != nil {
			c.On.Close(c.empty)
			c.empty = nil
		}
	})
}

// Wait waits until all have returned. One waits at a time.
func (c *Crew) Wait() {
	c.mu.Lock()
	if c.busy == 0 {
		c.mu.Unlock()
		return
	}
	empty := make(chan struct{})
	c.empty = empty
	c.mu.Unlock()
	c.On.Wait(context.Background(), Forever, empty)
}
