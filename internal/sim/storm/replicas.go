// Replicated values in a storm: every host adds numbers to a set that all hold, and waits for none or many. What a
// majority is said to hold it holds, and when all is well again all hold the same (REP-1).

package storm

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/core/replica"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/wire"
)

// alikeBound is how long replicated values may differ in a cluster that is well.
const alikeBound = 30 * time.Second

// numbers is the value: a set to which is only added.
type numbers map[uint64]struct{}

// numbersKind deals with it.
var numbersKind = &replica.Kind{Name: "numbers", Zero: numbers{},
	Merge: func(a, b any) any {
		v := maps.Clone(a.(numbers))
		maps.Copy(v, b.(numbers))
		return v
	},
	Since: func(v, old any) any {
		d := maps.Clone(v.(numbers))
		maps.DeleteFunc(d, func(n uint64, _ struct{}) bool { _, was := old.(numbers)[n]; return was })
		return d
	},
	Append: func(b []byte, v any) ([]byte, error) {
		for _, n := range slices.Sorted(maps.Keys(v.(numbers))) {
			b = wire.AppendU64(b, n)
		}
		return b, nil
	},
	Parse: func(b []byte) (any, error) {
		v, r := numbers{}, wire.NewReader(0, b)
		for r.Err() == nil && r.Len() > 0 {
			v[r.U64()] = struct{}{}
		}
		return v, r.Done()
	},
}

// replicas is what a storm with replicated values draws; nil in others.
type replicas struct {
	s    *storm
	rng  *rand.Rand
	last uint64 // number, and the nonce of the waiter
	wait []waiting
}

// waiting is a number that somebody waits for a majority to hold.
type waiting struct {
	by *world.Process
	n  uint64
}

// start makes all hosts add numbers.
func (x *replicas) start() {
	if x == nil {
		return
	}
	for i := range x.s.w.Hosts {
		x.s.w.After(between(x.rng, 0, 3*time.Second), func() { x.tick(i) })
	}
}

// tick makes a host add a number, when it has the value open.
func (x *replicas) tick(i int) {
	if x.s.ending {
		return
	}
	if p := x.s.w.Hosts[i].Process; p != nil && p.Alive && !p.Paused() {
		x.open(p)
		x.last++
		n, level := x.last, []replica.Level{replica.Local, 2, replica.Majority, replica.Majority}[x.rng.IntN(4)]
		x.do(p, replica.UpdateCommand{Name: "numbers", Level: level, Nonce: n, Change: func(old any) any {
			v := maps.Clone(old.(numbers))
			v[n] = struct{}{}
			return v
		}})
		if level == replica.Majority {
			x.wait = append(x.wait, waiting{p, n})
		}
	}
	x.look()
	x.s.w.After(between(x.rng, 50*time.Millisecond, 2*time.Second), func() { x.tick(i) })
}

func (x *replicas) open(p *world.Process) {
	x.do(p, replica.OpenCommand{Name: "numbers", Kind: numbersKind})
}

func (x *replicas) do(p *world.Process, cmd replica.Command) {
	if err := world.Replicated(p).Do(cmd); err != nil {
		x.s.check.Violate(p, "replicated", "%T is refused: %v", cmd, err)
	}
}

// look demands of each number that a majority is said to hold that one does, of the members of then; one that has died
// since held it when it died.
func (x *replicas) look() {
	x.wait = slices.DeleteFunc(x.wait, func(a waiting) bool {
		v := world.Replicated(a.by).Over(a.n)
		if v == nil {
			return !a.by.Alive
		}
		members, have := 0, 0
		for i := range v.Members {
			if m := &v.Members[i]; m.Status != membership.Down && m.Status != membership.Exiting {
				members++
				if q := x.s.w.ProcessOf(m.ID); q != nil && holds(q, a.n) {
					have++
				}
			}
		}
		if have <= members/2 {
			x.s.check.Violate(a.by, "replicated", "a majority holds %d, it was told: %d of %d do", a.n, have, members)
		}
		return true
	})
}

func holds(p *world.Process, n uint64) bool {
	v, _ := world.Replicated(p).Value("numbers").(numbers)
	_, ok := v[n]
	return ok
}

// demandAlike demands that all that run hold the same.
func (x *replicas) demandAlike() {
	if x == nil {
		return
	}
	x.look()
	for _, p := range x.s.w.Running() {
		x.open(p)
	}
	differ := func() (who *world.Process) {
		list := x.s.w.Running()
		for _, p := range list[min(1, len(list)):] {
			a, b := world.Replicated(p).Value("numbers"), world.Replicated(list[0]).Value("numbers")
			if !maps.Equal(a.(numbers), b.(numbers)) {
				return p
			}
		}
		return nil
	}
	if !x.s.w.Until(alikeBound, func() bool { return differ() == nil }) {
		x.s.check.Violate(differ(), "replicated", "values differ %v after all is well", alikeBound)
	}
}
