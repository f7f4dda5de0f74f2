// Health over real sockets: a process that stood still, and a node on its way from start to end.

package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// watched is what the process of a watcher says for each event of its gate.
type watched struct {
	Kind       kith.EventKind
	Detail     string
	For        time.Duration
	Health     kith.Health
	Suspension kith.SuspensionStats
	Log        int // records that say the same
}

// short is a takeover time of which the half is soon over.
const short = 3 * time.Second

// watcher is a process with a node that tells of its own suspensions, until its input ends.
func watcher(seed string) {
	log := newRecords()
	n, err := kith.Start(context.Background(), kith.Config{Name: "test", Membership: quick(), Seeds: []string{seed},
		Resolver: kith.Resolver{Strategy: kith.ResolverOff}, Sharding: kith.Sharding{TakeoverTime: short},
		Logger: slog.New(log)})
	if err != nil {
		panic(err)
	}
	fmt.Println(n.Addr())
	go func() {
		for e := range n.Events(context.Background()) {
			if e.Kind != kith.NodeSuspended && e.Kind != kith.NodeResumed {
				continue
			}
			text := map[kith.EventKind]string{
				kith.NodeSuspended: "suspended: no message is handled until others confirm this node",
				kith.NodeResumed:   "handling messages again"}[e.Kind]
			for len(log.find(text)) == 0 { // nobody waits for a logger; this process does
				runtime.Gosched()
			}
			line, _ := json.Marshal(watched{e.Kind, e.Detail, e.For, n.Health(), n.Stats().Suspension, len(log.find(text))})
			fmt.Println(string(line))
		}
	}()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
	}
}

// MEM-10: a process that stood still for longer than half the takeover time says so when it goes on, with the reason,
// and says when others have confirmed it: as events, in its health, in its statistics and in its log.
func TestStoppedProcessTellsOfItsSuspension(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, func(_ int, cfg *kith.Config) { cfg.Sharding.TakeoverTime = short }, nil)
	k := spawn(t, "watch "+nodes[0].Addr().String())
	for _, n := range nodes {
		awaitView(t, n, func(v *kith.View) bool { return v.CountUp() == 3 })
	}
	require.NoError(t, k.cmd.Process.Signal(syscall.SIGSTOP))
	for _, n := range nodes {
		awaitView(t, n, func(v *kith.View) bool { return len(v.Unreachable) == 1 })
	}
	require.NoError(t, k.cmd.Process.Signal(syscall.SIGCONT))
	var said [2]watched
	for i, kind := range []kith.EventKind{kith.NodeSuspended, kith.NodeResumed} {
		require.NoError(t, json.Unmarshal([]byte(k.line()), &said[i]))
		require.Equal(t, kind, said[i].Kind)
		require.Positive(t, said[i].Log)
		require.Positive(t, said[i].Suspension.Count)
	}
	require.Contains(t, said[0].Detail, "the control loop did not step for")
	require.Equal(t, said[0].Detail, said[0].Suspension.Reason)
	require.Positive(t, said[1].For)
	require.GreaterOrEqual(t, said[1].Suspension.Total, said[1].For)
}

// A node says where it stands from its start to its end, and why it is not ready.
func TestHealthOfANode(t *testing.T) {
	t.Parallel()
	tuning := quick()
	tuning.MinMembers = 2
	l := logger(t)
	a := start(t, l, kith.Config{Membership: tuning})
	eventually(t, func() bool { return a.Health().State == kith.StateWaiting }, "waiting")
	eventually(t, func() bool { return a.Health().Waiting.For == kith.WaitMembers }, "the reason")
	require.Contains(t, a.Health().Reason, "1 of at least 2")
	require.False(t, a.Health().Ready())
	b := start(t, l, kith.Config{Membership: tuning, Seeds: []string{a.Addr().String()}})
	for _, n := range []*kith.Node{a, b} {
		eventually(t, func() bool { return n.Health().Ready() }, "ready")
		require.Empty(t, n.Health().Reason)
	}
	held := make(chan struct{})
	require.NoError(t, b.OnShutdown(kith.PhaseServiceUnbind, "wait", func(ctx context.Context) error {
		<-held
		return nil
	}))
	left := make(chan error, 1)
	go func() { left <- b.Leave(within(t)) }()
	eventually(t, func() bool { return b.Health().State == kith.StateLeaving }, "leaving")
	require.Contains(t, b.Health().Reason, "left")
	close(held)
	require.NoError(t, <-left)
	h := b.Health()
	require.Equal(t, kith.StateEnded, h.State)
	require.True(t, strings.Contains(h.Reason, "left"), h.Reason)
	require.False(t, h.Since.IsZero())
}

// A process that is killed and started again at its address is news for the living ones, and no error (MEM-9).
func TestRestartInPlaceIsNoError(t *testing.T) {
	t.Parallel()
	log := newRecords()
	nodes := cluster(t, 2, func(i int, cfg *kith.Config) {
		if i == 0 {
			cfg.Logger = slog.New(log)
		}
	}, nil)
	addr := nodes[1].Addr()
	for range 3 {
		old, _ := nodes[0].View().Member(nodes[1].ID())
		require.NoError(t, nodes[1].Close())
		nodes[1] = start(t, logger(t), kith.Config{Listen: addr.String(), Seeds: []string{nodes[0].Addr().String()}})
		awaitView(t, nodes[0], func(v *kith.View) bool {
			_, still := v.Member(old.ID)
			return !still && v.CountUp() == 2
		})
	}
	for _, rec := range *log.list.Load() {
		require.Less(t, rec.Level, slog.LevelError, rec.Message)
	}
}
