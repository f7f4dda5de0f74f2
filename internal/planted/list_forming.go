// Planted bugs of who forms a cluster, which of two ends, what proves a death, and sleeps that no clock shows.

package main

var formingBugs = []bug{
	{
		Name: "record-not-heeded", Package: "./membership", Run: "TestFirstSeedThatRemembersFormsNoSecondCluster",
		In:  "membership.forming.remembers",
		Old: "case !r.Known() || !r.Alone():\n\t\treturn r.Known()",
		New: "case !r.Known() || !r.Alone() || f.joining.first:\n\t\treturn r.Known() && !f.joining.first",
	},
	{
		Name: "a-record-of-nobody-forms", Package: "./membership", Run: "TestRecordOfNobodyFormsNothing",
		In:  "membership.forming.remembers",
		Old: "return r.Counts",
		New: "return true",
	},
	{
		Name: "end-drops-the-highest-birth", Package: "./membership", Run: "TestEveryEndKeepsTheHighestBirth",
		In:  "membership.Record.After",
		Old: "next.Highest = max(next.Highest, r.Highest)",
		New: "",
	},
	{
		Name: "last-leaver-forgets-its-births", Package: "./sim",
		Run: "TestScripts/last_node_leaves_and_its_clock_goes_back",
		In:  "membership.Record.After",
		Old: "next = r.Left(last, role)",
		New: "if next = r.Left(last, role); next.Alone() {\n\t\t\treturn Record{}\n\t\t}",
	},
	{
		Name: "birth-does-not-exceed-what-is-remembered", Package: "./sim",
		Run: "TestScripts/last_node_leaves_and_its_clock_goes_back",
		In:  "membership.forming.lowestBirth",
		Old: "least := max(f.cfg.MinBirth, f.record.Highest)",
		New: "least := f.cfg.MinBirth",
	},
	{
		Name: "up-before-it-is-written-down", Package: "./membership", Run: "TestNobodyIsUpBeforeItIsWrittenDown",
		In:      "membership.leading.duties",
		Without: "l.named()",
	},
	{
		Name: "new-names-are-written-late", Package: "./membership", Run: "TestMemory",
		In:  "membership.Memory.Due",
		Old: "return k.soon, true\n\t}\n\treturn k.at, true",
		New: "return k.at, true\n\t}\n\treturn k.at, true",
	},
	{
		Name: "bystanders-are-not-waited-for", Package: "./sim", Run: "TestScripts/bystanders_have_stopped",
		In:  "membership.forming.beginTrying",
		Old: "f.record.bystands(over)",
		New: "over(f.self.Addr) && false",
	},
	{
		Name: "bystanders-are-not-remembered", Package: "./membership", Run: "TestBystandersHaveStopped",
		In:  "membership.forming.remembers",
		Old: "return len(r.Bystanders) > 0",
		New: "return false",
	},
	{
		Name: "bystanders-that-leave-none-behind", Package: "./membership", Run: "TestRecordOfBystanders",
		In:  "membership.Record.Left",
		Old: "next.standsBy(m.ID.Addr, last.Self.Addr)",
		New: "",
	},
	{
		Name: "bystanders-are-up-before-they-are-written-down", Package: "./membership", Run: "TestBystandersAreWrittenDown",
		In:  "membership.leading.named",
		Old: "case mb.Status.Numbered() >= 0 ||",
		New: "case mb.Status.Numbered() >= 0 || !mb.HasRole(l.cfg.RecordRole) ||",
	},
	{
		Name: "newcomers-let-others-be-missing", Package: "./membership", Run: "TestRecordOfNewcomers",
		In:  "membership.forming.bears",
		Old: "len(r.Others)-r.Newcomers+r.More",
		New: "len(r.Others)+r.More",
	},
	{
		Name: "pledged-to-two", Package: "./membership", Run: "TestPledges",
		In:      "membership.forming.onFormAsk",
		Without: "(f.pledgedTo.IsZero() || f.pledgedTo == from)",
	},
	{
		Name: "pledged-to-two-in-some-state", Package: "./membership", Run: "TestFormingProof",
		In:      "membership.forming.onFormAsk",
		Without: "(f.pledgedTo.IsZero() || f.pledgedTo == from)",
	},
	{
		Name: "forgets-the-record-in-some-state", Package: "./membership", Run: "TestFormingProof",
		In:  "membership.forming.remembers",
		Old: "case !r.Known() || !r.Alone():\n\t\treturn r.Known()",
		New: "case !r.Known() || !r.Alone() || f.joining.first:\n\t\treturn r.Known() && !f.joining.first",
	},
	{
		Name: "forms-without-all-pledges", Package: "./membership", Run: "TestFormingProof",
		In:  "membership.forming.goOnTrying",
		Old: "f.missing(func(c *contact) bool { return c.promised })",
		New: "f.missing(f.fresh)",
	},
	{
		Name: "up-before-it-is-written-in-some-state", Package: "./membership", Run: "TestFormingProof",
		In:  "membership.leading.named",
		Old: "if !l.cfg.Records ||",
		New: "if l.now >= 0 ||",
	},
	{
		Name: "attempt-goes-on-after-a-cluster-was-asked", Package: "./membership", Run: "TestWhoAskedHoldsNobodyBack",
		In:  "membership.joining.onProbeAck",
		Old: "if j.forming.tries {",
		New: "if j.forming.tries && j.now < 0 {",
	},
	{
		Name: "removed-joiner-returns", Package: "./membership", Run: "TestRemovedJoinerDoesNotReturn",
		In:  "membership.beliefs.returned",
		Old: "gone = d != nil && mb.UpNumber == 0",
		New: "gone = d == nil && mb.UpNumber == 0",
	},
	{
		Name: "joiner-outlives-its-tombstone", Package: "./membership", Run: "TestJoinerDoesNotOutliveItsTombstone",
		In:  "membership.beliefs.isolated",
		Old: "if b.phase == probing || b.phase == pending {",
		New: "if b.phase == pending && b.now < 0 {",
	},
	{
		Name: "joiners-time-begins-anew", Package: "./membership", Run: "TestJoinersTimeRunsFromItsFirstJoin",
		In:  "membership.joining.onProbeAck",
		Old: "if !j.forming.asked {",
		New: "if j.now > 0 {",
	},
	{
		Name: "two-sides-of-one-cluster-untold", Package: "./sim", Run: "TestScripts/two_sides_of_one_cluster",
		In:  "membership.beliefs.sameCluster",
		Old: "if cluster == b.st.Cluster && birth == b.st.Birth {",
		New: "if cluster == 0 && birth == b.st.Birth {",
	},
	{
		Name: "missing-may-still-handle", Package: "./membership", Run: "TestMissingHaveStopped",
		In:  "membership.forming.beginTrying",
		Old: "wait = f.stopped()",
		New: "",
	},
	{
		Name: "half-may-be-missing", Package: "./internal/node", Run: "TestMayMiss",
		In:  "internal/node.Config.MayMiss",
		Old: "return max(0, (members-1)/4)",
		New: "return max(0, (members-1)/2)",
	},
	{
		Name: "port-given-back-while-a-handler-runs", Package: ".", Run: "TestClosedNodeIsNotDeadWhileAHandlerRuns",
		In:  "internal/driver.Driver.shutdown",
		Old: "d.wires.CloseBut(left)",
		New: "_ = left\n\td.wires.Close()",
	},
	{
		Name: "step-of-the-wall-clock-told-to-nobody", Package: "./sim", Run: "TestScripts/sleep_that_no_clock_shows",
		In:  "internal/node.Node.slept",
		Old: "s.member && !s.alone && d > s.limit {",
		New: "s.member && !s.alone && d > 1000*s.limit {",
	},
	{
		Name: "older-twin-yields", Package: "./membership", Run: "TestYoungerAndSmallerTwinYields",
		In:  "membership.others.elders",
		Old: "t.Birth < o.st.Birth ||",
		New: "t.Birth > o.st.Birth ||",
	},
	{
		Name: "strangers-make-a-twin-yield", Package: "./membership", Run: "TestYoungerAndSmallerTwinYields",
		In:  "membership.joining.onProbeAck",
		Old: "j.others.otherCluster(from.Addr, a.cluster, a.birth, false)",
		New: "j.others.otherCluster(from.Addr, a.cluster, a.birth, true)",
	},
	{
		Name: "all-down-remembers-nobody", Package: "./membership", Run: "TestRecordOfViews",
		In:  "membership.Record.Next",
		Old: "if v.ClusterID == 0 || !ok || self.Status == cluster.Down {",
		New: "if v.ClusterID == 0 || !ok || self.Status == cluster.Removed {",
	},
}
