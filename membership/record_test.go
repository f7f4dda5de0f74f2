// Tests of what a node remembers: no second cluster by a first seed that is cut off, one cluster when all have died,
// and the twin that yields (JOIN-1, JOIN-2).

package membership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// minority is what keep-majority bears.
func minority(n int) int { return (n - 1) / 4 }

// remembering is a cluster of nodes that keep records; they are numbered from 1.
type remembering struct {
	*world
	n     int
	seeds []int
	kept  map[int]Record
	now   map[int]*actor
}

func newRemembering(t *testing.T, seed uint64, n int) *remembering {
	w := newWorld(t, seed)
	w.cfg = Config{MayMiss: minority}
	r := &remembering{world: w, n: n, seeds: []int{1, 2, 3}, kept: map[int]Record{}, now: map[int]*actor{}}
	for i := 1; i <= n; i++ {
		r.begin(i)
	}
	r.until(30*time.Second, "settled", r.settled)
	r.keep()
	return r
}

// begin starts a new incarnation at address i with what was kept there.
func (r *remembering) begin(i int) *actor {
	a := r.start(i)
	r.now[i] = a
	r.do(a, JoinCommand{Seeds: addrs(r.seeds...), WallMillis: 1_750_000_000_000, Record: r.kept[i]})
	return a
}

// keep makes every node write down what it remembers.
func (r *remembering) keep() {
	for i, a := range r.now {
		if a.view != nil && a.ended == nil {
			r.kept[i] = r.kept[i].Next(a.view, "")
		}
	}
}

// crashAll kills all processes at one moment.
func (r *remembering) crashAll() {
	r.keep()
	for _, a := range r.now {
		r.crash(a)
	}
}

