// The list of planted bugs.

package main

import "slices"

// bugs is the list that `make planted` repeats. Each entry is one mistake that a person could make in good faith.
var bugs = slices.Concat([]bug{
	{
		Name: "up-number-reused", Seeds: 60,
		File: "internal/members/rules.go",
		Old:  "\t\t\ts.HighestUp += skip + 1\n\t\t\tskip = 0\n\t\t\tm.Status, m.UpNumber = cluster.Up, s.HighestUp",
		New: "\t\t\ts.HighestUp = 0\n\t\t\tfor _, o := range s.Members {\n" +
			"\t\t\t\ts.HighestUp = max(s.HighestUp, o.UpNumber)\n\t\t\t}\n" +
			"\t\t\ts.HighestUp++\n\t\t\tm.Status, m.UpNumber = cluster.Up, s.HighestUp",
	},
	{
		Name: "seen-set-not-reset-by-merge", Seeds: 60,
		File: "internal/members/merge.go",
		Old:  "\ts.Reset(n)\n\treturn s\n",
		New:  "\ts.Reset(n)\n\tfor i := range n {\n\t\ts.Add(i)\n\t}\n\treturn s\n",
	},
	{
		Name: "seen-set-not-reset-by-change", Seeds: 60,
		File: "internal/members/state.go",
		Old:  "\ts.Seen = gossip.NewSeen(len(s.Members))\n\ts.Seen.Add(s.Index(by))\n",
		New:  "\ts.Seen = gossip.NewSeen(len(s.Members))\n\tfor i := range s.Members {\n\t\ts.Seen.Add(i)\n\t}\n",
	},
	{
		Name: "tombstone-ignored-by-merge", Seeds: 60,
		File: "internal/members/merge.go",
		Old:  "dead := t < len(tombs) && tombs[t].ID == members[i].ID\n",
		New:  "dead := t < len(tombs) && tombs[t].ID == members[i].ID && members[i].Status == cluster.Down\n",
	},
	{
		Name: "no-tombstone-for-the-removed", Seeds: 60,
		File: "internal/members/state.go",
		Old:  "\ts.Tombs = slices.Insert(slices.Clone(s.Tombs), at, t)\n",
		New:  "\tif t.Last == cluster.Removed {\n\t\ts.Tombs = slices.Insert(slices.Clone(s.Tombs), at, t)\n\t}\n",
	},
	{
		Name: "status-goes-back", Seeds: 60,
		File: "internal/members/merge.go",
		Old:  "\tif order < 0 || order == 0 && compareVerdicts(a.Cause, a.By, b.Cause, b.By) < 0 {\n\t\ta.Status",
		New:  "\tif order > 0 || order == 0 && compareVerdicts(a.Cause, a.By, b.Cause, b.By) < 0 {\n\t\ta.Status",
	},
	{
		Name: "converged-beside-the-unreachable", Seeds: 60,
		File: "internal/members/convergence.go",
		Old:  "st := s.Status(id); id != self && st != cluster.Down",
		New:  "st := s.Status(id); id != self && st == cluster.Leaving && st != cluster.Down",
	},
	{
		Name: "coordinator-does-not-wait-for-reports", Seeds: 60,
		File: "shard/collect.go",
		Old:  "\tfor range c.unaccounted {\n\t\treturn false\n\t}\n\treturn true\n",
		New:  "\treturn true\n",
	},
	{
		Name: "takeover-time-skipped", Seeds: 60,
		File: "shard/memory.go",
		Old:  "\t\told := l.removed && now >= l.until\n",
		New:  "\t\told := l.removed\n",
	},
	{
		Name: "farewell-tells-nothing", Package: "./shard", Run: "Farewell|FreshCluster",
		File: "shard/drain.go",
		Old:  "Birth: m.view.Birth, Past: m.tell(id, maxTold)})\n",
		New:  "Birth: m.view.Birth})\n",
	},
	{
		// A story of three members that join, own and fall within a takeover time: its own chaos has to find it.
		Name: "blind-leaver-believed", Package: "./shard", Run: "TestChaosOfEarlyLeavers",
		File: "shard/memory.go",
		Old:  "if !m.past.whole(m.now) || !speaks ||",
		New:  "if !speaks ||",
	},
	{
		Name: "told-losses-forgotten", Package: "./shard", Run: "TestChaosOfEarlyLeavers",
		File: "shard/memory.go",
		Old:  "in || known || l.Settled || m.now >= since+takeover {\n",
		New:  "in || !known || l.Settled || m.now >= since+takeover {\n",
	},
	{
		Name: "lost-owner-not-remembered", Seeds: 60,
		File: "shard/coordinator.go",
		Old:  "(!c.m.live(p.id) && !c.m.owes(p.id))",
		New:  "!c.m.live(p.id)",
	},
	{
		// Behind it stands the rule that orders need the exact promise, so no storm shows it: its own test has to.
		Name: "lower-term-accepted", Package: "./shard", Run: "TestLowerTermIsRefused",
		File: "shard/deliver.go",
		Old: "\tcase h.Term < t.promise.term:\n\t\tm.refuse(t.id, h.Term, from, 0, route.Fence{})\n" +
			"\t\tm.post(from, m.higher(t))\n\t\treturn false\n",
		New: "\tcase h.Term < t.promise.term:\n\t\tm.refuse(t.id, h.Term, from, 0, route.Fence{})\n\t\treturn true\n",
	},
	{
		Name: "promise-not-raised-by-a-report", Seeds: 60,
		File: "shard/deliver.go",
		Old:  "\tif term > t.promise.term {\n\t\tt.promise = promise{",
		New:  "\tif term > t.promise.term && floor == 0 {\n\t\tt.promise = promise{",
	},
	{
		Name: "fence-given-twice", Seeds: 60,
		File: "shard/collect.go",
		Old:  "\tc.t.epoch++\n\tf := route.MakeFence",
		New:  "\tf := route.MakeFence",
	},
	{
		Name: "second-owner-for-a-busy-shard", Seeds: 60,
		File: "shard/collect.go",
		Old:  "\t\tif c.records[s].phase != free {\n",
		New:  "\t\tif c.records[s].phase != free && c.records[s].phase != halting {\n",
	},
	{
		Name: "home-told-before-its-owner-confirmed", Seeds: 60,
		File: "shard/collect.go",
		Old:  "\tc.records[s] = record{home: p, fence: f, phase: starting}\n",
		New:  "\tc.records[s] = record{home: p, fence: f, phase: starting}\n\tc.confirm(s)\n",
	},
	{
		// A home that is forgotten while parked messages drain to it has become rare in storms.
		Name: "parked-message-lost", Package: "./internal/flow", Run: "TestSlot",
		File: "internal/flow/slot.go",
		Old:  "\ts.local, s.home, s.fence = false, peer.ID{}, route.Fence{}\n\ts.set(Unknown)\n",
		New:  "\ts.local, s.home, s.fence, s.queue = false, peer.ID{}, route.Fence{}, nil\n\ts.set(Unknown)\n",
	},
	{
		Name: "later-message-overtakes-the-parked", Seeds: 60,
		File: "internal/flow/slot.go",
		Old:  "\tif s.state != Draining || s.queue != nil {\n\t\treturn false\n\t}\n\tif s.local {",
		New:  "\tif s.state != Draining {\n\t\treturn false\n\t}\n\tif s.local {",
	},
	{
		Name: "credit-not-returned", Seeds: 60,
		File: "internal/flow/meter.go",
		Old:  "\tdue = m.total != m.told\n",
		New:  "\tdue = m.total-m.told >= m.quarter\n",
	},
	{
		// Credit ends with the connection that it is for but in storms of the old way.
		Name:    "credit-of-an-old-connection-counted",
		Package: "./internal/flow", Run: "TestLinkCreditThatNoHonestReceiverSends",
		File: "internal/flow/link.go",
		Old:  "\tcase generation < l.generation:\n\t\treturn false, nil\n",
		New:  "",
	},
	{
		Name: "unsent-lost-on-reconnect", Seeds: 60,
		File: "internal/flow/link.go",
		Old:  "\tlost = l.Broken()\n\tl.sent, l.consumed = 0, 0\n",
		New:  "\tlost = l.Broken()\n\tl.rest = nil\n\tl.sent, l.consumed = 0, 0\n",
	},
	{
		// A shard never comes back to a node that gave it up while nothing is moved, so no storm shows it yet.
		Name: "fence-not-checked-at-the-receiver", Package: "./internal/driver", Run: "TestStaleFenceIsRefused",
		File: "internal/plane/accept.go",
		Old:  "if term != e.Term || epoch != e.Epoch {",
		New:  "if false {",
	},
	{
		Name: "incarnation-readmitted-after-removal", Package: "./membership", Run: "TestRemovedIncarnationIsTold",
		File: "membership/admit.go",
		Old:  "\tif t, dead := a.st.Tomb(j.id); dead {\n",
		New:  "\tif t, dead := a.st.Tomb(j.id); dead && t.Last == cluster.Removed {\n",
	},
	{
		Name: "mailbox-forgotten-after-a-run", Seeds: 60,
		File: "entity/run.go",
		Old:  "\tcase a.now != nil || a.head != nil:\n\t\treturn true\n",
		New:  "\tcase a.now != nil:\n\t\treturn true\n",
	},
	{
		Name: "stopped-before-its-mailbox-is-empty", Seeds: 60,
		File: "entity/run.go",
		Old:  "\tcase a.now != nil || a.head != nil:\n\t\treturn true\n",
		New: "\tcase s.phase == stopping:\n\t\ts.remove(e)\n\t\ts.pace()\n\t\treturn false\n" +
			"\tcase a.now != nil || a.head != nil:\n\t\treturn true\n",
	},
	{
		Name: "gossip-is-taken-for-an-answer", Package: "./fd", Run: "TestSignsOfLife",
		File: "fd/monitor.go",
		Old:  "\t\tw.probes.sign(arrived)\n",
		New:  "\t\tw.probes.sign(arrived)\n\t\tw.answers.sign(arrived)\n",
	},
	{
		Name: "observer-that-stood-still-accuses", Package: "./sim", Run: "TestFrozenObserversAccuseNobody",
		File: "membership/heartbeat.go",
		Old:  "\t\tw.monitor.Forgive(now, late)\n",
		New:  "",
	},
	{
		Name: "last-probe-taken-for-a-probe", Package: "./sim", Run: "TestMovingRingAccusesNobody",
		File: "membership/heartbeat.go",
		Old:  "\tcase h.Seq == lastProbe:\n",
		New:  "\tcase h.Seq == lastProbe && h.Sent == 0:\n",
	},
	{
		Name: "lost-links-need-no-witness", Package: "./fd", Run: "TestLostLink",
		File: "fd/verdict.go",
		Old:  "held && !e.judged && m.alone(w.id, e.at)",
		New:  "held && !e.judged",
	},
	{
		Name: "quarantine-cleared-by-a-heartbeat", Package: "./membership", Run: "TestScenario24Quarantine",
		File: "internal/members/reach.go",
		Old:  "if t.Accuses(observer, subject) == silent || t.Quarantines(observer, subject) {",
		New:  "if t.Accuses(observer, subject) == silent {",
	},
	{
		Name: "stalled-connection-is-silence", Package: "./sim", Run: "TestStalledConnectionAccusesNobody",
		File: "fd/monitor.go",
		Old:  "w.answers.silence(now) >= m.settings.Interval*3/2",
		New:  "w.answers.silence(now) >= m.settings.Interval*6",
	},
	{
		Name: "sleep-not-noticed", Package: "./internal/node", Run: "TestSleepSuspendsBeforeAnythingElse",
		File: "internal/node/suspend.go",
		Old:  "!s.alone && gap > s.limit {",
		New:  "!s.alone && gap > 4*s.limit {",
	},
	{
		Name: "fresh-step-ends-the-suspension", Package: "./shard", Run: "TestSuspendedOwnerIsConfirmed",
		File: "shard/confirm.go",
		Old:  "\tif !c.firm {\n",
		New:  "\tif !c.firm && len(c.heard) > 0 {\n",
	},
	{
		Name: "earlier-confirmation-counts", Package: "./shard", Run: "TestEarlierAnswersDoNotCount",
		File: "shard/confirm.go",
		Old:  "|| a.Nonce != c.nonce {",
		New:  "|| a.Nonce == 0 {",
	},
	{
		Name: "a-sleeper-confirms-another", Package: "./shard", Run: "TestAnswersOfTheSuspended",
		File: "shard/confirm.go",
		Old:  "\tif m.confirm.held || !m.inOffice() ||",
		New:  "\tif !m.inOffice() ||",
	},
	{
		Name: "resolver-does-not-suspend", Package: "./sim", Run: "TestScripts/minority_suspends_before_rehome",
		File: "internal/node/settle.go",
		Old:  "if s := n.resolver.Peek().Suspend; s != nil {",
		New:  "if s := n.resolver.Peek().Suspend; s != nil && !s.On {",
	},
	{
		Name: "takeover-time-does-not-follow-the-size", Package: "./sim", Run: "TestCutOffOwnersStopInTime",
		File: "shard/crowd.go",
		Old:  "\treturn m.cfg.TakeoverFor(max(m.past.crowd.members(), 1))\n",
		New:  "\treturn m.cfg.TakeoverFor(1)\n",
	},
	{
		Name: "data-plane-does-not-look-at-the-clock", Seeds: 60,
		File: "internal/plane/gate.go",
		Old:  "return g != 0 || age > limit }",
		New:  "return g != 0 }",
	},
}, membershipBugs, formingBugs, courierBugs, executionBugs, largeBugs, hostileBugs, chaosBugs, availableBugs, ownerBugs,
	planeBugs)
