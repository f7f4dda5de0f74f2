// Planted bugs of asks whose askers give up, and of what their errors say: the ledger of a storm holds every ask to it.

package main

var askBugs = []bug{
	{
		Name: "expired-ask-is-handled-when-it-comes", Seeds: 60,
		In:  "entity.Shard.Deliver",
		Old: "m.Limit <= now",
		New: "m.Limit < 0",
	},
	{
		Name: "expired-ask-is-handled-from-its-mailbox", Seeds: 60,
		In:  "entity.activity.limit",
		Old: "l > now",
		New: "l > 0",
	},
	{
		Name: "ask-expires-before-its-time", Seeds: 60,
		In:  "internal/plane.LimitOf",
		Old: "time.Duration(due)*WheelTick",
		New: "time.Duration(due)*WheelTick-max(d, 0)/4",
	},
	{
		Name: "ask-that-was-sent-says-that-it-was-not", Seeds: 60,
		In:  "internal/plane.Unanswered",
		Old: "if went {\n\t\treturn route.TimedOut\n\t}",
		New: "_ = went",
	},
	{
		Name: "waiting-in-a-link-does-not-count", Package: "./wire", Run: "TestLimitTravelsAsWhatIsLeft",
		In:  "wire.Depart",
		Old: "max(left, 0)",
		New: "max(left, 1000)",
	},
	{
		Name: "answer-that-met-a-bound-was-not-executed", Package: "./internal/plane", Run: "TestRan",
		In:  "internal/plane.Ran",
		Old: "return route.Ran(err)",
		New: "return err",
	},
	{
		Name: "payload-that-the-handlers-codec-refused-was-executed", Package: "./entity", Run: "TestBadPayload",
		In:  "entity.failure",
		Old: "return route.BadPayload",
		New: "return route.HandlerFailed",
	},
	{
		Name: "headers-of-a-message-stay-for-the-next", Package: "./entity", Run: "TestHeadersGoOnByTheHandlersWord",
		In:  "entity.Context.open",
		Old: "c.limit, c.headers = 0, nil",
		New: "c.limit = 0",
	},
	{
		Name: "removal-of-a-leaver-ends-what-it-answered", Package: "./internal/driver",
		Run: "TestAnswersOfANodeThatLeavesAreTaken",
		In:  "internal/driver.links.gone",
		Old: "t.get(e.Member.ID)\n\tif n == nil {\n\t\treturn\n\t}",
		New: "t.get(e.Member.ID)\n\tif n == nil {\n\t\treturn\n\t}\n\tt.asks.lose(n, route.PeerLost)",
	},
	{
		Name: "closed-connection-of-a-leaver-ends-what-it-answered", Package: "./internal/driver",
		Run: "TestAnswersOfANodeThatLeavesAreTaken",
		In:  "internal/driver.links.LinkDown",
		Old: "!n.parting()",
		New: "!n.parting() || lost == 0",
	},
	{
		Name: "simulated-removal-of-a-leaver-ends-what-it-answered", Package: "./internal/world",
		Run: "TestAnswersOfWhoLeftAreWaitedFor",
		In:  "internal/node.Parting",
		Old: "s == membership.Leaving || s == membership.Exiting",
		New: "s == membership.Leaving",
	},
}
