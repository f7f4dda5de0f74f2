// The longest silence, asked of the detectors themselves, and which members are late.

package membership

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/peer"
)

// mute is a detector that never says until when; its verdicts cannot be bounded.
type mute struct{ fd.Detector }

func (mute) Deadline() (time.Duration, bool) { return 0, false }

// TestSilenceBound: the first heartbeat leaves phi accrual with the widest deviation, and so the most patient (FD-1).
func TestSilenceBound(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct {
		cfg  Config
		want time.Duration
	}{
		"default":    {Config{}, 5327 * ms}, // 1 s + 3 s + 5.226 x 250 ms + 20 ms
		"pause":      {Config{AcceptablePause: 10 * time.Second}, 12327 * ms},
		"interval":   {Config{HeartbeatInterval: 4 * time.Second}, 12246 * ms},
		"threshold":  {Config{Threshold: 12}, 5593 * ms},
		"deviation":  {Config{MinStdDeviation: time.Second}, 9246 * ms},
		"deadline":   {Config{Detector: fd.Deadline}, 4020 * ms},
		"no answers": {Config{Detector: func(s fd.Settings) fd.Detector { return mute{fd.Deadline(s)} }}, 20 * ms},
	} {
		require.InDelta(t, c.want, c.cfg.SilenceBound(), float64(ms), name)
	}
}

// TestLateByALostLink: a node that does not probe a member with a lost link names it as late while it counts, until it
// is heard again. It accuses nobody: that is for those that probe the member.
func TestLateByALostLink(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.MonitoredBy = 2
	all := w.cluster(8)
	w.run(10 * time.Second)
	late := func(a *actor) peer.Set { return peer.SetOf(a.m.Late(w.now-a.epoch, nil)...) }
	x := all[7]
	strangers := 0
	for _, a := range all[:7] {
		if slices.Contains(a.m.watch.monitor.Targets(nil), x.id) {
			continue
		}
		strangers++
		w.do(a, LinkLostCommand{ID: x.id})
		require.Empty(t, late(a), "another may have been lost with it")
	}
	require.Equal(t, 5, strangers)
	w.cut = func(from, _ peer.ID) bool { return from == x.id }
	w.run(time.Second)
	for _, a := range all[:7] {
		targeted := slices.Contains(a.m.watch.monitor.Targets(nil), x.id)
		require.Equal(t, !targeted, late(a).Has(x.id), "%v", a.id)
		require.Empty(t, a.view.Accusations)
	}
	w.cut = nil
	w.run(20 * time.Second)
	for _, a := range all[:7] {
		require.Empty(t, late(a), "%v has heard it", a.id)
	}

	// A member that leaves, with an ended process, is not late.
	a := all[slices.IndexFunc(all, func(a *actor) bool { return !slices.Contains(a.m.watch.monitor.Targets(nil), x.id) })]
	w.do(x, LeaveCommand{})
	w.until(20*time.Second, "it is exiting", func() bool { return a.m.st.Status(x.id) == cluster.Exiting })
	w.do(a, LinkLostCommand{ID: x.id})
	soon := w.now - a.epoch + 200*time.Millisecond
	require.Equal(t, []peer.ID{x.id}, a.m.watch.monitor.Vanished(soon, nil))
	require.Empty(t, a.m.Late(soon, nil))
}

// TestListensToWhomOthersJudge: a node with an order to listen to a member that is not its neighbour probes it, names
// it as late when nothing comes, and accuses it of nothing. The member does not expect more probes (MEM-10).
func TestListensToWhomOthersJudge(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.MonitoredBy = 2
	all := w.cluster(8)
	w.run(10 * time.Second)
	x := all[7]
	watches := func(a, b *actor) bool { return slices.Contains(a.m.watch.monitor.Targets(nil), b.id) }
	a := all[slices.IndexFunc(all, func(a *actor) bool { return a != x && !watches(a, x) && !watches(x, a) })]
	late := func() peer.Set { return peer.SetOf(a.m.Late(w.now-a.epoch, nil)...) }
	a.m.Listen(w.now-a.epoch, peer.SetOf(x.id))
	for range 20 {
		w.run(500 * time.Millisecond)
		require.Empty(t, late())
	}
	w.cut = func(from, to peer.ID) bool { return from == x.id && to == a.id }
	w.run(10 * time.Second)
	require.Equal(t, peer.SetOf(x.id), late())
	require.Empty(t, a.view.Accusations)
	require.False(t, watches(a, x))
	w.cut = nil
	w.run(5 * time.Second)
	require.Empty(t, late())
	a.m.Listen(w.now-a.epoch, nil)
	w.run(20 * time.Second)
	for _, b := range all {
		require.Empty(t, b.view.Accusations, "%v expects no more probes", b.id)
	}
	require.Empty(t, late())
}

// TestLastProbesThatAreLost: a prober with a ring that has moved on is cut off from its former target while it sends
// its first last probes. It repeats them until one was answered, so that the target does not wait for probes that
// nobody sends, and accuses nobody, however seldom gossip comes later (FD-2).
func TestLastProbesThatAreLost(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.MonitoredBy, w.cfg.GossipInterval, w.cfg.PushFanout = 2, 3*time.Second, 1
	all := w.cluster(4)
	w.run(10 * time.Second)
	targets := func(a *actor) []peer.ID { return a.m.watch.monitor.Targets(nil) }
	before := map[*actor][]peer.ID{}
	for _, a := range all {
		before[a] = targets(a)
	}
	var from *actor
	var to peer.ID
	w.join(w.start(5), 1)
	w.until(20*time.Second, "a ring moves", func() bool {
		for _, a := range all {
			for _, id := range before[a] {
				if !slices.Contains(targets(a), id) {
					from, to = a, id
				}
			}
		}
		return from != nil
	})
	w.cut = func(a, b peer.ID) bool { return a == from.id && b == to || a == to && b == from.id }
	rounds := from.m.watch.probes
	w.until(5*time.Second, "three rounds", func() bool { return from.m.watch.probes == rounds+3 })
	w.cut = nil
	w.run(5 * time.Minute)
	require.True(t, w.settled())
	for _, a := range w.actors {
		require.NotContains(t, kindsOf(a.events), UnreachableMember, "%v", a.id)
	}
}
