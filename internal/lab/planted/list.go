// The list of planted bugs.

package main

import "slices"

// bugs is the list that `make planted` repeats: for each rule one mistake that a person could make in good faith. What
// is planted is one short line, so that few changes of the source have to touch this list.
var bugs = slices.Concat(nodeBugs, moveBugs, lapseBugs, lockBugs)

// nodeBugs break what the checkers watch over.
var nodeBugs = []bug{
	// Who is a member.
	{
		Name: "up-number-lowered-by-merge", Rules: "up-number", Seeds: 60,
		In:  "internal/core/members.mergeMembers",
		Old: "a.UpNumber = max(a.UpNumber, b.UpNumber)", New: "a.UpNumber = b.UpNumber",
	},
	{
		Name: "status-goes-back", Rules: "status-back", Seeds: 60,
		In:  "internal/core/members.mergeMembers",
		Old: "if order < 0 || order == 0 && compareVerdicts(a.Cause, a.By, b.Cause, b.By) < 0 {",
		New: "if order > 0 || order == 0 && compareVerdicts(a.Cause, a.By, b.Cause, b.By) < 0 {",
	},
	{
		Name: "two-who-downed-it-named-by-chance", Rules: "laws",
		Package: "./internal/core/members", Run: "TestMergeLaws|TestVerdict",
		In: "internal/core/members.mergeMembers", Without: "order == 0 && compareVerdicts(a.Cause, a.By, b.Cause, b.By) < 0",
	},
	{
		Name: "tombstone-ignored-by-merge", Rules: "removed-returns", Seeds: 60,
		In:  "internal/core/members.bury",
		Old: "dead := t < len(tombs) && tombs[t].ID == members[i].ID",
		New: "dead := t < len(tombs) && tombs[t].ID == members[i].ID && members[i].Status == cluster.Down",
	},
	{
		Name: "converged-beside-the-unreachable", Rules: "convergence agreement", Seeds: 60,
		In:  "internal/core/members.Converged",
		Old: "st := s.Status(id); id != self && st != cluster.Down",
		New: "st := s.Status(id); id != self && st == cluster.Leaving && st != cluster.Down",
	},
	{
		Name: "reachable-again-not-told", Rules: "events replay", Seeds: 60,
		In:  "membership.diff",
		Old: "events = reachEvents(events, ReachableMember, old.Unreachable, next.Unreachable, next)",
		New: "",
	},
	{
		Name: "end-drops-the-highest-birth", Rules: "birth",
		Package: "./membership", Run: "TestEveryEndKeepsTheHighestBirth",
		In: "membership.Record.After", Old: "next.Highest = max(next.Highest, r.Highest)", New: "",
	},
	{
		Name: "pledged-to-two-in-some-state", Rules: "twins", Package: "./membership", Run: "TestFormingProof",
		In: "membership.forming.onFormAsk", Without: "(f.pledgedTo.IsZero() || f.pledgedTo == from)",
	},
	{
		Name: "a-joiner-is-of-another-cluster", Rules: "calm", Seeds: 60,
		In: "internal/core/hello.Acceptor.Judge", Without: "h.ClusterID != 0",
	},
	{
		Name: "control-message-taken-out-of-order", Rules: "courier", Seeds: 60,
		In: "internal/core/courier.Machine.onSegment", Old: "case p.Seq == l.got+1:", New: "case p.Seq > l.got:",
	},
	{
		Name: "suspended-node-says-it-is-ready", Rules: "health", Seeds: 60,
		In:  "internal/core/node.Node.stands",
		Old: "case n.Suspended():", New: "case n.Suspended() && n.suspension.resolver:",
	},

	// Who lives when the cluster is cut.
	{
		Name: "quorum-of-all", Rules: "obliged", Seeds: 60,
		In: "sbr.survey.staticQuorum", Old: "case r >= quorum:", New: "case r >= quorum && u == 0:",
	},
	{
		Name: "exiting-counted-nowhere", Rules: "two-survivors",
		Package: "./internal/sim/proof", Run: "TestResolverProof$",
		In:  "sbr.survey.keepMajority",
		Old: "u := v.count(onlyUnreachable | v.joiners() | elsewhere)",
		New: "u := v.count(onlyUnreachable | v.joiners() | withDown)",
	},
	{
		Name: "nobody-carries-it-out", Rules: "progress core", Seeds: 60,
		In: "sbr.Machine.act", Old: "if !carryOut {", New: "if !carryOut || d.Lives && d.Lost != nil {",
	},

	// Who owns a shard.
	{
		Name: "takeover-time-skipped", Rules: "takeover", Seeds: 60,
		In: "shard.memory.age", Without: "now >= l.until",
	},
	{
		Name: "coordinator-does-not-wait-for-reports", Rules: "all-reports reports two-coordinators", Seeds: 60,
		In:  "shard.coordinator.collected",
		Old: "range c.unaccounted", New: "range 0",
	},
	{
		Name: "promise-not-raised-by-a-report", Rules: "promises", Seeds: 2, // each shows it; others take minutes
		In:  "shard.Machine.raise",
		Old: "if term > t.promise.term {", New: "if term > t.promise.term && floor == 0 {",
	},
	{
		Name: "fence-given-twice", Rules: "fence-order fence-shared", Seeds: 60,
		In: "shard.moves.give", Old: "c.t.epoch++", New: "",
	},
	{
		Name: "second-owner-for-a-busy-shard", Rules: "two-owners allocation wait-for-stop", Seeds: 60,
		In:  "shard.coordinator.serve",
		Old: "if c.records.Peek(s).phase != free {",
		New: "if p := c.records.Peek(s).phase; p != free && p != halting {",
	},
	{
		Name: "home-told-before-its-owner-confirmed", Rules: "started-first", Seeds: 3,
		In: "shard.moves.give", Old: "r.enter(c, s, starting)", New: "r.enter(c, s, starting); c.confirm(s)",
	},
	{
		Name: "given-up-shard-starts-beside-its-handler", Rules: "hosted-twice",
		Package: "./shard", Run: "TestGivenUpShardEndsBeforeItLivesAgain",
		In: "shard.Machine.onHost", Old: "case s.host == stopping, s.ending:", New: "case s.host == stopping:",
	},
	{
		Name: "a-sleeper-confirms-another", Rules: "sleepers-confirm",
		Package: "./shard", Run: "TestAnswersOfTheSuspended",
		In: "shard.Machine.knows", Without: "m.confirm.held",
	},
	{
		Name: "suspended-node-starts-a-shard", Rules: "suspended-start-nothing",
		Package: "./shard", Run: "TestNothingStartsWhileSuspended",
		In: "shard.Machine.onHost", Without: "m.confirm.held",
	},
	{
		Name: "data-plane-does-not-look-at-the-clock", Rules: "suspended-before late-handling late-owner",
		Seeds: 60,
		In:    "internal/core/plane.Gate.Held", Without: "now > until",
	},
	{
		Name: "fence-not-checked-at-the-receiver", Rules: "delivery-fence",
		Package: "./internal/runtime/driver", Run: "TestStaleFenceIsRefused",
		In: "internal/core/plane.Accept", Old: "if term != e.Term || epoch != e.Epoch {", New: "if false {",
	},
	{
		Name: "wrong-home-goes-on", Rules: "homes", Seeds: 60,
		In:  "internal/core/plane.WrongHome",
		Old: "return why == route.NotOwner || why == route.NotRegistered || why == route.ShardStopping",
		New: "return why == route.NotRegistered",
	},
	{
		Name: "unready-counts-as-eligible", Rules: "readiness", Seeds: 20,
		In: "shard/strategy.Region.Why", Old: "case r.NotReady:", New: "case r.NotReady && r.Draining:",
	},
	{
		Name: "balance-goes-on-though-paused", Rules: "paused", Seeds: 60,
		In: "shard.placing.hold", Old: "h |= strategy.Paused", New: "h |= 0",
	},
	{
		Name: "eager-home-is-not-found-again", Rules: "singleton",
		Package: "./shard", Run: "TestEagerTypeFindsHomes",
		In:  "shard.Machine.forget",
		Old: "if t.region.eager.begun && !closing(m) {",
		New: "if t.region.eager.begun && e.host != notHosted {",
	},
	{
		Name: "move-that-came-back-is-done", Rules: "moved", Package: "./shard", Run: "TestWhatIsNotTakenStays",
		In: "shard.moves.confirmed", Old: "if home == h.from {", New: "if home == h.to && home == h.from {",
	},
	{
		Name: "round-keeps-its-node-awake", Rules: "livelock",
		Package: "./shard", Run: "TestRoundThatOutlastsItsInterval",
		In:  "shard.moves.balance",
		Old: "rs.at != 0 && m.now < rs.at {", New: "rs.at != 0 && m.now < rs.at || len(rs.plan) > 0 {",
	},

	// What becomes of a message.
	{
		Name: "withdrawn-is-sent-as-well", Rules: "duplicate", Seeds: 30,
		In: "internal/core/flow.Link.Withdraw", Old: "n < l.q.Len()", New: "n < 0",
	},
	{
		Name: "what-waited-is-dropped", Rules: "accounts", Seeds: 40, Accounts: true,
		In: "internal/core/flow.Slot.PutFirst", Old: "old != nil && old.Len() > 0", New: "old != nil && old.Len() < 0",
	},
	{
		Name: "limit-of-a-refused-ask-misread", Rules: "refusals", Seeds: 60,
		In: "internal/core/plane.ParseLimit", Old: "limit = limit*10 + int(c-'0')", New: "limit = limit*10 + int(c)",
	},
	{
		Name: "refused-ask-is-reported", Rules: "fate", Seeds: 60,
		In:  "internal/core/plane.NotifyTargetOf",
		Old: "case flags&wire.FlagAsk != 0:",
		New: "case flags&wire.FlagAsk != 0 && flags&wire.FlagParked != 0:",
	},
	{
		Name: "ask-over-before-its-time", Rules: "asks", Seeds: 60,
		In:  "internal/core/plane.WheelTicks",
		Old: "return int64((d-1)/WheelTick) + 2", New: "return int64(d / WheelTick)",
	},
	{
		Name: "ask-expires-before-its-time", Rules: "limits", Seeds: 60,
		In:  "internal/core/plane.LimitOf",
		Old: "time.Duration(due)*WheelTick", New: "time.Duration(due)*WheelTick-max(d, 0)/4",
	},
	{
		Name: "ask-that-was-sent-says-that-it-was-not", Rules: "executed", Seeds: 60,
		In:  "internal/core/plane.Unanswered",
		Old: "if went {", New: "if went && false {",
	},
	{
		Name: "a-backlog-without-bound", Rules: "bounds", Seeds: 60,
		In: "internal/core/plane.Gate.AtGate", Old: "case size > most-kept:", New: "case size > most:",
	},
	{
		Name: "room-of-a-broken-transfer-is-not-given-back", Rules: "bulk", Seeds: 60,
		In: "internal/core/flow.BulkReceiver.remove", Old: "case LargeMoving, LargeWhole:", New: "case LargeWhole:",
	},
	{
		Name: "has-room-is-never-said", Rules: "liveness pressure", Seeds: 10,
		In: "entity.relieve", Old: "to.Room(t, s.id, hash)", New: "_, _, _ = to, t, hash",
	},
	{
		Name: "headers-of-a-message-stay-for-the-next", Rules: "headers",
		Package: "./entity", Run: "TestHeadersGoOnByTheHandlersWord",
		In: "entity.Context.open", Old: "c.limit, c.headers, c.sends = 0, nil, nil", New: "c.limit, c.sends = 0, nil",
	},

	// What runs in an entity.
	{
		Name: "run-goes-on-behind-a-panic", Rules: "handler",
		Package: "./entity", Run: "TestRestartStopDropsWhatWaits",
		In: "entity.Entity.work", Without: "!c.crashed",
	},
	{
		Name: "daemon-of-a-stopping-shard", Rules: "context",
		Package: "./internal/core/lifetime", Run: "TestLifetimeLaws",
		In: "internal/core/lifetime.Shard.Serving", Old: "if s.stopping && !s.lost {", New: "if s.stopping && s.lost {",
	},
	{
		Name: "daemon-begins-though-it-stops", Rules: "daemon", Package: "./entity", Run: "TestDaemonStops",
		In:  "entity.begin",
		Old: "case c.closing && (st == nil ||", New: "case c.closing && u.keep.Run == nil && (st == nil ||",
	},
	{
		Name: "late-look-recalls-nobody", Rules: "remembered", Package: "./entity", Run: "TestLateRecall",
		In: "entity.Shard.heal", Drop: "recallAgain",
	},
	{
		Name: "timers-count-from-the-slewed-clock", Rules: "timers", Seeds: 5,
		In: "entity.Context.SetTimer", Old: "c.s.runtime.Now()", New: "c.s.runtime.Slewed()",
	},
	{
		Name: "lease-counts-without-an-answer", Rules: "lease", Seeds: 20,
		In:  "internal/core/leases.Holder.expire",
		Old: "if !h.held || h.now < h.valid {", New: "if !h.held || h.call.ID != 0 || h.now < h.valid {",
	},
}
