// What tests of the machine have in common of states: names, states made of words, a sample with everything in it.

package membership

import (
	"encoding/hex"
	"fmt"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
)

// nid names node a, b, c, ... with incarnations 1, 2, 3, ...
func nid(name string) peer.ID {
	return peer.ID{Addr: peer.MustAddr(name + ":7355"), Inc: uint64(name[0]-'a') + 1}
}

// ip is node n, of incarnation n.
func ip(n int) peer.ID { return peer.ID{Addr: addr(n), Inc: uint64(n)} }

func never(peer.ID) bool { return false }

// stateOf builds a state from "a up", "c leaving" and marks "b->a", seen by those named.
func stateOf(list []string, seen string, pairs ...string) *members.State {
	s := members.NewState(members.Version{Cluster: 1, Birth: 1, HighestUp: 100})
	for _, m := range list {
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
	for _, p := range pairs {
		s.Reach = s.Reach.With(nid(p[:1]), nid(p[3:]), p[1:3] == "->")
	}
	s.Seen = gossip.NewSeen(len(s.Members))
	for _, n := range seen {
		s.Seen.Add(s.Index(nid(string(n))))
	}
	return s.Seal()
}

// sample is a state with everything in it.
func sample() *members.State {
	s := members.NewState(members.Version{Cluster: 0x11, Birth: 0x22, HighestUp: 5})
	s.Add(cluster.Member{ID: ip(1), Status: cluster.Up, UpNumber: 1, Roles: []string{"db", "web"}})
	s.Add(cluster.Member{ID: ip(2), Status: cluster.Joining, Roles: []string{"web"}, AppVersion: "1.2"})
	s.Add(cluster.Member{ID: ip(3), Status: cluster.Down, UpNumber: 4, Cause: cluster.CauseResolver, By: ip(1)})
	s.Tombs = []members.Tombstone{{ID: ip(4), Last: cluster.Exiting},
		{ID: ip(5), Last: cluster.Down, Cause: cluster.CauseOperator, By: ip(7)}}
	s.Reach = s.Reach.With(ip(1), ip(3), true).With(ip(2), ip(3), true).With(ip(2), ip(3), false).Quarantine(ip(2), ip(3))
	s, _ = s.WithMetadata("k", "v", ip(1))
	s.Clock = gossip.Clock{{ID: ip(1), N: 300}, {ID: ip(2), N: 1}}
	s.Seen = gossip.NewSeen(3)
	s.Seen.Add(0)
	s.Seen.Add(2)
	return s.Seal()
}

// nextSample is a version after the sample in which everything changed.
func nextSample() *members.State {
	d, _ := sample().WithMetadata("k", "w", ip(2))
	d.Clock = sample().Clock
	d.HighestUp = 6
	d.SetStatus(ip(1), cluster.Leaving)
	d.Remove(ip(3))
	d.Add(cluster.Member{ID: ip(9), Status: cluster.Joining, Roles: []string{"web"}, AppVersion: "1.3"})
	d.Reach = d.Reach.With(ip(2), ip(1), true)
	return d.Commit(ip(1))
}

// crowd is a state of n Up members with full clocks.
func crowd(n int) *members.State {
	s := members.NewState(members.Version{Cluster: 1, Birth: 1, HighestUp: uint32(n)})
	for i := range n {
		id := peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.1.%d.%d:7355", i/200, i%200+1)), Inc: uint64(i) + 7}
		s.Add(cluster.Member{ID: id, Status: cluster.Up, UpNumber: uint32(i + 1), Roles: []string{"worker"}})
		s.Clock = append(s.Clock, gossip.Entry{ID: id, N: uint64(1 + i%7)})
	}
	s.Seen = gossip.NewSeen(n)
	return s.Seal()
}

// packOf is a state as it travels, without gzip.
func packOf(s *members.State) members.Packed {
	return members.NewStore(1<<30, nil).Pack(members.NewState(*s.Version).Version)
}

// plainBody is a body with the state as it is.
func plainBody(to, tag uint64, s *members.State) []byte {
	return appendStateBody(nil, stateBody{to, tag, s.Digest, s.Seen, packOf(s)})
}

// sampleDelta is the way from the sample to the next one.
func sampleDelta(to, clusterID uint64) []byte {
	changes, err := hex.DecodeString(goldenChanges)
	if err != nil {
		panic(err)
	}
	next := nextSample()
	return appendDeltaBody(nil, deltaBody{envelope{to, clusterID}, sample().Digest, next.Digest, next.Seen, changes})
}

const goldenState = "03" + "1100000000000000" + "2200000000000000" + "05" + "00" + // format, ids, highest, pruned
	"02" + "026462" + "03776562" + // roles
	"03" + "00" + "00" + "020001" + "00" + "0101" + "03312e32" + // profiles: roles and version
	"02" + "01040a000001bb1c" + "18" + "0100000000000000" + "0700000000000000" + // deciders
	"03" + "01040a000001bb1c" + "04" + "04" + // members: addresses
	"0100000000000000" + "0200000000000000" + "0300000000000000" + // incarnations
	"01" + "00" + "04" + "00" + "03" + "06" + "01" + "02" + "00" + "0301" + // status, up-number, profile, verdict
	"02" + "01040a000004bb1c" + "04" + "0400000000000000" + "0500000000000000" + "0304" + "0102" + // tombstones
	"02" + "00" + "01" + "01" + "020000" + "00" + "03" + "01" + "020001" + // rows
	"01" + "016b" + "0176" + "01" + "040a000001bb1c0100000000000000" + // metadata
	"02" + "0000" + "ac0201" // clock

const goldenDigest = "846b70647dc575f4"

const goldenSeen = goldenDigest + "03" + "05"

const goldenChanges = "0600" + "0102" + "01" + "000201" + // highest up, never pruned; members: gone, changed
	"01" + "040a000009bb1c0900000000000000" + "0000" + "0103776562" + "03312e33" + // new
	"00" + "01" + "040a000003bb1c0300000000000000" + "04" + "03" + "040a000001bb1c0100000000000000" + // tombstones
	"00" + "02" + "000100" + "000401" + "000000" + // rows: one emptied, one with a record
	"01" + "01" + "016b" + "0177" + "02" + "040a000002bb1c0200000000000000" + // metadata
	"00" + "01" + "00ad02" // clock
