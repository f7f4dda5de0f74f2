// The part of the list that is about the lock by which the next process at an address proves the one before it dead.

package main

// lockBugs break what docs/sharding.md promises of that proof.
var lockBugs = []bug{
	{
		Name: "lock-released-before-the-last-handler", Rules: "lock",
		Package: "./test/e2e", Run: "TestNodeIsNotProvenDeadWhileAHandlerRuns",
		In: "internal/runtime/driver.endLife", Old: "default:", New: "default: d.life.Release(left); return",
	},
	{
		Name: "proof-of-another-boot", Rules: "lock",
		Package: "./internal/base/life", Run: "TestLifeProvesNothing",
		In: "internal/base/life.incarnation", Old: "textOf(addr, inc, place)",
		New: `textOf(addr, inc, f[2]+place[strings.Index(place, " "):])`,
	},
	{
		Name: "copy-of-the-lock-proves", Rules: "lock",
		Package: "./internal/base/life", Run: "TestLifeProvesNothing",
		In: "internal/base/life.placeOf", Old: "s.Dev, s.Ino)", New: "s.Dev, 0)",
	},
	{
		Name: "lock-of-another-address-proves", Rules: "lock",
		Package: "./internal/base/life", Run: "TestLifeProvesNothing",
		In: "internal/base/life.incarnation", Old: "textOf(addr, inc, place)", New: "textOf(f[0], inc, place)",
	},
	{
		Name: "lock-of-another-machine", Rules: "lock",
		Package: "./internal/base/life", Run: "TestLifeOnlyInAFileOfOnesOwn",
		In: "internal/base/life.own", Old: "case !slices.Contains(", New: "case fs.Type == 0 && !slices.Contains(",
	},
	{
		Name: "claim-is-believed-though-that-is-off", Rules: "lock",
		Package: "./membership", Run: "TestProofsThatAreNone",
		In: "membership.admission.believes", Without: "!a.cfg.NoLockProof",
	},
	{
		Name: "claim-of-one-that-only-says-where-it-is", Rules: "lock",
		Package: "./membership", Run: "TestProof|TestClaim",
		In: "membership.admission.onJoin", Old: "!old.IsZero() || j.dead != 0", New: "!old.IsZero()",
	},
	{
		Name: "proof-is-read-in-views-alone", Rules: "lock",
		Package: "./membership", Run: "TestProofBehindAnotherCause|TestMergeKeepsProofs",
		In: "membership.core.noteDeaths", Old: "range next.Tombs", New: "range next.Tombs[:0]",
	},
	{
		Name: "proof-hidden-by-another-cause", Rules: "lock",
		Package: "./membership", Run: "TestMergeKeepsProofs",
		In: "internal/core/members.keepProofs", Old: "!= cluster.CauseProvenDead {", New: "!= 0 {",
	},
}
