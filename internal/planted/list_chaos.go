// Planted bugs in what judges real processes: a judge that cannot see is worth nothing.

package main

// chaosBugs are those of the run of real processes under faults.
var chaosBugs = []bug{
	{
		Name: "chaos-judges-by-the-end-alone", Package: "./internal/chaos", Run: "TestOneOwner",
		File: "internal/chaos/exclusive.go",
		Old:  "\t\tcase s.first < h.from:\n\t\t\tx.verdict.Back++",
		New:  "\t\tcase s.first < h.from && s.last > h.until:\n\t\t\tx.verdict.Back++",
	},
	{
		Name: "chaos-excuses-sleepers-for-ever", Package: "./internal/chaos", Run: "TestOneOwner",
		File: "internal/chaos/exclusive.go",
		Old:  "at >= p.until && at < p.until+graceOfWaking",
		New:  "at >= p.until",
	},
	{
		Name: "chaos-store-forgets-the-fence", Package: "./internal/chaos", Run: "TestStoreChecksFences",
		File: "internal/chaos/store.go",
		Old:  "if high < was[0] || high == was[0] && low < was[1] {",
		New:  "if high < was[0] {",
	},
	{
		Name: "chaos-obliges-nobody", Package: "./internal/chaos", Run: "TestWhoMustLive",
		File: "internal/chaos/touch.go",
		Old:  "if restless || 2*(nodes-gone) <= nodes {",
		New:  "if restless || 2*(nodes-gone) <= nodes+1 {",
	},
	{
		Name: "chaos-explains-every-loss", Package: "./internal/chaos", Run: "TestExplain",
		File: "internal/chaos/account.go",
		Old:  "if at < r.from-marginBefore || r.until > 0 && at > r.until+marginAfter {",
		New:  "if at < r.from-marginBefore {",
	},
}
