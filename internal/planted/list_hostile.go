// Planted bugs in what keeps bad input out.

package main

// hostileBugs are those of bad input: what is not counted, not bounded, or at others' cost.
var hostileBugs = []bug{
	{
		Name: "a-flood-delays-others", Package: "./internal/driver", Run: "TestInboxIsFair",
		In:  "internal/driver.inbox.take",
		Old: "n := min(len(l.frames), lineTurn)",
		New: "n := len(l.frames)",
	},
	{
		Name: "a-good-hello-costs-a-visit", Package: "./internal/transport", Run: "TestVisitsOfMembersAreGivenBack",
		In:  "internal/transport.Transport.handshake",
		Old: "} else if t.trust == nil {",
		New: "} else if t.trust != nil {",
	},
	{
		Name:    "a-full-door-turns-newcomers-away",
		Package: "./internal/transport", Run: "TestAdmissionLaw|TestAdmissionIsNotLocked",
		In:  "internal/transport.oldest",
		Old: "now-g.since >= admissionGrace {",
		New: "now-g.since >= time.Hour {",
	},
	{
		Name: "who-has-proven-itself-is-put-out", Package: "./internal/transport", Run: "TestAdmissionLaw",
		In:  "internal/transport.admission.proved",
		Old: "if g.queue == nil {",
		New: "if g.queue == nil || d.pending[g.nc] == g {",
	},
	{
		Name: "every-certificate-is-an-authority", Package: "./internal/trust", Run: "TestTanglesAreNotFollowed",
		In:  "internal/trust.State.between",
		Old: "if err == nil {",
		New: "if err == nil || !added[i] {",
	},
	{
		Name: "a-turn-is-held-while-waiting", Package: "./internal/transport", Run: "TestTurnsAreNotHeldByWaiting",
		In:   "internal/trust.feed.Read",
		Drop: "f.turn.give",
	},
	{
		Name: "a-joiner-is-of-another-cluster", Seeds: 60,
		In:      "internal/hello.Acceptor.Judge",
		Without: "h.ClusterID != 0",
	},
	{
		Name: "an-equal-window-is-too-large", Seeds: 60,
		In:  "internal/hello.Acceptor.Judge",
		Old: "int64(h.Window) > int64(a.Window)",
		New: "int64(h.Window) >= int64(a.Window)",
	},
	{
		Name: "a-hello-names-whom-it-was-told-of", Seeds: 60,
		In:  "internal/hello.Acceptor.Answer",
		Old: "return Ack{Version: version, From: a.Self,",
		New: "return Ack{Version: version, From: peer.ID{Addr: h.To, Inc: h.ToInc},",
	},
	{
		Name: "any-member-has-any-name", Package: "./internal/hello", Run: "TestBondLaw|TestBondIsConfirmed",
		In:  "internal/hello.Bond.Admits",
		Old: "if b.named && b.name != name {",
		New: "if b.named && name == \"\" {",
	},
	{
		Name: "a-jump-of-the-generation-displaces", Package: "./internal/transport", Run: "TestNameIsNotTaken",
		In:  "internal/hello.Bond.Admits",
		Old: "&& b.token != h.Token {",
		New: "&& b.token != h.Token && h.Generation < 1<<30 {",
	},
	{
		Name: "a-renewal-breaks-before-it-makes", Package: "./internal/transport", Run: "TestRenewalWhileManyArePending",
		In:  "internal/transport.uplink.renew",
		Old: "oc.version >= hello.TailSince && !u.renewing && believed {",
		New: "oc.version < hello.TailSince && !u.renewing && believed {",
	},
	{
		Name: "a-broken-frame-is-not-counted", Package: "./internal/transport", Run: "FuzzConnection",
		In:  "internal/transport.Transport.broken",
		Old: "t.fault(\"protocol\", &t.count.faultsProtocol,",
		New: "t.faults.warn(\"protocol\",",
	},
	{
		Name: "a-frame-is-kept-by-view", Package: "./internal/transport", Run: "FuzzConnection",
		In:  "internal/transport.splitter.keep",
		Old: "s.carry = append(s.carry, b...)",
		New: "s.carry = b",
	},
	{
		Name: "answers-nobody-reads-are-kept", Package: "./internal/transport", Run: "FuzzConnection",
		In:  "internal/transport.InConn.answer",
		Old: "if waiting > maxAckOutbound {",
		New: "if waiting > 1<<30 {",
	},
	{
		Name:    "answers-change-under-a-blocked-writer",
		Package: "./internal/transport", Run: "TestCreditOfAPeerThatReadsNothing",
		In:  "internal/transport.InConn.answer",
		Old: "if !c.write(c.loop, c.sending) {\n\t\t\treturn nil\n\t\t}",
		New: "_ = c.write(c.loop, c.sending)",
	},
	{
		Name: "room-of-a-broken-transfer-is-not-given-back", Seeds: 60,
		In:  "internal/flow.BulkReceiver.remove",
		Old: "case LargeMoving, LargeWhole:",
		New: "case LargeWhole:",
	},
	{
		Name: "whoever-guesses-the-number-answers", Package: "./internal/driver", Run: "TestRepliesOfOthersAreNotBelieved",
		In:  "internal/driver.askTable.awaiting",
		Old: "asked := r != nil && r.id == from",
		New: "asked := r == nil || r.id != (peer.ID{})",
	},
	{
		Name:    "half-sent-frames-cost-nothing",
		Package: "./internal/transport", Run: "TestHalfSentFramesHoldTheBudgetAtMost",
		In:  "internal/transport.splitter.fit",
		Old: "if need > keepCarry {",
		New: "if need > 1<<30 {",
	},
	{
		Name: "a-half-sent-frame-stays", Package: "./internal/transport", Run: "TestPartialFramesMakeWay",
		In:  "internal/transport.partials.look",
		Old: "if p.looks++; p.overdue(now) {",
		New: "if p.looks++; p.n < 0 {",
	},
	{
		Name: "a-peer-takes-all-the-room", Seeds: 60,
		In:  "internal/flow.BulkRoom.next",
		Old: "case p.passed == r.pass || p.held > 0 && p.held+w.n > share:",
		New: "case p.passed == r.pass || share == 0:",
	},
	{
		// Those others are late, and no promise is broken.
		Name: "who-waits-for-its-share-holds-up-others", Package: "./internal/flow", Run: "TestBulkShares",
		In:  "internal/flow.BulkRoom.next",
		Old: "p.passed = r.pass",
		New: "return -1",
	},
	{
		// An honest sender that sends no envelope ends the transfer.
		Name: "a-large-message-that-nobody-claims-stays", Package: "./internal/flow", Run: "TestBulkRoomHasAPrice",
		In:  "internal/flow.BulkReceiver.overdue",
		Old: "if now-m.since >= bulkUnclaimed*r.stall {",
		New: "if now-m.since >= 1000*bulkUnclaimed*r.stall {",
	},
	{
		Name: "a-backlog-without-bound", Seeds: 60,
		In:  "internal/plane.Gate.AtGate",
		Old: "case size > most-kept:",
		New: "case size > most:",
	},
	{
		Name: "beyond-the-backlog-is-dropped", Package: "./internal/driver", Run: "TestBeyondTheBacklogIsRefused",
		In:  "internal/exec.pass.keep",
		Old: "p.x.refuse(p.ahead.cache.typeOf(p.x, &env), from, &env, route.Suspended)",
		New: "p.x.cfg.Logger.Debug(\"beyond the backlog\", \"peer\", from.ID, \"reason\", route.Suspended)",
	},
	{
		Name: "a-bomb-stays", Package: "./internal/members", Run: "FuzzUnpack",
		In:  "internal/members.coder.unpack",
		Old: "c.raw = nil",
		New: "c.raw = c.raw[:0]",
	},
}

