// Planted bugs of who forms a cluster, which of two ends, what proves a death, and sleeps that no clock shows.

package main

var formingBugs = []bug{
	{
		Name: "record-not-heeded", Seeds: 100,
		File: "membership/forming.go",
		Old:  "\treturn r.Known() && !(r.Alone() && (f.joining.first || !r.Counts))\n",
		New:  "\treturn r.Known() && !f.joining.first\n",
	},
	{
		Name: "a-record-of-nobody-forms", Package: "./membership", Run: "TestRecordOfNobodyFormsNothing",
		File: "membership/forming.go",
		Old:  "\treturn r.Known() && !(r.Alone() && (f.joining.first || !r.Counts))\n",
		New:  "\treturn r.Known() && !(r.Alone() && f.joining.first)\n",
	},
	{
		Name: "up-before-it-is-written-down", Package: "./membership", Run: "TestNobodyIsUpBeforeItIsWrittenDown",
		File: "membership/duties.go",
		Old:  "letIn := l.named() && l.cfg.minimums().met(l.st.Members)\n",
		New:  "letIn := l.cfg.minimums().met(l.st.Members)\n",
	},
	{
		Name: "new-names-are-written-late", Package: "./membership", Run: "TestMemory",
		File: "membership/memory.go",
		Old:  "\t\tif !k.kept.Names(a) {\n\t\t\treturn k.soon, true\n",
		New:  "\t\tif !k.kept.Names(a) {\n\t\t\treturn k.at, true\n",
	},
	{
		Name: "newcomers-let-others-be-missing", Package: "./membership", Run: "TestRecordOfNewcomers",
		File: "membership/forming.go",
		Old:  "len(r.Others)-r.Newcomers+r.More",
		New:  "len(r.Others)+r.More",
	},
	{
		Name: "pledged-to-two", Package: "./membership", Run: "TestPledges",
		File: "membership/forming.go",
		Old:  "a.attempt >= f.pledged && (f.pledgedTo.IsZero() || f.pledgedTo == from) {",
		New:  "a.attempt >= f.pledged {",
	},
	{
		Name: "pledged-to-two-in-some-state", Package: "./membership", Run: "TestFormingProof",
		File: "membership/forming.go",
		Old:  "a.attempt >= f.pledged && (f.pledgedTo.IsZero() || f.pledgedTo == from) {",
		New:  "a.attempt >= f.pledged {",
	},
	{
		Name: "forgets-the-record-in-some-state", Package: "./membership", Run: "TestFormingProof",
		File: "membership/forming.go",
		Old:  "\treturn r.Known() && !(r.Alone() && (f.joining.first || !r.Counts))\n",
		New:  "\treturn r.Known() && !f.joining.first\n",
	},
	{
		Name: "forms-without-all-pledges", Package: "./membership", Run: "TestFormingProof",
		File: "membership/forming.go",
		Old:  "f.missing(func(c *contact) bool { return c.promised })",
		New:  "f.missing(f.fresh)",
	},
	{
		Name: "up-before-it-is-written-in-some-state", Package: "./membership", Run: "TestFormingProof",
		File: "membership/memory.go",
		Old:  "if !l.cfg.Records || ",
		New:  "if l.now >= 0 || ",
	},
	{
		Name: "attempt-goes-on-after-a-cluster-was-asked", Package: "./membership", Run: "TestWhoAskedHoldsNobodyBack",
		File: "membership/join.go",
		Old:  "\t\tif j.forming.tries {\n\t\t\tj.forming.giveUpTrying() // it",
		New:  "\t\tif j.forming.tries && j.now < 0 {\n\t\t\tj.forming.giveUpTrying() // it",
	},
	{
		Name: "removed-joiner-returns", Package: "./membership", Run: "TestRemovedJoinerDoesNotReturn",
		File: "membership/returned.go",
		Old:  "gone = d != nil && mb.UpNumber == 0",
		New:  "gone = d == nil && mb.UpNumber == 0",
	},
	{
		Name: "two-sides-of-one-cluster-untold", Package: "./sim", Run: "TestScripts/two_sides_of_one_cluster",
		File: "membership/twin.go",
		Old:  "\tif cluster == b.st.Cluster && birth == b.st.Birth {\n",
		New:  "\tif cluster == 0 && birth == b.st.Birth {\n",
	},
	{
		Name: "missing-may-still-handle", Package: "./membership", Run: "TestMissingHaveStopped",
		File: "membership/forming.go",
		Old:  "\t\twait = f.stopped()\n",
		New:  "",
	},
	{
		Name: "half-may-be-missing", Package: "./internal/node", Run: "TestMayMiss",
		File: "internal/node/forming.go",
		Old:  "return max(0, (members-1)/4)",
		New:  "return max(0, (members-1)/2)",
	},
	{
		Name: "port-given-back-while-a-handler-runs", Package: ".", Run: "TestClosedNodeIsNotDeadWhileAHandlerRuns",
		File: "internal/driver/end.go",
		Old:  "d.wires.CloseBut(left)",
		New:  "_ = left\n\td.wires.Close()",
	},
	{
		Name: "step-of-the-wall-clock-told-to-nobody", Package: "./sim", Run: "TestScripts/sleep_that_no_clock_shows",
		File: "internal/node/suspend.go",
		Old:  "s.member && !s.alone && d > s.limit {",
		New:  "s.member && !s.alone && d > 1000*s.limit {",
	},
	{
		Name: "older-twin-yields", Package: "./membership", Run: "TestYoungerAndSmallerTwinYields",
		File: "membership/twin.go",
		Old:  "t.Birth < o.st.Birth ||",
		New:  "t.Birth > o.st.Birth ||",
	},
	{
		Name: "strangers-make-a-twin-yield", Package: "./membership", Run: "TestYoungerAndSmallerTwinYields",
		File: "membership/join.go",
		Old:  "j.others.otherCluster(from.Addr, a.cluster, a.birth, false)",
		New:  "j.others.otherCluster(from.Addr, a.cluster, a.birth, true)",
	},
	{
		Name: "all-down-remembers-nobody", Package: "./membership", Run: "TestRecordOfViews",
		File: "membership/record.go",
		Old:  "if v.ClusterID == 0 || !ok || self.Status == cluster.Down {",
		New:  "if v.ClusterID == 0 || !ok || self.Status == cluster.Removed {",
	},
}
