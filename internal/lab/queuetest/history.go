// Histories: what senders know, what receivers have handled, what is a dead letter, and the judge of all three.

// Package queuetest tells whether queues of package delivery keep their promises: a judge of whole histories, and a
// suite of queues on real nodes that the tests of an engine call, as they call package storetest.
package queuetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kith-io/kith"
)

// Outcome is what the sender of a message knows of it.
type Outcome byte

// The outcomes.
const (
	Stored  Outcome = 1 // Send returned nil
	Unknown Outcome = 2 // it may be stored
	Refused Outcome = 3 // it is not stored, and will not be
)

// OutcomeOf returns what the answer of Send says.
func OutcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Stored
	case kith.MayHaveRun(err):
		return Unknown
	}
	return Refused
}

// Sent is a message as its sender knows it.
type Sent struct {
	Sender  string // of messages that were sent one behind the other
	To      string
	Text    string // no other message has it
	Outcome Outcome
}

// Handled is one call of a handler, before it acknowledged.
type Handled struct {
	To, Text string
	Life     string // of the instance of the receiver
}

// Dead is a dead letter.
type Dead struct{ To, Text string }

// History is all that is known of a queue when nothing waits any more.
type History struct {
	Sent      []Sent          // those of one sender in the order of its calls
	Handled   []Handled       // in the order of time
	Dead      []Dead          // that there are
	Again     map[string]bool // texts of dead letters that somebody has sent again, or may have
	Discarded map[string]bool // and of those that somebody has taken away, or may have
}

// Verdict says how often a promise was broken.
type Verdict struct {
	Lost     int // messages that were stored, not handled, and are no dead letters
	Overtook int // that were handled first behind a later one of their sender to the same receiver
	Invented int // handled, or dead, though nobody has sent them there, or their sender knows that they are not stored
	Twice    int // that one life of a receiver has handled again, or that are dead letters again

	Stored   int // messages that were
	Repeated int // calls of handlers with what had been handled in another life: that is no fault
	Said     []string
}

// mostSaid bounds what is reported of single cases.
const mostSaid = 40

func (v *Verdict) say(count *int, format string, args ...any) {
	*count++
	if len(v.Said) < mostSaid {
		v.Said = append(v.Said, fmt.Sprintf(format, args...))
	}
}

// Err returns what is broken, or nil.
func (v *Verdict) Err() error {
	if v.Lost+v.Overtook+v.Invented+v.Twice == 0 {
		return nil
	}
	return errors.New(strings.Join(v.Said, "; "))
}

// message is one as the judge sees it.
type message struct {
	to, text string
}

// Judge holds what was handled, and what is dead, against what was sent.
func (h *History) Judge() *Verdict {
	v := &Verdict{}
	sent, first := map[message]Outcome{}, map[message]int{}
	for _, s := range h.Sent {
		sent[message{s.To, s.Text}] = s.Outcome
	}
	lives := map[Handled]bool{}
	for i, c := range h.Handled {
		m := message{c.To, c.Text}
		_, before := first[m]
		switch o := sent[m]; {
		case o == 0 || o == Refused:
			v.say(&v.Invented, "%s has handled %s, which was not sent to it", c.To, c.Text)
		case lives[c] && !h.Again[c.Text]:
			v.say(&v.Twice, "%s has handled %s twice in life %s", c.To, c.Text, c.Life)
		case before:
			v.Repeated++
		}
		if lives[c] = true; !before {
			first[m] = i
		}
	}
	dead := map[message]bool{}
	for _, d := range h.Dead {
		m := message{d.To, d.Text}
		if o := sent[m]; o == 0 || o == Refused {
			v.say(&v.Invented, "%s to %s is a dead letter, and was not sent", d.Text, d.To)
		} else if dead[m] {
			v.say(&v.Twice, "%s to %s is two dead letters", d.Text, d.To)
		}
		dead[m] = true
	}
	h.stored(v, first, dead)
	return v
}

// stored judges what was stored.
func (h *History) stored(v *Verdict, first map[message]int, dead map[message]bool) {
	type stream struct{ sender, to string }
	last := map[stream]int{}
	for _, s := range h.Sent {
		if s.Outcome != Stored {
			continue
		}
		v.Stored++
		m, of := message{s.To, s.Text}, stream{s.Sender, s.To}
		at, was := first[m]
		switch {
		case !was && !dead[m] && !h.Discarded[s.Text]:
			v.say(&v.Lost, "%s from %s to %s was stored and is lost", s.Text, s.Sender, s.To)
		case !was || h.Again[s.Text]: // one that was sent again comes behind others
		case at < last[of]:
			v.say(&v.Overtook, "%s from %s to %s was handled behind a later one", s.Text, s.Sender, s.To)
		default:
			last[of] = at + 1
		}
	}
}
