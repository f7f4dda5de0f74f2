// Planted bugs in states that move with their entities: each loses one, doubles it, or asks for it at the wrong time.

package main

var stateBugs = []bug{
	{
		Name: "leaver-stops-when-a-move-is-given-up", Package: "./shard", Run: "TestLeaverMovesWhenItCan",
		In:  "shard.moves.aborted",
		Old: "c.confirm(e.Shard)",
		New: "c.confirm(e.Shard)\n\t\tif r.home.drains {\n\t\t\tc.haltShard(e.Shard)\n\t\t}",
	},
	{
		Name: "leaver-stops-what-cannot-move-now", Package: "./shard", Run: "TestLeaverMovesWhenItCan",
		In:  "shard.moves.drain",
		Old: "halts := p.drains && mv.nobodyTakes(p)",
		New: "halts := p.drains",
	},
	{
		Name: "leaver-has-five-seconds", Package: "./shard", Run: "TestLeaverWaitsForItsEntities|TestLeaveIsOver",
		In:  "shard.Machine.beginLeave",
		Old: "cmp.Or(c.Within, m.cfg.DrainPatience)",
		New: "cmp.Or(m.cfg.DrainPatience, c.Within)",
	},
	{
		Name: "stopped-states-are-lost-in-silence", Package: ".", Run: "TestLeaveTellsWhatItLoses",
		In:   "internal/exec.askForStates",
		Drop: "entity.LoseStates",
	},
	{
		Name: "storm-sees-no-silent-loss", Seeds: 60,
		In:   "internal/world.hosted.stop",
		Drop: "entity.LoseStates",
	},
	{
		Name: "states-of-a-lost-move-are-not-told", Package: "./entity", Run: "TestStatesThatNobodyIsGivenAreTold",
		In:   "entity.Shard.discard",
		Drop: "leaveState",
	},
	{
		Name: "drain-of-a-downed-node-is-done", Package: ".", Run: "TestVerbsEndWithTheirNode",
		In:      "internal/driver.drainWaits.note",
		Without: "node.Over(n)",
	},
	{
		Name: "state-waits-behind-an-expired-ask", Package: "./entity", Run: "TestStateBehindAnExpiredAsk",
		In:  "entity.passOut",
		Old: "!p.tried {",
		New: "false {",
	},
	{
		Name: "state-is-asked-for-without-a-move", Package: "./entity", Run: "TestStateIsAskedForOnlyInAMove",
		In:  "entity.asks",
		Old: "if !asked(c) || why != StopMoved && why != StopLeaving {",
		New: "if _ = asked; why != StopMoved && why != StopLeaving {",
	},
	{
		Name: "message-comes-before-the-state", Package: "./entity", Run: "TestStateMovesWithItsEntity",
		In:  "entity.instantiate",
		Old: "|| !inherit(c, h, failed)",
		New: "",
	},
	{
		Name: "state-is-taken-up-again", Package: "./entity", Run: "TestStateThatIsRefused",
		In:  "entity.inherit",
		Old: "delete(c.s.moving.in, st.ID)",
		New: "",
	},
	{
		Name: "states-have-no-bound", Package: "./entity", Run: "TestStateThatIsNotHandedOver",
		In:  "entity.give",
		Old: "case st.Size() > g.room-g.size:",
		New: "case st.Size() < 0:",
	},
	{
		Name: "refused-state-leaves-an-instance", Package: "./entity", Run: "TestStateThatIsRefused",
		In:  "entity.inherit",
		Old: "if !callTakeUp(c, to, b, failed) {\n\t\treturn false\n\t}",
		New: "if !callTakeUp(c, to, b, failed) {\n\t\treturn true\n\t}",
	},
	{
		Name: "state-goes-with-an-instance-that-failed", Package: "./entity", Run: "TestStateThatWaits",
		In:  "entity.passOut",
		Old: "g.in[st.ID] = st",
		New: "",
	},
	{
		Name: "state-that-nobody-takes-holds-the-budget", Package: "./entity", Run: "TestStateThatNobodyTakes",
		In:  "entity.passOut",
		Old: "st.countsNoMore(s)",
		New: "",
	},
	{
		Name: "state-of-one-that-rests-holds-the-budget", Package: "./entity", Run: "TestStateThatNobodyTakes",
		In:  "entity.beginStates",
		Old: "!beginOne(s, st.ID) && g.in[st.ID] == st",
		New: "!beginOne(s, st.ID) && false",
	},
	{
		Name: "waiting-state-stays-behind", Package: "./entity", Run: "TestStateThatWaits",
		In:  "entity.rest",
		Old: "all = append(all, st.State)",
		New: "",
	},
	{
		Name: "entity-with-a-state-waits-for-a-message", Package: "./entity", Run: "TestTakeUpSetsTimers",
		In:  "entity.Shard.Tick",
		Old: "beginStates(s, stopAtOnce)",
		New: "",
	},
	{
		Name: "states-have-all-the-room", Package: "./internal/plane", Run: "TestStateRoom",
		In:  "internal/plane.StateRoom",
		Old: "room > 0",
		New: "room < 0",
	},
	{
		Name: "entity-has-two-states", Package: "./internal/plane", Run: "TestStatesTravel",
		In:      "internal/plane.readStates",
		Without: "seen[st.ID]",
	},
	{
		Name: "earlier-version-is-given-states", Package: "./shard", Run: "TestNextOwnerWithoutStates",
		In:  "shard.handing.check",
		Old: "if takesStates(m, o.to) {",
		New: "if o.to != m.self {",
	},
	{
		Name: "states-are-sent-to-who-cannot-read-them", Package: "./shard", Run: "TestNextOwnerWithoutStates",
		In:  "shard.handing.sendParts",
		Old: `why = "it speaks a version without states"`,
		New: "",
	},
	{
		Name: "rest-of-any-owner-is-taken-up", Package: "./shard", Run: "TestOnlyTheNamedRestIsTakenUp",
		In:  "shard.handing.take",
		Old: "if h.keeps(e) {",
		New: "if len(h.kept[e.Shard].bytes) > 0 {",
	},
	{
		Name: "states-are-held-against-who-has-lost-their-owner", Package: "./internal/storm", Run: "TestStatesOfTheLost",
		In:  "internal/check.RestLost",
		Old: "c.pairs.apart(p, owner) ||",
		New: "",
	},
	{
		Name: "loss-of-who-had-a-rest-excuses-all-later-ones", Package: "./internal/storm", Run: "TestStatesOfTheLost",
		In:  "internal/check.RestLost",
		Old: "x.gave.Compare(f) >= 0 &&",
		New: "",
	},

	// What follows breaks the law of states in a storm: none is lost without a fault, none is taken up twice or late.
	{
		Name: "states-that-were-given-stay-behind", Seeds: 20,
		In:  "entity.rest",
		Old: "all = append(all, g.out...)",
		New: "",
	},
	{
		Name: "states-have-the-bytes-of-the-first", Seeds: 20,
		In:  "entity.bring",
		Old: "list[i].Bytes...",
		New: "list[0].Bytes...",
	},
	{
		Name: "state-of-a-run-comes-again", Seeds: 20,
		In:  "entity.passOut",
		Old: "case p.taken:",
		New: "case p.taken && s.phase == abandoned:",
	},
	{
		Name: "state-comes-to-every-instance", Seeds: 20,
		In:   "entity.inherit",
		Drop: "delete",
	},
	{
		Name: "hand-over-forgets-now-and-then", Package: "./internal/command", Run: "TestRollingRestartCarriesStates",
		In:  "entity.give",
		Old: "g.out, g.size = append(g.out, st), g.size+st.Size()",
		New: "if s.stats.HandedOver%8 != 7 {\n\t\tg.out, g.size = append(g.out, st), g.size+st.Size()\n\t}",
	},
	{
		Name: "transfers-have-no-window", Package: "./sim", Run: "TestLeaveOverSlowLinks",
		In:  "shard.sendOn",
		Old: "min(maxUnsure-unsure[o.to], maxUnsureAll-all)",
		New: "1<<30",
	},
	{
		Name: "full-receiver-refuses", Package: "./shard", Run: "TestTransferWaitsForRoom",
		In:  "shard.handing.onPart",
		Old: "full && !speaksCosts(m, from)",
		New: "full",
	},
	{
		Name: "no-room-is-asked-for", Package: "./shard", Run: "TestTransferWaitsForRoom",
		In:  "shard.handing.sendParts",
		Old: "if o.have == 0 && len(o.left) > sendPart {",
		New: "if o.have < 0 {",
	},
	{
		Name: "room-of-the-gone-is-kept", Package: "./shard", Run: "TestRoomOfAnOwnerThatIsGone",
		In:  "shard.handing.review",
		Old: `if h.takesNothing(c.from) != "" {`,
		New: "if c == nil {",
	},
	{
		Name: "moves-have-no-pace", Package: "./shard", Run: "TestOthersAreServedMeanwhile|TestLargeStatesMoveOnce",
		In:  "shard.moves.crowded",
		Old: "p.under > 0 && p.under+mv.expected() > max(p.most(), least)",
		New: "p.under < 0",
	},
	{
		Name: "reign-keeps-the-bytes-of-its-moves", Package: "./shard", Run: "TestCostOfNoMove",
		In:  "shard.Machine.endCoordinator",
		Old: "t.coord.moves.leave()",
		New: "",
	},
	{
		Name: "slow-path-is-a-loss", Package: "./internal/courier", Run: "TestSlowPathIsNotRepeated",
		In:  "internal/courier.Machine.acknowledged",
		Old: "l.timed(m.now - l.sent[n-1].posted)",
		New: "",
	},
	{
		Name: "what-has-arrived-is-repeated", Package: "./internal/courier",
		Run: "TestWhatIsOnItsWayIsNotRepeated",
		In:  "internal/courier.Machine.acknowledged",
		Old: "l.recovery = min(l.recovery, ack)",
		New: "",
	},
	{
		Name: "heartbeats-wait-for-segments", Package: "./internal/transport",
		Run: "TestSegmentsGoBehind|TestHeartbeatsGoBeforeSegments",
		In:  "internal/transport.mailQueue.reserve",
		Old: "if kind == wire.KindSegment {",
		New: "if kind == 0 {",
	},
	{
		Name: "record-holds-what-is-handed-over", Package: "./sim", Run: "TestRecordsGoOnBehindHandOvers",
		In:  "internal/flight.freezeBare",
		Old: "appendBare(nil, n, limit)",
		New: "appendValue(nil, n, limit)",
	},
}
