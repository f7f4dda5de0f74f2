// Tests that the model of instance hand-off is one of this code.

package partition

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/sim/model/instances"
)

// idOf and stampOfModel are nodes and stamps as the model of instance hand-off has them.
func idOf(n uint8) kith.ID {
	if n > 2 {
		return kith.ID{}
	}
	return node(n + 1)
}

func stampOfModel(s instances.Stamp) stamp {
	at := stamp{uint64(s >> 3), uint32(s & 7)}
	if at.writer > 5 {
		at.writer += math.MaxUint32 - 7 // of ranks that no leader gives
	}
	return at
}

// stateOf is a table of the model.
func stateOf(p *instances.Placed) *State {
	at := stampOfModel(p.At)
	s := &State{PartitionDefinition: Definition{Path: "a"}, Epoch: at.epoch, Writer: at.writer, InForce: p.Way}
	for slot, host := range p.Host {
		s.Instances = append(s.Instances, idOf(host))
		if c := p.Change[slot]; c.At != 0 {
			of := stampOfModel(c.At)
			s.Changes = append(s.Changes, Change{Path: "a", Slot: slot, From: idOf(c.From), To: idOf(c.To),
				Epoch: of.epoch, Writer: of.writer, Complete: c.Complete})
		}
	}
	return s
}

// The model of instance hand-off, which has tried every order of events, judges as this code does (PRT-4).
func TestModelJudgesAlike(t *testing.T) {
	var model instances.Config // no rule is switched off
	stamps := []instances.Stamp{0, instances.StampOf(3, 1), instances.StampOf(4, 1), instances.StampOf(4, 2),
		instances.StampOf(5, 1), instances.StampOf(6, 1)}
	cases := 0
	for _, way := range []Handoff{Stateless, {Old: cluster.OldForwards}, {Old: cluster.OldDrops}, Lossy, Ordered,
		{Late: cluster.LateDrops}} {
		for _, host := range []uint8{0, 1, 3} {
			for _, to := range []uint8{1, 2, 3, 9} { // 9: no change
				for _, complete := range []bool{false, true} {
					p := &instances.Placed{At: instances.StampOf(5, 1), Way: way, Host: [2]uint8{host, 2}}
					if to != 9 {
						p.Change[0] = instances.Change{At: instances.StampOf(4, 2), From: host, To: to, Complete: complete}
					}
					for self := range uint8(3) {
						for _, at := range stamps {
							cases += judgesAlike(t, &model, p, self, at)
						}
					}
				}
			}
		}
	}
	require.Greater(t, cases, 10_000)
}

func judgesAlike(t *testing.T, model *instances.Config, p *instances.Placed, self uint8, at instances.Stamp) (n int) {
	s := stateOf(p)
	for _, over := range []bool{false, true} {
		for _, here := range []bool{false, true} {
			want, wantTo := model.Judge(p, self, 0, at, over, here)
			got, to, _ := judge(s, idOf(self), 0, stampOfModel(at), over, here)
			require.EqualValues(t, want, got, "%v on %d, sent at %v, over %v, here %v", p, self, at, over, here)
			if got == goes {
				require.Equal(t, idOf(wantTo), to, "%v on %d, sent at %v, over %v", p, self, at, over)
			}
		}
		for _, asked := range []instances.Stamp{0, instances.StampOf(4, 2)} {
			for _, waits := range []bool{false, true} {
				dutiesAlike(t, model, p, s, self, [2]instances.Stamp{at, asked}, over, waits)
				n++
			}
		}
	}
	require.Equal(t, stampOfModel(model.RankOf(p, self, 0, max(at, 1))), rankOf(s, idOf(self), 0,
		stampOfModel(max(at, 1))), "%v on %d, sent at %v", p, self, at)
	return n
}

// dutiesAlike compares what is to be done where an instance of one stamp is here, and the new node was asked.
func dutiesAlike(t *testing.T, model *instances.Config, p *instances.Placed, s *State, self uint8,
	hereAsked [2]instances.Stamp, over, waits bool) {
	change := p.Change[0].At
	k := &known{here: map[int]stamp{}, over: map[int]stamp{}, asked: map[int]stamp{}, seen: map[int]seen{}}
	var here, overs, asked [2]instances.Stamp
	if here[0] = hereAsked[0]; here[0] != 0 {
		k.here[0] = stampOfModel(here[0])
	}
	if asked[0] = hereAsked[1]; asked[0] != 0 {
		k.asked[0] = stampOfModel(asked[0])
	}
	if over && change != 0 {
		overs[0], k.over[0] = change, stampOfModel(change)
	}
	now := time.Minute
	if change != 0 {
		k.seen[0] = seen{stampOfModel(change), now}
	}
	if !waits {
		now += endGrace
	}
	list, _ := duties(s, idOf(self), k, now)
	var got, want []string
	for _, d := range list {
		got = append(got, fmt.Sprint(d.act, d.slot))
	}
	for _, d := range model.Duties(p, self, here, overs, asked, waits) {
		want = append(want, fmt.Sprint(uint8(d.Act), d.Slot))
	}
	require.Equal(t, want, got, "%v on %d, here %v, over %v, asked %v", p, self, here, over, asked)
}
