// The part of the list that is about what a node must hold to handle messages, a session lease or a tenure, and about
// when its disk may go.

package main

// lapseBugs break the rules of docs/contributing/session.md, docs/contributing/tenure.md and
// docs/contributing/quorum.md.
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
	{
		Name: "over-is-said-before-it-is-down", Rules: "tenure",
		Package: "./internal/core/tenure", Run: "TestDownFirst",
		In: "internal/core/tenure.Machine.speaks", Without: "!m.isLost(q.target)",
	},
	{
		Name: "order-without-the-proofs-it-rests-on", Rules: "tenure",
		Package: "./internal/core/node", Run: "TestOrdersCarryTheirProofs",
		In: "internal/core/node.ends.carries", Old: "e.before+len(e.list)", New: "e.before",
	},
	{
		Name: "seeker-keeps-the-proof-to-itself", Rules: "tenure",
		Package: "./internal/core/node", Run: "TestSeekerMarks",
		In: "membership.Machine.prove", Drop: "d.ProveDead",
	},
	{
		Name: "seat-is-filled-where-it-is-emptied", Rules: "tenure",
		Package: "./internal/core/tenure", Run: "TestEmptiedFirst",
		In: "internal/core/tenure.Seats.Next", Old: "!ok && ended {", New: "ok || ended {",
	},
	{
		Name: "list-that-not-all-have-seen-changes", Rules: "tenure",
		Package: "./membership", Run: "TestSeatsWaitForAll",
		In: "membership.leading.reseat", Without: "!l.st.SeenByAll(l.exited)",
	},
	{
		Name: "disk-goes-by-entries-that-are-not-decided", Rules: "leave-is-decided",
		Package: "./internal/core/quorum/records", Run: "TestLeaveIsDecided",
		In: "internal/core/quorum/records.carer.hears", Without: "follows",
	},
}
