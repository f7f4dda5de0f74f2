// Tests of settings that must agree, of two clusters of one name, and of going over to another cluster (JOIN-1, MEM-9).

package membership

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

func TestDiffer(t *testing.T) {
	for _, c := range []struct {
		ours, theirs []Setting
		want         string
	}{
		{nil, nil, ""},
		{[]Setting{{"a", "1"}}, nil, ""},
		{[]Setting{{"a", "1"}, {"c", "1"}}, []Setting{{"b", "2"}, {"c", "1"}}, ""},
		{[]Setting{{"a", "1"}, {"c", "1"}}, []Setting{{"b", "2"}, {"c", "2"}}, `"c" is "1" in the cluster and "2" at`},
		{[]Setting{{"k", strings.Repeat("x", 128)}}, []Setting{{"k", strings.Repeat("y", 128)}}, "xxxx"},
	} {
		got := differs(c.ours, c.theirs)
		require.Contains(t, got, c.want)
		require.Equal(t, c.want == "", got == "")
		require.LessOrEqual(t, len(got), maxReasonSize)
	}
	require.Equal(t, []Setting{{"a", "2"}, {"b", "1"}}, sortSettings([]Setting{{"b", "1"}, {"a", "2"}, {"b", "3"}}))
	for _, bad := range [][]Setting{{{"", "x"}}, {{strings.Repeat("k", 65), ""}}, {{"k", strings.Repeat("v", 129)}}} {
		require.Error(t, Config{Settings: bad}.Validate())
	}
	many := make([]Setting, 65)
	for i := range many {
		many[i].Key = fmt.Sprint(i)
	}
	require.Error(t, Config{Settings: many}.Validate())
	require.NoError(t, Config{Settings: many[:64]}.Validate())
}

// Counts of settings over their bound are refused before anything is allocated for them.
func TestSettingsAreBounded(t *testing.T) {
	list := make([]Setting, MaxSettings+1)
	for i := range list {
		list[i] = Setting{fmt.Sprintf("k%03d", i), "v"}
	}
	_, err := readProbeAck(appendProbeAck(nil, probeAckBody{1, 2, 3, 4, 0, list}))
	require.ErrorIs(t, err, wire.ErrTooLarge)
	_, err = readJoin(appendJoin(nil, joinBody{1, 0, ip(1), nil, "", list, 0}))
	require.ErrorIs(t, err, wire.ErrTooLarge)
	_, err = readJoin(appendJoin(nil, joinBody{1, 0, ip(1), nil, "", []Setting{{"b", ""}, {"a", ""}}, 0}))
	require.ErrorIs(t, err, wire.ErrBadOrder)
	_, err = readJoin(appendJoin(nil, joinBody{1, 0, ip(1), nil, "", list[:MaxSettings], 0}))
	require.NoError(t, err)
}

// JOIN-1, Q7: the joiner learns from the first answer that it does not fit, and ends with both values.
func TestSettingsStopTheJoiner(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.Settings = []Setting{{"strategy", "keep-majority"}}
	a := w.start(1)
	w.join(a)
	w.cfg.Settings = []Setting{{"strategy", "keep-oldest"}, {"new", "x"}}
	b := w.start(2)
	w.join(b, 1)
	w.run(time.Second)
	require.Equal(t, EndJoinRefused, b.ended.Kind)
	require.Contains(t, b.ended.Reason, `"strategy" is "keep-majority" in the cluster and "keep-oldest" at the joiner`)
	require.Zero(t, w.counts[wire.KindJoin])
	require.Len(t, a.view.Members, 1)
}

