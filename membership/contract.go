// The shapes that others see of the membership machine: commands that go in, effects that come out, where a node stands
// and how it ends, what is counted.

package membership

import (
	"errors"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
)

// Errors of Do and Handle.
var (
	// ErrUnknownMember is returned by a DownCommand that names no member.
	ErrUnknownMember = errors.New("membership: unknown member")
	// ErrNotMember is returned by a command that only a member can carry out.
	ErrNotMember = errors.New("membership: this node is not a member")
	// ErrNoRefound is returned by a RefoundCommand where there is no electorate, or members hold a quorum of its seats.
	ErrNoRefound = errors.New("membership: there is no electorate to be founded anew")
	// ErrJoining is returned by a JoinCommand when the node has joined, or is about to.
	ErrJoining = errors.New("membership: already joined or joining")
	// ErrJoined is returned by a SeedsCommand when the node is in a cluster already.
	ErrJoined = errors.New("membership: already in a cluster")
	// ErrSeedsOverridden is returned by a SeedsCommand when an operator has set the seeds to join.
	ErrSeedsOverridden = errors.New("membership: an operator has told this node whom to join")
	// ErrJoinPending is returned by a SeedsCommand of an operator when a member was asked to admit the node.
	ErrJoinPending = errors.New("membership: a cluster has been asked to admit this node")
	// ErrTooManySeeds is returned by a JoinCommand or SeedsCommand with more than MaxSeeds seeds.
	ErrTooManySeeds = errors.New("membership: too many seeds")
	// ErrEnded is returned by every command when the membership is over.
	ErrEnded = errors.New("membership: ended")
	// ErrBadCommand is returned for a command of another kind.
	ErrBadCommand = errors.New("membership: unknown command")
	// ErrBadKind is returned by Handle for a frame kind that membership does not own.
	ErrBadKind = errors.New("membership: frame kind of another package")
)

// Command is a local wish: one of JoinCommand, LeaveCommand, DownCommand, DownAllCommand, ProveCommand,
// SetMetadataCommand, DrainsCommand, PrepareShutdownCommand, LinkLostCommand, OtherClusterCommand, JoinAnotherCommand,
// ToldRemovedCommand, ReconfirmCommand, UnreachedCommand, SeedsCommand.
type Command interface{ command() }

// JoinCommand starts the join: contact all seeds and be admitted by the first that answers. The first seed forms the
// cluster when no other seed answers; without a Record only it may, so all nodes give the list in one order. With no
// seeds, or only the node itself, the node forms a cluster of one.
type JoinCommand struct {
	Seeds []peer.Addr
	// WallMillis is the wall clock in milliseconds since 1970, used only for the birth of a cluster that is formed.
	WallMillis uint64
	// Record is what an earlier incarnation at this address remembered. One that names others keeps this node from
	// forming a cluster until they have said that they are in none; they are asked beside the seeds.
	Record Record
	// Former is the address at which Record was kept, when that is not this node's: the node there may carry its
	// cluster on, so it is asked. Zero: Record is of this address, or of none.
	Former peer.Addr
	// NeverForm has this node join only, never form a cluster.
	NeverForm bool
	// Await says that a SeedsCommand brings the seeds. Until then this node looks for nobody but those that its Record
	// names, and forms a cluster only by agreement with these.
	Await bool
	// FormNew is an operator's word that no cluster lives any more: when none is found within the SeedTimeout, this node
	// forms one, first seed or not and whatever anybody remembers. NeverForm outweighs it.
	FormNew bool
	// Dead is the last incarnation at this address when its process is dead for certain, as the kernel says: this one got
	// the lock that it held to the end. The member that admits this node learns of it. Zero: nothing is known.
	Dead uint64
}

// LeaveCommand starts a graceful leave of this node: leaving, exiting, removed.
type LeaveCommand struct{}

// IsolatedCommand ends this node by itself, without a word to others: it cannot know whether its cluster goes on
// elsewhere, and no member is left that could say so. Why is for people.
type IsolatedCommand struct{ Why string }

// DownCommand marks a member Down. An Incarnation of zero in ID names the member at the address, whichever incarnation
// it is. Cause is kept beside the mark for all to see; CauseNone means CauseOperator.
type DownCommand struct {
	ID    peer.ID
	Cause Cause
}

