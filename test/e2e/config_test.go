// Tests of starting: every fault of a configuration at once, addresses taken, seeds that do not answer, strangers.

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/logs/logstest"
)

func TestConfigFaultsAllAtOnce(t *testing.T) {
	require.NoError(t, kith.Config{}.Validate(), "the zero value is fine")
	bad := kith.Config{
		Name: strings.Repeat("n", 65), Listen: "nonsense", Advertise: "also nonsense",
		Seeds: []string{"127.0.0.1", "a:1", "a:1"}, Roles: []string{""}, MaxPayload: 1,
		LinkBuffer: 1, LinkBudget: 1, Window: 1, MailboxBudget: 1,
		DataLoops: -1, DataConnections: -1, Workers: -1, MaxAsks: -1, AskTimeout: -1, JoinTimeout: -1,
		Sharding: kith.Sharding{TakeoverTime: -1, ParkBytes: 1, ParkTime: -1, RebalanceInterval: 1, MaxMoves: 1<<14 + 1,
			MarkTime: -1, DrainTime: -1, MaxHandOver: -1},
		LeaveTimeout: -1,
		Membership:   kith.MembershipConfig{Threshold: 99},
	}
	err := bad.Validate()
	require.ErrorIs(t, err, kith.ErrBadConfig)
	for _, name := range []string{"Name", "Listen", "Advertise", "no port", "twice", "role", "MaxPayload",
		"LinkBuffer", "LinkBudget",
		"Window", "ParkBytes", "ParkTime", "MailboxBudget", "DataLoops", "DataConnections", "Workers", "MaxAsks",
		"AskTimeout",
		"TakeoverTime", "RebalanceInterval", "MaxMoves", "MarkTime", "DrainTime",
		"MaxHandOver", "JoinTimeout", "LeaveTimeout", "Threshold"} {
		require.ErrorContains(t, err, name)
	}
	_, startErr := kith.Start(context.Background(), bad)
	require.EqualError(t, startErr, err.Error())
}

// TestFixedTakeoverTime: it must be long enough for five members, by the settings of detector and resolver (MEM-10).
func TestFixedTakeoverTime(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   kith.Config
		least time.Duration
	}{
		"default":  {kith.Config{}, 17 * time.Second},
		"lease":    {kith.Config{Resolver: kith.Resolver{Strategy: kith.LeaseMajority}, Lease: noLease{}}, 18 * time.Second},
		"patience": {kith.Config{Resolver: kith.Resolver{StableAfter: time.Second}}, 10 * time.Second},
		"detector": {kith.Config{Membership: kith.MembershipConfig{AcceptablePause: 8 * time.Second}}, 22 * time.Second},
		"off":      {kith.Config{Resolver: kith.Resolver{Strategy: kith.ResolverOff}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.cfg.Validate())
			c.cfg.Sharding.TakeoverTime = c.least
			require.NoError(t, c.cfg.Validate())
			if c.cfg.Sharding.TakeoverTime--; c.cfg.Sharding.TakeoverTime > 0 {
				require.ErrorContains(t, c.cfg.Validate(), "cut off may go on for "+c.least.String())
			}
		})
	}
}

// noLease is a lease that nobody gets.
type noLease struct{}

func (noLease) Acquire(context.Context, string, string) (bool, error) { return false, nil }
func (noLease) Release(context.Context, string, string) error         { return nil }

