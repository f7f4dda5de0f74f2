// Tests of the proof: small clusters whole, breaks in two stages sampled, and that it can fail (MEM-10).

package proof

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/sbr"
)

// TestResolverProof: every state of the links of two to four nodes; `make resolver-proof` takes five (AVL-1).
func TestResolverProof(t *testing.T) {
	for n := 2; n <= 4; n++ {
		r := Run(n, Cases(n))
		require.Empty(t, r.Failures)
		require.Zero(t, r.DoubleSurvivors)
		require.Zero(t, r.AllDownUnexpected)
		require.Equal(t, 1<<(n*(n-1)), r.States)
		for _, row := range r.Rows {
			require.Positive(t, row.Obliged, "%s: a proof that obliges to nothing shows nothing", row.Settings)
			require.Positive(t, row.Survived, row.Settings)
			require.Equal(t, r.States, row.Survived+row.AllDown)
		}
	}
}

// TestResolverProofCanFail: a strategy that lets every side live is found out, and so is one that ends more than it
// promised.
func TestResolverProofCanFail(t *testing.T) {
	r := Run(4, []Case{{Config: sbr.Config{Strategy: sbr.UnsafeAutoDown}}})
	require.Positive(t, r.DoubleSurvivors)
	require.NotEmpty(t, r.Failures)
	p := newProver(4, Case{Config: sbr.Config{Strategy: sbr.DownAll}})
	p.promise = sbr.Config{} // held to what keep-majority promises
	var row Row
	for state := range uint32(1 << 12) {
		p.judge(p.mutual(state), &row, func(string) {})
	}
	require.Positive(t, row.AllDownUnexpected)
}

// TestResolverProofInTwoStages: the links break twice, and what some had said after the first break is all that others
// know of them after the second. Such words of the past make nobody indirectly connected.
func TestResolverProofInTwoStages(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range Cases(5) {
		p := newProver(5, c)
		var row Row
		states := 3000
		if c.Seats != nil {
			states = 800
		}
		for range states {
			first, second := p.mutual(rng.Uint32()|rng.Uint32()), p.mutual(rng.Uint32()|rng.Uint32())
			p.judgeTwice(first, second, &row, func(what string) {
				require.Fail(t, what, "%s, first %010b, then %010b", c.Name(), first, second)
			})
		}
		require.Positive(t, row.Obliged)
	}
}

// judgeTwice decides the second of two breaks. In its view a node has the rows of its group, and for others what any of
// its group had learnt after the first break.
func (p *prover) judgeTwice(first, second uint32, row *Row, fault func(what string)) {
	var acts [MaxNodes]act
	var groups [MaxNodes]uint32
	for i := range p.n {
		groups[i] = p.group(i, second)
		before, now := make([]uint32, p.n), make([]uint32, p.n)
		for o := range p.n {
			if p.group(i, first)>>o&1 == 1 {
				before[o] = p.accuses(o, first)
			}
			if groups[i]>>o&1 == 1 {
				now[o] = p.accuses(o, second)
			} else if p.group(o, first)&groups[i] != 0 {
				now[o] = p.accuses(o, first)
			}
		}
		acts[i] = p.decide(i, groups[i], before, now)
	}
	p.sentence(second, groups[:p.n], acts[:p.n], row, fault)
}
