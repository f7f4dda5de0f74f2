// Planted bugs in who may own a shard: settings that differ, sleepers that are woken, removed incarnations.

package main

var ownerBugs = []bug{
	{
		Name: "crash-loop-is-a-crowd", Package: "./shard", Run: "TestCrashLoopIsNoCrowd",
		In:  "shard.population.members",
		Old: "if !c.has(a) {",
		New: "if c.has(a) || n > 0 {",
	},
	{
		Name: "reign-waits-for-its-role-alone", Package: "./shard", Run: "TestReignWaitsForMembersOfOtherRoles",
		In:  "shard.coordinator.unaccounted",
		Old: "if !accounted(mb.ID) && !yield(mb.ID) {",
		New: "if mb.HasRole(c.settings.Role) && !accounted(mb.ID) && !yield(mb.ID) {",
	},
	{
		Name: "promise-under-other-settings", Package: "./shard", Run: "TestRoleThatDiffers|TestOwnerRefusesAnotherReign",
		In:  "shard.Machine.onReportWanted",
		Old: "if !m.agrees(t, from, w) {",
		New: "if m.agrees(t, from, w); w.Term == 0 {",
	},
	{
		Name: "oldest-is-not-asked-first", Package: "./shard", Run: "TestTwoRolesAtOnce",
		In:  "shard.coordinator.first",
		Old: "if c.ready || !ok {",
		New: "if c.ready || !ok || oldest.ID != c.m.self {",
	},
	{
		Name: "removed-and-forgotten-returns", Package: "./sim", Run: "TestScripts/removed_side_returns",
		In:  "membership.exchange.take",
		Old: "if remote.Digest != x.st.Digest && x.beliefs.returned(from, remote) {",
		New: "if remote.Digest == 0 && x.beliefs.returned(from, remote) {",
	},
	{
		Name: "frames-before-isolation", Package: "./internal/node", Run: "TestRemovedIncarnationDoesNotReturn",
		In:      "membership.Machine.Handle",
		Without: "m.beliefs.isolated()",
	},
	{
		Name: "joiner-wakes-a-sleeper", Package: "./sim", Run: "TestScripts/asleep_with_a_joiner",
		In:  "shard.Machine.onOwnerConfirmed",
		Old: "c.firm = c.firm || a.Firm && (mb.Status.Working() || mb.Status == membership.Leaving)",
		New: "c.firm = c.firm || mb.Status != membership.Down",
	},
	{
		Name: "one-that-misses-others-wakes-a-sleeper", Package: "./shard", Run: "TestWhoProvesNothingWakesNobody",
		In:  "shard.Machine.knows",
		Old: "if m.live(a.Observer) && m.live(a.Subject) {",
		New: "if m.live(a.Observer) && !m.live(a.Subject) {",
	},
	{
		Name: "older-member-ends-a-reign", Package: "./shard", Run: "TestOlderMemberThatAppearsEndsNoReign",
		In:  "shard.coordinator.onView",
		Old: "if !c.m.inOffice() {",
		New: "if next, ok := c.m.view.Oldest(c.settings.Role); !ok || next.ID != c.m.self {",
	},
	{
		Name: "given-up-shard-starts-beside-its-handler", Package: "./shard", Run: "TestGivenUpShardEndsBeforeItLivesAgain",
		In:  "shard.Machine.onHost",
		Old: "case s.living == stopping, s.ending:",
		New: "case s.living == stopping:",
	},
	{
		Name: "park-time-does-not-follow", Package: "./sim", Run: "TestScripts/parked_in_a_large_cluster",
		In:  "internal/node.ParkTimeFor",
		Old: "return max(leastParkTime, takeover+parkMargin)",
		New: "return max(leastParkTime, parkMargin)",
	},
	{
		Name: "full-table-answers-nothing", Package: "./shard", Run: "TestTypesBeyondTheBound",
		In:  "shard.Machine.toRegion",
		Old: "m.reportNothing(from, w)",
		New: "m.full++",
	},
	{
		Name: "refused-type-parks-on", Package: "./internal/driver", Run: "TestNothingParksForARefusedType",
		In:  "internal/driver.Driver.typeRefused",
		Old: "d.failParked(slotRef{r, s}, route.NotRegistered)",
		New: "_ = s",
	},
	{
		Name: "older-members-wait-for-a-lower-term", Package: "./shard", Run: "TestHigherTermOfAnotherRole",
		In:  "shard.Machine.follows",
		Old: "if next, ok = m.past.oldest(m.view, role); !ok || next.UpNumber >= t.promise.term {",
		New: "if next, ok = m.past.oldest(m.view, role); !ok || next.UpNumber > 0 {",
	},
	{
		Name: "dead-coordinator-is-waited-for", Package: "./shard", Run: "TestProvenDeathOfTheCoordinator",
		In:  "shard.Machine.died",
		Old: "m.past.dead.Add(id)",
		New: "_ = id",
	},
	{
		Name: "leave-notice-ends-a-reign", Package: "./shard", Run: "TestLeaveNoticeEndsNoReign",
		In:  "shard.Machine.onLeaveNotice",
		Old: "m.past.leaveNotices.Add(from)",
		New: "m.past.leaveNotices.Add(from); m.past.dead.Add(from)",
	},
	{
		Name: "passed-over-without-a-word", Package: "./shard", Run: "TestHigherTermOfAnotherRole",
		In:  "shard.Machine.announce",
		Old: "oldest.UpNumber < t.promise.term && g.to != t.promise.to {",
		New: "oldest.UpNumber < t.promise.term && g.to == t.promise.to {",
	},
	{
		Name: "sleeper-needs-nobody", Package: "./internal/node", Run: "TestSleeperWhomNobodyCanConfirm",
		In:  "internal/node.Node.confirmed",
		Old: "word.Vacuous && ",
		New: "!word.Vacuous && ",
	},
	{
		Name: "short-sleeper-ends", Package: "./internal/node", Run: "TestSleeperWhomNobodyCanConfirm",
		In:  "internal/node.Node.confirmed",
		Old: "s.slept >= least",
		New: "s.slept > 0",
	},
	{
		Name: "sleeper-ends-whatever-it-decides", Package: "./internal/node", Run: "TestSleeperWhomNobodyCanConfirm",
		In:  "internal/node.Node.confirmed",
		Old: "&& !s.word",
		New: "",
	},
}
