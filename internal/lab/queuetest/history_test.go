// Tests of the judge: each promise can be found broken, and what may be is not.

package queuetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

// TestJudge: each way in which a history may be wrong breaks the promise that it is about (SHD-10).
func TestJudge(t *testing.T) {
	sent := func(outcomes ...Outcome) (list []Sent) {
		for i, o := range outcomes {
			list = append(list, Sent{"s", "a", fmt.Sprint("m", i), o})
		}
		return list
	}
	had := func(texts ...string) (list []Handled) { // in a life, behind a plus in another one
		for _, m := range texts {
			text, other := strings.CutPrefix(m, "+")
			list = append(list, Handled{"a", text, fmt.Sprint(other)})
		}
		return list
	}
	dead := func(texts ...string) (list []Dead) {
		for _, m := range texts {
			list = append(list, Dead{"a", m})
		}
		return list
	}
	m0 := map[string]bool{"m0": true}
	for name, c := range map[string]struct {
		h    History
		want Verdict
	}{
		"all is well":      {History{Sent: sent(Stored, Stored), Handled: had("m0", "m1")}, Verdict{Stored: 2}},
		"a dead letter":    {History{Sent: sent(Stored), Dead: dead("m0")}, Verdict{Stored: 1}},
		"handled and dead": {History{Sent: sent(Stored), Handled: had("m0"), Dead: dead("m0")}, Verdict{Stored: 1}},
		"unknown, and had": {History{Sent: sent(Unknown), Handled: had("m0")}, Verdict{}},
		"unknown, and not": {History{Sent: sent(Unknown)}, Verdict{}},
		"refused":          {History{Sent: sent(Refused)}, Verdict{}},
		"again in another life": {History{Sent: sent(Stored), Handled: had("m0", "+m0")},
			Verdict{Stored: 1, Repeated: 1}},
		"both again": {History{Sent: sent(Stored, Stored), Handled: had("m0", "m1", "+m0", "+m1")},
			Verdict{Stored: 2, Repeated: 2}},
		"an unknown one late": {History{Sent: sent(Unknown, Stored), Handled: had("m1", "m0")}, Verdict{Stored: 1}},
		"sent again, behind": {History{Sent: sent(Stored, Stored), Handled: had("m1", "m0"), Again: m0},
			Verdict{Stored: 2}},
		"sent again, twice": {History{Sent: sent(Stored), Handled: had("m0", "m0"), Again: m0},
			Verdict{Stored: 1, Repeated: 1}},
		"discarded":            {History{Sent: sent(Stored), Discarded: m0}, Verdict{Stored: 1}},
		"lost":                 {History{Sent: sent(Stored, Stored), Handled: had("m1")}, Verdict{Stored: 2, Lost: 1}},
		"sent again, and lost": {History{Sent: sent(Stored), Again: m0}, Verdict{Stored: 1, Lost: 1}},
		"overtaken": {History{Sent: sent(Stored, Stored), Handled: had("m1", "m0")},
			Verdict{Stored: 2, Overtook: 1}},
		"invented":             {History{Handled: had("m0")}, Verdict{Invented: 1}},
		"refused, and handled": {History{Sent: sent(Refused), Handled: had("m0")}, Verdict{Invented: 1}},
		"refused, and dead":    {History{Sent: sent(Refused), Dead: dead("m0")}, Verdict{Invented: 1}},
		"twice in a life":      {History{Sent: sent(Stored), Handled: had("m0", "m0")}, Verdict{Stored: 1, Twice: 1}},
		"two dead letters":     {History{Sent: sent(Stored), Dead: dead("m0", "m0")}, Verdict{Stored: 1, Twice: 1}},
		"the last one is first": {History{Sent: sent(Stored, Stored, Stored), Handled: had("m2", "m0", "m1")},
			Verdict{Stored: 3, Overtook: 1}},
		"gone astray": {History{Sent: sent(Stored), Handled: []Handled{{"b", "m0", "1"}}},
			Verdict{Stored: 1, Invented: 1, Lost: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.h.Judge()
			broken := c.want.Lost+c.want.Overtook+c.want.Invented+c.want.Twice > 0
			require.Equal(t, broken, got.Err() != nil)
			require.Equal(t, broken, len(got.Said) > 0)
			got.Said = nil
			require.Equal(t, &c.want, got)
		})
	}
}

// Two senders to one receiver keep no order between them.
func TestJudgeOfTwoSenders(t *testing.T) {
	h := History{Sent: []Sent{{"s", "a", "m0", Stored}, {"u", "a", "m1", Stored}, {"s", "a", "m2", Stored}},
		Handled: []Handled{{"a", "m1", "1"}, {"a", "m0", "1"}, {"a", "m2", "1"}}}
	require.NoError(t, h.Judge().Err())
	h.Handled[1], h.Handled[2] = h.Handled[2], h.Handled[1]
	require.Equal(t, 1, h.Judge().Overtook)
}

func TestOutcomeOf(t *testing.T) {
	require.Equal(t, Stored, OutcomeOf(nil))
	require.Equal(t, Refused, OutcomeOf(route.NotRun(errors.New("no"))))
	require.Equal(t, Unknown, OutcomeOf(route.Ran(errors.New("perhaps"))))
}
