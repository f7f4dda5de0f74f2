// Settings: how many seats there are, how long a grant lasts, and what follows from it.

// Package tenure decides until when a node may handle messages on the word of others: the holders of numbered seats
// vouch for it, and a quorum of them that vouches for it no more proves that it handles nothing (MEM-10, AVL-5). It is
// a session lease without a store. Its rules are those of the model, docs/contributing/tenure.md. It is stepped: the
// holders of the seats and the members come in with views, and messages go out as bytes.
package tenure

import (
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/cluster"
)

// Config is the electorate and its times. The zero value is: no tenure. It must be the same on all nodes.
type Config struct {
	Voters int           // seats: 3, 5 or 7
	Grant  time.Duration // for how long a grant counts, from when it was asked for; MinGrant to MaxGrant
	Role   string        // of the members that may hold a seat; empty: any may
	// Refound is how it is known that lost members have ended when a quorum of the seats is lost for good. The seats are
	// given to others only then.
	Refound cluster.Refound
}

// Bounds of a Config.
const (
	MinVoters = 3
	MaxVoters = 7
	MinGrant  = 500 * time.Millisecond
	MaxGrant  = time.Minute
)

// ErrBadConfig is matched by what Validate returns.
var ErrBadConfig = errors.New("tenure: bad settings")

// Validate returns all faults of c joined, or nil. Each matches ErrBadConfig.
func (c Config) Validate() error {
	if c == (Config{}) {
		return nil
	}
	var errs []error
	if c.Voters < MinVoters || c.Voters > MaxVoters || c.Voters%2 == 0 {
		errs = append(errs, fmt.Errorf("%w: %d seats, must be 3, 5 or 7", ErrBadConfig, c.Voters))
	}
	if c.Grant < MinGrant || c.Grant > MaxGrant {
		errs = append(errs, fmt.Errorf("%w: a grant counts for %v, must be %v to %v", ErrBadConfig, c.Grant, MinGrant,
			MaxGrant))
	}
	if !c.Refound.Valid() {
		errs = append(errs, fmt.Errorf("%w: unknown Refound %d", ErrBadConfig, c.Refound))
	}
	return errors.Join(errs...)
}

// String returns c as one line, by which nodes compare it.
func (c Config) String() string {
	s := fmt.Sprintf("voters=%d grant=%v role=%q", c.Voters, c.Grant, c.Role)
	if c.Refound != cluster.RefoundByOperator {
		s += " refound=" + c.Refound.String()
	}
	return s
}

// On reports whether nodes have a tenure.
func (c Config) On() bool { return c.Voters > 0 }

// Quorum is how many seats are a quorum: more than half.
func (c Config) Quorum() int { return c.Voters/2 + 1 }

// Promise is for how long a holder keeps to its grant, on its own clock: longer than the grant by what two clocks may
// differ, a thousandth each, and by a twenty-fifth for the batch that the owner has in hand.
func (c Config) Promise() time.Duration { return c.Grant + c.Grant/500 + c.Grant/25 }

// Renew is how often an owner asks anew: five times in a grant.
func (c Config) Renew() time.Duration { return c.Grant / 5 }

// Heard is for how long after a renewal the holder of a seat does not miss the owner, whatever others say: one that
// stands still as a cut heals has time to be heard. Two questions and their answers fit between Heard and Promise, so
// that hardly an end is proven later (storm 14400006993).
func (c Config) Heard() time.Duration { return c.Grant - c.Grant*3/50 }

// Retry is the rest between two questions of a seeker.
func (c Config) Retry() time.Duration { return c.Grant / 10 }
