// The list of planted bugs.

package main

import "slices"

// bugs is the list that `make planted` repeats. Each entry is one mistake that a person could make in good faith.
var bugs = slices.Concat([]bug{
	{
		Name: "up-number-reused", Seeds: 60,
		In:  "internal/members.State.promote",
		Old: "s.HighestUp += skip + 1\n\t\t\tskip = 0",
		New: "s.HighestUp = 0\n\t\t\tfor _, o := range s.Members {\n\t\t\t\ts.HighestUp = max(s.HighestUp, " +
			"o.UpNumber)\n\t\t\t}\n\t\t\ts.HighestUp++",
	},
	{
		Name: "seen-set-not-reset-by-merge", Seeds: 60,
		In:  "internal/members.work.takeSeen",
		Old: "return s",
		New: "for i := range n {\n\t\ts.Add(i)\n\t}\n\treturn s",
	},
	{
		Name: "seen-set-not-reset-by-change", Seeds: 60,
		In:  "internal/members.State.Commit",
		Old: "s.Seen.Add(s.Index(by))",
		New: "for i := range s.Members {\n\t\ts.Seen.Add(i)\n\t}",
	},
	{
		Name: "tombstone-ignored-by-merge", Seeds: 60,
		In:  "internal/members.bury",
		Old: "dead := t < len(tombs) && tombs[t].ID == members[i].ID",
		New: "dead := t < len(tombs) && tombs[t].ID == members[i].ID && members[i].Status == cluster.Down",
	},
	{
		Name: "no-tombstone-for-the-removed", Seeds: 60,
		In:  "internal/members.Version.Entomb",
		Old: "s.Tombs = slices.Insert(slices.Clone(s.Tombs), at, t)",
		New: "if t.Last == cluster.Removed {\n\t\ts.Tombs = slices.Insert(slices.Clone(s.Tombs), at, t)\n\t}",
	},
	{
		Name: "status-goes-back", Seeds: 60,
		In:  "internal/members.mergeMembers",
		Old: "if order < 0 || order == 0 && compareVerdicts(a.Cause, a.By, b.Cause, b.By) < 0 {",
		New: "if order > 0 || order == 0 && compareVerdicts(a.Cause, a.By, b.Cause, b.By) < 0 {",
	},
	{
		Name: "converged-beside-the-unreachable", Seeds: 60,
		In:  "internal/members.Converged",
		Old: "st := s.Status(id); id != self && st != cluster.Down",
		New: "st := s.Status(id); id != self && st == cluster.Leaving && st != cluster.Down",
	},
	{
		Name: "coordinator-does-not-wait-for-reports", Seeds: 60,
		In:  "shard.coordinator.collected",
		Old: "for range c.unaccounted {\n\t\treturn false\n\t}",
		New: "",
	},
	{
		Name: "takeover-time-skipped", Seeds: 60,
		In:      "shard.memory.age",
		Without: "now >= l.until",
	},
	{
		Name: "leave-notice-tells-nothing", Package: "./shard", Run: "LeaveNotice|FreshCluster",
		In:  "shard.Machine.sendLeaveNotice",
		Old: "Birth: m.view.Birth, Past: m.tell(id, maxTold)})",
		New: "Birth: m.view.Birth})",
	},
	{
		// A story of three members that join, own and fall within a takeover time: its own chaos has to find it.
		Name: "blind-leaver-believed", Package: "./shard", Run: "TestChaosOfEarlyLeavers",
		In:      "shard.Machine.tell",
		Without: "!m.past.whole(m.now)",
	},
	{
		Name: "told-losses-forgotten", Package: "./shard", Run: "TestChaosOfEarlyLeavers",
		In:  "shard.Machine.learn",
		Old: "in || known || l.Settled || m.now >= since+takeover {",
		New: "in || !known || l.Settled || m.now >= since+takeover {",
	},
	{
		Name: "lost-owner-not-remembered", Seeds: 60,
		In:  "shard.coordinator.review",
		Old: "(!c.m.live(p.id) && !c.m.owes(p.id))",
		New: "!c.m.live(p.id)",
	},
	{
		// Behind it stands the rule that orders need the exact promise, so no storm shows it: its own test has to.
		Name: "lower-term-accepted", Package: "./shard", Run: "TestLowerTermIsRefused",
		In:  "shard.Machine.hears",
		Old: "m.post(from, m.higher(t))\n\t\treturn false",
		New: "return true",
	},
	{
		Name: "promise-not-raised-by-a-report", Seeds: 60,
		In:  "shard.Machine.raise",
		Old: "if term > t.promise.term {",
		New: "if term > t.promise.term && floor == 0 {",
	},
	{
		Name: "fence-given-twice", Seeds: 60,
		In:  "shard.moves.give",
		Old: "c.t.epoch++",
		New: "",
	},
	{
		Name: "second-owner-for-a-busy-shard", Seeds: 60,
		In:  "shard.coordinator.serve",
		Old: "if c.records.Peek(s).phase != free {",
		New: "if p := c.records.Peek(s).phase; p != free && p != halting {",
	},
	{
		// What it doubles fills memory with more seeds.
		Name: "home-told-before-its-owner-confirmed", Seeds: 10,
		In:  "shard.moves.give",
		Old: "r.enter(c, s, starting)",
		New: "r.enter(c, s, starting)\n\tc.confirm(s)",
	},
	{
		Name: "parked-message-lost", Seeds: 60,
		In:  "internal/flow.Slot.Reset",
		Old: "s.local, s.home, s.fence = false, peer.ID{}, route.Fence{}",
		New: "s.local, s.home, s.fence, s.queue = false, peer.ID{}, route.Fence{}, nil",
	},
	{
		Name: "later-message-overtakes-the-parked", Seeds: 60,
		In:      "internal/flow.Slot.OpenIfDrained",
		Without: "s.queue != nil",
	},
	{
		Name: "credit-not-returned", Seeds: 60,
		In:  "internal/flow.Meter.Flush",
		Old: "due = m.total != m.told",
		New: "due = m.total-m.told >= m.quarter",
	},
	{
		// Credit ends with the connection that it is for but in storms of the old way.
		Name:    "credit-of-an-old-connection-counted",
		Package: "./internal/flow", Run: "TestLinkCreditThatNoHonestReceiverSends",
		In:  "internal/flow.Link.Granted",
		Old: "case generation < l.generation:\n\t\treturn false, nil",
		New: "",
	},
	{
		Name: "unsent-lost-on-reconnect", Seeds: 60,
		In:  "internal/flow.Link.Reconnected",
		Old: "l.sent, l.consumed = 0, 0",
		New: "l.rest = nil\n\tl.sent, l.consumed = 0, 0",
	},
	{
		// A shard never comes back to a node that gave it up while nothing is moved, so no storm shows it yet.
		Name: "fence-not-checked-at-the-receiver", Package: "./internal/driver", Run: "TestStaleFenceIsRefused",
		In:  "internal/plane.Accept",
		Old: "if term != e.Term || epoch != e.Epoch {",
		New: "if false {",
	},
	{
		Name: "incarnation-readmitted-after-removal", Package: "./membership", Run: "TestRemovedIncarnationIsTold",
		In:  "membership.admission.refuses",
		Old: "if t, dead := a.st.Tomb(j.id); dead {",
		New: "if t, dead := a.st.Tomb(j.id); dead && t.Last == cluster.Removed {",
	},
	{
		Name: "mailbox-forgotten-after-a-run", Seeds: 60,
		In:      "entity.Entity.End",
		Without: "a.head != nil",
	},
	{
		Name: "stopped-before-its-mailbox-is-empty", Seeds: 60,
		In:  "entity.Entity.End",
		Old: "case a.now != nil || a.head != nil || a.step == parting:",
		New: "case s.phase == stopping:\n\t\ts.remove(e)\n\t\ts.pace()\n\t\treturn false\n\tcase a.now != " +
			"nil || a.head != nil || a.step == parting:",
	},
	{
		Name: "gossip-is-taken-for-an-answer", Package: "./fd", Run: "TestSignsOfLife",
		In:  "fd.Monitor.Sign",
		Old: "w.probes.sign(arrived)",
		New: "w.probes.sign(arrived)\n\t\tw.answers.sign(arrived)",
	},
	{
		Name: "observer-that-stood-still-accuses", Package: "./sim", Run: "TestFrozenObserversAccuseNobody",
		In:   "membership.watch.noticePause",
		Drop: "w.monitor.Forgive",
	},
	{
		Name: "last-probe-taken-for-a-probe", Package: "./sim", Run: "TestMovingRingAccusesNobody",
		In:  "membership.watch.onHeartbeat",
		Old: "case h.Seq == lastProbe:",
		New: "case h.Seq == lastProbe && h.Sent == 0:",
	},
	{
		Name: "lost-links-need-no-witness", Package: "./fd", Run: "TestLostLink",
		In:      "fd.Monitor.weigh",
		Without: "m.alone(w.id, e.at)",
	},
	{
		Name: "answers-from-before-vouch", Package: "./fd", Run: "TestLostLink",
		In:  "fd.Monitor.vouched",
		Old: "w.answers.last > last",
		New: "w.answers.last > 0",
	},
	{
		Name: "others-are-not-asked", Package: "./sim", Run: "TestTwoLinksLostTogetherNeedAWitness",
		In:   "membership.watch.linkLost",
		Drop: "w.beat",
	},
	{
		Name: "quarantine-cleared-by-a-heartbeat", Package: "./membership", Run: "TestScenario24Quarantine",
		In:      "internal/members.Reachability.With",
		Without: "t.Quarantines(observer, subject)",
	},
	{
		Name: "stalled-connection-is-silence", Package: "./sim", Run: "TestStalledConnectionAccusesNobody",
		In:  "fd.Monitor.Doubted",
		Old: "w.answers.silence(now) >= m.settings.Interval*3/2",
		New: "w.answers.silence(now) >= m.settings.Interval*6",
	},
	{
		Name: "sleep-not-noticed", Package: "./internal/node", Run: "TestSleepSuspendsBeforeAnythingElse",
		In:  "internal/node.Node.step",
		Old: "!s.alone && gap > s.limit {",
		New: "!s.alone && gap > 4*s.limit {",
	},
	{
		Name: "fresh-step-ends-the-suspension", Package: "./shard", Run: "TestSuspendedOwnerIsConfirmed",
		In:  "shard.Machine.checkConfirm",
		Old: "if !c.firm {",
		New: "if !c.firm && len(c.heard) > 0 {",
	},
	{
		Name: "earlier-confirmation-counts", Package: "./shard", Run: "TestEarlierAnswersDoNotCount",
		In:  "shard.Machine.onOwnerConfirmed",
		Old: "|| a.Nonce != c.nonce {",
		New: "|| a.Nonce == 0 {",
	},
	{
		Name: "a-sleeper-confirms-another", Package: "./shard", Run: "TestAnswersOfTheSuspended",
		In:      "shard.Machine.knows",
		Without: "m.confirm.held",
	},
	{
		Name: "resolver-does-not-suspend", Package: "./sim", Run: "TestScripts/minority_suspends_before_rehome",
		In:  "internal/node.Node.settle",
		Old: "if s := n.resolver.Peek().Suspend; s != nil {",
		New: "if s := n.resolver.Peek().Suspend; s != nil && !s.On {",
	},
	{
		Name: "takeover-time-does-not-follow-the-size", Package: "./sim", Run: "TestCutOffOwnersStopInTime",
		In:  "shard.Machine.takeover",
		Old: "return m.cfg.TakeoverFor(max(m.past.population.members(), 1))",
		New: "return m.cfg.TakeoverFor(1)",
	},
	{
		Name: "data-plane-does-not-look-at-the-clock", Seeds: 60,
		In:      "internal/plane.Gate.Held",
		Without: "age > limit",
	},
}, membershipBugs, formingBugs, courierBugs, accountBugs, executionBugs, largeBugs, hostileBugs, chaosBugs,
	availableBugs, ownerBugs, moveBugs, roundBugs, stateBugs, keptBugs, startsBugs,
	planeBugs, askBugs, flightBugs, adminBugs, operateBugs)
