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
}