// Every way into the cluster compares: a joiner that does not insist itself is refused by the member, the leader
// refuses a join that was handed to it, and where neither insists the difference is reported.
func TestSettingsAreComparedOnEveryPath(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.Settings = []Setting{{"strategy", "keep-majority"}}
	all := w.cluster(2)
	all[1].m.cfg.LenientSettings = true // not the leader
	w.cfg.Settings, w.cfg.LenientSettings = []Setting{{"strategy", "keep-oldest"}}, true
	for contact := 1; contact <= 2; contact++ {
		b := w.start(2 + contact)
		w.join(b, contact)
		w.run(400 * time.Millisecond)
		require.NotNil(t, b.ended)
		require.Equal(t, EndJoinRefused, b.ended.Kind)
		require.Contains(t, b.ended.Reason, "keep-oldest")
		require.Contains(t, kindsOf(b.events), SettingsDiffer)
	}
	w.run(5 * time.Second)
	all[0].m.cfg.LenientSettings = true
	c := w.start(9)
	w.join(c, 1)
	w.until(5*time.Second, "let through", w.settled)
	told := all[0].events[len(all[0].events)-1]
	for _, e := range all[0].events {
		if e.Kind == SettingsDiffer {
			told = e
		}
	}
	require.Equal(t, SettingsDiffer, told.Kind)
	require.Contains(t, told.String(), "keep-oldest")
	require.Positive(t, all[0].m.Stats().SettingsDiffer)
}

// Two clusters of one name: a member asks a seed that is no member and learns of the other cluster, once; nothing is
// merged.
func TestTwinCluster(t *testing.T) {
	w := newWorld(t, 1)
	w.cut = func(from, to peer.ID) bool { return from.Addr != to.Addr }
	a, b := w.start(1), w.start(2)
	w.join(a, 1, 2, 3)
	w.join(b, 2, 1)
	w.until(10*time.Second, "two clusters", func() bool { return a.view != nil && b.view != nil })
	w.cut = nil
	w.run(5 * time.Minute)
	for i, x := range []*actor{a, b} {
		other := []*actor{b, a}[i]
		var twins []Event
		for _, e := range x.events {
			if e.Kind == DuplicateCluster {
				twins = append(twins, e)
			}
		}
		require.Len(t, twins, 1)
		require.Equal(t, &Duplicate{other.view.ClusterID, other.view.Birth, other.id.Addr}, twins[0].Duplicate)
		require.Contains(t, twins[0].String(), other.id.Addr.String())
		require.Len(t, x.view.Members, 1, "never merged")
		require.Equal(t, []Duplicate{*twins[0].Duplicate}, Duplicates(x.m), "seen for as long as it is met")
	}
	w.run(11 * time.Minute)
	require.Len(t, Duplicates(a.m), 1)
	require.Greater(t, len(kindsOf(a.events)), 3, "and again after ten minutes")

	// What the transport meets counts only at a seed.
	before := len(a.events)
	w.do(a, OtherClusterCommand{Addr: addr(9), ClusterID: 5})
	w.do(a, OtherClusterCommand{Addr: addr(3), ClusterID: a.view.ClusterID})
	require.Len(t, a.events, before)
	w.do(a, OtherClusterCommand{Addr: addr(3), ClusterID: 5})
	w.do(a, OtherClusterCommand{Addr: addr(3), ClusterID: 5})
	require.Len(t, a.events, before+1)
	w.do(a, OtherClusterCommand{Addr: addr(3), ClusterID: 6})
	require.Len(t, a.events, before+2, "yet another cluster")
}

// MEM-9: alone in its cluster a node ends to join another; in company the error says to go node by node.
func TestJoinAnother(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(2)
	require.ErrorIs(t, all[0].m.Do(w.now, JoinAnotherCommand{}), ErrNotAlone)
	lone := w.start(7)
	require.ErrorIs(t, lone.m.Do(0, JoinAnotherCommand{}), ErrNotMember)
	w.join(lone)
	w.do(lone, JoinAnotherCommand{})
	late := w.start(8)
	w.join(late, 7)
	w.run(time.Second)
	require.Nil(t, late.view, "nobody is admitted meanwhile")
	w.do(late, LeaveCommand{})
	w.do(lone, LeaveCommand{})
	require.Equal(t, EndRejoin, lone.ended.Kind)
	next := w.start(7)
	w.join(next, 1, 2)
	w.until(10*time.Second, "three", func() bool { return len(w.alive()) >= 3 && all[1].view.CountUp() == 3 })
	m, ok := all[0].view.Member(next.id)
	require.True(t, ok)
	require.NotEqual(t, lone.id.Inc, m.ID.Inc)
	require.Equal(t, all[0].view.ClusterID, next.view.ClusterID)
}
