// Command sessions is one node with user sessions as entities: timers end those that are silent, a panic starts one
// anew after a rest, and the number of active ones is bounded. It runs for a few seconds and tells what happens.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/kith-io/kith"
)

const silence = 300 * time.Millisecond // after which a session ends; minutes in earnest

// session is one user's. It lives in memory only: who logs in again begins anew.
type session struct {
	out   io.Writer
	words int
}

// Receive gets a word from the user, or the message of the session's own timer.
func (s *session) Receive(c *kith.Context, word []byte) error {
	switch _, timer := c.Timer(); {
	case timer:
		fmt.Fprintf(s.out, "%s was silent and goes\n", c.ID)
		c.Passivate() // Stop comes next; a later word makes a fresh session
		return nil
	case string(word) == "boom":
		panic("a bug that this word meets")
	}
	s.words++
	if err := c.SetTimer("silence", silence, nil); err != nil { // it begins anew with each word
		return err
	}
	return c.Reply(fmt.Appendf(nil, "word %d", s.words))
}

// Stop is called when the session goes, but not for one that a panic has ended.
func (s *session) Stop(c *kith.Context) {
	fmt.Fprintf(s.out, "%s stopped after %d words\n", c.ID, s.words)
}

// sessions declares the type: what becomes of sessions that panic, and how many are kept.
func sessions(out io.Writer) kith.EntityType {
	return kith.EntityType{
		Name: "session", Shards: 16,
		New:            func(string, kith.Fence) kith.Handler { return &session{out: out} },
		IdleAfter:      time.Hour,   // the longest without a message, whatever the timers do
		MaxActive:      100_000,     // on one node; the longest idle go first
		SlowAfter:      time.Second, // a call that takes longer is named while it runs
		Restart:        kith.RestartFresh,
		RestartBackoff: 100 * time.Millisecond, // rest before the next instance; it doubles
		MaxRestarts:    2,                      // panics within the window; with one more the session is given up for as long
		RestartWindow:  time.Minute,
	}
}

// run plays with one session.
func run(ctx context.Context, out io.Writer) error {
	incident := func(i kith.Incident) { fmt.Fprintf(out, "incident: %s of %s\n", i.Kind, i.ID) }
	node, err := kith.Start(ctx, kith.Config{Name: "chat", Incident: incident})
	if err != nil {
		return err
	}
	defer node.Close()
	users, err := node.Register(sessions(out))
	if err != nil {
		return err
	}
	say := func(word string) error {
		reply, err := users.Ask(ctx, "ada", []byte(word))
		fmt.Fprintf(out, "ada says %q: %s%s\n", word, reply, kindOf(err))
		return err
	}
	if err := errors.Join(say("hello"), say("again")); err != nil {
		return err
	}
	for passivated := uint64(0); passivated == 0; passivated = node.Stats().Types[0].Passivated {
		time.Sleep(10 * time.Millisecond) // ada is silent
	}
	if err := say("back"); err != nil { // a fresh session
		return err
	}
	for range 3 { // the first two are followed by a rest, in which the next word waits; the third is one too many
		if err := say("boom"); !errors.Is(err, kith.ErrPanic) {
			return fmt.Errorf("a panic is expected: %w", err)
		}
	}
	if err := say("anybody there?"); !errors.Is(err, kith.ErrCrashed) {
		return fmt.Errorf("given up is expected: %w", err)
	}
	return node.Leave(ctx) // stops what lives
}

func kindOf(err error) string {
	switch {
	case errors.Is(err, kith.ErrPanic):
		return "it panicked"
	case errors.Is(err, kith.ErrCrashed):
		return "it was given up"
	case err != nil:
		return err.Error()
	}
	return ""
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		log.Fatal(err)
	}
}
