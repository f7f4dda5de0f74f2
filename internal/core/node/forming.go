// Forming: how many members of a remembered cluster may be missing when the others form a new one (JOIN-1).

package node

import "github.com/kith-io/kith/membership"

// forming is the configuration of the membership machine, with what the resolver bears.
func (c Config) forming() membership.Config {
	m := c.Membership
	if m.MayMiss == nil {
		m.MayMiss = c.MayMiss
	}
	if m.StopsAfter == nil {
		m.StopsAfter = c.Takeover
	}
	m.RecordRole = c.RecordRole()
	if c.Tenure.On() {
		m.Electorate = membership.Electorate{Voters: c.Tenure.Voters, Role: c.Tenure.Role}
		m.WeaklyUpAfter = -1 // a member that came Up without convergence must not be an owner
	}
	return m
}

// MayMiss returns how many of so many remembered members may be missing when the others are all in no cluster and form
// a new one, because so few cannot live on alone.
//
// Under static-quorum these are fewer than the quorum, and fewer than half, so that of two that would form one each
// only one can. Under keep-majority a member may have died before it knew of the last decision: a majority of those
// that it remembers had then gone on, or half of them with the lowest address, and a majority of these, or half, may do
// so without it. So fewer than a quarter may be missing. Under every other strategy, and without a resolver, one alone
// may live on.
//
// Under these two strategies, too, fewer may live on when the lost members were indirectly connected, for they counted
// as reachable. This does not bear that; the others remember which members live on (membership.Record.After).
//
// With tenures the seats decide, whatever the strategy says of members: a quorum of them lives on, each held by another
// member, however few members that is.
//
// With sessions the larger side of all members ends the sessions of the others, whatever the strategy says of them, so
// a majority of them may live on as under keep-majority. Where a role decides those with it may live on, too, and a
// record does not tell them from the others: nobody may be missing.
func (c Config) MayMiss(members int) int {
	most := 0
	switch c.Resolver.Strategy {
	case ResolverKeepMajority:
		most = (members - 1) / 4
	case ResolverStaticQuorum:
		most = min(c.Resolver.QuorumSize-1, (members-1)/2)
	}
	if c.Session.On() {
		if most = min(most, (members-1)/4); c.Resolver.Role != "" {
			most = 0
		}
	}
	if c.Tenure.On() {
		most = min(most, c.Tenure.Quorum()-1)
	}
	return max(0, most)
}

// RecordRole returns the role of the members that can carry a cluster on: that of the resolver, where only these
// decide, and with tenures that of the members that may hold a seat. With sessions all can: members without the role
// that end the session of the last one with it live on, and let others in (storm 13100002475).
func (c Config) RecordRole() string {
	if c.Tenure.On() {
		return c.Tenure.Role
	}
	if c.Session.On() {
		return ""
	}
	if s := c.Resolver.Strategy; s == ResolverKeepMajority || s == ResolverStaticQuorum {
		return c.Resolver.Role
	}
	return ""
}