func TestListenBeyondLoopbackNeedsInsecure(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:7355", "example.org:7355"} {
		require.ErrorContains(t, kith.Config{Listen: listen}.Validate(), "Insecure", listen)
		require.NoError(t, kith.Config{Listen: listen, Insecure: true}.Validate(), listen)
	}
	for _, any := range []string{"0.0.0.0:7355", "[::]:7355"} { // each node would dial itself there
		require.ErrorContains(t, kith.Config{Advertise: any}.Validate(), "Advertise", any)
		require.ErrorContains(t, kith.Config{Seeds: []string{any}}.Validate(), "Seeds", any)
	}
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0", "localhost:7355"} {
		require.NoError(t, kith.Config{Listen: listen}.Validate(), listen)
	}
	var log bytes.Buffer
	n, err := kith.Start(context.Background(), kith.Config{
		Listen: "0.0.0.0:0", Advertise: "127.0.0.1:1", Insecure: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.NoError(t, n.Close())
	require.Contains(t, log.String(), "neither encrypted nor authenticated")
}

func TestTwoNodesOnOnePort(t *testing.T) {
	t.Parallel()
	first := start(t, nil, kith.Config{})
	_, err := kith.Start(context.Background(), kith.Config{Listen: first.Addr().String()})
	require.ErrorContains(t, err, first.Addr().String())
	require.NoError(t, first.Ready(within(t)), "the first does not notice")
	_, err = kith.Start(context.Background(), kith.Config{Listen: "0.0.0.0:0", Insecure: true})
	require.ErrorContains(t, err, "Advertise")
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = kith.Start(over, kith.Config{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestUnreachableSeed(t *testing.T) {
	t.Parallel()
	n := start(t, nil, kith.Config{Seeds: []string{"127.0.0.1:1", "127.0.0.1:2"}, JoinTimeout: 300 * time.Millisecond})
	err := n.Ready(within(t))
	var ended *kith.EndedError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, kith.EndJoinTimeout, ended.Kind)
	require.ErrorIs(t, err, kith.ErrStopped)
	require.ErrorIs(t, n.Leave(within(t)), kith.ErrStopped)
	_, err = n.Register(kith.EntityType{Name: "x", New: func(string, kith.Fence) kith.Handler { return nil }})
	require.ErrorIs(t, err, kith.ErrStopped)
}

func TestOtherClusterIsRefused(t *testing.T) {
	t.Parallel()
	l := logger(t)
	host := start(t, l, kith.Config{Name: "here", Logger: slog.New(slog.NewTextHandler(l, nil))})
	require.NoError(t, host.Ready(within(t)))
	var log logstest.Text
	stranger := start(t, &log, kith.Config{
		Name: "elsewhere", Seeds: []string{host.Addr().String()}, JoinTimeout: 400 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.ErrorIs(t, stranger.Ready(within(t)), kith.ErrStopped)
	require.Contains(t, log.String(), "elsewhere")
	require.Contains(t, log.String(), "here")
	require.Len(t, host.View().Members, 1)
}

// A node of its own leaves by itself, and one that was never admitted can leave too (MEM-9).
// A type of other settings than the cluster's: both values are logged and returned, for good (SHD-1).
func TestSettingsOfATypeDiffer(t *testing.T) {
	t.Parallel()
	regions := make([]*kith.Region, 2)
	cluster(t, 2, nil, func(i int, n *kith.Node) {
		answer := actor{receive: func(c *kith.Context, b []byte) error { return c.Reply(b) }}
		regions[i] = register(t, n, kith.EntityType{Name: "x", Shards: uint32(8 + i)}, answer)
	})
	ctx := within(t)
	_, err := regions[0].Ask(ctx, "a", nil)
	require.NoError(t, err)
	eventually(t, func() bool {
		_, err = regions[1].Ask(ctx, "a", nil)
		return errors.Is(err, kith.ErrSettingsDiffer)
	}, "the refusal of the cluster")
	require.ErrorContains(t, err, "8 shards")
	require.ErrorContains(t, err, "9 shards")
	require.ErrorIs(t, regions[1].Tell("a", nil), kith.ErrSettingsDiffer)
}

func TestLeaveAlone(t *testing.T) {
	t.Parallel()
	n := start(t, nil, kith.Config{})
	require.NoError(t, n.Ready(within(t)))
	require.NoError(t, n.Leave(within(t)))
	require.NoError(t, n.Leave(within(t)), "leaving twice")
	never := start(t, nil, kith.Config{Seeds: []string{"127.0.0.1:1", "127.0.0.1:2"}})
	require.NoError(t, never.Leave(within(t)))
}

func TestRegisterFaults(t *testing.T) {
	t.Parallel()
	n := start(t, nil, kith.Config{})
	_, err := n.Register(kith.EntityType{})
	require.ErrorContains(t, err, "Name")
	require.ErrorContains(t, err, "New")
	typ := kith.EntityType{Name: "x", New: func(string, kith.Fence) kith.Handler { return nil }}
	r, err := n.Register(typ)
	require.NoError(t, err)
	require.EqualValues(t, 1000, r.Type().Shards)
	_, err = n.Register(typ)
	require.ErrorIs(t, err, kith.ErrTypeExists)
}

// Two nodes that declare a type differently: the second to come gets an error that names both values, the first does
// not notice.
func TestSettingsDiffer(t *testing.T) {
	t.Parallel()
	newType := func(shards uint32) kith.EntityType {
		return kith.EntityType{Name: "x", Shards: shards, New: func(string, kith.Fence) kith.Handler { return &echo{} }}
	}
	var regions []*kith.Region
	cluster(t, 2, nil, func(i int, n *kith.Node) {
		r, err := n.Register(newType(uint32(8 * (i + 1))))
		require.NoError(t, err)
		regions = append(regions, r)
	})
	var first, second error
	eventually(t, func() bool {
		first, second = regions[0].Tell("a", nil), regions[1].Tell("a", nil)
		return first != nil || second != nil
	}, "an error of one of the two")
	err := first
	if err == nil {
		err = second
	}
	require.ErrorContains(t, err, "8")
	require.ErrorContains(t, err, "16")
	require.True(t, first == nil || second == nil, "one of them works: %v, %v", first, second)
}
