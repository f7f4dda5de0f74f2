// Planted bugs in what is kept alive, singletons and daemons; and in rounds of moves for balance.

package main

var keptBugs = []bug{
	{
		Name: "daemon-holds-a-block", Package: "./entity", Run: "TestKeptEntitiesHoldLittle",
		In:      "entity.lease.take",
		Without: "!force",
	},
	{
		Name: "scarce-budget-is-claimed-in-blocks", Package: "./entity", Run: "TestScarceBudgetIsNotHeldInVain",
		In:      "entity.lease.take",
		Without: "l.budget.Ample()",
	},
	{
		Name: "scarce-budget-is-kept", Package: "./entity", Run: "TestScarceBudgetIsNotHeldInVain",
		In:      "entity.lease.give",
		Without: "l.budget.Ample()",
	},
	{
		Name: "daemon-of-a-stopping-shard", Package: "./internal/lifetime", Run: "TestLifetimeLaws",
		In:  "internal/lifetime.Shard.Serving",
		Old: "if s.stopping && !s.lost {",
		New: "if s.stopping && s.lost {",
	},
	{
		Name: "daemon-begins-though-it-stops", Package: "./entity", Run: "TestDaemonStops",
		In:  "entity.begin",
		Old: "case c.closing && (st == nil ||",
		New: "case c.closing && u.keep.Run == nil && (st == nil ||",
	},
	{
		Name: "messages-wait-for-a-daemon", Package: ".", Run: "TestDaemonsTakeNoMessages",
		In:  "entity.Shard.accept",
		Old: "if s.mute() {",
		New: "if false {",
	},
	{
		Name: "daemon-hands-messages-over", Package: "./entity", Run: "TestDaemonTakesNoMessages",
		In:  "entity.Shard.refuse",
		Old: "if s.mute() {",
		New: "if false {",
	},
	{
		Name: "daemon-that-exits-is-calm", Package: "./entity", Run: "TestDaemonThatExits",
		In:  "entity.callRun",
		Old: "v != nil || !returned",
		New: "v != nil",
	},
	{
		Name: "exit-leaves-its-asker-alone", Package: "./entity", Run: "TestExitCountsAsAPanic",
		In:  "entity.Context.call",
		Old: "v != nil || !returned",
		New: "v != nil",
	},
	{
		Name: "hand-over-that-exits-is-repeated", Package: "./entity", Run: "TestExitCountsAsAPanic",
		In:  "entity.Entity.work",
		Old: "a.step = handed\n\t\t\thandOver(c, h, a.why)",
		New: "handOver(c, h, a.why)\n\t\t\ta.step = handed",
	},
	{
		Name: "runner-dies-with-its-handler", Package: "./internal/exec", Run: "TestHandlerThatExits",
		In:  "internal/exec.blockingPool.outlive",
		Old: "if r.in.h != nil {",
		New: "if false {",
	},
	{
		Name: "suspension-is-a-failure", Package: "./entity", Run: "TestDaemonAfterSuspension",
		In:  "entity.live",
		Old: "case err == nil || ctx.Err() != nil:",
		New: "case err == nil:",
	},
	{
		Name: "kept-once", Package: "./entity", Run: "TestKeptEntityBeginsAgain",
		In:   "entity.Shard.look",
		Drop: "beginKept",
	},
	{
		Name: "late-look-recalls-nobody", Package: "./entity", Run: "TestLateRecall",
		In:   "entity.Shard.heal",
		Drop: "recallAgain",
	},
	{
		Name: "recall-lost-behind-a-timer", Package: "./entity", Run: "TestRecallBehindTimersOfTheDead",
		In:   "entity.Entity.End",
		Drop: "recallAgain",
	},
	{
		Name: "recalls-who-never-lived", Package: "./entity", Run: "TestUnknownIDIsNotRecalled",
		In:  "entity.recallAgain",
		Old: "if r.lived &&",
		New: "if",
	},
	{
		Name: "recalls-who-let-itself-go", Package: "./entity", Run: "TestRecallBehindTimersOfTheDead",
		In:   "entity.leaveFrame",
		Drop: "part",
	},
	{
		Name: "list-is-not-read-again", Package: "./internal/exec", Run: "TestRememberedEntitiesBegin",
		In:  "internal/exec.recaller.read",
		Old: "if err != nil || ended {",
		New: "if ended {",
	},
	{
		Name: "ids-of-other-shards-begin", Package: "./internal/exec", Run: "TestRememberedEntitiesBegin",
		In:  "internal/exec.readList",
		Old: "case route.ShardOf(id, h.t.shards) != h.shard:",
		New: "case false:",
	},
	{
		Name: "remembered-wait-for-messages", Package: ".", Run: "TestRememberedEntities",
		In:  "internal/driver.Driver.register",
		Old: "if r.keep != nil || r.typ.Remembered != nil {",
		New: "if r.keep != nil {",
	},
	{
		Name: "eager-home-is-not-found-again", Package: "./shard", Run: "TestEagerTypeFindsHomes",
		In:  "shard.Machine.forget",
		Old: "if t.region.eager.begun && !closing(m) {",
		New: "if t.region.eager.begun && e.living != notHere {",
	},
	{
		Name: "a-fresh-start-waits-for-nobody", Package: "./shard", Run: "TestFreshStartWaitsForWhoComesTogether",
		In:  "shard.comers.until",
		Old: "min(most, c.last+wait)",
		New: "min(most, c.last)",
	},
	{
		Name: "a-fresh-start-waits-for-ever", Package: "./shard", Run: "TestFreshStartWaitsForWhoComesTogether",
		In:  "shard.comers.until",
		Old: "most := max(since, c.first) + settleMost*wait",
		New: "most := max(since, c.first) + 1<<20*wait",
	},
	{
		Name: "a-full-shutdown-begins-what-is-kept-elsewhere", Package: "./shard", Run: "TestEagerTypeStaysInAFullShutdown",
		In:  "shard.closing",
		Old: "strategy.HoldOf(m.view.Members, nil)&strategy.Shutdown != 0",
		New: "false && strategy.HoldOf(m.view.Members, nil)&strategy.Shutdown != 0",
	},
	{
		Name: "a-daemon-that-goes-on-is-not-told", Package: ".", Run: "TestDaemonThatGoesOn",
		In:  "internal/exec.toldToEnd",
		Old: "c.run != nil && !noted",
		New: "c.run != nil && noted",
	},
	{
		Name: "begins-without-its-lease", Package: ".", Run: "TestSingletonLeaseInASplit",
		In:  "internal/exec.Exec.newHost",
		Old: "if t.lapsed != nil {",
		New: "if t.lapsed == nil && t.keep != nil {",
	},
	{
		Name: "lives-on-without-its-lease", Package: ".", Run: "TestSingletonLeaseService",
		In:  "internal/driver.leaseKeeper.hold",
		Old: "case e.Withhold:",
		New: "case e.Withhold && e.Permit:",
	},
	{
		Name: "lease-counts-from-its-answer", Package: "./internal/leases", Run: "TestLeaseIsLost",
		In:  "internal/leases.Holder.answered",
		Old: "h.valid = h.made + h.cfg.Hold",
		New: "h.valid = h.now + h.cfg.Hold",
	},
	{
		Name: "lease-that-others-have-is-kept", Package: "./internal/leases", Run: "TestLeaseIsLost",
		In:   "internal/leases.Holder.answered",
		Drop: "h.lose",
	},
	{
		Name: "lease-of-a-hung-store-is-kept", Package: "./internal/leases", Run: "TestLeaseIsLost",
		In:  "internal/leases.Holder.expire",
		Old: "if !h.held || h.now < h.valid {",
		New: "if !h.held || h.call.ID != 0 || h.now < h.valid {",
	},
	{
		Name: "lease-ends-with-control-alone", Package: "./internal/driver", Run: "TestContextEndsThoughControlIsStuck",
		In:   "internal/driver.Driver.tick",
		Drop: "watchLeases",
	},
	{
		Name: "lease-outlives-a-sleep", Package: "./internal/driver", Run: "TestLeaseEndsWhileTheMachineSleeps",
		In:  "internal/driver.leaseKeeper.overdue",
		Old: "k.d.sleeps.doubtful()",
		New: "k.d == nil",
	},
	{
		Name: "permit-clears-a-newer-withhold", Package: "./internal/exec", Run: "TestPermitThatCameTooLate",
		In:  "internal/exec.lookAtLease",
		Old: "w == h.permit.allowed.Load()",
		New: "w >= h.permit.allowed.Load()",
	},
	{
		Name: "permit-of-a-lease-that-is-over", Package: "./internal/exec", Run: "TestPermitThatCameTooLate",
		In:   "internal/exec.barNow",
		Drop: "h.t.lapsed",
	},
	{
		Name: "guard-forgets-who-was-confirmed", Package: "./internal/leases", Run: "TestGuard",
		In:  "internal/leases.Guard.Follow",
		Old: "g.ended && until != 0",
		New: "g.ended && until == 0",
	},
	{
		Name: "guard-never-ends-a-lease", Package: "./internal/leases", Run: "TestGuard",
		In:  "internal/leases.Guard.Tick",
		Old: "now < g.until",
		New: "now > g.until",
	},
	{
		Name: "confirmed-behind-its-end-and-not-permitted", Package: "./internal/leases", Run: "TestConfirmedBehindItsEnd",
		In:   "internal/leases.Holder.Answer",
		Drop: "h.expire",
	},
	{
		Name: "lease-is-given-back-to-nobody", Package: "./internal/leases", Run: "TestLeaseIsGivenBack",
		In:  "internal/leases.Holder.End",
		Old: "|| !h.asked",
		New: "|| !h.held",
	},
	{
		Name: "withheld-run-goes-on", Package: "./entity", Run: "TestWithheldInTheMiddle|TestPermitLaws",
		In:   "entity.Entity.End",
		Drop: "spoil",
	},
	{
		Name: "singleton-outlives-its-lease", Package: "./internal/storm", Run: "TestStormsLease",
		In:  "internal/leases.Holder.lose",
		Old: "h.out.Withhold, h.out.Permit = true, false",
		New: "h.out.Withhold, h.out.Permit = false, false",
	},
	{
		Name: "singleton-begins-before-its-lease", Package: "./internal/storm", Run: "TestStormsLease",
		In:   "internal/world.hosted.begins",
		Drop: "entity.Withhold",
	},
	{
		Name: "run-goes-on-without-its-lease", Package: "./entity", Run: "TestWithheldInTheMiddle",
		In:  "entity.Withhold",
		Old: "a.spoiled = true",
		New: "_ = a.spoiled",
	},
	{
		Name: "instance-outlives-its-lease", Package: "./entity", Run: "TestWithheldEntity",
		In:   "entity.Withhold",
		Drop: "unmake",
	},
	{
		Name: "handler-time-is-not-read", Package: ".", Run: "TestHotShardMoves",
		In:  "internal/driver.measure",
		Old: "HandlerTime: exec.HandlerTime(h)",
		New: "HandlerTime: 0*exec.HandlerTime(h)",
	},
	{
		Name: "handler-time-of-one-message-for-all", Package: "./internal/exec", Run: "TestHandlerTimeIsSampled",
		In:  "internal/exec.Type.took",
		Old: "int64(took) * int64(stands)",
		New: "int64(took)",
	},
	{
		Name: "samples-are-rare-and-count-as-often", Package: "./internal/exec", Run: "TestSamplesOfFastMessagesAreRare",
		In:  "internal/exec.Sampler.draw",
		Old: "s.stands = s.stride; s.stands == 0",
		New: "s.stands = min(s.stride, every); s.stands == 0",
	},
	{
		Name: "fast-messages-are-sampled-as-slow", Package: "./internal/exec", Run: "TestSamplesOfFastMessagesAreRare",
		In:  "internal/exec.Sampler.Begin",
		Old: "gap < sampleGap && every > 1",
		New: "gap < 0 && every > 1",
	},
	{
		Name: "singleton-on-the-youngest", Package: "./sim", Run: "TestSingletonHandOver|TestSingletonAfterALoss",
		In:  "shard/strategy.oldest",
		Old: "cmp.Compare(r.UpNumber, best.UpNumber) < 0",
		New: "cmp.Compare(r.UpNumber, best.UpNumber) > 0",
	},

	// What follows has the singleton called in a storm while its lease is another's.
	{
		Name: "nobody-looks-when-a-lease-ends", Package: "./internal/leases", Run: "TestLeaseIsLost",
		In:  "internal/leases.Holder.Next",
		Old: "if h.held {\n\t\tsooner(h.valid)\n\t}",
		New: "",
	},
	{
		Name: "lease-counts-without-an-answer", Seeds: 20,
		In:  "internal/leases.Holder.expire",
		Old: "if !h.held || h.now < h.valid {",
		New: "if !h.held || h.call.ID != 0 || h.now < h.valid {",
	},
}

