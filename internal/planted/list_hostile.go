// Planted bugs in what keeps bad input out.

package main

// hostileBugs are those of bad input: what is not counted, not bounded, or at others' cost.
var hostileBugs = []bug{
	{
		Name: "a-flood-delays-others", Package: "./internal/driver", Run: "TestInboxIsFair",
		File: "internal/driver/inbox.go",
		Old:  "n := min(len(l.frames), lineTurn)",
		New:  "n := len(l.frames)",
	},
	{
		Name: "a-good-hello-costs-a-visit", Package: "./internal/transport", Run: "TestVisitsOfMembersAreGivenBack",
		File: "internal/transport/accept.go",
		Old:  "} else if t.trust == nil {",
		New:  "} else if t.trust != nil {",
	},
	{
		Name: "a-full-door-turns-newcomers-away", Package: "./internal/transport", Run: "TestDoorLaw|TestDoorIsNotLocked",
		File: "internal/transport/door.go",
		Old:  "now-g.since >= doorGrace {",
		New:  "now-g.since >= time.Hour {",
	},
	{
		Name: "who-has-proven-itself-is-put-out", Package: "./internal/transport", Run: "TestDoorLaw",
		File: "internal/transport/door.go",
		Old:  "\tif g.queue == nil {\n\t\treturn",
		New:  "\tif g.queue == nil || d.guests[g.nc] == g {\n\t\treturn",
	},
	{
		Name: "every-certificate-is-an-authority", Package: "./internal/trust", Run: "TestTanglesAreNotFollowed",
		File: "internal/trust/chain.go",
		Old:  "\t\t\tif err == nil {\n",
		New:  "\t\t\tif err == nil || !added[i] {\n",
	},
	{
		Name: "a-turn-is-held-while-waiting", Package: "./internal/transport", Run: "TestTurnsAreNotHeldByWaiting",
		File: "internal/trust/feed.go",
		Old:  "\tf.turn.give() // whoever",
		New:  "\t// whoever",
	},
	{
		Name: "a-joiner-is-of-another-cluster", Seeds: 60,
		File: "internal/hello/judge.go",
		Old:  "case h.ClusterID != 0 && a.ClusterID != 0 && h.ClusterID != a.ClusterID:",
		New:  "case a.ClusterID != 0 && h.ClusterID != a.ClusterID:",
	},
	{
		Name: "an-equal-window-is-too-large", Seeds: 60,
		File: "internal/hello/judge.go",
		Old:  "int64(h.Window) > int64(a.Window)",
		New:  "int64(h.Window) >= int64(a.Window)",
	},
	{
		Name: "a-hello-names-whom-it-was-told-of", Seeds: 60,
		File: "internal/hello/judge.go",
		Old:  "return Ack{Version: version, From: a.Self,",
		New:  "return Ack{Version: version, From: peer.ID{Addr: h.To, Inc: h.ToInc},",
	},
	{
		Name: "any-member-has-any-name", Package: "./internal/hello", Run: "TestBondLaw|TestBondIsConfirmed",
		File: "internal/hello/bond.go",
		Old:  "if b.named && b.name != name {",
		New:  "if b.named && name == \"\" {",
	},
	{
		Name: "a-jump-of-the-generation-displaces", Package: "./internal/transport", Run: "TestNameIsNotTaken",
		File: "internal/hello/bond.go",
		Old:  "&& b.token != h.Token {",
		New:  "&& b.token != h.Token && h.Generation < 1<<30 {",
	},
	{
		Name: "a-renewal-breaks-before-it-makes", Package: "./internal/transport", Run: "TestRenewalAtALockedDoor",
		File: "internal/transport/renew.go",
		Old:  "oc.version >= hello.TailSince && !u.renewing && believed {",
		New:  "oc.version > hello.TailSince && !u.renewing && believed {",
	},
	{
		Name: "a-broken-frame-is-not-counted", Package: "./internal/transport", Run: "FuzzConnection",
		File: "internal/transport/partial.go",
		Old:  "\tt.fault(\"protocol\", &t.count.faultsProtocol,",
		New:  "\tt.faults.warn(\"protocol\",",
	},
	{
		Name: "a-frame-is-kept-by-view", Package: "./internal/transport", Run: "FuzzConnection",
		File: "internal/transport/split.go",
		Old:  "\ts.carry = append(s.carry, b...)\n\treturn nil\n",
		New:  "\ts.carry = b\n\treturn nil\n",
	},
	{
		Name: "answers-nobody-reads-are-kept", Package: "./internal/transport", Run: "FuzzConnection",
		File: "internal/transport/inconn.go",
		Old:  "if waiting > maxAckOutbound {",
		New:  "if waiting > 1<<30 {",
	},
	{
		Name:    "answers-change-under-a-parked-writer",
		Package: "./internal/transport", Run: "TestCreditOfAPeerThatReadsNothing",
		File: "internal/transport/inconn.go",
		Old:  "\t\tif !c.write(c.loop, c.sending) {\n\t\t\treturn nil\n\t\t}\n",
		New:  "\t\t_ = c.write(c.loop, c.sending)\n",
	},
	{
		Name: "room-of-a-broken-transfer-is-not-given-back", Package: "./internal/transport", Run: "FuzzBulkConnection",
		File: "internal/flow/bulk_receive.go",
		Old:  "\tcase LargeMoving, LargeWhole:\n\t\tr.room.Give(r.from, m.size())",
		New:  "\tcase LargeWhole:\n\t\tr.room.Give(r.from, m.size())",
	},
	{
		Name: "whoever-guesses-the-number-answers", Package: "./internal/driver", Run: "TestRepliesOfOthersAreNotBelieved",
		File: "internal/driver/ask.go",
		Old:  "asked := r != nil && r.id == from\n",
		New:  "asked := r == nil || r.id != (peer.ID{})\n",
	},
	{
		Name: "half-sent-frames-cost-nothing", Package: "./internal/transport", Run: "TestHalfSentFramesHoldTheBudgetAtMost",
		File: "internal/transport/split.go",
		Old:  "\tif need > keepCarry {\n",
		New:  "\tif need > 1<<30 {\n",
	},
	{
		Name: "a-half-sent-frame-stays", Package: "./internal/transport", Run: "TestPartialFramesMakeWay",
		File: "internal/transport/partial.go",
		Old:  "if p.looks++; p.overdue(now) {",
		New:  "if p.looks++; p.n < 0 {",
	},
	{
		Name: "a-peer-takes-all-the-room", Package: "./internal/flow", Run: "TestBulkShares",
		File: "internal/flow/bulk_room.go",
		Old:  "case p.passed == r.pass || p.held > 0 && p.held+w.n > share:",
		New:  "case p.passed == r.pass || share == 0:",
	},
	{
		Name: "who-waits-for-its-share-holds-up-others", Package: "./internal/flow", Run: "TestBulkShares",
		File: "internal/flow/bulk_room.go",
		Old:  "\t\t\tp.passed = r.pass\n",
		New:  "\t\t\treturn -1\n",
	},
	{
		Name: "a-large-message-that-nobody-claims-stays", Package: "./internal/flow", Run: "TestBulkRoomHasAPrice",
		File: "internal/flow/bulk_receive.go",
		Old:  "if now-m.since >= bulkUnclaimed*r.stall {",
		New:  "if now-m.since >= 1000*bulkUnclaimed*r.stall {",
	},
	{
		Name: "a-backlog-without-bound", Seeds: 60,
		File: "internal/plane/gate.go",
		Old:  "case size > most-kept:",
		New:  "case size > most:",
	},
	{
		Name: "beyond-the-backlog-is-dropped", Package: "./internal/driver", Run: "TestBeyondTheBacklogIsRefused",
		File: "internal/exec/inbound.go",
		Old:  "\t\t\tp.x.refuse(p.ahead.cache.typeOf(p.x, &env), from, &env, route.Suspended)\n",
		New:  "\t\t\tp.x.cfg.Logger.Debug(\"beyond the backlog\", \"peer\", from.ID, \"reason\", route.Suspended)\n",
	},
	{
		Name: "a-bomb-stays", Package: "./internal/members", Run: "FuzzUnpack",
		File: "internal/members/pack.go",
		Old:  "\t\tc.raw = nil\n\t}\n\treturn plain, err",
		New:  "\t\tc.raw = c.raw[:0]\n\t}\n\treturn plain, err",
	},
}
