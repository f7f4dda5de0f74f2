// The list of planted bugs, large messages.

package main

var largeBugs = []bug{
	{
		Name: "slot-stays-open-beside-a-large-message", Package: "./sim", Run: "TestStormOfLargeMessages",
		File: "internal/flow/slot.go",
		Old:  "\tif s.state.Open() {\n\t\ts.set(Draining)\n\t}\n",
		New:  "",
	},
	{
		Name: "room-of-a-waiting-message-is-lost", Package: "./internal/flow", Run: "TestBulk",
		File: "internal/flow/bulk_receive.go",
		Old:  "\t\tr.room.Drop(r.from, r.key(m))\n",
		New:  "\t\t_ = m\n",
	},
	{
		Name: "large-message-taken-twice", Package: "./internal/flow", Run: "TestBulk",
		File: "internal/flow/bulk_receive.go",
		Old:  "\tif m == nil || !m.state.Step(LargeGoes) {\n",
		New:  "\tif m == nil || !m.state.Step(LargeGoes) && m.state != LargeSent {\n",
	},
	{
		Name: "cancelled-message-is-not-aborted", Package: "./internal/flow", Run: "TestBulk",
		File: "internal/flow/bulk_send.go",
		Old:  "\t\ts.aborts = append(s.aborts, x.Begin.Number)\n",
		New:  "",
	},
	{
		Name: "large-message-stays-with-its-old-home", Package: "./sim", Run: "TestLargeMessageFollowsItsShard",
		File: "internal/flow/slot.go",
		Old:  "\ts.local, s.home, s.fence = local, home, f\n\ts.set(Draining)\n",
		New:  "\ts.local, s.fence = local, f\n\tif s.queue == nil {\n\t\ts.home = home\n\t}\n\ts.set(Draining)\n",
	},
}
