// Planted bugs in what judges real processes: a judge that cannot see is worth nothing.

package main

// chaosBugs are those of the run of real processes under faults.
var chaosBugs = []bug{
	{
		Name: "chaos-judges-by-the-end-alone", Package: "./internal/chaos", Run: "TestOneOwner",
		In:  "internal/chaos.exclusive.judge",
		Old: "case s.first < h.from:",
		New: "case s.first < h.from && s.last > h.until:",
	},
	{
		Name: "chaos-excuses-sleepers-for-ever", Package: "./internal/chaos", Run: "TestOneOwner",
		In:      "internal/chaos.exclusive.woke",
		Without: "at < p.until+graceOfWaking",
	},
	{
		Name: "chaos-store-forgets-the-fence", Package: "./internal/chaos", Run: "TestStoreChecksFences",
		In:      "internal/chaos.store.write",
		Without: "high == was[0] && low < was[1]",
	},
	{
		Name: "chaos-obliges-nobody", Package: "./internal/chaos", Run: "TestWhoMustLive",
		In:  "internal/chaos.obliged",
		Old: "if restless || 2*(nodes-gone) <= nodes {",
		New: "if restless || 2*(nodes-gone) <= nodes+1 {",
	},
	{
		Name: "chaos-explains-every-loss", Package: "./internal/chaos", Run: "TestExplain",
		In:      "internal/chaos.explain",
		Without: "r.until > 0 && at > r.until+marginAfter",
	},
	{
		Name: "partition-forgets-who-was-cut-short", Package: "./internal/chaos", Run: "TestGaps",
		In:  "internal/chaos.book.gaps",
		Old: "h.until = end",
		New: "h.until = min(h.from, end)",
	},
	{
		Name: "partition-takes-touching-for-a-gap", Package: "./internal/chaos", Run: "TestPartitionFaults",
		In:  "internal/chaos.parted.overlaps",
		Old: "g.started <= g.stopped",
		New: "g.started < g.stopped",
	},
	{
		Name: "partition-takes-either-side", Package: "./internal/chaos", Run: "TestWhatVerbsSay",
		In:  "internal/chaos.explainTells",
		Old: `why, end = "ours is the majority", "this node lives"`,
		New: `end = "this node lives"`,
	},
	{
		Name: "partition-judges-no-second-member", Package: "./internal/chaos", Run: "TestWhatVerbsSay",
		In:  "internal/chaos.membersTell",
		Old: `" yes")`,
		New: `" ")`,
	},
	{
		Name: "old-builds-are-asked-for-a-page", Package: "./internal/command", Run: "TestOldBuildIsAskedForWhatItKnows",
		In:      "internal/command.dev.startArgs",
		Without: `d.build(i) == ""`,
	},
}
