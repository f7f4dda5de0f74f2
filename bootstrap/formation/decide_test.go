// Tests of the decider: what it decides by what is observed, and what it must never do.

package formation

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

func node(host string) peer.ID { return peer.ID{Addr: peer.MustAddr(host + ":7355"), Inc: 7} }

func contact(host string) peer.Addr { return peer.MustAddr(host + ":7627") }

// answers are the observations of nodes that are in no cluster.
func answers(hosts ...string) (list []Observed) {
	for _, h := range hosts {
		list = append(list, Observed{Point: contact(h), Answered: true, Speaks: true, Reply: Reply{Cluster: "market",
			Node: node(h), Wire: wire.Spoken()}})
	}
	return list
}

func with(list []Observed, at int, change func(*Observed)) []Observed {
	list = append([]Observed{}, list...)
	change(&list[at])
	return list
}

const (
	hostA, hostB, hostC = "10.0.0.2", "10.0.0.3", "10.0.0.4"
)

func member(id uint64, seeds ...string) func(*Observed) {
	return func(o *Observed) {
		o.Reply.ClusterID = id
		for _, s := range seeds {
			o.Reply.Seeds = append(o.Reply.Seeds, node(s).Addr)
		}
	}
}

func silent(o *Observed) { o.Answered = false }

// dual are contact points of IPv6 that do not answer.
func dual(n int) (list []Observed) {
	for i := range n {
		list = append(list, Observed{Point: peer.MustAddr(fmt.Sprintf("[fd00::%d]:7627", i+1))})
	}
	return list
}