// clusters returns the ids of the clusters that living nodes are in.
func (r *remembering) clusters() (ids []uint64) {
	for _, a := range r.now {
		if !a.dead && a.view != nil && a.view.ClusterID != 0 {
			ids = append(ids, a.view.ClusterID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// isolate cuts the given addresses off from everybody else.
func (r *remembering) isolate(ns ...int) {
	side := addrs(ns...)
	r.cut = func(from, to peer.ID) bool { return slices.Contains(side, from.Addr) != slices.Contains(side, to.Addr) }
}

// JOIN-1: a first seed that is restarted while it is cut off forms no second cluster; when it is not cut off any more
// it joins the one that it remembers (AVL-3).
func TestFirstSeedThatRemembersFormsNoSecondCluster(t *testing.T) {
	r := newRemembering(t, 1, 3)
	before := r.clusters()
	r.crash(r.now[1])
	r.isolate(1)
	a := r.begin(1)
	r.run(2 * time.Minute)
	require.Nil(t, a.view)
	require.Contains(t, kindsOf(a.events), FormingHeld)
	require.Contains(t, a.events[0].Detail, "10.0.0.2:7355, 10.0.0.3:7355")
	r.cut = nil
	r.until(30*time.Second, "joined", func() bool { return a.view != nil })
	require.Equal(t, before, r.clusters())
}

// JOIN-1: when all have died, those that come back form one cluster without the first seed, when they are so many that
// the others cannot live on; it gets a birth above every one that is remembered, and the first seed joins it.
func TestAllDiedAndTheFirstSeedStaysAway(t *testing.T) {
	for seed := range uint64(5) {
		r := newRemembering(t, seed, 5)
		old := r.now[1].view.Birth
		r.crashAll()
		for i := 2; i <= 5; i++ {
			r.begin(i)
		}
		r.until(40*time.Second, "formed", func() bool {
			return !slices.ContainsFunc([]int{2, 3, 4, 5}, func(i int) bool { return r.now[i].view == nil })
		})
		require.Len(t, r.clusters(), 1)
		require.Greater(t, r.now[2].view.Birth, old)
		a := r.begin(1)
		r.until(20*time.Second, "joined", func() bool { return a.view != nil })
		require.Len(t, r.clusters(), 1)
	}
}

// JOIN-1: a missing node may still handle messages on a side of its own, until it has stopped: before that nobody forms
// the next cluster. Where nobody is missing nobody waits for that.
func TestMissingHaveStopped(t *testing.T) {
	const stops = time.Minute
	for _, missing := range []int{0, 1} {
		r := newRemembering(t, 1, 5)
		r.crashAll()
		r.cfg.StopsAfter = func(members int) time.Duration {
			require.Equal(t, 5, members)
			return stops
		}
		for i := 1 + missing; i <= 5; i++ {
			r.begin(i)
		}
		if missing == 0 {
			r.until(20*time.Second, "settled", r.settled)
			continue
		}
		r.run(stops)
		require.Empty(t, r.clusters())
		r.until(40*time.Second, "formed", func() bool { return r.now[2].view != nil })
	}
}

// All come back: nobody waits for the time in which others are looked for.
func TestAllDiedAndAllComeBack(t *testing.T) {
	r := newRemembering(t, 1, 3)
	r.crashAll()
	for i := 3; i >= 1; i-- {
		r.begin(i)
	}
	require.Less(t, r.until(20*time.Second, "settled", r.settled), 5*time.Second)
}

// Two of three may face a third that lives on alone, because it has the lowest address: they form nothing by
// themselves, and end in time with the reason (JOIN-2). An operator's word is enough, and is not needed by all.
func TestTooFewToFormANewCluster(t *testing.T) {
	r := newRemembering(t, 1, 3)
	r.crashAll()
	r.cfg.JoinTimeout = 40 * time.Second
	a, b := r.begin(2), r.begin(3)
	r.run(41 * time.Second)
	for _, x := range []*actor{a, b} {
		require.Equal(t, EndJoinTimeout, x.ended.Kind)
		require.Contains(t, x.ended.Reason, "nothing is heard of 10.0.0.1:7355")
	}
	b = r.begin(3)
	a = r.start(2)
	r.now[2] = a
	r.do(a, JoinCommand{Seeds: addrs(1, 2, 3), WallMillis: 1_750_000_000_000, Record: r.kept[2], FormNew: true})
	r.until(20*time.Second, "formed", func() bool { return a.view != nil && b.view != nil })
	require.Len(t, r.clusters(), 1)
	require.Greater(t, a.view.Birth, r.kept[2].Birth)
}

// A first seed that has lost its record forms nothing while it hears a node that remembers.
func TestFirstSeedWithoutRecordHearsOthersRemember(t *testing.T) {
	r := newRemembering(t, 1, 5)
	r.crashAll()
	delete(r.kept, 1)
	a := r.begin(1)
	r.begin(2)
	r.run(time.Minute)
	require.Empty(t, r.clusters(), "3, 4 and 5 may live on")
	require.Contains(t, kindsOf(a.events), FormingHeld)
	for i := 3; i <= 5; i++ {
		r.begin(i)
	}
	r.until(30*time.Second, "settled", r.settled)
	require.Len(t, r.clusters(), 1)
}

// A node that has asked a cluster to admit it forms none any more. When that cluster is dead and nobody else remembers
// anything, the first seed forms the next by agreement over what that one remembers (JOIN-1). Found by storm seed 2464.
func TestFirstSeedFormsByWhatOthersRemember(t *testing.T) {
	r := newRemembering(t, 1, 5)
	r.crashAll()
	r.kept = map[int]Record{2: r.kept[2]}
	r.begin(2).m.forming.asked = true
	r.begin(1)
	r.run(time.Minute)
	require.Empty(t, r.clusters(), "3, 4 and 5 may live on")
	r.begin(3)
	r.begin(4)
	r.begin(5)
	r.until(2*time.Minute, "settled", r.settled)
	require.Len(t, r.clusters(), 1)
	require.Greater(t, r.now[1].view.Birth, r.kept[2].Highest)
}

// A record of a cluster in which nobody could carry it on, as of a node that joined members that had all been downed,
// makes nobody a first seed: of several such nodes that do not hear each other, only the first seed forms a cluster
// (JOIN-1).
func TestRecordOfNobodyFormsNothing(t *testing.T) {
	r := &remembering{world: newWorld(t, 1), n: 3, seeds: []int{1, 2, 3}, kept: map[int]Record{}, now: map[int]*actor{}}
	for i := 1; i <= 3; i++ {
		r.kept[i] = Record{ClusterID: 7, Birth: 8, Highest: 8}
	}
	r.cut = func(from, to peer.ID) bool { return true }
	for i := 1; i <= 3; i++ {
		r.begin(i)
	}
	r.run(time.Minute)
	require.Len(t, r.clusters(), 1)
	require.NotNil(t, r.now[1].view)
	require.Greater(t, r.now[1].view.Birth, uint64(8))
	r.cut = nil
	r.until(30*time.Second, "settled", r.settled)
	require.Len(t, r.clusters(), 1)
}

func TestNeverForm(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.JoinTimeout = 30 * time.Second
	a := w.start(1)
	w.do(a, JoinCommand{Seeds: addrs(1, 2), NeverForm: true, FormNew: true})
	alone := w.start(3)
	w.do(alone, JoinCommand{NeverForm: true})
	w.run(time.Minute)
	for _, x := range []*actor{a, alone} {
		require.Equal(t, EndJoinTimeout, x.ended.Kind)
		require.Contains(t, x.ended.Reason, "never forms")
	}
}

// However mail is lost, delayed, doubled and reordered, whatever nodes are cut off from each other, and for how long:
// of nodes that remember one cluster, at most one forms a new one while none of them dies.
func TestOneClusterComesOfOneRecord(t *testing.T) {
	formed := 0
	for seed := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, 5))
		n := 2 + rng.IntN(6)
		r := newRemembering(t, seed, n)
		r.crashAll()
		r.chaos = true
		for _, i := range rng.Perm(n) {
			r.begin(i + 1)
			r.run(time.Duration(rng.IntN(1500)) * time.Millisecond)
		}
		for range 12 {
			lost := map[[2]peer.Addr]bool{}
			for range rng.IntN(n * n) {
				lost[[2]peer.Addr{addr(1 + rng.IntN(n)), addr(1 + rng.IntN(n))}] = true
			}
			r.cut = func(from, to peer.ID) bool { return lost[[2]peer.Addr{from.Addr, to.Addr}] }
			r.run(time.Duration(rng.IntN(4000)) * time.Millisecond)
			require.LessOrEqual(t, len(r.clusters()), 1, "seed %d, %d nodes", seed, n)
		}
		r.cut = nil
		r.run(time.Minute)
		formed += len(r.clusters())
		require.LessOrEqual(t, len(r.clusters()), 1, "seed %d, %d nodes", seed, n)
	}
	require.Greater(t, formed, 20, "nearly always one comes about")
}

// A pledge is for one attempt: another asker gets none until the first has given up, or has a successor.
func TestPledges(t *testing.T) {
	m := New(ip(5), Config{}, rand.New(rand.NewPCG(1, 1)))
	require.NoError(t, m.Do(0, JoinCommand{Seeds: addrs(1)}))
	ask := func(from peer.ID, attempt uint64, wants bool) uint64 {
		m.Drain(&Effects{})
		require.NoError(t, m.Handle(1, 1, from, wire.KindFormAsk, appendFormAsk(nil, formAskBody{9, attempt, wants, true})))
		var out Effects
		m.Drain(&out)
		require.Len(t, out.Mail, 1)
		a, err := readFormAnswer(out.Mail[0].Body)
		require.NoError(t, err)
		require.Equal(t, [2]uint64{from.Inc, 9}, [2]uint64{a.to, a.nonce})
		return a.attempt
	}
	one, two := ip(1), ip(2)
	require.EqualValues(t, 4, ask(one, 4, true))
	require.Zero(t, ask(two, 1, true), "pledged to another")
	require.Zero(t, ask(two, 9, true), "pledged to another, whatever its number")
	require.Zero(t, ask(one, 3, false), "an older attempt was given up: said late")
	require.Zero(t, ask(two, 1, true))
	require.EqualValues(t, 4, ask(one, 4, true), "asked again")
	require.EqualValues(t, 6, ask(one, 6, true), "its next attempt")
	require.Zero(t, ask(one, 5, true), "an older one, said late")
	require.Zero(t, ask(one, 6, false), "given up")
	require.EqualValues(t, 1, ask(two, 1, true))
	next := peer.ID{Addr: two.Addr, Inc: 77}
	require.EqualValues(t, 2, ask(next, 2, true), "its successor")
}

// A node that hears of a cluster in the middle of its attempt forms none any more: it says that it has given up, and
// pledges itself to others when that cluster has gone (JOIN-1).
func TestWhoAskedHoldsNobodyBack(t *testing.T) {
	m := New(ip(1), Config{}, rand.New(rand.NewPCG(1, 1)))
	rec := Record{ClusterID: 7, Birth: 8, Highest: 8, Counts: true, Others: addrs(2)}
	require.NoError(t, m.Do(0, JoinCommand{Seeds: addrs(1, 2), Record: rec}))
	own, nonce := m.self.Inc, m.joining.nonce
	hear := func(kind wire.Kind, body []byte) (out Effects) {
		m.Drain(&Effects{})
		require.NoError(t, m.Handle(1, 1, ip(2), kind, body))
		m.Drain(&out)
		return out
	}
	hear(wire.KindFormAnswer, appendFormAnswer(nil, formAnswerBody{own, nonce, 0, true, Record{}}))
	require.True(t, m.forming.tries)
	out := hear(wire.KindJoinProbeAck, appendProbeAck(nil, probeAckBody{own, nonce, 7, 8, 0, nil}))
	ask, err := readFormAsk(out.Mail[0].Body)
	require.NoError(t, err)
	require.False(t, ask.wants)
	m.Tick(m.cfg.JoinRetryAfter + 1)
	require.Equal(t, probing, m.phase)
	m.Drain(&Effects{})
	require.NoError(t, m.Handle(m.now, m.now, ip(2), wire.KindFormAsk, appendFormAsk(nil, formAskBody{9, 1, true, true})))
	m.Drain(&out)
	answer, err := readFormAnswer(out.Mail[0].Body)
	require.NoError(t, err)
	require.EqualValues(t, 1, answer.attempt)
}

// JOIN-1: the younger of two clusters of one name ends when it is the smaller, on the word of nodes that it dialled
// itself, and then remembers the older one. The older never does, nor does a younger one that is not smaller.
func TestYoungerAndSmallerTwinYields(t *testing.T) {
	meet := func(older bool, births, members int, at ...int) *actor {
		w := newWorld(t, 1)
		a := w.start(1)
		w.do(a, JoinCommand{Seeds: addrs(1, 2, 3, 4), WallMillis: 1_750_000_000_000})
		w.until(10*time.Second, "formed", w.settled)
		for i := range members - 1 {
			w.join(w.start(20+i), 1)
		}
		w.until(30*time.Second, "settled", w.settled)
		birth := a.view.Birth + uint64(births)
		if older {
			birth = a.view.Birth - uint64(births)
		}
		for _, n := range at {
			if a.ended == nil {
				w.do(a, OtherClusterCommand{Addr: addr(n), ClusterID: 77, Birth: birth})
			}
		}
		if members == 1 && older {
			require.Equal(t, EndDuplicate, a.ended.Kind, "alone: one address is enough")
			return a
		}
		require.Contains(t, kindsOf(a.events), DuplicateCluster)
		return a
	}
	a := meet(true, 1, 2, 2, 3, 4)
	require.Equal(t, EndDuplicate, a.ended.Kind)
	require.Equal(t, Record{ClusterID: 77, Birth: a.view.Birth - 1, Highest: a.view.Birth, Others: addrs(2, 3, 4)},
		*a.ended.Record)
	a = meet(true, 1, 1, 2)
	require.Equal(t, Record{ClusterID: 77, Birth: a.view.Birth - 1, Highest: a.view.Birth, Others: addrs(2)},
		*a.ended.Record)
	require.Nil(t, meet(false, 1, 1, 2, 3).ended, "it is the older")
	require.Nil(t, meet(true, 1, 2, 2, 2, 2).ended, "met at one address")
	require.Nil(t, meet(true, 1, 2, 2, 3).ended, "as many as it has members")

	// The words of strangers are reported to operators, and end nobody.
	w := newWorld(t, 1)
	b := w.start(1)
	w.join(b, 1, 2, 3)
	w.until(10*time.Second, "formed", w.settled)
	for n := 2; n <= 3; n++ {
		w.counts[wire.KindJoinProbeAck] = 0
		body := appendProbeAck(nil, probeAckBody{b.id.Inc, b.m.joining.nonce, 77, b.view.Birth - 1, 0, nil})
		require.NoError(t, b.m.Handle(w.now, w.now, ip(n), wire.KindJoinProbeAck, body))
		w.drain(b)
	}
	require.Contains(t, kindsOf(b.events), DuplicateCluster)
	require.Nil(t, b.ended)
}

func TestRecordOfViews(t *testing.T) {
	self := ip(1)
	view := func(own cluster.Status, others ...cluster.Status) *cluster.View {
		v := &cluster.View{Self: self, ClusterID: 7, Birth: 9}
		if own != cluster.Removed {
			v.Members = append(v.Members, cluster.Member{ID: self, Status: own})
		}
		for i, s := range others {
			v.Members = append(v.Members, cluster.Member{ID: ip(2 + i), Status: s})
		}
		return v
	}
	full := Record{ClusterID: 7, Birth: 9, Highest: 12, Counts: true, Others: addrs(2, 3)}
	require.Equal(t, full, Record{Highest: 12}.Next(view(cluster.Up, cluster.Up, cluster.Leaving, cluster.Down,
		cluster.Exiting), ""))
	require.Equal(t, full, full.Next(view(cluster.Down, cluster.Up), ""), "who is Down knows nothing of who goes on")
	require.Equal(t, full, full.Next(&cluster.View{Self: self}, ""))
	joining := Record{}.Next(view(cluster.Joining, cluster.Up), "")
	require.Equal(t, Record{ClusterID: 7, Birth: 9, Highest: 9, Others: addrs(2)}, joining)
	require.True(t, full.Next(view(cluster.Up), "store").Alone(), "nobody has the role")

	require.Equal(t, addrs(2), full.Left(view(cluster.Removed, cluster.Up, cluster.Leaving, cluster.Exiting), "").Others,
		"those who stay")
	require.True(t, full.Left(view(cluster.Removed, cluster.Exiting, cluster.Leaving), "").Alone(), "all leave at once")
	require.True(t, full.Left(view(cluster.Removed, cluster.ReadyForShutdown), "").Alone(), "a full shutdown")
	require.False(t, full.Left(view(cluster.Removed, cluster.Up), "").Counts)

	large := view(cluster.Up)
	for i := range MaxRemembered + 5 {
		id := peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.1.%d.%d:7355", i/200, i%200+1)), Inc: 1}
		large.Members = append(large.Members, cluster.Member{ID: id, Status: cluster.Up})
	}
	r := Record{}.Next(large, "")
	require.Len(t, r.Others, MaxRemembered)
	require.Equal(t, 5, r.More)
	require.True(t, r.Equal(r))
	require.False(t, r.Equal(full))
}

// JOIN-1: whatever ends a membership, the highest birth that its node has seen stays in the record, which names nobody
// that is not there any more. Found by storm seed 7770.
func TestEveryEndKeepsTheHighestBirth(t *testing.T) {
	view := func(id uint64, n int) *cluster.View {
		v := &cluster.View{Self: ip(1), ClusterID: id, Birth: 9}
		for i := range n {
			v.Members = append(v.Members, cluster.Member{ID: ip(1 + i), Status: cluster.Up})
		}
		return v
	}
	downed := func(v *cluster.View) *cluster.View {
		v.Members[0].Status = cluster.Down
		return v
	}
	removed := view(7, 2)
	removed.Members = removed.Members[1:]
	was := Record{ClusterID: 7, Birth: 9, Highest: 12, Counts: true, Others: addrs(2, 3)}
	floor := Record{ClusterID: 7, Birth: 9, Highest: 12}
	goesOn := Record{ClusterID: 7, Birth: 9, Highest: 12, Others: addrs(2)}
	older := Record{ClusterID: 5, Birth: 6, Highest: 9, Others: addrs(4)}
	above := older
	above.Highest = 15
	yields := older
	yields.Highest = 12
	for name, c := range map[string]struct {
		kind    EndKind
		yielded *Record
		last    *cluster.View
		want    Record
	}{
		"others stay":            {EndLeft, nil, view(7, 2), goesOn},
		"the last one":           {EndLeft, nil, view(7, 1), floor},
		"never admitted":         {EndLeft, nil, nil, was},
		"in no cluster":          {EndLeft, nil, view(0, 0), was},
		"goes to another":        {EndRejoin, nil, view(7, 1), floor},
		"yields to an older one": {EndDuplicate, &older, view(7, 1), yields},
		"knows of a higher one":  {EndDuplicate, &above, view(7, 1), above},
		"is downed":              {EndDowned, nil, view(7, 3), was},
		"is downed, others live": {EndDowned, nil, downed(view(7, 2)), goesOn},
		"is removed":             {EndRemoved, nil, removed, goesOn},
		"is closed":              {EndClosed, nil, view(7, 3), was},
	} {
		got := was.After(c.kind, c.yielded, c.last, "")
		require.True(t, c.want.Equal(got), "%s: %+v", name, got)
	}
	require.EqualValues(t, 9, older.Highest, "what was handed in is not written to")
	require.Zero(t, Record{}.After(EndLeft, nil, view(0, 0), ""))
}

// JOIN-1: a node that goes remembers the members that live on by its last view, however few they are: none of them may
// be missing on account of those that went with it. These may not have heard of it, so they stand by until they have
// stopped. Where none of these has the role, the others are remembered: all with the role were indirectly connected.
func TestRecordOfWhoWent(t *testing.T) {
	up, down := cluster.Up, cluster.Down
	view := func(own cluster.Status, others ...cluster.Status) *cluster.View {
		v := &cluster.View{Self: ip(1), ClusterID: 7, Birth: 9}
		for i, s := range append([]cluster.Status{own}, others...) {
			v.Members = append(v.Members, cluster.Member{ID: ip(1 + i), Status: s, Roles: []string{"store"}})
		}
		return v
	}
	was := Record{ClusterID: 7, Birth: 9, Highest: 12, Counts: true, Others: addrs(2, 3, 4, 5)}
	helper := view(down, up, down, up)
	helper.Members[1].Roles = nil
	onlyHelper := view(down, up, down)
	onlyHelper.Members[1].Roles = nil
	other := view(down, up)
	other.ClusterID = 8
	record := func(others, bystanders []peer.Addr) Record { return Record{Others: others, Bystanders: bystanders} }
	for name, c := range map[string]struct {
		last *cluster.View
		want Record
	}{
		"one lives on alone":         {view(down, down, down, down, up), record(addrs(5), addrs(2, 3, 4))},
		"two live on":                {view(down, up, down, up, cluster.Exiting), record(addrs(2, 4), addrs(3))},
		"with one who comes":         {view(down, up, cluster.Joining), Record{Others: addrs(2, 3), Newcomers: 1}},
		"one without the role":       {helper, record(addrs(4), addrs(2, 3))},
		"only one without the role":  {onlyHelper, record(addrs(2), addrs(3))},
		"nobody lives on":            {view(down, down, down, down, down), was},
		"only one who comes":         {view(down, down, cluster.Joining), was},
		"it has not gone":            {view(up, down, up), was},
		"the view of another it was": {other, was},
	} {
		want := c.want
		want.ClusterID, want.Birth, want.Highest = 7, 9, 12
		got := was.went(c.last, "store")
		require.True(t, want.Equal(got), "%s: %+v", name, got)
		require.True(t, got.Equal(was.After(EndDowned, nil, c.last, "store")), name)
	}
	require.Zero(t, Record{}.went(view(down, up), "store"), "it never was a member")
	require.Equal(t, addrs(2, 3, 4, 5), was.Others)
}

// JOIN-1: the members of a cluster leave, the last one alone or all together, and the clock goes back. Those that start
// again form at once, and the birth of their cluster, and so each fence, is above that of the old one. It is also where
// the first seed has lost its record, and hears the others.
func TestNextClusterAfterAllLeftIsBornLater(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, lost := range []bool{false, true} {
			r := newRemembering(t, 1, n)
			old := r.now[1].view.Birth
			for i := n; i >= 1; i-- {
				a := r.now[i]
				r.do(a, LeaveCommand{})
				r.until(time.Minute, "left", func() bool { return a.ended != nil })
				require.Equal(t, EndLeft, a.ended.Kind)
				r.keep()
				r.kept[i] = r.kept[i].After(a.ended.Kind, a.ended.Record, a.view, "")
				require.Equal(t, old, r.kept[i].Highest)
			}
			require.True(t, r.kept[1].Alone())
			if lost && n == 1 {
				continue // nobody knows
			}
			if lost {
				r.kept[1] = Record{}
			}
			for i := n; i >= 1; i-- {
				a := r.start(i)
				r.now[i] = a
				r.do(a, JoinCommand{Seeds: addrs(1, 2, 3)[:n], WallMillis: 1_700_000_000_000, Record: r.kept[i]})
			}
			r.until(time.Minute, "settled", r.settled)
			require.Greater(t, r.now[1].view.Birth, old, "%d nodes, lost %v", n, lost)
		}
	}
}

