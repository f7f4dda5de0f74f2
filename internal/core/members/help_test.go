// What tests of states have in common: names, states made of words, a sample with everything in it.

package members

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"pgregory.net/rapid"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/internal/core/tenure"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// nid names node a, b, c, ... with incarnations 1, 2, 3, ...
func nid(name string) peer.ID {
	return peer.ID{Addr: peer.MustAddr(name + ":7355"), Inc: uint64(name[0]-'a') + 1}
}

func everybody(peer.ID) bool { return true }

func among(names ...string) func(peer.ID) bool {
	var s peer.Set
	for _, n := range names {
		s.Add(nid(n))
	}
	return s.Has
}

func marks(t Reachability, pairs ...string) Reachability {
	for _, p := range pairs {
		t = t.With(nid(p[:1]), nid(p[3:]), p[1:3] == "->")
	}
	return t
}

// stateOf builds a state from "a up", "c leaving" and marks "b->a", seen by those named.
func stateOf(members []string, seen string, pairs ...string) *State {
	s := NewState(Version{Cluster: 1, Birth: 1, HighestUp: 100})
	for _, m := range members {
		for st := cluster.Joining; st.Known(); st++ {
			if m[2:] == st.String() {
				member := cluster.Member{ID: nid(m[:1]), Status: st}
				if st.Numbered() >= 0 {
					member.UpNumber = uint32(m[0]-'a') + 1
				}
				s.Add(member)
			}
		}
	}
	s.Reach = marks(nil, pairs...)
	s.Seen = gossip.NewSeen(len(s.Members))
	for _, n := range seen {
		s.Seen.Add(s.Index(nid(string(n))))
	}
	return s.Seal()
}

func never(peer.ID) bool { return false }

// anyState draws what a node of one cluster may hold: any statuses of the same nodes, rows, clocks and tombstones.
func anyState() *rapid.Generator[*State] {
	return rapid.Custom(func(t *rapid.T) *State {
		s := NewState(Version{Cluster: 1, Birth: 1, HighestUp: 50})
		if s.Prunes = uint32(rapid.IntRange(0, 2).Draw(t, "prunings")); s.Prunes > 0 {
			s.Pruned = gossip.Digest(rapid.IntRange(1, 2).Draw(t, "pruned"))
		}
		for _, n := range []string{"a", "b", "c", "d", "e"} {
			switch st := cluster.Status(rapid.IntRange(0, int(cluster.ReadyForShutdown)+1).Draw(t, n)); st {
			case cluster.ReadyForShutdown + 1:
			case cluster.Removed:
				tomb := Tombstone{ID: nid(n), Last: rapid.SampledFrom([]cluster.Status{cluster.Exiting, cluster.Down}).Draw(t,
					"last")}
				tomb.Cause, tomb.By = anyVerdict(t, tomb.Last)
				s.Tombs = append(s.Tombs, tomb)
			default:
				m := cluster.Member{ID: nid(n), Status: st, Roles: []string{"r" + n}, AppVersion: "1." + n}
				m.Cause, m.By = anyVerdict(t, st)
				if st.Numbered() >= 0 {
					m.UpNumber = uint32(rapid.IntRange(1, 9).Draw(t, "number"))
				}
				s.Members = append(s.Members, m)
			}
		}
		for _, m := range s.Members {
			s.Clock = append(s.Clock, gossip.Entry{ID: m.ID, N: rapid.Uint64Range(1, 3).Draw(t, "count")})
			for _, o := range s.Members {
				if o.ID != m.ID && rapid.Bool().Draw(t, "accuses") {
					s.Reach = s.Reach.With(m.ID, o.ID, true)
				}
				if o.ID != m.ID && rapid.Bool().Draw(t, "withdraws") {
					s.Reach = s.Reach.With(m.ID, o.ID, false)
				}
				if o.ID != m.ID && rapid.IntRange(0, 9).Draw(t, "quarantines") == 0 {
					s.Reach = s.Reach.Quarantine(m.ID, o.ID)
				}
			}
		}
		for _, k := range []string{"k1", "k2", "k3"} {
			for range rapid.IntRange(0, 2).Draw(t, k) {
				v := rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "value")
				s.meta, _ = s.meta.with(k, v, nid(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "writer")))
			}
		}
		s.Parts, s.Seats = anyTable(t, s.Members), anySeats(t)
		s.Seen = gossip.NewSeen(len(s.Members))
		return s.Seal()
	})
}

