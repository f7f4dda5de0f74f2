// Tests with real processes: small runs of the commands that start some.

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
	"github.com/kith-io/kith/internal/lab/bootruns"
	"github.com/kith-io/kith/internal/lab/instances"
	"github.com/kith-io/kith/internal/lab/rolling"
	"github.com/kith-io/kith/internal/lab/shardscale"
)

// A killed process is unreachable to all others, which say when they learnt it (FD-1).
func TestKillTestWithProcesses(t *testing.T) {
	r, _, _ := envtest.Line[killResult](t, program, "kill", "kill-test", "--nodes=3", "--rounds=1")
	require.Len(t, r.All, 1)
	require.Positive(t, r.FirstP50, "before the signal nobody can have noticed")
	require.GreaterOrEqual(t, r.AllMax, r.FirstP50)
}

// All parts of scale-shards with few shards; how long they take is the machine's business here (SHD-6).
func TestScaleShardsWithProcesses(t *testing.T) {
	r, _, errs := envtest.Line[shardscale.Result](t, program, "shards",
		"scale-shards", "--home-shards=50", "--home-limit=1h", "--shards=40", "--entities=400",
		"--rate=200", "--steady=200ms", "--interval=100ms", "--proxy-shards=100000", "--progress")
	require.Equal(t, []int{10, 10, 10, 10}, r.Hosted)
	require.GreaterOrEqual(t, *r.Moves, uint64(10))
	require.Zero(t, *r.Lost+*r.Undelivered)
	require.Equal(t, r.Sent, r.Handled)
	require.Greater(t, r.Sent, uint64(400))
	require.Positive(t, *r.Homed)
	require.Positive(t, *r.Rebalance)
	require.Positive(t, *r.RateRatio)
	require.Less(t, *r.ProxyHeap, 4096.0, "a place for each shard would be 22 MB")
	require.GreaterOrEqual(t, *r.ProxyRSS, 0.0, "where the system tells it, of the whole process")
	require.Contains(t, errs, "proxy: 100000 shards, 100 of them used")
}

// Instances of each hand-off are moved between real processes, one of which joins, and one leaves: nothing is lost, and
// what is ordered stays so (PRT-4).
func TestPartitionsWithProcesses(t *testing.T) {
	r, _, errs := envtest.Line[instances.Result](t, program, "partitions", "partitions", "--nodes=3", "--instances=1",
		"--moves=2", "--no-kill", "--no-cut", "--net=proxy", "--progress")
	for path, a := range r.Handoffs { // each on its own: the order does not show
		require.Positive(t, a.Handled, path)
		require.GreaterOrEqual(t, a.Lives, 4, path)
	}
	require.Contains(t, errs, "left in")
}

// A bound that is missed is an exit code, and the line is printed all the same.
func TestScaleShardsMissesItsBound(t *testing.T) {
	code, out, errs := program(t, "scale-shards", "--parts=home", "--home-shards=10", "--home-limit=1ns")
	require.Equal(t, env.ExitFailed, code, errs)
	require.Contains(t, errs, shardscale.ErrSlowHomes.Error())
	r := envtest.Last[shardscale.Result](t, out, "shards")
	require.Equal(t, 10, r.HomeShards)
	require.Nil(t, r.ProxyRSS, "it was not measured")
	require.NotContains(t, out, "moves")
}

// Three real processes are restarted one after the other, with others that tell and ask all the while: nothing is lost,
// reordered, doubled or left without an answer (SHD-9). How long asks take is the machine's business here.
func TestRollingRestartWithProcesses(t *testing.T) {
	r, out, errs := envtest.Line[rolling.Result](t, program, "rolling",
		"rolling", "--nodes=3", "--rounds=3", "--rate=2000", "--asks=500", "--entities=200",
		"--shards=20", "--senders=4", "--mode=blocking", "--large=100", "--tls", "--bound=1h",
		"--progress")
	require.Equal(t, 3, r.Restarts)
	require.Equal(t, 3, r.Coordinators, "each was the oldest when its turn came")
	require.Positive(t, r.Sent)
	require.Equal(t, r.Sent, r.Delivered)
	require.Zero(t, r.Lost+r.Reordered+r.Duplicated+r.Foreign+r.AskErrors)
	require.NotContains(t, out, "states_", "there were none")
	require.Positive(t, r.Asks)
	require.Positive(t, r.Moves)
	require.GreaterOrEqual(t, r.AskMax, r.AskP999)
	require.Contains(t, errs, "restart 3 of 3")
}

