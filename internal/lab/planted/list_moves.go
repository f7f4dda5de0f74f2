// The part of the list that is about how a shard moves.

package main

// moveBugs break the rules of docs/contributing/model.md.
var moveBugs = []bug{
	{
		Name: "early-marker-is-dropped", Rules: "early-markers", Package: "./shard", Run: "TestMoveWithEveryFault",
		In: "shard.marked", Old: "g.hand.early[c.Shard] = e", New: "_ = g.hand.early",
	},
	{
		Name: "marker-of-any-move-counts", Rules: "numbered-markers",
		Package: "./shard", Run: "TestMove|TestChaosOfMoves",
		In: "shard.marked", Without: "o.number == c.Number",
	},
	{
		Name: "numbers-begin-anew-with-a-reign", Rules: "sequences-survive",
		Package: "./shard", Run: "TestMoveNumbersSurviveAReign",
		In: "shard.Machine.beginTerm", Old: "t.coord = c", New: "t.coord = c; t.moves = 0",
	},
	{
		Name: "marker-is-not-written-again", Rules: "resent-markers",
		Package: "./shard", Run: "TestMoveWithEveryFault",
		In:  "shard.markAgain",
		Old: "s.state == RouteMoving && s.home != nil && *s.home == to",
		New: "s.state == RouteMoving && s.home == nil",
	},
	{
		Name: "the-removed-are-to-mark", Rules: "removal-marks",
		Package: "./shard", Run: "TestOnlyRemovalCountsAsMarked|TestMoveWithEveryFault",
		In: "shard.handoffs.check", Without: "m.met(id)",
	},
	{
		Name: "no-marker-is-waited-for", Rules: "all-markers", Package: "./shard", Run: "TestMoveWithEveryFault",
		In:  "shard.handoffs.check",
		Old: "if !o.got.Has(id) && m.met(id) {", New: "if len(o.got) == 0 && m.met(id) {",
	},
	{
		Name: "marker-overtakes-what-cannot-wait", Rules: "markers-behind-large",
		Package: "./internal/core/plane", Run: "TestMarkBehindWhatCannotWait",
		In:  "internal/core/plane.Mark",
		Old: "large || s == nil: return nil, Rest, l.AppendMarker(m)",
		New: "large || s == nil: return nil, Rest, l.ExpressMarker(m)",
	},
	{
		Name: "marker-waits-for-room-in-a-full-slot", Rules: "liveness",
		Package: "./internal/core/plane", Run: "TestMarkOvertakesTheBacklog",
		In:  "internal/core/flow.Slot.PutFirst",
		Old: "if s.state.Open() {",
		New: "if _, b := s.Parked(); s.state.Open() || bytes > s.park.bytes-b {",
	},
	{
		Name: "slot-stays-open-beside-a-large-message", Rules: "large-holds", Seeds: 60,
		In:  "internal/core/flow.Slot.Hold",
		Old: "if s.state.Open() {", New: "if false {",
	},
	{
		Name: "callers-at-the-owner-go-on", Rules: "own-callers-park",
		Package: "./shard", Run: "TestMoveStepByStep|TestMoveWithEveryFault",
		In:  "shard.handoffs.begin",
		Old: "s.state, s.moved = RouteMoving, n",
		New: "s.moved = n; defer h.check(l.Shard); return",
	},
	{
		Name: "deadline-of-a-move-is-not-looked-at", Rules: "deadline",
		Package: "./internal/runtime/exec", Run: "TestHostIsCut",
		In:  "internal/runtime/exec.goesOn",
		Old: "return !h.closed.Load() || r.last && !h.end.lost.Load()", New: "return !h.end.lost.Load()",
	},
	{
		Name: "mailbox-forgotten-after-a-run", Rules: "worked-off lost", Seeds: 60,
		In: "entity.Entity.End", Without: "a.head != nil",
	},
	{
		Name: "rest-loses-its-asker", Rules: "transfer-names-asker",
		Package: "./entity", Run: "TestCutTakesWhatWaits",
		In: "entity.takeBatch", Old: "From: r.from, Corr: r.corr", New: "Corr: r.corr",
	},
	{
		Name: "rest-comes-behind-a-message", Rules: "transfer-first",
		Package: "./entity", Run: "TestResumeComesFirst",
		In:  "entity.Shard.deliverNew",
		Old: "takeUp(s) return s.Deliver(s.now, m)", New: "defer takeUp(s)",
	},
	{
		Name: "any-rest-is-taken-up", Rules: "named-transfers",
		Package: "./shard", Run: "TestOnlyTheNamedRestIsTakenUp",
		In: "shard.handoffs.keeps", Old: "k.fence == e.Rest", New: "k.fence.Compare(e.Fence) < 0",
	},
	{
		Name: "rest-outlives-a-later-home", Rules: "stale-transfers",
		Package: "./shard", Run: "TestLateAndStaleTransfers",
		In: "shard.handoffs.park", Old: "h.elsewhere(e.Shard, e.Fence)", New: "_ = h.elsewhere",
	},
	{
		Name: "late-transfer-is-kept", Rules: "late-transfers",
		Package: "./shard", Run: "TestLateAndStaleTransfers",
		In: "shard.handoffs.onPart", Old: "s.home != nil && p.Fence.Compare(s.fence) < 0", New: "p.Fence.IsZero()",
	},
	{
		Name: "giver-forgets-the-holder", Rules: "reports-name-holder",
		Package: "./shard", Run: "TestReportsNameTheHolder",
		In: "shard.handoffs.restsOf", Old: "r.gave = append(r.gave, h.handedOff[s])", New: "_ = h.handedOff",
	},
	{
		Name: "rest-of-a-lost-owner-has-no-heir", Rules: "names-holder",
		Package: "./shard", Run: "TestRestOfALostOwnerIsTakenUp",
		In:  "shard.moves.released",
		Old: "h = heir{id: n.to, keeps: !stopped}", New: "_, _ = h, stopped",
	},
	{
		Name: "kept-rest-is-not-reported", Rules: "home-for-transfer",
		Package: "./shard", Run: "TestKeeperIsReported|TestMoveWithEveryFault",
		In:  "shard.coordinator.believe",
		Old: "c.moves.inherit(p, e.Shard, heir{id: p.id, keeps: true, fence: e.Fence})", New: "_ = e",
	},
	{
		Name: "refused-transfer-is-lost", Rules: "refusal-returns",
		Package: "./shard", Run: "TestWhatIsNotTakenStays",
		In: "shard.handoffs.onAck", Old: `h.keepHere(a.Shard, "it refused it")`, New: "h.give(a.Shard, o.to)",
	},
	{
		Name: "later-message-overtakes-the-parked", Rules: "park-behind order", Seeds: 60,
		In: "internal/core/flow.Slot.OpenIfDrained", Without: "s.queue != nil",
	},
	{
		Name: "rest-meets-the-bound-of-a-mailbox", Rules: "parked-never-refused",
		Package: "./entity", Run: "TestResumeComesFirst",
		In: "entity.takeUp", Old: "m.Parked = true", New: "m.Parked = false",
	},
	{
		Name: "what-waits-for-a-move-expires", Rules: "parked-never-expire",
		Package: "./internal/runtime/driver", Run: "TestParkedInAMoveNeverExpire",
		In: "internal/core/flow.Slot.Leave", Old: "s.moves = true", New: "",
	},
	{
		Name: "a-move-that-stops-is-given-up", Rules: "confirmed-abort",
		Package: "./shard", Run: "TestMoveWithEveryFault",
		In: "shard.handoffs.stay", Old: "if o == nil || o.stops {", New: "if o == nil {",
	},
	{
		Name: "late-markers-hold-the-shard", Rules: "marker-deadline",
		Package: "./shard", Run: "TestMoveIsGivenUpWithoutMarkers|TestMoveWithEveryFault",
		In: "shard.handoffs.tick", Old: "if !o.stops && m.now >= o.due {", New: "if !o.stops && m.now < 0 {",
	},
	{
		Name: "a-new-reign-has-told-nobody", Rules: "told-all",
		Package: "./shard", Run: "TestMoveWithEveryFault|TestEverybodyCountsAsToldAfterATakeover",
		In:  "shard.moves.begin",
		Old: "if p != r.home && (!c.m.met(p.id) || !knew && !p.told.Has(s)) {",
		New: "if p != r.home && (!c.m.met(p.id) || knew || !p.told.Has(s)) {",
	},
	{
		Name: "home-that-stops-is-told", Rules: "moving-not-disclosed", Package: "./shard", Run: "TestMoveWithEveryFault",
		In: "shard.coordinator.believe", Old: "c.adopt(p, e, stops)", New: "c.adopt(p, e, stops && false)",
	},
	{
		Name: "promise-keeps-moves", Rules: "given-up-moves",
		Package: "./shard", Run: "TestMoveUnderAnotherCoordinator|TestMoveWithEveryFault",
		In: "shard.stayAll", Old: "t.region.hand.stay(s)", New: "_ = s",
	},
	{
		Name: "states-that-were-given-stay-behind", Rules: "states-are-a-rest state", Seeds: 20,
		In: "entity.rest", Old: "all = append(all, g.out...)", New: "",
	},
	{
		Name: "entity-has-two-states", Rules: "hand-over", Package: "./internal/core/plane", Run: "TestStatesTravel",
		In: "internal/core/plane.readStates", Without: "seen[st.ID]",
	},
	{
		Name: "leaver-stops-what-cannot-move-now", Rules: "leavers-stay leave",
		Package: "./shard", Run: "TestLeaverMovesWhenItCan",
		In: "shard.moves.drain", Old: "halts := p.drains && mv.nobodyTakes(p)", New: "halts := p.drains",
	},
	{
		Name: "leaver-does-not-try-again", Rules: "leavers-try-again",
		Package: "./shard", Run: "TestLeaverMovesWhenItCan",
		In: "shard.moves.aborted", Old: "c.confirm(e.Shard)", New: "c.haltShard(e.Shard)",
	},
}
