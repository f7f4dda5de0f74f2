// Proof: a process that starts again at its address says that the one before it is dead, by the lock that it got
// (SHD-13, JOIN-1). And a member that has ended the session lease of another says that this one handles nothing.
//
// A claim is an incarnation, always of the joiner's own address, so nobody can speak of another one's process. It
// travels among the settings of a join, where what only one side knows is not compared: members of earlier builds pass
// it on and are not bothered by it. A member believes it of a joiner that has repeated its challenge, so one that
// listens at that address now, and writes CauseProvenDead into the state.

package membership

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
)

// claimKey is where a claim stands among the settings of a join. It never changes.
const claimKey = "kith.proven-dead"

// withClaim returns the settings with a claim in its place; where there is no room for it, without.
func withClaim(list []Setting, dead uint64) []Setting {
	if dead == 0 || len(list) >= MaxSettings {
		return list
	}
	claim := Setting{claimKey, strconv.FormatUint(dead, 16)}
	return sortSettings(append(slices.Clone(list), claim)) // a user's setting of that key, which comes first, stays
}

// claimOf takes a claim out of the settings of a join; zero when there is none, or none that can be read.
func claimOf(list []Setting) (rest []Setting, dead uint64) {
	for i := range list {
		if list[i].Key == claimKey {
			dead, _ = strconv.ParseUint(list[i].Value, 16, 64)
			return append(list[:i], list[i+1:]...), dead
		}
	}
	return list, 0
}

// believes reports whether the claim of a joiner is news here: of another incarnation at its address, which was a
// member and is not known to be dead.
func (a *admission) believes(j *joinBody) bool {
	of := peer.ID{Addr: j.id.Addr, Inc: j.dead}
	return j.dead != 0 && of != j.id && !a.cfg.NoLockProof && a.st.Known(of) && !a.st.ProvenDead(of)
}

// prove carries out a ProveCommand.
func (m *Machine) prove(ids []peer.ID) error {
	if m.phase != member {
		return ErrNotMember
	}
	d := m.st.Draft()
	var told []peer.ID
	for _, id := range ids {
		if id != m.self && m.st.Known(id) && !m.st.ProvenDead(id) {
			d.ProveDead(id, m.self)
			told = append(told, id)
		}
	}
	if len(told) == 0 {
		return nil
	}
	m.install(d.Commit(m.self), true)
	for _, id := range told {
		if m.st.Has(id) { // it may live, and is to hear of its end
			m.sendGossip(id, nil)
		}
	}
	return nil
}

// refound carries out a RefoundCommand.
func (m *Machine) refound() error {
	lost, unproven := SeatsLost(m, nil)
	switch {
	case m.phase != member || lost:
		return m.prove(unproven)
	case m.cfg.Electorate.Voters == 0:
		return fmt.Errorf("%w: nodes have no tenures", ErrNoRefound)
	}
	held, silent := 0, peer.Set{}
	for _, h := range m.st.Seats.Holders {
		if st := m.st.Status(h); st == Down || st == Removed {
			continue
		}
		if held++; len(m.st.Accusers(h)) > 0 {
			silent.Add(h)
		}
	}
	why := fmt.Sprintf("members that are not Down hold %d of %d seats", held, m.cfg.Electorate.Voters)
	if len(silent) == 0 {
		return fmt.Errorf("%w: %s", ErrNoRefound, why)
	}
	return fmt.Errorf("%w: %s, and %v of them do not answer: down those that are dead before", ErrNoRefound, why, silent)
}

// noteDeaths hands on members that are proven dead in the next state and were not in the present one.
func (c *core) noteDeaths(next *members.State) {
	fresh := func(id peer.ID) bool { return c.st == nil || !c.st.ProvenDead(id) }
	if c.st == nil || !sameSlice(c.st.Members, next.Members) {
		for i := range next.Members {
			if m := &next.Members[i]; m.Cause == CauseProvenDead && fresh(m.ID) {
				c.died = append(c.died, m.ID)
			}
		}
	}
	if c.st == nil || !sameSlice(c.st.Tombs, next.Tombs) {
		for i := range next.Tombs {
			if t := &next.Tombs[i]; t.Cause == CauseProvenDead && fresh(t.ID) {
				c.died = append(c.died, t.ID)
			}
		}
	}
}
