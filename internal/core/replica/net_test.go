// A small network of machines, for tests: virtual time, and mail that a test may drop.

package replica

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/base/contract"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// tally is a value for tests: a number for each incarnation, of which the larger stands, and a filling.
type tally map[peer.ID]uint64

var tallies = &Kind{Name: "tally", Zero: tally{},
	Merge: func(a, b any) any {
		v := maps.Clone(a.(tally))
		for id, n := range b.(tally) {
			v[id] = max(v[id], n)
		}
		return v
	},
	Since: func(v, old any) any {
		d := tally{}
		for id, n := range v.(tally) {
			if n > old.(tally)[id] {
				d[id] = n
			}
		}
		return d
	},
	Append: func(b []byte, v any) ([]byte, error) {
		t := v.(tally)
		for _, id := range slices.SortedFunc(maps.Keys(t), peer.ID.Compare) {
			b = wire.AppendU64(peer.AppendID(b, id), t[id])
		}
		return b, nil
	},
	Parse: func(b []byte) (any, error) {
		t, r := tally{}, wire.NewReader(0, b)
		for r.Err() == nil && r.Len() > 0 {
			id := peer.ReadID(&r)
			t[id] = r.U64()
		}
		return t, r.Done()
	},
}

// sum is the number that a tally stands for.
func (t tally) sum() (n uint64) {
	for _, v := range t {
		n += v
	}
	return n
}

func id(n int) peer.ID { return peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: uint64(n + 1)} }

// net is machines and the mail between them.
type net struct {
	t     *testing.T
	now   time.Duration
	m     []*Machine
	done  []map[uint64]bool
	mail  []letter
	drops func(from, to int, kind wire.Kind) bool
	bytes map[wire.Kind]int
	most  int // bytes that a machine has sent to another one in one go
}

type letter struct {
	from int
	peer.Mail
}

// newNet returns n machines that know each other and have one tally open.
func newNet(t *testing.T, n int) *net {
	w := &net{t: t, now: time.Second, bytes: map[wire.Kind]int{}}
	for i := range n {
		w.m = append(w.m, New(id(i), rand.New(rand.NewPCG(7, uint64(i)))))
		w.done = append(w.done, map[uint64]bool{})
	}
	w.members(all(n)...)
	for i := range w.m {
		w.do(i, OpenCommand{"k", tallies})
	}
	w.run(3 * time.Second)
	return w
}

func all(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// members tells all machines the members.
func (w *net) members(who ...int) {
	v := &cluster.View{}
	for _, i := range who {
		v.Members = append(v.Members, cluster.Member{ID: id(i), Status: cluster.Up})
	}
	for i := range w.m {
		w.do(i, ViewCommand{v})
	}
}

func (w *net) do(i int, cmd Command) {
	w.t.Helper()
	require.NoError(w.t, w.m[i].Do(w.now, cmd))
	w.drain(i)
}

// add has a machine add one to the tally, as an update of a level under a nonce.
func (w *net) add(i int, level Level, nonce uint64) {
	w.do(i, UpdateCommand{"k", plus(i), level, nonce})
}

func plus(i int) func(any) any {
	return func(old any) any {
		t := maps.Clone(old.(tally))
		t[id(i)]++
		return t
	}
}

func (w *net) drain(i int) {
	var e Effects
	contract.Drain[Command, Effects](w.t, w.m[i], &e, "effects")
	for _, n := range e.Done {
		w.done[i][n] = true
	}
	sent := map[peer.ID]int{}
	for _, m := range e.Mail {
		m.Body = slices.Clone(m.Body)
		w.mail = append(w.mail, letter{i, m})
		sent[m.To] += len(m.Body)
		w.most = max(w.most, sent[m.To])
	}
}

// deliver hands over all mail, and what comes of it.
func (w *net) deliver() {
	for len(w.mail) > 0 {
		l := w.mail[0]
		w.mail = w.mail[1:]
		to := slices.IndexFunc(w.m, func(m *Machine) bool { return m.self == l.To })
		if to < 0 || w.drops != nil && w.drops(l.from, to, l.Kind) {
			continue
		}
		w.bytes[l.Kind] += len(l.Body)
		require.LessOrEqual(w.t, len(l.Body), l.Kind.MaxBody())
		require.NoError(w.t, w.m[to].Handle(w.now, w.now, id(l.from), l.Kind, l.Body))
		w.drain(to)
	}
}

// run lets time pass in steps of ten milliseconds.
func (w *net) run(d time.Duration) {
	for end := w.now + d; w.now < end; w.now += 10 * time.Millisecond {
		for i, m := range w.m {
			if at, ok := m.Next(); ok && at <= w.now {
				m.Tick(w.now)
				w.drain(i)
			}
		}
		w.deliver()
	}
}

// until runs until something holds, and fails the test after a minute.
func (w *net) until(holds func() bool) {
	w.t.Helper()
	for end := w.now + time.Minute; !holds(); w.run(10 * time.Millisecond) {
		require.Less(w.t, w.now, end)
	}
}

func (w *net) value(i int) tally {
	v, ok := w.m[i].Value("k")
	require.True(w.t, ok)
	return v.(tally)
}

// equal reports whether all of some machines have a sum.
func (w *net) equal(sum uint64, who ...int) bool {
	return !slices.ContainsFunc(who, func(i int) bool { return w.value(i).sum() != sum })
}
