// Tests of what all nodes must agree on: driven by the one list of it, so that an entry without a test fails, and a
// field of Config of which nobody has said whether nodes may differ in it (JOIN-1).

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/core/node"
)

// differing is how the second of two nodes differs from the first in one entry of the list.
type differing struct {
	base   func(*kith.Config) // of both
	change func(*kith.Config) // of the second alone
	named  string             // the key that is named first; empty: that of the entry
	theirs string             // the first node's value
	ours   string             // the second node's
}

func patientMajority(c *kith.Config) { c.Resolver.StableAfter = 2 * time.Second }

// differences has a row for every entry of node.Agreements.
var differences = map[string]differing{
	"max-payload": {change: func(c *kith.Config) { c.MaxPayload = 2 << 20 }, theirs: "1048576", ours: "2097152"},
	"window":      {change: func(c *kith.Config) { c.Window = 64 << 10 }, theirs: "1048576", ours: "65536"},
	"kith.resolver": {base: patientMajority, change: func(c *kith.Config) { c.Resolver.StableAfter = 3 * time.Second },
		theirs: "keep-majority stable-after=2s unstable-after=default",
		ours:   "keep-majority stable-after=3s unstable-after=default"},
	"kith.resolver-role": {base: patientMajority, change: func(c *kith.Config) { c.Resolver.Role = "core" }, ours: "core"},
	"kith.resolver-lease": {base: func(c *kith.Config) {
		c.Resolver.Strategy, c.Lease = kith.LeaseMajority, nobodysLease{}
		c.Resolver.LeaseName = "one"
	}, change: func(c *kith.Config) { c.Resolver.LeaseName = "two" }, theirs: "one", ours: "two"},
	"kith.stops-within": {base: patientMajority, change: func(c *kith.Config) { c.Membership.AcceptablePause *= 2 },
		named: "kith.silence-bound"},
	"kith.takeover-time": {change: func(c *kith.Config) { c.Sharding.TakeoverTime = 4 * time.Second }, theirs: "3s",
		ours: "4s"},
	"kith.silence-bound": {change: func(c *kith.Config) { c.Membership.HeartbeatInterval *= 2 }},
	"kith.process-death-is-proof": {change: func(c *kith.Config) { c.Sharding.ProcessDeathIsProof = true },
		theirs: "false", ours: "true"},
}

// nobodysLease is a lease that nobody gets.
type nobodysLease struct{}

func (nobodysLease) Acquire(context.Context, string, string) (bool, error) { return false, nil }
func (nobodysLease) Release(context.Context, string, string) error         { return nil }

// Nodes that differ in an entry of the list form no cluster: the second one gets the entry and both values, by the
// hello, and waits, or by the join, and ends.
func TestEachSettingThatMustAgree(t *testing.T) {
	t.Parallel()
	list := node.Agreements()
	require.Len(t, differences, len(list), "a row for each entry")
	for _, a := range list {
		d, ok := differences[a.Key]
		require.True(t, ok, "%s has no row", a.Key)
		t.Run(a.Key, func(t *testing.T) {
			t.Parallel()
			l, named := logger(t), a.Key
			if d.named != "" {
				named = d.named
			}
			configured := func(seeds ...string) kith.Config {
				c := kith.Config{Seeds: seeds, Membership: quick(), Resolver: kith.Resolver{Strategy: kith.ResolverOff}}
				if d.base != nil {
					c.Resolver.Strategy = kith.KeepMajority
					d.base(&c)
				} else {
					c.Sharding.TakeoverTime = 3 * time.Second
				}
				return c
			}
			first := start(t, l, configured())
			require.NoError(t, first.Ready(within(t)))
			c := configured(first.Addr().String())
			d.change(&c)
			second := start(t, l, c)
			if a.Join {
				var ended *kith.EndedError
				require.ErrorAs(t, second.Ready(within(t)), &ended)
				require.Equal(t, kith.EndJoinRefused, ended.Kind)
				require.Contains(t, ended.Reason, `setting "`+named+`" is "`+d.theirs)
				require.Contains(t, ended.Reason, `in the cluster and "`+d.ours)
			} else {
				why := awaitNotReady(t, second, kith.WaitSettings)
				require.Equal(t, []string{named, d.ours, d.theirs}, []string{why.Setting, why.Ours, why.Theirs})
			}
			require.Len(t, first.View().Members, 1)
		})
	}
}