// adminBugs are those of the admin interface: who may change something, what is bounded, what is believed of others.
var adminBugs = []bug{
	{
		Name: "changing-route-wants-no-token", Package: "./admin", Run: "TestDescriptionHasTheRoutes",
		In:  "admin.routes",
		Old: "{\"POST\", \"/v1/undrain\", true,",
		New: "{\"POST\", \"/v1/undrain\", false,",
	},
	{
		Name: "token-is-asked-for-and-not-compared", Package: "./admin", Run: "TestToken",
		In:  "admin.keeper.knows",
		Old: "subtle.ConstantTimeCompare(want[:], have[:]) == 1",
		New: "subtle.ConstantTimeCompare(want[:], have[:]) <= 1",
	},
	{
		Name: "token-of-any-scheme", Package: "./admin", Run: "TestToken",
		In:  "admin.keeper.knows",
		Old: "return is &&",
		New: "return (is || got != \"\") &&",
	},
	{
		Name: "no-token-is-the-empty-token", Package: "./admin", Run: "TestToken",
		In:  "admin.keeper.admits",
		Old: "if d.open() {",
		New: "if d.open() && strings.HasPrefix(q.Header.Get(\"Authorization\"), \"Bearer\") {\n" +
			"\t\treturn true\n\t}\n\tif d.open() {",
	},
	{
		Name: "profiling-wants-no-token", Package: "./admin", Run: "TestToken",
		In:  "admin.serveProfiles",
		Old: "!keeper.open() && !keeper.admits(w, q)",
		New: "keeper.open() && !keeper.admits(w, q)",
	},
	{
		Name: "one-stream-too-many", Package: "./admin", Run: "TestThousandIdleStreams",
		In:  "admin.places.enter",
		Old: "len(p.taken) >= p.most",
		New: "len(p.taken) > p.most",
	},
	{
		Name: "stream-keeps-its-place", Package: "./admin", Run: "TestSlowReaderIsCut",
		In:  "admin.board.watch",
		Old: "defer free()",
		New: "_ = free",
	},
	{
		Name: "streams-of-some-kinds-have-all", Package: "./admin", Run: "TestConformanceEventStream",
		In:  "admin.kinds.of",
		Old: "if k == nil || k[e.Kind] {",
		New: "if k == nil || len(k) > 0 {",
	},
	{
		Name: "name-of-a-type-is-a-path", Package: "./admin", Run: "TestRemoteIsNotBelieved",
		In:  "admin.remote.report",
		Old: "url.PathEscape(name)",
		New: "(&url.URL{Path: name}).Path",
	},
	{
		Name: "answers-of-others-have-no-bound", Package: "./admin", Run: "TestRemoteIsNotBelieved",
		In:  "admin.remote.get",
		Old: "case len(body) > maxAnswer:",
		New: "case len(body) > 2*maxAnswer:",
	},
	{
		Name: "lists-of-others-have-no-bound", Package: "./admin", Run: "TestRemoteIsNotBelieved",
		In:   "admin.remote.look",
		Drop: "s.bound",
	},
	{
		Name: "redirects-are-followed", Package: "./admin", Run: "TestRemoteIsNotBelieved",
		In:  "admin.noRedirect",
		Old: "own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }",
		New: "",
	},
}

