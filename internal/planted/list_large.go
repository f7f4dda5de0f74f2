// The list of planted bugs, large messages.

package main

var largeBugs = []bug{
	{
		Name: "slot-stays-open-beside-a-large-message", Seeds: 60,
		In:  "internal/flow.Slot.Hold",
		Old: "if s.state.Open() {\n\t\ts.set(Draining)\n\t}",
		New: "",
	},
	{
		Name: "room-of-a-waiting-message-is-lost", Seeds: 20, Accounts: true,
		In:  "internal/flow.BulkReceiver.remove",
		Old: "r.room.Drop(r.from, r.key(m))",
		New: "_ = m",
	},
	{
		// No honest sender names one message in two envelopes.
		Name: "large-message-taken-twice", Package: "./internal/flow", Run: "TestBulk",
		In:  "internal/flow.BulkReceiver.Take",
		Old: "if m == nil || !m.state.Step(LargeGoes) {",
		New: "if m == nil || !m.state.Step(LargeGoes) && m.state != LargeSent {",
	},
	{
		Name: "cancelled-message-is-not-aborted", Seeds: 60,
		In:  "internal/flow.BulkSender.drop",
		Old: "s.aborts = append(s.aborts, x.Begin.Number)",
		New: "",
	},
	{
		Name: "large-message-stays-with-its-old-home", Seeds: 60,
		In:  "internal/flow.Slot.Resolve",
		Old: "s.local, s.home, s.fence = local, home, f",
		New: "s.local, s.fence = local, f\n\tif s.queue == nil {\n\t\ts.home = home\n\t}",
	},
}
