// Planted bugs of the account: messages that end without a word, or with the wrong one.

package main

var accountBugs = []bug{
	{
		Name: "refusals-of-one-shard-are-of-one-reason", Seeds: 60, Accounts: true,
		In:  "internal/plane.Refusals.entry",
		Old: "if e := rs.entries[tier.key]; e != nil {\n\t\t\treturn e\n\t\t}",
		New: "if e := rs.entries[tier.key]; e != nil {\n\t\t\treturn e\n\t\t}\n\t\tfor key, e := range rs.entries {\n" +
			"\t\t\tif key.Reason = tier.key.Reason; key == tier.key {\n\t\t\t\treturn e\n\t\t\t}\n\t\t}",
	},
	{
		Name: "what-goes-with-an-entity-is-forgotten", Seeds: 60,
		In:  "entity.Shard.discardBatch",
		Old: "s.runtime.Unhandled(e, why, r.from != nil, payload)",
		New: "if why == route.Abandoned {\n\t\t\ts.runtime.Unhandled(e, why, r.from != nil, payload)\n\t\t}",
	},
	{
		Name: "kept-of-a-broken-connection-is-told-to-nobody", Package: "./internal/world",
		Run:  "TestKeptWhenItsConnectionBreaks",
		In:   "internal/world.Process.abandon",
		Drop: "leaveKept",
	},
	{
		Name: "simulated-end-tells-of-no-large-message", Package: "./internal/world",
		Run:  "TestLargeMessagesOfOneThatEnds",
		In:   "internal/world.Process.abandon",
		Drop: "loseAllLarge",
	},
	{
		Name: "simulated-refusal-keeps-a-large-message", Package: "./internal/world",
		Run: "TestLargeMessagesOfOneThatEnds",
		In:  "internal/world.Process.acceptLarge",
		Old: "p.World.place(m.Payload, p.World.ProcessOf(from))",
		New: "p.World.place(m.Payload, p)",
	},
	{
		Name: "what-comes-behind-a-workers-end-is-told-to-nobody", Package: "./internal/exec",
		Run: "TestWhatComesBehindAWorkersEndIsTold",
		In:  "internal/exec.Exec.Settle",
		Old: "\t\t\tx.giveUp(&w.queue, nil)\n",
		New: "",
	},
	{
		Name: "what-an-ended-gate-keeps-is-told-to-nobody", Package: "./internal/driver",
		Run: "TestKeptWhenItsConnectionBreaks",
		In:  "internal/exec.Exec.leave",
		Old: "if !wire.IsTell(frame) || c.Leave(1) {",
		New: "if !wire.IsTell(frame) || c.Leave(1) || true {",
	},
	{
		Name: "a-loss-takes-back-what-an-asker-was-told", Package: "./internal/check", Run: "TestAccount$",
		In:  "internal/world.mayBeLost",
		Old: "e.unsure, e.told = true, e.told || !e.ask",
		New: "e.unsure, e.told = true, !e.ask",
	},
	{
		Name: "an-ask-that-may-be-answered-is-abandoned", Package: "./internal/driver", Run: "TestHandedOverAndNotBegun",
		In:  "internal/driver.untakenOf",
		Old: "case !u.Unsure:",
		New: "case !u.Unsure || ask:",
	},
	{
		Name: "an-ask-that-nobody-takes-up-is-not-ended", Package: "./internal/driver", Run: "TestHandedOverAndNotBegun",
		In:  "internal/driver.untakenOf",
		Old: "case !u.Unsure:",
		New: "case !u.Unsure && !ask:",
	},
}
