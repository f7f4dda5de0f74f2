// LeftGracefully: members that leave in order; their last answers are waited for.

package node

import "github.com/kith-io/kith/membership"

// LeftGracefully reports whether a member of this status, or one that was removed with it, answers what it was asked
// before it goes: then a connection to it that closes, and its removal, do not end what was asked of it, because its
// answers may lie here unread. They are waited for until it is forgotten. Of a member that was replaced nobody knows
// how it went; if its process died, its connections had broken before.
func LeftGracefully(s membership.Status, c membership.Cause) bool {
	return s == membership.Leaving || s == membership.Exiting || s == membership.Down && Started(c)
}

// Started reports whether a member was downed because a new process started at its address: a fact, nobody's decision.
func Started(c membership.Cause) bool {
	return c == membership.CauseReplaced || c == membership.CauseProvenDead
}
