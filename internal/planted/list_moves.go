// Planted bugs in moves: each is one mistake in the hand-over of a shard between nodes that live.

package main

// everyFault is the enumeration of faults over the steps of a move.
const everyFault = "TestMoveWithEveryFault"

var moveBugs = []bug{
	{
		Name: "no-marker-is-waited-for", Package: "./shard", Run: everyFault,
		In:  "shard.handing.check",
		Old: "if !o.got.Has(id) && m.met(id) {",
		New: "if len(o.got) == 0 && m.met(id) {",
	},
	{
		Name: "early-marker-is-dropped", Package: "./shard", Run: everyFault,
		In:  "shard.marked",
		Old: "g.hand.early[c.Shard] = e",
		New: "_ = g.hand.early",
	},
	{
		Name: "marker-of-any-move-counts", Package: "./shard", Run: "TestMove|TestChaosOfMoves",
		In:      "shard.marked",
		Without: "o.number == c.Number",
	},
	{
		Name: "marker-is-not-written-again", Package: "./shard", Run: everyFault,
		In:  "shard.markAgain",
		Old: "s.state == RouteMoving && s.home != nil && *s.home == to",
		New: "s.state == RouteMoving && s.home == nil",
	},
	{
		Name: "the-removed-are-to-mark", Package: "./shard", Run: "TestOnlyRemovalCountsAsMarked|" + everyFault,
		In:      "shard.handing.check",
		Without: "m.met(id)",
	},
	{
		Name: "callers-at-the-owner-go-on", Package: "./shard", Run: "TestMoveStepByStep|" + everyFault,
		In:  "shard.handing.begin",
		Old: "s.state, s.moved = RouteMoving, n",
		New: "s.moved = n\n\t\tdefer h.check(l.Shard)\n\t\treturn",
	},
	{
		Name: "a-new-reign-has-told-nobody", Package: "./shard", Run: everyFault + "|TestEverybodyCountsAsToldAfterATakeover",
		In:  "shard.moves.begin",
		Old: "if p != r.home && (!c.m.met(p.id) || !knew && !p.told.Has(s)) {",
		New: "if p != r.home && (!c.m.met(p.id) || knew || !p.told.Has(s)) {",
	},
	{
		Name: "nobody-is-told-to-park", Package: "./shard", Run: everyFault,
		In:  "shard.moves.begin",
		Old: "n.told.Add(p.id)",
		New: "_ = n.told",
	},
	{
		Name: "late-markers-hold-the-shard", Package: "./shard", Run: "TestMoveIsGivenUpWithoutMarkers|" + everyFault,
		In:  "shard.handing.tick",
		Old: "if !o.stops && m.now >= o.due {",
		New: "if !o.stops && m.now < 0 {",
	},
	{
		Name: "a-move-that-stops-is-given-up", Package: "./shard", Run: everyFault,
		In:  "shard.handing.stay",
		Old: "if o == nil || o.stops {",
		New: "if o == nil {",
	},
	{
		Name: "promise-keeps-moves", Package: "./shard", Run: "TestMoveUnderAnotherCoordinator|" + everyFault,
		In:  "shard.stayAll",
		Old: "t.region.hand.stay(s)",
		New: "_ = s",
	},
	{
		Name: "refused-transfer-is-lost", Package: "./shard", Run: "TestWhatIsNotTakenStays",
		In:  "shard.handing.onAck",
		Old: `h.keepHere(a.Shard, "it refused it")`,
		New: "h.give(a.Shard, o.to)",
	},
	{
		Name: "rest-is-dropped-when-the-next-owner-is-gone", Package: "./shard", Run: everyFault,
		In:  "shard.handing.keepHere",
		Old: "h.put(s, kept{f, o.left})",
		New: "",
	},
	{
		Name: "nobody-says-that-a-rest-is-not-taken", Package: "./shard", Run: "TestWhatIsNotTakenStays",
		In:  "shard.handing.keepHere",
		Old: "m.event(",
		New: "_ = (",
	},
	{
		Name: "move-that-came-back-is-done", Package: "./shard", Run: "TestWhatIsNotTakenStays",
		In:  "shard.moves.confirmed",
		Old: "if home == h.from {",
		New: "if home == h.to && home == h.from {",
	},
	{
		Name: "first-part-ends-a-transfer", Package: "./shard", Run: "TestMoveStepByStep",
		In:  "shard.handing.onAck",
		Old: "case int(a.Have) >= len(o.left):",
		New: "case int(a.Have) > 0:",
	},
	{
		Name: "transfer-is-sent-once", Package: "./shard", Run: everyFault,
		In:  "shard.handing.tick",
		Old: "o.sent = o.have",
		New: "",
	},
	{
		Name: "moves-have-one-number", Package: "./shard", Run: "TestMove|TestChaosOfMoves",
		In:  "shard.moves.begin",
		Old: "c.t.moves++",
		New: "c.t.moves = 1",
	},
	{
		Name: "numbers-begin-anew-with-a-reign", Package: "./shard", Run: "TestMoveNumbersSurviveAReign",
		In:  "shard.Machine.reign",
		Old: "t.coord = c",
		New: "t.coord = c\n\tt.moves = 0",
	},
	{
		Name: "kept-rest-is-not-reported", Package: "./shard", Run: "TestKeeperIsReported|" + everyFault,
		In:  "shard.coordinator.believe",
		Old: "c.moves.inherit(p, e.Shard, heir{id: p.id, keeps: true, fence: e.Fence})",
		New: "_ = e",
	},
	{
		Name: "moved-home-is-told-before-it-began", Package: "./shard", Run: everyFault,
		In:  "shard.moves.give",
		Old: "r.enter(c, s, starting)",
		New: "r.enter(c, s, starting)\n\tdefer c.confirm(s)",
	},
	{
		Name: "owner-repeats-no-answer", Package: "./shard", Run: everyFault,
		In:  "shard.handing.begin",
		Old: "h.tellMoved(f)",
		New: "_ = f",
	},
	{
		Name: "coordinator-repeats-no-move", Package: "./shard", Run: everyFault,
		In:  "shard.moves.repeat",
		Old: "p.outMove = append(p.outMove, s)",
		New: "_ = s",
	},
	{
		Name: "a-pause-of-rebalancing-is-not-heeded",
		In:   "shard.placing.regions",
		Old:  "v.Hold |= strategy.Paused", New: "_ = word",
		Package: "./shard", Run: "TestBalanceIsHeld",
	},
	{
		Name: "loads-of-some-regions-stand-for-all",
		In:   "shard.placing.weigh",
		Old:  "case cl.page.Since == 0: return", New: "case cl.page.Since == 0: continue",
		Package: "./shard", Run: "TestLoadsAreToldToWhoAsks",
	},
	{
		Name: "what-moves-to-a-region-is-not-counted-there",
		In:   "shard.moves.drain",
		Old:  "to.Coming++", New: "_ = to.Coming",
		Package: "./shard", Run: "TestStrategyDecidesWhoGetsAShard",
	},

	// Of the transfer of what was not worked off.
	{
		Name: "any-rest-is-taken-up", Package: "./shard", Run: "TestOnlyTheNamedRestIsTakenUp",
		In:  "shard.handing.keeps",
		Old: "k.fence == e.Rest",
		New: "k.fence.Compare(e.Fence) < 0",
	},
	{
		Name: "giver-forgets-the-holder", Package: "./shard", Run: "TestReportsNameTheHolder",
		In:  "shard.handing.restsOf",
		Old: "r.gave = append(r.gave, h.gave[s])",
		New: "_ = h.gave",
	},
	{
		Name: "rest-of-a-lost-owner-has-no-heir", Package: "./shard", Run: "TestRestOfALostOwnerIsTakenUp",
		In:  "shard.moves.released",
		Old: "h = heir{id: n.to, keeps: !stopped}",
		New: "if delete(mv.under, s); !stopped {\n\t\t\treturn\n\t\t}\n\t\th = heir{id: n.to}",
	},
	{
		Name: "late-transfer-is-kept", Package: "./shard", Run: "TestLateAndStaleTransfers",
		In:  "shard.handing.onPart",
		Old: "s.home != nil && p.Fence.Compare(s.fence) < 0",
		New: "p.Fence.IsZero()",
	},
	{
		Name: "rest-outlives-a-later-home", Package: "./shard", Run: "TestLateAndStaleTransfers",
		In:  "shard.handing.park",
		Old: "h.elsewhere(e.Shard, e.Fence)",
		New: "_ = h.elsewhere",
	},
	{
		Name: "rest-loses-its-asker", Package: "./entity", Run: "TestCutTakesWhatWaits",
		In:  "entity.activity.takeBatch",
		Old: "From: r.from, Corr: r.corr",
		New: "Corr: r.corr",
	},
	{
		Name: "batch-in-hand-is-not-taken", Package: "./entity", Run: "TestCutTakesWhatWaits",
		In:  "entity.activity.takeAll",
		Old: "a.takeBatch(b, from)",
		New: "a.takeBatch(b, max(from, len(b.records)))",
	},
	{
		Name: "message-before-new-is-not-taken", Package: "./entity", Run: "TestCutInTheMiddleOfARun",
		In:  "entity.activity.takeAll",
		Old: "from, a.step = from-1, between",
		New: "a.step = between",
	},
	{
		Name: "rest-comes-behind-a-message", Package: "./entity", Run: "TestResumeComesFirst",
		In:  "entity.Shard.deliverNew",
		Old: "takeUp(s)\n\t\treturn s.Deliver(s.now, m)",
		New: "defer takeUp(s)",
	},
	{
		Name: "rest-meets-the-bound-of-a-mailbox", Package: "./entity", Run: "TestResumeComesFirst",
		In:  "entity.takeUp",
		Old: "m.Parked = true",
		New: "m.Parked = false",
	},
	{
		Name: "anybody-answers-what-was-handed-over", Package: "./internal/plane", Run: "TestWhoMayAnswer",
		In:      "internal/plane.Heirs.May",
		Without: "e.to == from",
	},
	{
		Name: "deadline-of-a-move-is-not-looked-at", Package: "./internal/exec", Run: "TestHostIsCut",
		In:  "internal/exec.goesOn",
		Old: "return !h.closed.Load() || r.last && !h.end.lost.Load()",
		New: "return !h.end.lost.Load()",
	},
	{
		Name: "round-keeps-its-node-awake", Package: "./shard", Run: "TestRoundThatOutlastsItsInterval",
		In:  "shard.moves.balance",
		Old: "p.at != 0 && m.now < p.at {",
		New: "p.at != 0 && m.now < p.at || len(p.plan) > 0 {",
	},
	{
		Name: "what-waits-for-a-move-expires", Package: "./internal/driver", Run: "TestParkedInAMoveNeverExpire",
		In:  "internal/flow.Slot.Leave",
		Old: "s.moves = true",
		New: "",
	},
	{
		Name: "a-stuck-move-stops-the-balance", Package: "./shard", Run: "TestStuckMoveHoldsUpNoBalance",
		In:  "shard.moves.stuck",
		Old: "return n != nil && mv.c.m.now >= n.began+stuckAfter",
		New: "return n != nil && mv.c.m.now >= n.began+60*stuckAfter",
	},
	{
		Name: "a-move-to-nobody-is-asked-for", Package: "./shard", Run: "TestMoveByHandToNobody",
		In:  "shard.askMove",
		Old: "cmd.To.Addr.IsZero() || cmd.To.Inc == 0",
		New: "cmd.To.Addr.IsZero() && cmd.To.Inc == 1",
	},
	{
		Name: "unready-region-is-given-shards", Seeds: 20,
		In:  "shard.placing.regions",
		Old: "NotReady: cl.unready",
		New: "NotReady: cl.unready && cl.drains",
	},
	{
		Name: "balance-goes-on-though-paused", Seeds: 60,
		In:  "shard.placing.regions",
		Old: "v.Hold |= strategy.Paused",
		New: "v.Hold |= 0",
	},
	{
		Name: "who-a-move-was-for-need-not-be-ready", Package: "./shard", Run: "TestWhatIsLeftGoesToWhoIsNotReady",
		In:      "shard.moves.serve",
		Without: "to.Eligible()",
	},
	{
		Name: "who-is-not-ready-does-not-get-its-rest", Package: "./shard", Run: "TestWhatIsLeftGoesToWhoIsNotReady",
		In:  "shard.moves.serve",
		Old: "case h.keeps && known &&",
		New: "case h.keeps && known && !c.clients[i].unready &&",
	},
	{
		Name: "nobody-asks-whether-the-last-owner-is-lost", Package: "./internal/check", Run: "TestHeirsNeedNotBeReady",
		In:      "internal/check.heirs.due",
		Without: "silenced(c, x.from)",
	},
	{
		Name: "load-is-made-even-at-any-price", Package: "./shard/strategy", Run: "TestLoadAwareMovesFew",
		In:  "shard/strategy.plan.round",
		Old: "most := 2 * least", New: "most := 4 * least",
	},
	{
		Name: "no-other-first-move-is-tried", Package: "./shard/strategy", Run: "TestLoadAwareEndsEven",
		In:  "shard/strategy.plan.round",
		Old: "best = p.otherwise(best)", New: "_ = p.otherwise",
	},
	{
		Name: "unready-counts-as-eligible", Seeds: 20,
		In:  "shard/strategy.Region.Why",
		Old: "case r.NotReady:",
		New: "case r.NotReady && r.Draining:",
	},
}
