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
}
