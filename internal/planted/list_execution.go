// The list of planted bugs of package entity: rests after panics, limits, eviction.

package main

var executionBugs = []bug{
	{
		Name: "what-is-due-later-is-forgotten-by-a-look", Package: "./internal/dues", Run: "TestDuesLaw",
		In:  "internal/dues.block.over",
		Old: "b.lower(least)",
		New: "",
	},
	{
		Name: "rest-outlives-its-shard", Package: "./sim", Run: "TestRestEndsWithTheShard",
		In:   "entity.Shard.heal",
		Drop: "s.wake",
	},
	{
		Name: "given-up-entity-takes-messages", Package: "./entity", Run: "TestEntityThatPanicsTooOftenIsGivenUp",
		In:  "entity.Shard.Deliver",
		Old: "(s.typ.Mode != Blocking || s.crashes[e].closed)",
		New: "s.typ.Mode != Blocking",
	},
	{
		Name: "cancelled-timer-that-is-due-comes", Package: "./entity", Run: "TestTimerThatIsDueIsCancelled",
		In:      "entity.Context.openTimer",
		Without: "t.done",
	},
	{
		Name: "timers-count-from-the-slewed-clock", Seeds: 5,
		In:  "entity.Context.SetTimer",
		Old: "c.s.runtime.Now()",
		New: "c.s.runtime.Slewed()",
	},
	{
		Name: "asks-count-from-the-last-tick", Package: "./internal/driver", Run: "TestAskAfterAStallIsNotEarly",
		In:  "internal/driver.askTable.begin",
		Old: "t.at()",
		New: "t.tick.Load()",
	},
	{
		Name: "run-forgets-what-it-cancelled", Package: "./entity", Run: "TestTimerLaws",
		In:      "entity.Shard.carryOut",
		Without: "c.cancelled",
	},
	{
		Name: "run-goes-on-behind-a-panic", Package: "./entity", Run: "TestRestartStopDropsWhatWaits",
		In:      "entity.Entity.work",
		Without: "!c.crashed",
	},
	{
		Name: "suspension-leaves-contexts-alone", Package: "./internal/driver",
		Run: "TestSleeperHandlesNothingUntilConfirmed",
		In:  "internal/exec.Exec.suspend",
		Old: "h.life.Suspend()",
		New: "_ = h",
	},
	{
		Name: "passivation-passes-the-gate", Package: "./internal/exec", Run: "TestGateBeforeTheStopOfAPassivation",
		In:  "entity.Context.outcome",
		Old: "c.s.typ.Mode == Blocking",
		New: "false",
	},
	{
		Name: "tell-without-an-entity-is-forgotten", Package: "./entity", Run: "TestHostLaws",
		In:  "entity.Context.noInstance",
		Old: "c.s.runtime.Unhandled(c.e, route.NewFailed, ask, payload)",
		New: "_, _ = ask, payload",
	},
	{
		Name: "latest-used-is-evicted", Package: "./entity", Run: "TestMaxActive",
		In:  "entity.Shard.evict",
		Old: "e.used < victim.used",
		New: "e.used > victim.used",
	},
	{
		Name: "panic-in-a-row-leaves-the-call-open", Package: "./internal/exec", Run: "TestPanicWithinARow",
		In:   "entity.CallFrame.Recovered",
		Drop: "c.s.endCall",
	},
	{
		Name: "kept-context-is-anybodys", Package: "./entity", Run: "TestKeptContextIsRefused",
		In:  "entity.kept",
		Old: "c.at != incall.Here()",
		New: "c.at == 0",
	},
	{
		Name: "context-of-an-owed-answer-is-used-again", Package: "./entity",
		Run: "TestContextOfAnUnansweredAskIsLeftBehind",
		In:  "entity.Context.outcome",
		Old: "c.spent = true",
		New: "_ = c.spent",
	},
	{
		Name: "fence-not-checked-in-a-row", Package: "./internal/driver", Run: "TestStaleFenceIsRefused",
		In:  "internal/exec.ahead.envelope",
		Old: "h.term != x.env.Term || h.epoch != x.env.Epoch ||",
		New: "",
	},
	{
		Name: "row-goes-on-behind-the-gate", Package: "./internal/exec", Run: "TestGateClosesWithinARow",
		In:      "internal/exec.ahead.run",
		Without: "ex.Gate.Closed()",
	},
	{
		Name: "lost-shard-is-handled-in-a-row", Package: "./internal/exec", Run: "TestShardIsLostWithinARow",
		In:      "internal/exec.ahead.run",
		Without: "h.closed.Load()",
	},
	{
		Name: "who-leaves-the-line-calls-nobody", Package: "./internal/driver", Run: "TestRoomCallsOneByOne",
		In:   "internal/driver.waitLine.leave",
		Drop: "r.call",
	},
	{
		Name: "credit-of-another-connection-taken", Package: "./internal/transport", Run: "TestWhatIsNoCredit",
		In:  "internal/transport.Link.frames",
		Old: "if credit.Lane != l.number {",
		New: "if false {",
	},
	{
		Name:    "half-a-credit-outlives-its-connection",
		Package: "./internal/transport", Run: "TestHalfACreditOfTheConnectionBefore",
		In:  "internal/transport.Link.restart",
		Old: "l.back.carry = nil",
		New: "",
	},
	{
		Name: "coalescing-for-ever", Package: "./internal/loop", Run: "TestRest",
		In:  "internal/loop.Loop.rest",
		Old: "l.dirty = append(l.dirty, l.coalescing...)",
		New: "",
	},
	{
		Name:    "an-ask-waits-for-more-frames",
		Package: "./internal/transport", Run: "TestUrgentFrameEndsTheWait|TestCoalescing",
		In:  "internal/transport.Link.Hurry",
		Old: "if l.lingers {\n\t\tl.lingers, l.scheduled = false, false",
		New: "if false {",
	},
	{
		Name: "polls-in-vain-for-ever", Package: "./internal/loop", Run: "TestPollsInVain",
		In:  "internal/loop.polled.learn",
		Old: "p.skips = p.vain - 1",
		New: "p.skips = 0",
	},
	{
		Name: "polls-that-were-robbed-count", Package: "./internal/loop", Run: "TestPollsInVain",
		In:      "internal/loop.polled.learn",
		Without: "gap < robbed",
	},
	{
		Name: "parks-beside-who-wakes-it-otherwise", Package: "./internal/loop", Run: "TestPollerWait$",
		In:      "internal/loop.Loop.waitInPoller",
		Without: "p.held.Load() == 0",
	},
	{
		Name: "stays-asleep-when-released", Package: "./internal/loop", Run: "TestPollerWait$",
		In:      "internal/loop.Loop.release",
		Without: "l.pollerWait.held.Add(-1) == 0",
	},
	{
		Name: "the-end-handles-what-was-held-back", Package: "./internal/driver", Run: "TestClosedWhileSuspended",
		In:  "internal/exec.Exec.Abandon",
		Old: "h.lose() // before",
		New: "_ = h // before",
	},
	{
		Name: "busy-loops-do-not-listen", Package: "./internal/loop", Run: "TestPollerWait$",
		In:  "internal/loop.Loop.listen",
		Old: "if l.listener.hears(p.pollSet) {",
		New: "if false {",
	},
	{
		Name: "an-expired-question-stays-asked", Seeds: 60,
		In:  "internal/flow.Slot.pop",
		Old: "if s.state == Asking {",
		New: "if false {",
	},
	{
		Name:    "silent-connections-are-not-dialled-anew",
		Package: "./internal/transport", Run: "TestSilentConnectionIsReplaced",
		In:  "internal/transport.uplink.heed",
		Old: "if !u.dialing && u.refusal == nil && u.renewal == nil {",
		New: "if false {",
	},
	{
		Name: "hand-over-is-not-watched", Package: "./internal/exec", Run: "TestStopCallThatHangsIsTold",
		In:   "entity.callHandOver",
		Drop: "c.s.runtime.Calling",
	},
	{
		Name: "stop-is-not-watched", Package: "./internal/exec", Run: "TestStopCallThatHangsIsTold",
		In:   "entity.Context.halt",
		Drop: "c.s.runtime.Calling",
	},
	{
		Name: "panic-in-a-hand-over-leaves-it-open", Package: "./entity", Run: "TestStopCallsAreEnclosed",
		In:   "entity.callHandOver",
		Drop: "c.s.runtime.Returned",
	},
	{
		Name: "hung-stop-is-told-again", Package: "./internal/exec", Run: "TestStopCallThatHangsIsTold",
		In:      "internal/exec.hanging",
		Without: "s.told",
	},
	{
		Name: "stop-is-looked-at-once", Package: "./internal/exec", Run: "TestStopCallThatHangsIsTold",
		In:   "internal/exec.watchStops",
		Drop: "x.parting.add",
	},
	{
		Name: "sleep-is-a-hang", Package: "./internal/exec", Run: "TestDeadlineOfStopCalls",
		In:  "internal/exec.hanging",
		Old: "slewed-s.since",
		New: "now-s.since",
	},
	{
		Name: "stop-behind-its-deadline-has-no-time", Package: "./internal/exec", Run: "TestDeadlineOfStopCalls",
		In:  "internal/exec.stopPatience",
		Old: "return never\n}\nreturn hangsAfter",
		New: "return never\n}\nreturn 0",
	},
	{
		Name: "leave-without-a-time-is-a-deadline", Package: "./internal/exec", Run: "TestDeadlineOfStopCalls",
		In:      "internal/exec.stopPatience",
		Without: "h.end.by > 0",
	},
}
