// Planted bugs in who may own a shard: settings that differ, sleepers that are woken, removed incarnations.

package main

var ownerBugs = []bug{
	{
		Name: "reign-waits-for-its-role-alone", Package: "./shard", Run: "TestReignWaitsForMembersOfOtherRoles",
		File: "shard/collect.go",
		Old:  "\t\tif !accounted(mb.ID) && !yield(mb.ID) {\n",
		New:  "\t\tif mb.HasRole(c.settings.Role) && !accounted(mb.ID) && !yield(mb.ID) {\n",
	},
	{
		Name: "promise-under-other-settings", Package: "./shard", Run: "TestRoleThatDiffers|TestOwnerRefusesAnotherReign",
		File: "shard/host.go",
		Old:  "\tif !m.agrees(t, from, w) {\n\t\treturn\n",
		New:  "\tif m.agrees(t, from, w); w.Term == 0 {\n\t\treturn\n",
	},
	{
		Name: "oldest-is-not-asked-first", Package: "./shard", Run: "TestTwoRolesAtOnce",
		File: "shard/collect.go",
		Old:  "\tif c.ready || !ok {\n",
		New:  "\tif c.ready || !ok || oldest.ID != c.m.self {\n",
	},
	{
		Name: "removed-and-forgotten-returns", Package: "./sim", Run: "TestScripts/removed_side_returns",
		File: "membership/gossiping.go",
		Old:  "\tif remote.Digest != x.st.Digest && x.beliefs.returned(from, remote) {\n",
		New:  "\tif remote.Digest == 0 && x.beliefs.returned(from, remote) {\n",
	},
	{
		Name: "frames-before-isolation", Package: "./internal/node", Run: "TestRemovedIncarnationDoesNotReturn",
		File: "membership/machine.go",
		Old:  "from == m.self || m.beliefs.isolated() {\n",
		New:  "from == m.self {\n",
	},
	{
		Name: "joiner-wakes-a-sleeper", Package: "./sim", Run: "TestScripts/asleep_with_a_joiner",
		File: "shard/confirm.go",
		Old:  "\tc.firm = c.firm || a.Firm && (mb.Status.Working() || mb.Status == membership.Leaving)\n",
		New:  "\tc.firm = c.firm || mb.Status != membership.Down\n",
	},
	{
		Name: "one-that-misses-others-wakes-a-sleeper", Package: "./shard", Run: "TestWhoProvesNothingWakesNobody",
		File: "shard/confirm.go",
		Old:  "\t\tif m.live(a.Observer) && m.live(a.Subject) {\n",
		New:  "\t\tif m.live(a.Observer) && !m.live(a.Subject) {\n",
	},
	{
		Name: "older-member-ends-a-reign", Package: "./shard", Run: "TestOlderMemberThatAppearsEndsNoReign",
		File: "shard/coordinator.go",
		Old:  "\tif !c.m.inOffice() {\n",
		New:  "\tif !c.m.presides(c.settings.Role, c.term) {\n",
	},
	{
		Name: "given-up-shard-starts-beside-its-handler", Package: "./shard", Run: "TestGivenUpShardEndsBeforeItLivesAgain",
		File: "shard/host.go",
		Old:  "\t\tcase s.living == stopping, s.ending:\n",
		New:  "\t\tcase s.living == stopping:\n",
	},
	{
		Name: "park-time-does-not-follow", Package: "./sim", Run: "TestScripts/parked_in_a_large_cluster",
		File: "internal/node/takeover.go",
		Old:  "\treturn max(leastParkTime, takeover+parkMargin)\n",
		New:  "\treturn max(leastParkTime, parkMargin)\n",
	},
	{
		Name: "full-table-answers-nothing", Package: "./shard", Run: "TestTypesBeyondTheBound",
		File: "shard/deliver.go",
		Old:  "\t\t\tm.reportNothing(from, w)\n",
		New:  "\t\t\tm.full++\n",
	},
	{
		Name: "refused-type-parks-on", Package: "./internal/driver", Run: "TestNothingParksForARefusedType",
		File: "internal/driver/region.go",
		Old:  "\t\td.failParked(slotRef{r, route.ShardID(i)}, route.NotRegistered)\n",
		New:  "\t\t_ = i\n",
	},
	{
		Name: "older-members-wait-for-a-lower-term", Package: "./shard", Run: "TestHigherTermOfAnotherRole",
		File: "shard/coordinator.go",
		Old:  "\tif next, ok = m.view.Oldest(role); !ok || next.UpNumber >= t.promise.term {\n",
		New:  "\tif next, ok = m.view.Oldest(role); !ok || next.UpNumber > 0 {\n",
	},
	{
		Name: "passed-over-without-a-word", Package: "./shard", Run: "TestHigherTermOfAnotherRole",
		File: "shard/region.go",
		Old:  "oldest.UpNumber < t.promise.term && g.to != t.promise.to {\n",
		New:  "oldest.UpNumber < t.promise.term && g.to == t.promise.to {\n",
	},
}