// anySeats draws a list of seats, or none; a writer writes one under a number.
func anySeats(t *rapid.T) tenure.Seats {
	number := uint32(rapid.IntRange(0, 3).Draw(t, "list"))
	if number == 0 {
		return tenure.Seats{}
	}
	s := tenure.Seats{Number: number, Writer: nid(rapid.SampledFrom([]string{"a", "b", "z"}).Draw(t, "by"))}
	s.Holders = []peer.ID{s.Writer, nid("c"), {}}
	if number > 1 {
		s.Holders[2] = nid(string(rune('c' + number)))
	}
	return s
}

// seated is the sample with a list of seats, one of them empty and one of a node that is no member any more.
func seated() *State {
	s := sample().Draft()
	s.Seats = tenure.Seats{Number: 3, Writer: ip(1), Holders: []peer.ID{ip(1), {}, ip(4)}}
	return s.Commit(ip(1))
}

// anyTable draws a partition table that may name those that are no members any more.
func anyTable(t *rapid.T, now []cluster.Member) (table partition.Table) {
	var all []cluster.Member
	for i, n := range []string{"a", "b", "c", "d", "e"} {
		all = append(all, cluster.Member{ID: nid(n), Status: cluster.Up, UpNumber: uint32(i + 1)})
	}
	for range rapid.IntRange(0, 5).Draw(t, "table") {
		path := rapid.SampledFrom([]string{"p", "p/q"}).Draw(t, "path")
		by := nid(rapid.SampledFrom([]string{"a", "z"}).Draw(t, "by"))
		switch rapid.IntRange(0, 4).Draw(t, "op") {
		case 0, 1:
			d := cluster.PartitionDefinition{Path: path, Count: partition.Exactly(rapid.IntRange(1, 3).Draw(t, "n"))}
			table, _ = table.Define(d, by)
		case 2:
			table, _ = table.Undefine(path, by)
		case 3:
			table = table.Plan(rapid.SampledFrom([][]cluster.Member{all, all[1:], now}).Draw(t, "who"),
				uint32(rapid.IntRange(1, 2).Draw(t, "writer")), nil)
		case 4:
			for i := range table {
				for _, c := range table[i].Changes {
					table = table.Complete(c)
				}
			}
		}
	}
	return table
}

// parted is the sample with a partition table: two instances, of which one is being handed over to a joined member, and
// one on a node that is no member any more.
func parted() *State {
	s := sample().Draft()
	was := []cluster.Member{{ID: ip(1), Status: cluster.Up}, {ID: ip(4), Status: cluster.Up}}
	d := cluster.PartitionDefinition{Path: "a/b", Count: partition.Exactly(2), Handoff: cluster.Ordered}
	s.Parts, _ = s.Parts.Define(d, ip(4))
	s.Parts = s.Parts.Plan(was, 1, nil)
	was[0].Status = cluster.Leaving
	s.Parts = s.Parts.Plan(append(was, cluster.Member{ID: ip(5), Status: cluster.Up}), 2, nil)
	return s.Commit(ip(1))
}

func anyVerdict(t *rapid.T, st cluster.Status) (cluster.Cause, peer.ID) {
	if st != cluster.Down {
		return cluster.CauseNone, peer.ID{}
	}
	by := nid(rapid.SampledFrom([]string{"a", "b", "z"}).Draw(t, "by"))
	return cluster.Cause(rapid.IntRange(1, int(cluster.CauseProvenDead)).Draw(t, "cause")), by
}

// addr is the address of node n.
func addr(n int) peer.Addr { return peer.MustAddr(fmt.Sprintf("10.0.0.%d:7355", n)) }

// ip is node n, of incarnation n.
func ip(n int) peer.ID { return peer.ID{Addr: addr(n), Inc: uint64(n)} }

// sample is a state with everything in it.
func sample() *State {
	s := NewState(Version{Cluster: 0x11, Birth: 0x22, HighestUp: 5})
	s.Add(cluster.Member{ID: ip(1), Status: cluster.Up, UpNumber: 1, Roles: []string{"db", "web"}})
	s.Add(cluster.Member{ID: ip(2), Status: cluster.Joining, Roles: []string{"web"}, AppVersion: "1.2"})
	s.Add(cluster.Member{ID: ip(3), Status: cluster.Down, UpNumber: 4, Cause: cluster.CauseResolver, By: ip(1)})
	s.Tombs = []Tombstone{{ID: ip(4), Last: cluster.Exiting}, {ip(5), cluster.Down, cluster.CauseOperator, ip(7)}}
	s.Reach = s.Reach.With(ip(1), ip(3), true).With(ip(2), ip(3), true).With(ip(2), ip(3), false).Quarantine(ip(2), ip(3))
	s.meta, _ = s.meta.with("k", "v", ip(1))
	s.Clock = gossip.Clock{{ID: ip(1), N: 300}, {ID: ip(2), N: 1}}
	s.Seen = gossip.NewSeen(3)
	s.Seen.Add(0)
	s.Seen.Add(2)
	return s.Seal()
}

