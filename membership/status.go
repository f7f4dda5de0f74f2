// Status of a member and the allowed transitions (MEM-2).

package membership

import "fmt"

// Status is where a member stands in its life. Numbers stand on the wire; 6 to 8 are kept for weakly up and the two
// states of a full shutdown.
type Status uint8

// The states of a member. Unreachable is a flag beside the status, not one of them.
const (
	Joining Status = 0 // admitted by some member, not yet confirmed by the leader
	Up      Status = 1 // confirmed by the leader under convergence
	Leaving Status = 2 // asked to leave
	Exiting Status = 3 // its leaving is known to all
	Down    Status = 4 // marked as gone, by an operator, a resolver or a new incarnation at its address
	Removed Status = 5 // out of the cluster for good; only in events and tombstones
)

// String names the status as the reference does.
func (s Status) String() string {
	switch s {
	case Joining:
		return "joining"
	case Up:
		return "up"
	case Leaving:
		return "leaving"
	case Exiting:
		return "exiting"
	case Down:
		return "down"
	case Removed:
		return "removed"
	}
	return fmt.Sprintf("status-%d", uint8(s))
}
