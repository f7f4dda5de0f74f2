// Planted mistakes that leave nobody, or leave things as they are: what only a rule of availability finds.

package main

// availableBugs is the part of the list whose mistakes break no promise of safety.
var availableBugs = []bug{
	{
		Name: "majority-downs-everybody", Seeds: 60,
		In:  "sbr.survey.keepMajority",
		Old: "first := majority(v, v.count(onlyReachable), v.count(onlyUnreachable), v.lowest(plain))",
		New: "first := majority(v, v.count(onlyReachable), v.count(onlyUnreachable), v.lowest(plain))\n" +
			"\tfirst.outcome = DownEverybody",
	},
	{
		Name: "oldest-never-lives", Seeds: 60,
		In:  "sbr.survey.oldestSide",
		Old: "if !v.away(oldest) {",
		New: "if v.away(oldest) {",
	},
	{
		Name: "quorum-of-all", Seeds: 60,
		In:  "sbr.survey.staticQuorum",
		Old: "case r >= quorum:",
		New: "case r >= quorum && u == 0:",
	},
	{
		Name: "nobody-carries-it-out", Seeds: 60,
		In:  "sbr.Machine.act",
		Old: "if !carryOut {",
		New: "if !carryOut || d.Lives && d.Lost != nil {",
	},
	{
		Name: "patience-without-end", Package: "./sbr", Run: "TestLossesInARow|TestBackForGood",
		In:  "sbr.Machine.Tick",
		Old: "m.now >= m.decideAt() && !m.waits()",
		New: "m.now >= m.decideAt()+time.Hour && !m.waits()",
	},
	{
		Name: "indirect-counts-as-lost", Package: "./sim", Run: "TestScripts/indirectly_connected",
		In:  "sbr.Config.Decide",
		Old: "d.Down = v.goers(d.Outcome)",
		New: "d.Down = v.goers(d.Outcome)\n\t\tif len(d.Indirect) > 0 {\n\t\t\td.Down = " +
			"v.goers(DownEverybody)\n\t\t}",
	},
	{
		Name: "sleeper-decides-when-it-wakes", Package: "./sbr", Run: "TestOverslept|TestSleptInTheOpen",
		In:  "sbr.Machine.overslept",
		Old: "m.now > m.due()+lateBy {",
		New: "m.now > m.due()+lateBy+time.Hour {",
	},
	{
		Name: "flappers-end-all", Package: "./sbr", Run: "TestFlappers$",
		In:  "sbr.flapping",
		Old: "|| !m.cfg.indirectly()",
		New: "|| m.cfg.indirectly()",
	},
	{
		Name: "flapper-known-at-once", Package: "./sbr", Run: "TestNewFlapper",
		In:  "sbr.knownAt",
		Old: "m.flaps.grownAt+m.calm(), ",
		New: "",
	},
	{
		Name: "late-counts-beside-flappers", Package: "./sbr", Run: "TestNewFlapper",
		In:  "sbr.rides",
		Old: "len(m.late) > 0 &&",
		New: "len(m.late) < 0 &&",
	},
	{
		Name: "indirect-without-a-doubt", Package: "./sim", Run: "TestScripts/indirect_brief_return",
		In:  "sbr.Machine.hangs",
		Old: "if !m.cfg.indirectly() {",
		New: "if m.cfg.indirectly() {",
	},
	{
		Name: "six-watch-like-many", Package: "./sbr", Run: "TestSixWatchEachOther",
		File: "sbr/patience.go",
		Old:  "const watchAll = 6",
		New:  "const watchAll = 5",
	},
	{
		Name: "a-verdict-is-a-sign-of-life", Package: "./sbr", Run: "TestAVerdictIsNoSignOfLife",
		In:  "sbr.Machine.keepLate",
		Old: "!slices.Contains(ids, id) && !m.accuses(id)",
		New: "!slices.Contains(ids, id)",
	},
	{
		Name: "stops-though-it-lives-anyway", Package: "./sim", Run: "TestScripts/contact_when_time_is_up",
		In:  "sbr.Machine.Tick",
		Old: "m.sure = m.sure || goesOn || anyway(m)",
		New: "m.sure = m.sure || goesOn || anyway(m) && false",
	},
	{
		Name: "lives-anyway-by-who-is-in-contact", Package: "./sbr", Run: "TestContactWhenTimeIsUp",
		In:  "sbr.anyway",
		Old: "append(m.contact.Clone(), m.late...)",
		New: "m.late.Clone()",
	},
	{
		Name: "lives-anyway-by-who-is-late", Package: "./sbr", Run: "TestContactWhenTimeIsUp",
		In:  "sbr.anyway",
		Old: "append(m.contact.Clone(), m.late...)",
		New: "m.contact.Clone()",
	},
	{
		Name: "lives-anyway-by-its-own-word", Package: "./sbr", Run: "TestContactWhenTimeIsUp",
		In:  "sbr.anyway",
		Old: "return d.Lives &&",
		New: "return true &&",
	},
	{
		Name: "lives-anyway-on-a-moving-picture", Package: "./sbr", Run: "TestContactWhenTimeIsUp",
		In:  "sbr.anyway",
		Old: "m.now < max(m.first+limit, restAt(m), m.saidAt+m.spread(), m.lookAt)",
		New: "m.now < max(m.first+limit, m.saidAt+m.spread(), m.lookAt)",
	},
	{
		Name: "lives-anyway-before-all-know", Package: "./sbr", Run: "TestContactWhenTimeIsUp",
		In:  "sbr.anyway",
		Old: "m.now < max(m.first+limit, restAt(m), m.saidAt+m.spread(), m.lookAt)",
		New: "m.now < max(m.first+limit, restAt(m), m.lookAt)",
	},
	{
		Name: "started-anew-is-a-decision", Package: "./sim", Run: "TestScripts/started_anew_beside_a_sleeper",
		In:  "sbr.Machine.nearDowned",
		Old: "x.Cause != membership.CauseReplaced",
		New: "!x.ID.IsZero()",
	},
	{
		Name: "late-since-it-stopped", Package: "./sbr", Run: "TestLateAtTheEnd",
		In:  "sbr.Machine.waits",
		Old: "max(m.heldAt, m.movedAt, m.lateAt)",
		New: "max(m.heldAt, m.movedAt)",
	},
	{
		Name: "who-comes-back-ends-all", Package: "./sbr", Run: "TestComesBackInTime",
		In:  "sbr.lastAt",
		Old: "m.worseAt+calm/2 <= at",
		New: "m.movedAt+calm/2 <= at",
	},
	{
		Name: "who-lost-most-ends-all", Package: "./sbr", Run: "TestComesBackInTime",
		In:  "sbr.Machine.see",
		Old: "|| m.others() < 0)",
		New: ")",
	},
	{
		Name: "contact-that-fell-silent-is-not-late", Package: "./sbr", Run: "TestContactThatFellSilent",
		In:  "sbr.Machine.keepLate",
		Old: "|| m.contact.Has(id) && !m.accuses(id)",
		New: "",
	},
	{
		Name: "quiet-accuser-is-believed", Package: "./sbr", Run: "TestQuietWithItsWord",
		In:  "sbr.Machine.doubted",
		Old: "slices.Contains(m.quiet, a.Observer)",
		New: "slices.Contains(m.silent, a.Observer)",
	},
	{
		Name: "quiet-members-are-doubted", Package: "./sbr", Run: "TestQuietWithItsWord",
		In:  "sbr.Machine.doubted",
		Old: "m.contact.Has(a.Subject) &&",
		New: "m.contact.Has(a.Subject) ||",
	},
}
