// Random lives of clusters: crashes, restarts, leaves, joins, cuts and hostile delivery, with checks that see all nodes
// (MEM-1, MEM-4, GOS-3).

package membership

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/peer"
)

// witness checks what must hold over the whole history of one cluster.
type witness struct {
	seed    uint64
	cluster uint64
	numbers map[uint32]peer.ID                    // the member that ever got an up-number
	stood   map[*actor]map[peer.ID]cluster.Status // last status of each member in each node's view
	seqs    map[*actor]uint64
	hashes  map[uint64]string // view hash to what it named
}

func newWitness(seed uint64) *witness {
	return &witness{seed: seed, numbers: map[uint32]peer.ID{}, stood: map[*actor]map[peer.ID]cluster.Status{},
		seqs: map[*actor]uint64{}, hashes: map[uint64]string{}}
}

func (x *witness) look(t *testing.T, w *world) {
	for _, a := range w.actors {
		if a.view == nil || x.seqs[a] == a.view.Seq {
			continue
		}
		x.seqs[a] = a.view.Seq
		if x.cluster == 0 {
			x.cluster = a.view.ClusterID
		}
		require.Equal(t, x.cluster, a.view.ClusterID, "a second cluster, seed %d, at %v%s", x.seed, w.now, w.describe())
		if x.stood[a] == nil {
			x.stood[a] = map[peer.ID]cluster.Status{}
		}
		was := x.stood[a]
		for _, m := range a.view.Members {
			if last, ok := was[m.ID]; ok {
				require.LessOrEqual(t, last.Rank(), m.Status.Rank(), "%s went back in the view of %s", m.ID, a.id)
			}
			was[m.ID] = m.Status
			if m.UpNumber > 0 {
				if o, ok := x.numbers[m.UpNumber]; ok {
					require.Equal(t, o, m.ID, "up-number %d was given twice, seed %d", m.UpNumber, x.seed)
				}
				x.numbers[m.UpNumber] = m.ID
			}
		}
		for id := range was {
			if _, ok := a.view.Member(id); !ok {
				was[id] = cluster.Removed
			}
		}
		if a.ended == nil {
			text := fmt.Sprint(a.view.Members, a.view.Accusations)
			if o, ok := x.hashes[a.view.Hash]; ok {
				require.Equal(t, o, text, "one hash names two states")
			}
			x.hashes[a.view.Hash] = text
		}
	}
}

// replay applies a node's events to nothing; the result must be its view.
func replay(t *testing.T, a *actor) {
	members := map[peer.ID]cluster.Member{}
	unreachable := map[peer.ID]bool{}
	leader := peer.ID{}
	for _, e := range a.events {
		switch e.Kind {
		case MemberRemoved:
			require.Contains(t, members, e.Member.ID)
			delete(members, e.Member.ID)
			delete(unreachable, e.Member.ID)
		case UnreachableMember:
			unreachable[e.Member.ID] = true
		case ReachableMember:
			require.True(t, unreachable[e.Member.ID])
			delete(unreachable, e.Member.ID)
		case LeaderChanged:
			leader = e.Leader
		case RoleLeaderChanged, MetadataChanged, PartitionsChanged:
		default:
			if e.Kind.OfView() {
				members[e.Member.ID] = e.Member
			}
		}
	}
	require.Len(t, members, len(a.view.Members))
	for _, m := range a.view.Members {
		told := members[m.ID]
		told.Cause, told.By = m.Cause, m.By // of two that downed it at once the other may be named later, without an event
		require.Equal(t, m, told)
	}
	require.Len(t, unreachable, len(a.view.Unreachable))
	require.Equal(t, leader, a.view.Leader)
}

func lifeSeeds() uint64 {
	if n, err := strconv.Atoi(os.Getenv("MEMBERSHIP_SEEDS")); err == nil {
		return uint64(n)
	}
	return long.Fewer(8)
}

func TestRandomLives(t *testing.T) {
	for seed := range lifeSeeds() {
		w := newWorld(t, 1000+seed)
		x := newWitness(seed)
		pass := func(d time.Duration) {
			for limit := w.now + d; w.step(limit); {
				x.look(t, w)
			}
		}
		w.chaos = true
		size := 3 + w.rng.IntN(4)
		at := make([]*actor, size)
		var seeds []int // all, so that a first seed that comes back finds any that is left
		for i := range at {
			seeds = append(seeds, i+1)
		}
		for i := range at {
			at[i] = w.start(i+1, fmt.Sprintf("r%d", i%2))
			w.join(at[i], seeds...)
		}
		pass(8 * time.Second)
		revive := func() {
			for i, a := range at {
				if a.dead {
					at[i] = w.start(i+1, fmt.Sprintf("r%d", i%2))
					w.join(at[i], seeds...)
				}
			}
		}
		for range 12 {
			revive()
			pass(time.Duration(w.rng.IntN(6000)) * time.Millisecond)
			i := w.rng.IntN(size)
			switch a := at[i]; w.rng.IntN(5) {
			case 0: // crash and come back, soon or late
				w.crash(a)
				pass(time.Duration(w.rng.IntN(12)) * time.Second)
			case 1: // leave and come back
				if !a.dead {
					w.do(a, LeaveCommand{})
				}
				pass(time.Duration(w.rng.IntN(12)) * time.Second)
			case 2: // a cut between two random sides, at times one way only
				side, one := w.rng.Uint64(), w.rng.IntN(3) == 0
				w.cut = func(from, to peer.ID) bool {
					f, o := side>>(from.Addr.Compare(addr(size/2))+1)&1, side>>(to.Addr.Compare(addr(size/2))+1)&1
					return f != o && (!one || f == 1)
				}
				pass(time.Duration(w.rng.IntN(15)) * time.Second)
				w.cut = nil
			case 3: // an operator downs one that is gone
				w.crash(a)
				pass(time.Duration(w.rng.IntN(3)) * time.Second)
				for _, o := range w.alive() {
					if o.view != nil {
						_ = o.m.Do(w.now-o.epoch, DownCommand{ID: a.id})
						w.drain(o)
						break
					}
				}
			case 4:
			}
		}
		w.chaos = false
		revive()
		w.until(90*time.Second, fmt.Sprintf("settled, seed %d", seed), func() bool {
			x.look(t, w)
			return w.settled()
		})
		for _, a := range w.alive() {
			replay(t, a)
		}
	}
}
