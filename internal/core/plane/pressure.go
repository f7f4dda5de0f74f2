// Pressure: what a node does with a message if its sender waits for room while all mailboxes together are full.

package plane

// MostStrained is how many senders' worth of messages are taken beyond the budget of all mailboxes.
const MostStrained = 64

// Strain says what becomes of a message if its sender waits for room.
type Strain uint8

// What becomes of it.
const (
	Easy    Strain = iota // there is room
	Strains               // it is taken, and its sender learns that the budget is used up
	Refuses               // more has come than senders can have sent before they heard it
)

// BudgetStrain judges a message of size bytes for a node with mailboxes that hold used bytes of a budget of limit.
// allowance is how many bytes its sender may still send before it hears that there is no room.
func BudgetStrain(used, size, limit, allowance int) Strain {
	switch over := used + size - limit; {
	case over <= 0:
		return Easy
	case over <= MostStrained*allowance:
		return Strains
	}
	return Refuses
}

// BudgetHasRoom reports whether senders that wait because the budget is used up may go on: there is room for some
// messages. To wait for more would be to wait for ever where entities that do not go on hold the rest.
func BudgetHasRoom(used, limit int) bool { return limit-used >= min(limit/8, 64<<10) }
