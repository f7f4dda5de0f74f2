// Tests of what a dashboard gets of one node: peers, rates, history, bounds.

package admin

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/latency"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
)

// Peers are joined by identity from links and suspicions, bounded, and those in trouble come first.
func TestPeersOf(t *testing.T) {
	id := func(i int) kith.ID {
		return kith.ID{Addr: addr(t, fmt.Sprintf("10.0.%d.%d:1", i/200, i%200+1)), Inc: 7}
	}
	var links []kith.PeerStats
	var list []kith.Suspicion
	for i := range maxPeers + 10 {
		links = append(links, kith.PeerStats{Peer: id(i), Data: []kith.LinkStats{{Up: true, Queued: i, InFlight: 5}}})
		links[i].Control.Up = true
		list = append(list, kith.Suspicion{Peer: id(i), Available: true, Phi: 0.5, Silence: time.Second,
			Left: 3 * time.Second})
	}
	require.Len(t, peersOf(links, list).Peers, maxPeers)
	require.Equal(t, maxPeers+10, peersOf(links, list).Total)
	list[260].Available, list[260].Left = false, 0
	links[261].Data[0].Full.Now = true
	links[262].Data = append(links[262].Data, kith.LinkStats{Queued: 3})
	links = append(links, kith.PeerStats{Peer: kith.ID{Addr: id(0).Addr}}) // a contact point
	list = append(list, kith.Suspicion{Peer: id(500), Available: true})    // no link yet
	got := peersOf(links, list)
	require.Equal(t, maxPeers+11, got.Total)
	require.Equal(t, peerInfo{Peer: id(260).String(), Watched: true, Phi: 0.5, Silence: 1, Control: true, Links: 1, Up: 1,
		Queued: 260, InFlight: 5}, got.Peers[0])
	require.Equal(t, 1, got.Peers[1].Full)
	require.Equal(t, []any{2, 1, int64(265)}, []any{got.Peers[2].Links, got.Peers[2].Up, got.Peers[2].Queued})
	require.False(t, got.Peers[3].Control, "no link at all")
	require.False(t, got.Peers[4].troubled())
	require.Equal(t, peers{Peers: []peerInfo{}}, peersOf(nil, nil), "a list, not null")
}

// Rates are of the stretch between two looks: none after one look, or after a long time; a sooner look shares them.
func TestMeter(t *testing.T) {
	rec := latency.New()
	m, at := &meter{times: rec}, time.Unix(1e9, 0)
	look := func(handled uint64) kith.Stats {
		s := kith.Stats{Unregistered: 2 * handled, AsksUnderway: 3,
			Types: []kith.TypeStats{{Handled: handled, Refused: map[string]uint64{"x": handled}, Dropped: 4 * handled}}}
		s.Transport.Data.BytesOut = 10 * handled
		return s
	}
	s := look(1000)
	require.Nil(t, m.look(at, &s))
	rec.Record(kith.AskTime, "orders", 250*time.Microsecond)
	s = look(1100)
	require.Nil(t, m.look(at.Add(leastBetween-1), &s), "too soon")
	s = look(1200)
	r := m.look(at.Add(2*time.Second), &s)
	require.Equal(t, []float64{2, 100, 300, 400, 1000}, []float64{r.Over, r.Handled, r.Refused, r.Lost, r.DataOut})
	require.Equal(t, 3, r.Underway)
	require.Len(t, r.Times, 1)
	require.InDelta(t, 250, r.Times[0].P99, 5)
	s = look(9999)
	require.Same(t, r, m.look(at.Add(2500*time.Millisecond), &s))
	s = look(1150) // a counter that fell has not counted backwards
	r = m.look(at.Add(4*time.Second), &s)
	require.Zero(t, r.Handled)
	require.Empty(t, r.Times, "nothing since")
	s = look(5000)
	require.Nil(t, m.look(at.Add(5*time.Minute), &s), "nobody looked for long")
	s = look(5100)
	require.EqualValues(t, 100, m.look(at.Add(5*time.Minute+time.Second), &s).Handled)
}

// The history keeps the newest, and numbers show what it has dropped.
func TestHistory(t *testing.T) {
	var h history
	require.Equal(t, []happened{}, h.all())
	for i := range maxHistory + 5 {
		h.add(happened{Text: fmt.Sprint(i)})
	}
	all := h.all()
	require.Len(t, all, maxHistory)
	require.Equal(t, happened{Number: 6, Text: "5"}, all[0])
	require.EqualValues(t, maxHistory+5, all[maxHistory-1].Number)
	all[0].Text = "changed"
	require.Equal(t, "5", h.all()[0].Text, "a copy")
}

// Of single shards the history keeps what goes wrong, and what is bad is graded so.
func TestGrades(t *testing.T) {
	for _, k := range []kith.ShardEventKind{kith.ShardEventsBegin, kith.ShardAllocated, kith.ShardReleased, kith.MoveBegan,
		kith.MoveMarked, kith.MoveHandedOver, kith.MoveDone} {
		_, kept := gradeOfShard(k)
		require.False(t, kept, k)
	}
	for _, k := range []kith.ShardEventKind{kith.MoveAborted, kith.MoveUntaken, kith.MoveReturned} {
		grade, kept := gradeOfShard(k)
		require.Equal(t, []any{gradeBad, true}, []any{grade, kept}, k)
	}
	require.Equal(t, gradeBad, gradeOf(&kith.Event{Event: membership.Event{Kind: kith.UnreachableMember}}))
	require.Equal(t, gradeGood, gradeOf(&kith.Event{Event: membership.Event{Kind: kith.MemberUp}}))
	require.Equal(t, gradeNews, gradeOf(&kith.Event{Event: membership.Event{Kind: kith.LeaderChanged}}))
}

