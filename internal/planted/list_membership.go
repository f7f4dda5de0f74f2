// Planted bugs of membership, gossip and the resolver: mistakes in what decides who is in and who goes.

package main

var membershipBugs = []bug{
	{
		Name: "anybody-is-believed-that-this-node-was-removed", Package: "./membership", Run: "TestWhoIsBelieved",
		File: "membership/belief.go",
		Old:  "\tcase nobody:\n\t\tb.stats.Disbelieved++\n\t\treturn\n\tcase rival:\n\t\tnews :=",
		New:  "\tcase rival:\n\t\tnews :=",
	},
	{
		Name: "on-a-tie-both-sides-live", Package: "./membership", Run: "TestForgottenMemberEnds",
		File: "internal/members/sides.go",
		Old:  "\treturn mine > up || mine == up && s.LowestUp().Less(lowest)\n",
		New:  "\treturn mine >= up && !lowest.IsZero()\n",
	},
	{
		Name: "made-up-numbers-are-taken", Package: "./membership", Run: "TestLeapsAreRefused",
		File: "membership/gossiping.go",
		Old:  "\tif o == c.st.Version || c.st.Plausible(o) {\n",
		New:  "\tif o == c.st.Version || o.Digest != 0 {\n",
	},
	{
		Name: "both-sides-end-by-refusals", Package: "./membership", Run: "TestOneSideEndsByRefusals",
		File: "membership/belief.go",
		Old:  "\t\tif mine := b.st.UpCount(); !c.Counted || mine > c.Up || mine == c.Up &&\n",
		New:  "\t\tif mine := b.st.UpCount(); mine > c.Up+10 && mine == c.Up &&\n",
	},
	{
		Name: "two-who-downed-it-named-by-chance", Package: "./internal/members", Run: "TestMergeLaws|TestVerdict",
		File: "internal/members/merge.go",
		Old:  "\tif order < 0 || order == 0 && compareVerdicts(a.Cause, a.By, b.Cause, b.By) < 0 {\n\t\ta.Status",
		New:  "\tif order < 0 {\n\t\ta.Status",
	},
	{
		Name: "up-number-lowered-by-merge", Seeds: 60,
		File: "internal/members/merge.go",
		Old:  "\ta.UpNumber = max(a.UpNumber, b.UpNumber)\n",
		New:  "\ta.UpNumber = b.UpNumber\n",
	},
	{
		Name: "reachable-again-not-told", Seeds: 60,
		File: "membership/diff.go",
		Old:  "\tevents = reachEvents(events, ReachableMember, old.Unreachable, next.Unreachable, next)\n",
		New:  "",
	},
	{
		Name: "never-up-consumes-no-number", Package: "./internal/members", Run: "TestLeaderActions",
		File: "internal/members/rules.go",
		Old:  "\t\tif m.UpNumber == 0 {\n\t\t\td.consume(1)\n\t\t}\n",
		New:  "",
	},
	{
		Name: "number-of-a-lost-leader-given-again", Package: "./internal/members", Run: "TestLeaderActions",
		File: "internal/members/rules.go",
		Old:  "\t\tskip = d.unheard()\n",
		New:  "\t\tskip = 0\n",
	},
	{
		Name: "unreachable-leads", Package: "./internal/members", Run: "TestScenario9Leader",
		File: "cluster/leader.go",
		Old:  "if class >= bestClass || !m.HasRole(role) || m.ID != self && unreachable.Has(m.ID) {",
		New:  "if class >= bestClass || !m.HasRole(role) {",
	},
	{
		Name: "minimum-of-members-ignored", Package: "./sim", Run: "TestScripts/min_members",
		File: "membership/duties.go",
		Old:  "letIn := l.named() && l.cfg.minimums().met(l.st.Members)\n",
		New:  "letIn := l.named()\n",
	},
	{
		Name: "promoted-during-full-shutdown", Package: "./membership", Run: "TestPreparingMeetsLateMembers",
		File: "internal/members/rules.go",
		Old:  "\tletIn = letIn && !stopping\n",
		New:  "",
	},
	{
		Name: "numbers-given-before-joiners-have-seen", Package: "./membership", Run: "TestNumberKnownToItsJoinerAlone",
		File: "internal/members/rules.go",
		Old:  "d.promote(letIn && s.seenByJoiners(removed), skip)",
		New:  "d.promote(letIn, skip)",
	},
	{
		Name: "delta-applied-to-another-base", Package: "./membership", Run: "Delta",
		File: "membership/deltas.go",
		Old:  "\t\tbase := x.held(d.base)\n",
		New:  "\t\tbase := x.held(d.base)\n\t\tif base == nil {\n\t\t\tbase = x.st.Version\n\t\t}\n",
	},
	{
		Name: "many-downed-in-many-changes", Package: "./membership", Run: "TestDownAllIsOneChange",
		File: "membership/duties.go",
		Old:  "\t\t\td.SetDown(id, m.self, cause)\n\t\t\ttold = append(told, id)\n",
		New: "\t\t\td.SetDown(id, m.self, cause)\n\t\t\ttold = append(told, id)\n" +
			"\t\t\tm.install(d.Commit(m.self), true)\n\t\t\tm.settle()\n\t\t\td = m.st.Draft()\n",
	},
	{
		Name: "weakly-up-counts-in-the-majority", Package: "./sbr", Run: "TestScenario17KeepMajority",
		File: "sbr/survey.go",
		Old:  "\treturn s == membership.Up || s == membership.Leaving ||",
		New:  "\treturn s == membership.Up || s == membership.WeaklyUp || s == membership.Leaving ||",
	},
	{
		// Behind it stands the look at who came up just now, which decides ties as well, so no storm shows it.
		Name: "tie-rule-wrong-on-one-side", Package: "./sbr", Run: "TestScenario17KeepMajority",
		File: "sbr/decide.go",
		Old:  "\tcase v.away(lowest):\n\t\treturn verdict{outcome: DownReachable,",
		New:  "\tcase v.away(lowest) && r > 3:\n\t\treturn verdict{outcome: DownReachable,",
	},
	{
		Name: "downed-taken-for-dead-everywhere", Package: "./sbr", Run: "TestDownedMayLiveElsewhere",
		File: "sbr/decide.go",
		Old:  "\tr, u := v.count(onlyReachable|withoutLeaving), v.count(onlyUnreachable|v.joiners()|withDown)\n",
		New:  "\tr, u := v.count(onlyReachable|withoutLeaving), v.count(onlyUnreachable|v.joiners())\n",
	},
	{
		Name: "quorum-off-by-one", Package: "./sbr", Run: ".",
		File: "sbr/decide.go",
		Old:  "\tcase r >= quorum:\n",
		New:  "\tcase r >= quorum-1:\n",
	},
	{
		Name: "oldest-alone-on-neither-side", Package: "./sbr", Run: ".",
		File: "sbr/decide.go",
		Old:  "\tif !keepAlone && u == 1 && r >= 2 {\n",
		New:  "\tif !keepAlone && u == 1 && r >= 1 {\n",
	},
	{
		Name: "loser-decides-again", Package: "./sbr", Run: "TestLosingSideSuspends",
		File: "sbr/machine.go",
		Old:  "\tif m.lostAt >= 0 {\n\t\tm.goLost()\n\t\treturn\n\t}\n",
		New:  "",
	},
	{
		Name: "overslept-decision-is-made-at-once", Package: "./sbr", Run: "TestOverslept",
		File: "sbr/machine.go",
		Old:  "\tm.overslept()\n\tm.sure",
		New:  "\tm.sure",
	},
	{
		Name: "sleep-forgotten-by-a-new-row", Package: "./sbr", Run: "TestSleptInTheOpen",
		File: "sbr/patience.go",
		Old:  "\treturn max(quiet, rows, m.lookAt)\n",
		New:  "\treturn max(quiet, rows)\n",
	},
	{
		Name: "confirmed-before-the-sleep", Package: "./sim", Run: "TestScripts/asleep_and_cut_off",
		File: "sbr/patience.go",
		Old:  "\tm.contact = m.contact[:0]\n\tm.lookAt",
		New:  "\tm.lookAt",
	},
	{
		Name: "seen-before-the-sleep", Package: "./internal/node", Run: "TestNapConfirmsAnew",
		File: "internal/node/suspend.go",
		Old:  "\t_ = n.members.Do(n.now, membership.ReconfirmCommand{})\n",
		New:  "",
	},
	{
		Name: "losses-in-a-row-end-all", Package: "./sim", Run: "TestTwoCrashes",
		File: "sbr/patience.go",
		Old:  "\tif m.heldAt < 0 && !m.unsure || m.now < m.lookAt {\n",
		New:  "\tif m.now < m.lookAt {\n",
	},
	{
		Name: "unrest-decided-by-whoever-is-left", Package: "./sim", Run: "TestRandomLinks",
		File: "sbr/see.go",
		Old:  "m.flapped || weighty > 0, m.unsure || near\n",
		New:  "m.flapped || weighty > 0, m.unsure && near\n",
	},
	{
		Name: "late-members-counted-on", Package: "./sim", Run: "TestScripts/second_cut_noticed_too_late",
		File: "sbr/patience.go",
		Old:  "\tcase len(m.late) > 0 && !m.livesWithout(m.late):\n",
		New:  "\tcase len(m.late) > 0 && !m.livesWithout(nil):\n",
	},
	{
		Name: "contact-before-its-accusers-know", Package: "./sim", Run: "TestNoisyPauses",
		File: "sbr/patience.go",
		Old:  "\t\trows = max(rows, m.contactAt+m.takeBack())\n",
		New:  "\t\trows = max(rows, m.contactAt)\n",
	},
	{
		Name: "joiners-lead-themselves", Package: "./sbr", Run: "TestTransitionLaw",
		File: "sbr/survey.go",
		Old:  "\t\t\treturn withJoining\n",
		New:  "\t\t\treturn plain\n",
	},
	{
		Name: "unheard-is-forgiven", Package: "./sim", Run: "TestNapsOfAnOwner",
		File: "fd/line.go",
		Old:  "\tif l.heard() {\n\t\tl.shift, l.told = max(min",
		New:  "\tif l.heard() {\n\t\tl.last += pause\n\t\tl.shift, l.told = max(min",
	},
	{
		Name: "lease-believed-for-ever", Package: "./sbr", Run: "TestLeaseIsAcquiredAgain",
		File: "sbr/act.go",
		Old:  "\t\tm.askLease(d)\n",
		New:  "\t\tif m.lease.held {\n\t\t\tm.act(d, true)\n\t\t\treturn\n\t\t}\n\t\tm.askLease(d)\n",
	},
	{
		Name: "executor-may-sleep", Package: "./sbr", Run: "TestAnotherCarriesItOut",
		File: "sbr/decide.go",
		Old:  "\t\tif !s.Late.Has(v.Members[i].ID) {\n",
		New:  "\t\tif s.Late.Has(v.Members[i].ID) || true {\n",
	},
	{
		Name: "patience-not-renewed", Package: "./sbr", Run: ".",
		File: "sbr/see.go",
		Old:  "\tif more || fewer || status {\n",
		New:  "\tif _ = more; status {\n",
	},
	{
		Name: "successor-expects-its-predecessors-probes", Package: "./sim", Run: "TestScripts/mass_restart",
		File: "membership/heartbeat.go",
		Old:  "\tcase h.Seq&secondProbe != 0:\n",
		New:  "\tcase h.Seq&secondProbe != 0 && h.Sent == 0:\n",
	},
}
