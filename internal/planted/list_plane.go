// Planted bugs of what a node does with a message beyond the fast path: driver and simulator ride the same, so storms
// find those that lose a message or leave a shard without an answer.

package main

var planeBugs = []bug{
	{
		Name: "parked-dropped-where-there-is-no-room", Seeds: 60,
		In:  "internal/plane.Drain",
		Old: "case Sent:",
		New: "case Sent, NoRoom:",
	},
	{
		Name: "parked-lost-with-a-home-that-is-gone", Seeds: 60,
		In:  "internal/plane.Drain",
		Old: "s.Reset()",
		New: "s.PopParked()\n\t\t\ts.Reset()",
	},
	{
		Name: "large-message-comes-back-after-its-envelope", Seeds: 60,
		In:  "internal/flow.largeSteps",
		Old: "LargeSent:   {-1, -1, -1, -1,",
		New: "LargeSent:   {-1, -1, -1, int8(LargeWaits),",
	},
	{
		Name: "large-message-keeps-its-payload-at-the-old-home", Seeds: 60,
		In:  "internal/plane.Large.Forward",
		Old: "if l.at != at || l.term != term || l.epoch != epoch {",
		New: "if l.at == (peer.ID{}) {",
	},
	{
		Name: "large-message-holds-an-open-slot-and-nobody-drains-it", Seeds: 60,
		In:  "internal/plane.Hold",
		Old: "if open {\n\t\treturn Flush, nil\n\t}",
		New: "_ = open",
	},
	{
		Name: "large-message-given-up-like-a-small-one", Seeds: 60,
		In:  "internal/plane.GiveUp",
		Old: "return UnsentLarge",
		New: "return UnsentTell",
	},
	{
		Name: "a-dead-end-stays-open", Seeds: 60,
		In:  "internal/plane.Rehome",
		Old: "if Leads(s, at, term, epoch) {\n\t\ts.Reset()\n\t}",
		New: "",
	},
	{
		Name: "what-waits-too-long-waits-on", Seeds: 60,
		In:  "internal/plane.Expire",
		Old: "s.Expire(now, fail)",
		New: "_, _ = now, fail",
	},
	{
		Name: "a-slot-is-looked-after-once", Seeds: 60,
		In:   "internal/plane.agendaList.take",
		Drop: "clear",
	},
	{
		Name: "large-message-lost-with-a-home-that-is-left", Seeds: 60,
		In:  "internal/plane.Again",
		Old: "(WrongHome(why) || why == route.PeerLost && moved)",
		New: "why == route.PeerLost && moved",
	},
	{
		Name: "wrong-home-goes-on", Seeds: 60,
		In:  "internal/plane.WrongHome",
		Old: "return why == route.NotOwner || why == route.NotRegistered || why == route.ShardStopping",
		New: "return why == route.NotRegistered",
	},
	{
		Name: "refusals-of-equal-reasons-twice-to-an-older-peer", Package: "./internal/plane", Run: "TestRefusalsAreSpoken",
		In:  "internal/plane.SpokenRefusals",
		Old: "continue",
		New: "",
	},
	{
		Name: "waiter-used-again-under-the-same-number", Seeds: 60,
		In:  "internal/plane.Asks.End",
		Old: "a.generation++",
		New: "",
	},
	{
		Name: "late-answer-taken", Seeds: 60,
		In:  "internal/plane.AskState.Judge",
		Old: "case s != Waiting(corr):",
		New: "case s != Waiting(corr) && s != Waiting(corr).Settled():",
	},
	{
		Name: "wheel-forgets-who-stood-behind-an-answered-ask", Seeds: 60,
		In:  "internal/plane.askWheel.remove",
		Old: "h.slots[a.due%wheelSlots] = a.next",
		New: "h.slots[a.due%wheelSlots] = nil",
	},
	{
		Name: "ask-over-before-its-time", Seeds: 60,
		In:  "internal/plane.WheelTicks",
		Old: "return int64((d-1)/WheelTick) + 2",
		New: "return int64(d / WheelTick)",
	},
	{
		Name: "ask-of-a-later-turn-of-the-wheel-is-over-now", Seeds: 60,
		In:  "internal/plane.askWheel.advance",
		Old: "if a.due <= tick {",
		New: "if a.due%wheelSlots <= tick%wheelSlots {",
	},
	{
		Name: "sleep-that-the-node-was-not-told-of-opens-the-gate", Package: "./internal/plane", Run: "TestGate",
		In:  "internal/plane.Judged",
		Old: "if untold {",
		New: "if untold && suspended {",
	},
	{
		Name: "refused-ask-is-reported", Seeds: 60,
		In:  "internal/plane.HearerOf",
		Old: "case flags&wire.FlagAsk != 0:",
		New: "case flags&wire.FlagAsk != 0 && flags&wire.FlagParked != 0:",
	},
	{
		Name: "limit-of-a-refused-ask-misread", Seeds: 60,
		In:  "internal/plane.ParseLimit",
		Old: "limit = limit*10 + int(c-'0')",
		New: "limit = limit*10 + int(c)",
	},
	{
		Name: "refusals-without-their-limit", Seeds: 60,
		In:  "internal/plane.AppendRefusals",
		Old: "if limits {\n\t\t\tb = wire.AppendUvarint(b, uint64(e.Limit))\n\t\t}",
		New: "",
	},
	{
		Name: "abandoned-without-a-word", Seeds: 60,
		In:  "entity.Shard.discardBatch",
		Old: "s.runtime.Unhandled(e, why, r.from != nil, payload)",
		New: "if _ = payload; why != route.Abandoned {\n" +
			"\t\t\ts.runtime.Unhandled(e, why, r.from != nil, payload)\n\t\t}",
	},
	{
		Name: "what-waits-behind-a-handler-is-forgotten", Package: "./entity", Run: "TestHostLaws",
		In:   "entity.Shard.LeaveBehind",
		Drop: "s.discardBatch",
	},
	{
		Name: "last-refusals-are-not-flushed", Package: "./internal/driver", Run: "TestLastRefusalsAreTold",
		In:  "internal/driver.Driver.shutdown",
		Old: "d.heed()\n\td.tellRefusals(true)",
		New: "d.heed()",
	},
	{
		Name: "the-second-parked-message-waits-for-ever", Package: "./internal/plane", Run: "TestParkTimeHoldsForEachMessage",
		In:   "internal/flow.Slot.pop",
		Drop: "s.set",
	},
	{
		Name: "has-room-is-never-said", Seeds: 10,
		In:  "entity.relieve",
		Old: "to.Room(t, s.id, hash)",
		New: "_, _, _ = to, t, hash",
	},
	{
		Name: "room-of-others-is-taken-here", Package: "./entity", Run: "TestSenderHereWaitsWithTheOthers",
		In:  "entity.Entity.press",
		Old: "over || e.act.pressed()",
		New: "over",
	},
	{
		Name: "full-outlives-its-connection", Seeds: 60,
		In:  "internal/flow.Pressed.Clear",
		Old: "*p = Pressed{}",
		New: "",
	},
	{
		Name: "shard-of-a-full-entity-is-another-one", Package: "./internal/flow", Run: "TestPressureLaw",
		In:  "internal/flow.Pressed.put",
		Old: "f.Shard%64",
		New: "f.Shard%63",
	},
	{
		Name: "full-is-never-said", Seeds: 10,
		In:  "internal/flow.Pressing.Append",
		Old: "e.full && !e.said",
		New: "at > 0",
	},
	{
		Name: "marker-overtakes-what-cannot-wait", Package: "./internal/plane", Run: "TestMarkBehindWhatCannotWait",
		In:  "internal/plane.Mark",
		Old: "case large || s == nil || !s.Fits(frames, bytes):\n\t\treturn nil, Rest, l.AppendMarker(m)",
		New: "case large || s == nil || !s.Fits(frames, bytes):\n\t\treturn nil, Rest, l.ExpressMarker(m)",
	},
	{
		Name: "withdrawn-tells-count-as-sent", Package: "./internal/flow", Run: "TestWithdrawLaw",
		In:  "internal/flow.Link.Withdraw",
		Old: "l.tally.gathered -= tells",
		New: "",
	},
	{
		Name: "shards-of-other-types-are-withdrawn", Seeds: 30,
		In:  "internal/flow.of",
		Old: "ok && t == typ && s == shard",
		New: "ok && (t == typ || true) && s == shard",
	},
	{
		Name: "what-waited-is-dropped", Seeds: 5, First: 363602555411, Accounts: true,
		In:  "internal/flow.Slot.PutFirst",
		Old: "old != nil && old.Len() > 0",
		New: "old != nil && old.Len() < 0",
	},
	{
		Name: "withdrawn-stands-behind-what-waits", Seeds: 30,
		In:  "internal/flow.Slot.PutFirst",
		Old: "s.queue = ringbuf.NewQueue(s.park.bytes)\n\ttake(",
		New: "if old == nil {\n\t\ts.queue = ringbuf.NewQueue(s.park.bytes)\n\t}\n\told = nil\n\ttake(",
	},
	{
		Name: "withdrawn-is-sent-as-well", Seeds: 30,
		In:  "internal/flow.Link.Withdraw",
		Old: "n < l.q.Len()",
		New: "n < 0",
	},
	{
		Name: "withdrawn-is-lost", Seeds: 30,
		In:   "internal/flow.withdraw",
		Drop: "f",
	},
	{
		Name: "withdrawn-takes-too-little-room", Seeds: 30,
		In:  "internal/flow.Slot.PutFirst",
		Old: "bytes+records*ParkOverhead",
		New: "bytes",
	},
}