// What an answer may not say: a record of nobody's cluster, addresses out of order or none, more than fit.
func TestHostileFormAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *Record)
		err    error
	}{
		"newcomers beyond":      {func(r *Record) { r.Newcomers = 3 }, wire.ErrBadValue},
		"no birth":              {func(r *Record) { r.Birth = 0 }, wire.ErrBadValue},
		"a birth of no cluster": {func(r *Record) { r.ClusterID = 0 }, wire.ErrBadValue},
		"others of no cluster":  {func(r *Record) { r.ClusterID, r.Birth = 0, 0 }, wire.ErrBadValue},
		"unsorted":              {func(r *Record) { r.Others[0], r.Others[1] = r.Others[1], r.Others[0] }, wire.ErrBadOrder},
		"twice":                 {func(r *Record) { r.Others[0] = r.Others[1] }, wire.ErrBadOrder},
		"no address":            {func(r *Record) { r.Others[0] = peer.Addr{} }, wire.ErrBadValue},
		"too many more":         {func(r *Record) { r.More = cluster.MaxMembers + 1 }, wire.ErrBadValue},
		"too many":              {func(r *Record) { r.Others = make([]peer.Addr, MaxRemembered+1) }, wire.ErrTooLarge},
	} {
		rec := Record{ClusterID: 7, Birth: 8, Highest: 8, Counts: true, Others: addrs(2, 3)}
		c.change(&rec)
		_, err := readFormAnswer(appendFormAnswer(nil, formAnswerBody{to: 1, nonce: 2, record: rec}))
		require.ErrorIs(t, err, c.err, name)
	}
	none := appendFormAnswer(nil, formAnswerBody{to: 1, nonce: 2,
		record: Record{ClusterID: 7, Birth: 8, Highest: 8, Others: addrs(2), Newcomers: 1}})
	none[len(none)-1] = 0
	_, err := readFormAnswer(none)
	require.ErrorIs(t, err, wire.ErrBadValue, "newcomers, and none of them")
	_, err = readFormAsk(appendFormAsk(nil, formAskBody{nonce: 1, wants: true}))
	require.ErrorIs(t, err, wire.ErrBadValue, "a pledge for no attempt")
	for _, flags := range []byte{4, 0x80} {
		ask := appendFormAsk(nil, formAskBody{nonce: 1})
		ask[len(ask)-1] |= flags
		_, err := readFormAsk(ask)
		require.ErrorIs(t, err, wire.ErrBadValue)
	}
}

// FuzzJoiner: whatever arrives at a node that remembers others and looks for them, it forms no cluster of it, except by
// the word of nodes that it remembers.
func FuzzJoiner(f *testing.F) {
	for kind, body := range bodies(1, 0x11) {
		f.Add(byte(kind), body)
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		m := New(ip(1), Config{}, rand.New(rand.NewPCG(1, 1)))
		_ = m.Do(0, JoinCommand{Seeds: addrs(1, 2, 3), Record: Record{ClusterID: 0x11, Birth: 9, Highest: 9, Counts: true,
			Others: addrs(2, 3)}})
		m.joining.nonce = 7
		for _, from := range []int{2, 9} {
			_ = m.Handle(1, 1, ip(from), wire.Kind(kind), body)
			m.Drain(&Effects{})
		}
		m.Tick(10 * time.Second)
		m.Drain(&Effects{})
		require.Nil(t, m.st, "3 has said nothing")
		require.LessOrEqual(t, len(m.forming.contacts), maxContacts)
	})
}
