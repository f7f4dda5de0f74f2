// Planted bugs of the courier, and of what becomes of one that acknowledges nothing.

package main

var courierBugs = []bug{
	{
		Name: "acknowledged-beyond-a-gap", Seeds: 60,
		File: "internal/courier/receive.go",
		Old:  "to: l.id.Inc, ack: l.got, gap:",
		New:  "to: l.id.Inc, ack: l.got + uint64(len(l.held)), gap:",
	},
	{
		Name: "acknowledgement-counts-too-far", Package: "./internal/courier", Run: "TestOnceAndInOrder",
		File: "internal/courier/send.go",
		Old:  "\tl.sent, l.base = l.sent[n:], ack+1\n",
		New:  "\tl.sent, l.base = l.sent[n:], ack+1\n\tif len(l.sent) > 1 {\n\t\tl.sent, l.base = l.sent[1:], ack+2\n\t}\n",
	},
	{
		Name: "control-message-taken-twice", Seeds: 60,
		File: "internal/courier/receive.go",
		Old:  "\tcase p.Seq <= l.got:\n\t\tm.stats.Duplicates++\n\t\tm.owe(l, 0)\n\tcase p.Seq == l.got+1:\n",
		New: "\tcase p.Seq < l.got:\n\t\tm.stats.Duplicates++\n\t\tm.owe(l, 0)\n" +
			"\tcase p.Seq == l.got+1 || p.Seq == l.got:\n",
	},
	{
		Name: "control-message-taken-out-of-order", Seeds: 60,
		File: "internal/courier/receive.go",
		Old:  "\tcase p.Seq == l.got+1:\n",
		New:  "\tcase p.Seq > l.got:\n",
	},
	{
		Name: "control-message-not-sent-again", Seeds: 60,
		File: "internal/courier/send.go",
		Old:  "\tl.batch, l.recovery, l.resent = firstBatch, l.last(), l.base-1\n\tm.repeat(l)\n",
		New:  "\tl.batch, l.recovery, l.resent = firstBatch, l.last(), l.base-1\n",
	},
	{
		Name: "only-the-first-batch-sent-again", Package: "./internal/courier", Run: "TestBrokenConnection",
		File: "internal/courier/send.go",
		Old:  "\t\tl.batch = min(2*l.batch, maxBatch)\n\t\tm.repeat(l)\n",
		New:  "\t\tl.batch = min(2*l.batch, maxBatch)\n",
	},
	{
		Name: "incarnations-not-compared", Package: "./internal/courier", Run: "TestRestartBeginsAfresh",
		File: "internal/courier/receive.go",
		Old:  "\tif from != id.Inc || to != m.self.Inc {\n",
		New:  "\tif from == 0 || to == 0 {\n",
	},
	{
		Name: "stranger-acknowledged", Package: "./internal/courier", Run: "TestStrangerIsHeardWhenItIsKnown",
		File: "internal/courier/machine.go",
		Old:  "\t\tif s == Absent {\n\t\t\treturn nil\n\t\t}\n",
		New:  "\t\tif s == Absent && id.Inc == 0 {\n\t\t\treturn nil\n\t\t}\n",
	},
	{
		Name: "refused-message-stays-counted", Package: "./internal/courier", Run: "TestFullWindow",
		File: "internal/courier/send.go",
		Old:  "\t\tm.stats.Full++\n",
		New:  "\t\tm.stats.Full++\n\t\tm.bytes += len(body)\n",
	},
	{
		Name: "what-is-under-way-is-said-again", Package: "./shard", Run: "TestWhatIsUnderWayIsNotRepeated",
		File: "shard/region.go",
		Old:  "\tif m.underWay(to, t.set) {\n",
		New:  "\tif m.underWay(to, -t.set) {\n",
	},
	{
		Name: "silence-of-the-unreachable-counts", Package: "./internal/courier", Run: "TestGivingUp",
		File: "internal/courier/send.go",
		Old:  "\tif l.standing == Present && len(l.sent) > 0 {\n\t\tl.waited +=",
		New:  "\tif l.standing >= Doubted && len(l.sent) > 0 {\n\t\tl.waited +=",
	},
	{
		Name: "nobody-is-given-up", Package: "./sim", Run: "TestScripts/control_messages_never_arrive",
		File: "internal/node/node.go",
		Old:  "\tn.giveUp(n.courier.Peek().GaveUp)\n",
		New:  "",
	},
	{
		Name: "first-of-too-many-is-quarantined", Package: "./sim", Run: "TestScripts/control_messages_of_one_lost_to_all",
		File: "membership/quarantine.go",
		Old:  "(mine+1+max(c.Alike, 0))*2 > others {",
		New:  "(mine+1)*2 > others {",
	},
	{
		Name: "observer-goes-with-the-quarantined", Package: "./sbr", Run: "TestQuarantinedIsUnreachable",
		File: "sbr/survey.go",
		Old:  "\tv.condemn()\n",
		New:  "",
	},
}
