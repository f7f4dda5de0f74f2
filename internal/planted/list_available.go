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
}
