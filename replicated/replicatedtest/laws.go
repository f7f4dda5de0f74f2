// Package replicatedtest holds replicated values of your own to the laws by which copies that changed apart become
// equal: call Laws in a test.
package replicatedtest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/replicated"
)

// Runs is how many histories of three copies Laws draws.
const Runs = 200

// Laws draws histories in which three nodes change copies of zero by change, exchange states and deltas, lose some of
// them and get others twice, and fails t where a law does not hold: merging is commutative, associative and idempotent;
// a delta does what its state does; copies that have heard of everything are equal, byte by byte; what Append writes
// Parse reads; no method changes what it was given; folding one node away keeps equal copies equal. The histories
// follow from seed. change gets the identity under which it has to make the change, and must follow from r, v and me
// alone.
func Laws[V replicated.Value[V]](t testing.TB, seed uint64, zero V, change func(r *rand.Rand, v V, me peer.ID) V) {
	t.Helper()
	for run := range uint64(Runs) {
		h := &history[V]{t: t, seed: seed, run: run, zero: zero, rng: rand.New(rand.NewPCG(seed, run))}
		h.play(change)
	}
}

// IDs are the identities of the three nodes.
var IDs = [3]peer.ID{
	{Addr: peer.MustAddr("10.0.0.1:7355"), Inc: 1}, {Addr: peer.MustAddr("10.0.0.2:7355"), Inc: 2},
	{Addr: peer.MustAddr("10.0.0.3:7355"), Inc: 3},
}

// history is one run.
type history[V replicated.Value[V]] struct {
	t         testing.TB
	seed, run uint64
	zero      V
	rng       *rand.Rand
	copies    [3]V
	deltas    []V // that were made, in no order
}

func (h *history[V]) play(change func(r *rand.Rand, v V, me peer.ID) V) {
	h.t.Helper()
	h.copies = [3]V{h.zero, h.zero, h.zero}
	for range 1 + h.rng.IntN(20) {
		i := h.rng.IntN(3)
		old := h.copies[i]
		was := h.bytes(old)
		switch h.rng.IntN(4) {
		case 0: // the whole state of another
			h.copies[i] = old.Merge(h.copies[h.rng.IntN(3)])
		case 1: // some delta, perhaps not for the first time, perhaps before those that were made earlier
			if len(h.deltas) > 0 {
				h.copies[i] = old.Merge(h.deltas[h.rng.IntN(len(h.deltas))])
			}
		default:
			h.copies[i] = change(h.rng, old, IDs[i])
			d := h.copies[i].Since(old)
			h.equal(old.Merge(d), old.Merge(h.copies[i]), "a delta does what its state does")
			h.deltas = append(h.deltas, d)
		}
		if !bytes.Equal(was, h.bytes(old)) {
			h.fail("a value was changed in place")
		}
	}
	h.laws()
	h.spread()
	h.fold(change)
}

// laws holds three copies that differ to the laws of a merge, and their bytes to those of the codec.
func (h *history[V]) laws() {
	h.t.Helper()
	a, b, c := h.copies[0], h.copies[1], h.copies[2]
	h.equal(a.Merge(b), b.Merge(a), "merging is commutative")
	h.equal(a.Merge(b).Merge(c), a.Merge(b.Merge(c)), "merging is associative")
	h.equal(a.Merge(a), a, "merging is idempotent")
	h.equal(a.Merge(h.zero), a, "merging the zero value changes nothing")
	h.equal(a.Merge(b).Merge(b), a.Merge(b), "merging twice is merging once")
	h.equal(a.Merge(b.Since(a)), a.Merge(b), "a delta since another copy does what the state does")
	text := h.bytes(a)
	back, err := h.zero.Parse(text)
	if err != nil {
		h.fail("Parse refuses what Append wrote: " + err.Error())
	}
	h.equal(back, a, "Parse reads what Append wrote")
	h.equal(back.Merge(b), a.Merge(b), "what was read merges like what was written")
	for n := range text {
		_, _ = h.zero.Parse(text[:n]) // may be refused, and must not panic
	}
	if n := len(a.Kind()); n == 0 || n > 64 || a.Kind() != h.zero.Kind() {
		h.fail("Kind has 1 to 64 bytes and is the same for all values")
	}
}

// spread gives every copy every delta, in an order of its own, and demands that they are equal then.
func (h *history[V]) spread() {
	h.t.Helper()
	all := h.copies[0].Merge(h.copies[1]).Merge(h.copies[2])
	for i := range h.copies {
		v := h.zero
		for _, at := range h.rng.Perm(len(h.deltas)) {
			v = v.Merge(h.deltas[at])
		}
		h.equal(v.Merge(h.copies[i]), all, "who has all deltas has everything")
		h.copies[i] = all
	}
}

// fold folds the third node away at two copies, and lets them change further.
func (h *history[V]) fold(change func(r *rand.Rand, v V, me peer.ID) V) {
	h.t.Helper()
	a, b := h.copies[0].Fold(IDs[2]), change(h.rng, h.copies[1], IDs[1]).Fold(IDs[2])
	h.equal(a.Fold(IDs[2]), a, "folding twice is folding once")
	h.equal(a.Merge(b), b.Merge(a), "merging what was folded is commutative")
}

func (h *history[V]) bytes(v V) []byte {
	h.t.Helper()
	b, err := v.Append([]byte{7})
	if err != nil || len(b) == 0 || b[0] != 7 {
		h.fail("Append fails, or does not append")
	}
	return b[1:]
}

func (h *history[V]) equal(got, want V, law string) {
	h.t.Helper()
	if a, b := h.bytes(got), h.bytes(want); !bytes.Equal(a, b) {
		h.fail(law)
	}
}

func (h *history[V]) fail(law string) {
	h.t.Helper()
	h.t.Fatalf("replicatedtest: %s: broken by seed %d, run %d: %+v", law, h.seed, h.run, h.copies)
}