// roundBugs are in when rounds begin, and how they follow each other.
var roundBugs = []bug{
	{
		Name: "who-has-nothing-waits-for-loads", Package: "./shard", Run: "TestLoadAwareFillsWhoComesInOneRound",
		In:  "shard.moves.longest",
		Old: "return max(most, min(owned*empty/max(len(v.Regions), 1), maxFill))",
		New: "return most + 0*owned*empty",
	},
	{
		Name: "an-eager-region-steps-without-end", Package: "./shard", Run: "TestFreshStartWaitsForWhoComesTogether",
		In:  "shard.wantUnasked",
		Old: "e.at = 0",
		New: "_ = e",
	},
	{
		Name: "a-version-that-is-known-late-waits-for-the-interval", Package: "./shard", Run: "TestBalanceWaitsForAVersion",
		In:  "shard.moves.balance",
		Old: "rs.at = inStep(m.now+soon, soon)",
		New: "_ = rs",
	},
	{
		Name: "rounds-that-fail-follow-at-once", Package: "./shard", Run: "TestRoundsThatFailArePaused",
		In:  "shard.moves.ended",
		Old: "pause = max(pause, failPause<<min(rs.fruit, 10))",
		New: "_ = failPause",
	},
	{
		Name: "a-shard-moves-again-in-rounds-that-follow", Package: "./shard", Run: "TestStrategyThatIsNeverContent",
		In:  "shard.moves.balance",
		Old: "return rs.tried.Has(n.Shard)",
		New: "return false",
	},
	{
		Name: "rounds-wait-for-the-interval", Package: "./shard", Run: "TestTypesAreBalancedWithoutWaiting",
		In:  "shard.moves.ended",
		Old: "rs.at, rs.follows = max(m.now+pause, rs.calm), m.now >= rs.calm",
		New: "_ = pause",
	},
	{
		Name: "whoever-comes-waits-for-the-interval", Package: "./shard", Run: "TestTypesAreBalancedWithoutWaiting",
		In:  "shard.rounds.watch",
		Old: "changed = changed || may != p.may",
		New: "_ = may",
	},
	{
		Name: "rounds-begin-before-others-have-come", Package: "./shard", Run: "TestMembersThatComeTogether",
		In:  "shard.rounds.watch",
		Old: "rs.calm = min(m.now+wait, rs.stirred+settleMost*wait)",
		New: "rs.calm = min(m.now, rs.stirred+settleMost*wait)",
	},
	{
		Name: "the-balance-waits-for-whoever-comes-without-end", Package: "./shard", Run: "TestMembersThatComeTogether",
		In:  "shard.rounds.watch",
		Old: "rs.calm = min(m.now+wait, rs.stirred+settleMost*wait)",
		New: "rs.calm = m.now + wait",
	},
}