// ProveCommand says that the processes of members handle nothing any more, and never will: their session leases were
// ended. They are marked Down with CauseProvenDead, removed ones too. IDs that nobody knows any more, and
// those of which that is known, are ignored; the machine copies IDs.
type ProveCommand struct{ IDs []peer.ID }

// RefoundCommand is an operator's word, or an assumption, that the processes of all members that are Down or were
// removed in this node's state have ended. They are marked as proven dead, and the leader founds an electorate that has
// lost a quorum for good anew. ErrNoRefound and ErrNotMember say that nothing has changed.
type RefoundCommand struct{}

// DownAllCommand marks several members Down in one change, for a resolver that decides about many. In several changes a
// leader that is about to go could act in between, on a membership that no resolver decided. The machine ignores IDs
// that are no members or Down already, and copies IDs.
type DownAllCommand struct {
	IDs   []peer.ID
	Cause Cause
}

// LinkLostCommand is evidence from below: the connection to ID broke, and when its address was dialled again at once
// the host refused, because nobody listens there. Replaced says that another incarnation answered instead, which proves
// that this one is gone. It is no verdict: see docs/failure-detection.md.
type LinkLostCommand struct {
	ID       peer.ID
	Replaced bool
}

func (LinkLostCommand) command() {}
func (JoinCommand) command()     {}
func (LeaveCommand) command()    {}
func (IsolatedCommand) command() {}
func (DownCommand) command()     {}
func (DownAllCommand) command()  {}
func (ProveCommand) command()    {}
func (RefoundCommand) command()  {}

// Effects is what one or more verbs ask the runtime to do. Drain fills it; slices and bodies are valid until the next
// verb.
type Effects struct {
	Mail   []peer.Mail
	View   *View   // the new immutable snapshot, nil when nothing changed
	Events []Event // in order; they lead from the previous View to this one, then those without a view
	Ended  *Ended  // the node's membership is over; set once
	// Died lists incarnations proven dead (CauseProvenDead) since this state, though their records may have become
	// tombstones in the same step, so that no view shows it.
	Died []peer.ID
}

// EndKind is why a node's membership is over.
type EndKind uint8

// The ways a membership ends.
const (
	EndLeft        EndKind = 1  // left gracefully and was removed
	EndDowned      EndKind = 2  // this incarnation was marked Down
	EndRemoved     EndKind = 3  // learnt that this incarnation was removed
	EndJoinRefused EndKind = 4  // a member refused the join for good
	EndJoinTimeout EndKind = 5  // not admitted within Config.JoinTimeout
	EndRejoin      EndKind = 7  // left its cluster of one to join another (JoinAnotherCommand)
	EndIsolated    EndKind = 6  // alone or not let in for half of Config.TombstoneRetention, or all that were Up are lost
	EndDuplicate   EndKind = 10 // met the older and larger of two clusters of this name, so its own ends

	EndClosed EndKind = 100 // the runtime had to end it at once; no machine says so
)

var endNames = []string{EndLeft: "left", EndDowned: "downed", EndRemoved: "removed", EndJoinRefused: "join-refused",
	EndJoinTimeout: "join-timeout", EndRejoin: "rejoin", EndIsolated: "isolated", EndDuplicate: "twin",
	EndClosed: "closed"}

// String names the end.
func (k EndKind) String() string { return enum.Name(endNames, k, "end") }

