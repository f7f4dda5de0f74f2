// The part of the list that is about what a node must hold to handle messages: a session lease, or a tenure.

package main

// lapseBugs break the rules of docs/contributing/session.md and docs/contributing/tenure.md.
var lapseBugs = []bug{
	{
		Name: "session-counts-from-its-answer", Rules: "session",
		Package: "./internal/core/session", Run: "TestAnswerCountsFromItsCall",
		In: "internal/core/session.Machine.answered", Old: "k.made + m.cfg.Sure()", New: "m.now + m.cfg.Sure()",
	},
	{
		Name: "session-that-was-ended-goes-on", Rules: "session",
		Package: "./internal/core/session", Run: "TestEndedStaysEnded",
		In:  "internal/core/session.Machine.answered",
		Old: `case r.Err == "" && !r.OK:`, New: `case r.Err == "" && !r.OK && !m.had:`,
	},
	{
		Name: "session-ended-without-the-swap", Rules: "session",
		Package: "./internal/core/session", Run: "TestProofIsTheSwap",
		In: "internal/core/session.Machine.swapped", Old: `if r.Err == "" && r.OK {`, New: `if r.Err == "" {`,
	},
	{
		Name: "grant-counts-when-it-comes", Rules: "tenure",
		Package: "./internal/core/tenure", Run: "TestFromTheAsking",
		In: "internal/core/tenure.Machine.counted", Old: "o.sent[p.seq%kept]", New: "m.now",
	},
	{
		Name: "one-seat-is-a-quorum", Rules: "tenure",
		Package: "./internal/core/tenure", Run: "TestQuorumOfGrants",
		In: "internal/core/tenure.Machine.until", Old: "m.cfg.Quorum()", New: "1",
	},
	{
		Name: "promise-as-long-as-the-grant", Rules: "tenure",
		Package: "./internal/core/tenure", Run: "TestPromiseIsLonger",
		In: "internal/core/tenure.Config.Promise", Old: "c.Grant + c.Grant/500 + c.Grant/25", New: "c.Grant",
	},
	{
		Name: "over-is-said-too-soon", Rules: "tenure",
		Package: "./internal/core/tenure", Run: "TestPromiseIsLonger",
		In: "internal/core/tenure.Machine.speaks", Without: "m.clock < h.promised(q.target)",
	},
	{
		Name: "one-that-is-down-is-vouched-for", Rules: "tenure",
		Package: "./internal/core/tenure", Run: "TestMembersOnly",
		In: "internal/core/tenure.Machine.grants", Old: "case !m.isMember(id):", New: "case id.IsZero():",
	},
	{
		Name: "new-holder-speaks-at-once", Rules: "tenure",
		Package: "./internal/core/tenure", Run: "TestNewHolderWaits",
		In: "internal/core/tenure.Machine.sees", Old: "m.held.cold = m.clock + m.cfg.Promise()", New: "m.held.cold = m.clock",
	},
	{
		Name: "words-of-any-list", Rules: "tenure",
		Package: "./internal/core/tenure", Run: "TestSameList",
		In: "internal/core/tenure.Machine.answered", Without: "!p.list.Same(m.seats)",
	},
	{
		Name: "words-of-the-dead", Rules: "tenure",
		Package: "./internal/core/tenure", Run: "TestWordsOfMembers",
		In: "internal/core/tenure.Machine.quorum", Old: "m.isMember(h)", New: "!h.IsZero()",
	},
	{
		Name: "electorate-founded-beside-the-living", Rules: "tenure",
		Package: "./internal/core/tenure", Run: "TestFoundedWhenAllHaveEnded",
		In: "internal/core/tenure.Seats.Next", Old: "ok = ended && p.held()", New: "ok = p.held()",
	},
}
