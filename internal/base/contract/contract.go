// Package contract holds the shape that all machines of a node share, as interfaces, and what it demands of Drain, as a
// check that the tests of every machine run: Drain hands over what verbs have done and does nothing itself.
package contract

import (
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Stepped is a machine that takes commands of type C and asks for effects of type E. now is monotonic since the node's
// start and never goes back.
type Stepped[C, E any] interface {
	// Tick handles every deadline that has passed.
	Tick(now time.Duration)
	// Do carries out a local wish. With an error nothing has changed.
	Do(now time.Duration, cmd C) error
	// Next returns when to be ticked again; ok is false when there is no deadline.
	Next() (deadline time.Duration, ok bool)
	// Drain hands over what the verbs since the last Drain want done; it is valid until the next verb.
	Drain(out *E)
}

// Machine is a stepped value that takes control frames too.
type Machine[C, E any] interface {
	Stepped[C, E]
	// Handle takes one control frame that was read at arrived. An error means nonsense; nothing has changed then.
	Handle(now, arrived time.Duration, from peer.ID, kind wire.Kind, body []byte) error
}

// Part is a machine that a composition steps. Peek returns what the next Drain will hand over.
type Part[E any] interface{ Peek() E }

// Tester is what the check needs of a *testing.T or *rapid.T.
type Tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// drains counts the drains of this process that were asked to be checked.
var drains atomic.Uint64

// sampled reports whether the next drain is checked: the first ones are, and later one in 512, for a digest costs far
// more than a drain.
func sampled() bool {
	n := drains.Add(1)
	return n <= 128 || n%512 == 0
}

// Drain drains m into out and demands what the contract says of that: nothing that m knows changes, but for the fields
// of outbox, by name, which hold what is handed over and that it was; no deadline moves; a second Drain gives nothing;
// and Peek, where m has it, had shown the same. Of the drains that a test asks for in great number it checks some.
func Drain[C, E any](t Tester, m Stepped[C, E], out *E, outbox ...string) {
	t.Helper()
	if !sampled() {
		m.Drain(out)
		return
	}
	part, peeks := m.(Part[E])
	var shown E
	if peeks {
		shown = part.Peek()
	}
	at, ok := m.Next()
	before := Digest(m, outbox...)
	for _, into := range []*E{out, new(E)} {
		m.Drain(into)
		if now, still := m.Next(); now != at || still != ok {
			t.Fatalf("contract: Drain moves the next deadline from %v to %v", at, now)
		}
		if Digest(m, outbox...) != before {
			t.Fatalf("contract: Drain of %T changes what it knows", m)
		}
		if into != out && !empty(reflect.ValueOf(*into)) {
			t.Fatalf("contract: a second Drain of %T gives %+v", m, *into)
		}
	}
	if !peeks {
		return
	}
	if a, b := fmt.Sprintf("%+v", shown), fmt.Sprintf("%+v", *out); a != b {
		t.Fatalf("contract: Peek shows %s, Drain hands over %s", a, b)
	}
	if left := part.Peek(); !empty(reflect.ValueOf(left)) {
		t.Fatalf("contract: after a Drain of %T Peek shows %+v", m, left)
	}
}

// empty reports whether effects ask for nothing: no slice has an element, everything else is zero.
func empty(v reflect.Value) bool {
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Slice && f.Len() > 0 || f.Kind() != reflect.Slice && !f.IsZero() {
			return false
		}
	}
	return true
}