// MarshalText gives the name.
func (k EndKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (k *EndKind) UnmarshalText(text []byte) error { return enum.Parse(k, text) }

// Ended says how a node's membership ended: kind, the node that decided or said so, when (on this node's clock), and
// the evidence in words.
type Ended struct {
	Kind   EndKind
	By     peer.ID
	At     time.Duration
	Reason string
	Cause  Cause // of the Down that ended it; CauseNone for every other end
	// Record is what the next incarnation is to be given instead of what was remembered, after EndDuplicate: the older
	// cluster, as far as it was met. Nil: what the node's own views say.
	Record *Record
}

// NodeState is where a node stands between its start and its end.
type NodeState uint8

// The states of a node. Only a node that is StateReady handles messages.
const (
	StateStarting  NodeState = iota // it looks for a cluster, or has asked to be admitted
	StateWaiting                    // it is a member, and has not been let in yet
	StateReady                      // it is Up, or waits for the end of its whole cluster
	StateSuspended                  // it handles no message until others have confirmed it
	StateLeaving                    // it leaves, or its coordinated shutdown runs
	StateEnded                      // it is over

	nodeStates
)

var stateNames = [nodeStates]string{"starting", "waiting", "ready", "suspended", "leaving", "ended"}

// String names the state as logs do.
func (s NodeState) String() string { return enum.Name(stateNames[:], s, "state") }

// MarshalText gives the name.
func (s NodeState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (s *NodeState) UnmarshalText(text []byte) error { return enum.Parse(s, text) }

// Health says where a node stands, since when on its clock, and why. Waiting is set in StateStarting and StateWaiting.
type Health struct {
	State   NodeState
	Since   time.Duration
	Reason  string // in words; empty in StateReady
	Waiting Waiting
}

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
	FromUnreachable            uint64 // gossip of a member that this node holds unreachable, ignored
	StaleWelcome               uint64 // welcomes without a pending join of that nonce, ignored
	LateAnswers                uint64 // heartbeat answers of nodes with a stuck control loop, not counted
	JoinsRefused               uint64
	Disbelieved                uint64        // words of unbelieved nodes that this incarnation was removed
	Splits                     uint64        // times that a SplitCluster was reported
	SettingsDiffer             uint64        // joins let through with other settings
	SecondProbes               uint64        // probes over a second connection, of peers late with their answers
	SelfSuspected              uint64        // quarantines not made because there would have been too many
	LinksLost                  uint64        // links to members that broke and were refused when dialled again
	LateSteps                  uint64        // steps of this node that came late: it had stood still
	LateTime                   time.Duration // by how much in all; taken out of the silence of its peers
}

// Seats is a list of the holders of an electorate's seats, of no number before the first one. It is not to be changed.
type Seats struct {
	Number  uint32
	Writer  peer.ID   // the leader that wrote it
	Holders []peer.ID // by seat; zero where it is empty
}

// Seats returns the list of seats in this node's state, and appends those that the state lists as members and not Down
// to in, and those that it lists as Down or removed to lost, each sorted; none before this node is admitted.
func (m *Machine) Seats(in, lost []peer.ID) (Seats, []peer.ID, []peer.ID) {
	if m.st == nil {
		return Seats{}, in, lost
	}
	for i := range m.st.Members {
		if o := &m.st.Members[i]; o.Status == Down {
			lost = append(lost, o.ID)
		} else {
			in = append(in, o.ID)
		}
	}
	for i := range m.st.Tombs {
		lost = append(lost, m.st.Tombs[i].ID)
	}
	slices.SortFunc(lost, peer.ID.Compare)
	return Seats(m.st.Seats), in, lost
}

// Unproven appends the removed members that were Down, without proof of their end in this node's state.
func Unproven(ids []peer.ID, m *Machine) []peer.ID {
	if m.st == nil {
		return ids
	}
	for i := range m.st.Tombs {
		if unproven(m.st.Tombs[i]) {
			ids = append(ids, m.st.Tombs[i].ID)
		}
	}
	return ids
}

// unproven reports whether a removed incarnation was Down and its end has yet to be proven.
func unproven(t members.Tombstone) bool { return t.Last == Down && t.Cause != CauseProvenDead }

// SeatsLost reports whether no quorum of the seats is held by members that are not Down in this node's state, and
// appends to ids those that have to end before the electorate is founded, or founded anew: see RefoundCommand.
func SeatsLost(m *Machine, ids []peer.ID) (lost bool, unproven []peer.ID) {
	if m.st == nil || m.cfg.Electorate.Voters == 0 {
		return false, ids
	}
	held := 0
	for _, h := range m.st.Seats.Holders {
		if st := m.st.Status(h); st != Down && st != Removed {
			held++
		}
	}
	if 2*held > m.cfg.Electorate.Voters {
		return false, ids
	}
	return true, m.st.Unproven(ids)
}

// EndedOf returns those of ids with a process that is dead as this node's state has it: it is proven, or another one
// was let in at its address. It takes empty identities, and those that nobody knows, for alive.
func EndedOf(m *Machine, ids []peer.ID) (ended peer.Set) {
	for _, id := range ids {
		if m.st == nil || id.IsZero() {
			continue
		}
		o, _ := m.st.Tomb(id)
		cause := o.Cause
		if i := m.st.Index(id); i >= 0 {
			cause = m.st.Members[i].Cause
		}
		if cause == CauseProvenDead || cause == CauseReplaced {
			ended.Add(id)
		}
	}
	return ended
}

// Stats returns the counters so far.
func (m *Machine) Stats() Stats { return m.stats }
