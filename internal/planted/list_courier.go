// Planted bugs of the courier, and of what becomes of one that acknowledges nothing.

package main

var courierBugs = []bug{
	{
		Name: "acknowledged-beyond-a-gap", Seeds: 60,
		In:  "internal/courier.Machine.acknowledge",
		Old: "to: l.id.Inc, ack: l.got, gap:",
		New: "to: l.id.Inc, ack: l.got + uint64(len(l.held)), gap:",
	},
	{
		Name: "acknowledgement-counts-too-far", Package: "./internal/courier", Run: "TestOnceAndInOrder",
		In:  "internal/courier.Machine.acknowledged",
		Old: "l.sent, l.base = l.sent[n:], ack+1",
		New: "l.sent, l.base = l.sent[n:], ack+1\n\tif len(l.sent) > 1 {\n\t\tl.sent, l.base = l.sent[1:], " +
			"ack+2\n\t}",
	},
	{
		Name: "control-message-taken-twice", Seeds: 60,
		In:  "internal/courier.Machine.onSegment",
		Old: "case p.Seq <= l.got:\n\t\tm.stats.Duplicates++\n\t\tm.owe(l, 0)\n\tcase p.Seq == l.got+1:",
		New: "case p.Seq < l.got:\n\t\tm.stats.Duplicates++\n\t\tm.owe(l, 0)\n\tcase p.Seq == l.got+1 || " +
			"p.Seq == l.got:",
	},
	{
		Name: "control-message-taken-out-of-order", Seeds: 60,
		In:  "internal/courier.Machine.onSegment",
		Old: "case p.Seq == l.got+1:",
		New: "case p.Seq > l.got:",
	},
	{
		Name: "control-message-not-sent-again", Seeds: 60,
		In:   "internal/courier.Machine.resend",
		Drop: "m.repeat",
	},
	{
		Name: "only-the-first-batch-sent-again", Package: "./internal/courier", Run: "TestBrokenConnection",
		In:   "internal/courier.Machine.acknowledged",
		Drop: "m.repeat",
	},
	{
		Name: "incarnations-not-compared", Package: "./internal/courier", Run: "TestRestartBeginsAfresh",
		In:  "internal/courier.Machine.pairing",
		Old: "if from != id.Inc || to != m.self.Inc {",
		New: "if from == 0 || to == 0 {",
	},
	{
		Name: "stranger-acknowledged", Package: "./internal/courier", Run: "TestStrangerIsHeardWhenItIsKnown",
		In:  "internal/courier.Machine.link",
		Old: "if s == Absent {",
		New: "if s == Absent && id.Inc == 0 {",
	},
	{
		Name: "refused-message-stays-counted", Package: "./internal/courier", Run: "TestFullWindow",
		In:  "internal/courier.Machine.push",
		Old: "m.stats.Full++",
		New: "m.stats.Full++\n\t\tm.bytes += len(body)",
	},
	{
		Name: "what-is-under-way-is-said-again", Package: "./shard", Run: "TestWhatIsUnderWayIsNotRepeated",
		In:  "shard.timer.due",
		Old: "if m.underWay(to, t.set) {",
		New: "if m.underWay(to, -t.set) {",
	},
	{
		Name: "silence-of-the-unreachable-counts", Package: "./internal/courier", Run: "TestGivingUp",
		In:  "internal/courier.Machine.count",
		Old: "if l.standing == Present && len(l.sent) > 0 {",
		New: "if l.standing >= Doubted && len(l.sent) > 0 {",
	},
	{
		Name: "nobody-is-given-up", Package: "./sim", Run: "TestScripts/control_messages_never_arrive",
		In:   "internal/node.Node.Tick",
		Drop: "n.giveUp",
	},
	{
		Name: "first-of-too-many-is-quarantined", Package: "./sim", Run: "TestScripts/control_messages_of_one_lost_to_all",
		In:  "membership.watch.quarantine",
		Old: "(mine+1+max(c.Alike, 0))*2 > others {",
		New: "(mine+1)*2 > others {",
	},
	{
		Name: "observer-goes-with-the-quarantined", Package: "./sbr", Run: "TestQuarantinedIsUnreachable",
		In:   "sbr.look",
		Drop: "v.condemn",
	},
	{
		Name: "refusals-without-room-are-dropped", Package: "./internal/plane", Run: "TestRefusalsAreBounded",
		In:  "internal/plane.Refusals.Return",
		Old: "e.Count += r.Count",
		New: "e.Count++",
	},
	{
		Name: "half-a-batch-counts-as-sent-whole", Package: "./internal/flow", Run: "TestLinkCountsTells",
		In:  "internal/flow.Link.cut",
		Old: "tells++",
		New: "tells += 2",
	},
	{
		Name: "tells-of-a-late-credit-count-as-taken", Package: "./internal/flow", Run: "TestLinkCountsTells",
		In:  "internal/flow.tally.consume",
		Old: "t.flights[n].bytes <= bytes",
		New: "bytes > 0",
	},
	{
		Name: "word-of-the-receiver-comes-first", Package: "./internal/flow", Run: "TestFlightsInAnyOrder",
		In:  "internal/flow.Flights.Over",
		Old: "lost = c.less(f.taken[i].Tells)",
		New: "lost = 0",
	},
	{
		Name: "parked-tells-are-not-counted", Seeds: 60,
		In:   "internal/world.Region.forward",
		Drop: "l.flow.Count",
	},
	{
		Name: "a-lost-peer-tells-of-nothing", Package: "./internal/flow", Run: "TestFlights",
		In:  "internal/flow.Flights.End",
		Old: "unknown += f.flown[i].Unknown",
		New: "unknown += 0 * f.flown[i].Unknown",
	},
	{
		Name: "refusals-are-told-bare", Package: "./internal/driver", Run: "TestRefusalsSurviveCutConnections",
		In:  "internal/driver.links.tellRefusals",
		Old: "if n.notices.Load() && !over && t.inbox.post(",
		New: "if n.notices.Load() && over && t.inbox.post(",
	},
	{
		Name: "what-was-given-up-may-be-told-twice", Package: "./internal/check", Run: "TestRefusalCheckerCriesOut",
		In:  "internal/check.Checker.Told",
		Old: "r.told > r.refused {",
		New: "r.told > r.refused+r.untold {",
	},
	{
		Name: "notices-are-read-twice", Seeds: 60,
		In:  "internal/node.Node.receive",
		Old: "n.out.Notices = append(n.out.Notices, Received{from, d.Kind, d.Body})",
		New: "n.out.Notices = append(n.out.Notices, Received{from, d.Kind, d.Body}, Received{from, d.Kind, d.Body})",
	},
	{
		Name: "notices-without-room-are-forgotten", Seeds: 120,
		In:   "internal/world.Process.tellSurely",
		Drop: "p.gathered(to).list.Return",
	},
}