// A node joins two real processes under load: shards are even without a word of anybody, each moves once at most, and
// nothing is lost; and so they are, at once, when three start together with types that are kept alive (SHD-6, SHD-12).
func TestScaleOutWithProcesses(t *testing.T) {
	r, out, errs := envtest.Line[rolling.Scaled](t, program, "scaleout",
		"scale-out", "--from=2", "--nodes=3", "--rate=2000", "--asks=500", "--entities=500",
		"--shards=100", "--senders=4", "--steady=500ms", "--even=1h", "--times=1000", "--fresh=3", "--within=10s",
		"--progress")
	require.Len(t, r.Hosted, 3)
	require.Equal(t, r.Needed, r.Moves)
	require.Zero(t, r.Lost+r.Reordered+r.Duplicated+r.Foreign+r.AskErrors)
	require.Positive(t, r.Sent)
	require.Equal(t, 3, r.Fresh.Nodes)
	require.Contains(t, errs, "even after")
	code, out, errs := program(t, "scale-out", "--from=1", "--nodes=2", "--rate=100", "--asks=50", "--shards=10",
		"--entities=100", "--steady=100ms", "--fresh=0", "--even=1ns", "--times=1000", "--apart")
	require.Equal(t, env.ExitFailed, code, errs)
	require.Contains(t, errs, "later than 1ns")
	require.NotContains(t, out, "fresh")
	r = rolling.Scaled{}
	require.NoError(t, cli.ParseLine([]byte(out), "scaleout", &r))
	require.Equal(t, r.Needed, r.Moves)
	require.Positive(t, r.Up)
	require.NotNil(t, r.Apart)
	require.Positive(t, r.Apart.Joined)
}

// The entities carry a count and padding from owner to owner, in an order of restarts in which each node gives and
// takes; each begins with what the last owner had, and the exit code says so (SHD-9).
func TestRollingRestartCarriesStates(t *testing.T) {
	r, _, _ := envtest.Line[rolling.Result](t, program, "rolling",
		"rolling", "--nodes=2", "--rounds=2", "--rate=2000", "--asks=500", "--entities=200",
		"--shards=20", "--senders=4", "--state=1KiB", "--bound=1h")
	require.NotNil(t, r.States)
	require.Equal(t, 1024, r.StateBytes)
	require.GreaterOrEqual(t, r.StatesTaken, uint64(200), "the last of the two had all of them to give")
	require.Zero(t, r.StatesLost+r.StatesOlder)
	require.Zero(t, r.Lost+r.Reordered+r.Duplicated+r.Foreign+r.AskErrors)
}

// Real processes and a DNS server: three that start together, one that may only join and ends by its time limit, a node
// of another name, all addresses changed at once. One cluster each time (BOOT-1, BOOT-3, BOOT-4, BOOT-5, BOOT-7).
func TestLongNodesFindEachOtherByDNS(t *testing.T) {
	long.Test(t)
	withKith(t)
	r, _, _ := envtest.Line[bootruns.Result](t, program, "bootstrap",
		"bootstrap-test", "--cases=form3,alone,changed", "--margin=500ms")
	require.Equal(t, 3, r.Runs)
	require.Zero(t, r.Wrong)
	require.NotNil(t, r.Form3)
	require.Equal(t, env.ExitNoCluster, *r.Alone)
}

// A small number of simulated starts by the command (BOOT-7).
func TestStartsCommand(t *testing.T) {
	code, out, errs := program(t, "starts", "--starts=50")
	require.Equal(t, env.ExitOK, code, errs)
	require.True(t, strings.HasPrefix(out, `starts {"first":1,"starts":50,`), out)
}