// Every field of a Config is part of an entry of the list, or is among those in which nodes may differ.
func TestEveryFieldAgreesOrMayDiffer(t *testing.T) {
	const mayDiffer = `Listen Advertise Insecure Seeds AwaitSeeds Directory FlightRecord NeverForm FormNew Roles AppVersion
		Logger Lease MinBirth JoinTimeout LeaveTimeout Phases MaxMessage BulkBudget LinkBuffer LinkBudget PartialBudget
		MailboxBudget DataLoops DataConnections PollFor Workers MaxAsks AskTimeout Undelivered Incident Latency LatencyEvery
		Resolver.LeaseTimeout Resolver.LeaseHold
		Sharding.ParkBytes Sharding.ParkTime Sharding.RebalanceInterval Sharding.MaxMoves Sharding.MarkTime
		Sharding.DrainTime Sharding.MaxHandOver Sharding.NoLockProof
		Membership.LenientSettings Membership.SeedTimeout Membership.ProbeInterval Membership.JoinRetryAfter
		Membership.SeedCheckInterval Membership.GossipInterval Membership.GossipTimeToLive
		Membership.DifferentViewProbability Membership.ReduceDifferentViewAbove Membership.PushInterval
		Membership.PushFanout Membership.CompressAbove Membership.Deputies Membership.GossipToUnreachable
		Membership.Overview Membership.ClockEntries Membership.ClockEntryAge Membership.WeaklyUpAfter
		Membership.MinMembers Membership.MinRoleMembers Membership.LeaderInterval Membership.ReaperInterval
		Membership.TombstoneRetention Membership.ExitTimeout Membership.HeartbeatExpectedAfter Membership.MonitoredBy`
	known := map[string]bool{"Name": true, "TLS": true, "Membership.Settings": true} // compared beside the list
	for _, f := range strings.Fields(mayDiffer) {
		known[f] = true
	}
	for _, a := range node.Agreements() {
		for _, f := range a.Fields {
			require.NotContains(t, strings.Fields(mayDiffer), f, a.Key)
			known[f] = true
		}
	}
	fields := map[string]bool{}
	var walk func(in reflect.Type, prefix string)
	walk = func(in reflect.Type, prefix string) {
		for i := range in.NumField() {
			f := in.Field(i)
			switch name := prefix + f.Name; name {
			case "Membership", "Resolver", "Sharding":
				walk(f.Type, name+".")
			default:
				fields[name] = true
			}
		}
	}
	walk(reflect.TypeFor[kith.Config](), "")
	require.Equal(t, fields, known)
}

// The documentation of the package lists every field that must be equal on all nodes, and no other.
func TestGoDocListsWhatMustAgree(t *testing.T) {
	text, err := os.ReadFile("../../kith.go")
	require.NoError(t, err)
	_, part, ok := strings.Cut(string(text), "\n// # What must be equal on all nodes\n")
	require.True(t, ok)
	part, _, ok = strings.Cut(part, "\n// #")
	require.True(t, ok)
	listed := map[string]bool{}
	for line := range strings.Lines(part) {
		if fields, ok := strings.CutPrefix(line, "//\t"); ok {
			for f := range strings.SplitSeq(strings.TrimRight(fields, ",\n"), ",") {
				listed[strings.TrimSuffix(strings.TrimSpace(f), " or none")] = true
			}
		}
	}
	want := map[string]bool{"Name": true, "TLS": true, "Membership.Settings": true} // compared beside the list
	for _, a := range node.Agreements() {
		for _, f := range a.Fields {
			want[f] = true
		}
	}
	require.Equal(t, want, listed)
}

// The page lists every entry, and since which version it is compared.
func TestPageOfSettingsThatMustAgree(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	for _, a := range node.Agreements() {
		by := map[bool]string{true: "join, hello", false: "every hello"}[a.Join]
		_, rest, ok := strings.Cut(string(page), fmt.Sprintf("\n- **`%s`**, %s since version %d", a.Key, by, a.Since))
		require.True(t, ok, "docs/configuration.md does not list %s, %s, version %d", a.Key, by, a.Since)
		rest, _, _ = strings.Cut(rest, "\n- ")
		for _, f := range a.Fields {
			require.Contains(t, rest, "`"+f+"`", a.Key)
		}
	}
}
