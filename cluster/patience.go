// Patience: how much of a stall a cluster bears before it gives a member up.

package cluster

import (
	"fmt"

	"github.com/kith-io/kith/internal/base/enum"
)

// Patience is a preset of what decides how soon a lost member is given up, and which stalls of a healthy one cost
// nothing: the settings of the failure detector, the pace of gossip and the resolver's patience. It must be the same on
// all nodes. docs/failover.md has the figures of each.
type Patience uint8

// The presets.
const (
	// PatienceNormal bears stalls of up to 3 s: for virtual machines and containers of any cloud. It is the default.
	PatienceNormal Patience = iota
	// PatienceCalm bears stalls of up to 1 s and gives a dead process up in a third of the time: for machines that have
	// their processors to themselves, and a network that loses little.
	PatienceCalm
	// PatienceNoisy bears stalls of up to 6 s: for machines that are loaded beyond what they have, or move while they run.
	PatienceNoisy
)

var patienceNames = [...]string{PatienceNormal: "normal", PatienceCalm: "calm", PatienceNoisy: "noisy"}

// String names the preset as settings do.
func (p Patience) String() string { return enum.Name(patienceNames[:], p, "patience") }

// Valid reports whether p is one of the presets.
func (p Patience) Valid() bool { return int(p) < len(patienceNames) }

// MarshalText gives the name.
func (p Patience) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText takes a name, as String gives it, also that of a preset which only a later version has. The error names
// those that there are, and p stays as it was.
func (p *Patience) UnmarshalText(text []byte) error {
	if enum.Parse(p, text) != nil {
		return fmt.Errorf("cluster: no patience %q, there are %q", text, patienceNames)
	}
	return nil
}
