// Machine: the membership of one node as a stepped value.

package membership

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Errors of Do.
var (
	// ErrUnknownMember is returned by a DownCommand that names no member.
	ErrUnknownMember = errors.New("membership: unknown member")
	// ErrNotMember is returned by a command that only a member can carry out.
	ErrNotMember = errors.New("membership: this node is not a member")
	// ErrJoining is returned by a JoinCommand when the node has joined, or is about to.
	ErrJoining = errors.New("membership: already joined or joining")
	// ErrEnded is returned by every command when the membership is over.
	ErrEnded = errors.New("membership: ended")
)

// Machine is the membership of one node. It is not safe for concurrent use.
type Machine struct {
	self peer.ID
	cfg  Config
	rng  *rand.Rand
}

// New returns a machine that has not joined anything yet. cfg is taken with its defaults; all randomness comes from
// rng, which the machine owns from now on.
func New(self peer.ID, cfg Config, rng *rand.Rand) *Machine {
	return &Machine{self: self, cfg: cfg.WithDefaults(), rng: rng}
}

// Tick handles every deadline that has passed.
func (m *Machine) Tick(now time.Duration) {}

// Handle takes one control message. An error means that the peer sent nonsense; nothing has changed.
func (m *Machine) Handle(now, arrived time.Duration, from peer.ID, kind wire.Kind, body []byte) error {
	return nil
}

// Do carries out a local wish.
func (m *Machine) Do(now time.Duration, cmd Command) error { return nil }

// Next returns the earliest deadline at which Tick has something to do.
func (m *Machine) Next() (deadline time.Duration, ok bool) { return 0, false }

// Drain moves the effects of the verbs since the last Drain into out.
func (m *Machine) Drain(out *Effects) { *out = Effects{} }

// PlainBody returns body with its state uncompressed, so that traces hash what was said and not how it was packed.
// Bodies that hold no compressed state, or are not valid, come back as they are.
func PlainBody(kind wire.Kind, body []byte) []byte { return body }