func payload(s *State) []byte { return bytes.Clone(s.canonical()) }

// readState reads a version that nobody is known to have seen.
func readState(kind wire.Kind, b []byte) (*State, error) {
	v, err := new(work).readCore(kind, b)
	if err != nil {
		return nil, err
	}
	return &State{Version: v, Seen: gossip.NewSeen(len(v.Members))}, nil
}

// nextSample is a version after the sample in which everything changed.
func nextSample() *State {
	s := sample().Draft()
	s.HighestUp = 6
	s.SetStatus(ip(1), cluster.Leaving)
	s.Remove(ip(3))
	s.Add(cluster.Member{ID: ip(9), Status: cluster.Joining, Roles: []string{"web"}, AppVersion: "1.3"})
	s.Reach = s.Reach.With(ip(2), ip(1), true)
	s.meta, _ = s.meta.with("k", "w", ip(2))
	return s.Commit(ip(1))
}

func bigState(n int) *State {
	s := NewState(Version{Cluster: 1, Birth: 1, HighestUp: uint32(n)})
	for i := range n {
		at := peer.MustAddr(fmt.Sprintf("10.1.%d.%d:7355", i/200, i%200+1))
		id := peer.ID{Addr: at, Inc: uint64(i)*0x9e3779b97f4a7c15 | 1}
		s.Members = append(s.Members, cluster.Member{ID: id, Status: cluster.Up, UpNumber: uint32(i + 1),
			Roles: []string{"worker"}})
	}
	s.Seen = gossip.NewSeen(n)
	return s.Seal()
}

// crowd is a state as it may be after a long life: random incarnations, addresses that are spread over a few networks,
// up-numbers in any order, one role, one version, clocks entries counters of all that ever changed something.
func crowd(n, tombs, clocks int) *State {
	rng := rand.New(rand.NewPCG(7, 7))
	s := NewState(Version{Cluster: rng.Uint64(), Birth: rng.Uint64(), HighestUp: uint32(2 * n)})
	ids := make(peer.Set, 0, n+tombs)
	for i := range n + tombs {
		ip := uint32(i * (200_000 / (n + tombs)))
		at := peer.MustAddr(fmt.Sprintf("10.%d.%d.%d:7355", ip>>16, ip>>8&255, ip&255))
		ids = append(ids, peer.ID{Addr: at, Inc: rng.Uint64() | 1})
	}
	ups := rng.Perm(n + tombs)
	for i, id := range ids {
		if len(s.Members)*(n+tombs) <= i*n && len(s.Members) < n {
			s.Members = append(s.Members, cluster.Member{ID: id, Status: cluster.Up, UpNumber: uint32(ups[i] + 1),
				Roles: []string{"worker"}, AppVersion: "2.14.1"})
		} else {
			s.Tombs = append(s.Tombs, Tombstone{ID: id, Last: cluster.Exiting})
		}
	}
	s.HighestUp = uint32(n + tombs)
	for i := range clocks {
		id := s.Members[i*n/clocks].ID
		s.Clock = append(s.Clock, gossip.Entry{ID: id, N: 1 + rng.Uint64N(300)})
	}
	s.Seen = gossip.NewSeen(n)
	return s.Seal()
}

// concurrent returns two versions of a state of n members with full clocks that neither is newer than the other: on
// each side something happened to every tenth member, on one side somebody is accused as well.
func concurrent(n int) (a, b *State) {
	base := bigState(n)
	for i, m := range base.Members {
		base.Clock = append(base.Clock, gossip.Entry{ID: m.ID, N: uint64(1 + i%7)})
	}
	side := func(offset int) *State {
		s := base.Draft()
		for i := offset; i < n; i += 10 {
			s.Members[i].Status = cluster.Leaving
		}
		if offset == 0 {
			s.Reach = s.Reach.With(s.Members[1].ID, s.Members[2].ID, true)
		}
		s = s.Commit(s.Members[offset].ID)
		got, err := readState(wire.KindGossip, payload(s)) // as from the wire: nothing is shared
		if err != nil {
			panic(err)
		}
		return got
	}
	return side(0), side(5)
}
