// Machine: the sharding machine of one node with its five verbs.

package shard

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Machine is the sharding machine of one node. It is a value stepped by its rider and not safe for concurrent use.
type Machine struct {
	self peer.ID
	cfg  Config
	rng  *rand.Rand
	now  time.Duration
	out  Effects
}

// New returns a machine that knows no type and has seen no view. rng spreads repetitions; it belongs to the machine
// from now on.
func New(self peer.ID, cfg Config, rng *rand.Rand) *Machine {
	return &Machine{self: self, cfg: cfg.withDefaults(), rng: rng}
}

// Tick handles every deadline that has passed.
func (m *Machine) Tick(now time.Duration) { m.now = now }

// Handle takes one control frame. An error means that the peer sent nonsense; nothing has changed.
func (m *Machine) Handle(now, _ time.Duration, _ peer.ID, kind wire.Kind, _ []byte) error {
	m.now = now
	return &wire.Error{Kind: kind, Err: wire.ErrBadKind}
}

// Do carries out a command of the node itself.
func (m *Machine) Do(now time.Duration, cmd Command) error {
	m.now = now
	return fmt.Errorf("%w: %T", ErrBadCommand, cmd)
}

// Next returns the earliest deadline at which Tick has something to do.
func (m *Machine) Next() (deadline time.Duration, ok bool) { return 0, false }

// Drain moves the effects of the verbs since the last Drain into out.
func (m *Machine) Drain(out *Effects) {
	*out, m.out = m.out, Effects{}
}
