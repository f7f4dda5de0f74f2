// The account of a storm: accepted = handled + reported + lost, and what is lacking.

package storm

import "github.com/kith-io/kith/internal/check"

// Account is the sum over all messages of all seeds.
type Account struct {
	Accepted   int                 `json:"accepted"`             // from senders: tells and asks
	Handled    int                 `json:"handled"`              // given to a handler
	Reported   int                 `json:"reported"`             // not handled, and their senders were told so
	Lost       map[check.Cause]int `json:"lost"`                 // by the reason that the docs name
	Difference int                 `json:"difference"`           // accepted less all of these
	Lacking    map[check.Cause]int `json:"lacking,omitempty"`    // the difference, by what is known of it
	Twice      int                 `json:"handled_and_reported"` // told to be perhaps lost, and known elsewhere
	Forms      map[string]int      `json:"forms"`                // accepted, by form and mode
	Moves      int                 `json:"moves"`                // of shards, from owner to owner
}

func (a *Account) add(o *check.Accounts, moves int) {
	sum := check.Accounts{Accepted: a.Accepted, Handled: a.Handled, Reported: a.Reported, Lost: a.Lost, Open: a.Lacking,
		Twice: a.Twice, Forms: a.Forms}
	sum.Add(o)
	*a = Account{Accepted: sum.Accepted, Handled: sum.Handled, Reported: sum.Reported, Lost: sum.Lost,
		Difference: sum.Difference(), Lacking: sum.Open, Twice: sum.Twice, Forms: sum.Forms, Moves: a.Moves + moves}
}
