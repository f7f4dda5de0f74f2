// The list of planted bugs of the room entity: rests after panics, limits, eviction.

package main

var executionBugs = []bug{
	{
		Name: "rest-outlives-its-shard", Package: "./sim", Run: "TestRestEndsWithTheShard",
		File: "entity/crash.go",
		Old:  "\te.place &^= hurt\n\ts.wake(r)\n",
		New:  "\te.place &^= hurt\n",
	},
	{
		Name: "given-up-entity-takes-messages", Package: "./entity", Run: "TestEntityThatPanicsTooOftenIsGivenUp",
		File: "entity/shard.go",
		Old:  "(s.typ.Mode != Blocking || s.crashes[e].closed)",
		New:  "s.typ.Mode != Blocking",
	},
	{
		Name: "run-goes-on-behind-a-panic", Package: "./entity", Run: "TestRestartStopDropsWhatWaits",
		File: "entity/run.go",
		Old:  "len(a.now.records) && !c.crashed\n",
		New:  "len(a.now.records)\n",
	},
	{
		Name: "latest-used-is-evicted", Package: "./entity", Run: "TestMaxActive",
		File: "entity/crash.go",
		Old:  "e.used < victim.used",
		New:  "e.used > victim.used",
	},
	{
		Name: "panic-in-a-row-leaves-the-call-open", Package: "./internal/exec", Run: "TestPanicWithinARow",
		File: "entity/hand.go",
		Old:  "\tc.outcome(nil, c.panicked(v))\n\tc.s.rise(c)\n",
		New:  "\tc.outcome(nil, c.panicked(v))\n",
	},
	{
		Name: "fence-not-checked-in-a-row", Package: "./internal/driver", Run: "TestStaleFenceIsRefused",
		File: "internal/exec/ahead.go",
		Old:  "h.term != x.env.Term || h.epoch != x.env.Epoch ||",
		New:  "",
	},
	{
		Name: "row-goes-on-behind-the-gate", Package: "./internal/exec", Run: "TestGateClosesWithinARow",
		File: "internal/exec/ahead.go",
		Old:  "h == nil || ex.Gate.Closed() ||",
		New:  "h == nil ||",
	},
	{
		Name: "lost-shard-is-handled-in-a-row", Package: "./internal/exec", Run: "TestShardIsLostWithinARow",
		File: "internal/exec/ahead.go",
		Old:  "ex.Gate.Closed() || h.abandoned.Load() {",
		New:  "ex.Gate.Closed() {",
	},
	{
		Name: "who-leaves-the-line-calls-nobody", Package: "./internal/driver", Run: "TestRoomCallsOneByOne",
		File: "internal/driver/room.go",
		Old:  "\tr.quit(t)\n\tr.call(r.lines[t.at])\n",
		New:  "\tr.quit(t)\n",
	},
	{
		Name: "credit-of-another-connection-taken", Package: "./internal/transport", Run: "TestWhatIsNoCredit",
		File: "internal/transport/link.go",
		Old:  "if credit.Lane != l.number {",
		New:  "if false {",
	},
	{
		Name:    "half-a-credit-outlives-its-connection",
		Package: "./internal/transport", Run: "TestHalfACreditOfTheConnectionBefore",
		File: "internal/transport/link.go",
		Old:  "\tl.back.carry = nil\n",
		New:  "",
	},
	{
		Name: "company-for-ever", Package: "./internal/loop", Run: "TestRest",
		File: "internal/loop/rest.go",
		Old:  "\tl.dirty = append(l.dirty, l.company...)\n",
		New:  "",
	},
	{
		Name: "an-ask-waits-for-company", Package: "./internal/transport", Run: "TestUrgentFrameEndsTheWait|TestCompany",
		File: "internal/transport/link.go",
		Old:  "\tif l.lingers {\n\t\tl.lingers, l.scheduled = false, false",
		New:  "\tif false {\n",
	},
	{
		Name: "polls-in-vain-for-ever", Package: "./internal/loop", Run: "TestPollsInVain",
		File: "internal/loop/poll.go",
		Old:  "\t\tp.skips = p.vain - 1",
		New:  "\t\tp.skips = 0",
	},
	{
		Name: "polls-that-were-robbed-count", Package: "./internal/loop", Run: "TestPollsInVain",
		File: "internal/loop/poll.go",
		Old:  "\tcase came && gap < robbed:\n",
		New:  "\tcase came:\n",
	},
	{
		Name: "parks-beside-who-wakes-it-otherwise", Package: "./internal/loop", Run: "TestPark$",
		File: "internal/loop/park.go",
		Old:  " && p.held.Load() == 0 {",
		New:  " {",
	},
	{
		Name: "the-end-handles-what-was-held-back", Package: "./internal/driver", Run: "TestClosedWhileSuspended",
		File: "internal/exec/exec.go",
		Old:  "\t\th.abandoned.Store(true) // before",
		New:  "\t\t_ = h // before",
	},
	{
		Name: "busy-loops-do-not-listen", Package: "./internal/loop", Run: "TestPark$",
		File: "internal/loop/park.go",
		Old:  "\t\tif l.listener.hears(p.nest) {",
		New:  "\t\tif false {",
	},
	{
		Name: "an-expired-question-stays-asked", Package: "./internal/flow", Run: "TestSlotAsksAnewWhenNobodyWaits",
		File: "internal/flow/slot.go",
		Old:  "\tif s.state == Asking {\n",
		New:  "\tif false {\n",
	},
	{
		Name:    "silent-connections-are-not-dialled-anew",
		Package: "./internal/transport", Run: "TestSilentConnectionIsReplaced",
		File: "internal/transport/silence.go",
		Old:  "\t\tif !u.dialing && u.refusal == nil && u.renewal == nil {",
		New:  "\t\tif false {",
	},
}
