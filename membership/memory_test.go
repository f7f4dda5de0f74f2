// Tests of what is written down when, and of which members wait for it (JOIN-1).

package membership

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// knows is a view of node 1 in a cluster, with the others in the given statuses.
func knows(own cluster.Status, others ...cluster.Status) *cluster.View {
	v := &cluster.View{Self: ip(1), ClusterID: 7, Birth: 9}
	v.Members = append(v.Members, cluster.Member{ID: ip(1), Status: own})
	for i, s := range others {
		m := cluster.Member{ID: ip(2 + i), Status: s}
		if s.Numbered() >= 0 {
			m.UpNumber = uint32(i + 1)
		}
		v.Members = append(v.Members, m)
	}
	return v
}

// A name that is new is written at once, 50 ms after the last write at the earliest, anything else a second after it,
// and what could not be written is tried again a second later.
func TestMemory(t *testing.T) {
	k := NewMemory(Record{}, "")
	due := func(want time.Duration, write bool, note ...*cluster.View) {
		t.Helper()
		for _, v := range note {
			k.Note(v)
		}
		at, ok := k.Due()
		require.Equal(t, write, ok)
		require.Equal(t, want, at)
	}
	due(0, false)
	due(0, true, knows(cluster.Joining)) // a cluster that it does not know
	k.Wrote(10*time.Second, k.Wanted(), true)
	due(0, false)
	due(11*time.Second, true, knows(cluster.Up))
	due(10*time.Second+recordSoon, true, knows(cluster.Up, cluster.Joining))
	k.Wrote(12*time.Second, k.Wanted(), false)
	due(13*time.Second, true)
	require.Zero(t, k.Kept().Others)
	k.Wrote(13*time.Second, k.Wanted(), true)
	require.Equal(t, addrs(2), k.Kept().Others)
	due(14*time.Second, true, knows(cluster.Up, cluster.Up)) // it was known: only what it is has changed
	due(14*time.Second, true, knows(cluster.Up, cluster.Down))
	k.Wrote(14*time.Second, k.Wanted(), true)
	require.Empty(t, k.Kept().Others)
	require.True(t, k.Kept().Counts)
}

// keeping is a leader that keeps records and has a joining member at address 2; it never heard that one was written.
func keeping(t *testing.T) (w *world, a, b *actor) {
	w = newWorld(t, 1)
	w.cfg = Config{Records: true}
	a, b = w.start(1), w.start(2)
	w.join(a)
	require.Equal(t, "up", standing(a), "alone it waits for nothing")
	w.join(b, 1)
	w.run(3 * time.Second)
	require.Equal(t, "up joining", standing(a))
	return w, a, b
}

// A leader lets in only members that its own written record names; no record of another cluster or node counts
// (JOIN-1).
func TestNobodyIsUpBeforeItIsWrittenDown(t *testing.T) {
	w, a, b := keeping(t)
	rec := Record{}.Next(a.view, "")
	require.Equal(t, addrs(2), rec.Others)
	other := rec
	other.ClusterID++
	for _, no := range []Record{{}, other, {ClusterID: rec.ClusterID, Birth: rec.Birth, Others: addrs(3)}} {
		w.do(a, RecordedCommand{no})
		require.Equal(t, "up joining", standing(a))
	}
	w.do(a, RecordedCommand{rec})
	require.Equal(t, "up up", standing(a))
	w.until(5*time.Second, "both know", func() bool { return standing(b) == "up up" })

	c := w.start(3)
	w.join(c, 2) // the next one waits again
	w.run(3 * time.Second)
	require.Equal(t, "up up joining", standing(a))
	w.do(b, RecordedCommand{Record{}.Next(b.view, "")}) // what others have written is no matter
	w.run(time.Second)
	require.Equal(t, "up up joining", standing(a))
	w.do(a, RecordedCommand{Record{}.Next(a.view, "")})
	require.Equal(t, "up up up", standing(a))
}

// A disk that does not answer keeps newcomers waiting for five seconds, not for ever; and members beyond what a record
// holds do not wait.
func TestNobodyWaitsForADeadDisk(t *testing.T) {
	w, a, _ := keeping(t)
	w.run(recordPatience - 3*time.Second - 100*time.Millisecond)
	require.Equal(t, "up joining", standing(a))
	w.until(3*time.Second, "up", func() bool { return standing(a) == "up up" })

	for name, change := range map[string]func(m *Machine){
		"too many":        func(m *Machine) { m.leading.recorded.More = 1 },
		"too many beside": func(m *Machine) { m.leading.recorded.Bystanders = make([]peer.Addr, MaxRemembered) },
	} {
		w, a, _ := keeping(t)
		change(a.m)
		w.run(time.Second)
		require.Equal(t, "up up", standing(a), name)
	}
}

// Newcomers are asked as all others are, and do not raise how many may be missing; where all that ever were up are Down
// nobody is let in any more, so nobody is remembered.
func TestRecordOfNewcomers(t *testing.T) {
	rec := Record{}.Next(knows(cluster.Up, cluster.Up, cluster.Joining, cluster.WeaklyUp), "")
	require.Equal(t, Record{ClusterID: 7, Birth: 9, Highest: 9, Counts: true, Others: addrs(2, 3, 4), Newcomers: 2}, rec)
	require.Equal(t, rec.Others, Record{}.Next(knows(cluster.Joining, cluster.Up, cluster.Joining, cluster.Joining),
		"").Others)
	require.True(t, Record{}.Next(knows(cluster.Joining, cluster.Down, cluster.Joining), "").Alone())
	require.Equal(t, addrs(2), Record{}.Next(knows(cluster.Joining, cluster.Joining), "").Others, "nobody was up yet")
	left := knows(cluster.Exiting, cluster.Exiting, cluster.Joining)
	require.Equal(t, addrs(3), rec.Left(left, "").Others, "it will be let in")
	require.True(t, rec.Left(knows(cluster.Exiting, cluster.ReadyForShutdown, cluster.Joining), "").Alone(), "it will not")

	m := New(ip(1), Config{MayMiss: minority}, nil)
	for newcomers, want := range []bool{true, false} {
		rec := Record{ClusterID: 7, Birth: 9, Counts: true, Others: addrs(2, 3, 4, 5), Newcomers: newcomers}
		at := map[peer.Addr]bool{addr(2): true, addr(3): true, addr(4): true}
		require.Equal(t, want, m.forming.bears(rec, at, new([]peer.Addr)), "%d newcomers", newcomers)
	}
}

// An answer that names newcomers ends with their number; cut anywhere it is none.
func TestFormAnswerWithNewcomers(t *testing.T) {
	a := formAnswerBody{6, 7, 3, true, Record{ClusterID: 0x11, Birth: 9, Highest: 10, Counts: true, Others: addrs(2, 3),
		Newcomers: 1}}
	b := appendFormAnswer(nil, a)
	require.Equal(t, "0600000000000000"+"0700000000000000"+"0300000000000000"+"07"+"1100000000000000"+"0900000000000000"+
		"0a00000000000000"+"00"+"02"+"040a000002bb1c"+"040a000003bb1c"+"01", hex.EncodeToString(b))
	back, err := readFormAnswer(b)
	require.NoError(t, err)
	require.Equal(t, a, back)
	for n := range b {
		_, err := readFormAnswer(b[:n])
		require.Error(t, err, n)
	}
}
