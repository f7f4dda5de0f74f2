// Tests of what lasts for a time of its own, and of sessions: cases, bounds, how long entities take, the whole once.

package chaos

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/lab/leasestore"
)

var overFiles = Sessions{Store: leasestore.Files, TTL: 5 * time.Second, Outage: 10 * time.Minute}

// Where nodes hold no session no store can fail, and files are nothing that starts again (MEM-10).
func TestSessionCases(t *testing.T) {
	all, err := ParseCases(nil, Sessions{Store: leasestore.Etcd})
	require.NoError(t, err)
	require.Equal(t, SessionCases, all)
	some, err := ParseCases(nil, overFiles)
	require.NoError(t, err)
	require.Len(t, some, len(all)-1)
	require.NotContains(t, some, RestartStore)
	_, err = ParseCases([]string{"store-restart"}, overFiles)
	require.ErrorContains(t, err, "store-restart")
	_, err = ParseCases([]string{"store-cut"}, Sessions{})
	require.ErrorContains(t, err, "store-cut")
	some, err = ParseCases([]string{"paused-10s", "silent"}, Sessions{})
	require.NoError(t, err)
	require.Equal(t, []Case{PauseMiddle, SilentHost}, some)
	for _, c := range SessionCases {
		require.Contains(t, NamedCases(), c)
		f := c.fault([]int{1}, 3)
		require.NotEmpty(t, f.who)
		require.Equal(t, c.stays(), c == PauseShort || len(obliged([]struck{f}, 3)) == 3, "%s: nobody ends for a store", c)
	}
}

// Where nodes have tenures no store can fail, and bounds follow the grants, and the silence (MEM-10, AVL-5).
func TestTenureCases(t *testing.T) {
	s := Sessions{Tenure: kith.Tenure{Voters: 3, Grant: 2500 * time.Millisecond}}
	all, err := ParseCases(nil, s)
	require.NoError(t, err)
	require.Equal(t, []Case{LoseOwner, LoseCoordinator, LoseBoth, PauseShort, PauseMiddle, PauseLong, SilentHost}, all)
	_, err = ParseCases([]string{"store-cut"}, s)
	require.Error(t, err)
	five := paceOf(5, cluster.PatienceNormal, 0)
	require.Equal(t, 5500*time.Millisecond, LoseOwner.bound(five, s))
	require.Equal(t, 5500*time.Millisecond+five.silence, SilentHost.bound(five, s))
	require.Equal(t, PauseShort.bound(five, Sessions{}), PauseShort.bound(five, s))
}

// Bounds with sessions follow the session, not the takeover time (MEM-10).
func TestSessionBounds(t *testing.T) {
	five := paceOf(5, cluster.PatienceNormal, 0)
	for c, want := range map[Case]time.Duration{LoseOwner: 8 * time.Second, LoseBoth: 8 * time.Second,
		PauseLong: 8 * time.Second, SilentHost: 8 * time.Second, PauseShort: 4 * time.Second, StopStore: sessionMore,
		LoseOwnerProof: boundProof, RestartOwner: boundProof} {
		require.Equal(t, want, c.bound(five, overFiles), c)
	}
	require.Equal(t, 4*time.Second, PauseShort.bound(five, Sessions{}))
	require.Equal(t, SilentHost.bound(five, Sessions{}), PauseMiddle.bound(five, Sessions{}))
	require.Greater(t, SilentHost.bound(five, Sessions{}), LoseOwner.bound(five, Sessions{}))
}

// How long entities take counts over all who ask: the longest time between two answers, or the first since a moment.
func TestHowLongEntitiesTake(t *testing.T) {
	b := newBook(t.TempDir(), 2, Load{Entities: 1, Shards: 1})
	b.series[0][0].at = seconds(1, 2, 9)
	b.series[1][0].at = seconds(4, 5)
	b.series[1][1].at = seconds(3)
	require.Equal(t, map[uint16]time.Duration{0: seconds(4)[0], 1: seconds(7)[0]},
		b.gapsOf([]uint16{0, 1}, seconds(1)[0], seconds(10)[0]))
	took, none := b.firstSince([]uint16{0, 1}, seconds(4)[0])
	require.Equal(t, map[uint16]time.Duration{0: seconds(1)[0]}, took)
	require.Equal(t, []uint16{1}, none)
}

// A process that ended, and an entity that stood still, which nothing touched, make a fault each.
func TestLastingFaults(t *testing.T) {
	for want, change := range map[string]func(*outage){
		"":                           func(*outage) {},
		"store-cut: 2 processes":     func(o *outage) { o.ended = 2 },
		"store-cut: an entity of an": func(o *outage) { o.others = boundOthers + 1 },
		"store-cut: 4.000 s, more":   func(o *outage) { o.took[1] = 4 * time.Second },
	} {
		o := outage{took: map[uint16]time.Duration{1: time.Second}, bill: breakdown{stepAnswered: time.Second}}
		change(&o)
		r := &FailoverResult{Rounds: 1, Bill: map[Case]*Bill{}}
		r.add(CutStore, &o)
		all := r.faults(SessionCases, paceOf(5, cluster.PatienceNormal, 0), overFiles)
		if want == "" {
			require.Empty(t, all)
			require.InDelta(t, 1, *r.Lasting[CutStore].P50, 0)
			continue
		}
		require.Len(t, all, 1, want)
		require.ErrorContains(t, all[0], want)
	}
}

// One loss in real processes that hold sessions in files: another one has ended the owner's, and answers for all of it.
// How long that takes is the machine's business here (MEM-10, SHD-9).
func TestSessionsSmoke(t *testing.T) {
	dir := t.TempDir()
	r, err := Failover(t.Context(), FailoverConfig{Cases: []Case{LoseOwner},
		Trial: Trial{Nodes: 3, Rounds: 1, Dir: dir, Sessions: overFiles,
			Load: Load{Entities: 4, Shards: 6, Tells: 30, Asks: 30}, Child: cli.Options{Env: []string{childEnv + "=1"}},
			Progress: &cli.Progress{}}})
	timeline, _ := os.ReadFile(filepath.Join(dir, "owner-1", "timeline.txt"))
	require.NotNil(t, r, "%v\n%s", err, timeline)
	require.Positive(t, r.Entities)
	require.Zero(t, r.Silent+r.DoubleOwner+r.Twice, string(timeline))
	require.NotNil(t, r.Owner)
	require.Equal(t, leasestore.Files, r.Sessions)
	require.Contains(t, string(timeline), "the session lease of a lost member is ended")
}
