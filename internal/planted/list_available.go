// Planted mistakes that leave nobody, or leave things as they are: what only a rule of availability finds.

package main

// availableBugs is the part of the list whose mistakes break no promise of safety.
var availableBugs = []bug{
	{
		Name: "majority-downs-everybody", Seeds: 60,
		File: "sbr/decide.go",
		Old:  "\tfirst := majority(v, v.count(onlyReachable), v.count(onlyUnreachable), v.lowest(plain))\n",
		New: "\tfirst := majority(v, v.count(onlyReachable), v.count(onlyUnreachable), v.lowest(plain))\n" +
			"\tfirst.outcome = DownEverybody\n",
	},
	{
		Name: "oldest-never-lives", Seeds: 60,
		File: "sbr/decide.go",
		Old:  "\tif !v.away(oldest) {\n",
		New:  "\tif v.away(oldest) {\n",
	},
	{
		Name: "quorum-of-all", Seeds: 60,
		File: "sbr/decide.go",
		Old:  "\tcase r >= quorum:\n",
		New:  "\tcase r >= quorum && u == 0:\n",
	},
	{
		Name: "nobody-carries-it-out", Seeds: 60,
		File: "sbr/act.go",
		Old:  "\tif !carryOut {\n\t\treturn\n",
		New:  "\tif !carryOut || d.Lives && d.Lost != nil {\n\t\treturn\n",
	},
	{
		Name: "patience-without-end", Package: "./sbr", Run: "TestLossesInARow|TestBackForGood",
		File: "sbr/machine.go",
		Old:  "m.now >= m.decideAt() && !m.waits()",
		New:  "m.now >= m.decideAt()+time.Hour && !m.waits()",
	},
	{
		Name: "indirect-counts-as-lost", Package: "./sim", Run: "TestScripts/indirectly_connected",
		File: "sbr/decide.go",
		Old:  "\tdefault:\n\t\td.Down = v.goers(d.Outcome)\n\t}\n",
		New: "\tdefault:\n\t\td.Down = v.goers(d.Outcome)\n\t\tif len(d.Indirect) > 0 {\n" +
			"\t\t\td.Down = v.goers(DownEverybody)\n\t\t}\n\t}\n",
	},
	{
		Name: "sleeper-decides-when-it-wakes", Package: "./sbr", Run: "TestOverslept|TestSleptInTheOpen",
		File: "sbr/patience.go",
		Old:  "m.now > m.due()+lateBy {",
		New:  "m.now > m.due()+lateBy+time.Hour {",
	},
	{
		Name: "indirect-without-a-doubt", Package: "./sim", Run: "TestScripts/indirect_brief_return",
		File: "sbr/doubt.go",
		Old:  "\tif !m.cfg.indirectly() {\n",
		New:  "\tif m.cfg.indirectly() {\n",
	},
	{
		Name: "six-watch-like-many", Package: "./sbr", Run: "TestSixWatchEachOther",
		File: "sbr/patience.go",
		Old:  "const watchAll = 6",
		New:  "const watchAll = 5",
	},
	{
		Name: "a-verdict-is-a-sign-of-life", Package: "./sbr", Run: "TestAVerdictIsNoSignOfLife",
		File: "sbr/patience.go",
		Old:  " && !m.accuses(id) {",
		New:  " {",
	},
}