// Words read right: a member that was none before is new, one that is given up is so for a reason, and the end of an
// outage says how long it took (OPS-1).
func TestWords(t *testing.T) {
	n1, n2 := kith.ID{Addr: peer.MustAddr("n1:1"), Inc: 1}, kith.ID{Addr: peer.MustAddr("n2:1"), Inc: 2}
	view := &kith.View{Accusations: []cluster.Accusation{{Observer: n1, Subject: n2}}}
	member := kith.Member{ID: n2}
	down := kith.Member{ID: n2, Status: kith.Down, Cause: cluster.CauseResolver, By: n1}
	for want, e := range map[string]membership.Event{
		"n2:1#2 joins the cluster":                      {Kind: kith.MemberJoined, Member: member, Previous: cluster.Removed},
		"n2:1#2 does not answer, says n1:1#1":           {Kind: kith.UnreachableMember, Member: member},
		"n2:1#2 is given up as dead":                    {Kind: kith.MemberDowned, Member: down, Previous: kith.Up},
		"n2:1#2 is removed from the cluster":            {Kind: kith.MemberRemoved, Member: member, Last: kith.Down},
		"n2:1#2 has left the cluster":                   {Kind: kith.MemberRemoved, Member: member, Last: kith.Exiting},
		"The outage of n2:1#2 is over after 22.5s":      {Kind: kith.OutageOver, Member: member, For: 22512e6},
		"n1:1#1 leads now":                              {Kind: kith.LeaderChanged, Leader: n1},
		"The cluster has no leader":                     {Kind: kith.LeaderChanged},
		"Settings differ":                               {Kind: kith.SettingsDiffer, Detail: "x"},
		"All members have seen one state again":         {Kind: kith.ConvergenceRestored},
		"This node handles messages again, after 150ms": {Kind: kith.NodeResumed, For: 150 * time.Millisecond},
	} {
		require.Equal(t, want, wordsOf(&kith.Event{Event: e, View: view}))
	}
	require.Equal(t, "member-joined n2:1#2 (was unknown)",
		membership.Event{Kind: kith.MemberJoined, Member: member, Previous: cluster.Removed}.String())
	why := reasonOf(&kith.Event{Event: membership.Event{Kind: kith.MemberDowned, Member: down}})
	require.Contains(t, why, "downed by n1:1#1")
	require.Equal(t, "33 shards of counter wait: n2:1#2 is lost",
		shardWordsOf(&kith.ShardEvent{Name: "counter", Event: shard.Event{Kind: kith.ShardsWait, Home: n2, Shards: 33}}))
}

// A node tells what happened before anybody asked, how its peers do and how fast it is, in terms of the description.
func TestSnapshotOfARunningNode(t *testing.T) {
	rec := latency.New()
	a, s := start(t, Config{Times: rec})
	b, _ := start(t, Config{}, a.Addr().String())
	d := described(t)
	status, _, _ := call(t, s, "GET", "/v1/rates", "")
	require.Equal(t, 503, status, "the first look")
	rec.Record(kith.HandlerTime, "orders", time.Millisecond)
	var got map[string]any
	require.Eventually(t, func() bool {
		got = d.answers(t, s, "GET", "/v1/snapshot", "/v1/snapshot", "", 200).(map[string]any)
		return got["rates"] != nil && len(got["peers"].(map[string]any)["peers"].([]any)) == 1
	}, time.Minute, 20*time.Millisecond)
	peer := got["peers"].(map[string]any)["peers"].([]any)[0].(map[string]any)
	require.Equal(t, b.ID().String(), peer["peer"])
	require.Equal(t, []any{true, true, true}, []any{peer["watched"], peer["available"], peer["control"]})
	require.Len(t, got["rates"].(map[string]any)["times"], 1)
	kinds := map[string]bool{}
	for _, e := range got["events"].([]any) {
		kinds[e.(map[string]any)["kind"].(string)] = true
	}
	require.True(t, kinds["member-up"], "%v", kinds)
	require.EqualValues(t, 2, got["total"])
	require.Equal(t, "orders", got["types"].([]any)[0].(map[string]any)["name"])
	d.answers(t, s, "GET", "/v1/rates", "/v1/rates", "", 200)
}

func addr(t *testing.T, text string) (a kith.Addr) {
	t.Helper()
	a, err := kith.ParseAddr(text)
	require.NoError(t, err)
	return a
}

// Partitions are shown as the table has them, at most as many as there is room for (PRT-1).
func TestPartitions(t *testing.T) {
	a, b := kith.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: 1}, kith.ID{Addr: peer.MustAddr("10.0.0.2:1"), Inc: 2}
	p := cluster.Partition{PartitionDefinition: cluster.PartitionDefinition{Path: "a/b",
		Count: cluster.Count{Kind: cluster.CountSurvives, N: 2}, Role: "x"}, DefinedBy: a, Epoch: 4, Wanted: 3,
		InForce: cluster.Ordered, Instances: []kith.ID{a, {}, b},
		Changes: []cluster.PartitionChange{{Path: "a/b", Slot: 2, From: b, To: a}, {Path: "a/b", From: a, Complete: true}}}
	got := partitionsOf(&kith.View{Partitions: []cluster.Partition{p, p}}, 1)
	require.Equal(t, partitions{2, []partition{{Path: "a/b", Count: "survives", N: 2, Handoff: "ordered", Role: "x",
		Wanted: 3, Has: 2, DefinedBy: a.String(), Epoch: 4, Instances: []string{a.String(), "", b.String()},
		Changes: []handover{{2, b.String(), a.String(), false}, {0, a.String(), "", true}}}}}, got)
}
