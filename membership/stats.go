// Stats: what the machine counts.

package membership

import "time"

// Stats counts what the machine did with what it received.
type Stats struct {
	Same, Newer, Older, Merged uint64 // full states received, by outcome
	StatesSent, DeltasSent     uint64 // whole states sent, and differences instead of one
	DeltasApplied              uint64 // differences applied to the version that they were for
	DeltasWithoutBase          uint64 // differences to a version that this node does not hold: the state was asked for
	DeltasWrong                uint64 // differences that did not lead where they said: likewise
	Returned                   uint64 // members of received states that were removed here and forgotten
	NonMembers                 uint64 // frames of nodes that are no members (yet): joiners too
	Misaddressed               uint64 // gossip for another incarnation or cluster, ignored
	Expired                    uint64 // gossip older than its time to live, dropped
	FromUnreachable            uint64 // gossip of one whom this node holds unreachable, ignored
	StaleWelcome               uint64 // welcomes without a pending join of that nonce, ignored
	LateAnswers                uint64 // heartbeat answers of nodes whose control loop is stuck, not counted
	JoinsRefused               uint64
	Disbelieved                uint64        // words that this incarnation was removed, of those who are not believed
	Splits                     uint64        // times that a SplitCluster was told
	SettingsDiffer             uint64        // joins let through with other settings
	SecondProbes               uint64        // probes over a second connection, of peers late with their answers
	SelfIndicted               uint64        // quarantines not made because there would have been too many
	LinksLost                  uint64        // links to members that broke and were refused when dialled again
	LateSteps                  uint64        // steps of this node that came late: it had stood still
	LateTime                   time.Duration // by how much in all; taken out of the silence of its peers
}

// Stats returns the counters so far.
func (m *Machine) Stats() Stats { return m.stats }
