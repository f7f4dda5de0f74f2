// Planted bugs of membership, gossip and the resolver: mistakes in what decides who is in and who goes.

package main

var membershipBugs = []bug{
	{
		Name: "downed-node-finds-its-losses-reachable", Package: "./sim", Run: "TestDownedNodeTakesNothingBack",
		In:  "membership.Machine.nextView",
		Old: "m.view != nil && m.phase == ended",
		New: "m.view != nil && m.phase == idle",
	},
	{
		Name: "shards-that-wait-are-not-told", Package: "./sim", Run: "TestScripts/coordinator_crash",
		In:   "shard.coordinator.review",
		Drop: "tellWaits",
	},
	{
		Name: "suspended-node-says-it-is-ready", Seeds: 60,
		In:  "internal/node.Node.stands",
		Old: "case n.suspension.on:",
		New: "case n.suspension.on && n.suspension.resolver:",
	},
	{
		Name: "a-seed-that-answered-is-still-refusing", Package: "./membership", Run: "TestWaitsForWhatAnOperatorMends",
		In:   "membership.Machine.Handle",
		Drop: "m.forming.heard",
	},
	{
		Name: "anybody-is-believed-that-this-node-was-removed", Package: "./membership", Run: "TestWhoIsBelieved",
		In:  "membership.beliefs.removedBy",
		Old: "case nobody:\n\t\tb.stats.Disbelieved++\n\t\treturn",
		New: "",
	},
	{
		Name: "on-a-tie-both-sides-live", Package: "./membership", Run: "TestForgottenMemberEnds",
		In:  "internal/members.State.Outlives",
		Old: "return mine > up || mine == up && s.LowestUp().Less(lowest)",
		New: "return mine >= up && !lowest.IsZero()",
	},
	{
		Name: "made-up-numbers-are-taken", Package: "./membership", Run: "TestLeapsAreRefused",
		In:  "membership.core.followable",
		Old: "if o == c.st.Version || c.st.Plausible(o) {",
		New: "if o == c.st.Version || o.Digest != 0 {",
	},
	{
		Name: "both-sides-end-by-refusals", Package: "./membership", Run: "TestOneSideEndsByRefusals",
		In:  "membership.beliefs.toldRemoved",
		Old: "if mine := b.st.UpCount(); !c.Counted || mine > c.Up || mine == c.Up &&",
		New: "if mine := b.st.UpCount(); mine > c.Up+10 && mine == c.Up &&",
	},
	{
		Name: "two-who-downed-it-named-by-chance", Package: "./internal/members", Run: "TestMergeLaws|TestVerdict",
		In:      "internal/members.mergeMembers",
		Without: "order == 0 && compareVerdicts(a.Cause, a.By, b.Cause, b.By) < 0",
	},
	{
		Name: "up-number-lowered-by-merge", Seeds: 60,
		In:  "internal/members.mergeMembers",
		Old: "a.UpNumber = max(a.UpNumber, b.UpNumber)",
		New: "a.UpNumber = b.UpNumber",
	},
	{
		Name: "reachable-again-not-told", Seeds: 60,
		In:  "membership.diff",
		Old: "events = reachEvents(events, ReachableMember, old.Unreachable, next.Unreachable, next)",
		New: "",
	},
	{
		Name: "never-up-consumes-no-number", Package: "./internal/members", Run: "TestLeaderActions",
		In:  "internal/members.Lead",
		Old: "if m.UpNumber == 0 {\n\t\t\td.consume(1)\n\t\t}",
		New: "",
	},
	{
		Name: "number-of-a-lost-leader-given-again", Package: "./internal/members", Run: "TestLeaderActions",
		In:  "internal/members.Lead",
		Old: "skip = d.unheard()",
		New: "skip = 0",
	},
	{
		Name: "unreachable-leads", Package: "./internal/members", Run: "TestScenario9Leader",
		In:      "cluster.Leader",
		Without: "m.ID != self && unreachable.Has(m.ID)",
	},
	{
		Name: "minimum-of-members-ignored", Package: "./sim", Run: "TestScripts/min_members",
		In:      "membership.leading.duties",
		Without: "l.cfg.minimums().met(l.st.Members)",
	},
	{
		Name: "promoted-during-full-shutdown", Package: "./membership", Run: "TestPreparingMeetsLateMembers",
		In:  "internal/members.State.promote",
		Old: "letIn = letIn && !stopping",
		New: "",
	},
	{
		Name: "numbers-given-before-joiners-have-seen", Package: "./membership", Run: "TestNumberKnownToItsJoinerAlone",
		In:      "internal/members.Lead",
		Without: "s.seenByJoiners(removed)",
	},
	{
		Name: "delta-applied-to-another-base", Package: "./membership", Run: "Delta",
		In:  "membership.exchange.onDelta",
		Old: "base := x.held(d.base)",
		New: "base := x.held(d.base)\n\t\tif base == nil {\n\t\t\tbase = x.st.Version\n\t\t}",
	},
	{
		Name: "many-downed-in-many-changes", Package: "./membership", Run: "TestDownAllIsOneChange",
		In:  "membership.Machine.downAll",
		Old: "told = append(told, id)",
		New: "told = append(told, id)\n\t\t\tm.install(d.Commit(m.self), true)\n\t\t\tm.settle()\n\t\t\td = " +
			"m.st.Draft()",
	},
	{
		Name: "weakly-up-counts-in-the-majority", Package: "./sbr", Run: "TestScenario17KeepMajority",
		In:  "sbr.counts",
		Old: "return s == membership.Up || s == membership.Leaving ||",
		New: "return s == membership.Up || s == membership.WeaklyUp || s == membership.Leaving ||",
	},
	{
		// Behind it stands the look at who came up just now, which decides ties as well, so no storm shows it.
		Name: "tie-rule-wrong-on-one-side", Package: "./sbr", Run: "TestScenario17KeepMajority",
		In:  "sbr.majority",
		Old: "case v.away(lowest):",
		New: "case v.away(lowest) && r > 3:",
	},
	{
		Name: "downed-taken-for-dead-everywhere", Package: "./sbr", Run: "TestDownedMayLiveElsewhere",
		In:  "sbr.survey.keepMajority",
		Old: "r, u := v.count(onlyReachable|withoutLeaving), v.count(onlyUnreachable|v.joiners()|withDown)",
		New: "r, u := v.count(onlyReachable|withoutLeaving), v.count(onlyUnreachable|v.joiners())",
	},
	{
		Name: "quorum-off-by-one", Package: "./sbr", Run: ".",
		In:  "sbr.survey.staticQuorum",
		Old: "case r >= quorum:",
		New: "case r >= quorum-1:",
	},
	{
		Name: "oldest-alone-on-neither-side", Package: "./sbr", Run: ".",
		In:  "sbr.survey.oldestSide",
		Old: "if !keepAlone && u == 1 && r >= 2 {",
		New: "if !keepAlone && u == 1 && r >= 1 {",
	},
	{
		Name: "loser-decides-again", Package: "./sbr", Run: "TestLosingSideSuspends",
		In:  "sbr.Machine.Tick",
		Old: "if m.lostAt >= 0 {\n\t\tm.goLost()\n\t\treturn\n\t}",
		New: "",
	},
	{
		Name: "overslept-decision-is-made-at-once", Package: "./sbr", Run: "TestOverslept",
		In:   "sbr.Machine.Tick",
		Drop: "m.overslept",
	},
	{
		Name: "sleep-forgotten-by-a-new-row", Package: "./sbr", Run: "TestSleptInTheOpen",
		In:  "sbr.Machine.decideAt",
		Old: "return max(quiet, rows, m.lookAt)",
		New: "return max(quiet, rows)",
	},
	{
		Name: "confirmed-before-the-sleep", Package: "./sim", Run: "TestScripts/asleep_and_cut_off",
		In:  "sbr.Machine.listen",
		Old: "m.contact = m.contact[:0]",
		New: "",
	},
	{
		Name: "seen-before-the-sleep", Package: "./internal/node", Run: "TestNapConfirmsAnew",
		In:  "internal/node.Node.napped",
		Old: "_ = n.members.Do(n.now, membership.ReconfirmCommand{})",
		New: "",
	},
	{
		Name: "losses-in-a-row-end-all", Package: "./sim", Run: "TestTwoCrashes",
		In:      "sbr.Machine.tooLong",
		Without: "m.heldAt < 0 && !m.unsure",
	},
	{
		Name: "unrest-decided-by-whoever-is-left", Package: "./sim", Run: "TestRandomLinks",
		In:  "sbr.Machine.see",
		Old: "m.flapped || weighty > 0, m.unsure || near",
		New: "m.flapped || weighty > 0, m.unsure && near",
	},
	{
		Name: "late-members-counted-on", Package: "./sim", Run: "TestScripts/second_cut_noticed_too_late",
		In:  "sbr.Machine.waits",
		Old: "case len(m.late) > 0 && !m.livesWithout(m.late):",
		New: "case len(m.late) > 0 && !m.livesWithout(nil):",
	},
	{
		Name: "contact-before-its-accusers-know", Package: "./sim", Run: "TestNoisyPauses",
		In:  "sbr.Machine.decideAt",
		Old: "rows = max(rows, given(m, m.contactAt, m.takeBack(), 2*settle))",
		New: "rows = max(rows, m.contactAt)",
	},
	{
		Name: "words-are-taken-back-in-haste", Package: "./sim", Run: "TestNoisyReturns",
		In:  "sbr.Machine.takeBack",
		Old: "m.stable*7/10",
		New: "m.stable*3/5",
	},
	{
		Name: "confirmed-without-the-time-there-is", Package: "./sbr", Run: "TestOneMoreWhoAccuses",
		In:  "sbr.given",
		Old: "min(change+most, m.first+limit-lookEvery)",
		New: "min(change+least, m.first+limit)",
	},
	{
		Name: "unrest-stops-who-would-decide", Package: "./sbr", Run: "TestGivenTime",
		In:  "sbr.given",
		Old: "min(change+most, m.first+limit-lookEvery)",
		New: "min(change+most, m.first+limit+time.Hour)",
	},
	{
		Name: "joiners-lead-themselves", Package: "./sbr", Run: "TestJoinersWithoutALeader",
		In:  "sbr.survey.joiners",
		Old: "return withJoining",
		New: "return plain",
	},
	{
		Name: "unheard-is-forgiven", Package: "./sim", Run: "TestNapsOfAnOwner",
		In:  "fd.line.forgive",
		Old: "l.shift, l.told = max(min",
		New: "l.last += pause\n\t\tl.shift, l.told = max(min",
	},
	{
		Name: "lease-believed-for-ever", Package: "./sbr", Run: "TestLeaseIsAcquiredAgain",
		In:  "sbr.Machine.decide",
		Old: "m.askLease(d)",
		New: "if m.lease.held {\n\t\t\tm.act(d, true)\n\t\t\treturn\n\t\t}\n\t\tm.askLease(d)",
	},
	{
		Name: "executor-may-sleep", Package: "./sbr", Run: "TestAnotherCarriesItOut",
		In:  "sbr.Config.Decide",
		Old: "if !s.Late.Has(v.Members[i].ID) {",
		New: "if s.Late.Has(v.Members[i].ID) || true {",
	},
	{
		Name: "patience-not-renewed", Package: "./sbr", Run: ".",
		In:  "sbr.Machine.see",
		Old: "if more || fewer || status {",
		New: "if _ = more; status {",
	},
	{
		Name: "successor-expects-its-predecessors-probes", Package: "./sim", Run: "TestScripts/mass_restart",
		In:  "membership.watch.onHeartbeat",
		Old: "case h.Seq&secondProbe != 0:",
		New: "case h.Seq&secondProbe != 0 && h.Sent == 0:",
	},
}