// Three points are required, the margin is 5 s, this node is 10.0.0.2 where nothing else is said: what F-M2 of the
// reference has too (TestConformanceJoinDecider), and what follows from its rules (BOOT-3, BOOT-4, BOOT-5, BOOT-7,
// BOOT-8).
func TestLowestAddress(t *testing.T) {
	all := answers(hostA, hostB, hostC)
	for _, c := range []struct {
		name   string
		change func(*Info)
		points []Observed
		stable time.Duration
		action Action
		hold   Hold
	}{
		{"one observation with seeds", nil, with(answers(hostA, hostB), 1, member(5, hostB)), 0, JoinCluster, 0},
		{"all empty, changed 2 s ago", nil, all, 2 * time.Second, KeepLooking, HoldUnstable},
		{"only A and B known", nil, answers(hostA, hostB), 6 * time.Second, KeepLooking, HoldTooFew},
		{"all known, only A and B answered", nil, with(all, 2, silent), 6 * time.Second, KeepLooking, HoldTooFew},
		{"all answered, changed 6 s ago", nil, all, 6 * time.Second, FormCluster, 0},
		{"the lowest may not form", func(i *Info) { i.Self = node(hostB) }, with(all, 0, func(o *Observed) {
			o.Reply.Never = true
		}), 6 * time.Second, FormCluster, 0},
		{"the two lowest may not", func(i *Info) { i.Self = node(hostB) }, with(with(all, 0, func(o *Observed) {
			o.Reply.Never = true
		}), 2, func(o *Observed) { o.Reply.Never = true }), 6 * time.Second, FormCluster, 0},
		{"one who may not, not the lowest", func(i *Info) { i.Self, i.NeverForm = node(hostB), true }, all, 6 * time.Second,
			KeepLooking, HoldNeverForm},
		{"nodes of two families that listen in one", func(i *Info) { i.Majority = true }, append(dual(3), all...),
			6 * time.Second, FormCluster, 0},
		{"the same, no majority", nil, append(dual(3), all...), 6 * time.Second, KeepLooking, HoldSilent},
		{"more silent ones than answer", func(i *Info) { i.Majority = true }, append(dual(4), all...), 6 * time.Second,
			KeepLooking, HoldSilent},
		{"one of the answering family is silent", func(i *Info) { i.Majority, i.Required = true, 2 },
			append(dual(2), with(all, 2, silent)...), 6 * time.Second, KeepLooking, HoldSilent},
		{"at the margin", nil, all, 5 * time.Second, FormCluster, 0},
		{"the same, may not form", func(i *Info) { i.NeverForm = true }, all, 6 * time.Second, KeepLooking, HoldNeverForm},
		{"the same on 10.0.0.3", func(i *Info) { i.Self = node(hostB) }, all, 6 * time.Second, KeepLooking, HoldNotLowest},

		{"no look-up yet", func(i *Info) { i.Known = false }, nil, 0, KeepLooking, HoldUnknown},
		{"nobody", nil, nil, time.Minute, KeepLooking, HoldTooFew},
		{"two suffice and a third is silent", func(i *Info) { i.Required = 2 }, with(all, 2, silent), time.Minute,
			KeepLooking, HoldSilent},
		{"the same, and some may be silent", func(i *Info) { i.Required, i.Silent = 2, true }, with(all, 2, silent),
			time.Minute, FormCluster, 0},
		{"one node at three points is one", nil, with(with(all, 1, func(o *Observed) { o.Reply.Node = node(hostA) }), 2,
			func(o *Observed) { o.Reply.Node = node(hostA) }), time.Minute, KeepLooking, HoldTooFew},
		{"this node is not listed", func(i *Info) { i.Self = node("10.0.0.1") }, all, time.Minute, KeepLooking,
			HoldNotListed},
		{"high bytes are high", func(i *Info) { i.Self = node("200.0.0.1") }, answers("10.0.0.1", "100.0.0.1",
			"200.0.0.1"), time.Minute, KeepLooking, HoldNotLowest},
		{"another name does not count", nil, with(all, 2, func(o *Observed) { o.Foreign = true }), time.Minute, KeepLooking,
			HoldTooFew},
		{"another name holds up nobody", func(i *Info) { i.Required = 2 }, with(all, 2, func(o *Observed) {
			o.Foreign = true
			member(9, hostC)(o)
		}), time.Minute, FormCluster, 0},
		{"another is about to form", nil, with(all, 1, func(o *Observed) { o.Reply.Forms = true }), time.Minute,
			KeepLooking, HoldForming},
		{"two clusters", nil, with(with(all, 1, member(5, hostB)), 2, member(6, hostC)), time.Minute, KeepLooking,
			HoldDuplicate},
		{"two clusters, one is remembered", func(i *Info) { i.Remembered = 6 }, with(with(all, 1, member(5, hostB)), 2,
			member(6, hostC)), time.Minute, JoinCluster, 0},
		{"no common version does not count", nil, with(all, 1, func(o *Observed) { o.Speaks = false }), time.Minute,
			KeepLooking, HoldTooFew},
		{"a cluster without a common version", func(i *Info) { i.Required = 2 }, with(all, 1, func(o *Observed) {
			o.Speaks = false
			member(5, hostB)(o)
		}), time.Minute, KeepLooking, HoldIncompatible},
		{"a cluster that names nobody", func(i *Info) { i.Required = 2 }, with(all, 1, member(5)), time.Minute, KeepLooking,
			HoldForming},
		{"a cluster that names this address", func(i *Info) { i.Required = 2 }, with(all, 1, member(5, hostA)), time.Minute,
			KeepLooking, HoldForming},
	} {
		info := Info{Self: node(hostA), Required: 3, Margin: 5 * time.Second, Stable: c.stable, Known: true,
			Points: c.points}
		if c.change != nil {
			c.change(&info)
		}
		d := LowestAddress{}.Decide(info)
		require.Equal(t, c.action, d.Action, c.name)
		require.Equal(t, c.hold, d.Hold, c.name)
		require.Equal(t, d.Action == KeepLooking, d.Detail != "", c.name)
		require.NotContains(t, d.Seeds, info.Self.Addr, c.name)
	}
	info := Info{Self: node(hostA), Required: 3, Known: true, Remembered: 6,
		Points: with(with(all, 1, member(5, hostB)), 2, member(6, hostC))}
	require.Equal(t, []peer.Addr{node(hostC).Addr}, LowestAddress{}.Decide(info).Seeds)
	info.Points = with(with(all, 1, member(6, hostB, "10.0.0.9", "10.0.0.8")), 2, member(6, hostC, "10.0.0.9",
		"10.0.0.7", "10.0.0.6", hostA))
	require.Len(t, LowestAddress{}.Decide(info).Seeds, MaxSeeds)
}

// All faults at once, and the default of the required number: a majority of the expected size (BOOT-4, BOOT-7).
func TestConfig(t *testing.T) {
	good := Config{Cluster: "market", Self: node(hostA), Point: contact(hostA)}
	require.NoError(t, good.Validate())
	for expected, required := range map[int]int{0: 2, 1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 9: 5, 10: 6} {
		c := good
		c.Expected = expected
		require.Equal(t, required, c.WithDefaults().Required)
		require.Equal(t, expected > 0, c.Majority())
	}
	require.False(t, Config{Expected: 4, Required: 2}.Majority())
	err := Config{Expected: 3, Required: 4, Margin: -1, FreshFor: time.Millisecond, Wire: wire.Versions{Newest: 1,
		Oldest: 2}}.Validate()
	require.ErrorIs(t, err, ErrBadConfig)
	for _, want := range []string{"Cluster", "Self", "Point", "Wire", "Required is 4", "Margin", "FreshFor"} {
		require.ErrorContains(t, err, want)
	}
}