// operateBugs are those of what operators set and read: which source of a setting goes first, and
// what a terminal is told.
var operateBugs = []bug{
	{
		Name: "file-goes-before-the-environment", Package: "./internal/settings", Run: "TestPrecedence",
		In:  "internal/settings.sourceOf",
		Old: "os.LookupEnv(name); set {",
		New: "os.LookupEnv(name); set && values[flag.Name].line == 0 {",
	},
	{
		Name: "environment-goes-before-the-flag", Package: "./internal/settings", Run: "TestPrecedence",
		In:  "internal/settings.sourceOf",
		Old: "if onLine {",
		New: "if onLine && len(flag.Tag.Envs) == 0 {",
	},
	{
		Name: "secrets-in-force-are-shown", Package: "./internal/settings", Run: "TestSecrets",
		In:  "internal/settings.shown",
		Old: "return masked",
		New: "return flag.Target.Interface()",
	},
	{
		Name: "text-of-others-turns-around", Package: "./wire", Run: "TestPrintable",
		In:  "wire.IsPrintable",
		Old: "unicode.IsPrint(r)",
		New: "(unicode.IsPrint(r) || unicode.Is(unicode.Cf, r))",
	},
	{
		Name: "bytes-that-are-no-text-are-shown", Package: "./wire", Run: "TestPrintable",
		In:  "wire.IsPrintable",
		Old: "n != 1",
		New: "n != 0",
	},
	{
		Name: "line-may-be-written-over", Package: "./internal/cli", Run: "TestCleanEscapesOrders",
		In:  "internal/cli.cleaner.Write",
		Old: "r != '\\t'",
		New: "r != '\\t' && r != '\\r'",
	},
	{
		Name: "answer-of-the-api-is-not-escaped", Package: "./discovery", Run: "TestKubernetesRotates",
		In:  "discovery.refusal",
		Old: "\": %q\"",
		New: "\": %s\"",
	},
}
