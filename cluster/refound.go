// Refound: how it is known that members which are gone for good have ended.

package cluster

import "github.com/kith-io/kith/internal/base/enum"

// Refound is the word by which an electorate that has lost a quorum of its seats for good is founded anew
// (kith.Tenure). No word is needed for a member that was proven dead.
type Refound uint8

// The ways. Numbers of settings: they stay.
const (
	// RefoundByOperator: a person says that the lost have ended. Safe if that is true.
	RefoundByOperator Refound = 0
	// RefoundByTakeover: it is assumed a takeover time after the last of them was seen Down. Two nodes may own an entity
	// if a resolver was wrong about one that lives.
	RefoundByTakeover Refound = 1
)

var refoundNames = [...]string{RefoundByOperator: "operator", RefoundByTakeover: "takeover"}

// String names the way as settings do.
func (r Refound) String() string { return enum.Name(refoundNames[:], r, "way") }

// Valid reports whether r is one of them.
func (r Refound) Valid() bool { return int(r) < len(refoundNames) }

// MarshalText gives the name.
func (r Refound) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (r *Refound) UnmarshalText(text []byte) error { return enum.Parse(r, text) }
