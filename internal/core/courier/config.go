// Config: the pace and the bounds of a courier, and the errors of its verbs.

package courier

import (
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Defaults of Config.
const (
	DefaultResendAfter = 250 * time.Millisecond
	DefaultResendMax   = 2 * time.Second
	DefaultAckDelay    = 20 * time.Millisecond
	DefaultMessages    = 4096
	DefaultBytes       = 32 << 20
	DefaultTotalBytes  = 256 << 20
)

// Bounds that are no settings: they need not agree between nodes.
const (
	maxHeld      = 1024      // messages of one peer that wait for one before them
	maxHeldBytes = 4 << 20   // bytes of their bodies
	maxGone      = 1024      // peers that are no members any more, with numbers that are remembered
	ackEvery     = 32        // deliveries after which an acknowledgement waits no longer
	firstBatch   = 8         // messages of the first resend of an outage; it doubles with each acknowledgement
	maxBatch     = 256       // largest batch of a resend, in messages
	batchBytes   = 256 << 10 // and in bytes, but for its first message
	repeatBytes  = 4 << 10   // of a batch for each of its messages, up to batchBytes
	fewestTries  = 6         // resends without an answer before a peer may be given up
)

// Config is the pace of a courier and what it may hold. The zero value means the defaults.
type Config struct {
	ResendAfter time.Duration // first repetition of what is not acknowledged; it doubles up to ResendMax
	ResendMax   time.Duration // longest pause between repetitions
	AckDelay    time.Duration // how long an acknowledgement waits for a message that it may travel with
	Messages    int           // outstanding messages to one peer
	Bytes       int           // bytes of their bodies; a larger message is taken when nothing else is outstanding
	TotalBytes  int           // bytes of the outstanding bodies to all peers
}

func (c Config) withDefaults() Config {
	duration := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	number := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	duration(&c.ResendAfter, DefaultResendAfter)
	duration(&c.ResendMax, max(DefaultResendMax, c.ResendAfter))
	duration(&c.AckDelay, DefaultAckDelay)
	number(&c.Messages, DefaultMessages)
	number(&c.Bytes, DefaultBytes)
	number(&c.TotalBytes, DefaultTotalBytes)
	return c
}

// Errors of a courier; match them with errors.Is.
var (
	// ErrFull is wrapped by FullError.
	ErrFull = errors.New("courier: too many control messages are not acknowledged")
	// ErrNoPeer is returned for a message to one that is no member, is Down, or was given up.
	ErrNoPeer = errors.New("courier: no such peer, or it was given up")
	// ErrNonsense is wrapped by errors of Handle for frames that are well-formed and cannot be true: an acknowledgement of
	// what was never sent, a bare message from one that sends segments.
	ErrNonsense = errors.New("courier: frame that cannot be true")
	// ErrBadKind is returned for a kind that no courier handles or carries.
	ErrBadKind = errors.New("courier: frame kind of another package")
)

// FullError says that a message was not taken: so many messages and bytes to the peer are outstanding, and the bound
// that is reached. The message is lost; its sender has to send it again later.
type FullError struct {
	Peer     peer.ID
	Kind     wire.Kind
	Messages int
	Bytes    int
	Bound    string
}

// Error names the peer, what is outstanding and the bound.
func (e *FullError) Error() string {
	return fmt.Sprintf("%v: %s to %s: %d messages of %d bytes outstanding, at most %s", ErrFull, e.Kind, e.Peer,
		e.Messages, e.Bytes, e.Bound)
}

// Unwrap returns ErrFull.
func (e *FullError) Unwrap() error { return ErrFull }
