// Planted bugs of nodes that know nobody: who forms a cluster, whom they join, what discovery may do to them.

package main

var startsBugs = []bug{
	{
		Name: "forms-without-promises", Package: "./internal/starts", Run: "TestStarts$",
		In:  "formation.Machine.tryForming",
		Old: "if !all ||",
		New: "if !all && m.now < 0 ||",
	},
	{
		Name: "promises-itself-to-two", Package: "./internal/starts", Run: "TestStarts$",
		In:  "formation.Machine.asked",
		Old: "m.promise.to.IsZero() ||",
		New: "m.promise.to != m.cfg.Self ||",
	},
	{
		Name: "a-promise-ends-by-any-reply", Package: "./internal/starts", Run: "TestStarts$",
		In:      "formation.Machine.holderSaid",
		Without: "r.Ended >= m.promise.attempt",
	},
	{
		Name: "a-promise-ends-soon", Package: "./internal/starts", Run: "TestStarts$",
		In:  "formation.Machine.keepHolder",
		Old: "> holderLimit",
		New: "> holderLimit/30",
	},
	{
		Name: "another-name-is-joined", Package: "./internal/starts", Run: "TestStarts$",
		In:  "formation.Machine.info",
		Old: "p.reply.Cluster != m.cfg.Cluster",
		New: "p.reply.Cluster == \"\"",
	},
	{
		Name: "a-failed-look-up-begins-the-margin-anew", Package: "./formation",
		Run: "TestFailedLookUpKeepsTheLastAnswer",
		In:  "formation.Machine.LookedUp",
		Old: "m.lookErr = failed",
		New: "m.lookErr, m.changedAt = failed, m.now",
	},
	{
		Name: "the-margin-is-not-kept", Package: "./formation", Run: "TestChangesBeginTheMarginAnew",
		In:  "formation.LowestAddress.Decide",
		Old: "case info.Stable < info.Margin:",
		New: "case info.Stable < 0:",
	},
	{
		Name: "silent-points-are-forgotten", Package: "./formation", Run: "TestLowestAddress",
		In:      "formation.LowestAddress.Decide",
		Without: "!info.Silent",
	},
	{
		Name: "of-two-clusters-one-is-joined", Package: "./formation", Run: "TestLowestAddress",
		In:  "formation.existing",
		Old: "case twin && !known:",
		New: "case twin && known && !foreign && len(seeds) == 0:",
	},
	{
		Name: "half-of-the-expected-suffice", Package: "./formation", Run: "TestConfig",
		In:  "formation.Config.WithDefaults",
		Old: "c.Required = c.Expected/2 + 1",
		New: "c.Required = (c.Expected + 1) / 2",
	},
	{
		Name: "who-awaits-seeds-forms-a-cluster", Package: "./membership", Run: "TestSeedsComeLater",
		In:  "membership.joining.startJoin",
		Old: "!c.NeverForm && !c.Await ||",
		New: "!c.NeverForm ||",
	},
	{
		Name: "seeds-are-not-looked-at-anew", Package: "./membership", Run: "TestSeedsAndForming",
		In:  "membership.joining.useSeeds",
		Old: "j.first, j.forming.looked = true, false",
		New: "j.first, j.forming.looked = true, true",
	},
	{
		Name: "unreachable-members-are-named", Package: "./bootstrap", Run: "TestConformanceContactPointNamesFive",
		In:      "bootstrap.seeds",
		Without: "!v.Unreachable.Has(m.ID)",
	},
	{
		Name: "weakly-up-is-ready", Package: "./internal/node", Run: "TestConformanceReadyStates",
		In:  "internal/node.Node.stands",
		Old: "h.self.Working() &&",
		New: "(h.self.Working() || h.self == membership.WeaklyUp) &&",
	},
	{
		Name: "answers-of-any-content-type-are-believed", Package: "./bootstrap", Run: "TestOnlyJSONIsBelieved",
		In:  "bootstrap.unbelieved",
		Old: "case !isJSON(a.Header):",
		New: "case a.Header == nil:",
	},
	{
		Name: "promises-are-given-to-any-page", Package: "./bootstrap", Run: "TestBadRequestsToContactPoint",
		In:  "bootstrap.checked",
		Old: "case !isJSON(q.Header):",
		New: "case q.Header == nil:",
	},
	{
		Name: "contact-point-answers-to-any-name", Package: "./bootstrap", Run: "TestNamesOfContactPoint",
		In:  "bootstrap.Bootstrap.found",
		Old: "p.Listed && localname.Same(p.Point.String(), host)",
		New: "p.Listed || host != p.Failed",
	},
	{
		Name: "found-seeds-go-before-an-operators", Package: "./membership", Run: "TestToldSeeds",
		In:  "membership.joining.useSeeds",
		Old: "case j.ordered && !c.Told:",
		New: "case j.ordered && len(c.Seeds) == 0:",
	},
	{
		Name: "found-seeds-stay-beside-an-operators", Package: "./membership", Run: "TestToldSeeds",
		In:  "membership.joining.forget",
		Old: "peer.Addr{}, nil, nil",
		New: "peer.Addr{}, j.seeds, f.contacts",
	},
	{
		Name: "an-attempt-outlives-an-operators-word", Package: "./formation", Run: "TestToldEndsTheSearch",
		In:   "formation.Machine.Told",
		Drop: "m.giveUp",
	},
	{
		Name: "told-node-is-a-seed", Package: "./bootstrap", Run: "TestToldNodeFollowsItsOperator",
		In:  "bootstrap.Bootstrap.sayUnless",
		Old: "if told == nil {",
		New: "if told == nil || v != nil {",
	},
	{
		Name: "contact-point-stays-with-the-ended-node", Package: "./bootstrap", Run: "TestContactPointFollowsItsNode",
		In:   "bootstrap.Bootstrap.Follow",
		Drop: "b.machine.GoesOn",
	},
	{
		Name: "a-broken-decider-ends-the-process", Package: "./bootstrap", Run: "TestDeciderPanics",
		In:  "bootstrap.guarded.Decide",
		Old: "why := recover(); why != nil",
		New: "why := any(nil); why != nil",
	},
	{
		Name: "failed-look-up-drops-the-last-answer", Package: "./formation", Run: "TestFailedLookUpKeepsTheLastAnswer",
		In:  "formation.Machine.LookedUp",
		Old: "m.lookErr = failed",
		New: "m.lookErr = failed\n\t\tm.list(nil)",
	},
	{
		Name: "one-silent-point-is-overlooked", Package: "./formation", Run: "TestLowestAddress",
		In:  "formation.LowestAddress.Decide",
		Old: "len(silent) > 0",
		New: "len(silent) > 1",
	},
	{
		Name: "anybody-forms", Package: "./formation", Run: "TestLowestAddress",
		In:  "formation.LowestAddress.Decide",
		Old: "if lowest != info.Self {",
		New: "if lowest.IsZero() {",
	},
	{
		Name: "highest-address-forms", Package: "./formation", Run: "TestLowestAddress",
		In:  "formation.LowestAddress.Decide",
		Old: "slices.MinFunc(slices.DeleteFunc",
		New: "slices.MaxFunc(slices.DeleteFunc",
	},
	{
		Name: "higher-address-goes-first", Package: "./formation", Run: "TestLowerAddressGoesFirst",
		In:  "formation.Machine.asked",
		Old: "a.From.Less(m.cfg.Self)",
		New: "m.cfg.Self.Less(a.From)",
	},
	{
		Name: "seeds-of-a-decider-are-believed", Package: "./formation", Run: "TestDecider",
		In:  "formation.Machine.allowed",
		Old: "return !slices.Contains(named, a)",
		New: "return a.IsZero()",
	},
	{
		Name: "method-that-cannot-tell-has-nobody", Package: "./discovery", Run: "TestAggregate",
		In:  "discovery.aggregate.Lookup",
		Old: "errs = append(errs, err)\n\t\tif",
		New: "if",
	},
	{
		Name: "half-written-file-is-read", Package: "./discovery", Run: "TestFileChanges",
		In:  "discovery.parseFile",
		Old: "text[len(text)-1] != '\\n'",
		New: "len(text) > MaxFile",
	},
	{
		Name: "bad-line-is-skipped", Package: "./discovery", Run: "TestFileChanges",
		In:  "discovery.parseFile",
		Old: "return nil, fmt.Errorf(\"line %d: %w\", n, err)",
		New: "continue",
	},
	{
		Name: "broken-dns-has-nobody", Package: "./discovery", Run: "TestDNSFailures",
		In:      "internal/names.missing",
		Without: "dns.IsNotFound",
	},
	{
		Name: "broken-dns-has-no-services", Package: "./discovery", Run: "TestDNSFailures",
		In:      "internal/names.Missing",
		Without: "dns.IsNotFound",
	},
	{
		Name: "part-of-too-many-targets-is-taken", Package: "./discovery", Run: "TestNormalize",
		In:  "discovery.Normalize",
		Old: "return nil, tooMany(len(list))",
		New: "list = list[:MaxTargets]",
	},
	{
		Name: "service-without-a-port-counts", Package: "./discovery", Run: "TestDNSFailures",
		In:      "discovery.dns.services",
		Without: "s.Port == 0",
	},
	{
		Name: "contact-stays-with-who-answers", Package: ".", Run: "TestSeedsBehindOneAddress",
		In:  "internal/transport.control.lookElsewhere",
		Old: "now.Sub(c.upSince) < p.after",
		New: "now.Sub(c.upSince) > 0",
	},
	{
		Name: "contact-point-stays-with-who-answers", Package: "./bootstrap", Run: "TestContactPointsBehindOneAddress",
		In:  "bootstrap.Bootstrap.probe",
		Old: "reply.ClusterID == 0",
		New: "reply.ClusterID != 0",
	},
	{
		Name: "passed-address-goes-first", Package: "./internal/names", Run: "TestPassed",
		In:  "internal/names.dialling.try",
		Old: "list = d.b.inOrder(d.host, list)",
		New: "",
	},
	{
		Name: "token-is-read-once", Package: "./discovery", Run: "TestKubernetesRotates",
		In: "discovery.kubernetes.part",
		Old: "func (k *kubernetes) part(ctx context.Context, next string) (list podList, err error) {\n" +
			"\tclient, err := k.connect()\n\tif err != nil {\n\t\treturn list, err\n\t}\n" +
			"\ttoken, err := k.secret(\"token\")\n",
		New: "var keptToken []byte\n\n" +
			"func (k *kubernetes) part(ctx context.Context, next string) (list podList, err error) {\n" +
			"\tclient, err := k.connect()\n\tif err != nil {\n\t\treturn list, err\n\t}\n" +
			"\tif keptToken == nil {\n\t\tkeptToken, err = k.secret(\"token\")\n\t}\n\ttoken := keptToken\n",
	},
	{
		Name: "authority-is-read-once", Package: "./discovery", Run: "TestKubernetesRotates",
		In:  "discovery.kubernetes.connect",
		Old: "bytes.Equal(ca, k.ca)",
		New: "(bytes.Equal(ca, k.ca) || len(k.ca) > 0)",
	},
}
